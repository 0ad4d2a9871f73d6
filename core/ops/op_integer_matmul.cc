#include "core/ops/op_integer_matmul.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = 16;
constexpr int64_t kTileRows = 12;  // of the widest kernel in registers
// Some 20 us on one core with dot products; four panels are a block of the kernel, and of 512
// columns B stays in L2.
constexpr ChunkRule kRule = {8 << 20, 8 << 20, 64, 512, 4 * kThreadMacs, 1 << 16};
constexpr int64_t kPackedAsRows = 16;     // packing B takes as long as products of so many rows
constexpr int64_t kUnsignedOffset = 128;  // what flipping the sign bit adds

int32_t zero_at(const ByteZero& zero, DType dtype, int64_t at) {
  if (!zero.data) return 0;
  return dtype == DType::kInt8 ? static_cast<int8_t>(zero.data[at]) : zero.data[at];
}

// One matrix product of a batch: B and what belongs to its columns, in memory of the caller.
class Product {
 public:
  static size_t bytes(const MatMulGeometry& g, int64_t rows) {
    return static_cast<size_t>(3 * g.n + rows) * 4;
  }
  Product(OpRun& run, const MatMulGeometry& g, const ByteOperand& a, const ByteOperand& b,
          const ByteTarget& target, uint8_t* memory)
      : run_(run),
        g_(g),
        a_(a),
        b_(b),
        target_(target),
        b_zero_(reinterpret_cast<int32_t*>(memory)),
        offset_(b_zero_ + g.n),
        scale_(reinterpret_cast<float*>(offset_ + g.n)),
        row_sums_(reinterpret_cast<int32_t*>(scale_ + g.n)) {}

  void set_b(const ByteMatrix& matrix, int64_t index) {
    matrix_ = matrix;
    b_index_ = index;
    has_b_zero_ = false;
    const int64_t flip = b_.dtype == DType::kUint8 ? kUnsignedOffset : 0;
    const int64_t step = b_.zero.row_stride + b_.zero.col_stride;
    const int64_t first = index * b_.zero.matrix_stride;
    if (step == 0 && zero_at(b_.zero, b_.dtype, first) == flip) return;
    for (int64_t j = 0; j < g_.n; ++j) {
      const int64_t at = first + j * step;
      b_zero_[j] = zero_at(b_.zero, b_.dtype, at) - static_cast<int32_t>(flip);
      has_b_zero_ |= b_zero_[j] != 0;
    }
  }

  // Rows of one A, [rows, k] unsigned bytes at `a`, into rows of y from y_row on.
  void compute(const uint8_t* a, int64_t a_index, int64_t rows, int64_t y_row) {
    if (has_b_zero_) {
      run_.parallel().for_range(rows, std::max<int64_t>(1, kElementGrain / (g_.k + 1)),
                                [&](int64_t begin, int64_t end) {
                                  for (int64_t i = begin; i < end; ++i) {
                                    row_sums_[i] = run_.kernels().sum_u8(g_.k, a + i * g_.k);
                                  }
                                });
    }
    const bool by_row = a_.zero.row_stride != 0 || target_.a_scale.line_stride != 0 ||
                        target_.extra_row_stride != 0;
    const int64_t step = by_row ? 1 : rows;
    for (int64_t i = 0; i < rows; i += step) {
      FolioGemmU8 args{};
      args.m = step;
      args.n = g_.n;
      args.k = g_.k;
      args.a = a + i * g_.k;
      args.a_row_stride = g_.k;
      args.b = matrix_.panels;
      fill_sums(a_index, i % g_.m, &args.sums);
      args.sums.row_sum = has_b_zero_ ? row_sums_ + i : nullptr;
      args.sums.b_zero = has_b_zero_ ? b_zero_ : nullptr;
      const int64_t at = (y_row + i) * g_.n * (target_.to == kFolioToByte ? 1 : 4);
      args.c = static_cast<uint8_t*>(target_.y) + at;
      args.c_row_stride = g_.n;
      gemm_u8(run_, args);
    }
  }

 private:
  void fill_sums(int64_t a_index, int64_t row, FolioSums* sums) {
    const DType dtype = a_.dtype;
    const int64_t at = a_index * a_.zero.matrix_stride + row * a_.zero.row_stride;
    const int32_t zero = zero_at(a_.zero, dtype, at) +
                         static_cast<int32_t>(dtype == DType::kInt8 ? kUnsignedOffset : 0);
    const int32_t* extra = target_.extra ? target_.extra + row * target_.extra_row_stride : nullptr;
    if (!has_b_zero_ && (!extra || target_.extra_col_stride == 1)) {
      sums->offset = extra;
      sums->column_sum = matrix_.column_sums;
      sums->a_zero = zero;
    } else {
      zero_point_offsets(g_.n, g_.k, zero, matrix_.column_sums, has_b_zero_ ? b_zero_ : nullptr,
                         extra, target_.extra_col_stride, offset_);
      sums->offset = offset_;
    }
    sums->to = target_.to;
    if (target_.to == kFolioToInt32) return;
    const float a_scale = target_.a_scale.at(a_index, row);
    const float* b_scale = target_.b_scale.data + b_index_ * target_.b_scale.matrix_stride;
    const FolioKernels& kernels = run_.kernels();
    kernels.binary_f32[kFolioMul](g_.n, &a_scale, 0, b_scale, target_.b_scale.line_stride, scale_);
    if (target_.to == kFolioToByte) {
      kernels.binary_f32[kFolioDiv](g_.n, scale_, 1, &target_.y_scale, 0, scale_);
    }
    sums->scale = scale_;
    sums->bias = target_.bias;
    sums->zero = target_.zero;
    sums->lo = target_.is_signed ? -128 : 0;
    sums->hi = sums->lo + 255;
  }

  OpRun& run_;
  const MatMulGeometry& g_;
  const ByteOperand& a_;
  const ByteOperand& b_;
  const ByteTarget& target_;
  ByteMatrix matrix_;
  int64_t b_index_ = 0;
  bool has_b_zero_ = false;
  int32_t* b_zero_;
  int32_t* offset_;
  float* scale_;
  int32_t* row_sums_;
};

// The products of a batch, each with its own B or the one before it.
class ByteBatch {
 public:
  ByteBatch(OpRun& run, const MatMulGeometry& g, const ByteOperand& a, const ByteOperand& b,
            int b_input, const ByteTarget& target)
      : run_(run),
        g_(g),
        a_(a),
        b_(b),
        target_(target),
        request_(s8p16k4_request(g.k, g.n, b.trans ? 1 : g.n, b.trans ? g.k : 1)),
        packed_(run.packed(b_input)) {
    // One B for all batches: they are just more rows.
    const int64_t batches = g.batch.count();
    const bool is_flat = g.batch_b.count() == 1 && g.batch_a.count() == batches &&
                         a.zero.matrix_stride == 0 && target.a_scale.matrix_stride == 0;
    count_ = is_flat ? 1 : batches;
    rows_ = is_flat ? g.m * batches : g.m;
  }

  Status compute(const uint8_t* a_rows) {
    uint64_t blob = 0;
    if (!packed_ && !s8p16k4_bytes(g_.k, g_.n, &blob)) {
      return invalid_argument("a matrix of ", g_.k, " x ", g_.n, " bytes is too large");
    }
    blob_bytes_ = align_up(static_cast<size_t>(blob), 64);
    const size_t bytes = blob_bytes_ + Product::bytes(g_, rows_);
    // Threads share the products where there is one for each, else the work of one.
    const int threads = run_.parallel().thread_count();
    const int64_t rows = rows_ + (packed_ ? 0 : kPackedAsRows);
    const double macs = static_cast<double>(rows * g_.n) * static_cast<double>(g_.k * count_);
    const int64_t parts = thread_parts(macs / static_cast<double>(kRule.least_macs), threads);
    if (count_ < threads || parts == 1) {
      FOLIO_TRY(uint8_t * memory, run_.scratch(bytes));
      compute(a_rows, 0, count_, memory);
      return Status::ok();
    }
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run_, bytes, &scratch));
    run_.parallel().for_range(count_, (count_ + parts - 1) / parts,
                              [&](int64_t begin, int64_t end) {
                                const ThreadScratch::Block block(scratch);
                                compute(a_rows, begin, end, block.data());
                              });
    return Status::ok();
  }

 private:
  void compute(const uint8_t* a_rows, int64_t begin, int64_t end, uint8_t* memory) {
    Product product(run_, g_, a_, b_, target_, memory + blob_bytes_);
    int64_t last = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = g_.index_b(i);
      if (index != last) product.set_b(matrix(index, memory), index);
      last = index;
      const int64_t a_index = count_ == 1 ? 0 : g_.index_a(i);
      product.compute(a_rows + a_index * g_.m * g_.k, a_index, rows_, i * g_.m);
    }
  }

  ByteMatrix matrix(int64_t index, uint8_t* memory) const {
    if (packed_) return packed_matrix(packed_->data(), g_.k, g_.n);
    fill_panels(run_.kernels(), request_, b_.codes + index * g_.k * g_.n, b_.dtype, memory);
    return packed_matrix(memory, g_.k, g_.n);
  }

  OpRun& run_;
  const MatMulGeometry& g_;
  const ByteOperand& a_;
  const ByteOperand& b_;
  const ByteTarget& target_;
  PackRequest request_;
  const PackedBlob* packed_;
  int64_t count_;  // of products
  int64_t rows_;   // of each
  size_t blob_bytes_ = 0;
};

// All matrices of A as rows of unsigned bytes.
Result<const uint8_t*> rows_of(OpRun& run, const MatMulGeometry& g, const ByteOperand& a) {
  const uint8_t* codes = a.codes;
  const int64_t count = a.count;
  if (a.trans && count > 0) {
    FOLIO_TRY(uint8_t * turned, run.scratch(static_cast<size_t>(count)));
    for (int64_t at = 0; at < count; at += g.m * g.k) {
      run.kernels().transpose_b8(g.k, g.m, codes + at, g.m, turned + at, g.k);
    }
    codes = turned;
  }
  return unsigned_codes(run, codes, count, a.dtype);
}

}  // namespace

Result<ByteZero> line_strides(const Tensor& parameter, int64_t matrices, int64_t line,
                              ZeroAxis axis) {
  ByteZero zero;
  const int64_t count = parameter.count();
  if (count == 1) return zero;
  const int64_t last = parameter.rank() > 0 ? parameter.dim(parameter.rank() - 1) : 1;
  const bool shared = parameter.rank() == 1 && count == line;
  const bool lies_along = axis == ZeroAxis::kRows ? last == 1 : last == line;
  int64_t lines = 0;
  const bool each = parameter.rank() > 1 && lies_along && checked_mul(matrices, line, &lines) &&
                    (count == lines || count == line);
  if (!shared && !each) {
    return invalid_argument("scale or zero point of shape ", parameter.shape().to_string(),
                            " does not fit ", matrices, " matrices with ", line,
                            axis == ZeroAxis::kRows ? " rows" : " columns");
  }
  zero.matrix_stride = each && count == lines ? line : 0;
  (axis == ZeroAxis::kRows ? zero.row_stride : zero.col_stride) = 1;
  return zero;
}

Result<ByteZero> byte_zero(const OpRun& run, int input, DType dtype, int64_t matrices, int64_t line,
                           ZeroAxis axis) {
  if (!run.has_input(input)) return ByteZero{};
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  FOLIO_TRY(ByteZero zero, line_strides(*tensor, matrices, line, axis));
  zero.data = tensor->raw();
  return zero;
}

PackRequest s8p16k4_request(int64_t k, int64_t n, int64_t row_stride, int64_t col_stride) {
  PackRequest request;
  request.layout = Layout::kS8P16K4;
  request.version = kS8P16K4Version;
  request.k = k;
  request.n = n;
  request.row_stride = row_stride;
  request.col_stride = col_stride;
  return request;
}

void fill_panels(const FolioKernels& kernels, const PackRequest& r, const uint8_t* bytes,
                 DType dtype, uint8_t* blob) {
  FolioPackS8 pack{};
  pack.k = r.k;
  pack.n = r.n;
  pack.bytes = bytes;
  pack.inner = std::max<int64_t>(1, r.k / r.taps);
  pack.outer_stride = 1;
  pack.row_stride = r.row_stride;
  pack.col_stride = r.col_stride;
  pack.flip = dtype == DType::kUint8 ? 0x80 : 0;
  kernels.pack_s8p16k4(&pack, blob);
}

bool request_s8p16k4(OpBuild& build, int input, PackRequest request) {
  const Initializer* b = build.initializer(input);
  if (!b || !is_byte(b->dtype)) return false;
  if (!s8p16k4_bytes(request.k, request.n, &request.bytes) || request.bytes == 0) return false;
  request.context = &build.kernels();
  request.fill = [](const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
    fill_panels(*static_cast<const FolioKernels*>(context), r, source.raw(), source.dtype(), blob);
    return Status::ok();
  };
  build.request_pack(input, request);
  return true;
}

void request_byte_matrix(OpBuild& build, int input, bool trans) {
  const Initializer* b = build.initializer(input);
  if (!b || b->shape.rank() != 2 || b->shape[0] < 1 || b->shape[1] < 1) return;
  const int64_t k = b->shape[trans ? 1 : 0];
  const int64_t n = b->shape[trans ? 0 : 1];
  PackRequest request = s8p16k4_request(k, n, trans ? 1 : n, trans ? k : 1);
  request.replaces_source = true;  // multiply_bytes
  request_s8p16k4(build, input, request);
}

ByteMatrix packed_matrix(const uint8_t* blob, int64_t k, int64_t n) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  return {blob, reinterpret_cast<const int32_t*>(blob + panels * panel_bytes(k))};
}

Result<ByteMatrix> pack_bytes_now(OpRun& run, const PackRequest& request, const uint8_t* bytes,
                                  DType dtype) {
  uint64_t size = 0;
  if (!s8p16k4_bytes(request.k, request.n, &size)) {
    return invalid_argument("a matrix of ", request.k, " x ", request.n, " bytes is too large");
  }
  FOLIO_TRY(uint8_t * blob, run.scratch(static_cast<size_t>(size)));
  fill_panels(run.kernels(), request, bytes, dtype, blob);
  return packed_matrix(blob, request.k, request.n);
}

void flip_signs(int64_t count, const uint8_t* x, uint8_t* y) {
  constexpr int64_t kStep = 16;  // one vector: of more, g++ 12 goes by way of the stack
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + kStep <= count; i += kStep) {
    uint64_t codes[2];
    std::memcpy(codes, x + i, kStep);
    for (uint64_t& eight : codes) eight ^= 0x8080808080808080;
    std::memcpy(y + i, codes, kStep);
  }
  for (; i < count; ++i) y[i] = x[i] ^ 0x80;
}

Result<const uint8_t*> unsigned_codes(OpRun& run, const uint8_t* codes, int64_t count,
                                      DType dtype) {
  if (dtype == DType::kUint8 || count == 0) return codes;
  FOLIO_TRY(uint8_t * flipped, run.scratch(static_cast<size_t>(count)));
  run.parallel().for_range(count, 8 * kElementGrain, [&](int64_t begin, int64_t end) {
    flip_signs(end - begin, codes + begin, flipped + begin);
  });
  return static_cast<const uint8_t*>(flipped);
}

void zero_point_offsets(int64_t n, int64_t k, int32_t a_zero, const int32_t* column_sums,
                        const int32_t* b_zero, const int32_t* extra, int64_t step,
                        int32_t* offset) {
  const auto zero = static_cast<uint32_t>(a_zero);
  const uint32_t both = zero * static_cast<uint32_t>(k);
  for (int64_t j = 0; j < n; ++j) {
    uint32_t value = extra ? static_cast<uint32_t>(extra[j * step]) : 0U;
    value -= zero * static_cast<uint32_t>(column_sums[j]);
    if (b_zero) value += both * static_cast<uint32_t>(b_zero[j]);
    offset[j] = static_cast<int32_t>(value);
  }
}

void gemm_u8(OpRun& run, const FolioGemmU8& whole) {
  if (whole.m == 0 || whole.n == 0) return;
  const ProductChunk cut =
      product_chunk(kRule, whole.m, whole.n, whole.k, run.parallel().thread_count());
  const int64_t rows = (cut.rows + kTileRows - 1) / kTileRows * kTileRows;
  const int64_t columns = cut.columns;
  const int64_t col_blocks = (whole.n + columns - 1) / columns;
  const int64_t row_blocks = (whole.m + rows - 1) / rows;
  const int64_t size = whole.sums.to == kFolioToByte ? 1 : 4;
  run.parallel().for_range(row_blocks * col_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = chunk / col_blocks * rows;
      const int64_t col = chunk % col_blocks * columns;
      FolioGemmU8 part = whole;
      part.m = std::min(rows, whole.m - row);
      part.n = std::min(columns, whole.n - col);
      part.a += row * whole.a_row_stride;
      part.b = static_cast<const uint8_t*>(whole.b) + col / kPanel * panel_bytes(whole.k);
      part.c = static_cast<uint8_t*>(whole.c) + (row * whole.c_row_stride + col) * size;
      if (part.sums.offset) part.sums.offset += col;
      if (part.sums.column_sum) part.sums.column_sum += col;
      if (part.sums.row_sum) part.sums.row_sum += row;
      if (part.sums.b_zero) part.sums.b_zero += col;
      if (part.sums.scale) part.sums.scale += col;
      if (part.sums.bias) part.sums.bias += col;
      run.kernels().gemm_u8(&part);
    }
  });
}

Status multiply_bytes(OpRun& run, const MatMulGeometry& g, const ByteOperand& a,
                      const ByteOperand& b, int b_input, const ByteTarget& target) {
  if (g.out.count() == 0) return Status::ok();
  FOLIO_TRY(const uint8_t* a_rows, rows_of(run, g, a));
  return ByteBatch(run, g, a, b, b_input, target).compute(a_rows);
}

}  // namespace folio
