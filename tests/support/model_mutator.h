// Changed models: fields of an .onnx file are changed one at a time, so that most results still
// load and get as far as operators and kernels. Changed bytes seldom get past the parser.
//
// Flow:    bytes -> Fields (wire_tree.h) -> one to three changes -> bytes. The same seed makes the
//          same change.
// Errors:  protozero's exceptions for what is no protobuf message.
// Threads: any; the callback too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace folio::testing {

// Changes bytes of no known meaning: `size` of them, which may become up to `most`. Gives how many
// there are then.
using ChangeBytes = size_t (*)(uint8_t* data, size_t size, size_t most);

std::string change_model(std::string_view model, uint64_t seed, ChangeBytes change_bytes);

// The same with numbers that are neither huge nor none: who computes otherwise, computes wrongly.
// Bytes of no known meaning stay.
std::string change_model_tamely(std::string_view model, uint64_t seed);

// A part of `other` stands where this model has such a part.
std::string cross_models(std::string_view model, std::string_view other, uint64_t seed);

}  // namespace folio::testing
