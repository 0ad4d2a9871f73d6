// What the kernel says of a process's memory, for tables and JSON.
//
// Units:   KiB; -1: the kernel does not say.
// Threads: any.
// Errors:  none: what cannot be read is -1.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace folio_cli {

struct ProcessMemory {
  long rss = -1;
  long pss = -1;
  long pss_anon = -1;
  long pss_file = -1;
  long private_clean = -1;
  long private_dirty = -1;
  long shared_clean = -1;
  long shared_dirty = -1;
  long anon = -1;
  long file_huge = -1;  // of files, in the page tables as huge pages

  void add(const ProcessMemory& other);
};

// Of /proc/<process>/smaps_rollup; "self" or a number.
ProcessMemory read_process_memory(const std::string& process);

// One line of /proc/<process>/status, such as "VmPTE".
long read_status(const std::string& process, const std::string& key);

// The number behind `key` at the beginning of a line of "Key:   123 kB" text.
long field_of(const std::string& text, const std::string& key);

// A small file as text; "" if it cannot be read.
std::string read_text(const std::string& path);

// Starts VmHWM, the highest RSS, anew.
void reset_peak_rss();

// Highest RssAnon while it lives, looked at by a thread of its own; VmHWM counts pages of mapped
// files too.
class PeakAnon {
 public:
  explicit PeakAnon(uint32_t interval_us);  // 0: no thread
  ~PeakAnon() { stop(); }
  PeakAnon(const PeakAnon&) = delete;
  PeakAnon& operator=(const PeakAnon&) = delete;

  void stop();
  void note(long anon) { peak_ = std::max(peak_, anon); }
  long peak() const { return peak_; }  // after stop()

 private:
  std::atomic<bool> running_{true};
  long peak_ = 0;
  std::thread thread_;
};

}  // namespace folio_cli
