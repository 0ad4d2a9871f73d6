// MatMulNBits: a matrix product whose second operand is a constant of 2, 4 or 8 bits in blocks.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.MatMulNBits (attributes K, N, bits,
//         block_size). accuracy_level 4 means what ONNX Runtime's CPU makes of it: A rounded to
//         8 bits in blocks as long as the weights'; other levels change nothing.
// Shapes: A [..., K]; B [N, blocks, block_size * bits / 8] uint8, low bits first; scales
//         [N, blocks]; zero_points [N, ceil(blocks * bits / 8)] packed as B, or [N, blocks] of a
//         floating type; g_idx [K] int32: the block of each k; bias [N]. Y [..., N].
// Math:   y = A W^T + bias, W[n, k] = (B[n, k] - zero) * scale, zero 2^(bits - 1) by default.
//         Few rows: dot products over the quantized blocks; else W is widened a few columns at a
//         time into panels, never as a whole.
// Types:  float; float16 and bfloat16 in float.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_float.h"
#include "core/ops/op_gemm_tiles.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kFewRows = 4;
constexpr int64_t kDotMacs = 1 << 18;          // a task of dot products
constexpr int64_t kMaxDim = int64_t{1} << 31;  // of K and N
constexpr int64_t kMaxBlock = 1 << 20;
constexpr int64_t kMaxRoundedBlock = 256;  // longer ones are not rounded
constexpr int64_t kRoundedColumns = 64;
constexpr int64_t kRoundedRows = 64;

struct Sizes {
  int64_t k = 0;
  int64_t n = 0;
  int64_t bits = 4;
  int64_t block = 0;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t blob() const { return block * bits / 8; }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
};

// One number of a constant that may be unaligned, as a float.
float load_float(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kFloat) {
    float value;
    std::memcpy(&value, tensor.raw() + i * 4, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, tensor.raw() + i * 2, sizeof(bits));
  return tensor.dtype() == DType::kFloat16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

struct Weights {
  Sizes size;
  const uint8_t* data = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* zeros = nullptr;    // or null
  const int32_t* groups = nullptr;  // [K] or null

  float scale(int64_t n, int64_t block) const {
    return load_float(*scales, n * size.blocks() + block);
  }
  float zero(int64_t n, int64_t block) const {
    if (!zeros) return static_cast<float>(1 << (size.bits - 1));
    if (zeros->dtype() != DType::kUint8) return load_float(*zeros, n * size.blocks() + block);
    const int64_t bit = block * size.bits;
    const int byte = zeros->raw()[n * size.zero_bytes() + bit / 8];
    return static_cast<float>(byte >> (bit % 8) & ((1 << size.bits) - 1));
  }
  const uint8_t* blob(int64_t n, int64_t block) const {
    return data + (n * size.blocks() + block) * size.blob();
  }
};

template <int kBits>
int code_at(const uint8_t* blob, int64_t i) {
  constexpr int kPerByte = 8 / kBits;
  return blob[i / kPerByte] >> (i % kPerByte * kBits) & ((1 << kBits) - 1);
}

// Column n as every 16th float from `out` on.
template <int kBits>
void widen_block(const Weights& w, int64_t n, int64_t block, float* out) {
  const int64_t first = block * w.size.block;
  const int64_t count = std::min(w.size.block, w.size.k - first);
  const uint8_t* blob = w.blob(n, block);
  if (w.groups) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t group = w.groups[first + i];
      const auto code = static_cast<float>(code_at<kBits>(blob, i));
      out[i * kPanel] = (code - w.zero(n, group)) * w.scale(n, group);
    }
    return;
  }
  const float zero = w.zero(n, block);
  const float scale = w.scale(n, block);
  for (int64_t i = 0; i < count; ++i) {
    out[i * kPanel] = (static_cast<float>(code_at<kBits>(blob, i)) - zero) * scale;
  }
}

// Columns [begin, end) as F32P16 panels; `begin` is a multiple of 16.
template <int kBits>
void widen_panels(const Weights& w, int64_t begin, int64_t end, float* panels) {
  for (int64_t column = begin; column < end; column += kPanel, panels += w.size.k * kPanel) {
    const int64_t width = std::min(kPanel, end - column);
    for (int64_t block = 0; block < w.size.blocks(); ++block) {
      float* out = panels + block * w.size.block * kPanel;
      if (width < kPanel) {
        const int64_t rows = std::min(w.size.block, w.size.k - block * w.size.block);
        std::fill_n(out, rows * kPanel, 0.0F);
      }
      for (int64_t j = 0; j < width; ++j) widen_block<kBits>(w, column + j, block, out + j);
    }
  }
}

// A row of A as the dot products read it: in each block the elements that share a place in their
// byte stand together (plane), zeros after K.
struct DotRow {
  const float* planes = nullptr;
  const float* scales = nullptr;  // of each block, or null: 1
};

template <int kBits>
void split_planes(const Sizes& s, const float* a, float* planes) {
  constexpr int kPerByte = 8 / kBits;
  for (int64_t block = 0; block < s.blocks(); ++block) {
    float* to = planes + block * s.block;
    const int64_t first = block * s.block;
    for (int64_t i = 0; i < s.block; ++i) {
      const float value = first + i < s.k ? a[first + i] : 0.0F;
      to[i % kPerByte * s.blob() + i / kPerByte] = value;
    }
  }
}

// Zero is taken off each code: off the sums it would cost their precision.
template <int kBits, int kLanes>
float dot_block(const uint8_t* blob, float zero, const float* planes, int64_t bytes) {
  constexpr int kMask = (1 << kBits) - 1;
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < bytes; i += kLanes) {
    for (int shift = 0; shift < 8; shift += kBits) {
      const float* plane = planes + shift / kBits * bytes + i;
      for (int l = 0; l < kLanes; ++l) {
        lanes[l] += plane[l] * (static_cast<float>(blob[i + l] >> shift & kMask) - zero);
      }
    }
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

template <int kBits>
float dot_column(const Weights& w, int64_t n, const DotRow& row) {
  const int64_t bytes = w.size.blob();  // a multiple of 4, as blocks are of 16 at least
  float sum = 0;
  for (int64_t block = 0; block < w.size.blocks(); ++block) {
    const uint8_t* blob = w.blob(n, block);
    const float* planes = row.planes + block * w.size.block;
    const float zero = w.zero(n, block);
    const float dot = bytes % 16 == 0 ? dot_block<kBits, 16>(blob, zero, planes, bytes)
                                      : dot_block<kBits, 4>(blob, zero, planes, bytes);
    sum += dot * (row.scales ? w.scale(n, block) * row.scales[block] : w.scale(n, block));
  }
  return sum;
}

// A as integers of 8 bits (held as floats) times one scale a block.
struct RoundedRows {
  const float* codes = nullptr;   // [rows, K]
  const float* scales = nullptr;  // [rows, blocks]
};

Result<RoundedRows> round_rows(OpRun& run, const Sizes& s, int64_t rows, const float* a) {
  const int64_t blocks = s.blocks();
  FOLIO_TRY(float* codes, scratch_floats(run, rows * s.k));
  FOLIO_TRY(float* scales, scratch_floats(run, rows * blocks));
  run.parallel().for_range(rows, 1 + 8192 / s.k, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * blocks; at < end * blocks; ++at) {
      const int64_t first = at % blocks * s.block;
      const int64_t n = std::min(s.block, s.k - first);
      const float* from = a + at / blocks * s.k + first;
      float* to = codes + at / blocks * s.k + first;
      float max = 0;
      for (int64_t i = 0; i < n; ++i) max = std::max(max, std::abs(from[i]));
      const float inverse = max > 0 ? 127.0F / max : 0.0F;
      for (int64_t i = 0; i < n; ++i) to[i] = std::nearbyint(from[i] * inverse);
      scales[at] = max / 127.0F;
    }
  });
  return RoundedRows{codes, scales};
}

struct Product {
  int64_t rows = 0;
  const float* a = nullptr;
  RoundedRows rounded;  // or null
  const float* bias = nullptr;
  float* y = nullptr;
};

// What one thread works on in a product of integers.
struct RoundedTile {
  int64_t first = 0;  // column
  int64_t width = 0;
  float* panels = nullptr;  // a block of the columns as F32P16
  float* sums = nullptr;    // [kRoundedRows, kRoundedColumns]
  float* scales = nullptr;  // of the columns' blocks
};

class MatMulNBits final : public OpKernel {
 public:
  Sizes size;
  bool rounds = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (a->rank() == 0 || a->dim(a->rank() - 1) != size.k) {
      return invalid_argument("A has shape ", a->shape().to_string(), ", expected [...,", size.k,
                              "]");
    }
    FOLIO_TRY(const Weights weights, bind(run, a->dtype()));
    FOLIO_TRY(const float* a32, floats_of(run, *a));
    const float* bias = nullptr;
    if (run.has_input(5)) {
      FOLIO_TRY(bias, floats_of_input(run, 5, size.n));
    }
    Shape shape = a->shape();
    shape[shape.rank() - 1] = size.n;
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, a->dtype(), shape));
    const int64_t rows = a->count() / size.k;
    const bool packed_zeros = !weights.zeros || weights.zeros->dtype() == DType::kUint8;
    RoundedRows rounded;
    if (rounds && packed_zeros && !weights.groups) {
      FOLIO_TRY(rounded, round_rows(run, size, rows, a32));
    }
    const Product product{rows, a32, rounded, bias, y.data()};
    switch (size.bits) {
      case 2:
        FOLIO_RETURN_IF_ERROR(multiply<2>(run, weights, product));
        break;
      case 4:
        FOLIO_RETURN_IF_ERROR(multiply<4>(run, weights, product));
        break;
      default:
        FOLIO_RETURN_IF_ERROR(multiply<8>(run, weights, product));
        break;
    }
    y.finish(run);
    return Status::ok();
  }

 private:
  Result<Weights> bind(OpRun& run, DType dtype) const {
    Weights w;
    w.size = size;
    FOLIO_TRY(const Tensor* b, run.tensor(1, DType::kUint8));
    FOLIO_TRY(w.scales, run.tensor(2, dtype));
    const int64_t scales = size.n * size.blocks();
    if (b->count() != scales * size.blob() || w.scales->count() != scales) {
      return invalid_argument("B has ", b->count(), " bytes and scales ", w.scales->count(),
                              " elements, expected ", scales * size.blob(), " and ", scales);
    }
    w.data = b->raw();
    if (run.has_input(3)) {
      FOLIO_TRY(w.zeros, run.tensor(3));
      const bool packed = w.zeros->dtype() == DType::kUint8;
      const int64_t expected = packed ? size.n * size.zero_bytes() : scales;
      const bool known = packed || w.zeros->dtype() == DType::kFloat || is_half(w.zeros->dtype());
      if (!known || w.zeros->count() != expected) {
        return invalid_argument("zero_points are ", w.zeros->count(), " of ",
                                dtype_name(w.zeros->dtype()), ", expected ", expected);
      }
    }
    if (run.has_input(4)) {
      FOLIO_TRY(const Tensor* groups, run.tensor(4, DType::kInt32));
      w.groups = groups->data<int32_t>();
      const auto outside = [&](int32_t group) { return group < 0 || group >= size.blocks(); };
      if (groups->count() < size.k || std::any_of(w.groups, w.groups + size.k, outside)) {
        return invalid_argument("g_idx must be ", size.k, " numbers from 0 to ", size.blocks() - 1);
      }
    }
    return w;
  }

  template <int kBits>
  static Status multiply(OpRun& run, const Weights& w, const Product& p) {
    if (p.rows == 0) return Status::ok();
    if (p.rows <= kFewRows && !w.groups) return multiply_dots<kBits>(run, w, p);
    if (p.rounded.codes) return multiply_rounded<kBits>(run, w, p);
    return multiply_panels<kBits>(run, w, p);
  }

  template <int kBits>
  static Status multiply_dots(OpRun& run, const Weights& w, const Product& p) {
    const Sizes& s = w.size;
    const int64_t blocks = s.blocks();
    const float* a = p.rounded.codes ? p.rounded.codes : p.a;
    FOLIO_TRY(float* memory, scratch_floats(run, p.rows * blocks * s.block));
    DotRow split[kFewRows];
    for (int64_t i = 0; i < p.rows; ++i) {
      float* planes = memory + i * blocks * s.block;
      split_planes<kBits>(s, a + i * s.k, planes);
      split[i] = {planes, p.rounded.scales ? p.rounded.scales + i * blocks : nullptr};
    }
    const int64_t grain = std::max<int64_t>(1, kDotMacs / (p.rows * s.k));
    run.parallel().for_range(s.n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const float offset = p.bias ? p.bias[n] : 0.0F;
        for (int64_t i = 0; i < p.rows; ++i) {
          p.y[i * s.n + n] = dot_column<kBits>(w, n, split[i]) + offset;
        }
      }
    });
    return Status::ok();
  }

  template <int kBits>
  static Status multiply_panels(OpRun& run, const Weights& w, const Product& p) {
    FolioGemmF32 args{};
    args.m = p.rows;
    args.n = w.size.n;
    args.k = w.size.k;
    args.a = p.a;
    args.a_row_stride = w.size.k;
    args.a_col_stride = 1;
    args.c = p.y;
    args.c_row_stride = w.size.n;
    args.col_bias = p.bias;
    args.alpha = 1.0F;
    return gemm_by_tiles(run, args, [&](int64_t begin, int64_t end, float* panels) {
      widen_panels<kBits>(w, begin, end, panels);
    });
  }

  // Sums of a block are integers below 2^24, so exact in floats; scales follow block by block.
  template <int kBits>
  static Status multiply_rounded(OpRun& run, const Weights& w, const Product& p) {
    const Sizes& s = w.size;
    const int64_t floats = kRoundedColumns * (s.block + kRoundedRows + 1);
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(floats) * sizeof(float), &scratch));
    const int64_t tiles = (s.n + kRoundedColumns - 1) / kRoundedColumns;
    run.parallel().for_range(tiles, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block memory(scratch);
      RoundedTile tile;
      tile.panels = reinterpret_cast<float*>(memory.data());
      tile.sums = tile.panels + kRoundedColumns * s.block;
      tile.scales = tile.sums + kRoundedColumns * kRoundedRows;
      for (int64_t at = begin; at < end; ++at) {
        tile.first = at * kRoundedColumns;
        tile.width = std::min(kRoundedColumns, s.n - tile.first);
        for (int64_t row = 0; row < p.rows; ++row) {
          float* to = p.y + row * s.n + tile.first;
          if (p.bias) {
            std::copy_n(p.bias + tile.first, tile.width, to);
          } else {
            std::fill_n(to, tile.width, 0.0F);
          }
        }
        for (int64_t block = 0; block < s.blocks(); ++block) {
          add_block<kBits>(run.kernels(), w, p, tile, block);
        }
      }
    });
    return Status::ok();
  }

  template <int kBits>
  static void add_block(const FolioKernels& kernels, const Weights& w, const Product& p,
                        const RoundedTile& tile, int64_t block) {
    const Sizes& s = w.size;
    const int64_t depth = std::min(s.block, s.k - block * s.block);
    std::fill_n(tile.panels, kRoundedColumns * depth, 0.0F);
    for (int64_t j = 0; j < tile.width; ++j) {
      const int64_t n = tile.first + j;
      tile.scales[j] = w.scale(n, block);
      const float zero = w.zero(n, block);
      const uint8_t* blob = w.blob(n, block);
      float* out = tile.panels + j / kPanel * kPanel * depth + j % kPanel;
      for (int64_t i = 0; i < depth; ++i) {
        out[i * kPanel] = static_cast<float>(code_at<kBits>(blob, i)) - zero;
      }
    }
    FolioGemmF32 args{};
    args.n = tile.width;
    args.k = depth;
    args.a_row_stride = s.k;
    args.a_col_stride = 1;
    args.b = tile.panels;
    args.c = tile.sums;
    args.c_row_stride = kRoundedColumns;
    args.alpha = 1.0F;
    for (int64_t row = 0; row < p.rows; row += kRoundedRows) {
      args.m = std::min(kRoundedRows, p.rows - row);
      args.a = p.rounded.codes + row * s.k + block * s.block;
      kernels.gemm_f32(&args);
      for (int64_t i = 0; i < args.m; ++i) {
        const float scale = p.rounded.scales[(row + i) * s.blocks() + block];
        const float* sums = tile.sums + i * kRoundedColumns;
        float* to = p.y + (row + i) * s.n + tile.first;
        for (int64_t j = 0; j < tile.width; ++j) to[j] += sums[j] * (scale * tile.scales[j]);
      }
    }
  }
};

Result<Sizes> parse(const Attributes& attrs) {
  Sizes s;
  FOLIO_TRY(s.k, attrs.get_int("K"));
  FOLIO_TRY(s.n, attrs.get_int("N"));
  FOLIO_TRY(s.bits, attrs.get_int("bits", 4));
  FOLIO_TRY(s.block, attrs.get_int("block_size"));
  if (s.k < 1 || s.n < 1 || s.k > kMaxDim || s.n > kMaxDim) {
    return invalid_graph("attributes 'K' and 'N' are ", s.k, " and ", s.n, ", expected 1 to ",
                         kMaxDim);
  }
  if (s.block < 16 || s.block > kMaxBlock || (s.block & (s.block - 1)) != 0) {
    return invalid_graph("attribute 'block_size' is ", s.block,
                         ", expected a power of two from 16 on");
  }
  if (s.bits != 2 && s.bits != 4 && s.bits != 8) {
    return not_implemented("weights of ", s.bits, " bits, expected 2, 4 or 8");
  }
  return s;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Sizes size, parse(infer.attrs()));
  const Dims* a = infer.dims_of(0);
  std::optional<Dims> dims;
  if (a && !a->empty()) {
    dims = *a;
    dims->back() = Dim::of(size.n);
  }
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<MatMulNBits>();
  FOLIO_TRY(kernel->size, parse(build.attrs()));
  FOLIO_TRY(const int64_t prepacked, build.attrs().get_int("weight_prepacked", 0));
  if (prepacked != 0) {
    return not_implemented("weights packed for a GPU (weight_prepacked ", prepacked, ")");
  }
  FOLIO_TRY(const int64_t level, build.attrs().get_int("accuracy_level", 0));
  kernel->rounds = level == 4 && kernel->size.bits >= 4 && kernel->size.block <= kMaxRoundedBlock;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_matmul_nbits(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MatMulNBits";
  def.keeps_half = true;
  def.min_inputs = 3;
  def.max_inputs = 6;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 1 | 1U << 2 | 1U << 3;
  registry.add(def);
}

}  // namespace folio
