#include "core/ops/op_half_panels.h"

#include <algorithm>
#include <cstring>

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr size_t kHalf = sizeof(uint16_t);
constexpr int64_t kTurned = 256;  // rows of a panel that are turned at once: 8 KiB

// move(element of the matrix, element of the panels) of the columns of one panel, whose rows stand
// in pairs or alone.
template <bool kPairs, typename Move>
void walk_panel(const HalfMatrix& b, int64_t first, int64_t columns, const Move& move) {
  const auto place = [](int64_t p, int64_t c) {
    return kPairs ? folio_bf16p16_at(p, c) : p * kPanel + c;
  };
  if (b.taps > 1) {
    const int64_t channels = b.k / b.taps;
    for (int64_t j = 0; j < columns; ++j) {
      int64_t from = (first + j) * b.col_stride;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t tap = 0; tap < b.taps; ++tap) move(from++, place(tap * channels + c, j));
      }
    }
    return;
  }
  for (int64_t p = 0; p < b.k; p += kTurned) {
    const int64_t end = std::min(p + kTurned, b.k);
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t from = (first + j) * b.col_stride;
      for (int64_t row = p; row < end; ++row) move(from + row * b.row_stride, place(row, j));
    }
  }
}

template <typename Move>
void walk_panel(const HalfMatrix& b, int64_t first, int64_t columns, const Move& move) {
  if (b.dtype == DType::kBfloat16) {
    walk_panel<true>(b, first, columns, move);
  } else {
    walk_panel<false>(b, first, columns, move);
  }
}

// Rows of the matrix are rows of panels.
bool lies_by_rows(const HalfMatrix& b) {
  return b.dtype == DType::kFloat16 && b.taps == 1 && b.col_stride == 1;
}

}  // namespace

bool has_half_weights(const Attributes& attributes) {
  const auto value = attributes.get_int(kHalfWeightsAttribute, 0);
  return value.is_ok() && value.value() != 0;
}

const Ref<Initializer>* half_behind(const Initializer& constant) {
  const Recipe* recipe = constant.recipe.get();
  const bool is_cast = !constant.tensor && constant.dtype == DType::kFloat && recipe &&
                       recipe->op_type == "Cast" && recipe->domain.empty() &&
                       recipe->inputs.size() == 1 && recipe->inputs[0];
  return is_cast && is_half(recipe->inputs[0]->dtype) ? &recipe->inputs[0] : nullptr;
}

bool takes_half_matrix(const Attributes&, int i, const Shape& shape) {
  return i == 1 && shape.rank() == 2;
}

Result<const Tensor*> weights_input(const OpRun& run, int i, DType dtype, bool may_be_half) {
  FOLIO_TRY(const Tensor* weights, run.tensor(i));
  if (may_be_half && is_half(weights->dtype())) return weights;
  return run.tensor(i, dtype);
}

void set_panels_of(DType dtype, PackRequest* request) {
  request->layout = dtype == DType::kFloat     ? Layout::kF32P16
                    : dtype == DType::kFloat16 ? Layout::kF16P16
                                               : Layout::kBF16P16;
  request->version = layout_version(request->layout);
}

bool panels_bytes(DType dtype, int64_t k, int64_t n, uint64_t* out_bytes) {
  return dtype == DType::kFloat     ? f32p16_bytes(k, n, out_bytes)
         : dtype == DType::kFloat16 ? f16p16_bytes(k, n, out_bytes)
                                    : bf16p16_bytes(k, n, out_bytes);
}

void widen_halves(const FolioKernels& kernels, DType dtype, int64_t n, const void* from,
                  float* to) {
  (dtype == DType::kFloat16 ? kernels.f16_to_f32 : kernels.bf16_to_f32)(n, from, to);
}

void widen_panels(const FolioKernels& kernels, DType dtype, int64_t k, int64_t n,
                  const uint8_t* panels, float* to) {
  const int64_t columns = (n + kPanel - 1) / kPanel * kPanel;
  if (dtype != DType::kBfloat16) return widen_halves(kernels, dtype, columns * k, panels, to);
  const size_t panel = static_cast<size_t>(folio_bf16p16_rows(k) * kPanel) * kHalf;
  for (int64_t j = 0; j < columns; j += kPanel, panels += panel, to += k * kPanel) {
    kernels.bf16p16_to_f32(k, panels, to);
  }
}

void pack_half_panels(const HalfMatrix& b, const uint8_t* from, uint8_t* dst) {
  const size_t panel = static_cast<size_t>(panel_rows(b.dtype, b.k) * kPanel) * kHalf;
  for (int64_t j = 0; j < b.n; j += kPanel, dst += panel) {
    const int64_t columns = std::min(kPanel, b.n - j);
    const size_t row = static_cast<size_t>(columns) * kHalf;
    if (columns < kPanel || panel_rows(b.dtype, b.k) > b.k) std::memset(dst, 0, panel);
    if (lies_by_rows(b)) {
      for (int64_t p = 0; p < b.k; ++p) {
        std::memcpy(dst + static_cast<size_t>(p * kPanel) * kHalf,
                    from + static_cast<size_t>(p * b.row_stride + j) * kHalf, row);
      }
      continue;
    }
    walk_panel(b, j, columns, [&](int64_t source, int64_t to) {
      std::memcpy(dst + static_cast<size_t>(to) * kHalf, from + static_cast<size_t>(source) * kHalf,
                  kHalf);
    });
  }
}

void unpack_half_panels(const HalfMatrix& b, const uint8_t* panels, uint8_t* to) {
  const size_t panel = static_cast<size_t>(panel_rows(b.dtype, b.k) * kPanel) * kHalf;
  for (int64_t j = 0; j < b.n; j += kPanel, panels += panel) {
    const int64_t columns = std::min(kPanel, b.n - j);
    const size_t row = static_cast<size_t>(columns) * kHalf;
    if (lies_by_rows(b)) {
      for (int64_t p = 0; p < b.k; ++p) {
        std::memcpy(to + static_cast<size_t>(p * b.row_stride + j) * kHalf,
                    panels + static_cast<size_t>(p * kPanel) * kHalf, row);
      }
      continue;
    }
    walk_panel(b, j, columns, [&](int64_t source, int64_t from) {
      std::memcpy(to + static_cast<size_t>(source) * kHalf,
                  panels + static_cast<size_t>(from) * kHalf, kHalf);
    });
  }
}

void widen_lines(const FolioKernels& kernels, DType dtype, int64_t depth, int64_t columns,
                 const uint8_t* from, int64_t row_stride, int64_t col_stride, float* lines,
                 float* panels) {
  const bool by_rows = col_stride == 1;
  const int64_t count = by_rows ? depth : columns;
  const int64_t length = by_rows ? columns : depth;
  const int64_t stride = by_rows ? row_stride : col_stride;
  for (int64_t i = 0; i < count; ++i) {
    widen_halves(kernels, dtype, length, from + static_cast<size_t>(i * stride) * kHalf,
                 lines + i * length);
  }
  kernels.pack_f32p16(depth, columns, lines, by_rows ? length : 1, by_rows ? 1 : length, panels);
}

}  // namespace folio
