// LoadProgress: what a load (or a save) tells its caller, and how the caller ends it.
//
// Flow:    the steps of a load say how far they are; what computes constants meanwhile asks again.
// Owns:    nothing; the Progress outlives it.
// Threads: one, the loading one; the caller is told in its own.
// Errors:  kCancelled, with the text given.
#pragma once

#include "core/os/tile_threads.h"
#include "core/session/options.h"

namespace folio {

class LoadProgress {
 public:
  // `progress` may be empty: then nobody ends anything.
  LoadProgress(const Progress& progress, const char* stage, const char* cancelled)
      : progress_(progress), stage_(stage), cancelled_(cancelled) {}

  Status at(float done, const char* stage) {
    done_ = done;
    stage_ = stage;
    return again();
  }
  // Says the same once more, in the middle of what may take long.
  Status again() const {
    if (!progress_) return Status::ok();
    if (in_callers_thread([&] { return progress_(done_, stage_); })) return Status::ok();
    return error(Code::kCancelled, cancelled_);
  }

 private:
  const Progress& progress_;
  float done_ = 0;
  const char* stage_;
  const char* cancelled_;
};

}  // namespace folio
