// DynamicTimeWarping: the cheapest way through a table of costs, with which Whisper finds when
// words are said.
//
// Source: com.microsoft DynamicTimeWarping 1 (ONNX Runtime's contrib operators).
// Shapes: costs [m, n] or [1, m, n] -> y int32 [2, length], the rows and the columns of the way
// from
//         (0, 0) to (m - 1, n - 1).
// Math:   a step goes to the next row, the next column or both: both if that is cheaper than
//         either, the next row if that is, else the next column.
// Types:  costs float; y int32.
#include <limits>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum Step : uint8_t { kBoth, kRow, kColumn };

// How each place of the table is reached.
std::vector<uint8_t> steps_of(const float* costs, int64_t rows, int64_t columns) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  std::vector<uint8_t> steps(static_cast<size_t>(rows * columns));
  // Of a row, with the place before its first.
  std::vector<float> above(static_cast<size_t>(columns) + 1, kNever);
  std::vector<float> here(above);
  above[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    here[0] = kNever;
    for (size_t j = 0; j < static_cast<size_t>(columns); ++j) {
      const float both = above[j];
      const float row = above[j + 1];
      const float column = here[j];
      const size_t at = static_cast<size_t>(i * columns) + j;
      steps[at] = both < row && both < column ? kBoth : row < both && row < column ? kRow : kColumn;
      const float least = steps[at] == kBoth ? both : steps[at] == kRow ? row : column;
      here[j + 1] = least + costs[at];
    }
    std::swap(above, here);
  }
  return steps;
}

class DynamicTimeWarping final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* costs, run.tensor(0, DType::kFloat));
    const int rank = costs->rank();
    if (rank != 2 && !(rank == 3 && costs->dim(0) == 1)) {
      return invalid_argument("input 0 is ", costs->shape().to_string(),
                              ", expected [m,n] or [1,m,n]");
    }
    const int64_t rows = costs->dim(rank - 2);
    const int64_t columns = costs->dim(rank - 1);
    std::vector<std::pair<int32_t, int32_t>> way;  // from its end
    if (costs->count() > 0) {
      if (rows > INT32_MAX || columns > INT32_MAX) {
        return invalid_argument("input 0 is ", costs->shape().to_string(), ", too large for int32");
      }
      const std::vector<uint8_t> steps = steps_of(costs->data<float>(), rows, columns);
      for (int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
        way.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(j));
        const uint8_t step = steps[static_cast<size_t>(i * columns + j)];
        if (step != kColumn) --i;
        if (step != kRow) --j;
      }
    }
    const auto length = static_cast<int64_t>(way.size());
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt32, Shape{2, length}));
    auto* out = y->data_mut<int32_t>();
    for (int64_t k = 0; k < length; ++k) {
      const auto& [row, column] = way[static_cast<size_t>(length - 1 - k)];
      out[k] = row;
      out[length + k] = column;
    }
    return Status::ok();
  }
};

Status infer_warping(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  if (x && x->size() != 2 && x->size() != 3) {
    return invalid_graph("input 0 has rank ", x->size(), ", expected 2 or 3");
  }
  infer.set_tensor(0, DType::kInt32, Dims{Dim::of(2), Dim::unknown()});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_warping(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<DynamicTimeWarping>());
}

}  // namespace

[[gnu::cold]] void register_dynamic_time_warping(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "DynamicTimeWarping";
  def.infer = infer_warping;
  def.make = make_warping;
  registry.add(def);
}

}  // namespace folio
