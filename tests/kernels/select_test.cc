// Which table a CPU gets.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "core/os/cpu_features.h"
#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr CpuBits kAvx2 = kCpuAvx2 | kCpuFma | kCpuF16c;
constexpr CpuBits kAvx512 = kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl;

// Whether tables of levels that need `bits` can be made here: what fills them is compiled for them.
bool can_fill(CpuBits bits) { return (cpu_bits() & bits) == bits; }

// Every slot is one pointer, so the table can be looked at as words. What is no slot stands behind.
TEST(Select, RefFillsEverySlot) {
  FolioKernels kernels;
  std::memset(&kernels, 0, sizeof(kernels));
  kernel_levels().first->fill(&kernels);
  void* words[offsetof(FolioKernels, precision) / sizeof(void*)];
  static_assert(sizeof(words) == offsetof(FolioKernels, precision));
  std::memcpy(words, &kernels, sizeof(words));
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) EXPECT_NE(words[i], nullptr) << i;
}

TEST(Select, ACpuWithoutBitsGetsRef) {
  EXPECT_STREQ(kernel_levels().first->name, "ref");
  EXPECT_STREQ(kernel_level_name(0), "ref");
  FolioKernels ref = {};
  kernel_levels().first->fill(&ref);
  EXPECT_EQ(std::memcmp(&kernels_for(0), &ref, sizeof(ref)), 0);
}

TEST(Select, EveryNeededBitIsNeeded) {
  for (const KernelLevel& level : kernel_levels()) {
    EXPECT_TRUE(level_usable(level, ~CpuBits{0})) << level.name;
    for (int bit = 0; bit < 32; ++bit) {
      const CpuBits one = CpuBits{1} << bit;
      EXPECT_EQ(level_usable(level, ~one), (level.needs & one) == 0) << level.name << ' ' << bit;
    }
  }
}

TEST(Select, SameLevelsGiveTheSameTable) {
  EXPECT_EQ(&kernels_for(0), &kernels_for(kCpuAvx2));  // without FMA the level is not usable
  EXPECT_EQ(&kernels_for(cpu_bits()), &kernels_for(cpu_bits()));
}

// A level that fails its check is left out alone; one that the bits rule out is not even asked.
TEST(Select, ALevelThatFailsItsCheckIsNotUsed) {
  static int asked = 0;
  const auto fails = [] { return ++asked, 0; };
  const auto works = [] { return ++asked, 1; };
  const KernelLevel list[] = {
      {"a", 0, nullptr, nullptr}, {"b", 1, nullptr, works}, {"c", 2, nullptr, fails}};
  const KernelLevels levels{list, 3};
  const auto passes = [](const KernelLevel& level) { return level.check() != 0; };
  EXPECT_EQ(levels_in_use(levels, 0, passes), 1U);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(levels_in_use(levels, 1, passes), 3U);
  EXPECT_EQ(levels_in_use(levels, 2, passes), 1U);
  EXPECT_EQ(levels_in_use(levels, 3, passes), 3U);
  EXPECT_EQ(asked, 4);
}

TEST(Select, ThisMachinePassesTheChecks) {
  EXPECT_EQ(failed_kernel_level(cpu_bits()), nullptr);
  EXPECT_EQ(failed_kernel_level(0), nullptr);
}

TEST(Select, NewerLevelsOverwriteOlderOnes) {
  if (std::strcmp(kernel_level_name(kAvx2), "x86_avx2") != 0 || !can_fill(kAvx2))
    GTEST_SKIP() << "no AVX2 in this build or on this machine";
  EXPECT_NE(kernels_for(kAvx2).gemm_f32, kernels_for(0).gemm_f32);
  if (std::strcmp(kernel_level_name(kAvx2 | kAvx512), "x86_avx512") != 0 || !can_fill(kAvx512))
    GTEST_SKIP() << "no AVX-512 in this build or on this machine";
  EXPECT_NE(kernels_for(kAvx2 | kAvx512).gemm_f32, kernels_for(kAvx2).gemm_f32);
}

// Products of bytes alone are AVX-VNNI's; AVX-512's come above them, and where it has VNNI its own.
TEST(Select, AvxVnniLiesBetweenAvx2AndAvx512) {
  const CpuBits avx_vnni = kAvx2 | kCpuAvxVnni;
  if (std::strcmp(kernel_level_name(avx_vnni), "x86_avxvnni") != 0)
    GTEST_SKIP() << "no AVX-VNNI in this build";
  if (!can_fill(kAvx2)) GTEST_SKIP() << "no AVX2 on this machine"; /* all that filling needs */
  EXPECT_STREQ(kernel_level_name(kAvx2), "x86_avx2");
  EXPECT_STREQ(kernel_level_name(kCpuAvxVnni), "ref");
  const FolioKernels& vnni = kernels_for(avx_vnni);
  EXPECT_NE(vnni.gemm_u8, kernels_for(kAvx2).gemm_u8);
  EXPECT_NE(vnni.depthwise_u8, kernels_for(kAvx2).depthwise_u8);
  EXPECT_NE(vnni.block_dots_s8, kernels_for(kAvx2).block_dots_s8);
  EXPECT_EQ(vnni.gemm_f32, kernels_for(kAvx2).gemm_f32);
  EXPECT_EQ(vnni.pack_s8p16k4, kernels_for(kAvx2).pack_s8p16k4);
  if (std::strcmp(kernel_level_name(avx_vnni | kAvx512), "x86_avx512") != 0)
    GTEST_SKIP() << "no AVX-512 in this build";
  if (!can_fill(kAvx512)) GTEST_SKIP() << "no AVX-512 on this machine";
  EXPECT_EQ(kernels_for(avx_vnni | kAvx512).gemm_u8, vnni.gemm_u8);
  EXPECT_NE(kernels_for(avx_vnni | kAvx512).gemm_f32, vnni.gemm_f32);
  if (std::strcmp(kernel_level_name(avx_vnni | kAvx512 | kCpuAvx512Vnni), "x86_avx512vnni") != 0)
    GTEST_SKIP() << "tiles in memory in this build";
  const FolioKernels& both = kernels_for(avx_vnni | kAvx512 | kCpuAvx512Vnni);
  EXPECT_EQ(both.gemm_u8, kernels_for(kAvx2 | kAvx512 | kCpuAvx512Vnni).gemm_u8);
  EXPECT_EQ(both.depthwise_u8, kernels_for(kAvx2 | kAvx512 | kCpuAvx512Vnni).depthwise_u8);
  EXPECT_EQ(both.block_dots_s8, kernels_for(kAvx2 | kAvx512 | kCpuAvx512Vnni).block_dots_s8);
}

// Products of pairs of bfloat16 are a level where they have the full rate; of floats alone.
TEST(Select, PairsOfBFloat16NeedTheFullRate) {
  const CpuBits vnni = kAvx2 | kAvx512 | kCpuAvx512Vnni;
  const CpuBits half_rate = vnni | kCpuAvx512Bf16;
  const CpuBits full_rate = half_rate | kCpuFastBf16;
  if (std::strcmp(kernel_level_name(full_rate), "x86_avx512bf16") != 0)
    GTEST_SKIP() << "no AVX512_BF16 in this build";
  if (!can_fill(kAvx2 | kAvx512)) GTEST_SKIP() << "no AVX-512 on this machine";
  EXPECT_STREQ(kernel_level_name(half_rate), "x86_avx512vnni");
  EXPECT_EQ(kernels_for(half_rate).multiplies_parts, 0);
  const FolioKernels& pairs = kernels_for(full_rate);
  EXPECT_EQ(pairs.multiplies_parts, 1 << kFolioMedium);
  EXPECT_NE(pairs.gemm_f32, kernels_for(half_rate).gemm_f32);
  EXPECT_EQ(pairs.gemm_u8, kernels_for(half_rate).gemm_u8);
}

}  // namespace
}  // namespace folio
