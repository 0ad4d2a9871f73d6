// Parallel: how kernels' callers spread work over threads; the pool lives in os/.
//
// Threads: one region at a time; a region started while another runs is executed inline.
// Order:   chunks depend on `count` and `grain` only, never on the number of threads, so results
//          do not either.
#pragma once

#include <cstdint>
#include <type_traits>

namespace folio {

class Parallel {
 public:
  // A plain pair, so that hot paths make no std::function.
  struct Task {
    void (*run)(void* state, int64_t begin, int64_t end);
    void* state;
  };

  virtual ~Parallel() = default;
  virtual int thread_count() const = 0;

  // Calls task over [0, count) in chunks of `grain` (the last may be shorter), in any order, and
  // returns when all are done. What task throws ends here, when no thread is at a chunk any more.
  virtual void run(int64_t count, int64_t grain, Task task) = 0;

  // for_range(n, grain, [&](int64_t begin, int64_t end) {...});
  template <typename Body>
  void for_range(int64_t count, int64_t grain, Body&& body) {
    auto call = [](void* state, int64_t begin, int64_t end) {
      (*static_cast<std::remove_reference_t<Body>*>(state))(begin, end);
    };
    run(count, grain, Task{call, const_cast<void*>(static_cast<const void*>(&body))});
  }
};

// Runs everything in the calling thread.
class InlineParallel final : public Parallel {
 public:
  int thread_count() const override { return 1; }
  void run(int64_t count, int64_t grain, Task task) override {
    for (int64_t begin = 0; begin < count; begin += grain) {
      task.run(task.state, begin, begin + grain < count ? begin + grain : count);
    }
  }
};

}  // namespace folio
