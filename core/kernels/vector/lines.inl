/* Maxima and sums of windows over the lines of planes; see FolioLinesF32.
 *
 * The rows under a line of outputs are joined first, with what is beside the image as the start of
 * the joining, then columns. Up to two vectors of them stay in registers, where a tap is a
 * permutation. Longer rows go to L1, where a tap is a shift; that is done for all lines before their
 * columns, since a load of what two stores have just written waits for both. Every second pixel: the
 * even and the odd lanes of two neighbouring vectors are two taps. Of larger steps all columns are
 * joined and some are picked. A line's last vector may reach into the next one, which is written
 * later. */

constexpr int64_t kHeldTaps = 16;

template <int kKind>
VFN V line_start() {
  return v_set1(kKind == kMaxWindow ? -__builtin_inff() : 0.0f);
}
template <int kKind>
VFN V line_join(V a, V b) {
  return kKind == kMaxWindow ? v_pick_max(a, b) : v_add(a, b);
}

/* Columns [at, at + kLanes * kVectors) of the rows; kWhole: the mask takes every lane. */
template <int kKind, int kVectors, int kWhole>
VFN void join_rows(const float* x, const int64_t* rows, int64_t count, int64_t at, VM mask,
                   float* to) {
  V joined[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    joined[v] = window_load<kWhole>(x + rows[0] + at + v * kLanes, mask);
  }
  for (int64_t r = 1; r < count; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V more = window_load<kWhole>(x + rows[r] + at + v * kLanes, mask);
      joined[v] = line_join<kKind>(joined[v], more);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) v_store(to + v * kLanes, joined[v]);
}

template <int kKind>
static void fill_line(int64_t from, int64_t to, float* row) {
  for (int64_t i = from; i < to; i += kLanes) v_store(row + i, line_start<kKind>());
}

/* `size` columns of the joined rows from `first` on; behind them anything. */
template <int kKind>
static void join_part(const FolioLinesF32* args, const float* x, const int64_t* rows, int64_t count,
                      int64_t first, int64_t size, float* row) {
  const int64_t from = plane_clamp(-first, 0, size);
  const int64_t to = count == 0 ? from : plane_clamp(args->x_pixels - first, from, size);
  fill_line<kKind>(0, from, row);
  int64_t i = from;
  const VM rest = v_first((to - from) % kLanes);
  for (; i + 4 * kLanes <= to; i += 4 * kLanes) {
    join_rows<kKind, 4, 1>(x, rows, count, first + i, rest, row + i);
  }
  for (; i + kLanes <= to; i += kLanes) {
    join_rows<kKind, 1, 1>(x, rows, count, first + i, rest, row + i);
  }
  if (i < to) join_rows<kKind, 1, 0>(x, rows, count, first + i, rest, row + i);
  fill_line<kKind>(to, size, row);
}

/* kLanes outputs, whose first tap is at row. */
template <int kKind>
VFN V join_neighbours(const FolioLinesF32* args, const float* row) {
  V joined = v_load(row);
  for (int64_t t = 1; t < args->taps; ++t) {
    joined = line_join<kKind>(joined, v_load(row + t * args->tap_step));
  }
  return joined;
}

template <int kKind>
VFN V join_every_second(const FolioLinesF32* args, const float* row) {
  const int has_pairs = args->tap_step == 1;
  V a = v_load(row);
  V b = v_load(row + kLanes);
  V joined = v_even(a, b);
  for (int64_t t = 1; t < args->taps; ++t) {
    if (has_pairs && t % 2 == 1) {
      joined = line_join<kKind>(joined, v_odd(a, b));
      continue;
    }
    a = v_load(row + t * args->tap_step);
    b = v_load(row + t * args->tap_step + kLanes);
    joined = line_join<kKind>(joined, v_even(a, b));
  }
  return joined;
}

/* One output, of any step; in every lane. */
template <int kKind>
VFN V join_each(const FolioLinesF32* args, const float* row) {
  float joined = row[0];
  for (int64_t t = 1; t < args->taps; ++t) {
    const float x = row[t * args->tap_step];
    if (kKind == kMaxWindow) {
      joined = joined != joined || joined > x ? joined : x;
    } else {
      joined += x;
    }
  }
  return v_set1(joined);
}

/* `n` outputs from the i-th on of line l, of which `after` floats of y may be written: to y. */
template <int kKind>
VFN void end_outputs(const FolioLinesF32* args, int64_t l, int64_t i, int64_t n, int64_t after,
                     V joined, float* y) {
  if (kKind == kSumWindow) {
    const V by = v_load_masked(args->by_pixels + i, v_first(n));
    joined = v_div(joined, v_mul(v_set1(args->by_lines[l]), by));
  }
  if (after >= kLanes) {
    v_store(y, joined);
  } else {
    v_store_masked(y, v_first(n), joined);
  }
}

template <int kKind, int kStep>
static void join_columns(const FolioLinesF32* args, int64_t l, int64_t i, int64_t n,
                         const float* row, int64_t after, float* y) {
  constexpr int64_t kOutputs = kStep == 0 ? 1 : kLanes;
  const int64_t step = kStep == 0 ? args->pixel_step : kStep;
  for (int64_t j = 0; j < n; j += kOutputs) {
    const float* at = row + j * step;
    const V joined = kStep == 0   ? join_each<kKind>(args, at)
                     : kStep == 1 ? join_neighbours<kKind>(args, at)
                                  : join_every_second<kKind>(args, at);
    const int64_t left = n - j < kOutputs ? n - j : kOutputs;
    end_outputs<kKind>(args, l, i + j, left, after - j, joined, y + j);
  }
}

/* The same of a step of which a vector of columns has two or more: all columns, some of which are
 * outputs. These go to where the row's columns are read already. */
template <int kKind>
static void pick_columns(const FolioLinesF32* args, int64_t l, int64_t i, int64_t n, float* row,
                         int64_t after, float* y) {
  const int64_t step = args->pixel_step;
  int64_t picked = 0;
  for (int64_t at = 0; picked < n; at += kLanes) {
    float columns[kLanes];
    v_store(columns, join_neighbours<kKind>(args, row + at));
    for (; picked < n && picked * step - at < kLanes; ++picked) {
      row[picked] = columns[picked * step - at];
    }
  }
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t left = n - j < kLanes ? n - j : kLanes;
    end_outputs<kKind>(args, l, i + j, left, after - j, v_load(row + j), y + j);
  }
}

/* Lines of a plane, by way of L1. */
template <int kKind>
static void join_plane(const FolioLinesF32* args, const float* x, float* y) {
  const int64_t step = args->pixel_step;
  const int64_t part = folio_lines_part(args);
  const int64_t pitch = folio_lines_pitch(args);
  for (int64_t i = 0; i < args->pixels; i += part) {
    const int64_t n = args->pixels - i < part ? args->pixels - i : part;
    const int64_t* rows = args->rows;
    for (int64_t l = 0; l < args->lines; rows += args->counts[l++]) {
      join_part<kKind>(args, x, rows, args->counts[l], i * step - args->left, pitch,
                       args->joined + l * pitch);
    }
    for (int64_t l = 0; l < args->lines; ++l) {
      float* row = args->joined + l * pitch;
      float* to = y + l * args->pixels + i;
      const int64_t after = n == args->pixels ? (args->lines - l) * n : n;
      if (step == 1) {
        join_columns<kKind, 1>(args, l, i, n, row, after, to);
      } else if (step == 2) {
        join_columns<kKind, 2>(args, l, i, n, row, after, to);
      } else if (2 * step <= kLanes) {
        pick_columns<kKind>(args, l, i, n, row, after, to);
      } else {
        join_columns<kKind, 0>(args, l, i, n, row, after, to);
      }
    }
  }
}

/* Rows that stay in registers: where the image is in them, and the lanes that each tap is of. */
typedef struct HeldColumns {
  VM inside[2];
  VI taps[kHeldTaps][2];
} HeldColumns;

static void place_columns(const FolioLinesF32* args, HeldColumns* held) {
  for (int64_t v = 0; v < 2; ++v) {
    const int64_t from = plane_clamp(args->left - v * kLanes, 0, kLanes);
    const int64_t to = plane_clamp(args->left + args->x_pixels - v * kLanes, from, kLanes);
    held->inside[v] = v_between(from, to);
    for (int64_t t = 0; t < args->taps; ++t) {
      int32_t lanes[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        lanes[i] = (int32_t)((v * kLanes + i) * args->pixel_step + t * args->tap_step);
      }
      held->taps[t][v] = vi_load(lanes);
    }
  }
}

template <int kKind, int kVectors, int kOutputs>
static void join_held(const FolioLinesF32* args, const HeldColumns* held, const float* x, float* y) {
  const int64_t* rows = args->rows;
  const V start = line_start<kKind>();
  for (int64_t l = 0; l < args->lines; rows += args->counts[l++], y += args->pixels) {
    const int64_t count = args->x_pixels > 0 ? args->counts[l] : 0; /* of none x may be null */
    V joined[2] = {start, start};
    for (int64_t r = 0; r < count; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const V more = v_load_masked(x + (rows[r] - args->left + v * kLanes), held->inside[v]);
        joined[v] = line_join<kKind>(joined[v], more);
      }
    }
    if (kKind == kMaxWindow) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) joined[v] = v_select(held->inside[v], joined[v], start);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kOutputs; ++v) {
      const auto tap = [&](int64_t t) {
        const VI lanes = held->taps[t][v];
        return kVectors == 1 ? v_permute(joined[0], lanes) : v_permute2(joined[0], joined[1], lanes);
      };
      V out = tap(0);
      for (int64_t t = 1; t < args->taps; ++t) out = line_join<kKind>(out, tap(t));
      const int64_t n = args->pixels - v * kLanes;
      end_outputs<kKind>(args, l, v * kLanes, n < kLanes ? n : kLanes,
                         (args->lines - l) * args->pixels - v * kLanes, out, y + v * kLanes);
    }
  }
}

template <int kKind>
static void join_lines(const FolioLinesF32* args) {
  const int64_t pitch = folio_lines_pitch(args);
  const bool is_held = args->taps <= kHeldTaps && pitch <= 2 * kLanes;
  HeldColumns held;
  if (is_held) place_columns(args, &held);
  for (int64_t p = 0; p < args->planes; ++p) {
    const float* x = args->x + p * args->x_plane;
    float* y = args->y + p * args->y_plane;
    if (!is_held) {
      join_plane<kKind>(args, x, y);
    } else if (pitch <= kLanes) {
      join_held<kKind, 1, 1>(args, &held, x, y);
    } else if (args->pixels <= kLanes) {
      join_held<kKind, 2, 1>(args, &held, x, y);
    } else {
      join_held<kKind, 2, 2>(args, &held, x, y);
    }
  }
}

static void FOLIO_LEVEL(max_lines_f32)(const FolioLinesF32* args) { join_lines<kMaxWindow>(args); }
static void FOLIO_LEVEL(sum_lines_f32)(const FolioLinesF32* args) { join_lines<kSumWindow>(args); }
