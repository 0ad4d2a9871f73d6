#include "core/ops/op_fourier.h"

#include <algorithm>
#include <cmath>

namespace folio {
namespace {

constexpr double kPi = 3.14159265358979323846;
// Prime factors above this go through a convolution of a power of two.
constexpr int64_t kDirectPrime = 64;

int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// Plain product; std::complex's handles infinities at great cost.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Fourier::Fourier(int64_t n) : n_(n), roots_(static_cast<size_t>(n)) {
  for (int64_t i = 0; i < n; ++i) {
    const double turn = -2 * kPi * static_cast<double>(i) / static_cast<double>(n);
    roots_[static_cast<size_t>(i)] = {std::cos(turn), std::sin(turn)};
  }
  int64_t largest = 1;
  for (int64_t rest = n; rest > 1; rest /= factors_.back()) {
    factors_.push_back(smallest_factor(rest));
    largest = std::max(largest, factors_.back());
  }
  if (largest > kDirectPrime) make_chirp();
}

void Fourier::run(const Complex* in, Complex* out, Complex* work) const {
  if (padded_) return run_chirp(in, out, work);
  step(in, 1, out, n_, 0, work);
}

// Decimation in time: transforms of the factor's residues, then combined in place.
void Fourier::step(const Complex* in, int64_t stride, Complex* out, int64_t n, size_t level,
                   Complex* work) const {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const int64_t radix = factors_[level];
  const int64_t part = n / radix;
  for (int64_t r = 0; r < radix; ++r) {
    step(in + r * stride, stride * radix, out + r * part, part, level + 1, work);
  }
  const int64_t unit = n_ / n;  // roots of length n are every unit-th one
  for (int64_t k = 0; k < part; ++k) {
    for (int64_t q = 0; q < radix; ++q) {
      const int64_t frequency = k + q * part;
      Complex sum = out[k];
      int64_t at = 0;
      for (int64_t r = 1; r < radix; ++r) {
        at += frequency;
        if (at >= n) at -= n;
        sum += times(out[r * part + k], roots_[static_cast<size_t>(at * unit)]);
      }
      work[q] = sum;
    }
    for (int64_t q = 0; q < radix; ++q) out[k + q * part] = work[q];
  }
}

// Bluestein: x[i] c[i] convolved with 1 / c, c[i] = exp(-pi j i^2 / n).
void Fourier::make_chirp() {
  int64_t size = 1;
  while (size < 2 * n_ - 1) size *= 2;
  padded_ = std::make_unique<Fourier>(size);
  chirp_.resize(static_cast<size_t>(n_));
  std::vector<Complex> filter(static_cast<size_t>(size));
  for (int64_t i = 0; i < n_; ++i) {
    // i^2 modulo 2 n keeps the angle exact.
    const auto square = static_cast<double>(static_cast<uint64_t>(i) * static_cast<uint64_t>(i) %
                                            static_cast<uint64_t>(2 * n_));
    const double turn = -kPi * square / static_cast<double>(n_);
    const Complex c(std::cos(turn), std::sin(turn));
    chirp_[static_cast<size_t>(i)] = c;
    filter[static_cast<size_t>(i)] = std::conj(c);
    if (i > 0) filter[static_cast<size_t>(size - i)] = std::conj(c);
  }
  filter_.resize(static_cast<size_t>(size));
  std::vector<Complex> work(static_cast<size_t>(size));
  padded_->run(filter.data(), filter_.data(), work.data());
}

void Fourier::run_chirp(const Complex* in, Complex* out, Complex* work) const {
  const int64_t size = padded_->n_;
  Complex* a = work;
  Complex* b = work + size;
  std::vector<Complex> radix_work(2);
  for (int64_t i = 0; i < size; ++i) {
    a[i] = i < n_ ? times(in[i], chirp_[static_cast<size_t>(i)]) : Complex();
  }
  padded_->run(a, b, radix_work.data());
  // The inverse as the conjugate's transform.
  for (int64_t i = 0; i < size; ++i) b[i] = std::conj(times(b[i], filter_[static_cast<size_t>(i)]));
  padded_->run(b, a, radix_work.data());
  const double scale = 1.0 / static_cast<double>(size);
  for (int64_t i = 0; i < n_; ++i) {
    out[i] = times(std::conj(a[i]) * scale, chirp_[static_cast<size_t>(i)]);
  }
}

}  // namespace folio
