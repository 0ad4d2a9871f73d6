// Profile: what a session's runs spent their time on, as a Chrome trace (chrome://tracing,
// ui.perfetto.dev), with ONNX Runtime's names for the events, so that its tools read it too.
//
// Flow:    Session::create starts it; each run adds its steps; end() writes the file.
// Owns:    the events until then. The file appears whole, when it is ended or the session goes.
// Threads: any; runs add what they have measured in one piece.
// Errors:  kIo, kNoSuchFile: the file cannot be made, said at the start, or not be written.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/new_file.h"
#include "core/run/executor.h"

namespace folio {

class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  // The file will be PREFIX_DATE_TIME_PID_N.json.
  static Result<std::unique_ptr<Profile>> start(const std::string& prefix);
  ~Profile();

  void add_load(Clock::time_point begin, Clock::time_point end);
  void add_run(Clock::time_point begin, Clock::time_point end, const std::vector<StepTime>& steps);

  // Writes the file and gives its path; "" when that was done before. What runs add later is lost.
  Result<std::string> end();

  // Of a load that failed: there is nothing to write.
  void drop();

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  // Of the clock that tells dates, as ONNX Runtime has it: when the trace's time 0 was.
  uint64_t start_ns() const { return start_ns_; }

 private:
  explicit Profile(std::unique_ptr<NewFile> file);
  void add(const char* category, std::string_view name, Clock::time_point begin,
           Clock::time_point end, const std::string& arguments);

  std::mutex mutex_;
  std::unique_ptr<NewFile> file_;
  std::string events_;  // as JSON, each but the first after a comma
  size_t count_ = 0;
  std::atomic<bool> is_on_{true};
  Clock::time_point start_ = Clock::now();
  uint64_t start_ns_;
};

}  // namespace folio
