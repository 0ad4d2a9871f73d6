// Beam search written out, as what BeamSearch and WhisperBeamSearch are compared with: every text
// is recomputed for each token, nothing is cached.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace folio {

struct PlainBeam {
  std::vector<int32_t> tokens;
  double sum = 0;
};

struct PlainSearch {
  size_t beams = 3;
  double length_penalty = 1;
  bool early = false;
  size_t length = 10;
  int32_t end = 7;
  int32_t pad = 0;
};

inline constexpr double kPlainForbidden = -1e30;

// The logits after the tokens of a text.
using PlainLogits = std::function<std::vector<double>(size_t text, const std::vector<int32_t>&)>;
// Changes the logarithms of the next token's probabilities after the tokens of a text.
using PlainRules =
    std::function<void(size_t text, const std::vector<int32_t>&, std::vector<double>* scores)>;

// The ended beams of each text, best first: tokens without the end token, sums over
// length^length_penalty. A text is held against the candidates that ONNX Runtime holds it against:
// of those of all texts, 2 x beams each, the ones from number text x beams on.
std::vector<std::vector<PlainBeam>> plain_search(const PlainSearch& search,
                                                 const std::vector<std::vector<int32_t>>& prompts,
                                                 const PlainLogits& logits,
                                                 const PlainRules& rules = nullptr);

}  // namespace folio
