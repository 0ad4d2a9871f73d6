// HeldTask: one step that keeps the idle worker from other work until a test lets it end.
#pragma once

#include <atomic>
#include <thread>

#include "core/os/idle_worker.h"

namespace folio::testing {

class HeldTask final : public IdleTask {
 public:
  bool step() override {
    ++steps;
    while (!may_end.load()) std::this_thread::yield();
    return false;
  }

  std::atomic<int> steps{0};
  std::atomic<bool> may_end{false};
};

}  // namespace folio::testing
