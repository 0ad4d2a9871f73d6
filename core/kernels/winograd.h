/* Winograd's F(4x4, 3x3): the 4 x 4 outputs of a 3 x 3 filter with stride 1 that a tile of 6 x 6
 * pixels gives, by 36 products instead of 144. Of each channel, tile d and filter g:
 *
 *   V = B d B'     U = G g G'     y = A M A'     M = sum over channels of U * V, by elements
 *
 * With the points 0, +-a, +-b and infinity, a = 3/4, b = 3/2:
 *
 *   B = | a2b2   0      -a2-b2   0      1  0 |   A = | 1  1   1   1   1   0 |
 *       | 0     -a b2   -b2      a      1  0 |       | 0  a  -a   b  -b   0 |
 *       | 0      a b2   -b2     -a      1  0 |       | 0  a2  a2  b2  b2  0 |
 *       | 0     -a2 b   -a2      b      1  0 |       | 0  a3 -a3  b3 -b3  1 |
 *       | 0      a2 b   -a2     -b      1  0 |
 *       | 0      a2b2    0      -a2-b2  0  1 |   G = | f0    0      0     |
 *                                                    | fa    fa a   fa a2 |
 *   f0 = 1 / (a2 b2)            = 64 / 81            | fa   -fa a   fa a2 |
 *   fa = 1 / (2 a2 (a2 - b2))   = -128 / 243         | fb    fb b   fb b2 |
 *   fb = 1 / (2 b2 (b2 - a2))   = 32 / 243           | fb   -fb b   fb b2 |
 *                                                    | 0     0      1     |
 *
 * All of A and B are exact floats, and these points lose a fifth of what the usual 0, +-1, +-2 do.
 * Element (i, j) of a tile of 6 x 6 is plane 6 i + j.
 *
 * Of one line of pixels V = B d, U = G g, y = A M: so F(4, 3), of 6 planes, and F(4, 4), of 7, with
 * the points 0, +-a, +-b, c and infinity, a = 1/2, b = 1, c = 2. Its matrices: B's row of a point
 * has the coefficients of the product of all x less another point, of infinity of all x less a
 * point; A's column of a point has its powers 0 to 3, of infinity 0, 0, 0, 1; G's row of a point
 * has its powers by the product of it less the others (-1/2, 9/16, 15/16, -3/2, -9/2, 45/2), of
 * infinity 0, 0, 0, 1.
 *
 * Of bytes F(4x4, 3x3) in whole numbers, exactly: the points 0, +-1, +-2 and infinity, V of pixels
 * less 128, and U of 24 times the usual G (of infinity 6 times, which A makes up for):
 *
 *   B = | 4  0 -5  0  1  0 |   G = |  6  0  0 |   A = | 1  1  1  1  1  0 |
 *       | 0 -4 -4  1  1  0 |       | -4 -4 -4 |       | 0  1 -1  2 -2  0 |
 *       | 0  4 -4 -1  1  0 |       | -4  4 -4 |       | 0  1  1  4  4  0 |
 *       | 0 -2 -1  2  1  0 |       |  1  2  4 |       | 0  1 -1  8 -8  4 |
 *       | 0  2 -1 -2  1  0 |       |  1 -2  4 |
 *       | 0  4  0 -5  0  1 |       |  0  0  6 |
 *
 * |V| <= 12800 and |U| <= 18432 are words. Their products are summed modulo 2^32, and so is A M A',
 * 576 times the sum y of the convolution. 576 = 9 * 2^6: by the inverse of 9 modulo 2^32 it becomes
 * 2^6 y, which still has all of y if that is below 2^25: whatever overflowed before is of no
 * account. y is at most 2^7 times the magnitudes of a filter's weights. */
#pragma once

#include <stdint.h>

#define FOLIO_WINOGRAD_EDGE 6 /* pixels of a square's side */
#define FOLIO_WINOGRAD_SIDE 4 /* and outputs, as of a line */
#define FOLIO_WINOGRAD_LINE 7 /* pixels of a line of 4 taps */
#define FOLIO_WINOGRAD_PLANES (FOLIO_WINOGRAD_EDGE * FOLIO_WINOGRAD_EDGE)
#define FOLIO_WINOGRAD_OUTPUTS (FOLIO_WINOGRAD_SIDE * FOLIO_WINOGRAD_SIDE)

/* u[e * plane_stride + c * 16 + j] = U of g[tap * tap_stride + c * 16 + j], 16 filters side by
 * side, tap = 3 * row + column of 9, or one of a line's; c < channels. Computed in double without
 * fused multiply-adds, of squares first down the columns, then along the rows:
 *   (f0 g0,  fa (e + o),  fa (e - o),  fb (p + q),  fb (p - q),  g2),
 *   e = g0 + a2 g2,  o = a g1,  p = g0 + b2 g2,  q = b g1,
 * of lines of 4 taps
 *   (-2 g0,  16/9 (e + o),  16/15 (e - o),  -2/3 (p + q),  -2/9 (p - q),
 *    2/45 ((g0 + 4 g2) + (2 g1 + 8 g3)),  g3),
 *   e = g0 + g2 / 4,  o = g1 / 2 + g3 / 8,  p = g0 + g2,  q = g1 + g3,
 * and rounded to f32 at the end: the same bits at every level. */
typedef struct FolioWinogradFilter {
  int64_t channels;
  const float* g;
  int64_t tap_stride;
  float* u;
  int64_t plane_stride;
  int32_t line_taps; /* 3 or 4; 0: a square */
} FolioWinogradFilter;

/* v[e * plane_stride + t * row_stride + c] = V of the pixels x[t * 36 + 6 i + j], of lines
 * x[t * pixels + j], which are `channels` floats each; t < tiles. */
typedef struct FolioWinogradInput {
  int64_t tiles, channels;
  const float* const* x;
  float* v;
  int64_t plane_stride, row_stride;
  int32_t line_taps; /* 3 or 4; 0: a square */
} FolioWinogradInput;

/* Of M[e][t][c] = m[e * plane_stride + t * row_stride + c], output k = 4 i + j, of lines j, of a
 * tile t:
 *   y[at * y_step + c] = activation(scale[c] * (A M A') + bias[c] + addend[at * addend_step + c]),
 *   of lines A M, at = pixels[t * outputs + k]
 * Below 0 there is no pixel. y and addend do not overlap. */
typedef struct FolioWinogradOutput {
  int64_t tiles, channels;
  const float* m;
  int64_t plane_stride, row_stride;
  const int64_t* pixels;
  int64_t y_step, addend_step;
  const float* scale;  /* [channels] or null: ones */
  const float* bias;   /* [channels] or null */
  const float* addend; /* or null */
  int32_t activation;  /* FolioActivation */
  float clip_lo, clip_hi;
  float* y;
  int32_t line_taps; /* 3 or 4; 0: a square */
} FolioWinogradOutput;

/* What the magnitudes of a filter's weights may add up to: those of 227 channels always do. */
#define FOLIO_S16WINO43_MAGNITUDES ((1 << 25 >> 7) - 1)

/* v[e * plane_stride + t * row_stride + c] = V of the bytes x[t * 36 + 6 i + j][c] less 128;
 * t < tiles, c < channels, which are a multiple of 16. */
typedef struct FolioWinogradInputU8 {
  int64_t tiles, channels;
  const uint8_t* const* x;
  int16_t* v;
  int64_t plane_stride, row_stride;
} FolioWinogradInputU8;
