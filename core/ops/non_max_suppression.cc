// NonMaxSuppression: the best boxes of each class that do not overlap a better one too much.
//
// Source: ONNX operator spec, NonMaxSuppression, opsets 10, 11.
// Inputs: boxes float [batch, n, 4], scores float [batch, classes, n], then numbers that may be
//         absent: max_output_boxes_per_class (0), iou_threshold (0), score_threshold (none).
// Output: int64 [count, 3] of (batch, class, box), best first within each class.
// Math:   overlap is the intersection over the union; boxes without an area overlap nothing. Of
//         equal scores the lower index is better; NaN is no score.
// Types:  boxes and scores float; the result int64.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Box {
  float y1, x1, y2, x2, area;
};

Box box_of(const float* v, bool center) {
  Box box{};
  if (center) {
    box = {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2, 0};
  } else {
    box = {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3]),
           0};
  }
  box.area = (box.y2 - box.y1) * (box.x2 - box.x1);
  return box;
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  if (!(a.area > 0) || !(b.area > 0)) return false;
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0) || !(width > 0)) return false;
  const float both = height * width;
  const float either = a.area + b.area - both;
  return either > 0 && both / either > threshold;
}

struct Limits {
  int64_t count = 0;
  float overlap = 0;
  bool has_score = false;
  float score = 0;
};

// Indices of the boxes of one class that stay, best first.
void select_boxes(const std::vector<Box>& boxes, const float* scores, const Limits& limits,
                  std::vector<int64_t>* candidates, std::vector<int64_t>* kept) {
  candidates->clear();
  kept->clear();
  for (size_t i = 0; i < boxes.size(); ++i) {
    const bool counts = limits.has_score ? scores[i] > limits.score : scores[i] == scores[i];
    if (counts) candidates->push_back(static_cast<int64_t>(i));
  }
  std::sort(candidates->begin(), candidates->end(), [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  for (const int64_t candidate : *candidates) {
    if (static_cast<int64_t>(kept->size()) >= limits.count) return;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool hidden = std::any_of(kept->begin(), kept->end(), [&](int64_t better) {
      return overlaps(box, boxes[static_cast<size_t>(better)], limits.overlap);
    });
    if (!hidden) kept->push_back(candidate);
  }
}

class NonMaxSuppression final : public OpKernel {
 public:
  explicit NonMaxSuppression(bool center) : center_(center) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* boxes, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* scores, run.tensor(1, DType::kFloat));
    const bool fits = boxes->rank() == 3 && scores->rank() == 3 && boxes->dim(2) == 4 &&
                      boxes->dim(0) == scores->dim(0) && boxes->dim(1) == scores->dim(2);
    if (!fits) {
      return invalid_argument("boxes are ", boxes->shape().to_string(), " and scores ",
                              scores->shape().to_string(), ", expected [b,n,4] and [b,c,n]");
    }
    FOLIO_TRY(const Limits limits, limits_of(run));
    std::vector<int64_t> result;
    if (limits.count > 0 && scores->count() > 0) {
      FOLIO_RETURN_IF_ERROR(select(run, *boxes, *scores, limits, &result));
    }
    const auto count = static_cast<int64_t>(result.size() / 3);
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt64, Shape{count, 3}));
    std::copy(result.begin(), result.end(), out->data_mut<int64_t>());
    return Status::ok();
  }

 private:
  static Result<Limits> limits_of(OpRun& run) {
    Limits limits;
    if (run.has_input(2)) {
      FOLIO_TRY(const std::vector<int64_t> count, run.ints(2));
      if (count.size() != 1) return invalid_argument("input 2 has ", count.size(), " elements");
      limits.count = count[0];
    }
    for (int i = 3; i < 5; ++i) {
      if (!run.has_input(i)) continue;
      FOLIO_TRY(const Tensor* number, run.tensor(i, DType::kFloat));
      if (number->count() != 1) {
        return invalid_argument("input ", i, " has ", number->count(), " elements, expected 1");
      }
      (i == 3 ? limits.overlap : limits.score) = *number->data<float>();
      limits.has_score |= i == 4;
    }
    return limits;
  }

  Status select(OpRun& run, const Tensor& boxes, const Tensor& scores, const Limits& limits,
                std::vector<int64_t>* result) const {
    const int64_t n = boxes.dim(1);
    const int64_t classes = scores.dim(1);
    std::vector<Box> corners(static_cast<size_t>(n));
    std::vector<int64_t> candidates;
    std::vector<int64_t> kept;
    for (int64_t b = 0; b < boxes.dim(0); ++b) {
      for (int64_t i = 0; i < n; ++i) {
        corners[static_cast<size_t>(i)] = box_of(boxes.data<float>() + (b * n + i) * 4, center_);
      }
      for (int64_t c = 0; c < classes; ++c) {
        FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
        const float* row = scores.data<float>() + (b * classes + c) * n;
        select_boxes(corners, row, limits, &candidates, &kept);
        for (const int64_t box : kept) result->insert(result->end(), {b, c, box});
      }
    }
    return Status::ok();
  }

  bool center_;
};

Status infer_boxes(OpInfer& infer) {
  infer.set_tensor(0, DType::kInt64, Dims{Dim::unknown(), Dim::of(3)});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_boxes(OpBuild& build) {
  FOLIO_TRY(const int64_t center, build.attrs().get_int("center_point_box", 0));
  if (center != 0 && center != 1) {
    return invalid_graph("center_point_box is ", center, ", expected 0 or 1");
  }
  return std::unique_ptr<OpKernel>(std::make_unique<NonMaxSuppression>(center == 1));
}

}  // namespace

[[gnu::cold]] void register_non_max_suppression(OpRegistry& registry) {
  OpDef def;
  def.type = "NonMaxSuppression";
  def.since = 10;
  def.min_inputs = 2;
  def.max_inputs = 5;
  def.infer = infer_boxes;
  def.make = make_boxes;
  registry.add(def);
}

}  // namespace folio
