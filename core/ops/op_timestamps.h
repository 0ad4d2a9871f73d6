// Whisper's rules for timestamps: which tokens may follow a text that times what is said.
//
// Source:  ONNX Runtime's logits_processor 1; OpenAI's whisper, decoding.py (ApplyTimestampRules).
// Math:    Tokens from `first` on are times. Beside what is never said (`none`, `start_of_lm`):
//          a time that begins comes alone, later ones in pairs: after a pair, or the first, there
//          is text, after a single one a time or the end; times do not go back, and after a pair
//          go on; what has no time yet, or one just now, begins within 50 steps (one second); and
//          when all times together are more probable than the best other token, it is a time.
// Threads: a value.
#pragma once

#include <cstdint>

#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

struct TimestampTokens {
  int64_t end = -1;  // of the text; lower tokens are its words
  int64_t start = -1;
  int64_t translate = -1;
  int64_t transcribe = -1;
  int64_t start_of_lm = -1;
  int64_t none = -1;
  int64_t first = -1;

  // kInvalidArgument when `first` is no token of the vocabulary.
  Status check(int64_t vocabulary) const;
  // Forbids what may not follow `tokens`; scores are logarithms of probabilities, and `check` of
  // the vocabulary was fine.
  void apply(Span<const int32_t> tokens, int64_t vocabulary, float* scores) const;
};

}  // namespace folio
