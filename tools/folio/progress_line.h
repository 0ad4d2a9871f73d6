// ProgressLine: one line on standard error that is written over; nothing where nobody watches.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "tools/folio/cli.h"

namespace folio_cli {

class ProgressLine {
 public:
  // "packing model.onnx"
  explicit ProgressLine(const std::string& what) : what_(one_line(what)) {}
  ~ProgressLine() {
    if (shown_ >= 0) std::fprintf(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // True, which lets the work go on.
  bool show(double fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (!watched_ || percent == shown_) return true;
    shown_ = percent;
    std::fprintf(stderr, "\r\033[K%s: %d %%", what_.c_str(), percent);
    std::fflush(stderr);
    return true;
  }

 private:
  const std::string what_;
  const bool watched_ = isatty(STDERR_FILENO) != 0;
  int shown_ = -1;
};

}  // namespace folio_cli
