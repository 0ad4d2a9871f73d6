// GatherBlockQuantized: entries of an axis by index from data quantized in blocks.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.GatherBlockQuantized (integer data; float8
//         and float4 data are refused).
// Shapes: data [outer.., n, inner..] of int4, uint4, or uint8 holding 8 / bits codes a byte along
//         the last dim; indices [any..] -> y [outer.., any.., inner..]. scales: data's shape with
//         quantize_axis divided by block_size; zero_points: as scales, packed as data is.
// Math:   y = (code - zero) * scale; zero is 0 by default, for uint8 data 2^(bits - 1). An index
//         outside [-n, n) gives zeros.
// Types:  y and scales float; float16 and bfloat16 in float.
// Notes:  data of float8 and float4 is refused.
#include <cstring>
#include <limits>

#include "core/ops/op_half.h"
#include "core/ops/op_move.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kMaxBlock = int64_t{1} << 40;

// Codes of some bits each, low bits first.
struct Codes {
  const uint8_t* data = nullptr;
  int bits = 8;
  bool is_signed = false;

  int at(int64_t i) const {
    if (bits == 8) return data[i];
    const int64_t bit = i * bits;
    const int code = data[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
    return is_signed && code >= 1 << (bits - 1) ? code - (1 << bits) : code;
  }
};

// Scales as they stand in a file: converting them all would read every page of a large table.
struct Scales {
  const uint8_t* data = nullptr;
  DType dtype = DType::kFloat;

  float at(int64_t i) const {
    if (dtype == DType::kFloat) {
      float scale;
      std::memcpy(&scale, data + 4 * i, sizeof(scale));
      return scale;
    }
    uint16_t half;
    std::memcpy(&half, data + 2 * i, sizeof(half));
    return dtype == DType::kFloat16 ? half_to_float(half) : bfloat16_to_float(half);
  }
};

struct Blocks {
  Codes codes;
  Codes zeros;
  bool has_zeros = false;
  int default_zero = 0;
  Scales scales;
  int64_t axis_dim = 1;  // of the quantized axis
  int64_t inner = 1;     // elements after it
  int64_t block = 1;
  int64_t blocks = 1;     // along the axis
  int64_t last = 1;       // the scales' last dim
  int64_t zero_last = 1;  // codes that a row of zero points takes

  int zero(int64_t scale) const {
    return has_zeros ? zeros.at(scale / last * zero_last + scale % last) : default_zero;
  }

  // `count` elements of one block, which stand together.
  void widen_block(int64_t at, int64_t count, int64_t scale, float* to) const {
    const float factor = scales.at(scale);
    const int offset = zero(scale);
    if (codes.bits != 4 || codes.is_signed || at % 2 != 0) {
      for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(codes.at(at + i) - offset) * factor;
      }
      return;
    }
    const uint8_t* bytes = codes.data + at / 2;
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
      to[i] = static_cast<float>((bytes[i / 2] & 15) - offset) * factor;
      to[i + 1] = static_cast<float>((bytes[i / 2] >> 4) - offset) * factor;
    }
    if (i < count) to[i] = static_cast<float>((bytes[i / 2] & 15) - offset) * factor;
  }

  // Elements [at, at + count) of the data, counted as if unpacked.
  void widen(int64_t at, int64_t count, float* to) const {
    const int64_t end = at + count;
    while (at < end) {
      const int64_t row = at / inner;
      const int64_t place = row % axis_dim;
      const int64_t scale = (row / axis_dim * blocks + place / block) * inner;
      if (inner == 1) {
        const int64_t run = std::min({block - place % block, axis_dim - place, end - at});
        widen_block(at, run, scale, to);
        at += run;
        to += run;
      } else {
        const int64_t first = at % inner;
        const int64_t run = std::min(inner - first, end - at);
        for (int64_t i = first; i < first + run; ++i, ++at) {
          *to++ = static_cast<float>(codes.at(at) - zero(scale + i)) * scales.at(scale + i);
        }
      }
    }
  }
};

class GatherBlockQuantized final : public OpKernel {
 public:
  int64_t gather_axis = 0;
  int64_t quantize_axis = 1;
  int64_t block = 128;
  int64_t bits = 4;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* data, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const Tensor* scales, run.tensor(2));
    FOLIO_TRY(const std::vector<int64_t> indices, run.ints(1));
    Shape whole;
    FOLIO_TRY(const Blocks blocks, bind(run, *data, *scales, &whole));
    FOLIO_TRY(const int axis, normalize_axis(gather_axis, whole.rank()));
    std::vector<int64_t> dims(whole.begin(), whole.begin() + axis);
    dims.insert(dims.end(), where->shape().begin(), where->shape().end());
    dims.insert(dims.end(), whole.begin() + axis + 1, whole.end());
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, scales->dtype(), shape));
    if (y.count() == 0) return Status::ok();
    const int64_t inner = whole.product(axis + 1, whole.rank());
    const int64_t outer = whole.product(0, axis);
    const auto picks = static_cast<int64_t>(indices.size());
    const int64_t n = whole[axis];
    run.parallel().for_range(outer * picks, rows_per_task(inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t index = indices[static_cast<size_t>(i % picks)];
        float* to = y.data() + i * inner;
        if (wrap_index(&index, n)) {
          blocks.widen((i / picks * n + index) * inner, inner, to);
        } else {
          std::fill_n(to, inner, 0.0F);
        }
      }
    });
    y.finish(run);
    return Status::ok();
  }

 private:
  // `whole`: the data's shape as if unpacked.
  Result<Blocks> bind(OpRun& run, const Tensor& data, const Tensor& scales, Shape* whole) const {
    Blocks b;
    const bool bytes = data.dtype() == DType::kUint8;
    if (!bytes && data.dtype() != DType::kUint4 && data.dtype() != DType::kInt4) {
      return not_implemented("data of ", dtype_name(data.dtype()));
    }
    if (data.rank() == 0) return invalid_argument("data is a scalar");
    b.codes = {data.raw(), bytes ? static_cast<int>(bits) : 4, data.dtype() == DType::kInt4};
    b.default_zero = bytes ? 1 << (bits - 1) : 0;
    std::vector<int64_t> dims(data.shape().begin(), data.shape().end());
    const int64_t per_byte = bytes ? 8 / bits : 1;
    if (dims.back() > std::numeric_limits<int64_t>::max() / per_byte) {
      return invalid_argument("data is too large");
    }
    dims.back() *= per_byte;
    FOLIO_TRY(*whole, shape_from(dims));
    FOLIO_TRY(const int axis, normalize_axis(quantize_axis, data.rank()));
    b.axis_dim = dims[static_cast<size_t>(axis)];
    b.inner = whole->product(axis + 1, whole->rank());
    b.block = block;
    b.blocks = (b.axis_dim + block - 1) / block;
    Shape expected = *whole;
    expected[axis] = b.blocks;
    if (!(scales.shape() == expected)) {
      return invalid_argument("scales have shape ", scales.shape().to_string(), ", expected ",
                              expected.to_string());
    }
    if (scales.dtype() != DType::kFloat && !is_half(scales.dtype())) {
      return not_implemented("scales of ", dtype_name(scales.dtype()));
    }
    b.scales = {scales.raw(), scales.dtype()};
    b.last = std::max<int64_t>(1, expected[expected.rank() - 1]);
    b.zero_last = b.last;
    if (!run.has_input(3)) return b;
    FOLIO_TRY(const Tensor* zeros, run.tensor(3, data.dtype()));
    Shape packed = expected;
    if (bytes) {
      const int64_t row_bytes = (b.last + per_byte - 1) / per_byte;
      packed[packed.rank() - 1] = row_bytes;
      b.zero_last = row_bytes * per_byte;
    }
    if (zeros->count() != packed.count()) {
      return invalid_argument("zero_points have shape ", zeros->shape().to_string(), ", expected ",
                              packed.to_string());
    }
    b.has_zeros = true;
    b.zeros = b.codes;
    b.zeros.data = zeros->raw();
    return b;
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, infer.attrs().get_int("gather_axis", 0));
  FOLIO_TRY(const int64_t bits, infer.attrs().get_int("bits", 4));
  const Dims* data = infer.dims_of(0);
  const Dims* where = infer.dims_of(1);
  std::optional<Dims> out;
  if (data && where && !data->empty() && data->size() + where->size() <= size_t{kMaxRank}) {
    FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(data->size())));
    Dims whole = *data;
    if (infer.dtype(0) == DType::kUint8 && bits > 0) {
      whole.back() = infer.table().mul(whole.back(), Dim::of(8 / bits));
    } else if (infer.dtype(0) == DType::kUndefined) {
      whole.back() = Dim::unknown();
    }
    out.emplace(whole.begin(), whole.begin() + axis);
    out->insert(out->end(), where->begin(), where->end());
    out->insert(out->end(), whole.begin() + axis + 1, whole.end());
  }
  infer.set_tensor(0, infer.dtype(2), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<GatherBlockQuantized>();
  FOLIO_TRY(kernel->gather_axis, build.attrs().get_int("gather_axis", 0));
  FOLIO_TRY(kernel->quantize_axis, build.attrs().get_int("quantize_axis", 1));
  FOLIO_TRY(kernel->block, build.attrs().get_int("block_size", 128));
  FOLIO_TRY(kernel->bits, build.attrs().get_int("bits", 4));
  if (kernel->block < 1 || kernel->block > kMaxBlock) {
    return invalid_graph("attribute 'block_size' is ", kernel->block,
                         ", expected a power of two from 16 on");
  }
  if (kernel->bits != 2 && kernel->bits != 4 && kernel->bits != 8) {
    return invalid_graph("attribute 'bits' is ", kernel->bits, ", expected 2, 4 or 8");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_gather_block_quantized(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "GatherBlockQuantized";
  def.keeps_half = true;
  def.min_inputs = 3;
  def.max_inputs = 4;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 0 | 1U << 2 | 1U << 3;
  def.picked_inputs = 1;
  registry.add(def);
}

}  // namespace folio
