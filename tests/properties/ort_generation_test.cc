// What BeamSearch and WhisperBeamSearch write is what ONNX Runtime writes: GPT-2's, T5's and
// Whisper's graphs of the tiny model of tests/support, with rules and without.
//
// FOLIO_PROPERTIES_ORT names ONNX Runtime's library (ort_oracle_test.py gets it from npm); without
// it the test is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/properties/one_node.h"
#include "tests/properties/ort_library.h"
#include "tests/support/generation_model.h"

namespace folio::properties {
namespace {

using model_writer::NodeWriter;

// Numbers of one seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}
  int32_t number(int32_t begin, int32_t end) {
    return begin + static_cast<int32_t>(engine_() % static_cast<uint32_t>(end - begin));
  }
  bool one_of(int32_t n) { return number(0, n) == 0; }
  float pick(const std::vector<float>& values) {
    return values[static_cast<size_t>(number(0, static_cast<int32_t>(values.size())))];
  }
  std::vector<int32_t> numbers(int64_t count, int32_t begin, int32_t end) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(number(begin, end));
    return out;
  }

 private:
  std::minstd_rand engine_;
};

constexpr int64_t kBatch = 3;

// Beams, lengths, penalties and masks; ONNX Runtime needs the first six inputs.
std::vector<GenerationInput> drawn_inputs(Dice* dice, Value ids, int32_t begun) {
  const int32_t beams = dice->number(1, 6);
  const int32_t length = dice->number(begun + 2, 20);
  const int32_t least = dice->one_of(3) ? dice->number(0, length) : 0;
  std::vector<GenerationInput> out = {
      {"ids", std::move(ids)},
      {"max_length", int32_value({1}, {length})},
      {"min_length", int32_value({1}, {least})},
      {"beams", int32_value({1}, {beams})},
      {"returned", int32_value({1}, {dice->number(1, beams + 1)})},
      {"length_penalty", float_value(dice->pick({0, 0.5f, 1, 1.7f, -1}))},
      {"", Value()},
      {"", Value()},
      {"", Value()}};
  if (dice->one_of(3)) out[6] = {"penalty", float_value(dice->pick({0.8f, 1.3f, 2}))};
  if (dice->one_of(4)) {
    std::vector<int32_t> mask(kWords, 1);
    mask[static_cast<size_t>(dice->number(0, kWords))] = 0;
    out[7] = {"vocab_mask", int32_value({kWords}, mask)};
  }
  if (dice->one_of(4)) {
    out[8] = {"prefix_mask", int32_value({kBatch, kWords}, dice->numbers(kBatch * kWords, 0, 2))};
  }
  return out;
}

NodeWriter drawn_node(Dice* dice, std::string_view type,
                      const std::vector<GenerationInput>& inputs) {
  NodeWriter node(type, names_of(inputs), {"sequences", "sums", "scores"});
  node.in_domain("com.microsoft")
      .attr_int("eos_token_id", dice->number(2, 7))
      .attr_int("pad_token_id", 0)
      .attr_int("decoder_start_token_id", 1)
      .attr_int("early_stopping", dice->number(0, 2))
      .attr_int("no_repeat_ngram_size", dice->number(0, 4));
  return node;
}

struct Drawn {
  std::vector<GenerationInput> inputs;
  NodeWriter node;
};

Drawn drawn_gpt(Dice* dice, const GenerationModel& model) {
  const int32_t begun = dice->number(1, 4);
  auto inputs = drawn_inputs(
      dice, int32_value({kBatch, begun}, dice->numbers(kBatch * begun, 1, kWords)), begun);
  NodeWriter node = drawn_node(dice, "BeamSearch", inputs);
  node.attr_graph("decoder", model.gpt_decoder());
  return {std::move(inputs), std::move(node)};
}

Drawn drawn_t5(Dice* dice, const GenerationModel& model) {
  auto inputs =
      drawn_inputs(dice, int32_value({kBatch, 4}, dice->numbers(kBatch * 4, 0, kWords)), 1);
  NodeWriter node = drawn_node(dice, "BeamSearch", inputs);
  node.attr_int("model_type", 1)
      .attr_graph("encoder", model.t5_encoder(true))
      .attr_graph("decoder", model.t5_decoder());
  return {std::move(inputs), std::move(node)};
}

Drawn drawn_whisper(Dice* dice, const GenerationModel& model) {
  const int32_t begun = dice->one_of(2) ? 1 : 4;
  std::vector<float> features;
  for (const int32_t number : dice->numbers(kBatch * 5, -6, 7)) {
    features.push_back(static_cast<float>(number));
  }
  auto inputs = drawn_inputs(dice, features_value(kBatch, features), begun);
  inputs.resize(15);
  if (begun > 1 || dice->one_of(2)) {
    inputs[10] = {"decoder_ids",
                  int32_value({kBatch, begun}, dice->numbers(kBatch * begun, 0, kWords))};
  }
  const bool times = dice->one_of(2);
  if (times) inputs[11] = {"processor", int32_value({1}, {1})};
  if (dice->one_of(2)) inputs[14] = {"temperature", float_value(dice->pick({0.4f, 1.6f, 3}))};
  const bool plain = !times && inputs[14].name.empty() && dice->one_of(2);
  if (plain) inputs.resize(12);
  NodeWriter node = drawn_node(dice, plain ? "BeamSearch" : "WhisperBeamSearch", inputs);
  if (plain) node.attr_int("model_type", 2);
  if (times) {
    node.attr_int("translate_token_id", 3)
        .attr_int("transcribe_token_id", 4)
        .attr_int("start_of_lm_token_id", 5)
        .attr_int("no_timestamps_token_id", 6)
        .attr_int("beginning_timestamp_token_id", dice->number(7, 9));
  }
  WhisperForm form;
  form.whole = dice->one_of(3);
  node.attr_graph("encoder", model.whisper_encoder(form))
      .attr_graph("decoder", model.whisper_decoder(form));
  return {std::move(inputs), std::move(node)};
}

using Draw = Drawn (*)(Dice* dice, const GenerationModel& model);

void expect_same(const OrtLibrary& ort, uint64_t seed, Draw draw) {
  SCOPED_TRACE(seed);
  Dice dice(seed * 7919 + 13);
  const GenerationModel model(seed + 500);
  Drawn drawn = draw(&dice, model);
  OneNode one;
  one.outputs = {"sequences", "sums"};
  auto writer = write_generation(std::move(drawn.node), model, drawn.inputs, one.outputs);
  one.bytes = writer.serialize();
  one.inputs = values_of(drawn.inputs);
  const OrtOutcome theirs = ort.run(one.bytes, one.inputs, one.outputs);
  ASSERT_EQ(theirs.error, "");
  std::vector<Value> ours;
  const Status status = run_one(one, &ours);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(int32s_of(ours[0]), int32s_of(theirs.outputs[0]));
  const auto sums = floats_of(ours[1]);
  const auto expected = floats_of(theirs.outputs[1]);
  ASSERT_EQ(sums.size(), expected.size());
  // Sums of some twenty logarithms; forbidden tokens make them as large as floats are, or infinite.
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == expected[i]) continue;
    EXPECT_NEAR(sums[i], expected[i], 1e-5 * std::max(1.0f, std::abs(expected[i])));
  }
}

void expect_same_texts(Draw draw) {
  const char* path = std::getenv("FOLIO_PROPERTIES_ORT");
  if (!path) GTEST_SKIP() << "FOLIO_PROPERTIES_ORT does not name ONNX Runtime's library";
  const std::unique_ptr<OrtLibrary> ort = OrtLibrary::open(path);
  ASSERT_NE(ort, nullptr);
  const char* rounds = std::getenv("FOLIO_RANDOM_ROUNDS");
  const uint64_t count = rounds ? std::strtoull(rounds, nullptr, 10) : 60;
  for (uint64_t seed = 0; seed < count; ++seed) expect_same(*ort, seed, draw);
}

TEST(OrtOracle, WritesTheSameTextsWithGpt2) { expect_same_texts(drawn_gpt); }
TEST(OrtOracle, WritesTheSameTextsWithT5) { expect_same_texts(drawn_t5); }
TEST(OrtOracle, WritesTheSameTextsWithWhisper) { expect_same_texts(drawn_whisper); }

}  // namespace
}  // namespace folio::properties
