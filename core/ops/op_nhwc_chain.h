// Convolutions of floats with channels last, one after the other: what stands between them is made
// some lines at a time and never leaves the cache.
//
// Flow:    a strip of the last one's lines is one chunk, block after block. Each step asks the one
//          before for the lines that its own see; those that two blocks need stay, those that two
//          strips need are computed twice.
// Memory:  a thread has those lines, of all but the last step.
// Splits:  by shape and threads; the bits of one step after the other.
#pragma once

#include "core/ops/op_nhwc_conv.h"

namespace folio {

inline constexpr size_t kMostSteps = 3;
inline constexpr size_t kLastStep = 2;
// Before the names of each one's attributes.
inline constexpr std::string_view kChainSteps[kMostSteps] = {"first.", "filter.", "last."};
// Inputs of a ConvChain behind x: weights, bias and scale of each step, then z, and the image of
// which it writes channels.
constexpr int weights_of_step(size_t step) { return 1 + 3 * static_cast<int>(step); }
inline constexpr int kChainZ = weights_of_step(kMostSteps);
inline constexpr int kChainInto = kChainZ + 1;
Attributes attributes_of_step(const Attributes& chain, size_t step);
void set_attributes_of_step(const Attributes& attrs, size_t step, Attributes* chain);

// Without weights: MaxPool.
struct NhwcStep {
  ConvSizes sizes;
  NhwcConvArgs args;
};

// Between two steps, of one image: half of a large L2 cache. Less stays there until it is read, and
// is made as a whole.
inline constexpr uint64_t kFewestChainFloats = uint64_t{256} << 10;

// Whether a step can read what another one makes: a filter over one channel each of two spatial
// dims, MaxPool of them, or a product of pixels as they are.
bool fits_in_chain(const NhwcStep& step);

// Up to kMostSteps of two spatial dims; each step but the first fits_in_chain(), and only the last
// one adds (z). The first one's args have x, the last one's y.
Status run_nhwc_chain(OpRun& run, std::vector<NhwcStep> steps);

}  // namespace folio
