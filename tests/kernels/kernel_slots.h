// The slots of FolioKernels as a table: what each reads and writes for a count n, how it is called,
// and how far levels may be apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"

namespace folio {

enum class Holds : uint8_t { kFloats, kDoubles, kHalves, kBytes };
enum class May : uint8_t { kStandAnywhere, kStandAtElements, kStandAtEights, kStandAt64 };

struct Operand {
  Holds holds;
  int64_t (*count)(int64_t n);  // elements
  May may;
  size_t element_bytes() const {
    return holds == Holds::kFloats    ? 4
           : holds == Holds::kDoubles ? 8
           : holds == Holds::kHalves  ? 2
                                      : 1;
  }
  size_t bytes(int64_t n) const { return static_cast<size_t>(count(n)) * element_bytes(); }
};

struct Pointers {
  std::vector<const void*> in;
  std::vector<void*> out;
  const float* f(size_t i) const { return static_cast<const float*>(in[i]); }
  template <typename T>
  const T* of(size_t i) const {
    return static_cast<const T*>(in[i]);
  }
  template <typename T>
  T* to(size_t i) const {
    return static_cast<T*>(out[i]);
  }
  const uint8_t* b(size_t i) const { return static_cast<const uint8_t*>(in[i]); }
  float* to_f(size_t i) const { return static_cast<float*>(out[i]); }
  uint8_t* to_b(size_t i) const { return static_cast<uint8_t*>(out[i]); }
};

// Levels may differ in floats: not at all (but in what kind of NaN they give), by so many ulp, or
// by twice the absolute error that kernels.h allows for numbers of magnitude 1 or less.
enum class Agrees : uint8_t { kBytes, kBits, kUlp, kNear };
enum class Among : uint8_t { kAll, kFinite };  // which special numbers stand among the inputs

struct Slot {
  std::string name;
  size_t offset;  // in FolioKernels
  std::vector<Operand> in, out;
  void (*call)(const FolioKernels& k, int64_t n, const Pointers& p, int part);
  Agrees agrees;
  double (*tolerance)(int64_t n);
  Among among = Among::kAll;
  int part = 0;  // of an array of slots
};

// A row for each slot.
std::vector<Slot> slots();

void PrintTo(const Slot& slot, std::ostream* out);  // for GoogleTest

}  // namespace folio
