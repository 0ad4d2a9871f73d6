// DFT and STFT.
//
// Source: ONNX operator spec: DFT opsets 17 (attribute axis, default 1) and 20 (input axis, default
//         -2; onesided inverse), STFT opset 17.
// Shapes: DFT x [..., n, ..., 1 or 2] (real, or real and imaginary) -> [..., n', ..., 2]; the axis
//         is cut or filled with zeros to dft_length; onesided: n' = n / 2 + 1, or of an inverse
//         (which then gives reals) x holds the first half.
//         STFT signal [batch, length, 1 or 2] -> [batch, frames, bins, 2], frames of frame_length
//         every frame_step, times the window.
// Math:   sum over i of x[i] exp(-+ 2 pi j k i / n), the inverse divided by n. Lengths with small
//         factors by mixed radix; other factors cost their square (Bluestein above 64).
// Types:  float, double; float16, bfloat16 in double.
// Errors: kInvalidArgument for shapes, lengths below 1, axes that do not fit.
#include <algorithm>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_fourier.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<int64_t> scalar_input(const OpRun& run, int input) {
  FOLIO_TRY(const std::vector<int64_t> values, run.ints(input));
  if (values.size() != 1) {
    return invalid_argument("input ", input, " holds ", values.size(), " numbers, expected one");
  }
  return values[0];
}

// Element i of a line, with zeros past its end.
template <typename T>
Complex element(const T* x, int64_t at, int64_t parts) {
  using C = Compute<T>;
  const double real = static_cast<C>(x[at * parts]);
  return {real, parts == 2 ? static_cast<double>(static_cast<C>(x[at * parts + 1])) : 0.0};
}

template <typename T>
void store(Complex value, int64_t parts, T* y) {
  y[0] = static_cast<T>(static_cast<Compute<T>>(value.real()));
  if (parts == 2) y[1] = static_cast<T>(static_cast<Compute<T>>(value.imag()));
}

// ---------------------------------------------------------------- DFT

struct DftLine {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t in = 0;   // elements of x along the axis
  int64_t out = 0;  // of y
  int64_t length = 0;
  int64_t in_parts = 1;
  int64_t out_parts = 2;
};

class Dft final : public OpKernel {
 public:
  bool inverse = false;
  bool onesided = false;
  bool axis_is_input = false;
  int64_t axis = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    const int rank = x->rank();
    if (rank < 2 || x->dim(rank - 1) < 1 || x->dim(rank - 1) > 2) {
      return invalid_argument("X ", x->shape().to_string(), " must end in a dim of 1 or 2");
    }
    int64_t at = axis;
    if (axis_is_input && run.has_input(2)) {
      FOLIO_TRY(at, scalar_input(run, 2));
    }
    FOLIO_TRY(const int line_axis, normalize_axis(at, rank));
    if (line_axis == rank - 1) return invalid_argument("axis ", at, " is that of the parts");
    FOLIO_TRY(const DftLine line, line_of(run, *x, line_axis));
    Shape shape = x->shape();
    shape[line_axis] = line.out;
    shape[rank - 1] = line.out_parts;
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    const Fourier fourier(line.length);
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run_lines(run, fourier, line, x->data<T>(), y->data_mut<T>());
    });
    return Status::ok();
  }

 private:
  Result<DftLine> line_of(const OpRun& run, const Tensor& x, int line_axis) const {
    const int rank = x.rank();
    DftLine line;
    line.outer = x.shape().product(0, line_axis);
    line.inner = x.shape().product(line_axis + 1, rank - 1);
    line.in = x.dim(line_axis);
    line.in_parts = x.dim(rank - 1);
    const bool to_real = inverse && onesided;
    line.length = to_real ? 2 * (line.in - 1) : line.in;
    if (run.has_input(1)) {
      FOLIO_TRY(line.length, scalar_input(run, 1));
    }
    if (line.length < 1 || line.length > kMaxFourier) {
      return invalid_argument("the length of the transform is ", line.length);
    }
    if (onesided && !inverse && line.in_parts == 2) {
      return invalid_argument("onesided needs real X, found ", x.shape().to_string());
    }
    line.out = onesided && !inverse ? line.length / 2 + 1 : line.length;
    line.out_parts = to_real ? 1 : 2;
    return line;
  }

  template <typename T>
  void run_lines(OpRun& run, const Fourier& fourier, const DftLine& line, const T* x, T* y) const {
    const int64_t grain = std::max<int64_t>(1, 2048 / line.length);
    const int64_t n = line.length;
    run.parallel().for_range(line.outer * line.inner, grain, [&](int64_t begin, int64_t end) {
      std::vector<Complex> memory(static_cast<size_t>(2 * n) + fourier.work_size());
      Complex* in = memory.data();
      Complex* out = in + n;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / line.inner;
        const int64_t k = i % line.inner;
        load(line, x + (o * line.in * line.inner + k) * line.in_parts, in);
        fourier.run(in, out, out + n);
        T* to = y + (o * line.out * line.inner + k) * line.out_parts;
        const double scale = inverse ? 1.0 / static_cast<double>(n) : 1.0;
        for (int64_t j = 0; j < line.out; ++j) {
          const Complex value = (inverse ? std::conj(out[j]) : out[j]) * scale;
          store(value, line.out_parts, to + j * line.inner * line.out_parts);
        }
      }
    });
  }

  // The line with zeros behind it; an inverse's conjugated, so that one direction serves both.
  template <typename T>
  void load(const DftLine& line, const T* x, Complex* in) const {
    const int64_t used = std::min(line.in, line.length);
    for (int64_t i = 0; i < line.length; ++i) {
      in[i] = i < used ? element(x, i * line.inner, line.in_parts) : Complex();
    }
    if (!inverse) return;
    // The half that a onesided spectrum leaves out mirrors the other.
    for (int64_t i = line.length / 2 + 1; onesided && i < line.length; ++i) {
      in[i] = std::conj(in[line.length - i]);
    }
    for (int64_t i = 0; i < line.length; ++i) in[i] = std::conj(in[i]);
  }
};

Result<std::unique_ptr<OpKernel>> make_dft(OpBuild& build) {
  auto kernel = std::make_unique<Dft>();
  FOLIO_TRY(const int64_t inverse, build.attrs().get_int("inverse", 0));
  FOLIO_TRY(const int64_t onesided, build.attrs().get_int("onesided", 0));
  kernel->inverse = inverse != 0;
  kernel->onesided = onesided != 0;
  kernel->axis_is_input = build.version() >= 20;
  kernel->axis = -2;
  if (!kernel->axis_is_input) {
    FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", 1));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_dft(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, infer.dtype(0));
  if (!x || x->size() < 2) return Status::ok();
  FOLIO_TRY(const int64_t inverse, infer.attrs().get_int("inverse", 0));
  FOLIO_TRY(const int64_t onesided, infer.attrs().get_int("onesided", 0));
  int64_t axis = -2;
  bool known = true;
  if (infer.version() < 20) {
    FOLIO_TRY(axis, infer.attrs().get_int("axis", 1));
  } else if (infer.has_input(2)) {
    const auto given = infer.ints(2);
    known = given && given->size() == 1;
    if (known) axis = (*given)[0];
  }
  const auto rank = static_cast<int64_t>(x->size());
  Dims out = *x;
  if (!known || axis < -rank || axis >= rank) {
    for (size_t i = 0; i + 1 < out.size(); ++i) out[i] = Dim::unknown();
  } else if (infer.has_input(1) || onesided != 0) {
    out[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = Dim::unknown();
  }
  out.back() = Dim::of(inverse != 0 && onesided != 0 ? 1 : 2);
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

// ---------------------------------------------------------------- STFT

struct StftSizes {
  int64_t batch = 0, length = 0, parts = 1;
  int64_t frame = 0, step = 1, frames = 0, bins = 0;
};

// Inputs signal, frame_step, window, frame_length.
class Stft final : public OpKernel {
 public:
  bool onesided = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Tensor* window, run.optional_tensor(2, x->dtype()));
    FOLIO_TRY(const StftSizes s, sizes(run, *x, window));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), Shape{s.batch, s.frames, s.bins, 2}));
    if (y->count() == 0) return Status::ok();
    const Fourier fourier(s.frame);
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run_frames(run, fourier, s, x->data<T>(), window ? window->data<T>() : nullptr,
                 y->data_mut<T>());
    });
    return Status::ok();
  }

 private:
  Result<StftSizes> sizes(const OpRun& run, const Tensor& x, const Tensor* window) const {
    StftSizes s;
    if (x.rank() < 2 || x.rank() > 3 || (x.rank() == 3 && (x.dim(2) < 1 || x.dim(2) > 2))) {
      return invalid_argument("the signal ", x.shape().to_string(),
                              " must be [batch, length, 1 or 2]");
    }
    s.batch = x.dim(0);
    s.length = x.dim(1);
    s.parts = x.rank() == 3 ? x.dim(2) : 1;
    FOLIO_TRY(s.step, scalar_input(run, 1));
    if (window && window->rank() != 1) {
      return invalid_argument("the window ", window->shape().to_string(), " must have 1 dim");
    }
    s.frame = window ? window->count() : s.length;
    if (run.has_input(3)) {
      FOLIO_TRY(s.frame, scalar_input(run, 3));
    }
    if (window && window->count() != s.frame) {
      return invalid_argument("the window has ", window->count(), " entries, a frame ", s.frame);
    }
    if (s.step < 1 || s.frame < 1 || s.frame > s.length) {
      return invalid_argument("frames of ", s.frame, " every ", s.step, " do not fit a signal of ",
                              s.length);
    }
    s.frames = (s.length - s.frame) / s.step + 1;
    s.bins = onesided && s.parts == 1 ? s.frame / 2 + 1 : s.frame;
    return s;
  }

  template <typename T>
  static void run_frames(OpRun& run, const Fourier& fourier, const StftSizes& s, const T* x,
                         const T* window, T* y) {
    const int64_t grain = std::max<int64_t>(1, 2048 / s.frame);
    run.parallel().for_range(s.batch * s.frames, grain, [&](int64_t begin, int64_t end) {
      std::vector<Complex> memory(static_cast<size_t>(2 * s.frame) + fourier.work_size());
      Complex* in = memory.data();
      Complex* out = in + s.frame;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / s.frames * s.length + i % s.frames * s.step;
        for (int64_t j = 0; j < s.frame; ++j) {
          const double factor =
              window ? static_cast<double>(static_cast<Compute<T>>(window[j])) : 1;
          in[j] = element(x, start + j, s.parts) * factor;
        }
        fourier.run(in, out, out + s.frame);
        for (int64_t k = 0; k < s.bins; ++k) store(out[k], 2, y + (i * s.bins + k) * 2);
      }
    });
  }
};

Result<std::unique_ptr<OpKernel>> make_stft(OpBuild& build) {
  auto kernel = std::make_unique<Stft>();
  FOLIO_TRY(const int64_t onesided, build.attrs().get_int("onesided", 1));
  kernel->onesided = onesided != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_stft(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const Dim batch = x && !x->empty() ? (*x)[0] : Dim::unknown();
  infer.set_tensor(0, infer.dtype(0), Dims{batch, Dim::unknown(), Dim::unknown(), Dim::of(2)});
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_dft(OpRegistry& registry) {
  OpDef def;
  def.type = "DFT";
  def.since = 17;
  def.max_inputs = 3;
  def.infer = infer_dft;
  def.make = make_dft;
  registry.add(def);
  def.type = "STFT";
  def.min_inputs = 2;
  def.max_inputs = 4;
  def.infer = infer_stft;
  def.make = make_stft;
  registry.add(def);
}

}  // namespace folio
