// What the kernel tests share: every usable level, random data, guarded outputs, distances.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/select.h"

namespace folio {

struct LevelUnderTest {
  std::string name;
  FolioKernels kernels;  // all levels up to this one, as select.cc stacks them
};

// Levels that this machine can run, "ref" first; behind "x86_avx512vnni" also "software_amx", the
// text of x86_amx over tiles in memory.
const std::vector<LevelUnderTest>& levels_under_test();
const FolioKernels& ref_kernels();

// A fixed sequence for a seed, in [low, high).
std::vector<float> random_floats(size_t count, uint32_t seed, float low = -1.0f, float high = 1.0f);

// `count` floats at `phase` floats behind a 64-byte boundary, with 64 guard floats before and
// behind: a kernel that writes outside is caught, whatever it writes.
class Guarded {
 public:
  explicit Guarded(size_t count, size_t phase = 0);
  Guarded(const std::vector<float>& values, size_t phase);
  float* data() { return storage_.data() + first_; }
  size_t count() const { return count_; }
  std::vector<float> values() const;
  bool intact() const;

 private:
  std::vector<float> storage_;
  size_t first_ = 0;
  size_t count_;
};

// `count` floats that end right before a page that cannot be read, and begin anywhere: a kernel
// that reads behind its input dies.
class BeforeUnreadable {
 public:
  explicit BeforeUnreadable(const std::vector<float>& values);
  ~BeforeUnreadable();
  BeforeUnreadable(const BeforeUnreadable&) = delete;
  BeforeUnreadable& operator=(const BeforeUnreadable&) = delete;
  const float* data() const { return data_; }

 private:
  void* mapping_;
  size_t bytes_;
  float* data_;
};

// S8P16K4 of a matrix B [k, n] of bytes, row by row, as the reference packs it: aligned to 64, in
// memory that ends where it does.
class PackedBytes {
 public:
  PackedBytes(int64_t k, int64_t n, const std::vector<uint8_t>& b);
  const uint8_t* data() const { return bytes_.get(); }
  static size_t size(int64_t k, int64_t n);

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  std::unique_ptr<uint8_t, Free> bytes_;
};

uint32_t bits_of(float x);
float from_bits(uint32_t bits);
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

// |got - want| in units of the last place of `want` as f32 (at least 2^-149). 0 when both are NaN
// or the same infinity; infinite when only one is.
double ulp_distance(float got, double want);

}  // namespace folio
