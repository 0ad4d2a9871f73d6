// MatMulBnb4: a matrix product whose second operand is a constant of 4-bit floats in blocks.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.MatMulBnb4; the formats FP4 and NF4 of
//         Dettmers et al. 2023, QLoRA.
// Shapes: A [..., K]; B: a weight [N, K] flattened, two codes a byte, the first in the high bits;
//         absmax: one scale for each block_size codes. Y [..., N]. With transB 0: A [..., N] and
//         Y [..., K].
// Math:   y = A W^T (or A W), W = level[code] * absmax. Where a row of W is whole blocks, few rows
// of
//         A are multiplied with codes as they stand; else W is made a few columns at a time.
// Types:  float; float16 and bfloat16 in float.
#include "core/ops/op_block_weights.h"
#include "core/ops/op_gemm_tiles.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr float kFp4[16] = {
    0.0F,  0.00520833333F,  0.66666667F,  1.0F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
    -0.0F, -0.00520833333F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
// Quantiles of the normal distribution, scaled to [-1, 1].
constexpr float kNf4[16] = {-1.0F,
                            -0.6961928009986877F,
                            -0.5250730514526367F,
                            -0.39491748809814453F,
                            -0.28444138169288635F,
                            -0.18477343022823334F,
                            -0.09105003625154495F,
                            0.0F,
                            0.07958029955625534F,
                            0.16093020141124725F,
                            0.24611230194568634F,
                            0.33791524171829224F,
                            0.44070982933044434F,
                            0.5626170039176941F,
                            0.7229568362236023F,
                            1.0F};
constexpr int64_t kMaxDim = int64_t{1} << 30;
constexpr int64_t kLeastBlock = 32;  // of what kernels read in place

struct Sizes {
  int64_t k = 0;
  int64_t n = 0;
  int64_t block = 0;
  bool transposed = true;
  const float* levels = kFp4;

  int64_t depth() const { return transposed ? k : n; }
  int64_t width() const { return transposed ? n : k; }
  bool has_whole_rows() const { return transposed && block >= kLeastBlock && k % block == 0; }
};

// Columns of a second operand [depth, width], as kernels read them.
FolioBlockWeights columns_of(const Sizes& size, const uint8_t* codes, const float* scales,
                             int64_t begin, int64_t end) {
  FolioBlockWeights w{};
  w.n = end - begin;
  w.k = size.k;
  w.block = size.block;
  w.bits = 4;
  w.codes = codes + begin * size.k / 2;
  w.scales = scales + begin * (size.k / size.block);
  w.levels = size.levels;
  return w;
}

// Of whole rows.
Status multiply_few(OpRun& run, const Sizes& size, const FolioGemmF32& args, const uint8_t* codes,
                    const float* scales) {
  const int64_t row_bytes = size.k / 2;
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(args.m * size.k) * sizeof(float)));
  auto* planes = reinterpret_cast<float*>(memory);
  for (int64_t i = 0; i < args.m; ++i) {
    split_block_planes(size.k, 4, row_bytes, args.a + i * size.k, planes + i * size.k,
                       /*has_levels=*/true);
  }
  const int64_t columns = block_task_columns(size.k, args.m, kBlockDotMacs);
  run.parallel().for_range(size.n, columns, [&](int64_t begin, int64_t end) {
    FolioBlockDotsF32 dots{};
    dots.w = columns_of(size, codes, scales, begin, end);
    dots.m = args.m;
    dots.a = planes;
    dots.a_row_stride = size.k;
    dots.y = args.c + begin;
    dots.y_row_stride = size.n;
    run.kernels().block_dots_f32(&dots);
  });
  return Status::ok();
}

// Elements [at, at + count) of the weight, flattened: put(i, value) of each. A block's levels are
// scaled once.
template <typename Put>
void widen(const Sizes& size, const uint8_t* codes, const float* scales, int64_t at, int64_t count,
           Put put) {
  for (int64_t i = 0; i < count;) {
    const int64_t block = (at + i) / size.block;
    const int64_t end = std::min(count, (block + 1) * size.block - at);
    float levels[16];
    for (int code = 0; code < 16; ++code) levels[code] = size.levels[code] * scales[block];
    for (; i < end; ++i) {
      const int64_t from = at + i;
      put(i, levels[codes[from / 2] >> (from % 2 == 0 ? 4 : 0) & 15]);
    }
  }
}

// Panels of a few columns.
Status multiply_many(OpRun& run, const Sizes& size, const FolioGemmF32& args, const uint8_t* codes,
                     const float* scales) {
  if (size.has_whole_rows()) {
    return gemm_by_tiles(run, args, [&](int64_t begin, int64_t end) {
      return [&, w = columns_of(size, codes, scales, begin, end)](int64_t first, int64_t depth,
                                                                  float* panels) {
        run.kernels().block_widen_f32p16(&w, first, depth, panels);
      };
    });
  }
  return gemm_by_tiles(run, args, [&](int64_t begin, int64_t end) {
    return [&, begin, end](int64_t first, int64_t depth, float* panels) {
      constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
      const int64_t columns = end - begin;
      const auto place = [&](int64_t j) {
        return panels + j / kPanel * kPanel * depth + j % kPanel;
      };
      if (columns % kPanel != 0) {
        std::fill_n(panels + columns / kPanel * kPanel * depth, kPanel * depth, 0.0F);
      }
      for (int64_t j = 0; size.transposed && j < columns; ++j) {
        float* const to = place(j);
        widen(size, codes, scales, (begin + j) * size.k + first, depth,
              [&](int64_t p, float value) { to[p * kPanel] = value; });
      }
      for (int64_t p = 0; !size.transposed && p < depth; ++p) {
        widen(size, codes, scales, (first + p) * size.k + begin, columns,
              [&](int64_t j, float value) { place(j)[p * kPanel] = value; });
      }
    };
  });
}

class MatMulBnb4 final : public OpKernel {
 public:
  Sizes size;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    FOLIO_TRY(const Tensor* b, run.tensor(1, DType::kUint8));
    if (a->rank() == 0 || a->dim(a->rank() - 1) != size.depth()) {
      return invalid_argument("A has shape ", a->shape().to_string(), ", expected [...,",
                              size.depth(), "]");
    }
    const int64_t codes = size.n * size.k;
    if (b->count() != (codes + 1) / 2) {
      return invalid_argument("B has ", b->count(), " bytes, expected ", (codes + 1) / 2);
    }
    FOLIO_TRY(const float* scales, floats_of_input(run, 2, (codes + size.block - 1) / size.block));
    FOLIO_TRY(const float* a32, floats_of(run, *a));
    Shape shape = a->shape();
    shape[shape.rank() - 1] = size.width();
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, a->dtype(), shape));
    FolioGemmF32 args{};
    args.m = a->count() / size.depth();
    if (args.m == 0) return Status::ok();
    args.n = size.width();
    args.k = size.depth();
    args.a = a32;
    args.a_row_stride = args.k;
    args.a_col_stride = 1;
    args.c = y.data();
    args.c_row_stride = args.n;
    args.alpha = 1.0F;
    const bool is_few = args.m <= FOLIO_BLOCK_FEW_ROWS && size.has_whole_rows();
    FOLIO_RETURN_IF_ERROR(
        (is_few ? multiply_few : multiply_many)(run, size, args, b->raw(), scales));
    y.finish(run);
    return Status::ok();
  }
};

Result<Sizes> parse(const Attributes& attrs) {
  Sizes s;
  FOLIO_TRY(s.k, attrs.get_int("K"));
  FOLIO_TRY(s.n, attrs.get_int("N"));
  FOLIO_TRY(s.block, attrs.get_int("block_size"));
  FOLIO_TRY(const int64_t type, attrs.get_int("quant_type"));
  FOLIO_TRY(const int64_t transposed, attrs.get_int("transB", 1));
  if (s.k < 1 || s.n < 1 || s.k > kMaxDim || s.n > kMaxDim) {
    return invalid_graph("attributes 'K' and 'N' are ", s.k, " and ", s.n, ", expected 1 to ",
                         kMaxDim);
  }
  if (s.block < 16 || (s.block & (s.block - 1)) != 0) {
    return invalid_graph("attribute 'block_size' is ", s.block,
                         ", expected a power of two from 16 on");
  }
  if (type != 0 && type != 1) {
    return invalid_graph("attribute 'quant_type' is ", type, ", expected 0 or 1");
  }
  s.levels = type == 0 ? kFp4 : kNf4;
  s.transposed = transposed != 0;
  return s;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Sizes size, parse(infer.attrs()));
  const Dims* a = infer.dims_of(0);
  std::optional<Dims> dims;
  if (a && !a->empty()) {
    dims = *a;
    dims->back() = Dim::of(size.width());
  }
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<MatMulBnb4>();
  FOLIO_TRY(kernel->size, parse(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_matmul_bnb4(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MatMulBnb4";
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 1;
  registry.add(def);
}

}  // namespace folio
