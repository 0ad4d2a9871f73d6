#include "core/base/log.h"

#include <cstdio>
#include <mutex>
#include <string>

namespace folio {
namespace {

struct Sink {
  LogCallback callback = nullptr;
  void* user = nullptr;
  LogLevel lowest = LogLevel::kWarning;
};

std::mutex g_mutex;
Sink g_sink;

}  // namespace

void set_log(LogCallback callback, void* user, LogLevel lowest) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_sink = {callback, user, lowest};
}

void log(LogLevel level, std::string_view message) {
  Sink sink;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    sink = g_sink;
  }
  if (level < sink.lowest) return;
  const std::string text(message);
  if (sink.callback) {
    sink.callback(sink.user, level, text.c_str());
  } else {
    std::fprintf(stderr, "folio: %s\n", text.c_str());
  }
}

}  // namespace folio
