#include "tests/kernels/kernel_tester.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/os/cpu_features.h"
#ifdef FOLIO_HAS_SOFTWARE_AMX
#include "tests/kernels/software_amx/software_amx.h"
#endif

namespace folio {
namespace {

constexpr size_t kGuardFloats = 64;
constexpr uint32_t kGuardBits = 0x7fabcdefu;  // a NaN that no kernel makes

}  // namespace

const std::vector<LevelUnderTest>& levels_under_test() {
  static const std::vector<LevelUnderTest> levels = [] {
    std::vector<LevelUnderTest> list;
    FolioKernels kernels = {};
    for (const KernelLevel& level : kernel_levels()) {
      // What is made for a small cache, or for Zen 5, computes the same elsewhere.
      const bool is_zen5 = std::strcmp(level.name, "x86_avx512zen5") == 0;
      const CpuBits more = kCpuNarrowL1 | (is_zen5 ? kCpuAvxVnni | kCpuFastBf16 : 0);
      if (!level_usable(level, static_cast<CpuBits>(cpu_bits() | more))) continue;
      level.fill(&kernels);
      list.push_back({level.name, kernels});
#ifdef FOLIO_HAS_SOFTWARE_AMX
      if (list.back().name == "x86_avx512vnni" && (cpu_bits() & kCpuAvx512Bf16) != 0) {
        list.push_back({"software_amx", kernels});
        fill_software_amx(&list.back().kernels);
      }
#endif
    }
    return list;
  }();
  return levels;
}

const FolioKernels& ref_kernels() { return levels_under_test().front().kernels; }

std::vector<float> random_floats(size_t count, uint32_t seed, float low, float high) {
  std::vector<float> values(count);
  uint64_t state = seed * 2654435761u + 1u;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = low + (high - low) * static_cast<float>(state >> 40) * 0x1p-24f;
  }
  return values;
}

Guarded::Guarded(size_t count, size_t phase)
    : storage_(count + phase + 2 * kGuardFloats + 16, from_bits(kGuardBits)), count_(count) {
  while (reinterpret_cast<uintptr_t>(storage_.data() + kGuardFloats + first_) % 64 != 0) ++first_;
  first_ += kGuardFloats + phase;
}

Guarded::Guarded(const std::vector<float>& values, size_t phase) : Guarded(values.size(), phase) {
  if (!values.empty()) std::memcpy(data(), values.data(), 4 * values.size());
}

std::vector<float> Guarded::values() const {
  const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(first_);
  return {begin, begin + static_cast<std::ptrdiff_t>(count_)};
}

bool Guarded::intact() const {
  for (size_t i = 0; i < storage_.size(); ++i) {
    const bool inside = i >= first_ && i < first_ + count_;
    if (!inside && bits_of(storage_[i]) != kGuardBits) return false;
  }
  return true;
}

BeforeUnreadable::BeforeUnreadable(const std::vector<float>& values) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t readable = (4 * values.size() + page - 1) / page * page;
  bytes_ = readable + page;
  mapping_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* end = static_cast<char*>(mapping_) + readable;
  mprotect(end, page, PROT_NONE);
  data_ = reinterpret_cast<float*>(end - 4 * values.size());
  if (!values.empty()) std::memcpy(data_, values.data(), 4 * values.size());
}

BeforeUnreadable::~BeforeUnreadable() { munmap(mapping_, bytes_); }

PackedBytes::PackedBytes(int64_t k, int64_t n, const std::vector<uint8_t>& b)
    : bytes_(static_cast<uint8_t*>(std::aligned_alloc(64, size(k, n)))) {
  FolioPackS8 pack{};
  pack.k = k;
  pack.n = n;
  pack.bytes = b.data();
  pack.inner = k;
  pack.row_stride = n;
  pack.col_stride = 1;
  ref_kernels().pack_s8p16k4(&pack, bytes_.get());
}

size_t PackedBytes::size(int64_t k, int64_t n) {
  return static_cast<size_t>((n + 15) / 16 * ((k + 3) / 4 * 64 + 64));
}

void PackedBytes::Free::operator()(uint8_t* p) const { std::free(p); }

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

double ulp_distance(float got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(got) || std::isinf(rounded)) {
    return got == rounded ? 0 : std::numeric_limits<double>::infinity();
  }
  if (std::isnan(got) || std::isnan(want)) return std::numeric_limits<double>::infinity();
  // 2^(23 - the exponent of `want`), which is -126 for what is smaller: put together from bits, as
  // tests over all floats call this billions of times.
  const auto bits = std::bit_cast<uint64_t>(want);
  const uint64_t exponent = std::max<uint64_t>(bits >> 52 & 2047, 1023 - 126);
  return std::fabs(got - want) * std::bit_cast<double>((2 * uint64_t{1023} + 23 - exponent) << 52);
}

}  // namespace folio
