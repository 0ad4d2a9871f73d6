#include "core/kernels/select.h"

#include <array>
#include <forward_list>
#include <mutex>

#define FOLIO_ISA(folder, needs, check)               \
  extern "C" void folio_fill_##folder(FolioKernels*); \
  extern "C" int folio_check_##folder();
#include "isa_list.inc"
#undef FOLIO_ISA

namespace folio {
namespace {

const KernelLevel kLevels[] = {
#define FOLIO_ISA(folder, needs, check) \
  {#folder, static_cast<CpuBits>(needs), folio_fill_##folder, check},
#include "isa_list.inc"
#undef FOLIO_ISA
};

constexpr size_t kLevelCount = sizeof(kLevels) / sizeof(kLevels[0]);
// What a set of usable levels (a bit each) and a precision have.
struct Table {
  unsigned levels;
  FolioPrecision precision;
  FolioKernels kernels;
};

bool passes_check(const KernelLevel& level) {
  static std::array<std::once_flag, kLevelCount> once;
  static std::array<bool, kLevelCount> passed;
  const auto i = static_cast<size_t>(&level - kLevels);
  std::call_once(once[i], [&] { passed[i] = level.check() != 0; });
  return passed[i];
}

unsigned usable_levels(CpuBits bits) { return levels_in_use(kernel_levels(), bits, passes_check); }

}  // namespace

KernelLevels kernel_levels() { return {kLevels, kLevelCount}; }

unsigned levels_in_use(const KernelLevels& levels, CpuBits bits,
                       bool (*passes)(const KernelLevel& level)) {
  unsigned used = 0;
  unsigned bit = 1;
  for (const KernelLevel& level : levels) {
    if (level_usable(level, bits) && (!level.check || passes(level))) used |= bit;
    bit <<= 1;
  }
  return used;
}

const FolioKernels& kernels_for(CpuBits bits, FolioPrecision precision) {
  // The few that are asked for, where they stay; never destroyed: sessions may outlive statics.
  static std::mutex mutex;
  static auto* const tables = new std::forward_list<Table>;
  const unsigned usable = usable_levels(bits);
  const std::lock_guard lock(mutex);
  for (const Table& table : *tables) {
    if (table.levels == usable && table.precision == precision) return table.kernels;
  }
  Table& table = tables->emplace_front(Table{usable, precision, {}});
  for (size_t i = 0; i < kLevelCount; ++i) {
    if (usable & (1u << i)) kLevels[i].fill(&table.kernels);
  }
  table.kernels.precision = precision;
  return table.kernels;
}

const char* kernel_level_name(CpuBits bits) {
  const unsigned usable = usable_levels(bits);
  const char* name = kLevels[0].name;
  for (size_t i = 0; i < kLevelCount; ++i) {
    if (usable & (1u << i)) name = kLevels[i].name;
  }
  return name;
}

const char* failed_kernel_level(CpuBits bits) {
  const unsigned usable = usable_levels(bits);
  const char* name = nullptr;
  for (size_t i = 0; i < kLevelCount; ++i) {
    if (level_usable(kLevels[i], bits) && !(usable & (1u << i))) name = kLevels[i].name;
  }
  return name;
}

}  // namespace folio
