#include "core/base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace folio {
namespace {

struct Sink {
  LogCallback callback = nullptr;
  void* user = nullptr;
  LogLevel lowest = LogLevel::kWarning;
  const Sink* older = nullptr;
};

// No lock, which a child of fork could find taken. A sink is never freed, since another thread may
// be about to use it, but taken again when an equal one is set.
constinit const Sink g_default{};
std::atomic<const Sink*> g_newest{&g_default};
std::atomic<const Sink*> g_sink{&g_default};

// Up to so many bytes are copied without the heap: also that there is no memory can be told.
constexpr size_t kShort = 511;

const Sink* find_sink(LogCallback callback, void* user, LogLevel lowest) {
  const Sink* sink = g_newest.load(std::memory_order_acquire);
  while (sink && (sink->callback != callback || sink->user != user || sink->lowest != lowest)) {
    sink = sink->older;
  }
  return sink;
}

}  // namespace

void set_log(LogCallback callback, void* user, LogLevel lowest) {
  const Sink* sink = find_sink(callback, user, lowest);
  if (!sink) {
    auto* const made = new Sink{callback, user, lowest, g_newest.load()};
    while (!g_newest.compare_exchange_weak(made->older, made)) {
    }
    sink = made;
  }
  g_sink.store(sink, std::memory_order_release);
}

void log(LogLevel level, std::string_view message) {
  const Sink sink = *g_sink.load(std::memory_order_acquire);
  if (level < sink.lowest) return;
  char near[kShort + 1];
  std::string far;
  const char* text = near;
  if (message.size() <= kShort) {
    near[message.copy(near, kShort)] = '\0';
  } else {
    far = message;
    text = far.c_str();
  }
  if (sink.callback) {
    sink.callback(sink.user, level, text);
  } else {
    std::fprintf(stderr, "folio: %s\n", text);
  }
}

}  // namespace folio
