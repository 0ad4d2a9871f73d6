#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

// ONNX Runtime 1.30's own results.
TEST(MurmurHash3, HashesNumbersAndTexts) {
  OpTester numbers("MurmurHash3", 1, kMs);
  numbers.input<int32_t>({2}, {3, 4});
  numbers.expect<uint32_t>(0, {2}, {847579505, 1889779975}).run();
  OpTester texts("MurmurHash3", 1, kMs);
  texts.attr("positive", 0).input<std::string>({2, 1}, {"foo", "bar"});
  texts.expect<int32_t>(0, {2, 1}, {-156908512, 1158584717});
  texts.expect_inferred(0, "tensor(int32)[2,1]");
  texts.run();
}

// Of the hash's reference: 0 bytes are the seed's mix, and seeds are unsigned.
TEST(MurmurHash3, TakesAnySeed) {
  OpTester empty("MurmurHash3", 1, kMs);
  empty.input<std::string>({1}, {""}).expect<uint32_t>(0, {1}, {0}).run();
  OpTester one("MurmurHash3", 1, kMs);
  one.attr("seed", 1).input<std::string>({1}, {""});
  one.expect<uint32_t>(0, {1}, {0x514e28b7}).run();
  OpTester all("MurmurHash3", 1, kMs);
  all.attr("seed", -1).input<std::string>({1}, {""});
  all.expect<uint32_t>(0, {1}, {0x81f16f39}).run();
}

TEST(MurmurHash3, HashesTheBytesOfWideNumbers) {
  OpTester wide("MurmurHash3", 1, kMs);
  wide.input<int64_t>({1}, {0x6463626164636261}).outputs(1);  // "abcdabcd"
  OpTester text("MurmurHash3", 1, kMs);
  text.input<std::string>({1}, {"abcdabcd"}).expect<uint32_t>(0, {1}, {1899590199}).run();
  wide.expect<uint32_t>(0, {1}, {1899590199}).run();
}

TEST(MurmurHash3, RefusesOtherTypes) {
  OpTester t("MurmurHash3", 1, kMs);
  t.input<bool>({1}, {true}).outputs(1).fails("input 0 is bool");
}

}  // namespace
}  // namespace folio
