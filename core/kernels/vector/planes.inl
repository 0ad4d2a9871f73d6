/* A filter over one plane of an image, lines of floats one after the other; see FolioPlaneF32.
 *
 * A vector is neighbouring outputs of a line, and a tap's floats are loaded where they lie: the
 * image is not copied, lanes beside it are masked. Filters of 3 x 3 compute some lines at once, so
 * that what a line of the image gives is loaded once for all that it is under: 6 loads an output of
 * 9 products for two lines, 4.5 for four. Every second pixel: the even and the odd lanes of two
 * neighbouring vectors. */

constexpr int kHeldColumns = 16; /* whose masks are kept: at the left end and elsewhere */
constexpr int64_t kPlaneLines = kLanes == 16 ? 4 : 2;

/* Where the lanes of each tap of a row lie in the image, for the outputs from `at` on. */
typedef struct PlaneEdge {
  int64_t at;
  VM outputs;
  VM taps[kHeldColumns][2];
} PlaneEdge;

VFN int64_t plane_clamp(int64_t i, int64_t from, int64_t to) {
  return i < from ? from : i > to ? to : i;
}

/* Which of kLanes floats from pixel q on the image has. */
VFN VM plane_mask(const FolioPlaneF32* args, int64_t q) {
  const int64_t begin = plane_clamp(-q, 0, kLanes);
  return v_between(begin, plane_clamp(args->x_pixels - q, begin, kLanes));
}

static void place_edge(const FolioPlaneF32* args, int64_t at, PlaneEdge* edge) {
  const int64_t left = args->pixels - at;
  edge->at = at;
  edge->outputs = v_first(plane_clamp(left, 0, kLanes));
  for (int64_t c = 0; c < args->columns && c < kHeldColumns; ++c) {
    const int64_t q = at * args->pixel_step + c * args->column_step - args->left;
    edge->taps[c][0] = plane_mask(args, q);
    edge->taps[c][1] = plane_mask(args, q + kLanes);
  }
}

template <int kIsLeaky>
VFN V plane_end(const FolioPlaneF32* args, V sum, WindowEnd end) {
  return kIsLeaky ? v_activate(sum, kFolioActLeakyRelu, args->clip_lo, 0.0f)
                  : v_clip(sum, end.lo, end.hi);
}

/* ---- 3 x 3, both steps kStep */

/* What the three columns of the filter are under, of the line whose first of them is at x. */
template <int kStep, int kWhole>
VFN void plane_taps(const float* x, const PlaneEdge* edge, V tap[3]) {
  if (kStep == 1) {
#pragma GCC unroll 3
    for (int c = 0; c < 3; ++c) tap[c] = kWhole ? v_load(x + c) : v_load_masked(x + c, edge->taps[c][0]);
    return;
  }
  const V a = kWhole ? v_load(x) : v_load_masked(x, edge->taps[0][0]);
  const V b = kWhole ? v_load(x + kLanes) : v_load_masked(x + kLanes, edge->taps[0][1]);
  const V c = kWhole ? v_load(x + 2) : v_load_masked(x + 2, edge->taps[2][0]);
  const V d = kWhole ? v_load(x + 2 + kLanes) : v_load_masked(x + 2 + kLanes, edge->taps[2][1]);
  tap[0] = v_even(a, b);
  tap[1] = v_odd(a, b);
  tap[2] = v_even(c, d);
}

template <int kStep, int kLines, int kWhole, int kIsLeaky>
VFN void plane_3x3(const FolioPlaneF32* args, const V* w, WindowEnd end, int64_t line, int64_t at,
                   const PlaneEdge* edge) {
  constexpr int kRows = kStep * (kLines - 1) + 3;
  const int64_t first = line * kStep - args->top;
  const float* x = args->x + at * kStep - args->left;
  V sum[kLines];
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) sum[l] = v_set1(args->bias);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    V tap[3] = {v_zero(), v_zero(), v_zero()};
    const int64_t row = first + r;
    if (row >= 0 && row < args->x_lines) {
      plane_taps<kStep, kWhole>(x + row * args->x_pixels, edge, tap);
    }
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
      const int under = r - l * kStep;
      if (under < 0 || under >= 3) continue;
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) sum[l] = v_fma(w[3 * under + c], tap[c], sum[l]);
    }
  }
  float* y = args->y + line * args->pixels + at;
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) {
    const V v = plane_end<kIsLeaky>(args, sum[l], end);
    if (kWhole) {
      v_store(y + l * args->pixels, v);
    } else {
      v_store_masked(y + l * args->pixels, edge->outputs, v);
    }
  }
}

template <int kStep, int kLines, int kIsLeaky>
VFN void plane_lines_3x3(const FolioPlaneF32* args, const V* w, WindowEnd end, int64_t line,
                         PlaneEdge edges[2]) {
  const int64_t reach = kStep * kLanes + 2; /* floats of the image */
  for (int64_t at = 0; at < args->pixels; at += kLanes) {
    const int64_t q = at * kStep - args->left;
    if (q >= 0 && q + reach <= args->x_pixels && at + kLanes <= args->pixels) {
      plane_3x3<kStep, kLines, 1, kIsLeaky>(args, w, end, line, at, nullptr);
      continue;
    }
    PlaneEdge* edge = &edges[at > 0];
    if (edge->at != at) place_edge(args, at, edge);
    plane_3x3<kStep, kLines, 0, kIsLeaky>(args, w, end, line, at, edge);
  }
}

template <int kStep, int kIsLeaky>
static void filter_plane_3x3(const FolioPlaneF32* args) {
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  V w[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) w[t] = v_set1(args->w[t]);
  PlaneEdge edges[2];
  edges[0].at = edges[1].at = -1;
  int64_t line = 0;
  for (; line + kPlaneLines <= args->lines; line += kPlaneLines) {
    plane_lines_3x3<kStep, kPlaneLines, kIsLeaky>(args, w, end, line, edges);
  }
  for (; line + 2 <= args->lines; line += 2) {
    plane_lines_3x3<kStep, 2, kIsLeaky>(args, w, end, line, edges);
  }
  for (; line < args->lines; ++line) {
    plane_lines_3x3<kStep, 1, kIsLeaky>(args, w, end, line, edges);
  }
}

/* ---- Any filter */

/* kLines lines of kVectors vectors, which share a tap's weight and mask, so that their chains of sums
 * overlap. Of several lines a row under the filter is in the image for all or for none; of several
 * vectors all pixels are in it. */
template <int kStep, int kLines, int kVectors, int kWhole, int kIsLeaky>
VFN void plane_any(const FolioPlaneF32* args, WindowEnd end, int64_t line, int64_t at,
                   const PlaneEdge* edge) {
  constexpr int kSums = kLines * kVectors;
  const int64_t next_line = args->line_step * args->x_pixels;
  V sum[kSums];
#pragma GCC unroll 4
  for (int i = 0; i < kSums; ++i) sum[i] = v_set1(args->bias);
  const float* w = args->w;
  const int64_t rows = args->planes * args->rows;
  const float* plane = args->x;
  for (int64_t n = 0, r = 0; n < rows; ++n, ++r, w += args->columns) {
    if (r == args->rows) {
      r = 0;
      plane += args->x_plane;
    }
    const int64_t row = line * args->line_step + r * args->row_step - args->top;
    const int is_inside = row >= 0 && row < args->x_lines;
    const float* x = plane + (is_inside ? row * args->x_pixels : 0);
    for (int64_t c = 0; c < args->columns; ++c) {
      const V scale = v_set1(w[c]);
      const int64_t q = at * kStep + c * args->column_step - args->left;
      const int is_held = kWhole || c < kHeldColumns;
      VM masks[2] = {v_first(0), v_first(0)};
      if (!kWhole && is_inside) {
        masks[0] = is_held ? edge->taps[c][0] : plane_mask(args, q);
        if (kStep == 2) masks[1] = is_held ? edge->taps[c][1] : plane_mask(args, q + kLanes);
      }
#pragma GCC unroll 4
      for (int i = 0; i < kSums; ++i) {
        const float* from = x + q + i / kVectors * next_line + i % kVectors * kStep * kLanes;
        V a = v_zero();
        if (!kWhole) {
          a = v_load_masked(from, masks[0]);
          if (kStep == 2) a = v_even(a, v_load_masked(from + kLanes, masks[1]));
        } else if (is_inside) {
          a = v_load(from);
          if (kStep == 2) a = v_even(a, v_load(from + kLanes));
        }
        sum[i] = v_fma(scale, a, sum[i]);
      }
    }
  }
  float* y = args->y + line * args->pixels + at;
#pragma GCC unroll 4
  for (int i = 0; i < kSums; ++i) {
    const V got = plane_end<kIsLeaky>(args, sum[i], end);
    float* to = y + i / kVectors * args->pixels + i % kVectors * kLanes;
    if (kWhole) {
      v_store(to, got);
    } else {
      v_store_masked(to, edge->outputs, got);
    }
  }
}

template <int kStep, int kLines, int kIsLeaky>
VFN void plane_lines_any(const FolioPlaneF32* args, WindowEnd end, int64_t line,
                         PlaneEdge edges[2]) {
  constexpr int kVectors = kLines == 1 ? 4 : 1;
  const int64_t reach = (args->columns - 1) * args->column_step;
  for (int64_t at = 0; at < args->pixels;) {
    const int64_t q = at * kStep - args->left;
    const int64_t image = q < 0 ? 0 : (args->x_pixels - q - reach) / kStep;
    const int64_t left = args->pixels - at;
    const int64_t whole = image < left ? image : left;
    if (whole >= kVectors * kLanes) {
      plane_any<kStep, kLines, kVectors, 1, kIsLeaky>(args, end, line, at, nullptr);
      at += kVectors * kLanes;
      continue;
    }
    if (whole >= kLanes) {
      plane_any<kStep, kLines, 1, 1, kIsLeaky>(args, end, line, at, nullptr);
    } else {
      PlaneEdge* edge = &edges[at > 0];
      if (edge->at != at) place_edge(args, at, edge);
      plane_any<kStep, kLines, 1, 0, kIsLeaky>(args, end, line, at, edge);
    }
    at += kLanes;
  }
}

/* Whether each row under the filter is in the image for all of so many lines, or for none. */
static int are_alike(const FolioPlaneF32* args, int64_t line, int64_t lines) {
  const int64_t reach = (lines - 1) * args->line_step;
  int64_t row = line * args->line_step - args->top;
  for (int64_t r = 0; r < args->rows; ++r, row += args->row_step) {
    const int is_inside = row >= 0 && row + reach < args->x_lines;
    if (!is_inside && row + reach >= 0 && row < args->x_lines) return 0;
  }
  return 1;
}

template <int kStep, int kIsLeaky>
static void filter_plane_any(const FolioPlaneF32* args) {
  constexpr int kLines = 4;
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  PlaneEdge edges[2];
  edges[0].at = edges[1].at = -1;
  for (int64_t line = 0; line < args->lines;) {
    if (line + kLines <= args->lines && are_alike(args, line, kLines)) {
      plane_lines_any<kStep, kLines, kIsLeaky>(args, end, line, edges);
      line += kLines;
    } else {
      plane_lines_any<kStep, 1, kIsLeaky>(args, end, line++, edges);
    }
  }
}

template <int kStep, int kIsLeaky>
VFN void filter_plane(const FolioPlaneF32* args) {
  if (args->planes == 1 && args->rows == 3 && args->columns == 3 && args->line_step == kStep && args->row_step == 1 &&
      args->column_step == 1) {
    filter_plane_3x3<kStep, kIsLeaky>(args);
  } else {
    filter_plane_any<kStep, kIsLeaky>(args);
  }
}

static void FOLIO_LEVEL(filter_plane_f32)(const FolioPlaneF32* args) {
  const int is_leaky = args->activation == kFolioActLeakyRelu;
  if (args->pixel_step == 1) {
    is_leaky ? filter_plane<1, 1>(args) : filter_plane<1, 0>(args);
  } else {
    is_leaky ? filter_plane<2, 1>(args) : filter_plane<2, 0>(args);
  }
}
