// Metrics: counters of one session, and a latency histogram.
//
// Threads: all members are atomic; a reader sees each number right, not all of one instant.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace folio {

struct Metrics {
  // Upper bounds in microseconds: 1-2-5 steps from 10 us to 10 s; the last bucket is above all.
  static constexpr std::array<uint64_t, 19> kBounds = {
      10,    20,    50,     100,    200,    500,     1000,    2000,    5000,    10000,
      20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000};

  std::atomic<uint64_t> runs{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> cancelled{0};
  std::atomic<uint64_t> total_us{0};
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> buckets{};

  void add(uint64_t us) {
    runs.fetch_add(1, std::memory_order_relaxed);
    total_us.fetch_add(us, std::memory_order_relaxed);
    size_t i = 0;
    while (i < kBounds.size() && us > kBounds[i]) ++i;
    buckets[i].fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace folio
