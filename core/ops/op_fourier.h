// Fourier: transforms of one length, in double, of lines side by side.
//
// Flow:    DFT, STFT, Rfft and Irfft make one for a run, and transform_lines() gives it their
// lines. Math:    complex and real lines: out[k] = sum over i of in[i] exp(-2 pi j k i / n), of
// real ones
//          for k up to n / 2; to real: out[i] = sum over k of in[k] exp(2 pi j k i / n), not
//          divided by n, of what the bins up to n / 2 and their mirror images give: the imaginary
//          parts of the first and of an even line's middle one count nothing. A real line of even
//          length is a complex one of half the length. Lengths with small factors by mixed radix; a
//          prime factor costs its square, above 64 a convolution of a power of two (Bluestein).
// Threads: immutable; buffers belong to the caller.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/ops/op_scratch.h"

namespace folio {

using Complex = std::complex<double>;
inline constexpr int64_t kMaxFourier = int64_t{1} << 28;  // the longest that operators take

class Fourier {
 public:
  enum class Kind { kComplex, kFromReal, kToReal };
  // As many as a vector of 16 bytes has. They share the instructions, not the numbers: what is in
  // one line changes no bit of another.
  static constexpr int64_t kLanes = 2;

  // An element i of lane l: a real one at [i * kLanes + l], a complex one at [i * kComplexStep + l]
  // and, its imaginary part, kLanes behind that.
  static constexpr int64_t kComplexStep = 2 * kLanes;

  Fourier(int64_t n, Kind kind);  // 1 to kMaxFourier

  int64_t length() const { return n_; }
  Kind kind() const { return kind_; }

  // Doubles in each of the two buffers.
  int64_t buffer_size() const;

  // Of what `a` holds. The result stands in either buffer; the other one is overwritten.
  double* run(double* a, double* b) const;

 private:
  double* run_points(double* a, double* b) const;
  double* run_chirp(double* a, double* b) const;
  double* from_real(double* a, double* b) const;
  double* to_real(double* a, double* b) const;
  void make_chirp();

  int64_t n_;
  int64_t points_;  // of the complex transform
  Kind kind_;
  std::vector<Complex> roots_;  // of n_
  std::vector<int64_t> factors_;
  std::unique_ptr<Fourier> padded_;
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
};

// Transforms lines 0 .. lines - 1: load(line, to) fills a lane, store(line, from) takes the result.
template <typename Load, typename Store>
Status transform_lines(OpRun& run, const Fourier& fourier, int64_t lines, const Load& load,
                       const Store& store) {
  constexpr int64_t kLanes = Fourier::kLanes;
  const int64_t size = fourier.buffer_size();
  const auto some_lines = [&](int64_t begin, int64_t end, uint8_t* memory) {
    auto* a = reinterpret_cast<double*>(memory);
    for (int64_t i = begin; i < end; ++i) {
      // The last of an odd number is transformed twice.
      for (int64_t l = 0; l < kLanes; ++l) load(std::min(i * kLanes + l, lines - 1), a + l);
      const double* out = fourier.run(a, a + size);
      for (int64_t l = 0; l < kLanes && i * kLanes + l < lines; ++l) store(i * kLanes + l, out + l);
    }
  };
  const size_t bytes = 2 * static_cast<size_t>(size) * sizeof(double);
  const int64_t blocks = (lines + kLanes - 1) / kLanes;
  const int64_t grain = std::max<int64_t>(1, 4096 / fourier.length());
  if (blocks <= grain) {  // One long line has not the memory of many threads.
    FOLIO_TRY(uint8_t * memory, run.scratch(bytes));
    some_lines(0, blocks, memory);
    return Status::ok();
  }
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, bytes, &scratch));
  run.parallel().for_range(blocks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    some_lines(begin, end, block.data());
  });
  return Status::ok();
}

}  // namespace folio
