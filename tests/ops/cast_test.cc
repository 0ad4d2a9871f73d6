#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester to(DType dtype, int version = 19) {
  OpTester t("Cast", version);
  t.attr("to", static_cast<int64_t>(dtype));
  return t;
}

TEST(Cast, FloatToIntegersTruncatesAndIsDefinedEverywhere) {
  const std::vector<float> x = {1.9F, -1.9F, 300, 1e20F, -1e20F, NAN, INFINITY};
  OpTester i32 = to(DType::kInt32);
  i32.input<float>({7}, x);
  i32.expect<int32_t>(0, {7}, {1, -1, 300, INT32_MAX, INT32_MIN, 0, INT32_MAX});
  i32.run();
  OpTester u8 = to(DType::kUint8);
  u8.input<float>({4}, {1.9F, -1, 300, 255}).expect<uint8_t>(0, {4}, {1, 255, 44, 255});
  u8.run();
  OpTester u64 = to(DType::kUint64);
  u64.input<double>({3}, {1.5, -1, 1e30}).expect<uint64_t>(0, {3}, {1, UINT64_MAX, UINT64_MAX});
  u64.run();
}

TEST(Cast, BetweenFloatingPointTypes) {
  OpTester half = to(DType::kFloat16);
  half.input<float>({4}, {1, -0.5F, 65504, 1e6F});
  half.expect_as(0, DType::kFloat16, {4}, {1, -0.5, 65504, INFINITY});
  half.run();
  OpTester wide = to(DType::kFloat);
  wide.input_as(DType::kFloat16, {3}, {1, -0.5, 2.5}).expect<float>(0, {3}, {1, -0.5F, 2.5F});
  wide.run();
  OpTester brain = to(DType::kDouble);
  brain.input_as(DType::kBfloat16, {2}, {1, -3}).expect<double>(0, {2}, {1, -3});
  brain.run();
}

TEST(Cast, BoolsAndIntegers) {
  OpTester b = to(DType::kBool);
  b.input<float>({4}, {0, 0.1F, NAN, -0.0F}).expect<bool>(0, {4}, {false, true, true, false});
  b.run();
  OpTester i = to(DType::kInt64);
  i.input<bool>({2}, {true, false}).expect<int64_t>(0, {2}, {1, 0});
  i.run();
  OpTester narrow = to(DType::kInt8);
  narrow.input<int64_t>({2}, {257, -129}).expect<int8_t>(0, {2}, {1, 127});
  narrow.run();
}

// More elements than one block takes.
TEST(Cast, IntegersAndBoolsBecomeFloatsInRowsOfAnyLength) {
  for (const int64_t n : {15, 16, 17, 50}) {
    std::vector<int8_t> bytes;
    std::vector<int32_t> words;
    std::vector<uint8_t> bools;
    std::vector<float> of_bytes, of_words, of_bools;
    for (int64_t i = 0; i < n; ++i) {
      bytes.push_back(static_cast<int8_t>(i * 37));
      words.push_back(static_cast<int32_t>(i * 123456789));
      bools.push_back(static_cast<uint8_t>(i % 3));  // any byte but 0 is true
      of_bytes.push_back(static_cast<float>(bytes.back()));
      of_words.push_back(static_cast<float>(words.back()));
      of_bools.push_back(bools.back() != 0 ? 1.0F : 0.0F);
    }
    OpTester small("Cast", 13);
    small.attr("to", 1).input<int8_t>({n}, bytes).expect<float>(0, {n}, of_bytes);
    small.run();
    OpTester large("Cast", 13);
    large.attr("to", 1).input<int32_t>({n}, words).expect<float>(0, {n}, of_words);
    large.run();
    OpTester flags("Cast", 13);
    flags.attr("to", 1).input_value(make_raw_tensor(DType::kBool, {n}, bools));
    flags.expect<float>(0, {n}, of_bools);
    flags.run();
  }
}

// Elements alone and in blocks, which vector instructions convert, become the same bits.
TEST(Cast, AnElementDoesNotDependOnItsPlace) {
  constexpr DType kTypes[] = {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16,
                              DType::kInt8,  DType::kUint8,  DType::kInt16,   DType::kUint16,
                              DType::kInt32, DType::kUint32, DType::kInt64,   DType::kUint64,
                              DType::kBool};
  constexpr int64_t kCount = 1100;  // more than halves take at once
  const double numbers[] = {0,     -0.0,   1,        -1,        2.5,  -2.5,         127,
                            128,   255,    256,      300,       -129, 32768,        65504,
                            65536, -70000, 3e9,      -3e9,      1e19, 1.8446744e19, -1e30,
                            1e300, NAN,    INFINITY, -INFINITY, 0.1,  1e-40};
  for (const DType from : kTypes) {
    // Only what a type has: made as Cast makes it.
    OpTester source = to(from);
    std::vector<double> x;
    for (int64_t i = 0; i < kCount; ++i) x.push_back(numbers[static_cast<size_t>(i * 7) % 27]);
    source.input<double>({kCount}, x).outputs(1).run();
    const Tensor all = source.output(0).tensor();
    for (const DType target : kTypes) {
      OpTester together = to(target);
      together.input_value(Value(all)).outputs(1).run();
      const auto from_bytes = all.bytes() / kCount;
      const auto to_bytes = together.output(0).tensor().bytes() / kCount;
      for (int64_t i = 0; i < 27; ++i) {
        const auto at = static_cast<size_t>(i);
        std::vector<uint8_t> one(all.raw() + at * from_bytes, all.raw() + (at + 1) * from_bytes);
        OpTester alone = to(target);
        alone.input_value(make_raw_tensor(from, {1}, one)).outputs(1).run();
        EXPECT_EQ(std::memcmp(alone.output(0).tensor().raw(),
                              together.output(0).tensor().raw() + at * to_bytes, to_bytes),
                  0)
            << dtype_name(from) << " to " << dtype_name(target) << ", element " << i;
      }
    }
  }
}

TEST(Cast, KnowsSmallIntegers) {
  OpTester t = to(DType::kInt32);
  t.input<int64_t>({2}, {7, -1}).expect<int32_t>(0, {2}, {7, -1});
  t.run();
}

TEST(Cast, NumbersToStringsAndBack) {
  OpTester print = to(DType::kString);
  print.input<float>({7}, {0.47892547F, 1, 100000, 1e20F, -2.5F, NAN, -INFINITY});
  print.expect<std::string>(0, {7}, {"0.47892547", "1", "100000", "1e+20", "-2.5", "NaN", "-INF"});
  print.run();
  OpTester read = to(DType::kFloat);
  read.input<std::string>({6}, {"0.5", "+INF", "-INF", "NaN", " 1e3 ", "1e99"});
  read.expect<float>(0, {6}, {0.5F, INFINITY, -INFINITY, NAN, 1000, INFINITY});
  read.run();
  OpTester integer = to(DType::kInt32);
  integer.input<std::string>({3}, {"12", "-3", "2.9"}).expect<int32_t>(0, {3}, {12, -3, 2});
  integer.run();
  OpTester bad = to(DType::kFloat);
  bad.input<std::string>({1}, {"one"}).fails("'one' is not a number");
}

// Else a number would silently become another one.
TEST(Cast, StringsBeyondTheIntegersAreRefusedWithTheirText) {
  struct Case {
    DType dtype;
    std::vector<std::string> outside;
    std::vector<std::string> inside;
    std::vector<int64_t> numbers;
  };
  const std::string nines = "9999999999999999999999";
  const Case cases[] = {
      {DType::kInt8, {"128", "-129", "1e30", nines}, {"127", "-128.9", "1e2"}, {127, -128, 100}},
      {DType::kUint8, {"256", "-1", "1e30", nines}, {"255.5", "-0.5", " 0 "}, {255, 0, 0}},
      {DType::kInt16, {"32768", "-32769", nines}, {"32767", "-32768"}, {32767, -32768}},
      {DType::kUint16, {"65536", "-1", nines}, {"65535", "+7"}, {65535, 7}},
      {DType::kInt32, {"2147483648", "-2147483649", nines}, {"2147483647"}, {INT32_MAX}},
      {DType::kUint32, {"4294967296", "-1", nines}, {"4294967295"}, {UINT32_MAX}},
      {DType::kInt64,
       {"9223372036854775808", "-1e19", nines},
       {"-9223372036854775808"},
       {INT64_MIN}},
      {DType::kUint64, {"18446744073709551616", "-1"}, {"9223372036854775807"}, {INT64_MAX}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> outside = c.outside;
    for (const char* text : {"NaN", "INF", "-INF"}) outside.emplace_back(text);
    for (const std::string& text : outside) {
      OpTester t = to(c.dtype);
      t.input<std::string>({2}, {"1", text});
      t.fails("'" + text + "' is out of the range of " + std::string(dtype_name(c.dtype)));
    }
    const auto count = static_cast<int64_t>(c.inside.size());
    OpTester read = to(c.dtype);
    read.input<std::string>({count}, c.inside);
    Tensor expected = allocate_tensor(c.dtype, {count}).take();
    for (size_t i = 0; i < c.numbers.size(); ++i) {  // little-endian
      const auto bytes = static_cast<size_t>(dtype_bits(c.dtype)) / 8;
      std::memcpy(expected.raw_mut() + i * bytes, &c.numbers[i], bytes);
    }
    read.expect_value(0, expected).run();
  }
  OpTester four = to(DType::kInt4, 21);
  four.input<std::string>({1}, {"8"}).fails("'8' is out of the range of int4");
}

TEST(Cast, Float8FollowsTheTableOfTheSpecification) {
  struct Case {
    DType dtype;
    bool saturate;
    std::vector<uint8_t> codes;  // of the values below
  };
  const std::vector<float> x = {1, -1, 0, -0.0F, 1000, INFINITY, -INFINITY, 448, 1e6F};
  const Case cases[] = {
      {DType::kFloat8E4M3FN, true, {0x38, 0xb8, 0, 0x80, 0x7e, 0x7e, 0xfe, 0x7e, 0x7e}},
      {DType::kFloat8E4M3FN, false, {0x38, 0xb8, 0, 0x80, 0x7f, 0x7f, 0xff, 0x7e, 0x7f}},
      {DType::kFloat8E4M3FNUZ, true, {0x40, 0xc0, 0, 0, 0x7f, 0x7f, 0xff, 0x7f, 0x7f}},
      {DType::kFloat8E4M3FNUZ, false, {0x40, 0xc0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80}},
      {DType::kFloat8E5M2, true, {0x3c, 0xbc, 0, 0x80, 0x64, 0x7b, 0xfb, 0x5f, 0x7b}},
      {DType::kFloat8E5M2, false, {0x3c, 0xbc, 0, 0x80, 0x64, 0x7c, 0xfc, 0x5f, 0x7c}},
      {DType::kFloat8E5M2FNUZ, true, {0x40, 0xc0, 0, 0, 0x68, 0x7f, 0xff, 0x63, 0x7f}},
  };
  for (const Case& c : cases) {
    OpTester t = to(c.dtype);
    t.attr("saturate", c.saturate ? 1 : 0).input<float>({9}, x);
    t.expect_value(0, make_raw_tensor(c.dtype, {9}, c.codes));
    t.run();
  }
}

TEST(Cast, Float8WidensExactly) {
  OpTester t = to(DType::kFloat);
  t.input_value(make_raw_tensor(DType::kFloat8E4M3FN, {5}, {0x01, 0x08, 0x7e, 0xff, 0xb9}));
  t.expect<float>(0, {5}, {0x1p-9F, 0x1p-6F, 448, NAN, -1.125F});
  t.run();
  OpTester e5 = to(DType::kFloat);
  e5.input_value(make_raw_tensor(DType::kFloat8E5M2, {3}, {0x7c, 0x01, 0x7b}));
  e5.expect<float>(0, {3}, {INFINITY, 0x1p-16F, 57344});
  e5.run();
  OpTester uz = to(DType::kFloat);
  uz.input_value(make_raw_tensor(DType::kFloat8E5M2FNUZ, {2}, {0x80, 0x7f}));
  uz.expect<float>(0, {2}, {NAN, 57344});
  uz.run();
}

TEST(Cast, FourAndTwoBitTypes) {
  OpTester read = to(DType::kInt8, 21);
  read.input_value(make_raw_tensor(DType::kInt4, {3}, {0x8f, 0x07}));
  read.expect<int8_t>(0, {3}, {-1, -8, 7});
  read.run();
  OpTester write = to(DType::kUint4, 21);
  write.input<float>({3}, {1, 15, 7})
      .expect_value(0, make_raw_tensor(DType::kUint4, {3}, {0xf1, 7}));
  write.run();
  OpTester f4 = to(DType::kFloat4E2M1, 23);
  f4.input<float>({4}, {0.5F, -6, 100, 2.5F});
  f4.expect_value(0, make_raw_tensor(DType::kFloat4E2M1, {4}, {0xf1, 0x47}));
  f4.run();
  OpTester two = to(DType::kInt32, 25);
  two.input_value(make_raw_tensor(DType::kInt2, {3}, {0x39}));
  two.expect<int32_t>(0, {3}, {1, -2, -1});
  two.run();
}

TEST(Cast, ScalesAreRoundedAsAsked) {
  const std::pair<const char*, std::vector<uint8_t>> cases[] = {
      {"up", {127, 128, 128}}, {"down", {127, 127, 127}}, {"nearest", {127, 127, 128}}};
  for (const auto& [mode, codes] : cases) {
    OpTester t = to(DType::kFloat8E8M0, 24);
    t.attr("round_mode", mode).input<float>({3}, {1, 1.25F, 1.75F});
    t.expect_value(0, make_raw_tensor(DType::kFloat8E8M0, {3}, codes));
    t.run();
  }
}

TEST(Cast, Opset1NamesItsType) {
  OpTester t("Cast", 1);
  t.attr("to", "INT64").input<float>({1}, {2.5F}).expect<int64_t>(0, {1}, {2});
  t.run();
  OpTester bad("Cast", 1);
  bad.attr("to", "FLOTE").input<float>({1}, {1}).fails("no element type");
}

TEST(Cast, RefusesUnknownTypes) {
  to(static_cast<DType>(99)).input<float>({1}, {1}).fails("no element type");
  to(DType::kComplex64).input<float>({1}, {1}).fails("complex64");
}

TEST(CastLike, TakesTheTypeOfItsSecondInput) {
  OpTester t("CastLike", 15);
  t.input<float>({2}, {1.5F, -2}).input<int64_t>({1}, {0}).expect<int64_t>(0, {2}, {1, -2});
  t.expect_inferred(0, "tensor(int64)[2]");
  t.run();
}

// Chunks of numbers that a double holds with room to spare, and chunks with one that does not.
TEST(Cast, WideIntegersBecomeDoublesAndBools) {
  constexpr int64_t kCount = 700;
  const int64_t edge = int64_t{1} << 51;
  for (const int64_t odd : {int64_t{0}, edge - 1, edge, -edge, -edge - 1, 4 * edge + 1,
                            int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> x;
    std::vector<double> numbers;
    std::vector<bool> flags;
    for (int64_t i = 0; i < kCount; ++i) {
      x.push_back(i % 300 == 299 ? odd : i % 3 * (i - 300));
      numbers.push_back(static_cast<double>(x.back()));
      flags.push_back(x.back() != 0);
    }
    OpTester wide = to(DType::kDouble);
    wide.input<int64_t>({kCount}, x).expect<double>(0, {kCount}, numbers).run();
    OpTester flag = to(DType::kBool);
    flag.input<int64_t>({kCount}, x).expect<bool>(0, {kCount}, flags).run();
  }
}

}  // namespace
}  // namespace folio
