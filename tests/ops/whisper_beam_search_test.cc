#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "core/kernels/select.h"
#include "core/ops/op_registry.h"
#include "tests/support/generation_model.h"
#include "tests/support/plain_beam_search.h"

namespace folio {
namespace {

using model_writer::NodeWriter;
using testing::ElementsAreArray;
using testing::HasSubstr;

using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 2;
constexpr int32_t kPad = 0;
constexpr int32_t kStart = 3;
constexpr size_t kLength = 12;

// Two texts of four frames each; the sums are what the model reads.
const std::vector<float> kFeatures = {1, -2, 3, 2, 0, 5, -3, -1};
constexpr int64_t kSums[] = {4, 1};

struct Search {
  int32_t beams = 3;
  int32_t returned = 2;
  float length_penalty = 1;
  bool early = false;
};

const Search kSearches[] = {
    {1, 1, 1.0f, false}, {3, 2, 1.0f, false}, {4, 4, 0.5f, true}, {2, 1, 1.8f, false}};

// A node of the operator, input by input; what is not given is left out.
struct Case {
  explicit Case(const Search& asked = {}) : search(asked) {}

  std::string type = "WhisperBeamSearch";
  Search search;
  WhisperForm form;
  std::vector<Ids> prompts;  // empty: the start token
  size_t length = kLength;
  int64_t start = kStart;
  std::vector<std::pair<std::string, int64_t>> attributes;
  std::vector<std::pair<size_t, GenerationInput>> more;  // by number
  std::vector<std::string> outputs = {"sequences", "sums"};

  std::vector<Ids> all_prompts() const {
    return prompts.empty() ? std::vector<Ids>(2, Ids{kStart}) : prompts;
  }
  std::vector<GenerationInput> inputs() const {
    std::vector<GenerationInput> out = {
        {"features", features_value(2, kFeatures, form.half)},
        {"max_length", int32_value({1}, {static_cast<int32_t>(length)})},
        {"", Value()},
        {"beams", int32_value({1}, {search.beams})},
        {"returned", int32_value({1}, {search.returned})},
        {"length_penalty", float_value(search.length_penalty)}};
    if (!prompts.empty()) set(&out, 10, {"decoder_ids", ids_value(prompts)});
    for (const auto& [at, input] : more) set(&out, at, input);
    return out;
  }
  NodeWriter node() const {
    NodeWriter out(type, names_of(inputs()), outputs);
    out.in_domain("com.microsoft")
        .named("writer")
        .attr_int("eos_token_id", kEnd)
        .attr_int("pad_token_id", kPad)
        .attr_int("decoder_start_token_id", start)
        .attr_int("early_stopping", search.early);
    if (type == "BeamSearch") out.attr_int("model_type", 2);
    for (const auto& [name, value] : attributes) out.attr_int(name, value);
    return out;
  }
  Result<std::vector<Value>> run(const GenerationModel& model) const {
    return run_generation(node()
                              .attr_graph("encoder", model.whisper_encoder(form))
                              .attr_graph("decoder", model.whisper_decoder(form)),
                          model, inputs(), outputs);
  }

  static Value ids_value(const std::vector<Ids>& rows) {
    Ids all;
    for (const Ids& row : rows) all.insert(all.end(), row.begin(), row.end());
    const auto count = static_cast<int64_t>(rows.size());
    return int32_value({count, static_cast<int64_t>(all.size()) / count}, all);
  }
  static void set(std::vector<GenerationInput>* inputs, size_t at, GenerationInput input) {
    if (inputs->size() <= at) inputs->resize(at + 1);
    (*inputs)[at] = std::move(input);
  }
};

PlainLogits logits_of(const GenerationModel& model) {
  return [&model](size_t text, const Ids& tokens) { return model.logits(tokens, 0, kSums[text]); };
}

// Runs the case and compares it with the search written out; true: a text ended early.
bool expect_plain(const Case& given, const GenerationModel& model,
                  const PlainRules& rules = nullptr) {
  const auto got = given.run(model);
  EXPECT_TRUE(got.is_ok()) << text_of(got.status());
  if (!got.is_ok()) return false;
  const Search& search = given.search;
  const PlainSearch plain = {static_cast<size_t>(search.beams),
                             search.length_penalty,
                             search.early,
                             given.length,
                             kEnd,
                             kPad};
  Ids tokens;
  std::vector<double> sums;
  bool ended = false;
  for (const auto& found : plain_search(plain, given.all_prompts(), logits_of(model), rules)) {
    for (size_t i = 0; i < static_cast<size_t>(search.returned); ++i) {
      Ids padded = found[i].tokens;
      ended |= padded.size() < given.length;
      padded.resize(given.length, kPad);
      tokens.insert(tokens.end(), padded.begin(), padded.end());
      sums.push_back(found[i].sum);
    }
  }
  EXPECT_THAT(int32s_of(got.value()[0]), ElementsAreArray(tokens));
  const auto scores = floats_of(got.value()[1]);
  EXPECT_EQ(scores.size(), sums.size());
  for (size_t i = 0; i < std::min(scores.size(), sums.size()); ++i) {
    EXPECT_NEAR(scores[i], sums[i], 1e-4 * std::max(1.0, std::abs(sums[i])));
  }
  return ended;
}

TEST(WhisperBeamSearch, FindsWhatAPlainSearchFinds) {
  int ended = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const GenerationModel model(seed + 200);
    for (const Search& search : kSearches) {
      for (const bool forced : {false, true}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << search.beams << " beams");
        Case each(search);
        each.type = seed % 2 == 0 ? "BeamSearch" : "WhisperBeamSearch";
        if (forced) each.prompts = {{3, 5, 6, 1}, {3, 4, 6, 8}};
        ended += expect_plain(each, model);
      }
    }
  }
  EXPECT_GT(ended, 5);
}

TEST(WhisperBeamSearch, TakesDecodersOfEveryForm) {
  for (int bits = 0; bits < 16; ++bits) {
    SCOPED_TRACE(bits);
    Case each;
    each.form.hidden = (bits & 1) != 0;
    each.form.whole = (bits & 2) != 0;
    each.form.fixed = (bits & 4) != 0;
    each.form.half = (bits & 8) != 0;
    for (uint64_t seed = 0; seed < 2; ++seed) {
      each.prompts = {};
      expect_plain(each, GenerationModel(seed + 220));
      each.prompts = {{3, 5, 6}, {3, 4, 6}};
      expect_plain(each, GenerationModel(seed + 230));
    }
  }
}

TEST(WhisperBeamSearch, WritesOneTokenWhereThereIsRoomForOne) {
  for (const bool forced : {false, true}) {
    Case each;
    if (forced) each.prompts = {{3, 5, 6, 1}, {3, 4, 6, 8}};
    each.length = each.all_prompts()[0].size() + 1;
    expect_plain(each, GenerationModel(240));
  }
}

TEST(WhisperBeamSearch, KeepsToMasksPenaltyTemperatureAndLeastLength) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const GenerationModel model(seed + 250);
    Ids allowed(kWords, 1);
    allowed[5] = allowed[9] = 0;
    Ids first(2 * kWords, 1);
    first[1] = first[kWords + 4] = first[kWords + 6] = 0;
    Case each(kSearches[seed % 4]);
    each.prompts = {{3, 5}, {3, 8}};
    each.attributes = {{"no_repeat_ngram_size", 3}};
    each.more = {{2, {"min_length", int32_value({1}, {7})}},
                 {6, {"penalty", float_value(1.3f)}},
                 {7, {"vocab_mask", int32_value({kWords}, allowed)}},
                 {8, {"prefix_mask", int32_value({2, kWords}, first)}},
                 {14, {"temperature", float_value(1.7f)}}};
    expect_plain(each, model, [&](size_t text, const Ids& tokens, std::vector<double>* scores) {
      for (const int32_t token : std::set<int32_t>(tokens.begin(), tokens.end())) {
        (*scores)[static_cast<size_t>(token)] *= 1.3;  // they are negative
      }
      for (size_t i = 0; i + 2 < tokens.size(); ++i) {
        const bool again = std::equal(tokens.end() - 2, tokens.end(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(i));
        if (again) (*scores)[static_cast<size_t>(tokens[i + 2])] = kPlainForbidden;
      }
      for (size_t i = 0; i < kWords; ++i) {
        if (!allowed[i] || (tokens.size() == 2 && !first[text * kWords + i])) {
          (*scores)[i] = kPlainForbidden;
        }
      }
      if (tokens.size() < 7) (*scores)[kEnd] = kPlainForbidden;
      for (double& score : *scores) score /= 1.7;
    });
  }
}

// Words 0 and 1, the end 2, the start 3, from 4 on three tokens that are none, from 7 on times.
constexpr int32_t kFirstTime = 7;

bool is_time(int32_t token) { return token >= kFirstTime; }

// The rules of timestamps, written down by what the end of a text looks like.
void keep_times(const Ids& text, const std::set<int32_t>& never, const std::set<int32_t>& once,
                std::vector<double>* scores) {
  const auto forbid = [&](int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end; ++i) (*scores)[static_cast<size_t>(i)] = kPlainForbidden;
  };
  const auto times = std::count_if(text.begin(), text.end(), is_time);
  const bool last = is_time(text.back());
  const bool before_last = text.size() > 1 && is_time(text[text.size() - 2]);
  for (const int32_t token : never) forbid(token, token + 1);
  for (const int32_t token : once) {
    if (times > (last ? 1 : 0)) forbid(token, token + 1);
  }
  const auto latest = std::find_if(text.rbegin(), text.rend(), is_time);
  const bool wants_pair = last && !before_last && times > 1;
  if (last && !wants_pair) forbid(kFirstTime, kWords);
  if (wants_pair) forbid(0, kEnd);
  if (times > 0) forbid(kFirstTime, std::min<int32_t>(*latest + (wants_pair ? 0 : 1), kWords));
  double sum = 0;
  for (int32_t i = kFirstTime; i < kWords; ++i) sum += std::exp((*scores)[static_cast<size_t>(i)]);
  const double best = *std::max_element(scores->begin(), scores->begin() + kFirstTime);
  if (sum > 0 && std::log(sum) > best) forbid(0, kFirstTime);
}

TEST(WhisperBeamSearch, KeepsTimestampsInOrder) {
  bool has_pair = false;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const GenerationModel model(seed + 300);
    Case each(kSearches[seed % 4]);
    if (seed % 3 == 1) each.prompts = {{3, 5}, {3, 8}};
    if (seed % 3 == 2) each.prompts = {{3, 7, 1, 8}, {3, 9, 9, 0}};
    // The three tokens change their parts.
    const int64_t parts[] = {4 + static_cast<int64_t>(seed % 3),
                             4 + static_cast<int64_t>((seed + 1) % 3),
                             4 + static_cast<int64_t>((seed + 2) % 3)};
    each.attributes = {{"translate_token_id", parts[0]},
                       {"no_timestamps_token_id", parts[1]},
                       {"start_of_lm_token_id", seed % 2 == 0 ? parts[2] : -1},
                       {"transcribe_token_id", seed % 2 == 0 ? -1 : parts[2]},
                       {"beginning_timestamp_token_id", kFirstTime}};
    each.more = {{11, {"processor", int32_value({1}, {1})}}};
    std::set<int32_t> never = {static_cast<int32_t>(parts[1])};
    std::set<int32_t> once = {kStart, static_cast<int32_t>(parts[0])};
    (seed % 2 == 0 ? never : once).insert(static_cast<int32_t>(parts[2]));
    expect_plain(each, model, [&](size_t, const Ids& tokens, std::vector<double>* scores) {
      has_pair |= tokens.size() > 3 && is_time(tokens.back()) && is_time(tokens[tokens.size() - 2]);
      keep_times(tokens, never, once, scores);
    });
  }
  EXPECT_TRUE(has_pair);
}

TEST(WhisperBeamSearch, OtherProcessorsChangeNothing) {
  Case each;
  each.more = {{11, {"processor", int32_value({1}, {2})}}};
  expect_plain(each, GenerationModel(320));
}

TEST(WhisperBeamSearch, GoesOnWithTheExtraIds) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const GenerationModel model(seed + 330);
    Case each(kSearches[seed]);
    each.prompts = {{3, 5}, {3, 8}};
    // The second text's end at the first negative one.
    const std::vector<Ids> extra = {{6, 1, 4}, {9, -1, 4}};
    each.more = {{13, {"extra", Case::ids_value(extra)}}};
    expect_plain(each, model, [&](size_t text, const Ids& tokens, std::vector<double>* scores) {
      const size_t step = tokens.size() - 2;
      const size_t count = text == 0 ? 3 : 1;
      if (step >= count) return;
      std::fill(scores->begin(), scores->end(), kPlainForbidden);
      (*scores)[static_cast<size_t>(extra[text][step])] = 0;
    });
  }
}

TEST(WhisperBeamSearch, ExtraIdsAreTheTailOfThePrompt) {
  const GenerationModel model(340);
  Case whole;
  whole.prompts = {{3, 5, 6, 1}, {3, 8, 9, 4}};
  Case parted;
  parted.prompts = {{3, 5}, {3, 8}};
  parted.more = {{13, {"extra", Case::ids_value({{6, 1}, {9, 4}})}}};
  const auto first = whole.run(model);
  const auto second = parted.run(model);
  ASSERT_TRUE(first.is_ok() && second.is_ok()) << text_of(second.status());
  EXPECT_EQ(int32s_of(first.value()[0]), int32s_of(second.value()[0]));
  EXPECT_EQ(floats_of(first.value()[1]), floats_of(second.value()[1]));
}

TEST(WhisperBeamSearch, GivesTheProbabilityOfNoSpeech) {
  const GenerationModel model(350);
  Case each;
  each.prompts = {{3, 5}, {3, 8}};
  each.attributes = {{"no_speech_token_id", 6}};
  each.outputs = {"sequences", "sums", "scores", "", "no_speech"};
  // No rule changes it.
  each.more = {{7, {"vocab_mask", int32_value({kWords}, {1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1})}},
               {13, {"extra", Case::ids_value({{4}, {4}})}}};
  const auto got = each.run(model);
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  EXPECT_EQ(got.value()[2].tensor().shape().to_string(), "[10,2,3,11]");
  const auto found = floats_of(got.value()[3]);
  ASSERT_EQ(found.size(), 2u);
  for (size_t b = 0; b < 2; ++b) {
    const auto logits = model.logits(each.prompts[b], 0, kSums[b]);
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    EXPECT_NEAR(found[b], std::exp(logits[6]) / total, 1e-6);
  }
}

// Subgraphs that give zeros of the right shapes. `changed` is overwritten when the first one runs,
// as an input that stands in a file can be by another process.
class OverwritingHost final : public OpHost {
 public:
  explicit OverwritingHost(std::optional<Tensor> changed) : changed_(std::move(changed)) {}
  Result<Tensor> allocate_output(int, DType dtype, const Shape& shape) override {
    return allocate_tensor(dtype, shape);
  }
  Status run_subgraph(int, Span<const Value> inputs, std::vector<Value>* outputs) override {
    if (changed_) std::memset(changed_->raw_mut(), 0x3F, changed_->bytes());
    const bool is_encoder = inputs.size() == 2;
    const Shape& ids = inputs[is_encoder ? 1 : 0].tensor().shape();
    add(Shape{ids[0], ids[1], kWords}, outputs);
    const int64_t frames = inputs[0].tensor().dim(inputs[0].tensor().rank() - 1);
    if (is_encoder) add(Shape{ids[0], frames, 1}, outputs);
    const int64_t self = is_encoder ? ids[1] : inputs[1].tensor().dim(2) + 1;
    for (int i = 0; i < 2; ++i) add(Shape{ids[0], 1, self, 1}, outputs);
    for (int i = 0; i < 2 && is_encoder; ++i) add(Shape{ids[0], 1, frames, 1}, outputs);
    return Status::ok();
  }
  Status check_cancelled() override { return Status::ok(); }

 private:
  static void add(const Shape& shape, std::vector<Value>* outputs) {
    const std::vector<float> zeros(static_cast<size_t>(shape.count()));
    outputs->emplace_back(make_tensor<float>(shape, zeros));
  }

  std::optional<Tensor> changed_;
};

TEST(WhisperBeamSearch, ExtraIdsAreThoseThatWereThereAtFirst) {
  const GenerationModel model(340);
  std::vector<Ids> found;
  for (const bool changes : {false, true}) {
    Case each;
    each.prompts = {{3, 5}, {3, 8}};
    each.more = {{13, {"extra", Case::ids_value({{6, 1}, {9, 4}})}}};
    const std::vector<GenerationInput> inputs = each.inputs();
    const auto node = each.node()
                          .attr_graph("encoder", model.whisper_encoder())
                          .attr_graph("decoder", model.whisper_decoder());
    const auto built = build(write_generation(node, model, inputs, each.outputs));
    ASSERT_TRUE(built.is_ok()) << text_of(built.status());
    const Graph& graph = built.value()->graph;
    ASSERT_EQ(graph.nodes.size(), 1u);
    OpBuild build(graph, graph.nodes[0], kernels_for(0), /*prepack=*/false);
    const auto kernel = op_registry().find("com.microsoft", "WhisperBeamSearch", 1)->make(build);
    ASSERT_TRUE(kernel.is_ok()) << text_of(kernel.status());
    std::vector<const Value*> given;
    for (const auto& input : inputs) given.push_back(input.name.empty() ? nullptr : &input.value);
    OverwritingHost host(changes ? std::optional(inputs[13].value.tensor()) : std::nullopt);
    InlineParallel parallel;
    OpRun run(host, kernels_for(0), parallel);
    const uint8_t wanted[] = {1, 1};
    run.begin(given, wanted, {});
    const Status status = kernel.value()->run(run);
    ASSERT_TRUE(status.is_ok()) << text_of(status);
    found.push_back(int32s_of(run.outputs()[0]));
  }
  EXPECT_EQ(found[0], found[1]);
}

void expect_refused(const Case& given, const std::string& text) {
  const GenerationModel model(360);
  const auto got = given.run(model);
  EXPECT_THAT(text_of(got.status()), HasSubstr(text));
  EXPECT_THAT(text_of(got.status()), HasSubstr("writer"));
}

Case with_input(size_t at, Value value) {
  Case out;
  out.more = {{at, {"odd", std::move(value)}}};
  return out;
}

TEST(WhisperBeamSearch, RefusesInputsOfOtherShapes) {
  expect_refused(with_input(10, int32_value({3, 1}, {3, 3, 3})), "decoder_input_ids is [3,1]");
  expect_refused(with_input(10, int32_value({2}, {3, 3})), "decoder_input_ids is [2]");
  expect_refused(with_input(10, int32_value({2, 0}, {})), "decoder_input_ids is [2,0]");
  expect_refused(with_input(10, int32_value({2, 1, 1}, {3, 3})), "decoder_input_ids is [2,1,1]");
  expect_refused(with_input(10, features_value(2, {3, 3})), "float");
  expect_refused(with_input(10, int32_value({2, 12}, Ids(24, 3))), "max_length is 12");
  expect_refused(with_input(9, int32_value({2, 4}, Ids(8, 1))), "attention_mask is [2,4]");
  expect_refused(with_input(11, int32_value({1}, {-1})), "logits_processor is -1");
  expect_refused(with_input(11, int32_value({2}, {0, 0})), "logits_processor has 2 elements");
  expect_refused(with_input(13, int32_value({2}, {4, 4})), "extra_decoding_ids is [2]");
  expect_refused(with_input(13, int32_value({1, 2}, {4, 4})), "extra_decoding_ids is [1,2]");
  expect_refused(with_input(13, int32_value({2, 1}, {4, 11})), "extra_decoding_ids holds 11");
  expect_refused(with_input(14, int32_value({1}, {1})), "temperature is int32");
  expect_refused(with_input(0, features_value(2, {1, 2}, true)), "float16");
  expect_refused(with_input(0, float_value(1)), "input_ids is [1]");
  expect_refused(with_input(0, Value(make_tensor<float>({0, 1, 4}, {}))), "input_ids is [0,1,4]");
  Case no_speech;
  no_speech.outputs = {"sequences", "", "", "", "no_speech"};
  expect_refused(no_speech, "no_speech_token_id is -1");
  no_speech.attributes = {{"no_speech_token_id", 11}};
  expect_refused(no_speech, "no_speech_token_id is 11");
}

TEST(WhisperBeamSearch, TakesNoFramesNoExtraIdsAndAMaskOfTheFeatures) {
  const GenerationModel model(361);
  const Value ones = int32_value({2, 1, 4}, Ids(8, 1));
  for (const Case& each : {with_input(9, ones), with_input(13, int32_value({2, 0}, {}))}) {
    expect_plain(each, model);
  }
  const auto got = with_input(0, Value(make_tensor<float>({2, 1, 0}, {}))).run(model);
  EXPECT_TRUE(got.is_ok()) << text_of(got.status());
}

TEST(WhisperBeamSearch, TokensOutsideTheVocabularyAreTheDecodersMatter) {
  expect_refused(with_input(10, int32_value({2, 1}, {3, 99})), "index 99 is outside");
  expect_refused(with_input(10, int32_value({2, 1}, {3, -99})), "index -99 is outside");
  // Gather takes negative ones; rules for tokens must too.
  Case each = with_input(10, int32_value({2, 2}, {3, -2, 3, -3}));
  each.attributes = {{"no_repeat_ngram_size", 1}, {"beginning_timestamp_token_id", kFirstTime}};
  each.more.push_back({6, {"penalty", float_value(1.3f)}});
  each.more.push_back({11, {"processor", int32_value({1}, {1})}});
  const auto got = each.run(GenerationModel(362));
  EXPECT_TRUE(got.is_ok()) << text_of(got.status());
}

TEST(WhisperBeamSearch, RefusesWhatOnnxRuntimeRefuses) {
  Case each;
  each.outputs = {"sequences", "", "", "cross_qk"};
  expect_refused(each, "output cross_qk");
  each = Case();
  each.attributes = {{"decoder_output_cross_qk", 1}};
  expect_refused(each, "decoder_output_cross_qk");
  each.attributes = {{"model_type", 1}};
  expect_refused(each, "model_type is 1, expected 2");
  each = Case();
  each.start = -1;
  expect_refused(each, "decoder_input_ids is required");
  each.start = kStart;
  each.more = {{11, {"processor", int32_value({1}, {1})}}};
  expect_refused(each, "beginning_timestamp_token_id is -1");
  each.attributes = {{"beginning_timestamp_token_id", 11}};
  expect_refused(each, "beginning_timestamp_token_id is 11");
}

// The graphs of the model; `change` makes them others.
template <typename Change>
Status status_of(const Change& change) {
  const GenerationModel model(370);
  const Case given;
  auto encoder = model.whisper_encoder();
  auto decoder = model.whisper_decoder();
  change(&encoder, &decoder);
  return run_generation(given.node().attr_graph("encoder", encoder).attr_graph("decoder", decoder),
                        model, given.inputs(), given.outputs)
      .status();
}

using model_writer::GraphWriter;
using model_writer::Type;

TEST(WhisperBeamSearch, RefusesGraphsOfOtherInputsAndOutputs) {
  const auto i32 = model_writer::ElementType::kInt32;
  const GenerationModel model(370);
  const auto fails = [](const Status& status, const std::string& text) {
    EXPECT_THAT(text_of(status), HasSubstr(text));
    EXPECT_THAT(text_of(status), HasSubstr("writer"));
  };
  fails(status_of([&](GraphWriter* e, GraphWriter*) { *e = model.t5_encoder(true); }),
        "subgraph 'encoder' has 3 inputs");
  fails(status_of([&](GraphWriter*, GraphWriter* d) { *d = model.gpt_decoder(); }),
        "subgraph 'decoder' has 4 inputs");
  fails(status_of([&](GraphWriter* e, GraphWriter*) { *e = model.whisper_decoder(); }),
        "subgraph 'encoder' has 5 inputs");
  fails(status_of([&](GraphWriter* e, GraphWriter*) {
          *e = model.whisper_encoder({false, false, false, true});
        }),
        "float16");
  fails(status_of([&](GraphWriter*, GraphWriter* d) {
          *d = model.whisper_decoder({false, false, false, true});
        }),
        "float16");
  fails(status_of([&](GraphWriter*, GraphWriter* d) {
          d->output("last.id", Type::tensor(i32, {1, 1}));
        }),
        "subgraph 'decoder' has 5 inputs and 4 outputs");
  fails(status_of([&](GraphWriter*, GraphWriter* d) {
          for (const char* name : {"past_sequence_length", "beam_width", "cache_indirection"}) {
            d->input(name, Type::tensor(i32, {1}));
          }
        }),
        "cache_indirection");
  fails(status_of([&](GraphWriter*, GraphWriter* d) {
          d->input("one", f32_type({1}));
          d->input("two", f32_type({1}));
        }),
        "subgraph 'decoder' has 7 inputs");
}

using Shapes = std::vector<std::vector<int64_t>>;

// Gives ones of these shapes as the outputs of these names, whatever its inputs are.
void add_ones(GraphWriter* graph, const std::vector<std::string>& names, const Shapes& shapes) {
  graph->initializer(f32_tensor("one", {}, {1.0f}));
  for (size_t i = 0; i < names.size(); ++i) {
    const auto rank = static_cast<int64_t>(shapes[i].size());
    graph->initializer(i64_tensor(names[i] + ".shape", {rank}, shapes[i]));
    graph->node("Expand", {"one", names[i] + ".shape"}, {names[i]});
    graph->output(names[i], f32_type(std::vector<model_writer::Dim>(shapes[i].size())));
  }
}

// Of a run whose encoder gives ones, output `at` of this shape.
Status status_of_encoder(size_t at, const std::vector<int64_t>& shape) {
  Shapes shapes = {{2, 1, kWords}, {2, 4, 1},    {2, 1, 1, 1},
                   {2, 1, 1, 1},   {2, 1, 4, 1}, {2, 1, 4, 1}};
  if (at < shapes.size()) shapes[at] = shape;
  return status_of([&](GraphWriter* encoder, GraphWriter* decoder) {
    GraphWriter odd("encoder");
    odd.input("encoder_input_ids", f32_type({"b", 1, "t"}));
    odd.input("decoder_input_ids", Type::tensor(model_writer::ElementType::kInt32, {"b", "s"}));
    add_ones(&odd,
             {"logits", "encoder_hidden_states", "present_key_self_0", "present_value_self_0",
              "present_key_cross_0", "present_value_cross_0"},
             shapes);
    *encoder = odd;
    WhisperForm form;
    form.hidden = true;
    *decoder = GenerationModel(370).whisper_decoder(form);
  });
}

// The same of the decoder, whose rows are 2 x 3.
Status status_of_decoder(size_t at, const std::vector<int64_t>& shape) {
  Shapes shapes = {{6, 1, kWords}, {6, 1, 2, 1}, {6, 1, 2, 1}};
  if (at < shapes.size()) shapes[at] = shape;
  return status_of([&](GraphWriter*, GraphWriter* decoder) {
    GraphWriter odd("decoder");
    odd.input("input_ids", Type::tensor(model_writer::ElementType::kInt32, {"b", 1}));
    for (const char* input :
         {"past_key_self_0", "past_value_self_0", "past_key_cross_0", "past_value_cross_0"}) {
      odd.input(input, f32_type({"b", 1, "p", 1}));
    }
    add_ones(&odd, {"logits", "present_key_self_0", "present_value_self_0"}, shapes);
    *decoder = odd;
  });
}

void expect_said(const Status& status, const std::string& text) {
  EXPECT_THAT(text_of(status), HasSubstr(text));
}

TEST(WhisperBeamSearch, RefusesValuesOfOtherRanksAndRows) {
  EXPECT_TRUE(status_of_encoder(9, {}).is_ok()) << text_of(status_of_encoder(9, {}));
  expect_said(status_of_encoder(0, {2, kWords}), "logits are [2,11]");
  expect_said(status_of_encoder(0, {3, 1, kWords}), "logits are [3,1,11]");
  expect_said(status_of_encoder(0, {2, 0, kWords}), "logits are [2,0,11]");
  expect_said(status_of_encoder(0, {2, 1, 1}), "vocabulary is 1");
  expect_said(status_of_encoder(1, {2, 4}), "output 1 of the encoder is float [2,4]");
  expect_said(status_of_encoder(1, {1, 4, 1}), "output 1 of the encoder is float [1,4,1]");
  expect_said(status_of_encoder(2, {2, 1, 1}), "output 2 of the encoder is float [2,1,1]");
  expect_said(status_of_encoder(3, {3, 1, 1, 1}), "output 3 of the encoder is float [3,1,1,1]");
  expect_said(status_of_encoder(4, {2, 1, 4, 1, 1}),
              "output 4 of the encoder is float [2,1,4,1,1]");
  expect_said(status_of_encoder(5, {1, 1, 4, 1}), "output 5 of the encoder is float [1,1,4,1]");
  EXPECT_TRUE(status_of_decoder(9, {}).is_ok()) << text_of(status_of_decoder(9, {}));
  expect_said(status_of_decoder(0, {6, kWords}), "logits are [6,11]");
  expect_said(status_of_decoder(0, {6, 1, kWords + 1}), "vocabulary is 12, expected 11");
  expect_said(status_of_decoder(1, {6, 1, 2}), "a decoder's present is float [6,1,2]");
  expect_said(status_of_decoder(2, {2, 1, 2, 1}), "a decoder's present is float [2,1,2,1]");
}

}  // namespace
}  // namespace folio
