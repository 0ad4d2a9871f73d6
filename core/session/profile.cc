#include "core/session/profile.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/utf8.h"

namespace folio {
namespace {

// ONNX Runtime's limit, so that a profile that nobody ends does not eat the memory: about 300 MB,
// and never more than 1 GiB, as names may have any length.
constexpr size_t kEventsMax = 1000000;
constexpr size_t kBytesMax = size_t{1} << 30;

// Longer attributes are a model's data (trees, vocabularies), not what an operator is: each run
// would write them.
constexpr size_t kAttributeMax = 64;

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  char text[32] = "";
  if (localtime_r(&now, &local)) std::strftime(text, sizeof text, "%Y-%m-%d_%H-%M-%S", &local);
  return text;
}

// As a decimal number: many steps take less than one. What began before the profile is below 0.
std::string microseconds(Profile::Clock::duration time) {
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  const std::string digits = std::to_string(1000 + std::abs(ns) % 1000);
  return cat(ns < 0 ? "-" : "", std::abs(ns) / 1000, '.', digits.substr(1));
}

// As ONNX Runtime writes them, but that what is absent keeps its place, as {}.
std::string json_of(const std::vector<SeenTensor>& tensors) {
  std::string out;
  for (const SeenTensor& tensor : tensors) {
    out += out.empty() ? "[{" : ",{";
    if (tensor.dtype != DType::kUndefined) {
      out += cat('"', dtype_name(tensor.dtype), "\":", tensor.shape.to_string());
    }
    out += '}';
  }
  return out.empty() ? "[]" : out + "]";
}

std::string json_of(float number) {
  if (!std::isfinite(number)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(number));
  return text;
}
std::string json_of(int64_t number) { return std::to_string(number); }
std::string json_of(const std::string& text) { return json_string(utf8_repaired(text)); }

template <typename T>
std::string json_of_list(const std::vector<T>& list, bool is_one) {
  if (is_one && list.size() == 1) return json_of(list.front());
  std::string out = "[";
  for (const T& each : list) out += cat(out.size() > 1 ? "," : "", json_of(each));
  return out + "]";
}

bool is_short(const AttributeDef& a) {
  const size_t longest = std::max({a.ints.size(), a.floats.size(), a.strings.size()});
  return longest <= kAttributeMax &&
         std::all_of(a.strings.begin(), a.strings.end(),
                     [](const std::string& text) { return text.size() <= 4 * kAttributeMax; });
}

// Those that are numbers or texts, and not long; "{}" without any.
std::string json_of(const Attributes& attributes) {
  using Type = AttributeDef::Type;
  std::string out;
  for (const AttributeDef& a : attributes.all()) {
    if (!is_short(a)) continue;
    std::string value;
    if (a.type == Type::kInt || a.type == Type::kInts) {
      value = json_of_list(a.ints, a.type == Type::kInt);
    } else if (a.type == Type::kFloat || a.type == Type::kFloats) {
      value = json_of_list(a.floats, a.type == Type::kFloat);
    } else if (a.type == Type::kString || a.type == Type::kStrings) {
      value = json_of_list(a.strings, a.type == Type::kString);
    } else {
      continue;
    }
    out += cat(out.empty() ? "" : ",", json_string(utf8_repaired(a.name)), ":", value);
  }
  return cat("{", out, "}");
}

std::string arguments_of(const StepTime& time) {
  const Step& step = *time.step;
  return cat(R"("op_name":)", json_string(utf8_repaired(step.op_type)),
             R"(,"provider":"CPUExecutionProvider","node_index":")", time.index,
             R"(","input_type_shape":)", json_of(time.inputs), R"(,"output_type_shape":)",
             json_of(time.outputs), R"(,"attributes":)",
             step.attributes ? json_of(*step.attributes) : "{}");
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
  if (!file_ || count_ >= kEventsMax || events_.size() >= kBytesMax) return;
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
    add("Node", step.step->name + "_kernel_time", step.begin, step.end, arguments_of(step));
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
