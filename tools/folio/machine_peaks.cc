#include "tools/folio/machine_peaks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tools/folio/timing.h"

namespace folio_cli {

namespace {

constexpr double kSliceMs = 10;  // long enough for the clock, and for the core to change its own
constexpr int kSlices = 8;
constexpr size_t kMemoryBytes = size_t{256} << 20;  // of all threads
constexpr size_t kSharedCacheBytes = size_t{32} << 20;
constexpr size_t kReadAtOnce = size_t{8} << 20;  // bytes, against which the clock does not count
constexpr int kReadSlices = 5;
constexpr size_t kPageBytes = 4096;

// Twelve chains of `step`, which do not wait for each other: two units of a latency of 5 need ten.
// \acc is a chain's register; 12 and 13 hold 0.5f in every lane, as floats and as bytes a usual
// operand; 14 and 15 are scratch.
#define FOLIO_PEAK_LOOP(name, operands, step, end)                                               \
  void name(int64_t rounds) {                                                                    \
    const float half = 0.5F;                                                                     \
    asm volatile(operands "1:\n\t.irp acc,0,1,2,3,4,5,6,7,8,9,10,11\n\t" step                    \
                          ".endr\n\tdecq %[rounds]\n\tjnz 1b\n\t" end                            \
                 : [rounds] "+r"(rounds)                                                         \
                 : [half] "m"(half)                                                              \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                \
  }

// clang-format off
FOLIO_PEAK_LOOP(zmm_floats,
  "vbroadcastss %[half], %%zmm12\n\t"
  "vbroadcastss %[half], %%zmm13\n\t",
  "vfmadd231ps %%zmm12, %%zmm13, %%zmm\\acc\n\t",
  "vzeroupper")
FOLIO_PEAK_LOOP(ymm_floats,
  "vbroadcastss %[half], %%ymm12\n\t"
  "vbroadcastss %[half], %%ymm13\n\t",
  "vfmadd231ps %%ymm12, %%ymm13, %%ymm\\acc\n\t",
  "vzeroupper")
FOLIO_PEAK_LOOP(xmm_floats,
  "movss %[half], %%xmm12\n\t"
  "shufps $0, %%xmm12, %%xmm12\n\t"
  "movaps %%xmm12, %%xmm13\n\t",
  "movaps %%xmm12, %%xmm14\n\t"
  "mulps %%xmm13, %%xmm14\n\t"
  "addps %%xmm14, %%xmm\\acc\n\t",
  "")
FOLIO_PEAK_LOOP(zmm_dots,
  "vbroadcastss %[half], %%zmm12\n\t"
  "vbroadcastss %[half], %%zmm13\n\t",
  "vpdpbusd %%zmm12, %%zmm13, %%zmm\\acc\n\t",
  "vzeroupper")
// Eight products of bytes to a sum, without an instruction for it: of small weights.
FOLIO_PEAK_LOOP(zmm_steps,
  "vbroadcastss %[half], %%zmm12\n\t"
  "vbroadcastss %[half], %%zmm13\n\t",
  "vpmaddubsw %%zmm12, %%zmm13, %%zmm14\n\tvpmaddubsw %%zmm13, %%zmm12, %%zmm15\n\t"
  "vpaddw %%zmm14, %%zmm15, %%zmm14\n\tvpmaddwd %%zmm12, %%zmm14, %%zmm15\n\t"
  "vpaddd %%zmm15, %%zmm\\acc, %%zmm\\acc\n\t",
  "vzeroupper")
FOLIO_PEAK_LOOP(ymm_dots,
  "vbroadcastss %[half], %%ymm12\n\t"
  "vbroadcastss %[half], %%ymm13\n\t",
  "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm\\acc\n\t",
  "vzeroupper")
FOLIO_PEAK_LOOP(ymm_steps,
  "vbroadcastss %[half], %%ymm12\n\t"
  "vbroadcastss %[half], %%ymm13\n\t",
  "vpmaddubsw %%ymm12, %%ymm13, %%ymm14\n\tvpmaddubsw %%ymm13, %%ymm12, %%ymm15\n\t"
  "vpaddw %%ymm14, %%ymm15, %%ymm14\n\tvpmaddwd %%ymm12, %%ymm14, %%ymm15\n\t"
  "vpaddd %%ymm15, %%ymm\\acc, %%ymm\\acc\n\t",
  "vzeroupper")
// clang-format on

// Tiles 0 to 3 += products of 4, 5 and 6, 7. The library was given leave to use tiles, or the level
// would be another.
void tile_dots(int64_t rounds) {
  struct alignas(64) {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes;
  asm volatile(
      "ldtilecfg %[shapes]\n\t"  // clears all tiles
      "1:\n\t"
      "tdpbusd %%tmm6, %%tmm4, %%tmm0\n\t"
      "tdpbusd %%tmm7, %%tmm4, %%tmm1\n\t"
      "tdpbusd %%tmm6, %%tmm5, %%tmm2\n\t"
      "tdpbusd %%tmm7, %%tmm5, %%tmm3\n\t"
      "decq %[rounds]\n\t"
      "jnz 1b\n\t"
      "tilerelease"
      : [rounds] "+r"(rounds)
      : [shapes] "m"(shapes)
      : "cc");
}

// Eight loads a round.
#define FOLIO_READ_LOOP(name, load, bytes, end)                                            \
  void name(const char* from, int64_t rounds) {                                            \
    asm volatile("1:\n\t.irp i,0,1,2,3,4,5,6,7\n\t" load ".endr\n\taddq $8*" #bytes        \
                 ", %[from]\n\tdecq %[rounds]\n\tjnz 1b\n\t" end                           \
                 : [from] "+r"(from), [rounds] "+r"(rounds)                                \
                 :                                                                         \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
                   "xmm7");                                                                \
  }

FOLIO_READ_LOOP(zmm_reads, "vmovups 64*\\i(%[from]), %%zmm\\i\n\t", 64, "vzeroupper")
FOLIO_READ_LOOP(ymm_reads, "vmovups 32*\\i(%[from]), %%ymm\\i\n\t", 32, "vzeroupper")
FOLIO_READ_LOOP(xmm_reads, "movups 16*\\i(%[from]), %%xmm\\i\n\t", 16, "")

struct Loop {
  void (*run)(int64_t rounds);
  double operations;  // of a round
  const char* name;
};

struct ReadLoop {
  void (*run)(const char* from, int64_t rounds);
  size_t round_bytes;
};

constexpr double kChains = 12;
constexpr Loop kXmmFloats = {xmm_floats, kChains * 4 * 2, "mulps, addps"};
constexpr Loop kYmmFloats = {ymm_floats, kChains * 8 * 2, "ymm FMA"};
constexpr Loop kZmmFloats = {zmm_floats, kChains * 16 * 2, "zmm FMA"};
constexpr Loop kYmmSteps = {ymm_steps, kChains * 64 * 2, "ymm vpmaddubsw"};
constexpr Loop kZmmSteps = {zmm_steps, kChains * 128 * 2, "zmm vpmaddubsw"};
constexpr Loop kYmmDots = {ymm_dots, kChains * 32 * 2, "ymm VNNI"};
constexpr Loop kZmmDots = {zmm_dots, kChains * 64 * 2, "zmm VNNI"};
constexpr Loop kTileDots = {tile_dots, 4.0 * 16 * 16 * 64 * 2, "AMX"};

struct LevelLoops {
  const char* level;
  const Loop* floats;
  const Loop* bytes;
  ReadLoop reads;
};
constexpr LevelLoops kLevels[] = {
    {"ref", &kXmmFloats, nullptr, {xmm_reads, 128}},
    {"x86_avx2", &kYmmFloats, &kYmmSteps, {ymm_reads, 256}},
    {"x86_avxvnni", &kYmmFloats, &kYmmDots, {ymm_reads, 256}},
    {"x86_avx512", &kZmmFloats, &kZmmSteps, {zmm_reads, 512}},
    {"x86_avx512l1", &kZmmFloats, &kZmmSteps, {zmm_reads, 512}},
    {"x86_avx512vnni", &kZmmFloats, &kZmmDots, {zmm_reads, 512}},
    {"x86_avx512bf16", &kZmmFloats, &kZmmDots, {zmm_reads, 512}},
#ifdef FOLIO_SOFTWARE_AMX  // the level's tiles are memory
    {"x86_amx", &kZmmFloats, &kZmmDots, {zmm_reads, 512}},
#else
    {"x86_amx", &kZmmFloats, &kTileDots, {zmm_reads, 512}},
#endif
};

// The sum of what all threads did at their best, at the same time.
double sum_of_threads(uint32_t threads, const std::function<double(uint32_t)>& body) {
  std::vector<double> rates(threads, 0.0);
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < threads; ++i) {
    others.emplace_back([&rates, &body, i] { rates[i] = body(i); });
  }
  rates[0] = body(0);
  for (std::thread& thread : others) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// Operations a nanosecond, of the best of some slices.
double best_rate(const Loop& loop) {
  int64_t rounds = 1000;
  double ms = 0;
  while (ms < kSliceMs) {
    const double start = wall_ms();
    loop.run(rounds);
    ms = wall_ms() - start;
    if (ms < kSliceMs) rounds *= 2;
  }
  double best = ms;
  for (int i = 0; i < kSlices; ++i) {
    const double start = wall_ms();
    loop.run(rounds);
    best = std::min(best, wall_ms() - start);
  }
  return static_cast<double>(rounds) * loop.operations / best * 1e-6;
}

// Of all threads together, each with memory of its own.
double read_rate(const ReadLoop& loop, size_t bytes, uint32_t threads) {
  const size_t part = std::max<size_t>(bytes / threads / kPageBytes, 1) * kPageBytes;
  void* const memory =
      mmap(nullptr, part * threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, part * threads, MADV_HUGEPAGE);
  const double rate = sum_of_threads(threads, [&](uint32_t i) {
    char* const mine = static_cast<char*>(memory) + i * part;
    std::memset(mine, 1, part);
    const size_t passes = std::max<size_t>(kReadAtOnce / part, 1);
    double best = 0;
    for (int slice = 0; slice < kReadSlices; ++slice) {
      const double start = wall_ms();
      for (size_t pass = 0; pass < passes; ++pass) {
        loop.run(mine, static_cast<int64_t>(part / loop.round_bytes));
      }
      best = std::max(best, static_cast<double>(part * passes) / (wall_ms() - start) * 1e-6);
    }
    return best;
  });
  munmap(memory, part * threads);
  return rate;
}

size_t cache_bytes(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

// A cache is asked for half of its bytes; of one that others share, perhaps with other machines,
// for less.
std::vector<ReadPeak> read_peaks(const ReadLoop& loop, uint32_t threads) {
  std::vector<ReadPeak> peaks;
  const size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE) * threads;
  const size_t l3 = std::min(cache_bytes(_SC_LEVEL3_CACHE_SIZE), kSharedCacheBytes);
  if (l2 > 0) peaks.push_back({"L2", static_cast<double>(l2), read_rate(loop, l2 / 2, threads)});
  if (l3 > l2) peaks.push_back({"L3", static_cast<double>(l3), read_rate(loop, l3 / 2, threads)});
  peaks.push_back(
      {"memory", std::numeric_limits<double>::infinity(), read_rate(loop, kMemoryBytes, threads)});
  return peaks;
}

}  // namespace

const ReadPeak& MachinePeaks::read_of(double bytes) const {
  const auto found = std::find_if(reads.begin(), reads.end(),
                                  [&](const ReadPeak& peak) { return bytes <= peak.bytes; });
  return found == reads.end() ? reads.back() : *found;
}

MachinePeaks measure_peaks(const std::string& level, uint32_t threads) {
  const auto* const known =
      std::find_if(std::begin(kLevels), std::end(kLevels),
                   [&](const LevelLoops& loops) { return level == loops.level; });
  const LevelLoops& loops = known == std::end(kLevels) ? kLevels[0] : *known;
  threads = std::max(threads, 1U);
  MachinePeaks peaks;
  peaks.float_name = loops.floats->name;
  peaks.float_gflops = sum_of_threads(threads, [&](uint32_t) { return best_rate(*loops.floats); });
  if (loops.bytes) {
    peaks.byte_name = loops.bytes->name;
    peaks.byte_gops = sum_of_threads(threads, [&](uint32_t) { return best_rate(*loops.bytes); });
  }
  peaks.reads = read_peaks(loops.reads, threads);
  return peaks;
}

}  // namespace folio_cli
