#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/generation_model.h"

namespace folio {
namespace {

using model_writer::NodeWriter;
using testing::ElementsAreArray;

constexpr int32_t kEnd = 7;
constexpr int32_t kPad = 0;
constexpr int64_t kLength = 12;

NodeWriter node_of(const std::string& type, const GenerationModel& model,
                   const std::vector<GenerationInput>& inputs,
                   const std::vector<std::string>& outputs = {"sequences"}) {
  NodeWriter node(type, names_of(inputs), outputs);
  node.in_domain("com.microsoft")
      .named("writer")
      .attr_int("eos_token_id", kEnd)
      .attr_int("pad_token_id", kPad)
      .attr_graph("decoder", model.gpt_decoder());
  return node;
}

// One text, by recomputing everything for each token; `choose(logits, tokens)` gives the next.
template <typename Choose>
std::vector<int32_t> plain_text(const GenerationModel& model, std::vector<int32_t> tokens,
                                Choose&& choose) {
  int64_t position = -1;
  for (const int32_t token : tokens) position += token != kPad;
  int64_t mask = position + 1;
  while (static_cast<int64_t>(tokens.size()) < kLength) {
    const int32_t next = choose(model.logits(tokens, position, mask), tokens);
    if (next == kEnd) break;
    tokens.push_back(next);
    ++position;
    ++mask;
  }
  tokens.resize(kLength, kPad);
  return tokens;
}

int32_t best_of(const std::vector<double>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<GenerationInput> plain_inputs(const std::vector<int32_t>& ids) {
  return {{"ids", int32_value({2, static_cast<int64_t>(ids.size()) / 2}, ids)},
          {"max_length", int32_value({1}, {kLength})}};
}

TEST(GreedySearch, WritesWhatAPlainLoopWrites) {
  int ended = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const GenerationModel model(seed);
    const auto inputs = plain_inputs({3, 5, 2, kPad, 4, 6});  // the second is padded on the left
    const auto got =
        run_generation(node_of("GreedySearch", model, inputs), model, inputs, {"sequences"});
    ASSERT_TRUE(got.is_ok()) << text_of(got.status());
    std::vector<int32_t> expected;
    for (const std::vector<int32_t>& prompt : {std::vector<int32_t>{3, 5, 2}, {kPad, 4, 6}}) {
      const auto text = plain_text(
          model, prompt,
          [](const std::vector<double>& logits, const auto&) { return best_of(logits); });
      ended += text.back() == kPad;
      expected.insert(expected.end(), text.begin(), text.end());
    }
    EXPECT_THAT(int32s_of(got.value()[0]), ElementsAreArray(expected));
  }
  EXPECT_GT(ended, 0);  // texts that end early are among them
}

TEST(GreedySearch, KeepsToItsMasksPenaltiesAndLeastLength) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const GenerationModel model(seed + 100);
    std::vector<int32_t> allowed(kWords, 1);
    allowed[2] = allowed[9] = 0;
    std::vector<int32_t> first(2 * kWords, 1);
    first[3] = first[kWords + 4] = first[kWords + 5] = 0;
    auto inputs = plain_inputs({3, 5, 8, 1});
    inputs.push_back({"min_length", int32_value({1}, {6})});
    inputs.push_back({"penalty", float_value(1.4f)});
    inputs.push_back({"vocab_mask", int32_value({kWords}, allowed)});
    inputs.push_back({"prefix_mask", int32_value({2, kWords}, first)});
    inputs.push_back({"mask", int32_value({2, 2}, {1, 1, 0, 1})});
    const auto got =
        run_generation(node_of("GreedySearch", model, inputs).attr_int("no_repeat_ngram_size", 2),
                       model, inputs, {"sequences"});
    ASSERT_TRUE(got.is_ok()) << text_of(got.status());
    std::vector<int32_t> expected;
    for (size_t row = 0; row < 2; ++row) {
      std::vector<int32_t> prompt = {3, 5};
      if (row == 1) prompt = {8, 1};
      const auto choose = [&](std::vector<double> logits, const std::vector<int32_t>& tokens) {
        // The given mask hides one token of the second text; positions do not follow it.
        if (row == 1) {
          for (size_t i = 0; i < kWords; ++i) logits[i] -= 0.2 * model.tilt[i];
        }
        for (const int32_t token : std::set<int32_t>(tokens.begin(), tokens.end())) {
          double& score = logits[static_cast<size_t>(token)];
          score = score < 0 ? score * 1.4 : score / 1.4;
        }
        for (size_t i = 0; i + 1 < tokens.size(); ++i) {
          if (tokens[i] == tokens.back()) logits[static_cast<size_t>(tokens[i + 1])] = -1e30;
        }
        for (size_t i = 0; i < kWords; ++i) {
          if (!allowed[i] || (tokens.size() == 2 && !first[row * kWords + i])) logits[i] = -1e30;
        }
        if (tokens.size() < 6) logits[kEnd] = -1e30;
        return best_of(logits);
      };
      const auto text = plain_text(model, prompt, choose);
      expected.insert(expected.end(), text.begin(), text.end());
    }
    EXPECT_THAT(int32s_of(got.value()[0]), ElementsAreArray(expected));
  }
}

TEST(GreedySearch, UsesInitDecoderForTheFirstTokenAlone) {
  const GenerationModel model(1);
  const GenerationModel other(2);
  const auto inputs = plain_inputs({3, 5, 2, 6});
  // Its weights are the outer graph's, so the other model is told apart by its own.
  auto first = model.gpt_decoder();
  first.initializer(f32_tensor("table", {kWords, kWords}, other.table));
  const auto got =
      run_generation(node_of("GreedySearch", model, inputs).attr_graph("init_decoder", first),
                     model, inputs, {"sequences"});
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  GenerationModel mixed = model;
  mixed.table = other.table;
  const auto text = plain_text(model, {3, 5}, [&](const auto& logits, const auto& tokens) {
    return best_of(tokens.size() == 2 ? mixed.logits(tokens, 1, 2) : logits);
  });
  const auto out = int32s_of(got.value()[0]);
  EXPECT_THAT(std::vector<int32_t>(out.begin(), out.begin() + kLength), ElementsAreArray(text));
}

TEST(GreedySearch, RefusesWhatItCannotRun) {
  const GenerationModel model(1);
  const auto fails = [&](const std::vector<GenerationInput>& inputs, const std::string& text) {
    const auto got =
        run_generation(node_of("GreedySearch", model, inputs), model, inputs, {"sequences"});
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr(text));
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr("writer"));
  };
  auto inputs = plain_inputs({3, 5, 2, 6});
  inputs[1].value = int32_value({1}, {2});
  fails(inputs, "max_length is 2");
  inputs[1].value = int32_value({1}, {5000});
  fails(inputs, "max_length is 5000");
  inputs[1].value = int32_value({2}, {9, 9});
  fails(inputs, "max_length has 2 elements");
  inputs = plain_inputs({3, 5, 2, 6});
  inputs.push_back({"", Value()});
  inputs.push_back({"penalty", float_value(0)});
  fails(inputs, "repetition_penalty is 0");
  inputs[3] = {"penalty", float_value(1)};
  inputs.push_back({"vocab_mask", int32_value({kWords + 1}, std::vector<int32_t>(kWords + 1, 1))});
  fails(inputs, "vocab_mask has 12 elements");
  inputs[4] = {"", Value()};
  inputs.push_back({"prefix_mask", int32_value({1, kWords}, std::vector<int32_t>(kWords, 1))});
  fails(inputs, "prefix_vocab_mask is [1,11]");
  inputs[5] = {"", Value()};
  inputs.push_back({"mask", int32_value({2, 1}, {1, 1})});
  fails(inputs, "attention_mask is [2,1]");
}

TEST(GreedySearch, RefusesOtherGraphs) {
  const GenerationModel model(1);
  const auto inputs = plain_inputs({3, 5, 2, 6});
  const auto fails = [&](NodeWriter node, const std::string& text) {
    node.in_domain("com.microsoft").attr_int("eos_token_id", 1).attr_int("pad_token_id", 0);
    const auto got = run_generation(std::move(node), model, inputs, {"sequences"});
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr(text));
  };
  const NodeWriter bare("GreedySearch", names_of(inputs), {"sequences"});
  fails(bare, "'decoder' is required");
  fails(NodeWriter(bare).attr_graph("decoder", model.t5_encoder(false)),
        "subgraph 'decoder' has 2 inputs and 2 outputs");
  fails(NodeWriter(bare).attr_graph("other", model.gpt_decoder()), "subgraph 'other'");
  fails(NodeWriter(bare).attr_graph("decoder", model.gpt_decoder()).attr_int("model_type", 1),
        "model_type 1");
  fails(NodeWriter(bare).attr_graph("decoder", model.gpt_decoder()).attr_int("vocab_size", 12),
        "vocab_size is 12");
  fails(NodeWriter(bare)
            .attr_graph("decoder", model.gpt_decoder())
            .attr_graph("init_decoder", model.t5_encoder(false)),
        "subgraph 'init_decoder' has 2 inputs");
}

// The generator that Sampling states: Park and Miller's.
class ParkMiller {
 public:
  explicit ParkMiller(uint64_t seed) : state_(seed) {}
  double draw() {
    const double low = static_cast<double>(step());
    const double high = static_cast<double>(step());
    return (low + high * 2147483646.0) / (2147483646.0 * 2147483646.0);
  }

 private:
  uint64_t step() { return (state_ = state_ * 16807 % 2147483647) - 1; }
  uint64_t state_;
};

std::vector<GenerationInput> sampling_inputs(int32_t seed) {
  auto inputs = plain_inputs({3, 5, 2, 6});
  for (int i = 2; i < 8; ++i) inputs.push_back({"", Value()});
  inputs.push_back({"seed", int32_value({1}, {seed})});
  return inputs;
}

TEST(Sampling, DrawsFromTheLikeliestTokensOfTopP) {
  for (const int custom : {0, 1}) {
    for (const int32_t seed : {1, 42, 4711}) {
      SCOPED_TRACE(seed);
      const GenerationModel model(static_cast<uint64_t>(seed) + 5);
      const auto inputs = sampling_inputs(seed);
      const auto got = run_generation(node_of("Sampling", model, inputs)
                                          .attr_float("temperature", 1.5f)
                                          .attr_float("top_p", 0.75f)
                                          .attr_int("min_tokens_to_keep", 1)
                                          .attr_int("custom", custom),
                                      model, inputs, {"sequences"});
      ASSERT_TRUE(got.is_ok()) << text_of(got.status());
      ParkMiller numbers(static_cast<uint64_t>(seed));
      std::vector<std::vector<int32_t>> texts = {{3, 5}, {2, 6}};
      std::vector<bool> ended(2, false);
      for (int64_t length = 2; length < kLength; ++length) {
        for (size_t row = 0; row < 2; ++row) {
          const double at = numbers.draw();
          auto logits = model.logits(texts[row], length - 1, length);
          const double best = *std::max_element(logits.begin(), logits.end());
          std::vector<std::pair<double, size_t>> order;
          double total = 0;
          for (size_t i = 0; i < kWords; ++i) {
            order.emplace_back(std::exp((logits[i] - best) / 1.5), i);
            total += order.back().first;
          }
          std::sort(order.rbegin(), order.rend());
          std::vector<double> weight(kWords, 0.0);
          double sum = 0;
          for (const auto& [part, token] : order) {
            if (sum <= 0.75 * total) weight[token] = part;
            sum += part;
          }
          double kept = 0;
          for (const double part : weight) kept += part;
          double place = at * kept;
          size_t token = 0;
          while (place >= weight[token]) place -= weight[token++];
          if (token == kEnd) ended[row] = true;
          texts[row].push_back(ended[row] ? kPad : static_cast<int32_t>(token));
        }
        if (ended[0] && ended[1]) break;
      }
      std::vector<int32_t> expected;
      for (auto& text : texts) {
        text.resize(kLength, kPad);
        expected.insert(expected.end(), text.begin(), text.end());
      }
      EXPECT_THAT(int32s_of(got.value()[0]), ElementsAreArray(expected));
    }
  }
}

TEST(Sampling, RepeatsItselfBySeedAndGivesTheFilteredScores) {
  const GenerationModel model(9);
  const auto text_of_seed = [&](int32_t seed) {
    const auto inputs = sampling_inputs(seed);
    auto got = run_generation(node_of("Sampling", model, inputs, {"sequences", "filtered"})
                                  .attr_float("top_p", 0.6f)
                                  .attr_float("temperature", 2.0f)
                                  .attr_float("filter_value", -77.0f)
                                  .attr_int("min_tokens_to_keep", 1),
                              model, inputs, {"sequences", "filtered"});
    EXPECT_TRUE(got.is_ok()) << text_of(got.status());
    const auto filtered = floats_of(got.value()[1]);
    EXPECT_EQ(filtered.size(), 2u * kWords);
    EXPECT_GT(std::count(filtered.begin(), filtered.end(), -77.0f), 0);
    return int32s_of(got.value()[0]);
  };
  EXPECT_EQ(text_of_seed(3), text_of_seed(3));
  EXPECT_NE(text_of_seed(3), text_of_seed(4));
}

TEST(Sampling, TakesTheBestTokenWhenTopPHoldsOne) {
  const GenerationModel model(4);
  const auto inputs = sampling_inputs(8);
  const auto got = run_generation(node_of("Sampling", model, inputs)
                                      .attr_float("top_p", 1e-6f)
                                      .attr_int("min_tokens_to_keep", 1),
                                  model, inputs, {"sequences"});
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  const auto text = plain_text(model, {3, 5}, [](const std::vector<double>& logits, const auto&) {
    return best_of(logits);
  });
  const auto out = int32s_of(got.value()[0]);
  EXPECT_THAT(std::vector<int32_t>(out.begin(), out.begin() + kLength), ElementsAreArray(text));
}

TEST(Sampling, LowersTokensThatThePresenceMaskNames) {
  const GenerationModel model(4);
  auto inputs = sampling_inputs(8);
  std::vector<int32_t> present(2 * kWords, 1);
  present[6] = present[kWords + 6] = 0;
  inputs[7] = {"presence", int32_value({2, kWords}, present)};
  const auto got = run_generation(node_of("Sampling", model, inputs)
                                      .attr_float("top_p", 1.0f)
                                      .attr_float("presence_penalty", 100.0f),
                                  model, inputs, {"sequences"});
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  const auto out = int32s_of(got.value()[0]);
  EXPECT_EQ(std::count(out.begin() + 2, out.begin() + kLength, 6), kLength - 2);
}

}  // namespace
}  // namespace folio
