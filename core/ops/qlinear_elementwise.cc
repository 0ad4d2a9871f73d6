// Element-wise operators on quantized tensors: QLinearAdd, QLinearMul, QLinearSigmoid,
// QLinearLeakyRelu, QLinearSoftmax, QLinearConcat.
//
// Source: com.microsoft, version 1.
// Shapes: Add, Mul: numpy broadcast of A and B; Sigmoid, LeakyRelu, Softmax: x's; Concat: along
//         axis.
// Math:   y = saturate(round(f(dequantized inputs) / y_scale) + y_zero); sums by the ratios of the
//         scales, as the kernel add_b8 rounds them; functions of one element by a table of its 256
//         values. Softmax before opset 13 (attribute opset) is over all dims
//         from axis on.
// Types:  int8 and uint8, the same for inputs and output.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// ---------------------------------------------------------------- Add, Mul

// Inputs A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero.
template <bool kAdd>
class Binary final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, run.tensor(3, a->dtype()));
    FOLIO_TRY(const QuantScalar qa, quant_scalar(run, 1, 2, a->dtype()));
    FOLIO_TRY(const QuantScalar qb, quant_scalar(run, 4, 5, a->dtype()));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 6, 7, a->dtype()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), plan.out));
    const FolioByteScale from_a = byte_scale(qa, a->dtype());
    const FolioByteScale from_b = byte_scale(qb, a->dtype());
    const FolioByteScale to = byte_scale(qy, a->dtype());
    for_broadcast_pieces(run.parallel(), plan, a->raw(), 1, b->raw(), 1,
                         [&](const uint8_t* left, int64_t a_step, const uint8_t* right,
                             int64_t b_step, int64_t at, int64_t count) {
                           join_rows(run.kernels(), count, {left, a_step, &from_a},
                                     {right, b_step, &from_b}, to, y->raw_mut() + at);
                         });
    return Status::ok();
  }

 private:
  static constexpr int64_t kSame = 1024;  // copies of one code

  struct Codes {
    const uint8_t* at;
    int64_t step;  // 0: one code for all
    const FolioByteScale* scale;
  };

  static void join_rows(const FolioKernels& kernels, int64_t count, Codes a, Codes b,
                        const FolioByteScale& to, uint8_t* y) {
    const auto join = kAdd ? kernels.add_b8 : kernels.mul_b8;
    uint8_t same_a[kSame];
    uint8_t same_b[kSame];
    const int64_t most = a.step == 1 && b.step == 1 ? count : std::min(count, kSame);
    if (a.step == 0) std::memset(same_a, *a.at, static_cast<size_t>(most));
    if (b.step == 0) std::memset(same_b, *b.at, static_cast<size_t>(most));
    for (int64_t i = 0; i < count; i += most) {
      join(std::min(most, count - i), a.step == 0 ? same_a : a.at + i, a.scale,
           b.step == 0 ? same_b : b.at + i, b.scale, &to, y + i);
    }
  }
};

Status infer_binary(OpInfer& infer) {
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(3);
  infer.set_tensor(0, infer.dtype(0));
  if (!a || !b) return Status::ok();
  FOLIO_TRY(Dims out, infer_broadcast(infer.table(), *a, *b));
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

// ---------------------------------------------------------------- tables

using ByteTable = std::array<uint8_t, 256>;

// Code of y for each code of x, y = f(x).
template <typename F>
ByteTable make_table(const FolioKernels& kernels, const FolioByteScale& x, const FolioByteScale& y,
                     const F& f) {
  ByteTable table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  constexpr auto kCodes = static_cast<int64_t>(std::tuple_size_v<ByteTable>);
  float values[kCodes];
  kernels.dequantize_b8(kCodes, table.data(), &x, values);
  for (float& value : values) value = f(value);
  kernels.quantize_f32(kCodes, values, &y, table.data());
  return table;
}

void map_bytes(OpRun& run, const ByteTable& table, int64_t count, const uint8_t* x, uint8_t* y) {
  run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
    run.kernels().map_b8(table.data(), end - begin, x + begin, y + begin);
  });
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// Inputs X, X_scale, X_zero, Y_scale, Y_zero.
class Unary final : public OpKernel {
 public:
  bool is_sigmoid = false;
  float alpha = 0.01F;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 3, 4, x->dtype()));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    const auto function = [&](float v) {
      return is_sigmoid ? sigmoid(v) : (v < 0 ? alpha * v : v);
    };
    const ByteTable table =
        make_table(run.kernels(), byte_scale(qx, x->dtype()), byte_scale(qy, x->dtype()), function);
    map_bytes(run, table, x->count(), x->raw(), y->raw_mut());
    return Status::ok();
  }
};

Status infer_like(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

// ---------------------------------------------------------------- Softmax

class Softmax final : public OpKernel {
 public:
  int64_t axis = -1;
  bool flatten = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 3, 4, x->dtype()));
    const Shape& shape = x->shape();
    FOLIO_TRY(const int at, normalize_axis(axis, shape.rank()));
    const int64_t n = flatten ? shape.product(at, shape.rank()) : shape[at];
    const int64_t inner = flatten ? 1 : shape.product(at + 1, shape.rank());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(n) * sizeof(float), &scratch));
    const int64_t grain = std::max<int64_t>(1, 8192 / n);
    const FolioByteScale from = byte_scale(qx, x->dtype());
    const FolioByteScale to = byte_scale(qy, x->dtype());
    dispatch_byte(x->dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      run.parallel().for_range(x->count() / n, grain, [&](int64_t begin, int64_t end) {
        const ThreadScratch::Block block(scratch);
        auto* line = reinterpret_cast<float*>(block.data());
        for (int64_t r = begin; r < end; ++r) {
          const int64_t base = r / inner * n * inner + r % inner;
          if (inner == 1) {
            run.kernels().dequantize_b8(n, x->raw() + base, &from, line);
            run.kernels().softmax_f32(1, n, line, line);
            run.kernels().quantize_f32(n, line, &to, y->raw_mut() + base);
            continue;
          }
          for (int64_t i = 0; i < n; ++i) {
            line[i] = static_cast<float>(Q::get(x->raw(), base + i * inner) - qx.zero) * qx.scale;
          }
          run.kernels().softmax_f32(1, n, line, line);
          for (int64_t i = 0; i < n; ++i) {
            Q::set(y->raw_mut(), base + i * inner, quantize_one<Q>(line[i], qy.scale, qy.zero));
          }
        }
      });
    });
    return Status::ok();
  }
};

// ---------------------------------------------------------------- Concat

// Inputs Y_scale, Y_zero, then X, X_scale, X_zero of each part.
class Concat final : public OpKernel {
 public:
  int64_t axis = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* y_zero, byte_tensor(run, 1));
    const DType dtype = y_zero->dtype();
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 0, 1, dtype));
    const int parts = (run.input_count() - 2) / 3;
    FOLIO_TRY(const Tensor* first, run.tensor(2, dtype));
    FOLIO_TRY(const int at, normalize_axis(axis, first->rank()));
    Shape out = first->shape();
    out[at] = 0;
    for (int part = 0; part < parts; ++part) {
      FOLIO_TRY(const Tensor* x, run.tensor(2 + 3 * part, dtype));
      Shape rest = x->shape();
      if (rest.rank() == out.rank()) rest[at] = out[at];
      if (!(rest == out) || !checked_add(out[at], x->dim(at), &out[at])) {
        return invalid_argument("part ", part, " of shape ", x->shape().to_string(),
                                " does not fit the first, ", first->shape().to_string());
      }
    }
    FOLIO_TRY(Tensor * y, run.output(0, dtype, out));
    const int64_t outer = out.product(0, at);
    const int64_t inner = out.product(at + 1, out.rank());
    int64_t offset = 0;
    for (int part = 0; part < parts; ++part) {
      const Tensor& x = run.value(2 + 3 * part).tensor();
      FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 3 + 3 * part, 4 + 3 * part, dtype));
      const bool is_same = qx.scale == qy.scale && qx.zero == qy.zero;
      const Change change(run, byte_scale(qx, dtype), byte_scale(qy, dtype),
                          is_same ? 0 : x.count());
      const int64_t row = x.dim(at) * inner;
      for (int64_t o = 0; o < outer && row > 0; ++o) {
        uint8_t* const to = y->raw_mut() + o * out[at] * inner + offset;
        if (is_same) {
          std::memcpy(to, x.raw() + o * row, static_cast<size_t>(row));
        } else {
          change.map(run, row, x.raw() + o * row, to);
        }
      }
      offset += row;
    }
    return Status::ok();
  }

 private:
  // Codes of one scale as those of another: by a table, but for a few.
  class Change {
   public:
    Change(OpRun& run, const FolioByteScale& from, const FolioByteScale& to, int64_t count)
        : from_(from), to_(to), has_table_(count > kFew) {
      if (has_table_) table_ = make_table(run.kernels(), from, to, [](float v) { return v; });
    }

    void map(OpRun& run, int64_t count, const uint8_t* x, uint8_t* y) const {
      if (has_table_) return map_bytes(run, table_, count, x, y);
      float values[kFew];
      run.kernels().dequantize_b8(count, x, &from_, values);
      run.kernels().quantize_f32(count, values, &to_, y);
    }

   private:
    static constexpr int64_t kFew = 128;

    FolioByteScale from_, to_;
    bool has_table_;
    ByteTable table_;
  };
};

Status infer_concat(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  infer.set_tensor(0, infer.dtype(1));
  std::optional<Dims> out;
  for (int i = 2; i + 2 < infer.input_count(); i += 3) {
    const Dims* dims = infer.dims_of(i);
    if (!dims) return Status::ok();
    if (!out) {
      out = *dims;
      continue;
    }
    const auto rank = static_cast<int64_t>(out->size());
    if (dims->size() != out->size() || axis < -rank || axis >= rank) return Status::ok();
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    (*out)[at] = infer.table().add((*out)[at], (*dims)[at]);
  }
  infer.set_tensor(0, infer.dtype(1), std::move(out));
  return Status::ok();
}

// ---------------------------------------------------------------- registration

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make_plain(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>());
}

Result<std::unique_ptr<OpKernel>> make_unary(OpBuild& build) {
  auto kernel = std::make_unique<Unary>();
  kernel->is_sigmoid = build.node().op_type == "QLinearSigmoid";
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 0.01F));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Result<std::unique_ptr<OpKernel>> make_softmax(OpBuild& build) {
  auto kernel = std::make_unique<Softmax>();
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", -1));
  FOLIO_TRY(const int64_t opset, build.attrs().get_int("opset", 13));
  kernel->flatten = opset < 13;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Result<std::unique_ptr<OpKernel>> make_concat(OpBuild& build) {
  auto kernel = std::make_unique<Concat>();
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis"));
  if ((build.input_count() - 2) % 3 != 0) {
    return invalid_graph(build.input_count(), " inputs, expected 2 and 3 for each part");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

// `zeros`: places of zero points, which may be absent; `scales`: those of scales.
void add(OpRegistry& registry, std::string_view type, int min_inputs, int max_inputs,
         uint32_t zeros, uint32_t scales, InferFn infer, MakeFn make, bool elementwise = true) {
  registry.add({.domain = "com.microsoft",
                .type = type,
                .min_inputs = min_inputs,
                .max_inputs = max_inputs,
                .infer = infer,
                .make = make,
                .optional_inputs = zeros,
                .float_inputs = scales,
                .elementwise = elementwise});
}

}  // namespace

[[gnu::cold]] void register_qlinear_elementwise(OpRegistry& registry) {
  constexpr uint32_t kZerosOfBoth = 1U << 2 | 1U << 5;
  constexpr uint32_t kZeroOfX = 1U << 2;
  constexpr uint32_t kOfThree = 1U << 1 | 1U << 4 | 1U << 6;
  constexpr uint32_t kOfTwo = 1U << 1 | 1U << 3;
  constexpr uint32_t kOfParts = 0b01001001001001001001001001001001;  // of Y, and behind each part
  add(registry, "QLinearAdd", 7, 8, kZerosOfBoth, kOfThree, infer_binary, make_plain<Binary<true>>);
  add(registry, "QLinearMul", 7, 8, kZerosOfBoth, kOfThree, infer_binary,
      make_plain<Binary<false>>);
  add(registry, "QLinearSigmoid", 4, 5, kZeroOfX, kOfTwo, infer_like, make_unary);
  add(registry, "QLinearLeakyRelu", 4, 5, kZeroOfX, kOfTwo, infer_like, make_unary);
  add(registry, "QLinearSoftmax", 4, 5, kZeroOfX, kOfTwo, infer_like, make_softmax, false);
  add(registry, "QLinearConcat", 5, kVariadic, 0, kOfParts, infer_concat, make_concat, false);
}

}  // namespace folio
