// Einstein summation.
//
// Source: ONNX operator spec, Einsum, opset 12: NumPy's notation with letters, spaces, "..." and
//         "->"; without "->" the output has the ellipsis and, sorted, the letters that occur once.
// Shapes: one label a dim; a label's dims are equal or 1 (which repeats); a label twice in one
//         operand is its diagonal.
// Math:   y[out labels] = sum over the other labels of the product of the operands.
//         Two operands of 32 or 64 bits with a sum: a matrix product per batch, [batch, m, k] and
//         [batch, k, n] copied into place; two without a sum: Mul, broadcast; one operand without a
//         label twice: a reduction, and a transpose; everything else: products along one axis at a
//         time.
// Types:  float, double; float16, bfloat16 in float; integers, wrapping.
// Errors: kInvalidGraph for the notation, kInvalidArgument for shapes that do not fit it.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_joins.h"
#include "core/ops/op_product.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

// Labels: 'A' to 'Z' and 'a' to 'z' as their codes, dims of the ellipsis from kEllipsis on
// (counted from the last one), kDots where "..." stands in an equation.
constexpr int kDots = -1;
constexpr int kEllipsis = 128;

struct Equation {
  std::vector<std::vector<int>> inputs;
  std::vector<int> output;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Result<std::vector<int>> parse_term(std::string_view text) {
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (is_letter(text[i])) {
      labels.push_back(text[i]);
    } else if (text.substr(i, 3) == "..." &&
               std::find(labels.begin(), labels.end(), kDots) == labels.end()) {
      labels.push_back(kDots);
      i += 2;
    } else {
      return invalid_graph("attribute 'equation' has '", text[i], "' where a label is expected");
    }
  }
  return labels;
}

Result<Equation> parse_equation(const Attributes& attrs) {
  FOLIO_TRY(const std::string text, attrs.get_string("equation"));
  Equation equation;
  const size_t arrow = text.find("->");
  std::string_view rest = std::string_view(text).substr(0, arrow);
  for (;;) {
    const size_t comma = rest.find(',');
    FOLIO_TRY(std::vector<int> labels, parse_term(rest.substr(0, comma)));
    equation.inputs.push_back(std::move(labels));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  if (arrow != std::string::npos) {
    FOLIO_TRY(equation.output, parse_term(std::string_view(text).substr(arrow + 2)));
    return equation;
  }
  int counts[kEllipsis] = {};
  bool dots = false;
  for (const std::vector<int>& term : equation.inputs) {
    for (const int label : term) {
      if (label == kDots) {
        dots = true;
      } else {
        ++counts[label];
      }
    }
  }
  if (dots) equation.output.push_back(kDots);
  for (int label = 0; label < kEllipsis; ++label) {
    if (counts[label] == 1) equation.output.push_back(label);
  }
  return equation;
}

// "..." as this many labels, the first dims first.
std::vector<int> expand_dots(const std::vector<int>& term, int count) {
  std::vector<int> labels;
  for (const int label : term) {
    if (label != kDots) labels.push_back(label);
    for (int i = count; label == kDots && i > 0; --i) labels.push_back(kEllipsis + i - 1);
  }
  return labels;
}

// How many dims "..." stands for in a term over `rank` dims; -1 when the term does not fit.
int dots_of(const std::vector<int>& term, int rank) {
  const bool dots = std::find(term.begin(), term.end(), kDots) != term.end();
  const int free = rank - static_cast<int>(term.size()) + (dots ? 1 : 0);
  return free < 0 || (!dots && free != 0) ? -1 : free;
}

// One label over all operands.
struct Axis {
  int label = 0;
  int64_t dim = 1;
  bool in_output = false;
  std::vector<int64_t> strides;  // by operand, 0 where it does not have the label
  std::vector<uint8_t> has;
};

struct Plan {
  std::vector<Axis> axes;  // output labels in their order, then the summed ones
  size_t output_rank = 0;
  Shape out;
  int64_t summed = 1;  // elements that go into one output
};

Status add_operand(const std::vector<int>& labels, const Shape& shape, size_t operand,
                   size_t operands, std::vector<Axis>* axes) {
  int64_t stride = 1;
  for (size_t i = labels.size(); i-- > 0;) {
    const int64_t dim = shape[static_cast<int>(i)];
    auto axis = std::find_if(axes->begin(), axes->end(),
                             [&](const Axis& a) { return a.label == labels[i]; });
    if (axis == axes->end()) {
      Axis fresh;
      fresh.label = labels[i];
      fresh.strides.resize(operands);
      fresh.has.resize(operands);
      axis = axes->insert(axes->end(), std::move(fresh));
    }
    if (dim != 1 && axis->dim != 1 && dim != axis->dim) {
      return invalid_argument("operand ", operand, " ", shape.to_string(), ": dim ", i, " is ", dim,
                              ", where the same label is ", axis->dim, " elsewhere");
    }
    if (dim != 1) axis->dim = dim;
    if (dim != 1) axis->strides[operand] += stride;
    axis->has[operand] = 1;
    stride *= dim;
  }
  return Status::ok();
}

Result<Plan> make_plan(const Equation& equation, const std::vector<const Tensor*>& inputs) {
  int dots = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int own = dots_of(equation.inputs[i], inputs[i]->rank());
    if (own < 0) {
      return invalid_argument("operand ", i, " ", inputs[i]->shape().to_string(),
                              " has another rank than its term of the equation");
    }
    dots = std::max(dots, own);
  }
  std::vector<Axis> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i]->shape();
    const int own = dots_of(equation.inputs[i], shape.rank());
    const std::vector<int> labels = expand_dots(equation.inputs[i], own);
    FOLIO_RETURN_IF_ERROR(add_operand(labels, shape, i, inputs.size(), &found));
  }
  Plan plan;
  std::vector<int64_t> dims;
  for (const int label : expand_dots(equation.output, dots)) {
    const auto axis = std::find_if(found.begin(), found.end(),
                                   [&](const Axis& a) { return a.label == label && !a.in_output; });
    if (axis == found.end()) {
      return invalid_argument("an output label is in no operand, or twice in the output");
    }
    axis->in_output = true;
    plan.axes.push_back(*axis);
    dims.push_back(axis->dim);
  }
  plan.output_rank = plan.axes.size();
  FOLIO_TRY(plan.out, shape_from(dims));
  for (const Axis& axis : found) {
    if (axis.in_output) continue;
    if (!checked_mul(plan.summed, axis.dim, &plan.summed)) {
      return invalid_argument("the sum runs over too many elements");
    }
    plan.axes.push_back(axis);
  }
  return plan;
}

// ---------------------------------------------------------------- loops

// Position over axes [from, to) and the operands' offsets there.
class Walk {
 public:
  Walk(const Plan& plan, size_t from, size_t to, size_t operands)
      : plan_(plan), from_(from), to_(to), index_(to - from), offsets_(operands) {}

  void seek(int64_t at) {
    for (size_t i = to_; i-- > from_;) move(i, at % plan_.axes[i].dim, &at);
  }
  void advance() {
    for (size_t i = to_; i-- > from_;) {
      const Axis& axis = plan_.axes[i];
      int64_t& index = index_[i - from_];
      const int64_t step = ++index < axis.dim ? 1 : 1 - axis.dim;
      for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += step * axis.strides[k];
      if (step == 1 && index < axis.dim) return;
      index = 0;
    }
  }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  void move(size_t i, int64_t index, int64_t* at) {
    *at /= plan_.axes[i].dim;
    index_[i - from_] = index;
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += index * plan_.axes[i].strides[k];
  }

  const Plan& plan_;
  size_t from_, to_;
  std::vector<int64_t> index_;
  std::vector<int64_t> offsets_;
};

// Elements of a type as the numbers they are summed in: floats, doubles, or integers that wrap.
template <typename W>
struct Elements {
  size_t bytes = 0;       // of one
  bool is_plain = false;  // they are such numbers
  void (*read)(int64_t n, const void* from, int64_t stride, W* to) = nullptr;
  void (*write)(int64_t n, const W* from, void* to) = nullptr;
};

template <typename W, typename T>
Elements<W> elements_of() {
  Elements<W> out;
  out.bytes = sizeof(T);
  out.is_plain = std::is_same_v<T, W>;
  out.read = [](int64_t n, const void* from, int64_t stride, W* to) {
    const T* x = static_cast<const T*>(from);
    const auto value = [x](int64_t i) { return static_cast<W>(x[i]); };
    if (stride == 0) {
      std::fill_n(to, n, value(0));
    } else if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = value(i);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = value(i * stride);
    }
  };
  out.write = [](int64_t n, const W* from, void* to) {
    T* y = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(from[i]);
  };
  return out;
}

// In lanes, so that one sum need not wait for the other.
template <typename W>
W sum_of(int64_t n, const W* x) {
  constexpr int64_t kLanes = 8;
  W lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += x[i + l];
  }
  W sum{};
  for (int64_t l = 0; l < kLanes; ++l) sum += lanes[l];
  for (; i < n; ++i) sum += x[i];
  return sum;
}

// Products along one axis, the last one of the output or of the sum, whichever is closer together
// in memory, some at a time; the others are walked.
template <typename W>
class Loops {
 public:
  Loops(const Plan& plan, const std::vector<const Tensor*>& inputs, const Elements<W>& elements)
      : plan_(plan), elements_(elements), operands_(inputs.size()) {
    for (const Tensor* input : inputs) data_.push_back(input->raw());
    if (plan_.axes.empty()) {
      plan_.axes.push_back({});
      plan_.axes[0].strides.resize(operands_);
      plan_.output_rank = 1;
    }
    for (size_t i = plan_.output_rank; i + 1 < plan_.axes.size(); ++i) {
      if (apart(plan_.axes[i]) < apart(plan_.axes.back()))
        std::swap(plan_.axes[i], plan_.axes.back());
    }
    const bool has_sums = plan_.output_rank < plan_.axes.size();
    sums_ = plan_.output_rank == 0 ||
            (has_sums && apart(plan_.axes.back()) <= apart(plan_.axes[plan_.output_rank - 1]));
    for (size_t i = plan_.output_rank; i + (sums_ ? 1 : 0) < plan_.axes.size(); ++i) {
      positions_ *= plan_.axes[i].dim;
    }
  }

  void run(OpRun& run, Tensor* y) const {
    const int64_t row = sums_ ? 1 : plan_.axes[plan_.output_rank - 1].dim;
    const int64_t work = std::max<int64_t>(1, plan_.summed) * row;
    const int64_t grain = std::max<int64_t>(1, kElementGrain / work);
    run.parallel().for_range(y->count() / row, grain, [&](int64_t begin, int64_t end) {
      Walk outer(plan_, 0, plan_.output_rank - (sums_ ? 0 : 1), operands_);
      Walk inner(plan_, plan_.output_rank, plan_.axes.size() - (sums_ ? 1 : 0), operands_);
      outer.seek(begin);
      for (int64_t at = begin; at < end; ++at, outer.advance()) {
        uint8_t* const to = y->raw_mut() + static_cast<size_t>(at * row) * elements_.bytes;
        sums_ ? write_sum(outer, &inner, to) : write_row(outer, &inner, row, to);
      }
    });
  }

 private:
  static constexpr int64_t kPiece = 256;

  // How far the elements of an axis are from each other.
  static int64_t apart(const Axis& axis) {
    int64_t sum = 0;
    for (const int64_t stride : axis.strides) sum += axis.dim > 1 ? stride : 0;
    return sum;
  }

  // Products of the operands' elements from `first` on along the axis: where they stand, or in the
  // buffer.
  const W* multiply(const Walk& outer, const Walk& inner, const Axis& axis, int64_t first,
                    int64_t n, W* buffer) const {
    W other[kPiece];
    for (size_t k = 0; k < operands_; ++k) {
      const int64_t stride = axis.strides[k];
      const int64_t offset = outer.offsets()[k] + inner.offsets()[k] + first * stride;
      const uint8_t* from = data_[k] + static_cast<size_t>(offset) * elements_.bytes;
      if (operands_ == 1 && stride == 1 && elements_.is_plain) {
        return reinterpret_cast<const W*>(from);
      }
      elements_.read(n, from, stride, k == 0 ? buffer : other);
      if (k == 0) continue;
      for (int64_t i = 0; i < n; ++i) buffer[i] *= other[i];
    }
    return buffer;
  }

  // `inner` ends where it began.
  void write_sum(const Walk& outer, Walk* inner, uint8_t* to) const {
    const Axis& axis = plan_.axes.back();
    W products[kPiece];
    W sum{};
    for (int64_t position = 0; position < positions_; ++position, inner->advance()) {
      for (int64_t i = 0; i < axis.dim; i += kPiece) {
        const int64_t n = std::min(kPiece, axis.dim - i);
        sum += sum_of(n, multiply(outer, *inner, axis, i, n, products));
      }
    }
    elements_.write(1, &sum, to);
  }

  void write_row(const Walk& outer, Walk* inner, int64_t row, uint8_t* to) const {
    const Axis& axis = plan_.axes[plan_.output_rank - 1];
    W products[kPiece];
    W sums[kPiece];
    for (int64_t i = 0; i < row; i += kPiece) {
      const int64_t n = std::min(kPiece, row - i);
      if (positions_ == 0) {  // of nothing
        std::fill_n(sums, n, W{});
      } else {
        const W* first = multiply(outer, *inner, axis, i, n, products);
        std::copy_n(first, n, sums);
        inner->advance();
      }
      for (int64_t position = 1; position < positions_; ++position, inner->advance()) {
        const W* next = multiply(outer, *inner, axis, i, n, products);
        for (int64_t e = 0; e < n; ++e) sums[e] += next[e];
      }
      elements_.write(n, sums, to + static_cast<size_t>(i) * elements_.bytes);
    }
  }

  Plan plan_;
  const Elements<W> elements_;
  size_t operands_;
  std::vector<const uint8_t*> data_;
  bool sums_ = false;      // the axis is one of the sum
  int64_t positions_ = 1;  // of the other axes of the sum
};

void run_loops(OpRun& run, const Plan& plan, const std::vector<const Tensor*>& inputs, Tensor* y) {
  dispatch(PlainNumericTypes{}, y->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    Loops<W>(plan, inputs, elements_of<W, T>()).run(run, y);
  });
}

Status run_halves(OpRun& run, const Plan& plan, const std::vector<const Tensor*>& inputs,
                  Tensor* y) {
  std::vector<Tensor> wide;
  for (const Tensor* input : inputs) {
    FOLIO_TRY(float* numbers, widen_half(run, *input));
    wide.emplace_back(DType::kFloat, input->shape(), reinterpret_cast<uint8_t*>(numbers),
                      Ref<Buffer>());
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& each : wide) pointers.push_back(&each);
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
  Tensor sums(DType::kFloat, y->shape(), bytes, {});
  run_loops(run, plan, pointers, &sums);
  narrow_half(run, sums.data<float>(), y);
  return Status::ok();
}

// y's dims are those of `source`, dense with these labels, in another order.
Status turn(OpRun& run, const std::vector<int>& labels, const Plan& plan, const Tensor& source,
            Tensor* y) {
  int64_t strides[kMaxRank];
  row_strides(source.shape(), strides);
  StridedView view;
  for (size_t i = 0; i < plan.output_rank; ++i) {
    const auto at = std::find(labels.begin(), labels.end(), plan.axes[i].label) - labels.begin();
    view.add(plan.axes[i].dim, strides[at]);
  }
  if (view.rank == 0) view.add(1, 1);
  return copy_strided(run, view, source, y);
}

// ---------------------------------------------------------------- as matrix products

// Axes by their role; a label of one operand alone that is summed makes it no matrix product, nor
// does it without a sum.
struct Roles {
  std::vector<const Axis*> batch, m, n, k;

  static bool of(const Plan& plan, Roles* out) {
    for (const Axis& axis : plan.axes) {
      const bool a = axis.has[0] != 0;
      const bool b = axis.has[1] != 0;
      if (!axis.in_output && !(a && b)) return false;
      (!axis.in_output ? out->k : a && b ? out->batch : a ? out->m : out->n).push_back(&axis);
    }
    return !out->k.empty() && plan.axes.size() <= kMaxStridedRank;
  }
};

int64_t count_of(const std::vector<const Axis*>& axes) {
  int64_t count = 1;
  for (const Axis* axis : axes) count *= axis->dim;
  return count;
}

// Operand k's elements in the order of these groups of axes, dense, in scratch.
template <typename T>
Result<const T*> arrange(OpRun& run, const Tensor& source, size_t operand,
                         std::initializer_list<const std::vector<const Axis*>*> groups) {
  StridedView view;
  int64_t count = 1;
  for (const auto* group : groups) {
    for (const Axis* axis : *group) {
      view.add(axis->dim, axis->strides[operand]);
      if (!checked_mul(count, axis->dim, &count))
        return invalid_argument("an operand is too large");
    }
  }
  if (count > int64_t{1} << 58) return invalid_argument("an operand is too large");
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(count) * sizeof(T)));
  Tensor out(source.dtype(), Shape{count}, bytes, {});
  if (view.rank == 0) view.add(1, 1);
  FOLIO_RETURN_IF_ERROR(copy_strided(run, view, source, &out));
  return reinterpret_cast<const T*>(bytes);
}

Status multiply(OpRun& run, int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                float* y) {
  FolioGemmF32 args{};
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a;
  args.a_row_stride = k;
  args.a_col_stride = 1;
  args.c = y;
  args.c_row_stride = n;
  args.alpha = 1.0F;
  GemmB plain;
  plain.data = b;
  plain.row_stride = n;
  plain.col_stride = 1;
  plain.unpacked = true;  // nor are constants packed here
  return gemm_f32(run, args, plain);
}
template <typename T>
Status multiply(OpRun& run, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* y) {
  return multiply_numbers<T>(run, {m, n, k, a, k, 1, b, n, 1, y});
}

// T: float, double, or unsigned integers.
template <typename T>
Status run_products(OpRun& run, const Plan& plan, const Roles& roles,
                    const std::vector<const Tensor*>& inputs, Tensor* y) {
  FOLIO_TRY(const T* a, arrange<T>(run, *inputs[0], 0, {&roles.batch, &roles.m, &roles.k}));
  FOLIO_TRY(const T* b, arrange<T>(run, *inputs[1], 1, {&roles.batch, &roles.k, &roles.n}));
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(T)));
  const int64_t m = count_of(roles.m);
  const int64_t n = count_of(roles.n);
  const int64_t k = plan.summed;
  const int64_t batches = count_of(roles.batch);
  for (int64_t i = 0; i < batches; ++i) {
    T* to = reinterpret_cast<T*>(bytes) + i * m * n;
    FOLIO_RETURN_IF_ERROR(multiply(run, m, n, k, a + i * m * k, b + i * k * n, to));
  }
  std::vector<int> labels;
  std::vector<int64_t> dims;
  for (const auto* group : {&roles.batch, &roles.m, &roles.n}) {
    for (const Axis* axis : *group) {
      labels.push_back(axis->label);
      dims.push_back(axis->dim);
    }
  }
  FOLIO_TRY(const Shape shape, shape_from(dims));
  return turn(run, labels, plan, Tensor(y->dtype(), shape, bytes, {}), y);
}

// ---------------------------------------------------------------- of two operands without a sum

// Operand k with a dim of 1 for each label that it does not have, in the order of the output.
template <typename T>
Result<Tensor> spread(OpRun& run, const Plan& plan, const Tensor& source, size_t k) {
  std::vector<int64_t> dims;
  std::vector<const Axis*> own;
  bool is_in_order = true;
  int64_t before = 0;  // the stride of the last one
  for (const Axis& axis : plan.axes) {
    dims.push_back(axis.strides[k] == 0 ? 1 : axis.dim);
    if (axis.strides[k] == 0) continue;
    is_in_order = is_in_order && (own.empty() || before > axis.strides[k]);
    before = axis.strides[k];
    own.push_back(&axis);
  }
  FOLIO_TRY(const Shape shape, shape_from(dims));
  const uint8_t* data = source.raw();
  if (!is_in_order) {
    FOLIO_TRY(const T* turned, arrange<T>(run, source, k, {&own}));
    data = reinterpret_cast<const uint8_t*>(turned);
  }
  return Tensor(source.dtype(), shape, const_cast<uint8_t*>(data), {});  // read only
}

// Whether it was: of labels that neither operand has twice.
template <typename T>
Result<bool> run_broadcast(OpRun& run, const Plan& plan, const std::vector<const Tensor*>& inputs,
                           Tensor* y) {
  for (const size_t k : {0, 1}) {
    int64_t count = 1;
    for (const Axis& axis : plan.axes) count *= axis.strides[k] == 0 ? 1 : axis.dim;
    if (count != inputs[k]->count()) return false;  // of a diagonal there are fewer
  }
  FOLIO_TRY(const Tensor a, spread<T>(run, plan, *inputs[0], 0));
  FOLIO_TRY(const Tensor b, spread<T>(run, plan, *inputs[1], 1));
  FOLIO_TRY(const BroadcastPlan rows, plan_broadcast(a.shape(), b.shape()));
  if constexpr (std::is_same_v<T, float>) {
    run_binary_f32(run, run.kernels().binary_f32[kFolioMul], rows, a, b, y);
  } else {
    run_binary_rows(run, rows, binary_row<T, T, T, MulFunction>, a, b, y);
  }
  return true;
}

// ---------------------------------------------------------------- of one operand

// `labels`: of x, each once. T: as which integers are summed, too.
template <typename T>
Status run_sum(OpRun& run, const std::vector<int>& labels, const Plan& plan, const Tensor& x,
               Tensor* y) {
  bool is_summed[kMaxRank] = {};
  std::vector<int> kept;
  std::vector<int> wanted;
  for (size_t i = 0; i < plan.output_rank; ++i) wanted.push_back(plan.axes[i].label);
  for (size_t i = 0; i < labels.size(); ++i) {
    is_summed[i] = std::find(wanted.begin(), wanted.end(), labels[i]) == wanted.end();
    if (!is_summed[i]) kept.push_back(labels[i]);
  }
  if (kept.size() == labels.size()) return turn(run, labels, plan, x, y);
  const ReducePlan sums = plan_reduce(x.shape(), is_summed, false);
  const bool is_in_order = kept == wanted;
  uint8_t* to = y->raw_mut();
  if (!is_in_order) {
    FOLIO_TRY(to, run.scratch(static_cast<size_t>(y->count()) * sizeof(T)));
  }
  const ReduceJob<T> job{run.kernels(), sums, kernel_joins<T>(run.kernels(), kFolioReduceSum),
                         x.raw()};
  reduce_elements(run.parallel(), job, reinterpret_cast<T*>(to));
  return is_in_order ? Status::ok()
                     : turn(run, kept, plan, Tensor(y->dtype(), sums.out, to, {}), y);
}

// ---------------------------------------------------------------- operator

class Einsum final : public OpKernel {
 public:
  Equation equation;

  Status run(OpRun& run) const override {
    std::vector<const Tensor*> inputs;
    for (int i = 0; i < run.input_count(); ++i) {
      FOLIO_TRY(const Tensor* input, run.tensor(i));
      if (i > 0 && input->dtype() != inputs[0]->dtype()) return wrong_type(i, input->dtype());
      inputs.push_back(input);
    }
    const DType dtype = inputs[0]->dtype();
    if (!contains(NumericTypes{}, dtype)) return wrong_type(0, dtype);
    FOLIO_TRY(const Plan plan, make_plan(equation, inputs));
    FOLIO_TRY(Tensor * y, run.output(0, dtype, plan.out));
    if (y->count() == 0) return Status::ok();
    switch (dtype) {
      case DType::kFloat:
        return run_as<float, float>(run, plan, inputs, y);
      case DType::kDouble:
        return run_as<double, double>(run, plan, inputs, y);
      case DType::kInt32:
      case DType::kUint32:
        return run_as<uint32_t, int32_t>(run, plan, inputs, y);
      case DType::kInt64:
      case DType::kUint64:
        return run_as<uint64_t, int64_t>(run, plan, inputs, y);
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_halves(run, plan, inputs, y);
      default:
        run_loops(run, plan, inputs, y);
        return Status::ok();
    }
  }

 private:
  // Product: what is multiplied, Sum: what is summed; the same numbers, or the same bits.
  template <typename Product, typename Sum>
  Status run_as(OpRun& run, const Plan& plan, const std::vector<const Tensor*>& inputs,
                Tensor* y) const {
    if (inputs.size() == 1) {
      const std::vector<int>& term = equation.inputs[0];
      const std::vector<int> labels = expand_dots(term, dots_of(term, inputs[0]->rank()));
      if (labels.size() == plan.axes.size()) return run_sum<Sum>(run, labels, plan, *inputs[0], y);
    }
    Roles roles;
    if (inputs.size() == 2 && Roles::of(plan, &roles)) {
      return run_products<Product>(run, plan, roles, inputs, y);
    }
    if (inputs.size() == 2 && plan.output_rank == plan.axes.size()) {
      FOLIO_TRY(const bool done, run_broadcast<Product>(run, plan, inputs, y));
      if (done) return Status::ok();
    }
    run_loops(run, plan, inputs, y);
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Einsum>();
  FOLIO_TRY(kernel->equation, parse_equation(build.attrs()));
  if (static_cast<int>(kernel->equation.inputs.size()) != build.input_count()) {
    return invalid_graph("attribute 'equation' has ", kernel->equation.inputs.size(), " terms for ",
                         build.input_count(), " inputs");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Equation equation, parse_equation(infer.attrs()));
  infer.set_tensor(0, infer.dtype(0));
  int dots = 0;
  const auto count = static_cast<int>(equation.inputs.size());
  if (count != infer.input_count()) return Status::ok();
  for (int i = 0; i < count; ++i) {
    const Dims* dims = infer.dims_of(i);
    if (!dims) return Status::ok();
    const int own =
        dots_of(equation.inputs[static_cast<size_t>(i)], static_cast<int>(dims->size()));
    if (own < 0) return Status::ok();  // refused when it runs
    dots = std::max(dots, own);
  }
  Dims out;
  for (const int label : expand_dots(equation.output, dots)) {
    Dim dim = Dim::of(1);
    for (int i = 0; i < count; ++i) {
      const Dims& dims = *infer.dims_of(i);
      const std::vector<int>& term = equation.inputs[static_cast<size_t>(i)];
      const std::vector<int> labels =
          expand_dots(term, dots_of(term, static_cast<int>(dims.size())));
      for (size_t k = 0; k < labels.size(); ++k) {
        if (labels[k] == label) dim = infer.table().broadcast(dim, dims[k]);
      }
    }
    out.push_back(dim);
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_einsum(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "Einsum",
                .since = 12,
                .min_inputs = 1,
                .max_inputs = kVariadic,
                .infer = infer,
                .make = make});
}

}  // namespace folio
