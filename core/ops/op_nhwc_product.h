// The product of a convolution with channels last (op_nhwc_conv.h): tiles of pixels times blocks of
// columns.
//
// Flow:    op_nhwc_conv.cc makes one for each run, gives it scratch and zeros, and lets threads
//          compute its chunks, or, of a pair, some pixels after others.
// Threads: compute() and compute_rows() from any, each with scratch of its own.
#pragma once

#include <cstring>

#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_scratch.h"

namespace folio {

// Few filters leave most of a panel empty: then sums of neighbours are faster. By shape only.
bool takes_dots(const ConvSizes& s, const NhwcConvArgs& args);

class NhwcProduct {
 public:
  NhwcProduct(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args,
              int threads);

  // Of columns, in all groups.
  int64_t blocks() const { return s_.group * tiling_.blocks; }
  int64_t chunks() const { return (is_packed_ ? tiling_.tiles : row_parts_) * blocks(); }
  int64_t grain() const { return grain_; }  // of chunks
  bool reads_halves() const { return as_bfloat16_; }
  size_t zero_bytes() const;     // that compute() reads, all 0
  size_t scratch_bytes() const;  // of compute(), aligned to 64

  void compute(int64_t chunk, uint8_t* scratch, const float* zeros) const;

  // Pixels [begin, end), of packed weights of one group; y is where that of pixel `begin` goes. x,
  // of a product of pixels as they are, is where that is read from, null: where the image has it.
  void compute_rows(int64_t begin, int64_t end, const float* x, float* y, uint8_t* scratch,
                    const float* zeros) const;

 private:
  size_t pointer_bytes() const;
  size_t border_bytes() const;
  size_t panel_bytes() const;
  size_t gemm_bytes() const;
  // Of a tile whose function no kernel applies and that goes to some channels of an image: it is
  // made apart, so that each call is of many elements.
  size_t apart_bytes() const;
  size_t apart_at() const;  // in scratch behind the panels

  // All that depends on how the work is cut: into `shares` of threads; `work` multiply-adds a
  // pixel.
  void make_tiles(int64_t shares, int64_t work);
  void make_blocks();  // of columns whose weights are packed while they are used

  struct Tile {
    int64_t row;     // the first of its pixels
    int64_t count;   // of them
    const float* x;  // of a product of pixels as they are
    float* y;
  };

  // Bytes that are read after a tile.
  struct Ahead {
    const uint8_t* from;
    int64_t bytes;
  };

  // The panels of a block of columns from `first` on.
  void fill(int64_t group, int64_t first, float* panels) const;

  const uint8_t* halves_at(int64_t group, int64_t first) const;
  Ahead bytes_of(int64_t chunk) const;

  // Whether tiles are lines of planes, copied with their border.
  bool copies_lines() const { return lines_ > 0; }
  int64_t line_tiles() const { return (s_.window.out[1] + lines_ - 1) / lines_; }  // of an image
  // How many of them, for so many shares of threads.
  int64_t lines_together(int64_t shares, int64_t work) const;
  // Rows of a plane that so many lines see, and floats of one of them.
  int64_t seen_rows(int64_t lines) const;

  int64_t first_row(int64_t tile) const;
  // Pixels from `row` on, none from `end` on; x and y are where those of pixel `row` stand.
  Tile tile_at(int64_t row, int64_t end, const float* x, float* y) const;
  Tile whole_tile(int64_t tile) const;
  // Null where pixels are not read as they are.
  const float* x_at(int64_t row) const;
  const float* packed_at(int64_t group, int64_t first) const;

  // The pixels of a line whose windows are inside of it.
  void find_inside();
  // Whether to compute the other pixels apart takes less than to copy lines with their border.
  bool are_edges_cheap() const;

  // Pixels of the largest tile that may see a border.
  int64_t border_pixels() const;

  // How many of a tile's pixels from one on are computed together.
  int64_t together(int64_t row, int64_t left) const;

  // A tile of pixels times the columns from `first` on.
  void multiply(const Tile& tile, int64_t group, int64_t first, const float* b, uint8_t* scratch,
                const float* zeros, const Ahead& ahead = {}) const;

  void multiply_part(const Tile& tile, int64_t group, int64_t first, const float* b,
                     uint8_t* scratch, const float* zeros, const Ahead& ahead) const;

  // A is where it is to be in `gemm`.
  void multiply_rows(FolioGemmF32& gemm, const Tile& tile, int64_t group, int64_t first,
                     const float* b, uint8_t* scratch, const Ahead& ahead) const;

  // The same, line by line, of a tile of lines.
  void multiply_copied(const Tile& tile, int64_t first, const float* b, uint8_t* scratch) const;

  // What these lines see of the image: of each plane, one row after the other.
  void copy_rows(int64_t row, int64_t rows, float* to) const;

  // Lines of the window.
  struct KernelLines {
    int64_t first = 0;
    int64_t count = 0;  // 0: all
  };

  // Those of which pixels [row, row + count) see any, if these are of one image and do not see all.
  KernelLines seen_lines(int64_t row, int64_t count) const;

  // The products with the other lines of the window are zeros. Panel by panel, as the rows of B
  // that are left are neighbours in one only; the order of each sum is that of the whole.
  void multiply_lines(const FolioGemmF32& whole, const KernelLines& lines) const;

  // pointers[piece][i]: the piece of output pixel row + i. Lines of output pixels one after the
  // other: what is the same for a line is found once.
  void point(int64_t row, int64_t count, int64_t first_channel, const float* zeros,
             const float** pointers) const;

  // body(line): the lines of the image that output pixel `at` sees, numbered through all depths; -1
  // outside.
  template <typename Body>
  void for_each_line(int64_t at, const Body& body) const;

  // `line`: the image's row, null outside. Gives the place of the next piece.
  const float** point_taps(const float* line, int64_t column, int64_t pixels, int64_t count,
                           const float* zeros, const float** to) const;

  // pointers[piece]: the piece of the tile's first pixel; those of the others follow in steps. A
  // line that ends within what the tile sees is copied with the border.
  void point_lines(const Tile& tile, const float* zeros, const float** pointers,
                   float* border) const;
  // `floats` of a line of the image, null: outside, from pixel `first` on; `border` if copied
  // there.
  const float* point_line(const float* line, int64_t first, int64_t floats, const float* zeros,
                          float* border) const;

  // Of the image and its border that so many outputs of a line see.
  int64_t line_floats(int64_t pixels) const;

  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  const int threads_;
  bool in_place_ = false;
  bool by_lines_ = false;     // a piece of a pixel is a step behind that of the one before
  bool skips_lines_ = false;  // of the window: dilated ones see a border from many pixels
  int64_t unit_ = 0;          // floats of a pixel, or of a plane's, and
  int64_t pixel_ = 0;         // to the next one in x
  int64_t taps_ = 1;          // of a piece: those of one row of the window, side by side
  int64_t run_ = 0;           // floats of a piece
  int64_t pieces_ = 0;
  int64_t grain_ = 1;
  int32_t precision_ = kFolioChain;
  bool as_bfloat16_ = false;  // kernels read packed weights so
  bool is_packed_ = false;    // as kernels read them
  int64_t parts_ = 1;         // tiles of a line
  int64_t lines_ = 0;         // of a tile that copies them
  bool cuts_lines_ = false;   // pixels [inside_begin_, inside_end_) of a line see no border
  int64_t inside_begin_ = 0;
  int64_t inside_end_ = 0;
  int64_t row_parts_ = 1;  // chunks that have the same columns of halves
  int64_t rows_ = 0;       // output pixels of all images
  ConvTiling tiling_;
};

// All chunks, each with scratch of its own and zeros that they share.
template <typename Work>
Status run_nhwc_chunks(OpRun& run, const Work& work, int64_t chunks, int64_t grain) {
  FOLIO_TRY(uint8_t * zeros, run.scratch(work.zero_bytes()));
  std::memset(zeros, 0, work.zero_bytes());
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, work.scratch_bytes(), &scratch));
  run.parallel().for_range(chunks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      work.compute(chunk, block.data(), reinterpret_cast<const float*>(zeros));
    }
  });
  return Status::ok();
}

}  // namespace folio
