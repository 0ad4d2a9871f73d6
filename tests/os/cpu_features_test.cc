#include "core/os/cpu_features.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

constexpr CpuBits kAll = (1u << 14) - 1;

CpuBits limited(std::string_view level) {
  CpuBits bits = kAll;
  EXPECT_TRUE(limit_cpu_bits(level, &bits)) << level;
  return bits;
}

// What /proc/cpuinfo says of the first CPU, which the kernel derives from the same leaves.
std::string kernel_says(const std::string& key) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.compare(0, key.size(), key) == 0) return line.substr(line.find(':') + 2);
  }
  return "";
}

bool kernel_sees(const std::string& flag) {
  std::istringstream words(kernel_says("flags"));
  for (std::string word; words >> word;) {
    if (word == flag) return true;
  }
  return false;
}

TEST(CpuFeatures, AgreesWithTheKernel) {
  if (getenv("FOLIO_CPU")) GTEST_SKIP() << "FOLIO_CPU is set";
  const CpuBits bits = cpu_bits();
  const struct {
    CpuBits bit;
    const char* flag;
  } pairs[] = {{kCpuAvx2, "avx2"},         {kCpuFma, "fma"},
               {kCpuF16c, "f16c"},         {kCpuAvx512F, "avx512f"},
               {kCpuAvx512Bw, "avx512bw"}, {kCpuAvx512Dq, "avx512dq"},
               {kCpuAvx512Vl, "avx512vl"}, {kCpuAvx512Vnni, "avx512_vnni"},
               {kCpuAvxVnni, "avx_vnni"},  {kCpuAvx512Bf16, "avx512_bf16"},
               {kCpuAmxTile, "amx_tile"},  {kCpuAmxInt8, "amx_int8"},
               {kCpuAmxBf16, "amx_bf16"}};
  for (const auto& pair : pairs) {
    EXPECT_EQ((bits & pair.bit) != 0, kernel_sees(pair.flag)) << pair.flag;
  }
  // The full rate is AMD's. Not by SSE4A, which some hypervisors hide from kernels alone.
  EXPECT_EQ((bits & kCpuFastBf16) != 0,
            kernel_sees("avx512_bf16") && kernel_says("vendor_id") == "AuthenticAMD");
}

TEST(CpuFeatures, LimitsBitsByLevel) {
  EXPECT_EQ(limited("ref"), 0u);
  EXPECT_EQ(limited("avx2"), static_cast<CpuBits>(kCpuAvx2 | kCpuFma | kCpuF16c));
  EXPECT_EQ(limited("avxvnni"), static_cast<CpuBits>(kCpuAvx2 | kCpuFma | kCpuF16c | kCpuAvxVnni));
  EXPECT_EQ(limited("avx512"),
            kAll & ~static_cast<CpuBits>(kCpuAmxTile | kCpuAmxInt8 | kCpuAmxBf16));
  EXPECT_EQ(limited("amx"), kAll);
}

TEST(CpuFeatures, AddsNothingThatTheCpuLacks) {
  CpuBits bits = kCpuAvx2;
  EXPECT_TRUE(limit_cpu_bits("avx512", &bits));
  EXPECT_EQ(bits, static_cast<CpuBits>(kCpuAvx2));
  EXPECT_TRUE(limit_cpu_bits("avxvnni", &bits));
  EXPECT_EQ(bits, static_cast<CpuBits>(kCpuAvx2));
}

TEST(CpuFeatures, RefusesUnknownLevels) {
  for (const std::string_view level : {"", "sse", "AVX2", "avx_vnni", "avx512 "}) {
    CpuBits bits = kAll;
    EXPECT_FALSE(limit_cpu_bits(level, &bits)) << level;
    EXPECT_EQ(bits, kAll);
  }
}

TEST(CpuFeatures, NamesTheCpu) {
  const std::string brand = cpu_brand();
  ASSERT_FALSE(brand.empty());
  EXPECT_EQ(brand.find_last_not_of(' '), brand.size() - 1);
  if (brand != kernel_says("model name") && kernel_sees("hypervisor")) {
    // A hypervisor may answer a kernel, whose CPUID it stops, otherwise than programs.
    GTEST_SKIP() << "programs see '" << brand << "', the kernel '" << kernel_says("model name")
                 << "'";
  }
  EXPECT_EQ(brand, kernel_says("model name"));
}

TEST(CpuFeatures, CountsTheCpusOfThisThreadsMask) {
  const int before = affinity_cpu_count();
  EXPECT_GE(before, 1);
  EXPECT_GE(physical_core_count(), 1);
  EXPECT_LE(physical_core_count(), before);
  std::thread([] {  // a thread of its own, so that the mask goes with it
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(affinity_cpu_count(), 1);
    EXPECT_EQ(physical_core_count(), 1);
  })
      .join();
  EXPECT_EQ(affinity_cpu_count(), before);
}

constexpr char kMount2[] = "30 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
constexpr char kMount1[] =
    "32 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";

TEST(CgroupLimit, IsNoneWithoutCgroups) {
  const TempFolder root;
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 0);
}

TEST(CgroupLimit, RoundsTheQuotaUp) {
  const TempFolder root;
  root.write("proc/self/mountinfo", kMount2);
  root.write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 0);
  for (const auto& [text, cpus] : {std::pair<const char*, int>{"150000 100000\n", 2},
                                   {"200000 100000\n", 2},
                                   {"1000 100000\n", 1},
                                   {"max 100000\n", 0},
                                   {"150000\n", 0},
                                   {"150000 0\n", 0},
                                   {"nonsense", 0}}) {
    root.write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cgroup_cpu_limit(root.path()), cpus) << text;
  }
}

TEST(CgroupLimit, TakesTheSmallestOfAllAncestors) {
  const TempFolder root;
  root.write("proc/self/mountinfo", kMount2);
  root.write("proc/self/cgroup", "0::/kube/pod/box\n");
  root.write("sys/fs/cgroup/kube/cpu.max", "800000 100000\n");
  root.write("sys/fs/cgroup/kube/pod/cpu.max", "300000 100000\n");
  root.write("sys/fs/cgroup/kube/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 3);
}

TEST(CgroupLimit, ReadsVersionOne) {
  const TempFolder root;
  root.write("proc/self/mountinfo", kMount1);
  root.write("proc/self/cgroup", "3:cpuset:/other\n1:cpuacct,cpu:/box\n0::/\n");
  root.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "250000\n");
  root.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 3);
}

TEST(CgroupLimit, FindsTheGroupThatAContainerHasMounted) {
  const TempFolder root;
  root.write("proc/self/mountinfo",
             "32 31 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  root.write("proc/self/cgroup", "1:cpu:/docker/abc/inner\n");
  root.write("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 1);
  root.write("proc/self/cgroup", "1:cpu:/elsewhere\n");  // a path of the host's
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 4);
}

}  // namespace
}  // namespace folio
