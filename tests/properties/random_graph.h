// RandomGraph: a model of some dozen nodes that fit each other, drawn at random from the patterns
// that passes look for: convolutions with what stands around them, norms, functions and attention
// in exporters' spellings, moves, products; with bytes between QuantizeLinear and DequantizeLinear
// where asked for.
//
// Flow:    a step takes values that are there, adds a few nodes and the values that they give; what
//          nothing read in the end is an output, and so is a value here and there that was read.
// Owns:    the model's bytes and its inputs.
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "core/session/session.h"

namespace folio::properties {

// kBytes: images, quantized; kHalves: images and tokens of float16; kDecoders, kDecoderHalves: what
// exporters make of language models, with dims that are computed, and bodies, of float and float16.
enum class GraphKind { kImages, kTokens, kBytes, kHalves, kDecoders, kDecoderHalves };

struct RandomGraph {
  std::string bytes;
  std::vector<NamedValue> inputs;
  std::vector<NamedValue> other_inputs;  // of other dims where these are symbols
  FreeDims symbols;                      // with the dims of `inputs`
  FreeDims other_symbols;                // with those of `other_inputs`
  std::vector<std::string> outputs;
  std::string text;  // a node a line, for messages
};

// The same for the same seed. Numbers stay near 1 and no step makes much of a small difference, so
// that results of other orders of addition stay near too.
RandomGraph random_graph(GraphKind kind, uint64_t seed);

}  // namespace folio::properties
