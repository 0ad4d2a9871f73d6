// Several operators write channels of one image with channels last, instead of an image each that
// Concat would copy, and others read some channels of an image, instead of those that Split would
// copy: what the passes read_channels and join_in_place make.
//
// Flow:    the first one that writes makes the image, uninitialised but for its own channels; each
//          of the others gets it as its last input, writes its channels there, and gives it on.
//          Who reads some channels gets the image as it is then.
// Owns:    plain values.
// Threads: one operator after the other.
#pragma once

#include <string_view>

#include "core/ops/op_nhwc_conv.h"

namespace folio {

// Attributes of an operator that writes some channels: the first of them, and how many the image
// has.
inline constexpr std::string_view kJoinAtAttribute = "join_at";
inline constexpr std::string_view kJoinedAttribute = "joined_channels";

struct JoinPlace {
  int64_t at = 0;
  int64_t channels = 0;  // of the image; 0: it is the operator's alone
};
Result<JoinPlace> parse_join_place(const Attributes& attrs);
void set_join_place(const JoinPlace& place, Attributes* attrs);

// Channels of an image that Join copies: [from, from + count) of it become those from `at` on.
struct JoinPart {
  int64_t at = 0;
  int64_t from = 0;
  int64_t count = 0;
};
Result<std::vector<JoinPart>> parse_join_parts(const Attributes& attrs, int images);
void set_join_parts(const std::vector<JoinPart>& parts, Attributes* attrs);

// Of the shape of what an operator makes, that of the image.
Status infer_joined(const Attributes& attrs, Dims* dims);

// Attributes of an operator that reads some channels of x, or of z, as many as it has weights: the
// first of them.
inline constexpr std::string_view kXAtAttribute = "x_at";
inline constexpr std::string_view kZAtAttribute = "z_at";
Result<int64_t> parse_first_channel(const Attributes& attrs, std::string_view name);  // -1: all

// Of image `x`, the channels from `at` on that weights `w` are for.
Result<Shape> channels_of(const Shape& x, int64_t at, const Shape& w, int64_t group);

// Of dims `x` with channels last, those that weights `w` are for.
Status infer_x_channels(const Attributes& attrs, const Dims& w, Dims* x);

// An attribute of 1: z is added behind the activation.
inline constexpr std::string_view kAddsLastAttribute = "adds_last";

// How an operator adds z.
struct AddendPlace {
  int64_t at = -1;  // the first of its channels in the image that is z; -1: all of them
  bool is_last = false;
};
Result<AddendPlace> parse_addend_place(const Attributes& attrs);

// z of a convolution of output `y`, where it has one: input `input`, or channels of it, to `args`.
Status place_addend(const OpRun& run, int input, const AddendPlace& place, const Shape& y,
                    NhwcConvArgs* args);

// The image that others have begun, of folio.nhwc Resize and ConvTranspose.
inline constexpr int kResizeInto = 4;
inline constexpr int kTransposeInto = 3;

// Where an operator writes, and floats from a pixel to the next; 0: of its channels.
struct PlacedOutput {
  float* y = nullptr;
  int64_t y_step = 0;
};
// Output 0 of shape `y`, or the image that its channels are part of. `into`: the input that is the
// image, where others have begun it.
Result<PlacedOutput> place_output(OpRun& run, const JoinPlace& place, int into, const Shape& y);

}  // namespace folio
