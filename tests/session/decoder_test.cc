// Language models with a key/value cache: the cache in place, copied and recomputed give the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/model_tester.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

constexpr int64_t kLayers = 2;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadSize = 32;
constexpr int64_t kVocabulary = 512;

Ref<Session> decoder(int64_t accuracy_level = 4) {
  model_writer::DecoderOptions options;
  options.layers = kLayers;
  options.accuracy_level = accuracy_level;
  auto session = open_session(model_writer::build_decoder(options).model);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return session.is_ok() ? std::move(session).take() : nullptr;
}

Tensor zeros(DType dtype, const Shape& shape) {
  Tensor tensor = allocate_tensor(dtype, shape).take();
  std::fill_n(tensor.raw_mut(), tensor.bytes(), uint8_t{0});
  return tensor;
}

// The tokens that all tests read: any will do.
int64_t token(int64_t sequence, int64_t at) { return (sequence * 131 + at * 37 + 5) % kVocabulary; }

// One call: `width` new tokens of each sequence, of which lengths[b] positions are then valid.
struct Call {
  std::vector<NamedValue> inputs;
  std::vector<WantedOutput> wanted;
};

Call call_of(const std::vector<int64_t>& first, int64_t width,
             const std::vector<int64_t>& lengths) {
  const auto batch = static_cast<int64_t>(first.size());
  const int64_t total = *std::max_element(lengths.begin(), lengths.end());
  Tensor ids = zeros(DType::kInt64, {batch, width});
  Tensor mask = zeros(DType::kInt64, {batch, total});
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < width; ++i) {
      ids.data_mut<int64_t>()[b * width + i] = token(b, first[static_cast<size_t>(b)] + i);
    }
    std::fill_n(mask.data_mut<int64_t>() + b * total, lengths[static_cast<size_t>(b)], 1);
  }
  Call call;
  call.inputs = {{"input_ids", Value(ids)}, {"attention_mask", Value(mask)}};
  call.wanted = {{"logits", Tensor()}};
  return call;
}

std::vector<std::string> cache_names(const std::string& prefix) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    for (const char* what : {".key", ".value"}) {
      names.push_back(prefix + "." + std::to_string(layer) + what);
    }
  }
  return names;
}

// `caches`: by layer and kind. In place: results are asked for in the same memory.
std::vector<float> run_call(Session& session, Call call, std::vector<Tensor>* caches,
                            bool in_place) {
  const std::vector<std::string> past = cache_names("past_key_values");
  const std::vector<std::string> present = cache_names("present");
  for (size_t i = 0; i < past.size(); ++i) {
    call.inputs.push_back({past[i], Value((*caches)[i])});
    call.wanted.push_back({present[i], in_place ? (*caches)[i] : Tensor()});
  }
  std::vector<Value> outputs;
  const Status status = session.run({}, call.inputs, call.wanted, &outputs);
  EXPECT_TRUE(status.is_ok()) << text_of(status);
  if (!status.is_ok()) return {};
  for (size_t i = 0; i < past.size(); ++i) {
    const Tensor& result = outputs[i + 1].tensor();
    if (in_place) {
      EXPECT_EQ(result.raw(), (*caches)[i].raw());
    }
    (*caches)[i] = result;
  }
  return floats_of(outputs[0]);
}

std::vector<Tensor> caches_of(int64_t batch, int64_t positions) {
  std::vector<Tensor> caches;
  for (int64_t i = 0; i < 2 * kLayers; ++i) {
    caches.push_back(zeros(DType::kFloat, {batch, kKvHeads, positions, kHeadSize}));
  }
  return caches;
}

std::vector<float> last_row(const std::vector<float>& logits) {
  return {logits.end() - kVocabulary, logits.end()};
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::fabs(a[i] - b[i]));
  }
  return largest;
}

float largest(const std::vector<float>& a) {
  return largest_difference(a, std::vector<float>(a.size()));
}

// `tolerance`: of what is computed anew, a part of the largest logit.
void expect_agreement_over_200_steps(int64_t accuracy_level, float tolerance) {
  const Ref<Session> session = decoder(accuracy_level);
  ASSERT_TRUE(session);
  constexpr int64_t kPrompt = 9;
  constexpr int64_t kSteps = 200;
  std::vector<Tensor> shared = caches_of(1, kPrompt + kSteps);
  std::vector<Tensor> grown = caches_of(1, 0);
  for (int64_t length = kPrompt; length < kPrompt + kSteps; ++length) {
    const int64_t width = length == kPrompt ? kPrompt : 1;
    const Call call = call_of({length - width}, width, {length});
    const auto in_place = run_call(*session, call, &shared, true);
    const auto copied = run_call(*session, call, &grown, false);
    ASSERT_EQ(in_place, copied) << "length " << length;
    ASSERT_EQ(grown[0].dim(2), length);
    if (length % 20 != 0) continue;  // each takes as long as all before
    std::vector<Tensor> none = caches_of(1, 0);
    const auto whole = run_call(*session, call_of({0}, length, {length}), &none, false);
    const auto logits = last_row(in_place);
    EXPECT_LT(largest_difference(logits, last_row(whole)), tolerance * largest(logits)) << length;
  }
}

// Products over more keys at a time: float32 sums in another order.
TEST(Decoder, CacheInPlaceCopiedAndRecomputedAgreeOver200Steps) {
  expect_agreement_over_200_steps(1, 1e-5F);
}

// Where rows are rounded to 8 bits, a last bit decides here and there which way: by a step, 1/127
// of a block's largest number, in any of the products that a logit comes through.
TEST(Decoder, CacheInPlaceCopiedAndRecomputedAgreeWithinRoundingsTo8Bits) {
  constexpr int64_t kProducts = 4 * kLayers + 1;
  expect_agreement_over_200_steps(4, kProducts / 127.0F);
}

TEST(Decoder, SequencesOfDifferentLengthsInABatchGiveWhatEachGivesAlone) {
  const Ref<Session> session = decoder();
  ASSERT_TRUE(session);
  constexpr int64_t kSteps = 20;
  const std::vector<int64_t> prompts = {3, 11, 7};
  const int64_t widest = 11;
  std::vector<Tensor> together = caches_of(3, widest + kSteps);
  std::vector<std::vector<Tensor>> alone(3, std::vector<Tensor>());
  for (auto& caches : alone) caches = caches_of(1, widest + kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<int64_t> lengths = prompts;
    for (int64_t& length : lengths) length += step;
    const int64_t width = step == 0 ? widest : 1;
    std::vector<int64_t> first = {0, 0, 0};
    for (size_t b = 0; step > 0 && b < 3; ++b) first[b] = lengths[b] - 1;
    const auto logits = run_call(*session, call_of(first, width, lengths), &together, true);
    for (int64_t b = 0; b < 3; ++b) {
      const auto at = static_cast<size_t>(b);
      Call call = call_of({0}, step == 0 ? prompts[at] : 1, {lengths[at]});
      int64_t* ids = const_cast<int64_t*>(call.inputs[0].value.tensor().data<int64_t>());
      for (int64_t i = 0; i < (step == 0 ? prompts[at] : 1); ++i) ids[i] = token(b, first[at] + i);
      const auto expected = last_row(run_call(*session, call, &alone[at], true));
      const int64_t row = b * width + (step == 0 ? prompts[at] - 1 : 0);
      const std::vector<float> got(logits.begin() + row * kVocabulary,
                                   logits.begin() + (row + 1) * kVocabulary);
      EXPECT_LT(largest_difference(got, expected), 1e-4F) << "sequence " << b << " step " << step;
    }
  }
}

TEST(Decoder, OnlyTheWholeCacheThatNothingElseReadsIsWrittenInPlace) {
  const Ref<Session> session = decoder();
  ASSERT_TRUE(session);
  const Program& program = session->program();
  for (const PortInfo& output : program.outputs) {
    if (output.name == "logits") {
      EXPECT_EQ(output.in_place_of, kNone);
      continue;
    }
    ASSERT_NE(output.in_place_of, kNone) << output.name;
    const std::string input = program.inputs[static_cast<size_t>(output.in_place_of)].name;
    EXPECT_EQ(input.substr(input.find('.')), output.name.substr(output.name.find('.')));
  }
}

}  // namespace
}  // namespace folio
