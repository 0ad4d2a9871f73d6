// ProgressLine: one line on standard error that is written over; nothing where nobody watches.
//
// Cost:    at most ten writes a second, so that work that is measured may be watched.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "tools/folio/cli.h"
#include "tools/folio/timing.h"

namespace folio_cli {

class ProgressLine {
 public:
  // A process that another one started leaves the terminal to that one.
  enum class On { kTerminal, kNothing };

  // "packing model.onnx"
  explicit ProgressLine(const std::string& what, On on = On::kTerminal)
      : what_(one_line(what)), is_watched_(on == On::kTerminal && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (is_shown_) std::fprintf(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_watched() const { return is_watched_; }

  // Of work that does not say how far it is.
  void show_begin() {
    if (is_watched_) write(what_ + " ...");
  }

  // True, which lets the work go on.
  bool show(double fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (!is_watched_ || percent == percent_) return true;
    const double now = wall_ms();
    if (is_shown_ && now < next_ms_) return true;
    next_ms_ = now + kIntervalMs;
    percent_ = percent;
    write(what_ + ": " + std::to_string(percent) + " %");
    return true;
  }

 private:
  static constexpr double kIntervalMs = 100;

  void write(const std::string& text) {
    is_shown_ = true;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }

  const std::string what_;
  const bool is_watched_;
  bool is_shown_ = false;
  int percent_ = -1;
  double next_ms_ = 0;
};

}  // namespace folio_cli
