// Several operators write channels of one image with channels last, instead of an image each that
// Concat would copy: what the pass join_in_place makes.
//
// Flow:    the first one makes the image, uninitialised but for its own channels; each of the
//          others gets it as its last input, writes its channels there, and gives it on.
// Owns:    plain values.
// Threads: one operator after the other; nothing else reads the image before the last one is done.
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

// Of the shape of what an operator makes, that of the image.
Status infer_joined(const Attributes& attrs, Dims* dims);

// Output 0 of a convolution of shape `y`, or the image that its channels are part of; where it is
// to write goes to `args`. `into`: the input that is the image, where others have begun it.
Status place_output(OpRun& run, const JoinPlace& place, int into, const Shape& y,
                    NhwcConvArgs* args);

}  // namespace folio
