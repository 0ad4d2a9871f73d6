#include "tools/folio/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <system_error>

#include "tools/folio/cli.h"

namespace folio_cli {

void ProcessMemory::add(const ProcessMemory& other) {
  const auto sum = [](long a, long b) { return a < 0 ? b : b < 0 ? a : a + b; };
  rss = sum(rss, other.rss);
  pss = sum(pss, other.pss);
  pss_anon = sum(pss_anon, other.pss_anon);
  pss_file = sum(pss_file, other.pss_file);
  private_clean = sum(private_clean, other.private_clean);
  private_dirty = sum(private_dirty, other.private_dirty);
  shared_clean = sum(shared_clean, other.shared_clean);
  shared_dirty = sum(shared_dirty, other.shared_dirty);
  anon = sum(anon, other.anon);
  file_huge = sum(file_huge, other.file_huge);
}

std::string read_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char chunk[4096];
  for (ssize_t got; (got = read(file, chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<size_t>(got));
  }
  close(file);
  return text;
}

long field_of(const std::string& text, const std::string& key) {
  const std::string start = key + ":";
  size_t at = 0;
  if (text.compare(0, start.size(), start) != 0) {
    at = text.find("\n" + start);
    if (at == std::string::npos) return -1;
    ++at;
  }
  return std::strtol(text.c_str() + at + start.size(), nullptr, 10);
}

ProcessMemory read_process_memory(const std::string& process) {
  const std::string text = read_text("/proc/" + process + "/smaps_rollup");
  ProcessMemory result;
  result.rss = field_of(text, "Rss");
  result.pss = field_of(text, "Pss");
  result.pss_anon = field_of(text, "Pss_Anon");
  result.pss_file = field_of(text, "Pss_File");
  result.private_clean = field_of(text, "Private_Clean");
  result.private_dirty = field_of(text, "Private_Dirty");
  result.shared_clean = field_of(text, "Shared_Clean");
  result.shared_dirty = field_of(text, "Shared_Dirty");
  result.anon = field_of(text, "Anonymous");
  result.file_huge = field_of(text, "FilePmdMapped");
  return result;
}

long read_status(const std::string& process, const std::string& key) {
  return field_of(read_text("/proc/" + process + "/status"), key);
}

void reset_peak_rss() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t written = write(file, "5", 1);  // a kernel that refuses leaves the old peak
  static_cast<void>(written);
  close(file);
}

PeakAnon::PeakAnon(uint32_t interval_us) {
  if (interval_us == 0) return;
  const auto watch = [this, interval_us] {
    while (running_.load(std::memory_order_relaxed)) {
      note(read_status("self", "RssAnon"));
      std::this_thread::sleep_for(std::chrono::microseconds(interval_us));
    }
  };
  try {
    thread_ = std::thread(watch);
  } catch (const std::system_error& error) {
    throw CliError(kExitCannotRun,
                   std::string("cannot start the thread that watches memory: ") + error.what());
  }
}

void PeakAnon::stop() {
  running_.store(false, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

}  // namespace folio_cli
