#include "core/os/cpu_features.h"

#include <cpuid.h>
#include <fcntl.h>
#include <sched.h>
// It is written for C: clang has no _Bool in C++.
#define _Bool bool
#include <sys/platform/x86.h>
#undef _Bool
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace folio {
namespace {

constexpr CpuBits kAmxBits = kCpuAmxTile | kCpuAmxInt8 | kCpuAmxBf16;
constexpr CpuBits kAvx2Bits = kCpuAvx2 | kCpuFma | kCpuF16c;

// As the C library found them when the process started, which the kernel's saved register states
// (XCR0) are part of. Asking the CPU again would leave a virtual machine for each leaf: tens of
// microseconds.
CpuBits detect_bits() {
  CpuBits bits = 0;
  const auto set_if = [&bits](bool is_active, CpuBits feature) { bits |= is_active ? feature : 0; };
  set_if(CPU_FEATURE_ACTIVE(AVX2), kCpuAvx2);
  set_if(CPU_FEATURE_ACTIVE(FMA), kCpuFma);
  set_if(CPU_FEATURE_ACTIVE(F16C), kCpuF16c);
  set_if(CPU_FEATURE_ACTIVE(AVX_VNNI), kCpuAvxVnni);
  set_if(CPU_FEATURE_ACTIVE(AVX512F), kCpuAvx512F);
  set_if(CPU_FEATURE_ACTIVE(AVX512DQ), kCpuAvx512Dq);
  set_if(CPU_FEATURE_ACTIVE(AVX512BW), kCpuAvx512Bw);
  set_if(CPU_FEATURE_ACTIVE(AVX512VL), kCpuAvx512Vl);
  set_if(CPU_FEATURE_ACTIVE(AVX512_VNNI), kCpuAvx512Vnni);
  set_if(CPU_FEATURE_ACTIVE(AVX512_BF16), kCpuAvx512Bf16);
  // AMD's (SSE4A is theirs alone) take as long for a product of pairs as for a multiply-add of
  // floats, Intel's twice as long (Emerald Rapids, measured: 84 GFLOP/s of pairs, 174 of floats).
  set_if(CPU_FEATURE_ACTIVE(AVX512_BF16) && CPU_FEATURE_PRESENT(SSE4A), kCpuFastBf16);
  set_if(CPU_FEATURE_ACTIVE(AMX_TILE), kCpuAmxTile);
  set_if(CPU_FEATURE_ACTIVE(AMX_INT8), kCpuAmxInt8);
  set_if(CPU_FEATURE_ACTIVE(AMX_BF16), kCpuAmxBf16);
  // Of 12 ways, AMD's (Zen 5) gain from copies, where others use the caches beside us a half;
  // Intel's do not.
  const long ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);  // 0: not known
  set_if(ways > 0 && ways <= (CPU_FEATURE_PRESENT(SSE4A) ? 12 : 8), kCpuNarrowL1);
  return bits;
}

// The kernel gives tile state (8 KiB a thread) only to processes that ask; the answer holds for all
// threads and for children.
bool ask_for_amx() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

CpuBits find_bits() {
  CpuBits bits = detect_bits();
  const char* const level = std::getenv("FOLIO_CPU");
  if (level && *level && !limit_cpu_bits(level, &bits)) {
    log(LogLevel::kWarning,
        cat("FOLIO_CPU='", level, "' ignored: expected ref, avx2, avxvnni, avx512 or amx"));
  }
  if ((bits & kAmxBits) != 0 && !ask_for_amx()) bits &= ~kAmxBits;
  return bits;
}

std::string find_brand() {
  uint32_t words[12] = {};
  if (static_cast<uint32_t>(__get_cpuid_max(0x80000000, nullptr)) < 0x80000004) return "";
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t* const part = words + size_t{i} * 4;
    __cpuid(0x80000002 + i, part[0], part[1], part[2], part[3]);
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  const std::string padded(text);
  const size_t first = padded.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return padded.substr(first, padded.find_last_not_of(' ') - first + 1);
}

// The CPUs of this thread's mask; empty when the kernel does not say.
std::vector<int> affinity_cpus() {
  // The kernel refuses a set smaller than its own, so grow until it fits.
  for (int capacity = 1024; capacity <= 65536; capacity *= 4) {
    struct Free {
      void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(static_cast<size_t>(capacity)));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    if (!set) return {};
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

// The whole file, or "" when it cannot be read. Without streams, whose locale and buffers would be
// a tenth of a small model's load.
std::string read_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char block[2048];
  for (;;) {
    const ssize_t count = read(file, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(block, static_cast<size_t>(count));
  }
  close(file);
  return text;
}

// What stands between separators; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  each_part(text, separator, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

bool parse_int(std::string_view text, int64_t* out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *out);
  return parsed.ec == std::errc() && parsed.ptr != text.data();
}

// 0: no limit.
int cpus_of_quota(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

int quota_of_folder(const std::string& folder, bool unified) {
  int64_t quota = 0;
  int64_t period = 0;
  if (unified) {  // "max 100000" or "150000 100000"
    const std::string text = read_text(folder + "/cpu.max");
    const size_t space = text.find(' ');
    if (space == std::string::npos || !parse_int(text, &quota)) return 0;
    if (!parse_int(std::string_view(text).substr(space + 1), &period)) return 0;
  } else {  // -1: no limit
    if (!parse_int(read_text(folder + "/cpu.cfs_quota_us"), &quota)) return 0;
    if (!parse_int(read_text(folder + "/cpu.cfs_period_us"), &period)) return 0;
  }
  return cpus_of_quota(quota, period);
}

bool list_has(std::string_view comma_separated, std::string_view word) {
  const std::vector<std::string_view> items = split(comma_separated, ',');
  return std::find(items.begin(), items.end(), word) != items.end();
}

// A mounted cgroup hierarchy that can limit CPU time, and where this process stands in it.
struct Hierarchy {
  bool unified = false;
  std::string mount;       // where the hierarchy is mounted
  std::string mount_root;  // which of its groups is mounted there
  std::string group;       // of this process, from the hierarchy's root
};

std::vector<Hierarchy> find_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  const std::string mounts = read_text(root + "/proc/self/mountinfo");
  for (const std::string_view line : split(mounts, '\n')) {
    // id parent dev root mount options [tags] - type source super-options
    const std::vector<std::string_view> f = split(line, ' ');
    const auto dash = std::find(f.begin(), f.end(), "-");
    if (dash - f.begin() < 6 || f.end() - dash < 4) continue;
    const bool unified = dash[1] == "cgroup2";
    if (unified || (dash[1] == "cgroup" && list_has(dash[3], "cpu"))) {
      found.push_back({unified, std::string(f[4]), std::string(f[3]), ""});
    }
  }
  const std::string groups = read_text(root + "/proc/self/cgroup");
  for (const std::string_view line : split(groups, '\n')) {
    // id:controllers:group; the unified hierarchy names no controller
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    for (Hierarchy& h : found) {
      if (h.unified ? controllers.empty() : list_has(controllers, "cpu")) {
        h.group = line.substr(second + 1);
      }
    }
  }
  return found;
}

// The group as seen below the mount: without the part that the mount already stands for.
std::string group_below_mount(const Hierarchy& h) {
  if (h.mount_root == "/" || h.mount_root.empty()) return h.group;
  const std::string& r = h.mount_root;
  if (h.group.compare(0, r.size(), r) == 0 &&
      (h.group.size() == r.size() || h.group[r.size()] == '/')) {
    return h.group.substr(r.size());
  }
  return "";  // a container whose /proc shows the host's path: the mount is its own group
}

}  // namespace

bool limit_cpu_bits(std::string_view level, CpuBits* bits) {
  if (level == "amx") return true;
  if (level == "avx512") {
    *bits &= ~kAmxBits;
  } else if (level == "avxvnni") {
    *bits &= kAvx2Bits | kCpuAvxVnni;
  } else if (level == "avx2") {
    *bits &= kAvx2Bits;
  } else if (level == "ref") {
    *bits = 0;
  } else {
    return false;
  }
  return true;
}

CpuBits cpu_bits() {
  static const CpuBits bits = find_bits();
  return bits;
}

const std::string& cpu_brand() {
  static const std::string* const brand = new std::string(find_brand());
  return *brand;
}

int affinity_cpu_count() { return std::max<int>(1, static_cast<int>(affinity_cpus().size())); }

int physical_core_count() {
  const std::vector<int> cpus = affinity_cpus();
  std::set<std::string> cores;  // each as the list of its threads
  for (const int cpu : cpus) {
    const std::string threads =
        read_text(cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    cores.insert(threads.empty() ? cat("cpu", cpu) : threads);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

int cgroup_cpu_limit(const std::string& root) {
  int limit = 0;
  for (const Hierarchy& h : find_hierarchies(root)) {
    std::string group = group_below_mount(h);
    for (;;) {  // a limit of any ancestor holds for all below it
      while (!group.empty() && group.back() == '/') group.pop_back();
      const int cpus = quota_of_folder(root + h.mount + group, h.unified);
      if (cpus > 0 && (limit == 0 || cpus < limit)) limit = cpus;
      if (group.empty()) break;
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
  }
  return limit;
}

}  // namespace folio
