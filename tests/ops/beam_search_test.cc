#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/generation_model.h"
#include "tests/support/plain_beam_search.h"

namespace folio {
namespace {

using model_writer::NodeWriter;
using testing::ElementsAreArray;

constexpr int32_t kEnd = 7;
constexpr int32_t kPad = 0;
constexpr int32_t kStart = 1;
constexpr size_t kLength = 10;

struct Search {
  int32_t beams = 3;
  int32_t returned = 2;
  float length_penalty = 1;
  bool early = false;
  int64_t ngram = 0;
};

std::vector<GenerationInput> inputs_of(const Search& search, const std::vector<int32_t>& ids) {
  return {{"ids", int32_value({2, static_cast<int64_t>(ids.size()) / 2}, ids)},
          {"max_length", int32_value({1}, {kLength})},
          {"", Value()},
          {"beams", int32_value({1}, {search.beams})},
          {"returned", int32_value({1}, {search.returned})},
          {"length_penalty", float_value(search.length_penalty)}};
}

NodeWriter node_of(const Search& search, const std::vector<GenerationInput>& inputs,
                   const std::vector<std::string>& outputs = {"sequences", "sums"}) {
  NodeWriter node("BeamSearch", names_of(inputs), outputs);
  node.in_domain("com.microsoft")
      .named("writer")
      .attr_int("eos_token_id", kEnd)
      .attr_int("pad_token_id", kPad)
      .attr_int("early_stopping", search.early)
      .attr_int("no_repeat_ngram_size", search.ngram);
  return node;
}

void expect_search(const Search& search, const std::vector<std::vector<int32_t>>& prompts,
                   const Result<std::vector<Value>>& got, const PlainLogits& logits) {
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  const PlainSearch plain = {
      static_cast<size_t>(search.beams), search.length_penalty, search.early, kLength, kEnd, kPad};
  const auto no_pair_twice = [&](size_t, const std::vector<int32_t>& text,
                                 std::vector<double>* scores) {
    for (size_t j = 0; search.ngram == 2 && j + 1 < text.size(); ++j) {
      if (text[j] == text.back()) (*scores)[static_cast<size_t>(text[j + 1])] = kPlainForbidden;
    }
  };
  std::vector<int32_t> tokens;
  std::vector<double> sums;
  for (const auto& found : plain_search(plain, prompts, logits, no_pair_twice)) {
    for (size_t i = 0; i < static_cast<size_t>(search.returned); ++i) {
      std::vector<int32_t> padded = found[i].tokens;
      padded.resize(kLength, kPad);
      tokens.insert(tokens.end(), padded.begin(), padded.end());
      sums.push_back(found[i].sum);
    }
  }
  EXPECT_THAT(int32s_of(got.value()[0]), ElementsAreArray(tokens));
  const auto scores = floats_of(got.value()[1]);
  ASSERT_EQ(scores.size(), sums.size());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(scores[i], sums[i], 1e-4);
}

const Search kSearches[] = {
    {1, 1, 1.0f, false, 0}, {3, 2, 1.0f, false, 0}, {4, 4, 0.5f, true, 0}, {2, 1, 1.8f, false, 2}};

TEST(BeamSearch, FindsWhatAPlainSearchFindsWithGpt2) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const GenerationModel model(seed);
    for (const Search& search : kSearches) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << search.beams << " beams");
      const auto inputs = inputs_of(search, {3, 5, 2, kPad, 4, 6});
      const auto got =
          run_generation(node_of(search, inputs).attr_graph("decoder", model.gpt_decoder()), model,
                         inputs, {"sequences", "sums"});
      expect_search(search, {{3, 5, 2}, {kPad, 4, 6}}, got,
                    [&](size_t row, const std::vector<int32_t>& text) {
                      const auto seen = static_cast<int64_t>(text.size() - row);
                      return model.logits(text, seen - 1, seen);
                    });
    }
  }
}

TEST(BeamSearch, CachesOfTheWholeLengthGiveTheSame) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const GenerationModel model(seed + 20);
    for (const Search& search : kSearches) {
      const auto inputs = inputs_of(search, {3, 5, 2, kPad, 4, 6});
      const auto run = [&](bool fixed) {
        return run_generation(
            node_of(search, inputs).attr_graph("decoder", model.gpt_decoder(fixed)), model, inputs,
            {"sequences", "sums"});
      };
      const auto growing = run(false);
      const auto fixed = run(true);
      ASSERT_TRUE(growing.is_ok() && fixed.is_ok()) << text_of(fixed.status());
      EXPECT_EQ(int32s_of(fixed.value()[0]), int32s_of(growing.value()[0]));
    }
  }
}

TEST(BeamSearch, FindsWhatAPlainSearchFindsWithT5) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const GenerationModel model(seed + 50);
    for (const Search& search : kSearches) {
      for (const int form : {0, 1, 2, 3}) {
        const bool whole = form % 2 == 1;  // the encoder also gives the first step
        const bool copies = form >= 2;     // the decoder reads the encoder's ids
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << search.beams << " beams");
        const auto inputs = inputs_of(search, {3, 1, 2, kPad, 2, 2});
        const auto got = run_generation(node_of(search, inputs)
                                            .attr_int("model_type", 1)
                                            .attr_int("decoder_start_token_id", kStart)
                                            .attr_graph("encoder", model.t5_encoder(whole))
                                            .attr_graph("decoder", model.t5_decoder(copies)),
                                        model, inputs, {"sequences", "sums"});
        expect_search(search, {{kStart}, {kStart}}, got,
                      [&](size_t row, const std::vector<int32_t>& text) {
                        return model.logits(text, 0, row == 0 ? 6 : 4);
                      });
      }
    }
  }
}

TEST(BeamSearch, GivesTheScoresOfEveryToken) {
  const GenerationModel model(3);
  Search search;
  search.returned = 1;
  const auto inputs = inputs_of(search, {3, 5, 2, 6});
  const std::vector<std::string> outputs = {"sequences", "sums", "scores"};
  const auto got =
      run_generation(node_of(search, inputs, outputs).attr_graph("decoder", model.gpt_decoder()),
                     model, inputs, outputs);
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  const Tensor& scores = got.value()[2].tensor();
  ASSERT_EQ(scores.shape().to_string(), "[8,2,3,11]");
  const auto first = model.logits({2, 6}, 1, 2);
  double total = 0;
  for (const double score : first) total += std::exp(score);
  for (size_t i = 0; i < kWords; ++i) {
    EXPECT_NEAR(scores.data<float>()[3 * kWords + i], first[i] - std::log(total), 1e-5);
    EXPECT_LT(scores.data<float>()[4 * kWords + i], -1e8);  // the second beam begins with nothing
  }
}

TEST(BeamSearch, RefusesWhatItCannotRun) {
  const GenerationModel model(1);
  const auto fails = [&](const std::vector<GenerationInput>& inputs, const std::string& text) {
    const auto got = run_generation(node_of({}, inputs).attr_graph("decoder", model.gpt_decoder()),
                                    model, inputs, {"sequences", "sums"});
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr(text));
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr("writer"));
  };
  const std::vector<int32_t> ids = {3, 5, 2, 6};
  Search search;
  search.beams = 0;
  fails(inputs_of(search, ids), "num_beams is 0");
  search.beams = 129;
  fails(inputs_of(search, ids), "num_beams is 129");
  search = {2, 3, 1.0f, false, 0};
  fails(inputs_of(search, ids), "num_return_sequences is 3");
  auto inputs = inputs_of({}, ids);
  inputs[2] = {"min_length", int32_value({1}, {10})};
  fails(inputs, "min_length is 10");
  inputs = inputs_of({}, ids);
  for (int i = 6; i < 10; ++i) inputs.push_back({"", Value()});
  inputs.push_back({"decoder_ids", int32_value({2, 1}, {1, 1})});
  fails(inputs, "decoder_input_ids");
  inputs[10] = {"", Value()};
  inputs.push_back({"processor", int32_value({1}, {-1})});
  fails(inputs, "logits_processor is -1");
}

TEST(BeamSearch, RefusesOtherGraphs) {
  const GenerationModel model(1);
  const auto inputs = inputs_of({}, {3, 5, 2, 6});
  const auto fails = [&](NodeWriter node, const std::string& text) {
    const auto got = run_generation(std::move(node), model, inputs, {"sequences", "sums"});
    EXPECT_THAT(text_of(got.status()), testing::HasSubstr(text));
  };
  const NodeWriter bare = node_of({}, inputs);
  fails(NodeWriter(bare).attr_int("model_type", 3), "model_type 3");
  fails(NodeWriter(bare).attr_int("model_type", 1).attr_graph("decoder", model.t5_decoder()),
        "'encoder' is required");
  NodeWriter t5 = NodeWriter(bare).attr_int("model_type", 1);
  fails(NodeWriter(t5)
            .attr_graph("encoder", model.t5_encoder(true))
            .attr_graph("decoder", model.t5_decoder()),
        "'decoder_start_token_id' is required");
  t5.attr_int("decoder_start_token_id", 1);
  fails(NodeWriter(t5)
            .attr_graph("encoder", model.t5_decoder())
            .attr_graph("decoder", model.t5_decoder()),
        "subgraph 'encoder' has 6 inputs");
  fails(NodeWriter(t5)
            .attr_graph("encoder", model.t5_encoder(true))
            .attr_graph("decoder", model.gpt_decoder()),
        "subgraph 'decoder' has 4 inputs");
}

}  // namespace
}  // namespace folio
