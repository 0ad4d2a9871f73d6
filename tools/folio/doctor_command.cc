// folio doctor: what of this machine and this process matters to Folio.

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/folio/cli.h"
#include "tools/folio/doctor_environment.h"
#include "tools/folio/doctor_findings.h"
#include "tools/folio/print_json.h"
#include "tools/folio/process_memory.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;

// "always [madvise] never" -> "madvise".
std::string chosen_in(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return trimmed(text);
  return text.substr(open + 1, close - open - 1);
}

void find_versions(const CommonOptions& common, Findings* out) {
  out->begin("versions", "versions");
  out->add("command", "folio command", FOLIO_VERSION);
  out->add("library", "library", folio::version_string());
  out->add("library_path", "library path", library_path(common));
  out->add("build", "build", folio::build_info());
  utsname system{};
  if (uname(&system) == 0) {
    out->add("kernel", "kernel",
             std::string(system.sysname) + " " + system.release + " " + system.machine);
  }
  out->add("glibc", "glibc", gnu_get_libc_version());
  if (folio::version_string() != FOLIO_VERSION) {
    out->warn("the command and the library are of different versions");
  }
}

// The value of FOLIO_CPU that has these kernels; it knows fewer levels than there are kernels.
std::string folio_cpu_of(const std::string& kernels) {
  for (const char* level : {"amx", "avx512", "avxvnni", "avx2"}) {
    if (kernels.rfind(std::string("x86_") + level, 0) == 0) return level;
  }
  return "ref";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

void find_cpu(Findings* out) {
  const FolioCpuInfo cpu = folio::cpu_info();
  out->begin("cpu", "cpu");
  out->add("model", "model", cpu.brand);
  out->add("kernels", "kernels in use", cpu.level);
  out->add("folio_cpu", "the same for FOLIO_CPU", folio_cpu_of(cpu.level));
  out->add("features", "features", words_of(cpu.features), cpu.features);
  if (std::string(cpu.features).find("amx_int8") != std::string::npos &&
      std::string(cpu.level) != "x86_amx") {
    out->warn("AMX is there, but its kernels are not in the build or failed their check");
  }
  out->add_number("affinity_cpus", "cpus in the affinity mask", cpu.logical_cpu_count);
  out->add_number("online_cpus", "cpus online", sysconf(_SC_NPROCESSORS_ONLN));
  out->add_number("default_threads", "threads by default", cpu.default_thread_count);
}

// A number, or null for `unlimited`.
void add_limit(const std::string& key, const std::string& title, const std::string& text,
               const std::string& unlimited, Findings* out) {
  if (text.empty()) return;  // not readable
  const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  out->add(key, title,
           text == unlimited ? Json()
           : is_number       ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                             : Json(text),
           text);
}

std::string limit_text(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return "";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

// The folder of this process's cgroup (version 2), or "".
std::string cgroup_folder() {
  std::istringstream lines(read_text("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "";
}

void find_cgroup(Findings* out) {
  const std::string folder = cgroup_folder();
  if (folder.empty()) return out->add("cgroup", "cgroup", Json(), "version 1, or none");
  out->add("cgroup", "cgroup", folder);
  const auto text_of = [&folder](const char* file) {
    return trimmed(read_text(folder + "/" + file));
  };
  const std::pair<const char*, const char*> limits[] = {
      {"cgroup_memory_max_bytes", "memory.max"},
      {"cgroup_memory_high_bytes", "memory.high"},
      {"cgroup_swap_max_bytes", "memory.swap.max"}};
  for (const auto& [key, file] : limits) {
    add_limit(key, std::string("cgroup ") + file, text_of(file), "max", out);
  }
  const std::string cpu = text_of("cpu.max");  // quota and period, or "max" and period
  if (cpu.empty()) return;
  const std::vector<std::string> words = words_of(cpu);
  const double period = words.size() == 2 ? std::atof(words[1].c_str()) : 0;
  const bool is_limited = period > 0 && words[0] != "max";
  out->add("cgroup_cpus", "cgroup cpu.max",
           is_limited ? Json(std::atof(words[0].c_str()) / period) : Json(), cpu);
}

void find_limits(Findings* out) {
  const auto add = [out](const char* key, const char* title, const std::string& text) {
    add_limit(key, title, text, "unlimited", out);
  };
  out->begin("limits", "limits");
  add("open_files", "open files (nofile)", limit_text(RLIMIT_NOFILE));
  add("locked_memory_bytes", "locked memory (memlock)", limit_text(RLIMIT_MEMLOCK));
  add("address_space_bytes", "address space (as)", limit_text(RLIMIT_AS));
  add("mappings", "mappings (vm.max_map_count)", trimmed(read_text("/proc/sys/vm/max_map_count")));
  add("overcommit_memory", "overcommit (vm.overcommit_memory)",
      trimmed(read_text("/proc/sys/vm/overcommit_memory")));
  find_cgroup(out);
  if (limit_text(RLIMIT_AS) != "unlimited") {
    out->warn("the address space is limited: mapping large models may fail");
  }
}

// Models live in the page cache: how much of it there can be, and in which pages.
void find_page_cache(Findings* out) {
  out->begin("memory", "memory and page cache");
  const std::string info = read_text("/proc/meminfo");
  const auto add = [&](const char* key, const char* title, const char* name) {
    const long kib = field_of(info, name);
    out->add(key, title, kib < 0 ? Json() : Json(kib),
             kib < 0 ? "?" : std::to_string(kib / 1024) + " MB");
  };
  add("total_kib", "memory", "MemTotal");
  add("available_kib", "available", "MemAvailable");
  add("page_cache_kib", "page cache", "Cached");
  add("mapped_kib", "of it mapped", "Mapped");
  add("swap_kib", "swap", "SwapTotal");
  add("file_huge_kib", "file pages in huge pages", "FileHugePages");
  const long page_bytes = sysconf(_SC_PAGESIZE);
  out->add("page_bytes", "page size", page_bytes, std::to_string(page_bytes) + " bytes");
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  out->add("huge_pages", "transparent huge pages", chosen_in(read_text(folder + "enabled")));
  out->add("huge_pages_shmem", "transparent huge pages, shmem",
           chosen_in(read_text(folder + "shmem_enabled")));
  const bool has_pss = read_process_memory("self").pss >= 0;
  out->add("pss_readable", "PSS of processes", has_pss, has_pss ? "readable" : "not readable");
  if (!has_pss) {
    out->warn("/proc/self/smaps_rollup cannot be read: folio bench and memory show less");
  }
}

void print_text(const Findings& findings) {
  for (const Findings::Section& section : findings.sections()) {
    const bool is_first = &section == &findings.sections().front();
    std::printf("%s%s\n", is_first ? "" : "\n", section.title.c_str());
    Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
    for (const Findings::Row& row : section.rows) {
      table.add({"  " + row.title, one_line(row.text)});
    }
    std::printf("%s", table.text().c_str());
  }
  if (!findings.warnings().empty()) std::printf("\nwarnings\n");
  for (const std::string& warning : findings.warnings()) {
    std::printf("  %s\n", one_line(warning).c_str());
  }
}

}  // namespace

int run_doctor(const CommonOptions& common, const DoctorCommand& command) {
  load_library(common);
  Findings findings;
  const folio::Env env = collect_warnings(&findings);
  find_versions(common, &findings);
  find_cpu(&findings);
  find_environment(&findings);
  find_limits(&findings);
  find_page_cache(&findings);
  if (command.json) {
    print_json(findings.data(), JsonForm::kIndented);
  } else {
    print_text(findings);
  }
  return kExitOk;
}

}  // namespace folio_cli
