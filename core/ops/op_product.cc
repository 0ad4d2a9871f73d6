#include "core/ops/op_product.h"

#include <algorithm>
#include <cstring>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kDepth = 256;
constexpr int64_t kTileRows = 4;
constexpr int64_t kFewRows = 2;       // that columns side by side are not made for
constexpr int64_t kStrip = 512;       // columns of a few rows whose sums stay in L1
constexpr int64_t kTaskWork = 32768;  // multiply-adds that are worth a thread

template <typename T>
struct Tile {
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  static constexpr int64_t kLanes = 16 / sizeof(T);
  static constexpr int64_t kColumns = 2 * kLanes;
};

// The first `columns` of a row.
template <typename T>
void load_row(const T* y, int64_t columns, typename Tile<T>::Vector row[2]) {
  T whole[Tile<T>::kColumns] = {};
  std::copy_n(y, columns, whole);
  std::memcpy(row, whole, sizeof(whole));
}
template <typename T>
void store_row(const typename Tile<T>::Vector row[2], int64_t columns, T* y) {
  T whole[Tile<T>::kColumns];
  std::memcpy(whole, row, sizeof(whole));
  std::copy_n(whole, columns, y);
}

// kRows rows of y times the columns of a panel [depth, kColumns].
template <typename T, int kRows>
void multiply_tile(const NumberProduct<T>& p, int64_t depth, const T* a, const T* panel,
                   int64_t columns, bool begins, T* y) {
  using V = typename Tile<T>::Vector;
  V sum[kRows][2] = {};
  if (!begins) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) load_row(y + i * p.n, columns, sum[i]);
  }
  for (int64_t q = 0; q < depth; ++q, a += p.a_col, panel += Tile<T>::kColumns) {
    const V left = *reinterpret_cast<const typename Tile<T>::Unaligned*>(panel);
    const V right = *reinterpret_cast<const typename Tile<T>::Unaligned*>(panel + Tile<T>::kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const T x = a[i * p.a_row];
      sum[i][0] += x * left;
      sum[i][1] += x * right;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) store_row(sum[i], columns, y + i * p.n);
}

// Rows [begin, end) times all panels of the depth from `first` on.
template <typename T>
void multiply_rows(const NumberProduct<T>& p, int64_t first, int64_t depth, const T* panels,
                   int64_t begin, int64_t end) {
  constexpr int64_t kColumns = Tile<T>::kColumns;
  for (int64_t column = 0; column < p.n; column += kColumns, panels += depth * kColumns) {
    const int64_t columns = std::min(kColumns, p.n - column);
    int64_t row = begin;
    const T* a = p.a + row * p.a_row + first * p.a_col;
    for (; row + kTileRows <= end; row += kTileRows, a += kTileRows * p.a_row) {
      T* y = p.y + row * p.n + column;
      multiply_tile<T, kTileRows>(p, depth, a, panels, columns, first == 0, y);
    }
    for (; row < end; ++row, a += p.a_row) {
      multiply_tile<T, 1>(p, depth, a, panels, columns, first == 0, p.y + row * p.n + column);
    }
  }
}

// The panel of kColumns columns from `column` on, zeros behind the last one.
template <typename T>
void fill_panel(const NumberProduct<T>& p, int64_t first, int64_t depth, int64_t column, T* panel) {
  constexpr int64_t kColumns = Tile<T>::kColumns;
  const int64_t columns = std::min(kColumns, p.n - column);
  const T* b = p.b + first * p.b_row + column * p.b_col;
  for (int64_t q = 0; q < depth; ++q, b += p.b_row, panel += kColumns) {
    for (int64_t c = 0; c < columns; ++c) panel[c] = b[c * p.b_col];
    std::fill_n(panel + columns, kColumns - columns, T{0});
  }
}

template <typename T>
Status multiply_panels(OpRun& run, const NumberProduct<T>& p) {
  constexpr int64_t kColumns = Tile<T>::kColumns;
  const int64_t count = (p.n + kColumns - 1) / kColumns;
  const int64_t most = std::min(kDepth, p.k);
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(count * kColumns * most) * sizeof(T)));
  T* panels = reinterpret_cast<T*>(bytes);
  for (int64_t first = 0; first < p.k; first += kDepth) {
    const int64_t depth = std::min(kDepth, p.k - first);
    run.parallel().for_range(
        count, 1 + kTaskWork / (depth * kColumns), [&](int64_t from, int64_t to) {
          for (int64_t panel = from; panel < to; ++panel) {
            fill_panel(p, first, depth, panel * kColumns, panels + panel * depth * kColumns);
          }
        });
    const int64_t blocks = (p.m + kTileRows - 1) / kTileRows;
    const int64_t grain = 1 + kTaskWork / (kTileRows * depth * p.n);
    run.parallel().for_range(blocks, grain, [&](int64_t from, int64_t to) {
      multiply_rows(p, first, depth, panels, from * kTileRows, std::min(to * kTileRows, p.m));
    });
  }
  return Status::ok();
}

// A few rows over b in place, whose columns are neighbours.
template <typename T>
void multiply_few(OpRun& run, const NumberProduct<T>& p) {
  const int64_t strips = (p.n + kStrip - 1) / kStrip;
  const int64_t grain = 1 + kTaskWork / (kStrip * p.k);
  run.parallel().for_range(p.m * strips, grain, [&](int64_t begin, int64_t end) {
    T sums[kStrip];
    for (int64_t at = begin; at < end; ++at) {
      const int64_t column = at % strips * kStrip;
      const int64_t n = std::min(kStrip, p.n - column);
      const T* a = p.a + at / strips * p.a_row;
      const T* b = p.b + column;
      std::fill_n(sums, n, T{0});
      for (int64_t q = 0; q < p.k; ++q, b += p.b_row) {
        const T x = a[q * p.a_col];
        for (int64_t j = 0; j < n; ++j) sums[j] += x * b[j];
      }
      std::copy_n(sums, n, p.y + at / strips * p.n + column);
    }
  });
}

struct Chunk {
  int64_t rows, columns;
};

// A part of a product of doubles for each thread, or more if that is sooner done.
Chunk double_chunk(const FolioGemmF64& whole, int threads) {
  constexpr int64_t kWork = 1 << 18;  // multiply-adds: 10 us
  constexpr int64_t kRows = 6;        // of a tile
  constexpr int64_t kPacking = 10;    // rows that a row of A or column of B takes the time of
  const auto even = [](int64_t count, int64_t parts, int64_t step) {
    const int64_t each = (count + parts - 1) / parts;
    return std::min(count, (each + step - 1) / step * step);
  };
  const int64_t most =
      std::min<int64_t>(threads, whole.m * whole.n / (1 + kWork / std::max<int64_t>(1, whole.k)));
  Chunk best = {whole.m, whole.n};
  int64_t least = 0;
  for (int64_t across = 1; across <= most; ++across) {
    const Chunk chunk = {even(whole.m, (most + across - 1) / across, kRows),
                         even(whole.n, across, FOLIO_F64_PANEL)};
    const int64_t chunks =
        ((whole.m + chunk.rows - 1) / chunk.rows) * ((whole.n + chunk.columns - 1) / chunk.columns);
    const int64_t rounds = (chunks + threads - 1) / threads;
    const int64_t time =
        rounds * (chunk.rows * chunk.columns + kPacking * (chunk.rows + chunk.columns));
    if (least > 0 && time >= least) continue;
    least = time;
    best = chunk;
  }
  return best;
}

}  // namespace

template <>
Status multiply_numbers(OpRun& run, const NumberProduct<double>& p) {
  if (p.m == 0 || p.n == 0) return Status::ok();
  const FolioGemmF64 whole{p.m,     p.n,     p.k, p.a, p.a_row, p.a_col, p.b,
                           p.b_row, p.b_col, p.y, p.n, p.alpha, nullptr};
  const Chunk chunk = double_chunk(whole, run.parallel().thread_count());
  const int64_t across = (p.n + chunk.columns - 1) / chunk.columns;
  const int64_t chunks = (p.m + chunk.rows - 1) / chunk.rows * across;
  // A part may be one row or column, which needs none, but not all parts are.
  FolioGemmF64 largest = whole;
  largest.m = chunk.rows;
  largest.n = chunk.columns;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(
      ThreadScratch::make(run, static_cast<size_t>(folio_gemm_f64_scratch(&largest)), &scratch));
  run.parallel().for_range(chunks, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = at / across * chunk.rows;
      const int64_t column = at % across * chunk.columns;
      FolioGemmF64 part = whole;
      part.m = std::min(chunk.rows, p.m - row);
      part.n = std::min(chunk.columns, p.n - column);
      part.a += row * p.a_row;
      part.b += column * p.b_col;
      part.c += row * p.n + column;
      part.scratch = block.data();
      run.kernels().gemm_f64(&part);
    }
  });
  return Status::ok();
}

template <typename T>
Status multiply_numbers(OpRun& run, const NumberProduct<T>& product) {
  if (product.m == 0 || product.n == 0) return Status::ok();
  if (product.k == 0) {
    std::fill_n(product.y, product.m * product.n, T{0});
    return Status::ok();
  }
  if (product.m > kFewRows || product.b_col != 1) return multiply_panels(run, product);
  multiply_few(run, product);
  return Status::ok();
}

template Status multiply_numbers(OpRun&, const NumberProduct<uint32_t>&);
template Status multiply_numbers(OpRun&, const NumberProduct<uint64_t>&);

}  // namespace folio
