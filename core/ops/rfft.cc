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

// Transforms of n elements each: load(line, in), then store(line, out).
template <typename Load, typename Store>
void transform_lines(OpRun& run, int64_t lines, int64_t n, const Load& load, const Store& store) {
  const Fourier fourier(n);
  const int64_t grain = std::max<int64_t>(1, 2048 / n);
  run.parallel().for_range(lines, grain, [&](int64_t begin, int64_t end) {
    std::vector<Complex> memory(static_cast<size_t>(2 * n) + fourier.work_size());
    Complex* in = memory.data();
    Complex* out = in + n;
    for (int64_t line = begin; line < end; ++line) {
      load(line, in);
      fourier.run(in, out, out + n);
      store(line, out);
    }
  });
}

// Complex lines in place. The inverse is the conjugate's transform, conjugated.
void transform(OpRun& run, const Lines& lines, bool inverse, Complex* data) {
  const int64_t n = lines.length;
  const int64_t step = lines.inner;
  const double scale = inverse ? 1.0 / static_cast<double>(n) : 1.0;
  const auto at = [&](int64_t i) { return data + i / step * n * step + i % step; };
  const auto load = [&](int64_t i, Complex* in) {
    const Complex* line = at(i);
    for (int64_t k = 0; k < n; ++k) in[k] = inverse ? std::conj(line[k * step]) : line[k * step];
  };
  const auto store = [&](int64_t i, const Complex* out) {
    Complex* line = at(i);
    for (int64_t k = 0; k < n; ++k) {
      line[k * step] = (inverse ? std::conj(out[k]) : out[k]) * scale;
    }
  };
  transform_lines(run, lines.outer * step, n, load, store);
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
    dispatch(SignalTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (inverse) {
        backward(run, bins, length, x->data<T>(), spectrum, y->data_mut<T>());
      } else {
        forward(run, bins, length, x->data<T>(), spectrum, y->data_mut<T>());
      }
    });
    return Status::ok();
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
  void other_dims(OpRun& run, const Shape& bins, Complex* spectrum) const {
    const int last = bins.rank() - 1;
    for (int axis = last - 1; axis > last - signal_dims; --axis) {
      const Lines lines{bins.product(0, axis), bins.product(axis + 1, bins.rank()), bins[axis]};
      transform(run, lines, inverse, spectrum);
    }
  }

  template <typename T>
  void forward(OpRun& run, const Shape& bins, int64_t n, const T* x, Complex* spectrum,
               T* y) const {
    using C = Compute<T>;
    const int64_t kept = n / 2 + 1;
    const auto load = [&](int64_t i, Complex* in) {
      for (int64_t k = 0; k < n; ++k) in[k] = static_cast<C>(x[i * n + k]);
    };
    const auto store = [&](int64_t i, const Complex* out) {
      std::copy(out, out + kept, spectrum + i * kept);
    };
    transform_lines(run, bins.count() / kept, n, load, store);
    other_dims(run, bins, spectrum);
    for (int64_t i = 0; i < bins.count(); ++i) {
      y[2 * i] = static_cast<T>(static_cast<C>(spectrum[i].real()));
      y[2 * i + 1] = static_cast<T>(static_cast<C>(spectrum[i].imag()));
    }
  }

  template <typename T>
  void backward(OpRun& run, const Shape& bins, int64_t n, const T* x, Complex* spectrum,
                T* y) const {
    using C = Compute<T>;
    for (int64_t i = 0; i < bins.count(); ++i) {
      spectrum[i] = {static_cast<C>(x[2 * i]), static_cast<C>(x[2 * i + 1])};
    }
    other_dims(run, bins, spectrum);
    const int64_t kept = n / 2 + 1;
    // Conjugated: the inverse by the forward transform. The other half mirrors this one.
    const auto load = [&](int64_t i, Complex* in) {
      const Complex* half = spectrum + i * kept;
      for (int64_t k = 0; k < n; ++k) in[k] = k < kept ? std::conj(half[k]) : half[n - k];
    };
    const auto store = [&](int64_t i, const Complex* out) {
      for (int64_t k = 0; k < n; ++k) {
        y[i * n + k] = static_cast<T>(static_cast<C>(out[k].real() / static_cast<double>(n)));
      }
    };
    transform_lines(run, bins.count() / kept, n, load, store);
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
