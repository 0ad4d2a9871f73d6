// What this machine can do at most, measured for some tenths of a second: what a profile's rates
// are parts of.
//
// Threads: measure_peaks starts as many as it is told, and joins them.
// Errors:  none: what cannot be measured is 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace folio_cli {

// Reading memory again and again, as much of it as there are bytes of the level.
struct ReadPeak {
  std::string name;  // "L2", "L3", "memory"
  double bytes = 0;  // that it holds, for all threads together; infinite: the last one
  double gbs = 0;
};

struct MachinePeaks {
  double float_gflops = 0;  // multiply-adds of floats, each 2 operations
  std::string float_name;   // the instruction's
  double byte_gops = 0;     // products of bytes, as above; 0: the level has no way of its own
  std::string byte_name;
  std::vector<ReadPeak> reads;  // the fastest first; at least one

  // Of the fastest that holds so many bytes.
  const ReadPeak& read_of(double bytes) const;
};

// With the instructions of the kernels in use (FolioCpuInfo::level), `threads` threads at once.
MachinePeaks measure_peaks(const std::string& level, uint32_t threads);

}  // namespace folio_cli
