#include "core/ops/op_unpack.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/utf8.h"
#include "core/ops/op_half_panels.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr Layout kLayouts[] = {Layout::kF32P16, Layout::kS8P16K4, Layout::kF32Tapwise,
                               Layout::kF16P16, Layout::kBF16P16};

// Panels of elements that kernels take as they are, of any groups.
bool is_panels(Layout layout) {
  return layout == Layout::kF32P16 || layout == Layout::kF16P16 || layout == Layout::kBF16P16;
}

bool holds(Layout layout, DType dtype) {
  if (layout == Layout::kS8P16K4) return dtype == DType::kInt8 || dtype == DType::kUint8;
  if (layout == Layout::kF16P16) return dtype == DType::kFloat16;
  if (layout == Layout::kBF16P16) return dtype == DType::kBfloat16;
  return dtype == DType::kFloat;
}

// How the matrix stands in the weight: column by column, each column's rows channel by channel and
// their taps side by side; or row by row.
bool has_columns(const PackRequest& r) {
  if (r.layout == Layout::kF32Tapwise) {
    return r.row_stride == 0 && r.col_stride == 0 && r.taps == r.k && r.groups == 1;
  }
  const int64_t row_stride = r.layout == Layout::kS8P16K4 ? r.taps : 1;
  return r.row_stride == row_stride && r.col_stride == r.k;
}

bool has_rows(const PackRequest& r) {
  return r.layout != Layout::kF32Tapwise && r.row_stride == r.n && r.col_stride == 1 &&
         r.taps == 1 && r.groups == 1;
}

bool bytes_of(const PackRequest& r, uint64_t* out) {
  if (r.layout == Layout::kS8P16K4) return s8p16k4_bytes(r.k, r.n, out);
  uint64_t each = 0;
  if (is_panels(r.layout)) {
    const auto bytes = r.layout == Layout::kF32P16   ? f32p16_bytes
                       : r.layout == Layout::kF16P16 ? f16p16_bytes
                                                     : bf16p16_bytes;
    return bytes(r.k, r.n / r.groups, &each) &&
           checked_mul(each, static_cast<uint64_t>(r.groups), out);
  }
  return checked_mul(static_cast<uint64_t>(r.k), static_cast<uint64_t>(r.n), &each) &&
         checked_mul(each, uint64_t{sizeof(float)}, out);
}

Result<Layout> layout_called(const std::string& name) {
  for (const Layout layout : kLayouts) {
    if (name == layout_name(layout)) return layout;
  }
  return invalid_graph("attribute 'layout' is '", utf8_shortened(utf8_repaired(name), 40),
                       "', this build knows F32P16, S8P16K4, F32TAPWISE, F16P16 and BF16P16");
}

Status read_matrix(const Attributes& attributes, PackRequest* form) {
  struct Number {
    const char* name;
    int64_t* value;
    bool may_be_zero;
  };
  const Number numbers[] = {{"k", &form->k, false},
                            {"n", &form->n, false},
                            {"row_stride", &form->row_stride, true},
                            {"col_stride", &form->col_stride, true},
                            {"taps", &form->taps, false},
                            {"groups", &form->groups, false}};
  if (!attributes.has("matrix")) return invalid_graph("attribute 'matrix' is missing");
  FOLIO_TRY(const std::vector<int64_t> values, attributes.get_ints("matrix"));
  if (values.size() != std::size(numbers)) {
    return invalid_graph("attribute 'matrix' has ", values.size(), " numbers, expected ",
                         std::size(numbers));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < (numbers[i].may_be_zero ? 0 : 1)) {
      return invalid_graph("attribute 'matrix' says ", numbers[i].name, " ", values[i],
                           ", expected a positive number");
    }
    *numbers[i].value = values[i];
  }
  return Status::ok();
}

Result<Shape> shape_of(const Attributes& attributes) {
  if (!attributes.has("shape")) return invalid_graph("attribute 'shape' is missing");
  FOLIO_TRY(const std::vector<int64_t> dims, attributes.get_ints("shape"));
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return invalid_graph("attribute 'shape' has ", dims.size(), " dims, at most ", kMaxRank,
                         " are possible");
  }
  for (const int64_t dim : dims) {
    if (dim < 1) return invalid_graph("attribute 'shape' has the dim ", dim);
  }
  uint64_t count = 0;
  if (!checked_count(dims, &count) || count > static_cast<uint64_t>(INT64_MAX)) {
    return invalid_graph("attribute 'shape' has more elements than can be counted");
  }
  return Shape(Span<const int64_t>(dims));
}

// Panels of one group's columns [first, first + 16): tap by tap, rows are channels.
void unpack_columns(const FolioKernels& kernels, const PackRequest& r, const float* panel,
                    int64_t first, int64_t count, uint8_t* out) {
  const int64_t channels = r.k / r.taps;
  for (int64_t tap = 0; tap < r.taps; ++tap) {
    kernels.unpack_f32p16(channels, count, panel + tap * channels * kPanel,
                          out + 4 * (first * r.k + tap), r.taps, r.k);
  }
}

void unpack_f32(const FolioKernels& kernels, Parallel& parallel, const PackRequest& r,
                const uint8_t* blob, uint8_t* out) {
  const int64_t columns = r.n / r.groups;
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  const auto* from = reinterpret_cast<const float*>(blob);
  parallel.for_range(r.groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i % panels * kPanel;
      const int64_t first = i / panels * columns + j;
      const int64_t count = std::min(kPanel, columns - j);
      const float* panel = from + i * r.k * kPanel;
      if (has_columns(r)) {
        unpack_columns(kernels, r, panel, first, count, out);
      } else {
        kernels.unpack_f32p16(r.k, count, panel, out + 4 * first, r.n, 1);
      }
    }
  });
}

void unpack_halves(Parallel& parallel, const PackRequest& r, const uint8_t* blob, uint8_t* out) {
  const int64_t columns = r.n / r.groups;
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  const DType dtype = r.layout == Layout::kF16P16 ? DType::kFloat16 : DType::kBfloat16;
  const int64_t panel_bytes = panel_element_bytes(dtype) * panel_rows(dtype, r.k) * kPanel;
  parallel.for_range(r.groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i % panels * kPanel;
      const int64_t first = i / panels * columns + j;
      unpack_half_panels(
          {dtype, r.k, std::min(kPanel, columns - j), r.row_stride, r.col_stride, r.taps},
          blob + i * panel_bytes, out + 2 * first * r.col_stride);
    }
  });
}

}  // namespace

Status check_packed_weight(const PackedWeight& weight) {
  const PackRequest& r = weight.form;
  const auto refuse = [&](const auto&... what) {
    return invalid_graph("a weight ", dtype_name(weight.dtype), " ", weight.shape.to_string(),
                         " in layout ", layout_name(r.layout), ": ", what...);
  };
  if (layout_version(r.layout) != r.version) {
    return refuse("has version ", r.version, " of it, this build knows ", layout_version(r.layout));
  }
  if (!holds(r.layout, weight.dtype)) return refuse("the layout is of other elements");
  int64_t count = 0;
  if (r.k < 1 || r.n < 1 || !checked_mul(r.k, r.n, &count) || count != weight.shape.count()) {
    return refuse("is no matrix of ", r.k, " x ", r.n);
  }
  const bool has_groups =
      r.groups >= 1 && r.n % r.groups == 0 && (r.groups == 1 || is_panels(r.layout));
  if (r.taps < 1 || r.k % r.taps != 0 || !has_groups) {
    return refuse("a matrix of ", r.k, " x ", r.n, " has no ", r.taps, " taps in ", r.groups,
                  " groups");
  }
  if (!has_columns(r) && !has_rows(r)) {
    return refuse("strides ", r.row_stride, " and ", r.col_stride, " of a matrix of ", r.k, " x ",
                  r.n, " with ", r.taps, " taps do not reach each element once");
  }
  uint64_t bytes = 0;
  if (!bytes_of(r, &bytes) || bytes != r.bytes) {
    return refuse("takes ", bytes, " bytes, found ", r.bytes);
  }
  return Status::ok();
}

std::vector<AttributeDef> packed_weight_attributes(const PackedWeight& weight) {
  const Span<const int64_t> dims = weight.shape.dims();
  const PackRequest& r = weight.form;
  return {text_attribute("layout", layout_name(weight.form.layout)),
          int_attribute("version", r.version),
          int_attribute("dtype", static_cast<int64_t>(weight.dtype)),
          ints_attribute("shape", {dims.begin(), dims.end()}),
          ints_attribute("matrix", {r.k, r.n, r.row_stride, r.col_stride, r.taps, r.groups}),
          int_attribute("checksum", static_cast<int64_t>(weight.checksum))};
}

Result<PackedWeight> parse_packed_weight(const Attributes& attributes) {
  PackedWeight out;
  PackRequest& form = out.form;
  FOLIO_TRY(const std::string layout, attributes.get_string("layout"));
  FOLIO_TRY(form.layout, layout_called(layout));
  FOLIO_TRY(const int64_t version, attributes.get_int("version"));
  if (version != layout_version(form.layout)) {
    return invalid_graph("layout ", layout, " has version ", version, ", this build knows ",
                         layout_version(form.layout));
  }
  form.version = layout_version(form.layout);
  FOLIO_TRY(const int64_t dtype, attributes.get_int("dtype"));
  if (!dtype_known(dtype)) {
    return invalid_graph("attribute 'dtype' is ", dtype, ", no element type");
  }
  out.dtype = static_cast<DType>(dtype);
  FOLIO_TRY(out.shape, shape_of(attributes));
  FOLIO_RETURN_IF_ERROR(read_matrix(attributes, &form));
  FOLIO_TRY(const int64_t checksum, attributes.get_int("checksum"));
  out.checksum = static_cast<uint64_t>(checksum);
  if (!bytes_of(form, &form.bytes)) {
    return invalid_graph("a matrix of ", form.k, " x ", form.n, " is too large for layout ",
                         layout);
  }
  FOLIO_RETURN_IF_ERROR(check_packed_weight(out));
  return out;
}

const Initializer* packed_blob_of(const Initializer& constant) {
  const Recipe* recipe = constant.recipe.get();
  if (constant.tensor || !recipe || !is_unpack(*recipe) || recipe->inputs.size() != 1) {
    return nullptr;
  }
  const Initializer* blob = recipe->inputs[0].get();
  return blob && blob->tensor ? blob : nullptr;
}

bool is_same_form(const PackRequest& a, const PackRequest& b) {
  return a.layout == b.layout && a.version == b.version && a.k == b.k && a.n == b.n &&
         a.row_stride == b.row_stride && a.col_stride == b.col_stride && a.taps == b.taps &&
         a.groups == b.groups && a.bytes == b.bytes;
}

void unpack_weight(const FolioKernels& kernels, Parallel& parallel, const PackedWeight& weight,
                   const uint8_t* blob, uint8_t* out) {
  const PackRequest& r = weight.form;
  if (r.layout == Layout::kF32P16) {
    unpack_f32(kernels, parallel, r, blob, out);
  } else if (is_panels(r.layout)) {
    unpack_halves(parallel, r, blob, out);
  } else if (r.layout == Layout::kF32Tapwise) {
    kernels.transpose_b32(r.k, r.n, blob, r.n, out, r.k);
  } else {
    FolioPackS8 args{};
    args.k = r.k;
    args.n = r.n;
    args.inner = r.k / r.taps;
    args.outer_stride = 1;
    args.row_stride = r.row_stride;
    args.col_stride = r.col_stride;
    args.flip = weight.dtype == DType::kUint8 ? 0x80 : 0;
    kernels.unpack_s8p16k4(&args, blob, out);
  }
}

}  // namespace folio
