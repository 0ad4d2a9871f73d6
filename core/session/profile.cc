#include "core/session/profile.h"

#include <unistd.h>

#include <ctime>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/utf8.h"

namespace folio {
namespace {

// ONNX Runtime's limit, so that a profile that nobody ends does not eat the memory: about 300 MB.
constexpr size_t kEventsMax = 1000000;

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  char text[32] = "";
  if (localtime_r(&now, &local)) std::strftime(text, sizeof text, "%Y-%m-%d_%H-%M-%S", &local);
  return text;
}

int64_t microseconds(Profile::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

}  // namespace

Result<std::unique_ptr<Profile>> Profile::start(const std::string& prefix) {
  static std::atomic<uint32_t> next{1};
  FOLIO_TRY(std::unique_ptr<NewFile> file,
            NewFile::create(cat(prefix, "_", date_and_time(), "_", getpid(), "_",
                                next.fetch_add(1, std::memory_order_relaxed), ".json")));
  return std::unique_ptr<Profile>(new Profile(std::move(file)));
}

Profile::Profile(std::unique_ptr<NewFile> file)
    : file_(std::move(file)),
      start_ns_(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count())) {}

Profile::~Profile() {
  const auto written = end();
  if (!written.is_ok()) log(LogLevel::kWarning, std::string(written.status().message()));
}

// Under the lock.
void Profile::add(const char* category, std::string_view name, Clock::time_point begin,
                  Clock::time_point end, const std::string& arguments) {
  if (!file_ || count_ >= kEventsMax) return;
  events_ += cat(count_++ > 0 ? ",\n" : "", R"({"cat":")", category, R"(","pid":)", getpid(),
                 R"(,"tid":)", gettid(), R"(,"dur":)", microseconds(end - begin), R"(,"ts":)",
                 microseconds(begin - start_), R"(,"ph":"X","name":)",
                 json_string(utf8_repaired(name)), R"(,"args":{)", arguments, "}}");
}

void Profile::add_load(Clock::time_point begin, Clock::time_point end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  add("Session", "session_initialization", begin, end, "");
}

void Profile::add_run(Clock::time_point begin, Clock::time_point end,
                      const std::vector<StepTime>& steps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const StepTime& step : steps) {
    add("Node", step.step->name + "_kernel_time", step.begin, step.end,
        cat(R"("op_name":)", json_string(utf8_repaired(step.step->op_type)),
            R"(,"provider":"CPUExecutionProvider")"));
  }
  add("Session", "model_run", begin, end, "");
}

void Profile::drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.reset();
}

Result<std::string> Profile::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_on_.store(false, std::memory_order_relaxed);
  const std::unique_ptr<NewFile> file = std::move(file_);
  const std::string events = std::move(events_);
  events_.clear();
  if (!file) return std::string();
  const std::string text = cat("[\n", events, "\n]\n");
  FOLIO_RETURN_IF_ERROR(
      file->write(Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  FOLIO_RETURN_IF_ERROR(file->publish());
  return file->path();
}

}  // namespace folio
