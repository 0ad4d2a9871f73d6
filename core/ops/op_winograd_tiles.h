// How outputs are cut into tiles of Winograd's algorithm, and filters into pieces; where the pixels
// of a tile and its outputs are. Of floats and of bytes.
//
// Source: core/kernels/winograd.h. Axes are those of a Window.
// Owns:   nothing; a window outlives its tiles, and these the places in them.
#pragma once

#include "core/kernels/kernels.h"
#include "core/ops/op_window.h"

namespace folio {

// How outputs along one axis, `dilation` apart, are cut into tiles.
struct WinogradAxis {
  WinogradAxis(int64_t outputs, int64_t dilation);
  // Of a tile's outputs. The first one of tile i is i % together + i / together * 4 * step: tiles
  // side by side are neighbours.
  int64_t step;
  int64_t together;  // tiles whose outputs stand between each other's
  int64_t count;
};

// Of an image, by axes as a Window counts them.
struct WinogradAxes {
  WinogradAxis of[3];
  int64_t count() const { return of[0].count * of[1].count * of[2].count; }
};

// Of weights that fit: matrices of [depth, M], which are multiplied instead of `taps`. Axes are
// those of a Window.
struct WinogradForm {
  explicit WinogradForm(Span<const int64_t> w);
  // Whether tiles are of several outputs along that axis.
  bool has_tiles(int axis) const { return size[axis] > 1; }
  // As the transforms have them.
  int32_t line_taps() const { return is_line ? static_cast<int32_t>(piece_taps) : 0; }
  // Where a piece is, by axes.
  void place_of(int64_t piece, int64_t* at) const;

  bool is_line;
  int64_t kernel[3];
  int64_t size[3];   // of a piece of the taps: 3 by 3, of a line 3 or 4; else 1
  int64_t count[3];  // pieces
  int64_t taps;
  int64_t pieces;
  int64_t piece_taps;
  int64_t planes;
  int64_t depth;
};

// Along one axis, from tile i on.
class AxisTile {
 public:
  AxisTile(const WinogradAxis& axis, int64_t i)
      : axis_(&axis),
        index_(i),
        within_(i % axis.together),
        first_(i / axis.together * axis.step * FOLIO_WINOGRAD_SIDE) {}

  int64_t first() const { return first_ + within_; }
  bool next() {  // false: from the first one on again
    if (++within_ == axis_->together) {
      within_ = 0;
      first_ += axis_->step * FOLIO_WINOGRAD_SIDE;
    }
    if (++index_ < axis_->count) return true;
    index_ = within_ = first_ = 0;
    return false;
  }

 private:
  const WinogradAxis* axis_;
  int64_t index_, within_, first_;
};

// From tile i of all images on: where its first output is. (Divisions for each would take as long
// as the transforms of 16 channels.)
class TilePlace {
 public:
  TilePlace(const WinogradAxes& axes, int64_t i)
      : image_(i / axes.count()),
        axis_{AxisTile(axes.of[0], i / axes.of[2].count / axes.of[1].count % axes.of[0].count),
              AxisTile(axes.of[1], i / axes.of[2].count % axes.of[1].count),
              AxisTile(axes.of[2], i % axes.of[2].count)} {}

  int64_t image() const { return image_; }
  int64_t first(int axis) const { return axis_[axis].first(); }
  void next();

 private:
  int64_t image_;
  AxisTile axis_[3];
};

// The tiles of images with channels last, all of whose pixels have `pixel` elements.
class WinogradTiles {
 public:
  WinogradTiles(const WinogradForm& form, const Window& window, int64_t pixel);

  int64_t of_image() const { return axes_.count(); }
  TilePlace at(int64_t tile) const;  // of all images

  // Where the first tap of a piece is, behind an output.
  void first_tap(int64_t piece, int64_t* behind) const;
  // The pixels of x that these taps see of a tile; `border` outside of the image. Gives the place
  // of the next tile's.
  template <typename T>
  const T** inputs(const TilePlace& tile, const int64_t* behind, const T* x, const T* border,
                   const T** to) const;
  // The pixels of a tile's outputs; -1 outside of the image. Gives the place of the next tile's.
  int64_t* outputs(const TilePlace& tile, int64_t* pixels) const;

 private:
  template <typename T>
  [[gnu::noinline]] const T** edge_inputs(const T* image, const int64_t* first, const T* border,
                                          const T** to) const;

  const WinogradForm& form_;
  const Window& window_;
  int64_t pixel_;
  WinogradAxes axes_;               // of tiles in an image
  int64_t pixels_[3], outputs_[3];  // of a tile
  int64_t reach_[3];                // of its last pixel from its first one
  int64_t stride_[3];               // elements between its pixels
};

template <typename T>
const T** WinogradTiles::inputs(const TilePlace& tile, const int64_t* behind, const T* x,
                                const T* border, const T** to) const {
  const Window& w = window_;
  const int64_t first[3] = {tile.first(0) + behind[0], tile.first(1) + behind[1],
                            tile.first(2) + behind[2]};
  const T* image = x + tile.image() * w.in_count() * pixel_;
  bool is_whole = true;
  for (int axis = 0; axis < 3; ++axis) {
    is_whole &= first[axis] >= 0 && first[axis] + reach_[axis] < w.in[axis];
  }
  if (!is_whole) return edge_inputs(image, first, border, to);
  const T* slice = image + ((first[0] * w.in[1] + first[1]) * w.in[2] + first[2]) * pixel_;
  for (int64_t i = pixels_[0]; i > 0; --i, slice += stride_[0]) {
    const T* line = slice;
    for (int64_t j = pixels_[1]; j > 0; --j, line += stride_[1]) {
      const T* pixel = line;
      for (int64_t k = pixels_[2]; k > 0; --k, pixel += stride_[2]) *to++ = pixel;
    }
  }
  return to;
}

template <typename T>
const T** WinogradTiles::edge_inputs(const T* image, const int64_t* first, const T* border,
                                     const T** to) const {
  const Window& w = window_;
  int64_t slice = first[0];
  for (int64_t i = pixels_[0]; i > 0; --i, slice += axes_.of[0].step) {
    const bool is_slice = slice >= 0 && slice < w.in[0];
    int64_t line = first[1];
    for (int64_t j = pixels_[1]; j > 0; --j, line += axes_.of[1].step) {
      const bool is_line = is_slice && line >= 0 && line < w.in[1];
      const int64_t row = (slice * w.in[1] + line) * w.in[2];
      int64_t pixel = first[2];
      for (int64_t k = pixels_[2]; k > 0; --k, pixel += axes_.of[2].step) {
        const bool is_there = is_line && pixel >= 0 && pixel < w.in[2];
        *to++ = is_there ? image + (row + pixel) * pixel_ : border;
      }
    }
  }
  return to;
}

// Elements of so many bytes between planes of `elements` of them, so that the same one of all
// planes falls into different sets of the cache.
constexpr int64_t winograd_plane_stride(int64_t elements, int64_t bytes) {
  const int64_t page = 4096 / bytes;
  return (elements + page - 1) / page * page + 64 / bytes;
}

}  // namespace folio
