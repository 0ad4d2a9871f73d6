// Fourier: transforms of one length, in double.
//
// Flow:    DFT, STFT, Rfft and Irfft make one for a run, and give it line after line.
// Math:    out[k] = sum over i of in[i] exp(-2 pi j k i / n). Lengths with small factors by mixed
//          radix; other factors cost their square (Bluestein above 64).
// Threads: immutable; `work` belongs to the caller.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace folio {

using Complex = std::complex<double>;
inline constexpr int64_t kMaxFourier = int64_t{1} << 28;  // the longest that operators take

class Fourier {
 public:
  explicit Fourier(int64_t n);  // 1 to kMaxFourier

  size_t work_size() const { return static_cast<size_t>(padded_ ? 2 * padded_->n_ : n_); }

  // out = transform of in[0 .. n); `work` holds work_size() and is none of them.
  void run(const Complex* in, Complex* out, Complex* work) const;

 private:
  void step(const Complex* in, int64_t stride, Complex* out, int64_t n, size_t level,
            Complex* work) const;
  void make_chirp();
  void run_chirp(const Complex* in, Complex* out, Complex* work) const;

  int64_t n_;
  std::vector<Complex> roots_;
  std::vector<int64_t> factors_;
  std::unique_ptr<Fourier> padded_;
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
};

}  // namespace folio
