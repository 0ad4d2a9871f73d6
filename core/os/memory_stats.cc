#include "core/os/memory_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace folio {
namespace {

// Plain read(): /proc files have no size, and a stream would seek.
Result<std::string> read_proc(const std::string& path) {
  const auto failed = [&] {
    const char* const why = strerrordesc_np(errno);
    return error(Code::kIo, "cannot read '", path, "': ", why ? why : "unknown error");
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed();
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t got = read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const Status status = failed();
      close(fd);
      return status;
    }
    if (got == 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

// Calls `see(name, value)` for each "Name:   123 kB" line of `text`; other lines go to `other`.
template <typename See, typename Other>
void each_field(std::string_view text, See see, Other other) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    const size_t space = line.find_first_of(" \t");
    // "7f00-7f01 r--s 00000000 08:01 5  /a/b" has its first space before the colon.
    if (colon == std::string_view::npos || (space != std::string_view::npos && space < colon)) {
      other(line);
      continue;
    }
    const size_t digit = line.find_first_not_of(" \t", colon + 1);
    uint64_t value = 0;
    if (digit == std::string_view::npos) continue;
    const auto parsed = std::from_chars(line.data() + digit, line.data() + line.size(), value);
    if (parsed.ec == std::errc()) see(line.substr(0, colon), value);
  }
}

template <typename Stats>
struct Field {
  std::string_view name;
  uint64_t Stats::*member;
};

constexpr Field<MemoryStats> kRollupFields[] = {
    {"Rss", &MemoryStats::rss},
    {"Pss", &MemoryStats::pss},
    {"Pss_Anon", &MemoryStats::pss_anon},
    {"Pss_File", &MemoryStats::pss_file},
    {"Pss_Shmem", &MemoryStats::pss_shmem},
    {"Shared_Clean", &MemoryStats::shared_clean},
    {"Shared_Dirty", &MemoryStats::shared_dirty},
    {"Private_Clean", &MemoryStats::private_clean},
    {"Private_Dirty", &MemoryStats::private_dirty},
    {"Anonymous", &MemoryStats::anonymous},
    {"Swap", &MemoryStats::swap},
};

constexpr Field<MemoryStats> kStatusFields[] = {
    {"VmHWM", &MemoryStats::vm_hwm},
    {"VmPTE", &MemoryStats::vm_pte},
    {"Threads", &MemoryStats::threads},
};

constexpr Field<RangeStats> kMappingFields[] = {
    {"Size", &RangeStats::size},
    {"Rss", &RangeStats::rss},
    {"Pss", &RangeStats::pss},
    {"Private_Clean", &RangeStats::private_clean},
    {"Private_Dirty", &RangeStats::private_dirty},
    {"Shared_Clean", &RangeStats::shared_clean},
    {"Shared_Dirty", &RangeStats::shared_dirty},
    {"Anonymous", &RangeStats::anonymous},
};

template <typename Stats, size_t N>
void fill(std::string_view text, const Field<Stats> (&fields)[N], Stats* stats) {
  each_field(
      text,
      [&](std::string_view name, uint64_t value) {
        for (const Field<Stats>& field : fields) {
          if (field.name == name) stats->*field.member = value;
        }
      },
      [](std::string_view) {});
}

// "begin-end ..." of a mapping's first line, in hexadecimal.
bool parse_mapping(std::string_view line, uint64_t* begin, uint64_t* end) {
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, *begin, 16);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return false;
  return std::from_chars(first.ptr + 1, last, *end, 16).ec == std::errc();
}

// Bytes of [begin, end) that lie in one of `ranges`, which do not overlap.
uint64_t covered_bytes(uint64_t begin, uint64_t end, Span<const AddressRange> ranges) {
  uint64_t bytes = 0;
  for (const AddressRange& range : ranges) {
    const auto from = reinterpret_cast<uint64_t>(range.begin);
    const uint64_t low = std::max(begin, from);
    const uint64_t high = std::min(end, from + range.bytes);
    if (low < high) bytes += high - low;
  }
  return bytes;
}

}  // namespace

Result<MemoryStats> read_memory_stats(int pid) {
  const std::string folder = pid == 0 ? "/proc/self" : cat("/proc/", pid);
  FOLIO_TRY(const std::string rollup, read_proc(folder + "/smaps_rollup"));
  FOLIO_TRY(const std::string status, read_proc(folder + "/status"));
  MemoryStats stats;
  fill(rollup, kRollupFields, &stats);
  fill(status, kStatusFields, &stats);
  return stats;
}

Result<std::vector<RangeStats>> read_group_stats(Span<const std::vector<AddressRange>> groups) {
  FOLIO_TRY(const std::string smaps, read_proc("/proc/self/smaps"));
  std::vector<RangeStats> totals(groups.size());
  std::vector<uint64_t> covered(groups.size());  // bytes of the mapping whose fields follow
  uint64_t mapping = 0;
  each_field(
      smaps,
      [&](std::string_view name, uint64_t value) {
        for (const Field<RangeStats>& field : kMappingFields) {
          if (field.name != name) continue;
          for (size_t i = 0; i < groups.size(); ++i) {
            // In pages, so that the product of two sizes stays within 64 bits.
            totals[i].*field.member += value * (covered[i] >> 12) / (mapping >> 12);
          }
        }
      },
      [&](std::string_view line) {
        uint64_t begin = 0;
        uint64_t end = 0;
        const bool is_mapping = parse_mapping(line, &begin, &end) && end > begin;
        mapping = is_mapping ? end - begin : 4096;
        for (size_t i = 0; i < groups.size(); ++i) {
          covered[i] = is_mapping ? covered_bytes(begin, end, groups[i]) : 0;
          // A range ends where its bytes end, its mapping at the end of that page.
          covered[i] = std::min((covered[i] + 4095) >> 12 << 12, mapping);
          if (covered[i] > 0 && covered[i] < mapping) totals[i].exact = false;
        }
      });
  return totals;
}

Result<RangeStats> read_range_stats(Span<const AddressRange> ranges) {
  const std::vector<AddressRange> group(ranges.begin(), ranges.end());
  FOLIO_TRY(const std::vector<RangeStats> stats, read_group_stats({&group, 1}));
  return stats.front();
}

}  // namespace folio
