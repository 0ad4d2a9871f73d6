// A tiny language model as a GPT-2 decoder subgraph, as T5's and Whisper's subgraphs, and as plain
// arithmetic.
//
// The logits after tokens t are
//     table[last t] + sin(frequency x sum of t) + 0.2 x tilt x (sin(0.3 x position) + mask sum)
// The sum goes through the cache, so that a cache that is lost, stale or of another beam shows.
// Weights are initializers of the outer graph: the subgraphs capture them.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/model_tester.h"

namespace folio {

inline constexpr int64_t kWords = 11;  // the vocabulary

// What Whisper's decoder reads, and how.
struct WhisperForm {
  bool hidden = false;  // the hidden states instead of the cross caches
  bool whole = false;   // all tokens instead of the last one
  bool fixed = false;   // caches of max_length positions
  bool half = false;    // features, hidden states and caches are float16
};

struct GenerationModel {
  explicit GenerationModel(uint64_t seed);

  std::vector<float> table;      // [kWords, kWords]
  std::vector<float> frequency;  // [kWords]
  std::vector<float> tilt;       // [kWords]

  void add_weights(model_writer::GraphWriter* graph) const;
  // (input_ids, position_ids, attention_mask, past_0[, past_sequence_length]) -> (logits,
  // present_0)
  model_writer::GraphWriter gpt_decoder(bool fixed_cache = false) const;
  // (ids, mask) -> cross caches; whole: (ids, mask, decoder ids) -> logits, hidden, self, cross.
  model_writer::GraphWriter t5_encoder(bool whole) const;
  // copies: (ids, encoder's ids, mask, caches) -> as ever; it reads the text, not its cross cache.
  model_writer::GraphWriter t5_decoder(bool copies = false) const;

  // (features, decoder ids) -> logits, hidden, self, cross; (ids[, hidden], caches[, filled]).
  model_writer::GraphWriter whisper_encoder(const WhisperForm& form = {}) const;
  model_writer::GraphWriter whisper_decoder(const WhisperForm& form = {}) const;

  // `position` of the last token, `mask`: the sum of the row's mask; T5 and Whisper: 0 and the sum
  // of what the encoder is given.
  std::vector<double> logits(const std::vector<int32_t>& tokens, int64_t position,
                             int64_t mask) const;
};

// A model of one node of com.microsoft with these inputs, all int32, float or float16, by order; an
// input without a name is left out.
struct GenerationInput {
  std::string name;
  Value value;
};
model_writer::ModelWriter write_generation(model_writer::NodeWriter node,
                                           const GenerationModel& model,
                                           const std::vector<GenerationInput>& inputs,
                                           const std::vector<std::string>& outputs);
std::vector<NamedValue> values_of(const std::vector<GenerationInput>& inputs);
// Opens it and runs it once.
Result<std::vector<Value>> run_generation(model_writer::NodeWriter node,
                                          const GenerationModel& model,
                                          const std::vector<GenerationInput>& inputs,
                                          const std::vector<std::string>& outputs);
std::vector<std::string> names_of(const std::vector<GenerationInput>& inputs);

Value int32_value(const Shape& shape, const std::vector<int32_t>& values);
Value float_value(float value);
// Features [batch, 1, frames] of Whisper; float or float16.
Value features_value(int64_t batch, const std::vector<float>& values, bool half = false);
std::vector<int32_t> int32s_of(const Value& value);

}  // namespace folio
