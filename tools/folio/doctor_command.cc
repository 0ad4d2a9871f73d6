// folio doctor: what of this machine and this process matters to Folio.

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/folio/cli.h"
#include "tools/folio/print_json.h"
#include "tools/folio/process_memory.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

// Sections of rows, in the order in which they were added; a JSON object of objects.
class Findings {
 public:
  void begin(const std::string& section) { section_ = section; }
  template <typename T>
  void add(const std::string& name, const T& value) {
    data_[section_][name] = value;
  }
  void warn(const std::string& text) { data_["warnings"].push_back(text); }

  const nlohmann::ordered_json& data() const { return data_; }

 private:
  std::string section_;
  nlohmann::ordered_json data_;
};

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "always [madvise] never" -> "madvise".
std::string chosen_in(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return trimmed(text);
  return text.substr(open + 1, close - open - 1);
}

void find_versions(const CommonOptions& common, Findings* out) {
  out->begin("versions");
  out->add("folio command", FOLIO_VERSION);
  out->add("library", folio::version_string());
  out->add("library path", library_path(common));
  out->add("build", folio::build_info());
  utsname system{};
  if (uname(&system) == 0) {
    out->add("kernel", std::string(system.sysname) + " " + system.release + " " + system.machine);
  }
  out->add("glibc", gnu_get_libc_version());
  if (folio::version_string() != FOLIO_VERSION) {
    out->warn("the command and the library are of different versions");
  }
}

void find_cpu(Findings* out) {
  const FolioCpuInfo cpu = folio::cpu_info();
  out->begin("cpu");
  out->add("model", std::string(cpu.brand));
  out->add("kernels in use", std::string(cpu.level));
  out->add("features", std::string(cpu.features));
  if (std::string(cpu.features).find("amx_int8") != std::string::npos &&
      std::string(cpu.level) != "x86_amx") {
    out->warn("AMX is there, but its kernels are not in the build or failed their check");
  }
  out->add("cpus in the affinity mask", cpu.logical_cpu_count);
  out->add("cpus online", sysconf(_SC_NPROCESSORS_ONLN));
  out->add("threads by default", cpu.default_thread_count);
  for (const char* name : {"FOLIO_THREADS", "FOLIO_CPU"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) out->add(name, std::string(value));
  }
}

std::string limit_text(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return "?";
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

void find_limits(Findings* out) {
  out->begin("limits");
  out->add("open files (nofile)", limit_text(RLIMIT_NOFILE));
  out->add("locked memory (memlock)", limit_text(RLIMIT_MEMLOCK));
  out->add("address space (as)", limit_text(RLIMIT_AS));
  const std::string maps = trimmed(read_text("/proc/sys/vm/max_map_count"));
  out->add("mappings (vm.max_map_count)", maps);
  const std::string overcommit = trimmed(read_text("/proc/sys/vm/overcommit_memory"));
  out->add("overcommit (vm.overcommit_memory)", overcommit);
  const std::string folder = cgroup_folder();
  if (folder.empty()) return out->add("cgroup", "version 1, or none");
  out->add("cgroup", folder);
  for (const char* file : {"memory.max", "memory.high", "memory.swap.max", "cpu.max"}) {
    const std::string value = trimmed(read_text(folder + "/" + file));
    if (!value.empty()) out->add(std::string("cgroup ") + file, value);
  }
  if (limit_text(RLIMIT_AS) != "unlimited") {
    out->warn("the address space is limited: mapping large models may fail");
  }
}

// Models live in the page cache: how much of it there can be, and in which pages.
void find_page_cache(Findings* out) {
  const std::string info = read_text("/proc/meminfo");
  const auto megabytes = [&info](const char* key) {
    const long kib = field_of(info, key);
    return kib < 0 ? std::string("?") : std::to_string(kib / 1024) + " MB";
  };
  out->begin("memory and page cache");
  out->add("memory", megabytes("MemTotal"));
  out->add("available", megabytes("MemAvailable"));
  out->add("page cache", megabytes("Cached"));
  out->add("of it mapped", megabytes("Mapped"));
  out->add("swap", megabytes("SwapTotal"));
  out->add("file pages in huge pages", megabytes("FileHugePages"));
  out->add("page size", std::to_string(sysconf(_SC_PAGESIZE)) + " bytes");
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  out->add("transparent huge pages", chosen_in(read_text(folder + "enabled")));
  out->add("transparent huge pages, shmem", chosen_in(read_text(folder + "shmem_enabled")));
  const ProcessMemory own = read_process_memory("self");
  if (own.pss < 0) {
    out->add("PSS of processes", "not readable");
    out->warn("/proc/self/smaps_rollup cannot be read: folio bench and memory show less");
  } else {
    out->add("PSS of processes", "readable");
  }
}

std::string value_text(const nlohmann::ordered_json& value) {
  return one_line(value.is_string() ? value.get<std::string>() : value.dump());
}

void print_text(const nlohmann::ordered_json& data) {
  for (const auto& [section, rows] : data.items()) {
    std::printf("%s%s\n", section == "versions" ? "" : "\n", section.c_str());
    if (rows.is_array()) {
      for (const auto& row : rows) std::printf("  %s\n", value_text(row).c_str());
      continue;
    }
    Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
    for (const auto& [name, value] : rows.items()) table.add({"  " + name, value_text(value)});
    std::printf("%s", table.text().c_str());
  }
}

}  // namespace

int run_doctor(const CommonOptions& common, const DoctorCommand& command) {
  load_library(common);
  Findings findings;
  find_versions(common, &findings);
  find_cpu(&findings);
  find_limits(&findings);
  find_page_cache(&findings);
  if (command.json) {
    print_json(findings.data(), JsonForm::kIndented);
  } else {
    print_text(findings.data());
  }
  return kExitOk;
}

}  // namespace folio_cli
