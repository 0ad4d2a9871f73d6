#include "core/ops/op_winograd_tiles.h"

#include <algorithm>

namespace folio {
namespace {

constexpr int64_t kSide = FOLIO_WINOGRAD_SIDE;
constexpr int64_t kSquare = 3;  // taps of a square's side

// Where tiles have no side, outputs are alone.
WinogradAxis axis_of(const WinogradForm& form, const Window& w, int axis) {
  return {w.out[axis], form.has_tiles(axis) ? w.dilation[axis] : w.out[axis]};
}

}  // namespace

WinogradAxis::WinogradAxis(int64_t outputs, int64_t dilation)
    : step(std::max<int64_t>(dilation, 1)),
      together(std::max<int64_t>(std::min(step, outputs), 1)),
      count(outputs > 0 ? together * ((outputs - 1) / (step * kSide) + 1) : 0) {}

WinogradForm::WinogradForm(Span<const int64_t> w)
    : kernel{1, 1, 1}, size{1, 1, 1}, taps(1), pieces(1), piece_taps(1), planes(1) {
  for (size_t i = 2; i < w.size(); ++i) kernel[i + 3 - w.size()] = w[i];
  is_line = std::count(kernel, kernel + 3, 1) >= 2;
  const auto pieces_of = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const auto planes_of = [](int64_t each) { return each + kSide - 1; };
  int tiled = 0;  // axes: the last two that the filter has taps along
  for (int axis = 2; axis >= 0; --axis) {
    const int64_t all = kernel[axis];
    if (all > 1 && tiled < 2) {
      const bool is_four = is_line && pieces_of(all, 4) * planes_of(4) <
                                          pieces_of(all, kSquare) * planes_of(kSquare);
      size[axis] = is_four ? 4 : kSquare;  // whichever takes fewer products
      planes *= planes_of(size[axis]);
      ++tiled;
    }
    count[axis] = pieces_of(all, size[axis]);
    taps *= all;
    pieces *= count[axis];
    piece_taps *= size[axis];
  }
  depth = pieces * w[1];
}

void WinogradForm::place_of(int64_t piece, int64_t* at) const {
  for (int axis = 2; axis >= 0; --axis) {
    at[axis] = piece % count[axis];
    piece /= count[axis];
  }
}

WinogradTiles::WinogradTiles(const WinogradForm& form, const Window& window, int64_t pixel)
    : form_(form),
      window_(window),
      pixel_(pixel),
      axes_{{axis_of(form, window, 0), axis_of(form, window, 1), axis_of(form, window, 2)}} {
  for (int axis = 0; axis < 3; ++axis) {
    pixels_[axis] = form.has_tiles(axis) ? form.size[axis] + kSide - 1 : 1;
    reach_[axis] = (pixels_[axis] - 1) * axes_.of[axis].step;
    const bool can_be_inside = form.has_tiles(axis) && reach_[axis] < window.in[axis];
    stride_[axis] = can_be_inside ? axes_.of[axis].step * pixel : 0;
    outputs_[axis] = form.has_tiles(axis) ? kSide : 1;
  }
  stride_[1] *= window.in[2];
  stride_[0] *= window.in[1] * window.in[2];
}

void TilePlace::next() {
  if (!axis_[2].next() && !axis_[1].next() && !axis_[0].next()) ++image_;
}

TilePlace WinogradTiles::at(int64_t tile) const { return {axes_, tile}; }

void WinogradTiles::first_tap(int64_t piece, int64_t* behind) const {
  form_.place_of(piece, behind);
  for (int axis = 0; axis < 3; ++axis) {
    behind[axis] *= form_.size[axis] * window_.dilation[axis];
    behind[axis] -= window_.pad_begin[axis];
  }
}

int64_t* WinogradTiles::outputs(const TilePlace& tile, int64_t* pixels) const {
  const Window& w = window_;
  const int64_t step = axes_.of[2].step;
  const int64_t end = tile.first(2) + outputs_[2] * step;
  int64_t z = tile.first(0);
  for (int64_t i = outputs_[0]; i > 0; --i, z += axes_.of[0].step) {
    int64_t y = tile.first(1);
    for (int64_t j = outputs_[1]; j > 0; --j, y += axes_.of[1].step) {
      const int64_t line = ((tile.image() * w.out[0] + z) * w.out[1] + y) * w.out[2];
      const bool is_line = z < w.out[0] && y < w.out[1];
      for (int64_t x = tile.first(2); x != end; x += step) {
        *pixels++ = is_line && x < w.out[2] ? line + x : -1;
      }
    }
  }
  return pixels;
}

}  // namespace folio
