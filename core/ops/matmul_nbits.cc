// MatMulNBits: a matrix product whose second operand is a constant of 2, 4 or 8 bits in blocks.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.MatMulNBits (attributes K, N, bits,
//         block_size). accuracy_level says how little of A must be kept. 4: what ONNX Runtime's CPU
//         makes of it, A rounded to 8 bits in blocks as long as the weights', or bfloat16, which is
//         nearer; 3: bfloat16 where that is faster; others change nothing.
// Shapes: A [..., K]; B [N, blocks, block_size * bits / 8] uint8, low bits first; scales
//         [N, blocks]; zero_points [N, ceil(blocks * bits / 8)] packed as B, or [N, blocks] of a
//         floating type; g_idx [K] int32: the block of each k; bias [N]. Y [..., N].
// Math:   y = A W^T + bias, W[n, k] = (B[n, k] - zero) * scale, zero 2^(bits - 1) by default.
//         Few rows: dot products over the blocks as they stand. Else W is widened, or unpacked for
//         rounded rows, a few columns at a time into panels, never as a whole.
// Types:  float; float16 and bfloat16 in float.
// Notes:  weights packed for a GPU are refused.
#include <algorithm>
#include <cstring>

#include "core/ops/op_block_weights.h"
#include "core/ops/op_copied_input.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm_tiles.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kRoundedMacs = 1 << 20;      // a task of dot products of integers
constexpr int64_t kMinRowsColumns = 256;       // of a task of many rows
constexpr int64_t kMaxRowsColumns = 2048;      // likewise
constexpr int64_t kRoundedTasks = 4;           // of many rows, for each thread
constexpr int64_t kFloatTasks = 2;             // likewise: they take longer to put in order
constexpr int64_t kMaxDim = int64_t{1} << 31;  // of K and N
constexpr int64_t kMaxBlock = 1 << 20;
constexpr int64_t kMaxRoundedBlock = 256;  // longer ones are not rounded

struct Sizes {
  int64_t k = 0;
  int64_t n = 0;
  int64_t bits = 4;
  int64_t block = 0;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t blob() const { return block * bits / 8; }
  int64_t row_bytes() const { return blocks() * blob(); }
  int64_t zero_bytes() const {
    return folio_block_zero_bytes(blocks(), static_cast<int32_t>(bits));
  }
};

// `count` numbers of a constant that may be unaligned, from element `first` on.
void load_floats(const FolioKernels& kernels, const Tensor& tensor, int64_t first, int64_t count,
                 float* to) {
  if (tensor.dtype() == DType::kFloat) {
    std::memcpy(to, tensor.raw() + first * 4, static_cast<size_t>(count) * 4);
  } else if (tensor.dtype() == DType::kFloat16) {
    kernels.f16_to_f32(count, tensor.raw() + first * 2, to);
  } else {
    kernels.bf16_to_f32(count, tensor.raw() + first * 2, to);
  }
}

struct Weights {
  Sizes size;
  const uint8_t* data = nullptr;
  const Tensor* scales = nullptr;
  const uint8_t* halves = nullptr;  // the scales as float16, for kernels that take them; or null
  const Tensor* zeros = nullptr;    // or null
  bool passes_codes = false;        // zeros as they are to kernels that take them
  const int32_t* groups = nullptr;  // [K] or null; a copy that nobody else can write to

  bool packed_zeros() const { return zeros && zeros->dtype() == DType::kUint8; }

  // Floats of scratch that columns() takes.
  int64_t scratch_floats(int64_t columns) const {
    const bool widened = !halves && scales->dtype() != DType::kFloat;
    return ((widened ? 1 : 0) + (zeros && !passes_codes ? 1 : 0)) * columns * size.blocks();
  }

  // Of `n` columns, without any.
  FolioBlockWeights shape(int64_t n) const {
    FolioBlockWeights w{};
    w.n = n;
    w.k = size.k;
    w.block = size.block;
    w.bits = static_cast<int32_t>(size.bits);
    return w;
  }

  // Columns [begin, end) as kernels read them; scales and zeros that are no plain floats are made
  // so in `memory`.
  FolioBlockWeights columns(const FolioKernels& kernels, int64_t begin, int64_t end,
                            float* memory) const {
    const int64_t blocks = size.blocks();
    const int64_t first = begin * blocks;
    const int64_t count = (end - begin) * blocks;
    FolioBlockWeights w = shape(end - begin);
    w.codes = data + begin * size.row_bytes();
    w.scales = scales->raw() + first * 4;
    w.half_scales = halves != nullptr;
    if (halves) {
      w.scales = halves + first * 2;
    } else if (scales->dtype() != DType::kFloat) {
      load_floats(kernels, *scales, first, count, memory);
      w.scales = memory;
      memory += count;
    }
    if (!zeros) return w;
    if (passes_codes) {
      w.zero_codes = zeros->raw() + begin * size.zero_bytes();
      return w;
    }
    w.zeros = memory;
    if (!packed_zeros()) {
      load_floats(kernels, *zeros, first, count, memory);
      return w;
    }
    for (int64_t n = begin; n < end; ++n, memory += blocks) {
      unpack_block_codes(zeros->raw() + n * size.zero_bytes(), size.bits, blocks, memory);
    }
    return w;
  }
};

// Elements [first, first + depth) of columns as F32P16 panels where each k names its block.
void widen_grouped(const Weights& all, const FolioBlockWeights& w, int64_t first, int64_t depth,
                   float* panels) {
  const Sizes& s = all.size;
  const int64_t blocks = s.blocks();
  const auto* scales = static_cast<const uint8_t*>(w.scales);
  const auto middle = static_cast<float>(1 << (s.bits - 1));
  std::fill_n(panels, panel_columns(w.n) * depth, 0.0F);
  for (int64_t j = 0; j < w.n; ++j) {
    const uint8_t* codes = static_cast<const uint8_t*>(w.codes) + j * s.row_bytes();
    float* out = panels + j / kPanel * kPanel * depth + j % kPanel;
    for (int64_t p = first; p < first + depth; ++p) {
      const int64_t at = j * blocks + all.groups[p];
      const int64_t bit = p * s.bits;
      const int code = codes[bit / 8] >> bit % 8 & ((1 << s.bits) - 1);
      float scale;
      std::memcpy(&scale, scales + at * 4, sizeof(scale));
      out[(p - first) * kPanel] =
          (static_cast<float>(code) - (w.zeros ? w.zeros[at] : middle)) * scale;
    }
  }
}

// Writes pieces of some columns as panels (op_gemm_tiles.h).
class PieceWriter {
 public:
  PieceWriter(const Weights& all, const FolioKernels& kernels, ThreadScratch& scratch,
              int64_t begin, int64_t end)
      : all_(all),
        kernels_(kernels),
        block_(scratch),
        columns_(all.columns(kernels, begin, end, reinterpret_cast<float*>(block_.data()))) {}

  void operator()(int64_t first, int64_t depth, float* panels) const {
    if (all_.groups) {
      widen_grouped(all_, columns_, first, depth, panels);
    } else {
      kernels_.block_widen_f32p16(&columns_, first, depth, panels);
    }
  }

 private:
  const Weights& all_;
  const FolioKernels& kernels_;
  const ThreadScratch::Block block_;
  const FolioBlockWeights columns_;
};

struct Product {
  int64_t rows = 0;
  const float* a = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
};

class MatMulNBits final : public OpKernel {
 public:
  Sizes size;
  int64_t accuracy = 0;  // accuracy_level: 3 bfloat16, 4 whole numbers of 8 bits, others float

  bool rounds() const { return accuracy == 4 && size.bits >= 4 && size.block <= kMaxRoundedBlock; }

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (a->rank() == 0 || a->dim(a->rank() - 1) != size.k) {
      return invalid_argument("A has shape ", a->shape().to_string(), ", expected [...,", size.k,
                              "]");
    }
    FOLIO_TRY(const Weights weights, bind(run, a->dtype()));
    FOLIO_TRY(const float* a32, floats_of(run, *a));
    FOLIO_TRY(const float* bias, optional_reals<float>(run, 5, size.n));
    Shape shape = a->shape();
    shape[shape.rank() - 1] = size.n;
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, a->dtype(), shape));
    const Product product{a->count() / size.k, a32, bias, y.data()};
    if (product.rows > 0) FOLIO_RETURN_IF_ERROR(multiply(run, weights, product));
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
    if (w.scales->dtype() == DType::kFloat16) w.halves = w.scales->raw();
    if (const PackedBlob* blob = run.packed(2)) w.halves = blob->data();
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
      const bool is_long = groups->count() >= size.k;
      if (is_long) {
        FOLIO_TRY(w.groups, copied_input<int32_t>(run, *groups, size.k));
      }
      const auto outside = [&](int32_t group) { return group < 0 || group >= size.blocks(); };
      if (!is_long || std::any_of(w.groups, w.groups + size.k, outside)) {
        return invalid_argument("g_idx must be ", size.k, " numbers from 0 to ", size.blocks() - 1);
      }
    }
    return w;
  }

  Status multiply(OpRun& run, Weights w, const Product& p) const {
    const FolioKernels& kernels = run.kernels();
    const FolioBlockWeights shape = w.shape(size.n);
    const bool whole_zeros = !w.zeros || w.packed_zeros();
    const bool rounded = rounds() && !w.groups && whole_zeros;
    const bool is_one = rounded && p.rows == 1;
    if (!is_one) w.halves = nullptr;
    w.passes_codes = is_one && w.packed_zeros();
    if (rounded && !folio_dots_instead_of_rounded(&kernels, &shape, w.zeros != nullptr, p.rows)) {
      return multiply_rounded(run, w, p);
    }
    const bool is_few = p.rows <= FOLIO_BLOCK_FEW_ROWS;
    const bool many = whole_zeros && folio_dots_many_rows(&kernels, &shape) != 0;
    if (w.groups || !(is_few || many)) return multiply_panels(run, w, p);
    const bool is_medium = accuracy == 3 || accuracy == 4 || kernels.precision == kFolioMedium;
    return multiply_dots(run, w, p, is_medium ? kFolioMedium : kFolioHighest);
  }

  // Calls dots(begin, columns, memory) for all columns, a task of them at a time; `memory`: `extra`
  // bytes, a multiple of 64.
  template <typename Dots>
  static Status for_columns(OpRun& run, const Weights& w, int64_t columns, int64_t extra,
                            const Dots& dots) {
    columns = std::min(columns, w.size.n);
    ThreadScratch scratch;
    const int64_t bytes = extra + w.scratch_floats(columns) * static_cast<int64_t>(sizeof(float));
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, static_cast<size_t>(bytes), &scratch));
    run.parallel().for_range(w.size.n, columns, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* floats = bytes > extra ? reinterpret_cast<float*>(block.data() + extra) : nullptr;
      dots(begin, w.columns(run.kernels(), begin, end, floats), block.data());
    });
    return Status::ok();
  }

  // Calls convert(a, to) for each row, to `row_bytes` of scratch, then multiply(part, converted)
  // for the rows of a batch, which are multiplied with all columns while caches hold them.
  template <typename Convert, typename Multiply>
  static Status for_batches(OpRun& run, const Sizes& s, const Product& p, int64_t row_bytes,
                            const Convert& convert, const Multiply& multiply) {
    const int64_t batch = std::min<int64_t>(p.rows, FOLIO_BLOCK_ROWS);
    FOLIO_TRY(uint8_t * converted, run.scratch(static_cast<size_t>(batch * row_bytes)));
    for (int64_t row = 0; row < p.rows; row += batch) {
      const Product part{std::min(batch, p.rows - row), p.a + row * s.k, p.bias, p.y + row * s.n};
      run.parallel().for_range(part.rows, 1 + 32768 / s.k, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) convert(part.a + i * s.k, converted + i * row_bytes);
      });
      FOLIO_RETURN_IF_ERROR(multiply(part, converted));
    }
    return Status::ok();
  }

  // What block_dots_f32 and block_dots_s8 have in common, of columns from `begin` on.
  template <typename Args>
  static Args dots_args(const Product& p, const FolioBlockWeights& part, int64_t begin, int64_t n,
                        uint8_t* memory) {
    Args args{};
    args.w = part;
    args.m = p.rows;
    args.scratch = memory;
    args.bias = p.bias ? p.bias + begin : nullptr;
    args.y = p.y + begin;
    args.y_row_stride = n;
    return args;
  }

  // Columns of a task of many rows. Kernels put those in an order of their own once for each task:
  // it should have many columns, but leave threads something to share, and scales that are widened
  // should not take much memory.
  static int64_t columns_of_many_rows(const Sizes& s, int64_t tasks, int threads) {
    const int64_t columns = std::clamp(s.n / (tasks * threads), kMinRowsColumns, kMaxRowsColumns);
    return (columns + FOLIO_BLOCK_COLUMNS - 1) / FOLIO_BLOCK_COLUMNS * FOLIO_BLOCK_COLUMNS;
  }

  static Status multiply_dots(OpRun& run, const Weights& w, const Product& whole,
                              FolioPrecision precision) {
    const Sizes& s = w.size;
    const int64_t row_floats = s.row_bytes() * (8 / s.bits);
    const auto split = [&](const float* a, uint8_t* planes) {
      split_block_planes(s.k, s.bits, s.row_bytes(), a, reinterpret_cast<float*>(planes));
    };
    const auto multiply = [&](const Product& p, const uint8_t* planes) {
      const bool is_few = p.rows <= FOLIO_BLOCK_FEW_ROWS;
      const int threads = run.parallel().thread_count();
      const int64_t columns = is_few ? block_task_columns(s.k, p.rows, kBlockDotMacs)
                                     : columns_of_many_rows(s, kFloatTasks, threads);
      const int parts = folio_block_parts(precision);
      const int64_t scratch = is_few ? 0 : folio_block_float_bytes(s.blocks(), s.block, parts);
      const auto dots = [&](int64_t begin, const FolioBlockWeights& part, uint8_t* memory) {
        auto args = dots_args<FolioBlockDotsF32>(p, part, begin, s.n, memory);
        args.a = reinterpret_cast<const float*>(planes);
        args.a_row_stride = row_floats;
        args.precision = precision;
        run.kernels().block_dots_f32(&args);
      };
      return for_columns(run, w, columns, scratch, dots);
    };
    return for_batches(run, s, whole, row_floats * static_cast<int64_t>(sizeof(float)), split,
                       multiply);
  }

  static Status multiply_rounded(OpRun& run, const Weights& w, const Product& whole) {
    const Sizes& s = w.size;
    const auto bits = static_cast<int32_t>(s.bits);
    const auto round = [&](const float* a, uint8_t* row) {
      run.kernels().block_round_f32(s.k, s.block, bits, a, row);
    };
    const auto multiply = [&](const Product& p, const uint8_t* rows) {
      const bool is_one = p.rows == 1;
      const int threads = run.parallel().thread_count();
      const int64_t columns = is_one ? block_task_columns(s.k, p.rows, kRoundedMacs)
                                     : columns_of_many_rows(s, kRoundedTasks, threads);
      const FolioKernels& kernels = run.kernels();
      const int64_t scratch =
          is_one ? 0
                 : folio_block_scratch_bytes(s.blocks(), s.block, bits, kernels.dots_many_rows,
                                             kernels.orders_rows);
      const auto dots = [&](int64_t begin, const FolioBlockWeights& part, uint8_t* memory) {
        auto args = dots_args<FolioBlockDotsS8>(p, part, begin, s.n, memory);
        args.a = rows;
        run.kernels().block_dots_s8(&args);
      };
      return for_columns(run, w, columns, scratch, dots);
    };
    return for_batches(run, s, whole, folio_block_row_bytes(s.blocks(), s.block, bits), round,
                       multiply);
  }

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
    ThreadScratch scratch;
    const int64_t columns = gemm_tile_columns(run.kernels(), args.n);
    const auto bytes = static_cast<size_t>(w.scratch_floats(columns)) * sizeof(float);
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, bytes, &scratch));
    return gemm_by_tiles(run, args, [&](int64_t begin, int64_t end) {
      return PieceWriter(w, run.kernels(), scratch, begin, end);
    });
  }
};

// ---- scales in a pack
//
// Reading a weight is what a decoding step takes its time for, and float scales of blocks of 32 are
// a fifth of it. Where each of them is a float16, they are packed as that. Codes stay where they
// are, and so do the scales, for products of many rows and for whoever else reads them. Rows that
// are not rounded take longer for their sums than memory does: widening would only add to it.

constexpr int64_t kPackedScales = (64 << 10) / 4;  // from so many on; others stay in caches

// Writes them to `halves` unless that is null.
Status narrow_scales(const PackRequest& request, const Tensor& source, uint8_t* halves) {
  const auto& kernels = *static_cast<const FolioKernels*>(request.context);
  constexpr int64_t kPart = 1024;
  float scales[kPart];
  float widened[kPart];
  uint16_t narrow[kPart];
  for (int64_t i = 0; i < request.k; i += kPart) {
    const int64_t count = std::min(kPart, request.k - i);
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    std::memcpy(scales, source.raw() + i * 4, bytes);
    kernels.f32_to_f16(count, scales, narrow);
    kernels.f16_to_f32(count, narrow, widened);
    const auto is_special = [](uint16_t half) { return (half & 0x7C00) == 0x7C00; };
    if (std::memcmp(scales, widened, bytes) != 0 ||
        std::any_of(narrow, narrow + count, is_special)) {
      return not_implemented("not every scale is a finite float16");
    }
    if (halves) std::memcpy(halves + i * 2, narrow, bytes / 2);
  }
  return Status::ok();
}

Status fill_scales(const PackRequest& request, const void*, const Tensor& source, uint8_t* blob) {
  return narrow_scales(request, source, blob);
}

Status check_scales(const PackRequest& request, const Tensor& source) {
  return narrow_scales(request, source, nullptr);
}

// Of scales that stand in the model; those that are computed first stay as they are.
void request_scales(OpBuild& build, const Sizes& size) {
  const Tensor* scales = build.constant(2);
  if (!scales || scales->dtype() != DType::kFloat || build.has_input(4)) return;
  if (build.has_input(3) && build.input(3).dtype != DType::kUint8) return;
  const int64_t count = size.n * size.blocks();
  if (scales->count() != count || count < kPackedScales) return;
  PackRequest request;
  request.layout = Layout::kF16Exact;
  request.version = kF16ExactVersion;
  request.k = count;
  request.n = 1;
  request.row_stride = 1;
  request.bytes = static_cast<uint64_t>(count) * 2;
  request.fill = fill_scales;
  request.check = check_scales;
  request.in_files_only = true;
  request.context = &build.kernels();
  build.request_pack(2, request);
}

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
  FOLIO_TRY(kernel->accuracy, build.attrs().get_int("accuracy_level", 0));
  if (kernel->rounds()) request_scales(build, kernel->size);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_matmul_nbits(OpRegistry& registry) {
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
