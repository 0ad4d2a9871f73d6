#include "core/ops/op_strided.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace folio {
namespace {

// Drops dims of 1 and joins neighbours that are one dim in memory.
void coalesce(StridedView* view) {
  StridedView out;
  out.offset = view->offset;
  for (int i = 0; i < view->rank; ++i) {
    if (view->dims[i] == 1) continue;
    const int last = out.rank - 1;
    if (last >= 0 && out.strides[last] == view->strides[i] * view->dims[i]) {
      out.dims[last] *= view->dims[i];
      out.strides[last] = view->strides[i];
    } else {
      out.add(view->dims[i], view->strides[i]);
    }
  }
  if (out.rank == 0) out.add(1, 1);
  *view = out;
}

#if defined(__SSE2__)
// Squares of 2 x 2 elements of 64 bits.
void transpose_square(const uint64_t* from, int64_t from_stride, uint64_t* to, int64_t to_stride) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + from_stride));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi64(a, b));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + to_stride), _mm_unpackhi_epi64(a, b));
}
#endif

// to[j * to_stride + i] = from[i * from_stride + j], i < rows, j < cols, element by element.
template <typename T>
void transpose_elements(int64_t rows, int64_t cols, const T* from, int64_t from_stride, T* to,
                        int64_t to_stride) {
  constexpr int64_t kTile = 16;  // 16 rows of at most 16 bytes: one line each
  for (int64_t j0 = 0; j0 < cols; j0 += kTile) {
    const int64_t j1 = std::min(cols, j0 + kTile);
    for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
      const int64_t i1 = std::min(rows, i0 + kTile);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) {
          move_one(to + j * to_stride + i, element_at<T>(from, i * from_stride + j));
        }
      }
    }
  }
}

// The same, by a kernel or in registers where there is a way.
template <typename T>
void transpose_block(const FolioKernels& kernels, int64_t rows, int64_t cols, const T* from,
                     int64_t from_stride, T* to, int64_t to_stride) {
  const auto kernel = std::is_same_v<T, uint8_t>    ? kernels.transpose_b8
                      : std::is_same_v<T, uint16_t> ? kernels.transpose_b16
                      : std::is_same_v<T, uint32_t> ? kernels.transpose_b32
                                                    : nullptr;
  if (kernel && from_stride >= cols) return kernel(rows, cols, from, from_stride, to, to_stride);
#if defined(__SSE2__)
  if constexpr (std::is_same_v<T, uint64_t>) {
    constexpr int64_t kLine = 8;  // of cache, read once
    const int64_t whole_rows = rows / 2 * 2;
    const int64_t whole_cols = cols / 2 * 2;
    for (int64_t j0 = 0; j0 < whole_cols; j0 += kLine) {
      const int64_t j1 = std::min(j0 + kLine, whole_cols);
      for (int64_t i = 0; i < whole_rows; i += 2) {
        for (int64_t j = j0; j < j1; j += 2) {
          transpose_square(element_at<T>(from, i * from_stride + j), from_stride,
                           to + j * to_stride + i, to_stride);
        }
      }
    }
    transpose_elements(rows - whole_rows, whole_cols, element_at<T>(from, whole_rows * from_stride),
                       from_stride, to + whole_rows, to_stride);
    from = element_at<T>(from, whole_cols);
    to += whole_cols * to_stride;
    cols -= whole_cols;
  }
#endif
  transpose_elements(rows, cols, from, from_stride, to, to_stride);
}

// `count` rows of n elements, `step` apart in the source.
template <typename T>
void copy_even_rows(const FolioKernels& kernels, T* to, const void* base, int64_t from, int64_t n,
                    int64_t stride, int64_t step, int64_t count) {
  if (stride == 1) return move_runs(to, n, element_at<T>(base, from), step, n, count);
  // Of pixels of so many: the kernels take a vector's worth of them at once.
  constexpr bool kFewBits = std::is_same_v<T, uint8_t> || std::is_same_v<T, uint16_t>;
  const bool is_channel = kFewBits && stride >= 2 && stride <= 4;
  for (; count > 0; --count, to += n, from += step) {
    if (stride == 0) {
      move_one(to, element_at<T>(base, from));
      fill_run(to + 1, n - 1, *to);
    } else if (stride == 2 && std::is_same_v<T, uint32_t>) {
      pick_every_second(n, element_at<T>(base, from), to);
    } else if (is_channel) {
      transpose_block(kernels, n, 1, element_at<T>(base, from), stride, to, n);
    } else {
      for (int64_t i = 0; i < n; ++i) move_one(to + i, element_at<T>(base, from + i * stride));
    }
  }
}

// Of dims [from, to).
int64_t product(const StridedView& view, int from, int to) {
  int64_t count = 1;
  for (int i = from; i < to; ++i) count *= view.dims[i];
  return count;
}

int64_t rows_of(const StridedView& view) { return product(view, 0, view.rank - 1); }

// Rows [begin, end) of the last dim to where the first of all goes.
template <typename T>
void copy_some_rows(const FolioKernels& kernels, const StridedView& view, const void* from,
                    int64_t begin, int64_t end, T* to) {
  const int last = view.rank - 1;
  const int64_t n = view.dims[last];
  const int64_t stride = view.strides[last];
  // Rows of one dim lie evenly; the others say where each such dim begins.
  const int64_t even = last == 0 ? 1 : view.dims[last - 1];
  const int64_t step = last == 0 ? 0 : view.strides[last - 1];
  Odometer<1> at(std::max(last - 1, 0), view.dims, {view.strides});
  at.seek(begin / even);
  int64_t index = begin % even;
  for (int64_t row = begin; row < end; at.advance(), index = 0) {
    const int64_t count = std::min(even - index, end - row);
    const int64_t first = view.offset + at.offset() + index * step;
    copy_even_rows(kernels, to + row * n, from, first, n, stride, step, count);
    row += count;
  }
}

template <typename T>
void copy_rows(OpRun& run, const StridedView& view, const void* from, T* to) {
  const int64_t n = view.dims[view.rank - 1];
  if (view.rank == 1) {
    // One long copy: cut it so that threads share it.
    const int64_t stride = view.strides[0];
    const int64_t grain = stride == 1 ? 4 * kMoveGrain : kMoveGrain;
    run.parallel().for_range(n, grain, [&](int64_t begin, int64_t end) {
      copy_even_rows(run.kernels(), to + begin, from, view.offset + begin * stride, end - begin,
                     stride, 0, 1);
    });
    return;
  }
  run.parallel().for_range(rows_of(view), rows_per_task(n), [&](int64_t begin, int64_t end) {
    copy_some_rows(run.kernels(), view, from, begin, end, to);
  });
}

// A dim around others that repeats what these are, which is in the cache when it is there once; -1
// for none.
template <typename T>
int repeated_dim(const StridedView& view, int threads) {
  constexpr int64_t kFewest = 1024 / sizeof(T);
  constexpr int64_t kMost = 128 * 1024 / sizeof(T);
  int64_t block = view.dims[view.rank - 1];
  for (int dim = view.rank - 2; dim >= 0; block *= view.dims[dim--]) {
    if (view.strides[dim] != 0 || block < kFewest || block > kMost) continue;
    return product(view, 0, dim) >= threads ? dim : -1;
  }
  return -1;
}

// What is within dim `dim`, then copies of that.
template <typename T>
void copy_repeated(OpRun& run, const StridedView& view, int dim, const void* from, T* to) {
  StridedView within;
  for (int i = dim + 1; i < view.rank; ++i) within.add(view.dims[i], view.strides[i]);
  const int64_t outer = product(view, 0, dim);
  const int64_t block = product(view, dim + 1, view.rank);
  const int64_t rows = rows_of(within);
  const int64_t each = view.dims[dim] * block;
  run.parallel().for_range(outer, rows_per_task(each), [&](int64_t begin, int64_t end) {
    StridedView one = within;
    Odometer<1> at(dim, view.dims, {view.strides});
    at.seek(begin);
    for (int64_t i = begin; i < end; ++i, at.advance()) {
      T* const first = to + i * each;
      one.offset = view.offset + at.offset();
      copy_some_rows(run.kernels(), one, from, 0, rows, first);
      for (T* next = first + block; next < first + each; next += block) {
        move_run(next, first, block);
      }
    }
  });
}

// Of rows that are transposed together: as many, evenly, as threads share.
int64_t even_piece(int64_t rows, int threads) {
  constexpr int64_t kMost = 4096;
  constexpr int64_t kStep = 64;
  const int64_t pieces = ((rows + kMost - 1) / kMost + threads - 1) / threads * threads;
  return ((rows + pieces - 1) / pieces + kStep - 1) / kStep * kStep;
}

// The last dim jumps while dim `dense` is contiguous in the source: transposes of those two.
template <typename T>
void copy_transposed(OpRun& run, const StridedView& view, int dense, const void* from, T* to) {
  const int last = view.rank - 1;
  const int64_t rows = view.dims[last];
  const int64_t cols = view.dims[dense];
  int64_t out_strides[kMaxStridedRank];
  int64_t stride = 1;
  for (int i = last; i >= 0; --i) {
    out_strides[i] = stride;
    stride *= view.dims[i];
  }
  // The dims around the block, and pieces of columns and rows within it.
  const int64_t col_piece = rows < 16 ? 1024 : 64;
  const int64_t col_pieces = (cols + col_piece - 1) / col_piece;
  const int64_t row_piece = even_piece(rows, run.parallel().thread_count());
  const int64_t row_pieces = (rows + row_piece - 1) / row_piece;
  int outer_rank = 0;
  int64_t dims[kMaxStridedRank];
  int64_t in[kMaxStridedRank];
  int64_t out[kMaxStridedRank];
  int64_t tasks = 1;
  const auto add = [&](int64_t dim, int64_t in_stride, int64_t out_stride) {
    dims[outer_rank] = dim;
    in[outer_rank] = in_stride;
    out[outer_rank++] = out_stride;
    tasks *= dim;
  };
  for (int i = 0; i < last; ++i) {
    if (i != dense) add(view.dims[i], view.strides[i], out_strides[i]);
  }
  add(col_pieces, col_piece, col_piece * out_strides[dense]);
  add(row_pieces, row_piece * view.strides[last], row_piece);
  const int64_t grain = rows_per_task(std::min(rows, row_piece) * std::min(cols, col_piece));
  run.parallel().for_range(tasks, grain, [&](int64_t begin, int64_t end) {
    Odometer<2> at(outer_rank, dims, {in, out});
    at.seek(begin);
    for (int64_t i = begin; i < end; ++i, at.advance()) {
      const int64_t col = at.index(outer_rank - 2) * col_piece;
      const int64_t row = at.index(outer_rank - 1) * row_piece;
      const T* block = element_at<T>(from, view.offset + at.offset(0));
      transpose_block(run.kernels(), std::min(row_piece, rows - row),
                      std::min(col_piece, cols - col), block, view.strides[last], to + at.offset(1),
                      out_strides[dense]);
    }
  });
}

template <typename T>
void copy_elements(OpRun& run, const StridedView& view, const void* from, T* to) {
  const int last = view.rank - 1;
  if (view.strides[last] != 1 && view.strides[last] != 0) {
    for (int i = 0; i < last; ++i) {
      if (view.strides[i] == 1) return copy_transposed(run, view, i, from, to);
    }
  }
  const int repeated = repeated_dim<T>(view, run.parallel().thread_count());
  if (repeated >= 0) return copy_repeated(run, view, repeated, from, to);
  copy_rows(run, view, from, to);
}

}  // namespace

Status copy_strided(OpRun& run, StridedView view, const Tensor& source, Tensor* out) {
  if (out->count() == 0) return Status::ok();
  coalesce(&view);
  if (dtype_is_subbyte(source.dtype())) {
    FOLIO_TRY(uint8_t * from, run.scratch(static_cast<size_t>(source.count())));
    FOLIO_TRY(uint8_t * to, run.scratch(static_cast<size_t>(out->count())));
    unpack_bits(source, from);
    copy_elements(run, view, from, to);
    pack_bits(to, out);
    return Status::ok();
  }
  return dispatch_move(source.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy_elements(run, view, source.raw(), out->data_mut<T>());
    return Status::ok();
  });
}

void broadcast_strides(const Shape& shape, const Shape& to, int64_t* strides) {
  int64_t own[kMaxRank];
  row_strides(shape, own);
  const int missing = to.rank() - shape.rank();
  for (int i = 0; i < to.rank(); ++i) {
    strides[i] = i < missing || shape[i - missing] == 1 ? 0 : own[i - missing];
  }
}

Status copy_broadcast(OpRun& run, const Tensor& source, Tensor* out) {
  const Shape& shape = out->shape();
  int64_t strides[kMaxRank];
  broadcast_strides(source.shape(), shape, strides);
  StridedView view;
  for (int i = 0; i < shape.rank(); ++i) view.add(shape[i], strides[i]);
  return copy_strided(run, view, source, out);
}

}  // namespace folio
