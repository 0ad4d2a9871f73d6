#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// One new position after one past position, two query heads on one key head of size 2; queries
// are zero, so that all visible values weigh the same: the past (2, 4) and the new (6, 8).
struct Decode {
  OpTester t{"GroupQueryAttention", 1, "com.microsoft"};
  int64_t capacity = 1;
  int32_t seqlen = 1;

  void inputs() {
    t.attr("num_heads", 2).attr("kv_num_heads", 1);
    t.input<float>({1, 1, 4}, {0, 0, 0, 0});
    t.input<float>({1, 1, 2}, {1, 2});
    t.input<float>({1, 1, 2}, {6, 8});
    std::vector<float> past(static_cast<size_t>(capacity * 2), 99);
    past[0] = 3;
    past[1] = 5;
    t.input<float>({1, 1, capacity, 2}, past);
    past[0] = 2;
    past[1] = 4;
    t.input<float>({1, 1, capacity, 2}, past);
    t.input<int32_t>({1}, {seqlen});
    t.input<int32_t>({1}, {2});
  }
};

TEST(GroupQueryAttention, AppendsToThePast) {
  Decode d;
  d.inputs();
  d.t.expect<float>(0, {1, 1, 4}, {4, 6, 4, 6}, 1e-6);
  d.t.expect<float>(1, {1, 1, 2, 2}, {3, 5, 1, 2});
  d.t.expect<float>(2, {1, 1, 2, 2}, {2, 4, 6, 8});
  d.t.run();
}

// A node may name the output all the same.
TEST(GroupQueryAttention, WithoutQkOutputThereIsNoOutputOfScores) {
  Decode d;
  d.inputs();
  d.t.outputs(4);
  EXPECT_EQ(d.t.survives(), 4);
  EXPECT_TRUE(d.t.output(3).is_none());
}

TEST(GroupQueryAttention, KeepsTheSizeOfASharedBuffer) {
  Decode d;
  d.capacity = 3;
  d.inputs();
  d.t.expect<float>(0, {1, 1, 4}, {4, 6, 4, 6}, 1e-6);
  d.t.expect<float>(1, {1, 1, 3, 2}, {3, 5, 1, 2, 0, 0});
  d.t.expect<float>(2, {1, 1, 3, 2}, {2, 4, 6, 8, 0, 0});
  d.t.run();
}

// With a window or without, and with caches of bytes.
TEST(GroupQueryAttention, OfNoSequenceThereIsNothing) {
  for (const int bits : {0, 8}) {
    for (const int window : {-1, 2}) {
      OpTester t("GroupQueryAttention", 1, "com.microsoft");
      t.attr("num_heads", 2).attr("kv_num_heads", 1).attr("local_window_size", window);
      t.input<float>({0, 1, 16}, {}).input<float>({0, 1, 8}, {}).input<float>({0, 1, 8}, {});
      for (int past = 0; past < 2; ++past) {
        bits ? t.input<int8_t>({0, 1, 3, 8}, {}) : t.input<float>({0, 1, 3, 8}, {});
      }
      t.input<int32_t>({0}, {}).input<int32_t>({1}, {2});
      if (bits) {
        t.attr("k_quant_type", "PER_TENSOR").attr("v_quant_type", "PER_TENSOR");
        t.attr("kv_cache_bit_width", bits);
        for (int absent = 7; absent < 12; ++absent) t.input_absent();
        t.input<float>({1}, {0.5F}).input<float>({1}, {0.5F});
      }
      t.outputs(3);
      ASSERT_GT(t.survives(), 0) << t.refusal();
      EXPECT_EQ(t.output(0).tensor().shape(), (Shape{0, 1, 16}));
      EXPECT_EQ(t.output(1).tensor().shape(), (Shape{0, 1, 3, 8}));
    }
  }
}

TEST(GroupQueryAttention, AWindowOfOneSeesItselfOnly) {
  Decode d;
  d.t.attr("local_window_size", 1);
  d.inputs();
  d.t.expect<float>(0, {1, 1, 4}, {6, 8, 6, 8}, 1e-6);
  d.t.run();
}

TEST(GroupQueryAttention, SinksTakeTheirShareOfTheWeights) {
  Decode d;
  d.inputs();
  for (int i = 0; i < 4; ++i) d.t.input_absent();
  d.t.input<float>({2}, {0, 0.6931472f});  // exp: 1 and 2, beside 1 + 1 of the keys
  d.t.expect<float>(0, {1, 1, 4}, {8.0f / 3, 4, 2, 3}, 1e-6);
  d.t.run();
}

TEST(GroupQueryAttention, RotatesNewKeysByTheirPosition) {
  Decode d;
  d.t.attr("do_rotary", 1);
  d.inputs();
  d.t.input<float>({2, 1}, {1, 0});  // position 1: a quarter turn
  d.t.input<float>({2, 1}, {0, 1});
  d.t.expect<float>(0, {1, 1, 4}, {4, 6, 4, 6}, 1e-6);
  d.t.expect<float>(1, {1, 1, 2, 2}, {3, 5, -2, 1});
  d.t.run();
}

// ONNX Runtime's schema: of a first prompt, position_ids' first element only; here it is 1, for
// both sequences, and every position turns by a quarter more.
TEST(GroupQueryAttention, AFirstPromptStandsFromTheFirstPositionOn) {
  OpTester t("GroupQueryAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("do_rotary", 1);
  for (int i = 0; i < 3; ++i) t.input<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.input_absent().input_absent().input<int32_t>({2}, {1, 1}).input<int32_t>({1}, {2});
  t.input<float>({3, 1}, {1, 0, -1}).input<float>({3, 1}, {0, 1, 0});
  t.input<int64_t>({2, 2}, {1, 0, -7, 99}).outputs(3);
  t.expect<float>(1, {2, 1, 2, 2}, {-2, 1, -3, -4, -6, 5, -7, -8}).run();
}

TEST(GroupQueryAttention, AFirstPromptBeyondTheTableIsRefused) {
  for (const int64_t first : {int64_t{2}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    OpTester t("GroupQueryAttention", 1, "com.microsoft");
    t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("do_rotary", 1);
    for (int i = 0; i < 3; ++i) t.input<float>({1, 2, 2}, {1, 2, 3, 4});
    t.input_absent().input_absent().input<int32_t>({1}, {1}).input<int32_t>({1}, {2});
    t.input<float>({3, 1}, {1, 0, -1}).input<float>({3, 1}, {0, 1, 0});
    t.input<int64_t>({1, 2}, {first, 0}).outputs(3).fails("position");
  }
}

TEST(GroupQueryAttention, PositionsInOtherDimsAreRefused) {
  Decode d;
  d.t.attr("do_rotary", 1);
  d.inputs();
  d.t.input<float>({2, 1}, {1, 0});
  d.t.input<float>({2, 1}, {0, 1});
  d.t.input<int64_t>({1}, {1});
  d.t.outputs(3).fails("position_ids is [1], expected [1,1]");
}

TEST(GroupQueryAttention, TakesQueryKeyAndValuePacked) {
  OpTester t("GroupQueryAttention", 1, "com.microsoft");
  t.attr("num_heads", 2).attr("kv_num_heads", 1);
  t.input<float>({1, 2, 4}, {0, 0, 7, 3, 0, 0, 8, 5});
  for (int i = 0; i < 4; ++i) t.input_absent();
  t.input<int32_t>({1}, {1});
  t.input<int32_t>({}, {2});
  t.expect<float>(0, {1, 2, 2}, {3, 3, 4, 4}, 1e-6);
  t.expect<float>(1, {1, 1, 2, 1}, {7, 8});
  t.run();
}

TEST(GroupQueryAttention, LengthsThatDoNotFitAreRefused) {
  for (const int32_t seqlen : {7, -2, INT32_MAX, INT32_MIN}) {
    Decode d;
    d.seqlen = seqlen;
    d.inputs();
    d.t.outputs(3).fails("seqlens_k holds");
  }
}

// As Decode, with caches of codes: keys in steps of 0.5, values of 2 and 4 by channel.
OpTester byte_decode(int64_t capacity) {
  OpTester t("GroupQueryAttention", 1, "com.microsoft");
  t.attr("num_heads", 2).attr("kv_num_heads", 1);
  t.attr("k_quant_type", "PER_TENSOR").attr("v_quant_type", "PER_CHANNEL");
  t.input<float>({1, 1, 4}, {0, 0, 0, 0});
  t.input<float>({1, 1, 2}, {1.2F, -100});
  t.input<float>({1, 1, 2}, {5, 8});
  std::vector<int8_t> past(static_cast<size_t>(capacity * 2), 99);
  past[0] = 3;
  past[1] = -5;
  t.input<int8_t>({1, 1, capacity, 2}, past);
  past[0] = 1;
  past[1] = 1;
  t.input<int8_t>({1, 1, capacity, 2}, past);
  t.input<int32_t>({1}, {1});
  t.input<int32_t>({1}, {2});
  for (int i = 0; i < 5; ++i) t.input_absent();
  return t;
}

TEST(GroupQueryAttention, CachesOfBytesHoldRoundedRowsAndAreReadAsTheyHoldThem) {
  OpTester t = byte_decode(1);
  t.input<float>({1}, {0.5F});
  t.input<float>({1, 1, 1, 2}, {2, 4});
  // 5 / 2 rounds to the even 2; -100 / 0.5 is clamped. Values: (1, 1) and (2, 2) times (2, 4).
  t.expect<float>(0, {1, 1, 4}, {3, 6, 3, 6}, 1e-6);
  t.expect<int8_t>(1, {1, 1, 2, 2}, {3, -5, 2, -128});
  t.expect<int8_t>(2, {1, 1, 2, 2}, {1, 1, 2, 2});
  t.run();
}

TEST(GroupQueryAttention, ABufferOfBytesKeepsItsSize) {
  OpTester t = byte_decode(3);
  t.input<float>({1}, {0.5F});
  t.input<float>({1, 1, 1, 2}, {2, 4});
  t.expect<int8_t>(1, {1, 1, 3, 2}, {3, -5, 2, -128, 0, 0});
  t.expect<int8_t>(2, {1, 1, 3, 2}, {1, 1, 2, 2, 0, 0});
  t.run();
}

TEST(GroupQueryAttention, ScalesOfACacheMustBroadcast) {
  OpTester t = byte_decode(1);
  t.input<float>({1}, {0.5F});
  t.input<float>({1, 1, 2, 1}, {2, 4});
  t.outputs(3).fails("the scale of a cache has shape [1,1,2,1]");
}

TEST(GroupQueryAttention, UnknownKindsOfCachesAreRefusedByName) {
  for (const bool bits : {false, true}) {
    OpTester t = byte_decode(1);
    t.input<float>({1}, {0.5F});
    t.input<float>({1}, {0.5F});
    if (bits) {
      t.attr("kv_cache_bit_width", 2).outputs(3).fails("kv_cache_bit_width");
    } else {
      t.attr("v_quant_type", "?").outputs(3).fails("v_quant_type");
    }
  }
}

TEST(GroupQueryAttention, CachesOfFourBitsHoldTwoCodesInAByte) {
  OpTester t("GroupQueryAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("kv_cache_bit_width", 4);
  t.attr("k_quant_type", "PER_TENSOR").attr("v_quant_type", "PER_CHANNEL");
  t.input<float>({1, 1, 2}, {0, 0});
  t.input<float>({1, 1, 2}, {1.2F, -100});
  t.input<float>({1, 1, 2}, {5, 8});
  t.input<uint8_t>({1, 1, 1, 1}, {0xf0}).input<uint8_t>({1, 1, 1, 1}, {0x99});  // (-8, 7), (1, 1)
  t.input<int32_t>({1}, {1});
  t.input<int32_t>({1}, {2});
  for (int i = 0; i < 5; ++i) t.input_absent();
  t.input<float>({1}, {0.5F});
  t.input<float>({1, 1, 1, 2}, {2, 4});
  // 1.2 / 0.5 rounds to 2, -200 is clamped to -8; 5 / 2 to the even 2, 8 / 4 is 2.
  t.expect<float>(0, {1, 1, 2}, {3, 6}, 1e-6);
  t.expect<uint8_t>(1, {1, 1, 2, 1}, {0xf0, 0x0a});
  t.expect<uint8_t>(2, {1, 1, 2, 1}, {0x99, 0xaa});
  t.run();
}

// Steps with a cache of `capacity` rows for a window of 3 give what one call over all tokens gives,
// and leave the rows that the operator's text states.
void check_window(int64_t capacity, const std::vector<int64_t>& steps) {
  constexpr int64_t kWindow = 3;
  constexpr int64_t kAll = 12;
  std::vector<float> q, k, v;
  for (int64_t i = 0; i < kAll * 2; ++i) {
    q.push_back(std::sin(static_cast<float>(i)));
    k.push_back(std::cos(static_cast<float>(i) * 1.3F));
    v.push_back(static_cast<float>(i));
  }
  const auto part = [](const std::vector<float>& from, int64_t begin, int64_t count) {
    return std::vector<float>(from.begin() + begin * 2, from.begin() + (begin + count) * 2);
  };
  OpTester whole("GroupQueryAttention", 1, "com.microsoft");
  whole.attr("num_heads", 1).attr("kv_num_heads", 1).attr("local_window_size", kWindow);
  whole.input<float>({1, kAll, 2}, q).input<float>({1, kAll, 2}, k).input<float>({1, kAll, 2}, v);
  whole.input_absent().input_absent();
  whole.input<int32_t>({1}, {kAll - 1}).input<int32_t>({}, {kAll});
  whole.outputs(1).run();
  const std::vector<float> expected = whole.output_values<float>(0);
  std::vector<float> keys(static_cast<size_t>(capacity * 2), 1e9F);
  std::vector<float> values = keys;
  int64_t done = 0;
  for (const int64_t step : steps) {
    SCOPED_TRACE(testing::Message() << "capacity " << capacity << " at " << done);
    const int64_t total = done + step;
    OpTester t("GroupQueryAttention", 1, "com.microsoft");
    t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("local_window_size", kWindow);
    t.attr("sliding_window_cache", 1);
    t.input<float>({1, step, 2}, part(q, done, step));
    t.input<float>({1, step, 2}, part(k, done, step));
    t.input<float>({1, step, 2}, part(v, done, step));
    t.input<float>({1, 1, capacity, 2}, keys).input<float>({1, 1, capacity, 2}, values);
    t.input<int32_t>({1}, {static_cast<int32_t>(total - 1)});
    t.input<int32_t>({}, {static_cast<int32_t>(total)});
    t.expect<float>(0, {1, step, 2}, part(expected, done, step), 1e-5);
    t.outputs(3).run();
    keys = t.output_values<float>(1);
    values = t.output_values<float>(2);
    const int64_t group = capacity - kWindow + 1;
    const int64_t held =
        total <= capacity ? total : total - group * ((total - capacity + group - 1) / group);
    const std::vector<float> rows(values.begin(), values.begin() + held * 2);
    EXPECT_EQ(rows, part(v, total - held, held));
    done = total;
  }
}

TEST(GroupQueryAttention, AWindowedCacheGivesWhatTheWholeOneGives) {
  check_window(3, {1, 1, 1, 1, 1, 1, 1});
  check_window(5, {2, 1, 1, 1, 1, 1, 1, 1});
  check_window(4, {6, 3, 1, 2});
  check_window(12, {12});
}

TEST(GroupQueryAttention, AWindowedCacheNeedsRowsForItsWindow) {
  OpTester t("GroupQueryAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("local_window_size", 3);
  t.attr("sliding_window_cache", 1);
  for (int i = 0; i < 3; ++i) t.input<float>({1, 1, 2}, {1, 2});
  for (int i = 0; i < 2; ++i) t.input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<int32_t>({1}, {1}).input<int32_t>({}, {2});
  t.outputs(3).fails("expected local_window_size, 3, rows or more");
  OpTester u("GroupQueryAttention", 1, "com.microsoft");
  u.attr("num_heads", 1).attr("kv_num_heads", 1).attr("sliding_window_cache", 1);
  for (int i = 0; i < 3; ++i) u.input<float>({1, 1, 2}, {1, 2});
  u.input_absent().input_absent();
  u.input<int32_t>({1}, {0}).input<int32_t>({}, {1});
  u.outputs(3).fails("local_window_size");
}

TEST(GroupQueryAttention, HeadsAreNormedBeforeTheyAreRotated) {
  Decode d;
  d.t.attr("do_rotary", 1).attr("qk_norm_epsilon", 0.0F);
  d.inputs();
  d.t.input<float>({2, 1}, {1, 0});  // position 1: a quarter turn
  d.t.input<float>({2, 1}, {0, 1});
  for (int i = 0; i < 5; ++i) d.t.input_absent();
  d.t.input<float>({2}, {1, 1});
  d.t.input<float>({2}, {10, 5});  // of the key (1, 2), whose mean square is 2.5
  const float rms = std::sqrt(2.5F);
  d.t.expect<float>(1, {1, 1, 2, 2}, {3, 5, -10 / rms, 10 / rms}, 1e-5);
  d.t.run();
}

}  // namespace
}  // namespace folio
