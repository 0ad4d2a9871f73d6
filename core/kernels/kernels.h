/* FolioKernels: the table of compute kernels, plain C functions behind pointers.
 *
 * Flow:    operators and passes call slots; `select.h` fills the table for the running CPU: ref/
 *          fills every slot, ISA folders overwrite the slots they do better.
 * Owns:    nothing. A kernel allocates nothing, calls no OS, throws nothing, knows no graph.
 * Threads: every slot is reentrant; callers split work over threads.
 * Errors:  none: arguments are the caller's promise. Counts are >= 0; 0 is valid everywhere and
 *          then data pointers may be null.
 *
 * Conventions, unless a slot says otherwise
 *   - Strides count elements and may be any value for inputs that are only read.
 *   - `float*` is aligned to 4 bytes; `void*` may have any alignment (weights in a mapped file).
 *   - Outputs may be the same pointer as an input of the same length ("in place"), but must not
 *     overlap partly. Nothing outside the stated elements is read or written.
 *   - Element-wise results depend on the element's value only, never on its place in the row or
 *     on n: splitting a row anywhere gives identical bits. Reductions depend on n and values only.
 *   - NaN in gives NaN out. Levels may differ within the stated accuracy, ulp of f32.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/kernels/block_weights.h"
#include "core/kernels/winograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[i] = f(x[i]). Accuracy: largest error of any level against the real function. */
typedef enum FolioUnary {
  kFolioExp = 0,    /* 2 ulp, results below 2^-126 included; overflow to inf */
  kFolioLog,        /* 1 ulp; log(0) = -inf, log(x < 0) = NaN */
  kFolioTanh,       /* 2 ulp; exactly 1 at inf */
  kFolioSigmoid,    /* 1 / (1 + exp(-x)), 2 ulp */
  kFolioErf,        /* 1 ulp; exactly 1 at inf */
  kFolioRelu,       /* x < 0 ? 0 : x, so that NaN and -0 stay */
  kFolioSqrt,       /* correctly rounded */
  kFolioAbs,        /* exact */
  kFolioNeg,        /* exact */
  kFolioReciprocal, /* 1 / x, correctly rounded */
  kFolioFloor,      /* exact */
  kFolioCeil,       /* exact */
  kFolioRound,      /* to the nearest integer, ties to even; exact */
  kFolioSin,        /* 1 ulp for any finite x */
  kFolioCos,        /* 1 ulp for any finite x */
  kFolioGeluErf,    /* x / 2 * (1 + erf(x / sqrt(2))), absolute error 2^-22 * |x| */
  kFolioGeluTanh,   /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), as above */
  kFolioSilu,       /* x * sigmoid(x), 4 ulp; 64 ulp where exp(x) < 2^-126 */
  kFolioSoftplus,   /* log(1 + exp(x)) without overflow, 4 ulp */
  kFolioHardSwish,  /* x * min(max(x / 6 + 0.5, 0), 1), a few roundings */
  kFolioSign,       /* -1, 0 or 1; NaN stays */
  kFolioSoftsign,   /* x / (1 + |x|), 2 ulp */
  kFolioMish,       /* x * tanh(log(1 + exp(x))), 4 ulp; 64 ulp where exp(x) < 2^-126 */
  kFolioTan,        /* 2 ulp for any finite x */
  kFolioAsin,       /* 1 ulp; NaN beyond [-1, 1] */
  kFolioAcos,       /* 1 ulp; NaN beyond [-1, 1] */
  kFolioAtan,       /* 2 ulp */
  kFolioSinh,       /* 1 ulp; overflow to inf, as cosh */
  kFolioCosh,       /* 1 ulp */
  kFolioAsinh,      /* 1 ulp */
  kFolioAcosh,      /* 1 ulp; NaN below 1 */
  kFolioAtanh,      /* 1 ulp; inf of sign x at -1 and 1, NaN beyond */
  kFolioUnaryCount
} FolioUnary;

/* The same of doubles, where a loop over the C library takes long. In ulp of f64; results smaller
 * than normal included. */
typedef enum FolioUnaryF64Function {
  kFolioExpF64 = 0, /* 2 ulp; overflow to inf */
  kFolioLogF64,     /* 1 ulp; log(0) = -inf, log(x < 0) = NaN */
  kFolioTanhF64,    /* 2 ulp, of ref 3; exactly 1 at inf */
  kFolioSigmoidF64, /* 2 ulp */
  kFolioFloorF64,   /* exact, as the next two; zeros keep the sign of x */
  kFolioCeilF64,
  kFolioRoundF64, /* half to even */
  kFolioUnaryF64Count
} FolioUnaryF64Function;

/* y[i] = f(x[i]) of two parameters. NaN stays. Functions with exp: 4 ulp; the others a rounding for
 * each operation. */
typedef enum FolioShaped {
  kFolioLeakyRelu = 0,   /* x < 0 ? p * x : x */
  kFolioThresholdedRelu, /* x > p ? x : 0; NaN is 0 */
  kFolioHardSigmoid,     /* min(max(p * x + q, 0), 1) */
  kFolioAffine,          /* p * x + q */
  kFolioShrink,          /* x < -p ? x + q : x > p ? x - q : 0; NaN is 0 */
  kFolioElu,             /* x < 0 ? p * (exp(x) - 1) : x */
  kFolioSelu,            /* q * (x <= 0 ? p * (exp(x) - 1) : x) */
  kFolioCelu,            /* max(0, x) + min(0, p * (exp(x / p) - 1)), p > 0 */
  kFolioShapedCount
} FolioShaped;

/* How elements of a row or a column are joined; kFolioReduceMax and Min are NaN when any is. */
typedef enum FolioReduce {
  kFolioReduceSum = 0,
  kFolioReduceSquares,    /* sum of x * x */
  kFolioReduceMagnitudes, /* sum of |x| */
  kFolioReduceProd,
  kFolioReduceMax,
  kFolioReduceMin,
  kFolioReduceCount
} FolioReduce;

/* y[i] = f(a[i], b[i]). */
typedef enum FolioBinary {
  kFolioAdd = 0,
  kFolioSub,
  kFolioMul,
  kFolioDiv,   /* correctly rounded, as add, sub and mul */
  kFolioMin,   /* NaN when either is NaN */
  kFolioMax,   /* NaN when either is NaN */
  kFolioPow,   /* as C's pow, 1 ulp */
  kFolioPRelu, /* a < 0 ? b * a : a, a rounding */
  kFolioBinaryCount
} FolioBinary;

typedef enum FolioActivation {
  kFolioActNone = 0,
  kFolioActRelu,     /* as kFolioRelu */
  kFolioActClip,     /* v < clip_lo ? clip_lo : v, then v > clip_hi ? clip_hi : v; NaN stays */
  kFolioActLeakyRelu /* v < 0 ? v * clip_lo : v */
} FolioActivation;

/* What a product of floats may lose, in PyTorch's words (float32_matmul_precision). A number is the
 * sum of three bfloat16 parts: three, two or one of each may be multiplied instead of it, sums stay
 * in f32. Largest errors, to which all but kFolioChain add 2^-126 * (1 + |A| + |B|) of each
 * product: */
typedef enum FolioPrecision {
  kFolioChain = 0, /* one fused multiply-add after the other: (k + 3) * 2^-24 * sum |A| |B| */
  kFolioHighest,   /* no more than that */
  kFolioHigh,      /* 2^-14 * sum |A| |B| more */
  kFolioMedium     /* 2^-6 * sum |A| |B| more */
} FolioPrecision;

/* Up to so many products a sum is finished before anything is written to its place in C. */
#define FOLIO_GEMM_ONE_SUM 256

/* What the second cache of a CPU with tiles has room for beside the operands. */
#define FOLIO_GEMM_SCRATCH (1 << 20)

#define FOLIO_MOST_DOTS 16

/* Arguments of gemm_f32. Zero-initialise, then set what differs (strides and alpha are needed):
 *
 *   sum[i, j] = (accumulate ? C[i, j] : 0) + sum over p of A[i, p] * B[p, j]   i < m, j < n, p < k
 *   C[i, j]   = activation(alpha * col_scale[j] * sum[i, j] + col_bias[j] + row_bias[i] + D[i, j])
 *
 * A[i, p] = a[i * a_row_stride + p * a_col_stride] (so A may be transposed), or, when a_rows is not
 * null, a_rows[p / a_run * m + i][p % a_run] (rows of pieces that lie anywhere, as the pixels under
 * a convolution's taps do; k is a multiple of a_run), or, when a_lines is not null,
 * a_lines[p / a_run][i * a_row_stride + p % a_run] (pixels of one line, one piece above the other);
 * C[i, j] = c[i * c_row_stride + j], D[i, j] = addend[i * addend_row_stride + j]; C overlaps
 * nothing else, but that D may be C where k <= FOLIO_GEMM_ONE_SUM. k = 0 is an empty sum.
 * The rows at `next` are what the caller reads after this: a level may fetch them into its cache
 * meanwhile, and does nothing else with them. */
typedef struct FolioGemmF32 {
  int64_t m, n, k;
  const float* a;
  int64_t a_row_stride;
  int64_t a_col_stride;
  const float* const* a_rows;  /* [k / a_run][m] or null */
  const float* const* a_lines; /* [k / a_run] or null */
  int64_t a_run;
  const float* b;        /* F32P16 of [k, n], 64-byte aligned; see pack_f32p16 */
  int32_t b_is_bfloat16; /* 1: b is BF16P16 instead (see bf16p16_to_f32), 64-byte aligned. In the
                          * precision kFolioMedium, of levels that multiply parts in it. */
  float* c;
  int64_t c_row_stride;
  const float* col_scale; /* [n] or null: ones */
  const float* col_bias;  /* [n] or null */
  const float* row_bias;  /* [m] or null */
  const float* addend;    /* D or null */
  int64_t addend_row_stride;
  float alpha;
  int32_t accumulate; /* 0 or 1 */
  int32_t activation; /* FolioActivation */
  int32_t precision;  /* FolioPrecision: what it may lose, if a level has something faster */
  int32_t b_is_far;   /* B, of which this may be a part, is more than L2 keeps until the next run */
  int32_t b_goes_on;  /* whole panels, and behind them those that are multiplied by next */
  float clip_lo, clip_hi;
  void* scratch;    /* FOLIO_GEMM_SCRATCH bytes, 64-byte aligned, or null; faster where numbers are
                     * multiplied in parts and nothing elsewhere. The same bits. */
  const char* next; /* or null */
  int64_t next_rows, next_bytes, next_stride; /* bytes of a row, and between rows */
} FolioGemmF32;

/* Arguments of gemm_f64, all strides free:
 *
 *   C[i, j] = alpha * sum over p of A[i, p] * B[p, j]   i < m, j < n, p < k
 *
 * C[i, j] = c[i * c_row_stride + j], which overlaps nothing; k = 0 is an empty sum. */
typedef struct FolioGemmF64 {
  int64_t m, n, k;
  const double* a;
  int64_t a_row_stride, a_col_stride;
  const double* b;
  int64_t b_row_stride, b_col_stride;
  double* c;
  int64_t c_row_stride;
  double alpha;
  void* scratch; /* folio_gemm_f64_scratch() bytes, 64-byte aligned; may be null for 0 bytes */
} FolioGemmF64;

/* Of gemm_f64: how much of k, of B's columns and of A's rows stands in the scratch at once; what
 * columns are padded to at most; and how many rows, or columns, take the other operand in place. */
#define FOLIO_F64_DEPTH 256
#define FOLIO_F64_COLUMNS 512
#define FOLIO_F64_ROWS 72
#define FOLIO_F64_ROW_STRIDE (FOLIO_F64_DEPTH + 8) /* a line more, for other sets of a cache */
#define FOLIO_F64_PANEL 16
#define FOLIO_F64_FEW_ROWS 4

static inline int folio_f64_few_rows(const FolioGemmF64* g) {
  return g->m <= FOLIO_F64_FEW_ROWS && g->b_col_stride == 1;
}
static inline int folio_f64_few_turned(const FolioGemmF64* g) {
  return g->m <= FOLIO_F64_FEW_ROWS && g->b_row_stride == 1;
}
static inline int folio_f64_few_columns(const FolioGemmF64* g) {
  if (g->n == 1 && g->a_row_stride == 1 && g->c_row_stride == 1) return 1;
  return g->n <= FOLIO_F64_FEW_ROWS && g->a_col_stride == 1;
}
static inline int64_t folio_gemm_f64_scratch(const FolioGemmF64* g) {
  if (folio_f64_few_rows(g) || folio_f64_few_turned(g) || folio_f64_few_columns(g)) return 0;
  const int64_t depth = g->k < FOLIO_F64_DEPTH ? g->k : FOLIO_F64_DEPTH;
  const int64_t padded = (g->n + FOLIO_F64_PANEL - 1) / FOLIO_F64_PANEL * FOLIO_F64_PANEL;
  const int64_t columns = padded < FOLIO_F64_COLUMNS ? padded : FOLIO_F64_COLUMNS;
  const int64_t rows = g->m < FOLIO_F64_ROWS ? g->m : FOLIO_F64_ROWS;
  return (columns * depth + rows * FOLIO_F64_ROW_STRIDE) * (int64_t)sizeof(double);
}

/* Arguments of the window slots: `lines` lines of output pixels with channels side by side.
 * Tap t of pixel i of line l is the `channels` floats at x[t] + l * x_line + i * x_step; taps
 * outside of the image are left out by the caller. y[l * y_line + i * y_step + c], c < channels;
 * y overlaps nothing. Neighbouring lines together are read from L2 once. */
typedef struct FolioWindowF32 {
  int64_t lines, pixels, channels, taps;
  const float* const* x; /* [taps] */
  int64_t x_line, x_step;
  const float* const* w; /* depthwise: [taps] rows of `channels` floats; grouped: see there */
  int64_t group;         /* grouped: 2, 4, 8 or a multiple of 16, and a divisor of `channels` */
  int64_t w_panel;       /* grouped: floats between w[t] of 16 channels and of the next 16 */
  const float* bias;     /* depthwise, grouped: [channels] or null */
  int32_t activation;    /* depthwise, grouped: FolioActivation */
  float clip_lo, clip_hi;
  float scale; /* sum_window: y = sum * scale */
  float* y;
  int64_t y_line, y_step;
} FolioWindowF32;

/* Arguments of max_lines_f32 and sum_lines_f32: of some planes `lines` lines of `pixels` outputs,
 * each of counts[l] rows of x_pixels floats, which begin at the next ones of `rows`; joined are
 *   x[p * x_plane + r + i * pixel_step + t * tap_step - left]
 * of the rows r of line l, then t < taps: y[p * y_plane + l * pixels + i]. What is outside of a row
 * is left out. taps, pixel_step and tap_step are 1 or more. */
typedef struct FolioLinesF32 {
  int64_t planes, x_plane, y_plane;
  int64_t lines, pixels;
  const int64_t* counts;
  const int64_t* rows;
  int64_t x_pixels;
  int64_t taps, pixel_step, tap_step, left;
  const float* by_lines; /* sum: y[p, l, i] is divided by by_lines[l] * by_pixels[i] */
  const float* by_pixels;
  const float* x;
  float* joined; /* scratch of folio_lines_floats() */
  float* y;      /* overlaps nothing */
} FolioLinesF32;

/* Outputs of a line that are computed at once. */
static inline int64_t folio_lines_part(const FolioLinesF32* l) {
  const int64_t most = 2048 / l->pixel_step / 16 * 16;
  const int64_t part = most < 16 ? 16 : most;
  return part < l->pixels ? part : l->pixels;
}
/* The columns that they are of. */
static inline int64_t folio_lines_pitch(const FolioLinesF32* l) {
  return (folio_lines_part(l) - 1) * l->pixel_step + (l->taps - 1) * l->tap_step + 1;
}
/* All lines' columns, and what vectors reach behind them. */
static inline int64_t folio_lines_floats(const FolioLinesF32* l) {
  return l->lines * folio_lines_pitch(l) + 64;
}

/* Arguments of filter_plane_f32: one filter over some planes of an image, x_plane floats apart,
 * whose lines of floats stand one after the other, as those of y do. x outside of a plane is 0:
 *   y[l, i] = activation(bias + sum over q < planes, r < rows, c < columns of
 *             w[(q * rows + r) * columns + c] * x[q][l * line_step + r * row_step - top,
 *                                                    i * pixel_step + c * column_step - left])
 * Steps are 1 or more, pixel_step 1 or 2; planes, rows, columns and x_lines 1 or more. A part of
 * the lines has another `top`. */
typedef struct FolioPlaneF32 {
  int64_t lines, pixels;
  int64_t planes, x_plane;
  int64_t x_lines, x_pixels;
  int64_t rows, columns;
  int64_t line_step, pixel_step;
  int64_t row_step, column_step;
  int64_t top, left;
  const float* x;
  const float* w;
  float* y; /* overlaps nothing */
  float bias;
  int32_t activation; /* FolioActivation */
  float clip_lo, clip_hi;
} FolioPlaneF32;

/* F32P16: columns in panels of 16, dst[(j / 16) * k * 16 + p * 16 + j % 16] = B[p, j], columns
 * beyond n are zero. A panel starts every k * 16 floats, so gemm over columns [16 q, ...) takes
 * b + q * k * 16. */
#define FOLIO_F32P16_COLUMNS 16

/* BF16P16 of [k, n]: panels of 16 columns as F32P16 has, of bfloat16; rows stand in pairs, element
 * beside element, with zeros for the last one's missing half. */
static inline int64_t folio_bf16p16_rows(int64_t k) { return k + k % 2; }
/* Where row p and column c of a panel is. */
static inline int64_t folio_bf16p16_at(int64_t p, int64_t c) {
  return (p / 2 * FOLIO_F32P16_COLUMNS + c) * 2 + p % 2;
}

/* What becomes of a 32-bit sum of products of bytes (wrapping) in column j of row i:
 *
 *   sum = products + offset[j] - a_zero * column_sum[j] - row_sum[i] * b_zero[j]
 *   kFolioToInt32: sum;   kFolioToFloat: (float)sum * scale[j] + bias[j]
 *   kFolioToByte:  clamp(round((float)sum * scale[j]) + zero, lo, hi) as the low 8 bits, ties to
 *                  even, NaN as 0; [lo, hi] lies in the range of int8 or uint8, zero as well;
 *                  with `add`: add_b8 of that byte and addend[i * addend_row_stride + j], or of
 *                  the addend and that byte
 * Exact, so equal bits at every level. */
typedef enum FolioSumsTo { kFolioToInt32 = 0, kFolioToFloat, kFolioToByte } FolioSumsTo;

/* How bytes stand for numbers: (code - zero) * scale. */
typedef struct FolioByteScale {
  float scale;
  int32_t zero;
  int32_t is_signed; /* 0 or 1 */
} FolioByteScale;

/* The parameters of add_b8, all signed or none, and which operand the addend is. */
typedef struct FolioByteAdd {
  FolioByteScale a, b, to;
  int32_t addend_is_a; /* 0 or 1 */
} FolioByteAdd;

typedef struct FolioSums {
  const int32_t* offset;     /* [n] or null */
  const int32_t* column_sum; /* [n] or null; with a_zero */
  int32_t a_zero;
  const int32_t* row_sum;  /* [m] or null; with b_zero */
  const int32_t* b_zero;   /* [n] */
  const float* scale;      /* [n] unless to int32 */
  const float* bias;       /* [n] or null; to float only */
  int32_t to;              /* FolioSumsTo */
  int32_t zero, lo, hi;    /* to byte */
  const FolioByteAdd* add; /* to byte, or null; of signed bytes if lo < 0 */
  const uint8_t* addend;   /* with add */
  int64_t addend_row_stride;
} FolioSums;

/* S8P16K4: a matrix B [k, n] of signed bytes, columns in panels of 16, four rows together:
 *   dst[((j / 16) * ceil(k / 4) + p / 4) * 64 + j % 16 * 4 + p % 4] = B[p, j], zero padded,
 * then the int32 sums of the columns, 16 for each panel. */
#define FOLIO_S8P16K4_GROUP 64

/* C[i, j] = FolioSums of sum over p of A[i, p] * B[p, j], A unsigned:
 * A[i, p] = a[i * a_row_stride + p], or, when a_rows is not null,
 * a_rows[p / a_run * m + i][p % a_run] (rows of pieces that lie anywhere, as the pixels under a
 * convolution's taps do; a_run is a multiple of 4, k of a_run).
 * Only k bytes of a row are read. Zero-initialise, then set. */
typedef struct FolioGemmU8 {
  int64_t m, n, k;
  const uint8_t* a;
  int64_t a_row_stride;
  const uint8_t* const* a_rows; /* [k / a_run][m] or null */
  int64_t a_run;
  const void* b; /* S8P16K4 of [k, n], 64-byte aligned; its column sums are not used */
  FolioSums sums;
  void* c; /* int32, float or bytes */
  int64_t c_row_stride;
} FolioGemmU8;

/* C[i, j] = sum over p of A[i, p] * B[p, j] of words, modulo 2^32; i < m, p < k, and j < n filled
 * up to whole panels of 16. B is S16P16K2: B[p, j] is word
 *   ((j / 16) * (k / 2) + p / 2) * 32 + j % 16 * 2 + p % 2,
 * aligned to 64 bytes; k is a multiple of 16. */
typedef struct FolioGemmS16 {
  int64_t m, n, k;
  const int16_t* a;
  int64_t a_row_stride;
  const void* b;
  int32_t* c;
  int64_t c_row_stride;
  const void* next; /* B of the product that comes next, or null: may be fetched meanwhile */
} FolioGemmS16;

/* Of M[e][t][c] = m[e * plane_stride + t * row_stride + c], which is there up to whole panels of 16
 * channels, sum k = 4 i + j of a tile t is A M A' / 576 as winograd.h has it, and becomes what
 * `sums` says, c being the column, at = pixels[t * 16 + k] the row of addends and of y:
 *   y[at * y_step + c]; below 0 there is no pixel. row_sum and b_zero are null. */
typedef struct FolioWinogradOutputU8 {
  int64_t tiles, channels;
  const int32_t* m;
  int64_t plane_stride, row_stride;
  const int64_t* pixels;
  FolioSums sums;
  void* y; /* int32, float or bytes */
  int64_t y_step;
} FolioWinogradOutputU8;

/* Filters of one channel each over lines of pixels, l < lines, i < pixels, j < channels:
 * y[l * pixels + i, j] = FolioSums of sum over s < sets, r < rows, c < columns of
 *     x[l * x_line_stride + r * x_row_stride + i * step + c * dilation][j] *
 *     B[(s * rows + r) * columns + c, j];
 * row_sum, b_zero and add are null. */
#define FOLIO_MAX_BYTE_TAPS 160 /* 7 x 7 thrice */
typedef struct FolioDepthwiseU8 {
  int64_t lines, pixels, channels;
  int64_t sets;            /* of weights: their sums are weights of more than a byte */
  int64_t rows, columns;   /* of taps; sets * rows * columns <= FOLIO_MAX_BYTE_TAPS */
  int64_t step, dilation;  /* of columns */
  const uint8_t* const* x; /* `channels` bytes each */
  int64_t x_line_stride, x_row_stride;
  const void* b; /* S8P16K4 of [sets * rows * columns, channels] */
  FolioSums sums;
  void* y;
  int64_t y_row_stride;
} FolioDepthwiseU8;

/* B[p, j] = bytes[p / inner * outer_stride + p % inner * row_stride + j * col_stride] ^ flip. */
typedef struct FolioPackS8 {
  int64_t k, n;
  const void* bytes;
  int64_t inner, outer_stride, row_stride, col_stride;
  uint8_t flip; /* 0x80 for unsigned bytes: their zero point is then 128 less */
} FolioPackS8;

typedef void (*FolioUnaryF32)(int64_t n, const float* x, float* y);
typedef void (*FolioUnaryF64)(int64_t n, const double* x, double* y);
typedef void (*FolioShapedF32)(int64_t n, const float* x, float p, float q, float* y);

/* a_step and b_step are 0 (one value for all) or 1. */
typedef void (*FolioBinaryF32)(int64_t n, const float* a, int64_t a_step, const float* b,
                               int64_t b_step, float* y);

/* x[i * x_stride + j], i < rows, j < n, joined to what `acc` holds. */
typedef void (*FolioReduceF32)(int64_t rows, int64_t n, const float* x, int64_t x_stride,
                               float* acc);
typedef void (*FolioReduceF64)(int64_t rows, int64_t n, const double* x, int64_t x_stride,
                               double* acc);
typedef void (*FolioReduceS32)(int64_t rows, int64_t n, const int32_t* x, int64_t x_stride,
                               int32_t* acc);
typedef void (*FolioReduceS64)(int64_t rows, int64_t n, const int64_t* x, int64_t x_stride,
                               int64_t* acc);

typedef struct FolioKernels {
  /* dst = F32P16 of B, B[p, j] = b[p * b_row_stride + j * b_col_stride], p < k, j < n: writes
   * ceil(n / 16) * k * 16 floats; dst is 64-byte aligned. Exact bits, NaN payloads included. Panels
   * are independent: to pack columns [16 q, 16 r) pass b + 16 q * b_col_stride, dst + 16 q * k. */
  void (*pack_f32p16)(int64_t k, int64_t n, const void* b, int64_t b_row_stride,
                      int64_t b_col_stride, float* dst);

  /* The inverse: gives back the exact bytes. */
  void (*unpack_f32p16)(int64_t k, int64_t n, const float* src, void* b, int64_t b_row_stride,
                        int64_t b_col_stride);

  /* See FolioGemmF32. Products are added in the order of p, in f32, for every element alone (the
   * levels from AVX2 on: one fused multiply-add each), so callers may split rows anywhere and
   * columns at multiples of 16, and k with `accumulate` (at multiples of FOLIO_GEMM_ONE_SUM unless
   * the precision is kFolioChain), and get identical bits.
   * Accuracy: see FolioPrecision. m <= 4 streams b once (a matrix-vector product).
   * Rows of A that are contiguous are read where they stand; others are packed on the stack, which
   * takes at most 64 KiB of it, and 320 KiB where numbers are multiplied in parts. */
  void (*gemm_f32)(const FolioGemmF32* args);

  /* The same for n <= FOLIO_MOST_DOTS and a B whose columns are contiguous, B[p, j] = b[j * k + p]
   * at any address: a vector is neighbours in k. a_col_stride is 1, c_row_stride and
   * addend_row_stride are n; row_bias and accumulate are not used, nor is anything multiplied in
   * parts. Accuracy: as kFolioChain; an element's sum depends on its row and column and on a_run
   * alone. */
  void (*dots_f32)(const FolioGemmF32* args);

  /* The same as gemm_f32 for a B that lies row-major, as in a mapped file, B[p, j] being the float
   * at b + 4 * (p * b_row_stride + j), any alignment: reads it without packing. args->b and
   * args->next are not read; a_col_stride is 1 if m > 4, k is not 0 then. The same bits as gemm_f32
   * in the precision kFolioChain. */
  void (*gemm_plain_f32)(const FolioGemmF32* args, const void* b, int64_t b_row_stride);

  /* The same for m <= 4 and a B of panels of 16 bits at any address, F16P16 (as F32P16, of float16)
   * or, if is_bfloat16, BF16P16: widens them in registers. The same bits as gemm_f32 from what
   * f16_to_f32 or bf16p16_to_f32 make of them. */
  void (*gemv_b16)(const FolioGemmF32* args, const void* b, int32_t is_bfloat16);

  /* See FolioGemmF64. Products are added in the order of p for every element alone (from AVX2 on by
   * fused multiply-adds), so that callers may split rows and columns as they like.
   * Accuracy: (k + 1) * 2^-53 * sum |A| |B|, and a rounding for alpha. */
  void (*gemm_f64)(const FolioGemmF64* args);

  FolioUnaryF32 unary_f32[kFolioUnaryCount];
  FolioUnaryF64 unary_f64[kFolioUnaryF64Count];
  FolioShapedF32 shaped_f32[kFolioShapedCount];
  FolioBinaryF32 binary_f32[kFolioBinaryCount];

  /* y[i] = x[i] clamped as kFolioActClip. */
  void (*clip_f32)(int64_t n, const float* x, float lo, float hi, float* y);

  /* Reductions of x[0..n). n == 0: 0, 0, 0, -inf, +inf. Accuracy of sums: n * 2^-24 * sum |x|.
   * max and min are NaN when any x is. */
  float (*sum_f32)(int64_t n, const float* x);
  float (*sum_squares_f32)(int64_t n, const float* x);
  float (*dot_f32)(int64_t n, const float* a, const float* b);
  float (*max_f32)(int64_t n, const float* x);
  float (*min_f32)(int64_t n, const float* x);

  /* See FolioReduceF32. Rows: acc[i] is joined with row i, in an order that depends on n only.
   * Columns: acc[j] is joined with x[0 + j], x[x_stride + j], ... one after the other, so that rows
   * may be split anywhere. Accuracy of sums of `count` elements: count * 2^-24 * sum of their
   * magnitudes; of products relative; of doubles 2^-53. Integers wrap. */
  FolioReduceF32 reduce_rows_f32[kFolioReduceCount];
  FolioReduceF32 reduce_columns_f32[kFolioReduceCount];
  FolioReduceF64 reduce_rows_f64[kFolioReduceCount];
  FolioReduceF64 reduce_columns_f64[kFolioReduceCount];
  FolioReduceS32 reduce_rows_s32[kFolioReduceCount];
  FolioReduceS32 reduce_columns_s32[kFolioReduceCount];
  FolioReduceS64 reduce_rows_s64[kFolioReduceCount];
  FolioReduceS64 reduce_columns_s64[kFolioReduceCount];

  /* y[i] = bias + sum over t of w[t] * x[offsets[t] + i], i < n, t < taps: a small filter over rows
   * that lie anywhere in x. Added in the order of t from bias on, in f32 (the levels from AVX2 on:
   * one fused multiply-add each). y overlaps nothing. */
  void (*shifted_sum_f32)(int64_t n, int64_t taps, const float* w, const int64_t* offsets,
                          const float* x, float bias, float* y);

  /* See FolioWindowF32. Each element alone, in the order of taps, in f32:
   *   depthwise  y = activation(bias + sum over t of w[t] * x[t]); from AVX2 on fused multiply-adds
   *   grouped    y[c] = activation(bias[c] + sum over t, then s < group, of
   *              w[t][c / 16 * w_panel + 16 * s + c % 16] * x[t][c / group * group + s]);
   *              in an order that `pixels` and where the taps lie decide; w: panels as F32P16's
   *   max        y = max over t of x[t], NaN when any is; -inf without taps
   *   sum        y = scale * sum over t of x[t] */
  void (*depthwise_f32)(const FolioWindowF32* args);
  void (*grouped_f32)(const FolioWindowF32* args);
  void (*max_window_f32)(const FolioWindowF32* args);
  void (*sum_window_f32)(const FolioWindowF32* args);

  /* See FolioLinesF32. Each element alone: max is NaN when any is, -inf of nothing; sum adds in
   * f32, of nothing 0, and divides. */
  void (*max_lines_f32)(const FolioLinesF32* args);
  void (*sum_lines_f32)(const FolioLinesF32* args);

  /* See FolioPlaneF32. Each element alone, in the order of q, r, then c, from bias on, in f32; from
   * AVX2 on fused multiply-adds. */
  void (*filter_plane_f32)(const FolioPlaneF32* args);

  /* See winograd.h; each element alone. Accuracy of V: 8 * 2^-24 * |B| |d| |B'|; of y without what
   * follows A M A': 10 * 2^-24 * |A| |M| |A'|. winograd_output_f32 gives 0 when an A M A', or
   * the sum of those of a tile and channel, is not finite, without a pixel too; else 1. */
  void (*winograd_filter_f32)(const FolioWinogradFilter* args);
  void (*winograd_input_f32)(const FolioWinogradInput* args);
  int32_t (*winograd_output_f32)(const FolioWinogradOutput* args);

  /* Rows of n, one behind the other, each: y[i] = exp(x[i] - max) / sum of exp(x[j] - max);
   * log_softmax is its logarithm, x[i] - max - log(sum). All -inf, or any +inf or NaN: NaN, as in
   * the formula. y may be x. A row's bits depend on n and its own numbers only. */
  void (*softmax_f32)(int64_t rows, int64_t n, const float* x, float* y);
  void (*log_softmax_f32)(int64_t rows, int64_t n, const float* x, float* y);

  /* The same of columns: element j of column i stands at x[j * x_stride + i], j < n. */
  void (*softmax_columns_f32)(int64_t n, int64_t columns, const float* x, int64_t x_stride,
                              float* y, int64_t y_stride);
  void (*log_softmax_columns_f32)(int64_t n, int64_t columns, const float* x, int64_t x_stride,
                                  float* y, int64_t y_stride);

  /* One row, two passes: mean = sum(x) / n; inv_std = 1 / sqrt(sum((x - mean)^2) / n + eps);
   * y[i] = (x[i] - mean) * inv_std * gamma[i] + beta[i]. gamma and beta: [n] or null (1 and 0).
   * mean and inv_std: where to write one float each, or null. */
  void (*layer_norm_f32)(int64_t n, const float* x, const float* gamma, const float* beta,
                         float eps, float* y, float* mean, float* inv_std);

  /* One row: y[i] = x[i] * inv_rms * gamma[i], inv_rms = 1 / sqrt(sum(x^2) / n + eps). */
  void (*rms_norm_f32)(int64_t n, const float* x, const float* gamma, float eps, float* y,
                       float* inv_rms);

  /* Between f32 and the 16-bit formats (IEEE half, bfloat16), to nearest, ties to even, overflow
   * to inf, NaN to a quiet NaN; widening is exact. Not in place. */
  void (*f16_to_f32)(int64_t n, const void* x, float* y);
  void (*f32_to_f16)(int64_t n, const float* x, void* y);
  void (*bf16_to_f32)(int64_t n, const void* x, float* y);
  void (*f32_to_bf16)(int64_t n, const float* x, void* y);

  /* The first rows of a panel of BF16P16 as rows of F32P16. Bits are moved: a NaN stays as it is.
   */
  void (*bf16p16_to_f32)(int64_t rows, const void* x, float* y);

  /* y[j * y_row_stride + i] = x[i * x_row_stride + j], i < rows, j < cols, elements of 32 bits
   * (float, int32, ...) moved as bits. Strides >= the row's length; x and y do not overlap. */
  void (*transpose_b32)(int64_t rows, int64_t cols, const void* x, int64_t x_row_stride, void* y,
                        int64_t y_row_stride);
  /* The same of 16 and of 8 bits. */
  void (*transpose_b16)(int64_t rows, int64_t cols, const void* x, int64_t x_row_stride, void* y,
                        int64_t y_row_stride);
  void (*transpose_b8)(int64_t rows, int64_t cols, const void* x, int64_t x_row_stride, void* y,
                       int64_t y_row_stride);

  /* Products of bytes; see FolioPackS8, FolioGemmU8 and FolioDepthwiseU8. Callers may split rows
   * anywhere and columns at multiples of 16. Takes at most 144 KiB of the stack. */
  void (*pack_s8p16k4)(const FolioPackS8* args, void* dst);
  /* The inverse: writes the bytes that `src`, aligned to 64, was packed from. args->bytes and the
   * sums of the columns are not read. */
  void (*unpack_s8p16k4)(const FolioPackS8* args, const void* src, void* bytes);
  void (*gemm_u8)(const FolioGemmU8* args);
  void (*depthwise_u8)(const FolioDepthwiseU8* args);
  /* Winograd's algorithm for bytes: see winograd.h, FolioGemmS16 and FolioWinogradOutputU8. Exact,
   * so equal bits at every level. */
  void (*winograd_input_u8)(const FolioWinogradInputU8* args);
  void (*gemm_s16)(const FolioGemmS16* args);
  void (*winograd_output_u8)(const FolioWinogradOutputU8* args);
  /* Of x[0..n), wrapping. */
  int32_t (*sum_u8)(int64_t n, const uint8_t* x);

  /* y[i] = clamp(round(x[i] / scale) + zero) in the range of y, ties to even, NaN as 0: exactly so
   * at every level. */
  void (*quantize_f32)(int64_t n, const float* x, const FolioByteScale* to, uint8_t* y);
  /* y[i] = (x[i] - zero) * scale. */
  void (*dequantize_b8)(int64_t n, const uint8_t* x, const FolioByteScale* from, float* y);
  /* y[i] = clamp(round(a[i] * p + (b[i] * q + r)) + to->zero) in the range of y, ties to even, NaN
   * as 0, where p and q are the scales of a and b divided by that of y and r = -(p * a_from->zero +
   * q * b_from->zero), each operation of p, q and r rounded to f32; the others are two fused
   * multiply-adds. */
  void (*add_b8)(int64_t n, const uint8_t* a, const FolioByteScale* a_from, const uint8_t* b,
                 const FolioByteScale* b_from, const FolioByteScale* to, uint8_t* y);
  /* y[i] = what quantize_f32 makes of the product of what dequantize_b8 makes of a[i] and b[i]. */
  void (*mul_b8)(int64_t n, const uint8_t* a, const FolioByteScale* a_from, const uint8_t* b,
                 const FolioByteScale* b_from, const FolioByteScale* to, uint8_t* y);
  /* y[i] = table[x[i]]; the table has 256 codes and overlaps nothing, y may be x. */
  void (*map_b8)(const uint8_t* table, int64_t n, const uint8_t* x, uint8_t* y);
  /* y[i] = the largest of rows[r][i], r < count, count >= 1, as int8 or uint8. y may be rows[0]. */
  void (*max_b8)(int64_t n, int64_t count, const uint8_t* const* rows, int32_t is_signed,
                 uint8_t* y);

  /* Products with weights stored as small integers in blocks, see block_weights.h. W may be
   * rounded to f32. Each y is computed alone: columns may be split anywhere.
   * Accuracy: (k + 3) * 2^-24 * sum |A| |W|; of more than few rows and kFolioMedium 2^-7 + 2^-16 of
   * that sum more, as A and W are rounded to bfloat16. */
  void (*block_dots_f32)(const FolioBlockDotsF32* args);

  /* With A rounded to integers: exact within a block, as FolioBlockDotsS8 defines it bit by bit.
   * Rows and columns may be split anywhere. */
  void (*block_dots_s8)(const FolioBlockDotsS8* args);

  /* row = a[0..k) as block_dots_s8 reads it (`bits` and `block` of the weights): each block is
   * rounded to the nearest multiple (ties to even) of its largest magnitude / 127; below 1e-36 to
   * zeros. A block with inf or NaN has a scale of NaN. block <= 256. */
  void (*block_round_f32)(int64_t k, int64_t block, int32_t bits, const float* a, void* row);

  /* dst = F32P16 of rows [first, first + depth) of W transposed (k rows, n columns), panels padded
   * with zeros. `first` is a multiple of 256, first + depth <= k. */
  void (*block_widen_f32p16)(const FolioBlockWeights* w, int64_t first, int64_t depth, float* dst);

  /* No functions. The FolioPrecision of products that are large enough for it (product_precision in
   * core/ops/op_gemm.h), not kFolioChain; and in which of them gemm_f32 multiplies parts: it rounds
   * its operands anew in each call, and computes faster than in kFolioChain, which it takes the
   * others for. */
  int32_t precision;
  int32_t multiplies_parts; /* a bit (1 << FolioPrecision) each */
  int32_t dots_many_rows;   /* 1: see folio_dots_many_rows */
  int32_t winograd_bytes;   /* 1: a quarter of the products, of words, take less time than those of
                             * bytes: not where these have tiles */
  int32_t orders_rows;      /* 1: block_dots_s8 needs scratch for them: folio_block_scratch_bytes */
  int32_t plain_rows; /* so many rows take gemm_plain_f32 less time than to pack B and gemm_f32 */
  int32_t sum_depth;  /* most of k that gemm_f32 sums before C is touched; a multiple of 256 */
} FolioKernels;

static inline int folio_multiplies_parts(const FolioKernels* kernels, int32_t precision) {
  return kernels->multiplies_parts >> precision & 1;
}

/* Whether block_dots_f32 takes any number of rows of such weights, and faster than gemm_f32 takes
 * what block_widen_f32p16 makes of them. Their zeros are whole numbers then. */
static inline int folio_dots_many_rows(const FolioKernels* kernels, const FolioBlockWeights* w) {
  const int64_t blocks = (w->k + w->block - 1) / w->block;
  const int is_full = folio_block_padded(blocks) * 3 <= blocks * 4; /* the padding is multiplied */
  return kernels->dots_many_rows && w->bits >= 4 && w->block <= 256 && is_full;
}
/* How many bfloat16 numbers a float of A is then: one only where so much may be lost. */
static inline int folio_block_parts(int32_t precision) { return precision == kFolioMedium ? 1 : 3; }
/* Whether that is faster, with one, than block_dots_s8 of so many rounded rows; it is no less
 * exact: a number is rounded to 2^-8 of itself at most, not to 1/254 of its block's largest. */
static inline int folio_dots_instead_of_rounded(const FolioKernels* kernels,
                                                const FolioBlockWeights* w, int has_zeros,
                                                int64_t m) {
  const int is_short = w->bits == 4 ? w->block <= 32 : has_zeros;
  return m > 16 && is_short && folio_dots_many_rows(kernels, w);
}

#ifdef __cplusplus
}
#endif
