// Rfft and Irfft: Fourier transforms of real signals, and back.
//
// Source: ONNX Runtime ContribOperators, com.microsoft Rfft, Irfft.
// Shapes: the signal is the last signal_ndim dims (1 to 3). Rfft x [..., n] -> [..., n / 2 + 1, 2],
//         Irfft x [..., k, 2] -> [..., 2 * (k - 1)]: the signal's length is even, as the spec says.
// Math:   the last dim by a real transform, the others by complex ones; Irfft divides by the
//         number of the signal's elements.
// Types:  float, double; float16 in double.
// Errors: kNotImplemented for normalized and for onesided of 0, which the spec has not either.
#include <algorithm>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_fourier.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using SignalTypes = TypeList<float, double, Float16>;
constexpr int64_t kMaxSignalDims = 3;

// Lines along one axis, their elements `inner` apart.
struct Lines {
  int64_t outer = 1, inner = 1, length = 0;
};

constexpr int64_t kLanes = Fourier::kLanes;
constexpr int64_t kComplexStep = Fourier::kComplexStep;

// Complex lines in place. An inverse is the transform of exchanged parts, exchanged.
Status transform(OpRun& run, const Lines& lines, bool inverse, Complex* data) {
  const int64_t n = lines.length;
  const int64_t step = lines.inner;
  const double scale = inverse ? 1.0 / static_cast<double>(n) : 1.0;
  const int64_t real_at = inverse ? kLanes : 0;
  const int64_t imaginary_at = kLanes - real_at;
  const auto at = [&](int64_t i) { return data + i / step * n * step + i % step; };
  const auto load = [&](int64_t i, double* to) {
    const Complex* line = at(i);
    for (int64_t k = 0; k < n; ++k) {
      to[k * kComplexStep + real_at] = line[k * step].real();
      to[k * kComplexStep + imaginary_at] = line[k * step].imag();
    }
  };
  const auto store = [&](int64_t i, const double* from) {
    Complex* line = at(i);
    for (int64_t k = 0; k < n; ++k) {
      const double* bin = from + k * kComplexStep;
      line[k * step] = Complex(bin[real_at], bin[imaginary_at]) * scale;
    }
  };
  const Fourier fourier(n, Fourier::Kind::kComplex);
  return transform_lines(run, fourier, lines.outer * step, load, store);
}

class RealFourier final : public OpKernel {
 public:
  bool inverse = false;
  int signal_dims = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(SignalTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    const int parts = inverse ? 1 : 0;
    if (x->rank() < signal_dims + parts || (inverse && x->dim(x->rank() - 1) != 2)) {
      return invalid_argument("X ", x->shape().to_string(), " must have ", signal_dims,
                              inverse ? " dims and a last one of 2" : " dims or more");
    }
    if (!inverse && x->rank() == kMaxRank) {
      return not_implemented("the result would have more than ", kMaxRank, " dims");
    }
    const int last = x->rank() - 1 - parts;
    FOLIO_TRY(const int64_t length, length_of(*x, last));
    Shape bins = x->shape();
    if (inverse) bins.erase(last + 1);
    bins[last] = length / 2 + 1;
    Shape out = bins;
    if (inverse) {
      out[last] = length;
    } else {
      out.push_back(2);
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), out));
    if (y->count() == 0) return Status::ok();
    // There are no more bins than elements in memory: no overflow.
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(bins.count()) * sizeof(Complex)));
    auto* spectrum = reinterpret_cast<Complex*>(memory);
    return dispatch_input(SignalTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return inverse ? backward(run, bins, length, x->data<T>(), spectrum, y->data_mut<T>())
                     : forward(run, bins, length, x->data<T>(), spectrum, y->data_mut<T>());
    });
  }

 private:
  // Of the signal along its last dim.
  Result<int64_t> length_of(const Tensor& x, int last) const {
    for (int axis = last - signal_dims + 1; axis <= last; ++axis) {
      const int64_t fewest = inverse && axis == last ? 2 : 1;
      if (x.dim(axis) >= fewest && x.dim(axis) <= kMaxFourier / 2) continue;
      return invalid_argument("X ", x.shape().to_string(), ": dim ", axis, " of the signal is ",
                              x.dim(axis), ", expected ", fewest, " to ", kMaxFourier / 2);
    }
    return inverse ? 2 * (x.dim(last) - 1) : x.dim(last);
  }

  // The signal's dims but the last one.
  Status other_dims(OpRun& run, const Shape& bins, Complex* spectrum) const {
    const int last = bins.rank() - 1;
    for (int axis = last - 1; axis > last - signal_dims; --axis) {
      const Lines lines{bins.product(0, axis), bins.product(axis + 1, bins.rank()), bins[axis]};
      FOLIO_RETURN_IF_ERROR(transform(run, lines, inverse, spectrum));
    }
    return Status::ok();
  }

  template <typename T>
  Status forward(OpRun& run, const Shape& bins, int64_t n, const T* x, Complex* spectrum,
                 T* y) const {
    using C = Compute<T>;
    const int64_t kept = n / 2 + 1;
    const auto load = [&](int64_t i, double* to) {
      for (int64_t k = 0; k < n; ++k) to[k * kLanes] = static_cast<C>(x[i * n + k]);
    };
    const auto store = [&](int64_t i, const double* from) {
      for (int64_t k = 0; k < kept; ++k) {
        const double* bin = from + k * kComplexStep;
        spectrum[i * kept + k] = {bin[0], bin[kLanes]};
      }
    };
    const Fourier fourier(n, Fourier::Kind::kFromReal);
    FOLIO_RETURN_IF_ERROR(transform_lines(run, fourier, bins.count() / kept, load, store));
    FOLIO_RETURN_IF_ERROR(other_dims(run, bins, spectrum));
    for (int64_t i = 0, end = bins.count(); i < end; ++i) {
      y[2 * i] = static_cast<T>(static_cast<C>(spectrum[i].real()));
      y[2 * i + 1] = static_cast<T>(static_cast<C>(spectrum[i].imag()));
    }
    return Status::ok();
  }

  template <typename T>
  Status backward(OpRun& run, const Shape& bins, int64_t n, const T* x, Complex* spectrum,
                  T* y) const {
    using C = Compute<T>;
    for (int64_t i = 0, end = bins.count(); i < end; ++i) {
      spectrum[i] = {static_cast<C>(x[2 * i]), static_cast<C>(x[2 * i + 1])};
    }
    FOLIO_RETURN_IF_ERROR(other_dims(run, bins, spectrum));
    const int64_t kept = n / 2 + 1;
    const auto load = [&](int64_t i, double* to) {
      for (int64_t k = 0; k < kept; ++k) {
        to[k * kComplexStep] = spectrum[i * kept + k].real();
        to[k * kComplexStep + kLanes] = spectrum[i * kept + k].imag();
      }
    };
    const auto store = [&](int64_t i, const double* from) {
      for (int64_t k = 0; k < n; ++k) {
        y[i * n + k] = static_cast<T>(static_cast<C>(from[k * kLanes] / static_cast<double>(n)));
      }
    };
    const Fourier fourier(n, Fourier::Kind::kToReal);
    return transform_lines(run, fourier, bins.count() / kept, load, store);
  }
};

Result<int> signal_dims_of(const Attributes& attrs, bool inverse) {
  // Rfft's has a default.
  auto given = inverse ? attrs.get_int("signal_ndim") : attrs.get_int("signal_ndim", 1);
  FOLIO_TRY(const int64_t dims, std::move(given));
  if (dims < 1 || dims > kMaxSignalDims) {
    return invalid_graph("signal_ndim is ", dims, ", expected 1 to ", kMaxSignalDims);
  }
  return static_cast<int>(dims);
}

template <bool kInverse>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<RealFourier>();
  kernel->inverse = kInverse;
  FOLIO_TRY(kernel->signal_dims, signal_dims_of(build.attrs(), kInverse));
  FOLIO_TRY(const int64_t normalized, build.attrs().get_int("normalized", 0));
  FOLIO_TRY(const int64_t onesided, build.attrs().get_int("onesided", 1));
  if (normalized != 0 || onesided != 1) {
    return not_implemented("normalized is ", normalized, ", onesided ", onesided,
                           "; expected 0 and 1");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool kInverse>
Status infer(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  const Dims* x = infer.dims_of(0);
  if (!x) return Status::ok();
  const size_t fewest = kInverse ? 2 : 1;
  if (x->size() < fewest) {
    return invalid_graph("X has rank ", x->size(), ", expected ", fewest, " or more");
  }
  Dims out = *x;
  if (kInverse) out.pop_back();
  const Dim last = out.back();
  out.back() = Dim::unknown();
  if (last.is_value() && last.value <= kMaxFourier) {
    const int64_t n = last.value;
    out.back() = Dim::of(kInverse ? std::max<int64_t>(0, 2 * (n - 1)) : n / 2 + 1);
  }
  if (!kInverse) out.push_back(Dim::of(2));
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_rfft(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "Rfft";
  def.infer = infer<false>;
  def.make = make<false>;
  registry.add(def);
  def.type = "Irfft";
  def.infer = infer<true>;
  def.make = make<true>;
  registry.add(def);
}

}  // namespace folio
