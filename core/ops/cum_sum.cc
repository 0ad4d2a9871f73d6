// CumSum and CumProd: sums and products up to each element of an axis.
//
// Source: ONNX operator spec, CumSum, opsets 11, 14; CumProd, opset 26.
// Shapes: y as x; the axis is input 1, one number.
// Math:   exclusive leaves the element itself out (the first is 0 or 1); reverse starts at the end.
//         The 16-bit formats are carried in float; integers wrap.
// Types:  all numbers; float16 and bfloat16 in float; integers wrap.
#include "core/ops/op_arithmetic.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  bool product = false;
  bool exclusive = false;
  bool reverse = false;
};

template <typename T, typename F>
void accumulate(OpRun& run, const Options& options, const Tensor& x, int axis, Tensor* y) {
  using C = Compute<T>;
  const int64_t n = x.dim(axis);
  const int64_t inner = x.shape().product(axis + 1, x.rank());
  const int64_t columns = x.count() / n;
  const T* from = x.data<T>();
  T* to = y->data_mut<T>();
  run.parallel().for_range(columns, rows_per_task(n), [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const int64_t first = column / inner * n * inner + column % inner;
      C sum = options.product ? C{1} : C{0};
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = first + (options.reverse ? n - 1 - i : i) * inner;
        const C value = static_cast<C>(from[at]);
        if (options.exclusive) to[at] = static_cast<T>(sum);
        sum = F()(sum, value);
        if (!options.exclusive) to[at] = static_cast<T>(sum);
      }
    }
  });
}

class Cumulate final : public OpKernel {
 public:
  explicit Cumulate(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> given, run.ints(1));
    if (given.size() != 1) return invalid_argument("axis has ", given.size(), " elements, not 1");
    FOLIO_TRY(const int axis, normalize_axis(given[0], x->rank()));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    const bool known = dispatch(NumericTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (options_.product) {
        accumulate<T, MulFunction>(run, options_, *x, axis, y);
      } else {
        accumulate<T, AddFunction>(run, options_, *x, axis, y);
      }
    });
    return known ? Status::ok() : wrong_type(0, x->dtype());
  }

 private:
  Options options_;
};

Status infer_cumulate(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_cumulate(OpBuild& build) {
  Options options;
  FOLIO_TRY(const int64_t exclusive, build.attrs().get_int("exclusive", 0));
  FOLIO_TRY(const int64_t reverse, build.attrs().get_int("reverse", 0));
  options.product = build.node().op_type == "CumProd";
  options.exclusive = exclusive != 0;
  options.reverse = reverse != 0;
  return std::unique_ptr<OpKernel>(std::make_unique<Cumulate>(options));
}

}  // namespace

[[gnu::cold]] void register_cum_sum(OpRegistry& registry) {
  OpDef def;
  def.type = "CumSum";
  def.since = 11;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_cumulate;
  def.make = make_cumulate;
  registry.add(def);
  def.type = "CumProd";
  def.since = 26;
  registry.add(def);
}

}  // namespace folio
