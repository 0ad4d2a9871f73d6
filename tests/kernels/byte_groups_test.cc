// Which weights the kernels of AVX2 multiply with as they are, and what they make of the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/kernels/x86_avx2/x86_avx2.h"
#include "core/os/cpu_features.h"
#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr int64_t kGroup = FOLIO_S8P16K4_GROUP;

struct Split {
  explicit Split(const std::vector<int8_t>& weights)
      : at(weights.size() / kGroup * 2), groups(weights.size() * 2, kUntouched) {
    count = split_groups__x86_avx2(reinterpret_cast<const char*>(weights.data()),
                                   static_cast<int64_t>(weights.size()) / kGroup, at.data(),
                                   groups.data());
  }
  int8_t weight(int64_t group, int64_t i) const {
    return static_cast<int8_t>(groups[static_cast<size_t>(group * kGroup + i)]);
  }
  bool is_untouched() const {
    return std::all_of(groups.begin(), groups.end(), [](char c) { return c == kUntouched; });
  }

  static constexpr char kUntouched = 0x55;
  std::vector<int32_t> at;
  std::vector<char> groups;
  int64_t count;
};

class ByteGroups : public testing::Test {
 protected:
  void SetUp() override {
    constexpr CpuBits kNeeds = kCpuAvx2 | kCpuFma | kCpuF16c;
    if ((cpu_bits() & kNeeds) != kNeeds) GTEST_SKIP() << "no AVX2";
  }
};

// Every pair of weights, in turn in every place of a group: in place if and only if 255 times each
// of them, and of both, is a number of 16 bits.
TEST_F(ByteGroups, WeightsWhosePairsFitStayInPlace) {
  for (int w = -128; w < 128; ++w) {
    for (int v = -128; v < 128; ++v) {
      std::vector<int8_t> weights(3 * kGroup, 0);
      const auto place = static_cast<size_t>(kGroup + (w * 256 + v + 32896) % 32 * 2);
      weights[place] = static_cast<int8_t>(w);
      weights[place + 1] = static_cast<int8_t>(v);
      const int most = 255 * (std::max(w, 0) + std::max(v, 0));
      const int least = 255 * (std::min(w, 0) + std::min(v, 0));
      const bool fits = most <= INT16_MAX && least >= INT16_MIN;
      const Split split(weights);
      ASSERT_EQ(split.count, fits ? 3 : 4) << w << ' ' << v;
      ASSERT_EQ(split.is_untouched(), fits) << w << ' ' << v;
    }
  }
}

TEST_F(ByteGroups, NeighboursInDifferentPairsDoNotMatter) {
  std::vector<int8_t> weights(kGroup, 0);
  for (size_t i = 0; i + 1 < weights.size(); i += 4) weights[i + 1] = weights[i + 2] = 127;
  const Split split(weights);
  EXPECT_EQ(split.count, 1);
  EXPECT_TRUE(split.is_untouched());
}

// Of any weights: groups in order, one or two of each, that add up to it and whose pairs fit.
TEST_F(ByteGroups, SplitGroupsAddUp) {
  std::mt19937 engine(5);
  for (int round = 0; round < 200; ++round) {
    const int range = 40 + round % 90;  // none, some or all of them are split
    std::vector<int8_t> weights(17 * kGroup);
    for (int8_t& w : weights) {
      const int any = static_cast<int>(engine() % 256) - 128;
      w = static_cast<int8_t>(std::clamp(any, -range, range));
    }
    const Split split(weights);
    if (split.count == 17) continue;  // in place
    std::vector<int> sums(weights.size(), 0);
    for (int64_t g = 0; g < split.count; ++g) {
      ASSERT_EQ(split.at[static_cast<size_t>(g)] % 4, 0);
      if (g > 0) {
        ASSERT_GE(split.at[static_cast<size_t>(g)], split.at[static_cast<size_t>(g - 1)]);
      }
      const int64_t first = split.at[static_cast<size_t>(g)] / 4 * kGroup;
      for (int64_t i = 0; i < kGroup; ++i) {
        sums[static_cast<size_t>(first + i)] += split.weight(g, i);
        if (i % 2 == 0) {
          EXPECT_LE(std::abs(split.weight(g, i) + split.weight(g, i + 1)), 128);
        }
      }
    }
    for (size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(sums[i], weights[i]) << i;
  }
}

}  // namespace
}  // namespace folio
