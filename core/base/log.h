// Leveled log to a user's callback, or standard error; silent below warning by default.
//
// Threads: any; the callback is called without a lock held and must be thread-safe.
#pragma once

#include <string_view>

namespace folio {

enum class LogLevel : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3, kFatal = 4 };

// `user` is passed back. A null callback restores standard error.
using LogCallback = void (*)(void* user, LogLevel level, const char* message);

void set_log(LogCallback callback, void* user, LogLevel lowest);
void log(LogLevel level, std::string_view message);

}  // namespace folio
