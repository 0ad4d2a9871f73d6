#include "core/ops/op_conv_byte_weights.h"

#include "core/base/checked_math.h"
#include "core/ops/op_quantized.h"

namespace folio {
namespace {

constexpr int64_t kPanel = 16;

PackRequest matrix_request(int64_t c_in, int64_t taps, int64_t channels) {
  PackRequest request = s8p16k4_request(c_in * taps, channels, taps, c_in * taps);
  request.taps = taps;
  return request;
}

// The panels of all groups, so many of them together. False when there are too many bytes.
bool panels_request(int64_t group, int64_t c_in, int64_t c_out, int64_t taps, int64_t joined,
                    PackRequest* out) {
  int64_t k = 0;
  if (!checked_mul(c_in, taps, &k) || !checked_mul(k, joined, &k)) return false;
  *out = matrix_request(c_in * joined, taps, group * c_out);
  out->groups = c_out % kPanel == 0 ? 1 : group;  // whole panels are those of one matrix
  const auto matrices = static_cast<uint64_t>(product_groups(out->groups, joined));
  uint64_t each = 0;
  return s8p16k4_bytes(k, out->n / out->groups * joined, &each) &&
         checked_mul(each, matrices, &out->bytes);
}

// A panel of filters of `groups` groups [filters, c_in, taps], each of which sees its own group's
// share of the rows of a tap, and their sums. It has `room` bytes, of which fewer groups leave
// some.
void fill_joined(int64_t groups, int64_t filters, int64_t c_in, int64_t taps, const uint8_t* from,
                 DType dtype, uint8_t* panel, int64_t room) {
  const int64_t rows = groups * c_in;
  const uint8_t flip = dtype == DType::kUint8 ? 0x80 : 0;
  std::memset(panel, 0, static_cast<size_t>(room));
  auto* sums = reinterpret_cast<int32_t*>(panel + panel_bytes(rows * taps));
  for (int64_t j = 0; j < groups * filters; ++j) {
    const int64_t first = j / filters * c_in;
    for (int64_t c = 0; c < c_in; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const uint8_t code = *from++ ^ flip;
        const int64_t p = tap * rows + first + c;
        panel[p / 4 * FOLIO_S8P16K4_GROUP + j * 4 + p % 4] = code;
        sums[j] += static_cast<int8_t>(code);
      }
    }
  }
}

// What `r` asks for, of filters of so many channels.
void fill_conv_panels(const FolioKernels& kernels, const PackRequest& r, int64_t c_in,
                      const uint8_t* bytes, DType dtype, uint8_t* blob) {
  const int64_t k = c_in * r.taps;
  const int64_t joined = r.k / k;
  const int64_t filters = r.n / r.groups;
  const int64_t each = static_cast<int64_t>(r.bytes) / product_groups(r.groups, joined);
  PackRequest one = r;
  one.n = filters;
  for (int64_t g = 0; g < r.groups; g += joined, blob += each) {
    const uint8_t* from = bytes + g * filters * k;
    if (joined > 1) {
      fill_joined(std::min(joined, r.groups - g), filters, c_in, r.taps, from, dtype, blob, each);
    } else {
      fill_panels(kernels, one, from, dtype, blob);
    }
  }
}

void add_offsets(const ByteConv& conv, const ConvSizes& s, int64_t first, int64_t count,
                 const int32_t* column_sums, int32_t x_zero, const int32_t* zero, int32_t* offset) {
  zero_point_offsets(count, s.k(), x_zero, column_sums, zero ? zero + first : nullptr,
                     conv.bias ? conv.bias + first : nullptr, 1, offset + first);
}

// Weights without their zero points: the differences may need more than a byte each, and are sums
// of `parts` signed bytes then, [filters, c_in, parts, taps].
struct Differences {
  const uint8_t* bytes = nullptr;
  int64_t parts = 1;
};

Result<Differences> subtract_zeros(OpRun& run, const ConvSizes& s, const ByteConv& conv,
                                   const int32_t* zero) {
  const int64_t taps = s.window.kernel_count();
  const int64_t each = s.c_in * taps;
  const int64_t channels = s.group * s.c_out;
  const uint8_t flip = conv.w->dtype() == DType::kUint8 ? 0x80 : 0;
  const uint8_t* codes = conv.w->raw();
  const auto code = [&](int64_t i) { return static_cast<int8_t>(codes[i] ^ flip); };
  int32_t low = 0;
  int32_t high = 0;
  for (int64_t j = 0; j < channels; ++j) {
    int8_t least = 127;
    int8_t most = -128;
    for (int64_t i = j * each; i < (j + 1) * each; ++i) {
      least = std::min(least, code(i));
      most = std::max(most, code(i));
    }
    low = std::min(low, least - zero[j]);
    high = std::max(high, most - zero[j]);
  }
  Differences out;
  out.parts = low >= -128 && high <= 127 ? 1 : high <= 2 * 127 ? 2 : 3;
  FOLIO_TRY(uint8_t * to, run.scratch(static_cast<size_t>(out.parts * channels * each)));
  out.bytes = to;
  for (int64_t i = 0; i < channels * s.c_in; ++i) {
    for (int64_t p = 0; p < out.parts; ++p, to += taps) {
      // What earlier parts leave: each took as much as a byte holds.
      const auto taken = static_cast<int32_t>(p);
      for (int64_t t = 0; t < taps; ++t) {
        const int32_t all = code(i * taps + t) - zero[i / s.c_in];
        const int32_t rest = all - std::clamp(all, -128 * taken, 127 * taken);
        to[t] = static_cast<uint8_t>(std::clamp(rest, -128, 127));
      }
    }
  }
  return out;
}

// One for each channel, of codes as the panels have them; null: all are 0.
int32_t* zeros_of(const ByteConv& conv, int64_t channels, int32_t* zero) {
  if (!has_weight_zeros(conv, channels)) return nullptr;
  const int32_t flip = conv.w->dtype() == DType::kUint8 ? 128 : 0;
  for (int64_t j = 0; j < channels; ++j) {
    const int64_t at = j * conv.w_zero.row_stride;
    zero[j] = -flip;
    if (!conv.w_zero.data) continue;
    const uint8_t code = conv.w_zero.data[at];
    zero[j] += flip != 0 ? code : static_cast<int8_t>(code);
  }
  return zero;
}

}  // namespace

bool has_weight_zeros(const ByteConv& conv, int64_t channels) {
  const uint8_t none = packed_zero_point(conv.w->dtype());
  const uint8_t* zeros = conv.w_zero.data;
  if (!zeros) return none != 0;
  const auto rest = static_cast<size_t>(conv.w_zero.row_stride == 0 ? 0 : channels - 1);
  return zeros[0] != none || std::memcmp(zeros, zeros + 1, rest) != 0;
}

int64_t joined_groups(int64_t group, int64_t c_in, int64_t filters) {
  if (group == 1 || filters > kPanel / 2) return 1;
  const int64_t joined = std::min(group, kPanel / filters);
  const bool has_rest = group % joined != 0;
  return has_rest && (c_in % 4 != 0 || !fits_pieces(c_in * joined)) ? 1 : joined;
}

void request_byte_conv(OpBuild& build, int input, int64_t group) {
  const Initializer* w = build.initializer(input);
  if (!w || !is_byte(w->dtype) || w->shape.rank() < 3 || w->shape[0] < 1) return;
  uint64_t count = 0;
  if (!checked_count(w->shape.dims(), &count) || count == 0) return;
  const int64_t channels = w->shape[0];
  const int64_t c_in = w->shape[1];
  const int64_t taps = static_cast<int64_t>(count) / channels / c_in;
  if (group < 1 || channels % group != 0) return;
  const int64_t c_out = channels / group;
  const bool depthwise = is_depthwise(c_in, c_out, taps);
  const int64_t joined = depthwise ? 1 : joined_groups(group, c_in, c_out);
  PackRequest request;
  if (!panels_request(depthwise ? 1 : group, c_in, depthwise ? channels : c_out, taps, joined,
                      &request)) {
    return;
  }
  // With zero points other than 0 these are packed once more by the run.
  request.replaces_source = !depthwise && joined == 1;
  request.context = &build.kernels();
  request.fill = [](const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
    fill_conv_panels(*static_cast<const FolioKernels*>(context), r, source.shape()[1], source.raw(),
                     source.dtype(), blob);
    return Status::ok();
  };
  build.request_pack(input, request);
}

Result<ByteConvWeights> prepare_byte_conv_weights(OpRun& run, const ConvSizes& s,
                                                  const ByteConv& conv, int32_t x_zero) {
  const int64_t channels = s.group * s.c_out;
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(channels) * 2 * sizeof(int32_t)));
  auto* offset = reinterpret_cast<int32_t*>(memory);
  ByteConvWeights out;
  out.zero = zeros_of(conv, channels, offset + channels);
  const bool one_channel = is_depthwise(s);
  const int64_t joins = one_channel ? 1 : joined_groups(s.group, s.c_in, s.c_out);
  const uint8_t* codes = conv.w->raw();
  DType dtype = conv.w->dtype();
  int64_t taps = s.window.kernel_count();
  const PackedBlob* blob = conv.is_winograd ? nullptr : run.packed(conv.w_input);
  if (out.zero && blob && (one_channel || joins > 1)) blob = nullptr;  // it has no zero points
  if (out.zero && (one_channel || (joins > 1 && s.window.kernel[0] == 1))) {
    FOLIO_TRY(const Differences made, subtract_zeros(run, s, conv, out.zero));
    if (!one_channel || made.parts * taps <= FOLIO_MAX_BYTE_TAPS) {
      codes = made.bytes;
      dtype = DType::kInt8;
      out.parts = made.parts;
      out.zero = nullptr;
      taps *= made.parts;
    }
  }
  const bool depthwise = one_channel && !out.zero;
  out.joined = out.zero ? 1 : joins;
  PackRequest request;
  if (!panels_request(depthwise ? 1 : s.group, s.c_in, depthwise ? channels : s.c_out, taps,
                      out.joined, &request)) {
    return invalid_argument("W ", conv.w->shape().to_string(), " is too large to pack");
  }
  if (blob) {
    out.panels = blob->data();
  } else {
    FOLIO_TRY(uint8_t * panels, run.scratch(static_cast<size_t>(request.bytes)));
    fill_conv_panels(run.kernels(), request, s.c_in, codes, dtype, panels);
    out.panels = panels;
  }
  const int64_t columns = request.n / request.groups * out.joined;  // of a group of the product
  if (request.groups == 1) {
    out.group_stride = s.c_out / kPanel * panel_bytes(request.k);
    const int32_t* sums = packed_matrix(out.panels, request.k, columns).column_sums;
    if (!out.zero) {
      out.offset = conv.bias;
      out.column_sums = sums;
      return out;
    }
    add_offsets(conv, s, 0, channels, sums, x_zero, out.zero, offset);
  } else {
    out.group_stride =
        static_cast<int64_t>(request.bytes) / product_groups(request.groups, out.joined);
    for (int64_t first = 0; first < channels; first += columns) {
      const int64_t count = std::min(columns, channels - first);
      const uint8_t* panels = out.panels + first / columns * out.group_stride;
      const int64_t k = (out.joined > 1 ? count / s.c_out : 1) * s.c_in * taps;
      add_offsets(conv, s, first, count, packed_matrix(panels, k, count).column_sums, x_zero,
                  out.zero, offset);
    }
  }
  out.offset = offset;
  return out;
}

}  // namespace folio
