#include "core/ops/op_fourier.h"

#include <cmath>
#include <cstring>

namespace folio {
namespace {

constexpr double kPi = 3.14159265358979323846;
// Prime factors above this go through a convolution of a power of two.
constexpr int64_t kDirectPrime = 64;
constexpr int64_t kStep = Fourier::kComplexStep;

// ---------------------------------------------------------------- numbers, one of each lane

// As vectors of 16 bytes, which every x86-64 has: g++ makes none of such loops at -O2.
typedef double Lanes __attribute__((vector_size(Fourier::kLanes * sizeof(double))));
static_assert(sizeof(Lanes) == 16);

struct Number {
  Lanes re, im;
};

inline Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
inline Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
inline Number operator*(Number a, double b) { return {a.re * b, a.im * b}; }
inline Number operator*(Number a, Complex b) {
  return {a.re * b.real() - a.im * b.imag(), a.re * b.imag() + a.im * b.real()};
}
inline Number conj(Number a) { return {a.re, -a.im}; }
inline Number times_j(Number a) { return {-a.im, a.re}; }

inline Lanes load_lanes(const double* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
inline void store_lanes(double* to, Lanes value) { std::memcpy(to, &value, sizeof(value)); }

inline Number load(const double* from) {
  return {load_lanes(from), load_lanes(from + Fourier::kLanes)};
}
inline void store(double* to, Number value) {
  store_lanes(to, value.re);
  store_lanes(to + Fourier::kLanes, value.im);
}

// ---------------------------------------------------------------- roots

int64_t next_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// exp(-2 pi j i / n), 0 <= i < n, by an angle of at most an eighth of a turn, where cos and sin
// lose least.
Complex root(int64_t i, int64_t n) {
  int64_t eighths = 8 * i;  // of 1 / n
  const bool up = eighths > 4 * n;
  if (up) eighths = 8 * n - eighths;
  const bool left = eighths > 2 * n;
  if (left) eighths = 4 * n - eighths;
  const bool steep = eighths > n;
  if (steep) eighths = 2 * n - eighths;
  const double turn = kPi * static_cast<double>(eighths) / static_cast<double>(4 * n);
  const double along = std::cos(turn);
  const double across = std::sin(turn);
  const double re = steep ? across : along;
  const double im = steep ? along : across;
  return {left ? -re : re, up ? im : -im};
}

// All roots of n. Most mirror others: a plan is made for each run.
std::vector<Complex> roots_of(int64_t n) {
  std::vector<Complex> roots(static_cast<size_t>(n));
  const auto at = [&](int64_t i) { return roots[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < n; ++i) {
    Complex& to = roots[static_cast<size_t>(i)];
    if (2 * i > n) {
      to = std::conj(at(n - i));
    } else if (4 * i > n && n % 2 == 0) {
      to = -std::conj(at(n / 2 - i));
    } else if (8 * i > n && n % 4 == 0) {
      to = {-at(n / 4 - i).imag(), -at(n / 4 - i).real()};
    } else {
      to = root(i, n);
    }
  }
  return roots;
}

// ---------------------------------------------------------------- steps of a transform

// Step of a transform in decimation of frequency that leaves the results in order (Stockham): of
// `part` times radix numbers that remain, `stride` transforms side by side.
struct Step {
  int64_t part = 1;
  int64_t stride = 1;
  const Complex* roots = nullptr;
  int64_t unit = 1;  // roots of the numbers that remain are every unit-th one
};

struct Two {
  static constexpr int kRadix = 2;
  static void transform(Number* v) {
    const Number a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  }
};

struct Three {
  static constexpr int kRadix = 3;
  static void transform(Number* v) {
    constexpr double kSin = 0.86602540378443864676;  // of a third of a turn
    const Number both = v[1] + v[2];
    const Number turned = times_j(v[1] - v[2]) * kSin;
    const Number middle = v[0] - both * 0.5;
    v[0] = v[0] + both;
    v[1] = middle - turned;
    v[2] = middle + turned;
  }
};

struct Four {
  static constexpr int kRadix = 4;
  static void transform(Number* v) {
    const Number even = v[0] + v[2];
    const Number odd = v[1] + v[3];
    const Number low = v[0] - v[2];
    const Number high = times_j(v[1] - v[3]);
    v[0] = even + odd;
    v[1] = low - high;
    v[2] = even - odd;
    v[3] = low + high;
  }
};

struct Five {
  static constexpr int kRadix = 5;
  static void transform(Number* v) {
    constexpr double kCos1 = 0.30901699437494742410, kSin1 = 0.95105651629515357212;
    constexpr double kCos2 = -0.80901699437494742410, kSin2 = 0.58778525229247312917;
    const Number outer = v[1] + v[4];
    const Number inner = v[2] + v[3];
    const Number across = v[1] - v[4];
    const Number along = v[2] - v[3];
    const Number first = v[0] + outer * kCos1 + inner * kCos2;
    const Number second = v[0] + outer * kCos2 + inner * kCos1;
    const Number turn1 = times_j(across * kSin1 + along * kSin2);
    const Number turn2 = times_j(across * kSin2 - along * kSin1);
    v[0] = v[0] + outer + inner;
    v[1] = first - turn1;
    v[2] = second - turn2;
    v[3] = second + turn2;
    v[4] = first + turn1;
  }
};

// The p-th number of every part.
template <typename Radix, bool kTurned>
void run_row(const Step& step, int64_t p, const double* __restrict x, double* __restrict y) {
  constexpr int kRadix = Radix::kRadix;
  Complex turns[kRadix];
  for (int j = 1; j < kRadix; ++j) turns[j] = step.roots[p * j * step.unit];
  const double* from = x + step.stride * p * kStep;
  double* to = y + step.stride * kRadix * p * kStep;
  for (int64_t q = 0; q < step.stride; ++q) {
    Number v[kRadix];
#pragma GCC unroll 8
    for (int j = 0; j < kRadix; ++j) v[j] = load(from + (step.stride * step.part * j + q) * kStep);
    Radix::transform(v);
    store(to + q * kStep, v[0]);
#pragma GCC unroll 8
    for (int j = 1; j < kRadix; ++j) {
      store(to + (step.stride * j + q) * kStep, kTurned ? v[j] * turns[j] : v[j]);
    }
  }
}

template <typename Radix>
void run_step(const Step& step, const double* x, double* y) {
  run_row<Radix, false>(step, 0, x, y);
  for (int64_t p = 1; p < step.part; ++p) run_row<Radix, true>(step, p, x, y);
}

// Any odd radix up to kDirectPrime: k and radix - k have the same products, of sums of two numbers
// with cosines and of differences with sines. `at` roots: those of the radix are every unit-th one.
void run_odd_step(const Step& step, int64_t radix, const double* x, double* y) {
  const int64_t half = radix / 2;
  const int64_t apart = step.stride * step.part * kStep;
  for (int64_t at = 0; at < step.part * step.stride; ++at) {
    const int64_t p = at / step.stride;
    const double* from = x + at * kStep;
    double* to = y + (step.stride * radix * p + at % step.stride) * kStep;
    Number sums[kDirectPrime / 2];
    Number differences[kDirectPrime / 2];
    const Number first = load(from);
    Number all = first;
    for (int64_t j = 1; j <= half; ++j) {
      const Number low = load(from + j * apart);
      const Number high = load(from + (radix - j) * apart);
      sums[j - 1] = low + high;
      differences[j - 1] = low - high;
      all = all + sums[j - 1];
    }
    store(to, all);
    for (int64_t k = 1; k <= half; ++k) {
      Number even = first;
      Number odd{};
      int64_t place = 0;
      for (int64_t j = 0; j < half; ++j) {
        place += k;
        if (place >= radix) place -= radix;
        const Complex w = step.roots[place * step.part * step.unit];
        even = even + sums[j] * w.real();
        odd = odd + differences[j] * w.imag();
      }
      odd = times_j(odd);
      store(to + k * step.stride * kStep, (even + odd) * step.roots[p * k * step.unit]);
      store(to + (radix - k) * step.stride * kStep,
            (even - odd) * step.roots[p * (radix - k) * step.unit]);
    }
  }
}

}  // namespace

// ---------------------------------------------------------------- the transform

Fourier::Fourier(int64_t n, Kind kind)
    : n_(n), points_(kind != Kind::kComplex && n % 2 == 0 ? n / 2 : n), kind_(kind) {
  int64_t largest = 1;
  for (int64_t rest = points_; rest > 1; rest /= factors_.back()) {
    factors_.push_back(next_factor(rest));
    largest = std::max(largest, factors_.back());
  }
  if (largest <= kDirectPrime || points_ < n_) roots_ = roots_of(n);
  if (largest > kDirectPrime) make_chirp();
}

int64_t Fourier::buffer_size() const {
  // A real line of even length has a bin more than points.
  return std::max(padded_ ? padded_->n_ : points_, n_ / 2 + 1) * kStep;
}

double* Fourier::run(double* a, double* b) const {
  if (kind_ == Kind::kComplex) return run_points(a, b);
  return kind_ == Kind::kFromReal ? from_real(a, b) : to_real(a, b);
}

double* Fourier::run_points(double* a, double* b) const {
  if (padded_) return run_chirp(a, b);
  Step step{points_, 1, roots_.data(), n_ / points_};
  for (const int64_t radix : factors_) {
    step.part /= radix;
    if (radix == 4) {
      run_step<Four>(step, a, b);
    } else if (radix == 2) {
      run_step<Two>(step, a, b);
    } else if (radix == 3) {
      run_step<Three>(step, a, b);
    } else if (radix == 5) {
      run_step<Five>(step, a, b);
    } else {
      run_odd_step(step, radix, a, b);
    }
    step.stride *= radix;
    step.unit *= radix;
    std::swap(a, b);
  }
  return a;
}

// ---------------------------------------------------------------- real lines

// Even lengths: the transform of z[i] = x[2 i] + j x[2 i + 1], which lies in `a` already, is
// E + j O, of the elements with even and odd places; out[k] = E[k] + root^k O[k].
double* Fourier::from_real(double* a, double* b) const {
  if (points_ == n_) {
    for (int64_t i = 0; i < n_; ++i) store(b + i * kStep, {load_lanes(a + i * kLanes), Lanes{}});
    double* bins = run_points(b, a);
    store_lanes(bins + kLanes, Lanes{});  // A convolution leaves a rounding error.
    return bins;
  }
  double* z = run_points(a, b);
  const Number first = load(z);
  store(z, {first.re + first.im, Lanes{}});
  store(z + points_ * kStep, {first.re - first.im, Lanes{}});
  for (int64_t k = 1; k <= points_ / 2; ++k) {
    const Number low = load(z + k * kStep);
    const Number high = conj(load(z + (points_ - k) * kStep));
    const Number even = (low + high) * 0.5;
    const Number odd = times_j(high - low) * (roots_[static_cast<size_t>(k)] * 0.5);
    store(z + (points_ - k) * kStep, conj(even - odd));
    store(z + k * kStep, even + odd);
  }
  return z;
}

// The same backwards. The inverse is the transform of the bins in the opposite order.
double* Fourier::to_real(double* a, double* b) const {
  const Number first = load(a);
  if (points_ == n_) {
    store(b, {first.re, Lanes{}});
    for (int64_t k = 1; k <= n_ / 2; ++k) {
      const Number bin = load(a + k * kStep);
      store(b + k * kStep, conj(bin));
      store(b + (n_ - k) * kStep, bin);
    }
    double* x = run_points(b, a);
    for (int64_t i = 0; i < n_; ++i) store_lanes(x + i * kLanes, load_lanes(x + i * kStep));
    return x;
  }
  const Number last = load(a + points_ * kStep);
  store(a, {first.re + last.re, first.re - last.re});
  for (int64_t k = 1; k <= points_ / 2; ++k) {
    const Number low = load(a + k * kStep);
    const Number high = conj(load(a + (points_ - k) * kStep));
    const Number even = low + high;
    const Number odd = times_j((low - high) * std::conj(roots_[static_cast<size_t>(k)]));
    store(a + k * kStep, conj(even - odd));
    store(a + (points_ - k) * kStep, even + odd);
  }
  return run_points(a, b);
}

// ---------------------------------------------------------------- large primes

// Bluestein: x[i] c[i] convolved with 1 / c, c[i] = exp(-pi j i^2 / n).
void Fourier::make_chirp() {
  int64_t size = 1;
  while (size < 2 * points_ - 1) size *= 2;
  padded_ = std::make_unique<Fourier>(size, Kind::kComplex);
  chirp_.resize(static_cast<size_t>(points_));
  std::vector<double> buffers(static_cast<size_t>(2 * padded_->buffer_size()));
  double* filter = buffers.data();
  for (int64_t i = 0; i < points_; ++i) {
    // i^2 modulo 2 n keeps the angle exact.
    const auto square =
        static_cast<uint64_t>(i) * static_cast<uint64_t>(i) % static_cast<uint64_t>(2 * points_);
    const Complex c = root(static_cast<int64_t>(square), 2 * points_);
    chirp_[static_cast<size_t>(i)] = c;
    const Number back = Number{Lanes{} + c.real(), Lanes{} - c.imag()};
    store(filter + i * kStep, back);
    if (i > 0) store(filter + (size - i) * kStep, back);
  }
  const double* spectrum = padded_->run(filter, filter + padded_->buffer_size());
  filter_.resize(static_cast<size_t>(size));
  const double scale = 1.0 / static_cast<double>(size);
  for (int64_t i = 0; i < size; ++i) {
    const double* bin = spectrum + i * kStep;
    filter_[static_cast<size_t>(i)] = Complex(bin[0], bin[kLanes]) * scale;
  }
}

double* Fourier::run_chirp(double* a, double* b) const {
  const int64_t size = padded_->n_;
  for (int64_t i = 0; i < points_; ++i) {
    store(a + i * kStep, load(a + i * kStep) * chirp_[static_cast<size_t>(i)]);
  }
  std::fill(a + points_ * kStep, a + size * kStep, 0.0);
  double* bins = padded_->run_points(a, b);
  // The inverse as the conjugate's transform.
  for (int64_t i = 0; i < size; ++i) {
    store(bins + i * kStep, conj(load(bins + i * kStep) * filter_[static_cast<size_t>(i)]));
  }
  double* out = padded_->run_points(bins, bins == a ? b : a);
  for (int64_t i = 0; i < points_; ++i) {
    store(out + i * kStep, conj(load(out + i * kStep)) * chirp_[static_cast<size_t>(i)]);
  }
  return out;
}

}  // namespace folio
