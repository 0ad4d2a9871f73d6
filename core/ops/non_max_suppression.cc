// NonMaxSuppression: the best boxes of each class that do not overlap a better one too much.
//
// Source: ONNX operator spec, NonMaxSuppression, opsets 10, 11.
// Inputs: boxes float [batch, n, 4], scores float [batch, classes, n], then numbers that may be
//         absent: max_output_boxes_per_class (0), iou_threshold (0), score_threshold (none).
// Output: int64 [count, 3] of (batch, class, box), best first within each class.
// Math:   overlap is the intersection over the union; boxes without an area overlap nothing. Of
//         equal scores the lower index is better. NaN is worse than all numbers, and above no
//         threshold; without one such boxes stay (in ONNX Runtime anywhere in the order).
// Types:  boxes and scores float; the result int64.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMaxBoxes = (int64_t{1} << 32) - 1;

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

struct Limits {
  int64_t count = 0;
  float overlap = 0;
  bool has_score = false;
  float score = 0;
};

// ---------------------------------------------------------------- overlaps

// Boxes that stay, as vectors of 16 bytes: g++ makes none of such loops at -O2.
typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Flags __attribute__((vector_size(16)));
constexpr size_t kEach = 4;
struct Boxes {
  Floats y1, x1, y2, x2, area;
};

void add_box(const Box& box, size_t at, Boxes* kept) {
  Boxes& some = kept[at / kEach];
  // What is not there is a point and has nothing in common with a box.
  if (at % kEach == 0) some = Boxes{};
  some.y1[at % kEach] = box.y1;
  some.x1[at % kEach] = box.x1;
  some.y2[at % kEach] = box.y2;
  some.x2[at % kEach] = box.x2;
  some.area[at % kEach] = box.area;
}

// Whether one of `count` boxes hides this one; they all have areas.
bool is_hidden(const Box& box, const Boxes* kept, size_t count, float threshold) {
  const Floats zero{};
  const Floats y1 = zero + box.y1;
  const Floats x1 = zero + box.x1;
  const Floats y2 = zero + box.y2;
  const Floats x2 = zero + box.x2;
  for (size_t i = 0; i * kEach < count; ++i) {
    const Boxes& b = kept[i];
    const Floats height = (b.y2 < y2 ? b.y2 : y2) - (y1 < b.y1 ? b.y1 : y1);
    const Floats width = (b.x2 < x2 ? b.x2 : x2) - (x1 < b.x1 ? b.x1 : x1);
    const Floats both = height * width;
    const Floats either = b.area + box.area - both;
    // What two areas have in common is less than their sum.
    const Flags hides = (height > zero) & (width > zero) & (both / either > threshold);
    uint64_t halves[2];
    std::memcpy(halves, &hides, sizeof(halves));
    if ((halves[0] | halves[1]) != 0) return true;
  }
  return false;
}

// ---------------------------------------------------------------- the order of scores

// Of keys that ascend the better a box is: the score's bits, then the index. NaN is the worst.
uint64_t key_of(float score, uint32_t index) {
  score += 0.0F;  // -0 is 0.
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  if (score != score) bits = ~0U;
  const uint32_t descending = (bits >> 31) != 0 ? bits : ~bits & 0x7fffffffU;
  return uint64_t{descending} << 32 | index;
}
uint32_t index_of(uint64_t key) { return static_cast<uint32_t>(key); }

// Distinct keys that are put in order as far as somebody asks for them: most boxes are not.
class Ascending {
 public:
  Ascending(uint64_t* keys, size_t count) : keys_(keys), patience_(8 * count) {
    ends_[0] = count;
    depth_ = count > 0 ? 1 : 0;
  }

  // Puts more of them in order; gives how many are now. As many as before: all are.
  size_t more() {
    if (depth_ == 0) return sorted_;
    while (ends_[depth_ - 1] - sorted_ > kFew && depth_ + 2 <= kMaxDepth && wasted_ <= patience_) {
      split();
    }
    std::sort(keys_ + sorted_, keys_ + ends_[depth_ - 1]);
    sorted_ = ends_[--depth_];
    return sorted_;
  }

 private:
  static constexpr size_t kFew = 16;  // that std::sort inserts one by one
  // Orders that split() makes little of are left to std::sort.
  static constexpr size_t kMaxDepth = 64;

  // The first range into those before a pivot, it, and those behind it; without branches, which
  // would go anywhere.
  void split() {
    const size_t begin = sorted_;
    const size_t last = ends_[depth_ - 1] - 1;
    uint64_t& a = keys_[begin];
    uint64_t& b = keys_[begin + (last - begin) / 2];
    uint64_t& c = keys_[last];
    // The median goes to the end.
    if (b < a) std::swap(a, b);
    if (c < b) std::swap(b, c);
    if (b < a) std::swap(a, b);
    std::swap(b, c);
    const uint64_t pivot = c;
    size_t middle = begin;
    for (size_t i = begin; i < last; ++i) {
      const uint64_t key = keys_[i];
      keys_[i] = keys_[middle];
      keys_[middle] = key;
      middle += key < pivot ? 1 : 0;
    }
    std::swap(keys_[middle], keys_[last]);
    if (middle - begin < (last - begin) / 8) wasted_ += last - begin;
    if (middle < last) ends_[depth_++] = middle + 1;
    if (middle > begin) ends_[depth_++] = middle;
  }

  uint64_t* keys_;
  size_t sorted_ = 0;
  size_t patience_;  // steps in splits that made a large part smaller by little
  size_t wasted_ = 0;
  size_t depth_ = 0;
  size_t ends_[kMaxDepth + 2];  // of ranges, each with what comes before the next; the first last
};

// ---------------------------------------------------------------- one class

// What a class needs, of as many elements as there are boxes.
struct Memory {
  uint64_t* keys;
  Boxes* kept;

  static size_t keys_bytes(int64_t n) { return align_up(static_cast<size_t>(n) * 8, 64); }
  static size_t bytes(int64_t n) {
    return keys_bytes(n) + (static_cast<size_t>(n) / kEach + 1) * sizeof(Boxes);
  }
  Memory(uint8_t* memory, int64_t n)
      : keys(reinterpret_cast<uint64_t*>(memory)),
        kept(reinterpret_cast<Boxes*>(memory + keys_bytes(n))) {}
};

// Indices of the boxes of one class that stay, best first: up to limits.count. How many.
int64_t select_boxes(const Box* boxes, const float* scores, int64_t n, const Limits& limits,
                     const Memory& memory, uint32_t* stay) {
  size_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    memory.keys[count] = key_of(scores[i], static_cast<uint32_t>(i));
    count += !limits.has_score || scores[i] > limits.score ? 1 : 0;
  }
  Ascending order(memory.keys, count);
  size_t with_area = 0;
  int64_t stayed = 0;
  for (size_t i = 0, ready = 0; i < count && stayed < limits.count; ++i) {
    if (i == ready) ready = order.more();
    const Box& box = boxes[index_of(memory.keys[i])];
    if (box.area > 0) {
      if (is_hidden(box, memory.kept, with_area, limits.overlap)) continue;
      add_box(box, with_area++, memory.kept);
    }
    stay[stayed++] = index_of(memory.keys[i]);
  }
  return stayed;
}

// ---------------------------------------------------------------- the operator

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
    if (boxes->dim(1) > kMaxBoxes) {
      return not_implemented("there are ", boxes->dim(1), " boxes, at most ", kMaxBoxes);
    }
    if (limits.count <= 0 || scores->count() == 0) {
      FOLIO_TRY(Tensor * none, run.output(0, DType::kInt64, Shape{0, 3}));
      static_cast<void>(none);
      return Status::ok();
    }
    return select(run, *boxes, *scores, limits);
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

  Status select(OpRun& run, const Tensor& boxes, const Tensor& scores, Limits limits) const {
    const int64_t n = boxes.dim(1);
    const int64_t rows = scores.dim(0) * scores.dim(1);  // classes of all images
    limits.count = std::min(limits.count, n);
    const auto images = static_cast<size_t>(boxes.dim(0) * n);
    FOLIO_TRY(uint8_t * memory, run.scratch(images * sizeof(Box)));
    auto* corners = reinterpret_cast<Box*>(memory);
    for (size_t i = 0; i < images; ++i) corners[i] = box_of(boxes.data<float>() + i * 4, center_);
    // There are no more of either than scores.
    FOLIO_TRY(memory, run.scratch(static_cast<size_t>(rows * limits.count) * sizeof(uint32_t)));
    auto* stay = reinterpret_cast<uint32_t*>(memory);
    FOLIO_TRY(memory, run.scratch(static_cast<size_t>(rows) * sizeof(int64_t)));
    auto* counts = reinterpret_cast<int64_t*>(memory);
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, Memory::bytes(n), &scratch));
    const int64_t some = std::max<int64_t>(run.parallel().thread_count(), (1 << 20) / n);
    for (int64_t first = 0; first < rows; first += some) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      const int64_t count = std::min(some, rows - first);
      run.parallel().for_range(count, 1 + 2048 / n, [&](int64_t begin, int64_t end) {
        const ThreadScratch::Block block(scratch);
        for (int64_t row = first + begin; row < first + end; ++row) {
          counts[row] =
              select_boxes(corners + row / scores.dim(1) * n, scores.data<float>() + row * n, n,
                           limits, Memory(block.data(), n), stay + row * limits.count);
        }
      });
    }
    const int64_t total = std::accumulate(counts, counts + rows, int64_t{0});
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt64, Shape{total, 3}));
    auto* to = out->data_mut<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < counts[row]; ++i, to += 3) {
        to[0] = row / scores.dim(1);
        to[1] = row % scores.dim(1);
        to[2] = stay[row * limits.count + i];
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
  def.float_inputs = 0b11011;
  registry.add(def);
}

}  // namespace folio
