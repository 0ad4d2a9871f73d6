/* Two to four planes to pixels of their elements side by side, and back: 16 bytes of each plane at
 * a time. A vector of one side takes bytes of each vector of the other. */

/* [vector of the result][vector that is read]: which byte goes where, 0x80 for none. */
template <int kPlanes>
struct PlaneOrder {
  uint8_t from[kPlanes][kPlanes][16];
};

template <int kPlanes, int kSize>
constexpr PlaneOrder<kPlanes> make_pixel_order() {
  PlaneOrder<kPlanes> order = {};
  for (int v = 0; v < kPlanes; ++v) {
    for (int b = 0; b < 16; ++b) {
      const int element = (16 * v + b) / kSize;
      for (int p = 0; p < kPlanes; ++p) {
        const int at = element / kPlanes * kSize + b % kSize;
        order.from[v][p][b] = (uint8_t)(element % kPlanes == p ? at : 0x80);
      }
    }
  }
  return order;
}

template <int kPlanes, int kSize>
constexpr PlaneOrder<kPlanes> make_plane_order() {
  PlaneOrder<kPlanes> order = {};
  for (int p = 0; p < kPlanes; ++p) {
    for (int b = 0; b < 16; ++b) {
      const int at = (b / kSize * kPlanes + p) * kSize + b % kSize;
      for (int v = 0; v < kPlanes; ++v) {
        order.from[p][v][b] = (uint8_t)(at / 16 == v ? at % 16 : 0x80);
      }
    }
  }
  return order;
}

/* kPlanes vectors `x_step` bytes apart to as many that are `y_step` bytes apart. */
template <int kPlanes>
VFN void reorder_bytes(const PlaneOrder<kPlanes>& order, const char* x, int64_t x_step, char* y,
                       int64_t y_step) {
  __m128i in[kPlanes];
#pragma GCC unroll 4
  for (int v = 0; v < kPlanes; ++v) {
    in[v] = _mm_loadu_si128((const __m128i*)(const void*)(x + v * x_step));
  }
#pragma GCC unroll 4
  for (int v = 0; v < kPlanes; ++v) {
    __m128i out = _mm_setzero_si128();
#pragma GCC unroll 4
    for (int p = 0; p < kPlanes; ++p) {
      const __m128i from = _mm_loadu_si128((const __m128i*)(const void*)order.from[v][p]);
      out = _mm_or_si128(out, _mm_shuffle_epi8(in[p], from));
    }
    _mm_storeu_si128((__m128i*)(void*)(y + v * y_step), out);
  }
}

/* y[kPlanes * j + p] = x[p][j], elements of kSize bytes; strides in bytes. How many j. */
template <int kPlanes, int kSize>
static int64_t interleave_planes(int64_t pixels, const char* x, int64_t x_stride, char* y) {
  static constexpr PlaneOrder<kPlanes> kOrder = make_pixel_order<kPlanes, kSize>();
  constexpr int64_t kStep = 16 / kSize;
  int64_t j = 0;
  for (; j + kStep <= pixels; j += kStep) {
    reorder_bytes(kOrder, x + j * kSize, x_stride, y + j * kSize * kPlanes, 16);
  }
  return j;
}

/* y[p][j] = x[kPlanes * j + p]. */
template <int kPlanes, int kSize>
static int64_t part_pixels(int64_t pixels, const char* x, char* y, int64_t y_stride) {
  static constexpr PlaneOrder<kPlanes> kOrder = make_plane_order<kPlanes, kSize>();
  constexpr int64_t kStep = 16 / kSize;
  int64_t j = 0;
  for (; j + kStep <= pixels; j += kStep) {
    reorder_bytes(kOrder, x + j * kSize * kPlanes, 16, y + j * kSize, y_stride);
  }
  return j;
}

/* y[j] = x[kPlanes * j]. The last one is left: its pixel may end before a vector does. */
template <int kPlanes, int kSize>
static int64_t pick_pixels(int64_t pixels, const char* x, char* y) {
  static constexpr PlaneOrder<kPlanes> kOrder = make_plane_order<kPlanes, kSize>();
  constexpr int64_t kStep = 16 / kSize;
  int64_t j = 0;
  for (; j + kStep < pixels; j += kStep) {
    __m128i picked = _mm_setzero_si128();
#pragma GCC unroll 4
    for (int v = 0; v < kPlanes; ++v) {
      const char* from = x + j * kSize * kPlanes + 16 * v;
      const __m128i order = _mm_loadu_si128((const __m128i*)(const void*)kOrder.from[0][v]);
      const __m128i some = _mm_loadu_si128((const __m128i*)(const void*)from);
      picked = _mm_or_si128(picked, _mm_shuffle_epi8(some, order));
    }
    _mm_storeu_si128((__m128i*)(void*)(y + j * kSize), picked);
  }
  return j;
}

/* Of a transpose: columns before `cols`, or rows before `rows`, are done. */
typedef struct TransposeDone {
  int64_t rows, cols;
} TransposeDone;

/* A transpose whose rows or columns are pixels of two to four elements, or one element of each, as
 * far as whole vectors go; strides in bytes. */
template <int kSize>
static TransposeDone transpose_pixels(int64_t rows, int64_t cols, const char* x, int64_t x_stride,
                                      char* y, int64_t y_stride) {
  if (y_stride == rows * kSize) {
    if (rows == 2) return {0, interleave_planes<2, kSize>(cols, x, x_stride, y)};
    if (rows == 3) return {0, interleave_planes<3, kSize>(cols, x, x_stride, y)};
    if (rows == 4) return {0, interleave_planes<4, kSize>(cols, x, x_stride, y)};
  }
  if (x_stride == cols * kSize) {
    if (cols == 2) return {part_pixels<2, kSize>(rows, x, y, y_stride), 0};
    if (cols == 3) return {part_pixels<3, kSize>(rows, x, y, y_stride), 0};
    if (cols == 4) return {part_pixels<4, kSize>(rows, x, y, y_stride), 0};
  }
  if (cols == 1) {
    if (x_stride == 2 * kSize) return {pick_pixels<2, kSize>(rows, x, y), 0};
    if (x_stride == 3 * kSize) return {pick_pixels<3, kSize>(rows, x, y), 0};
    if (x_stride == 4 * kSize) return {pick_pixels<4, kSize>(rows, x, y), 0};
  }
  return {0, 0};
}

/* What is left, element by element, the shorter side within the longer one. */
template <int kSize>
VFN void transpose_rest(TransposeDone done, int64_t rows, int64_t cols, const char* x,
                        int64_t x_stride, char* y, int64_t y_stride) {
  const int is_wide = rows < cols;
  const int64_t outer = is_wide ? cols : rows, first = is_wide ? done.cols : done.rows;
  const int64_t inner = is_wide ? rows : cols, from = is_wide ? done.rows : done.cols;
  for (int64_t p = first; p < outer; ++p) {
    for (int64_t q = from; q < inner; ++q) {
      const int64_t i = is_wide ? q : p, j = is_wide ? p : q;
      __builtin_memcpy(y + j * y_stride + kSize * i, x + i * x_stride + kSize * j, kSize);
    }
  }
}
