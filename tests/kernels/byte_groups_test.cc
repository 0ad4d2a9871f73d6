// How the kernels of AVX2 multiply with weights: which they take as bytes, two groups together or
// each alone, and which they make words of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/kernels/x86_avx2/x86_avx2.h"
#include "core/os/cpu_features.h"

namespace folio {
namespace {

constexpr int64_t kGroup = FOLIO_S8P16K4_GROUP;
constexpr FolioByteStep kFrom = {7, 40, 0};

class ByteGroups : public testing::Test {
 protected:
  void SetUp() override {
    constexpr CpuBits kNeeds = kCpuAvx2 | kCpuFma | kCpuF16c;
    if ((cpu_bits() & kNeeds) != kNeeds) GTEST_SKIP() << "no AVX2";
  }
  void list(const std::vector<int8_t>& weights, bool joins) {
    std::fill(std::begin(list_->count), std::end(list_->count), 0);
    list_byte_steps__x86_avx2(reinterpret_cast<const char*>(weights.data()), kFrom,
                              static_cast<int64_t>(weights.size()) / kGroup, joins ? 1 : 0,
                              list_.get());
  }
  int64_t count(FolioByteStepKind kind) const { return list_->count[kind]; }

  std::unique_ptr<FolioByteSteps> list_ = std::make_unique<FolioByteSteps>();
};

// Whether 255 times the positive ones, and times the negative ones, are numbers of 16 bits.
bool fits(const std::vector<int>& weights) {
  int most = 0;
  int least = 0;
  for (const int w : weights) (w > 0 ? most : least) += 255 * w;
  return most <= INT16_MAX && least >= INT16_MIN;
}

// Every pair of weights, in turn in every place of a group.
TEST_F(ByteGroups, WeightsWhosePairsFitStayBytes) {
  for (int w = -128; w < 128; ++w) {
    for (int v = -128; v < 128; ++v) {
      std::vector<int8_t> weights(3 * kGroup, 0);
      const auto place = static_cast<size_t>(kGroup + (w * 256 + v + 32896) % 32 * 2);
      weights[place] = static_cast<int8_t>(w);
      weights[place + 1] = static_cast<int8_t>(v);
      list(weights, false);
      ASSERT_EQ(count(kFolioJoined), 0);
      ASSERT_EQ(count(kFolioSingle), fits({w, v}) ? 3 : 2) << w << ' ' << v;
      ASSERT_EQ(count(kFolioWide), fits({w, v}) ? 0 : 1) << w << ' ' << v;
    }
  }
}

// Every pair of weights in one group and some pairs in the next.
TEST_F(ByteGroups, GroupsWhosePairsFitTogetherAreJoined) {
  constexpr int kSome[] = {-128, -127, -65, -64, -1, 0, 1, 63, 64, 65, 127};
  int place = 0;
  for (int w = -128; w < 128; ++w) {
    for (int v = -128; v < 128; ++v) {
      for (const int u : kSome) {
        const int t = kSome[static_cast<size_t>(place) % std::size(kSome)];
        std::vector<int8_t> weights(2 * kGroup, 0);
        int8_t* at = weights.data() + place++ % 32 * 2;
        at[0] = static_cast<int8_t>(w);
        at[1] = static_cast<int8_t>(v);
        at[kGroup] = static_cast<int8_t>(u);
        at[kGroup + 1] = static_cast<int8_t>(t);
        list(weights, true);
        const bool together = fits({w, v, u, t});
        const int64_t wide = together ? 0 : (fits({w, v}) ? 0 : 1) + (fits({u, t}) ? 0 : 1);
        ASSERT_EQ(count(kFolioJoined), together ? 1 : 0) << w << ' ' << v << ' ' << u << ' ' << t;
        ASSERT_EQ(count(kFolioWide), wide) << w << ' ' << v << ' ' << u << ' ' << t;
        ASSERT_EQ(count(kFolioSingle), together ? 0 : 2 - wide);
      }
    }
  }
}

TEST_F(ByteGroups, NeighboursInDifferentPairsDoNotMatter) {
  std::vector<int8_t> weights(kGroup, 0);
  for (size_t i = 0; i + 1 < weights.size(); i += 4) weights[i + 1] = weights[i + 2] = 127;
  list(weights, true);
  EXPECT_EQ(count(kFolioSingle), 1);
}

// Of any weights: every group is in one step, those of a kind in order, and words are the weights.
TEST_F(ByteGroups, StepsAreAllGroups) {
  constexpr int64_t kGroups = 17;
  std::mt19937 engine(5);
  std::vector<int> kinds(kFolioStepKinds, 0);
  for (int round = 0; round < 400; ++round) {
    const int range = 20 + round % 108;
    std::vector<int8_t> weights(kGroups * kGroup);
    for (int8_t& w : weights) {
      const int any = static_cast<int>(engine() % 256) - 128;
      w = static_cast<int8_t>(std::clamp(any, -range, range));
    }
    list(weights, round % 2 == 0);
    std::vector<int> seen(kGroups, 0);
    for (int kind = 0; kind < kFolioStepKinds; ++kind) {
      int64_t last = -1;
      for (int64_t i = 0; i < list_->count[kind]; ++i) {
        const FolioByteStep& step = list_->steps[kind][i];
        EXPECT_GT(step.b, last);
        last = step.b;
        const int64_t group = step.b / kGroup;
        EXPECT_EQ(step.rows, kFrom.rows);
        EXPECT_EQ(step.first, kFrom.first + 4 * group);
        ++seen[static_cast<size_t>(group)];
        if (kind == kFolioJoined) ++seen[static_cast<size_t>(group + 1)];
        ++kinds[static_cast<size_t>(kind)];
        if (kind != kFolioWide) continue;
        const char* words = list_->words + 2 * kGroup * i;
        for (int64_t w = 0; w < kGroup; ++w) {  // [half][parity][pair of rows of a column]
          int16_t word;
          std::memcpy(&word, words + w / 32 * 64 + w % 2 * 32 + w % 32 / 2 * 2, 2);
          ASSERT_EQ(word, weights[static_cast<size_t>(step.b + w)]);
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(kGroups, 1));
  }
  for (const int steps : kinds) EXPECT_GT(steps, 100);
}

}  // namespace
}  // namespace folio
