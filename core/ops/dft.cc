// DFT and STFT.
//
// Source: ONNX operator spec: DFT opsets 17 (attribute axis, default 1) and 20 (input axis, default
//         -2; onesided inverse), STFT opset 17.
// Shapes: DFT x [..., n, ..., 1 or 2] (real, or real and imaginary) -> [..., n', ..., 2]; the axis
//         is cut or filled with zeros to dft_length; onesided: n' = n / 2 + 1, or of an inverse
//         (which then gives reals) x holds the first half.
//         STFT signal [batch, length, 1 or 2] -> [batch, frames, bins, 2], frames of frame_length
//         every frame_step, times the window.
// Math:   sum over i of x[i] exp(-+ 2 pi j k i / n), the inverse divided by n; real lines at half
//         the work (op_fourier.h). The bins above n / 2 of a real line mirror those below.
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

template <typename T>
double number(T value) {
  return static_cast<double>(static_cast<Compute<T>>(value));
}
template <typename T>
T rounded(double value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

constexpr int64_t kLanes = Fourier::kLanes;
constexpr int64_t kComplexStep = Fourier::kComplexStep;

// How a lane's bins become numbers of y.
struct BinRule {
  int64_t count = 0;  // bins of y
  int64_t step = 2;   // numbers of y from bin to bin
  // Where the parts stand in a bin of the lane, and what they are multiplied by.
  int64_t real_at = 0;
  int64_t imaginary_at = kLanes;
  double real_scale = 1;
  double imaginary_scale = 1;
};

template <typename T>
void store_bins(const BinRule& rule, const Fourier& fourier, const double* from, T* y) {
  const int64_t n = fourier.length();
  const int64_t given = fourier.kind() == Fourier::Kind::kFromReal ? n / 2 + 1 : n;
  for (int64_t k = 0; k < std::min(given, rule.count); ++k) {
    const double* bin = from + k * kComplexStep;
    y[k * rule.step] = rounded<T>(bin[rule.real_at] * rule.real_scale);
    y[k * rule.step + 1] = rounded<T>(bin[rule.imaginary_at] * rule.imaginary_scale);
  }
  for (int64_t k = given; k < rule.count; ++k) {
    const double* bin = from + (n - k) * kComplexStep;
    y[k * rule.step] = rounded<T>(bin[rule.real_at] * rule.real_scale);
    y[k * rule.step + 1] = rounded<T>(-bin[rule.imaginary_at] * rule.imaginary_scale);
  }
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
    const Fourier fourier(line.length, kind_of(line));
    return dispatch_input(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return run_lines(run, fourier, line, x->data<T>(), y->data_mut<T>());
    });
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

  static Fourier::Kind kind_of(const DftLine& line) {
    if (line.out_parts == 1) return Fourier::Kind::kToReal;
    return line.in_parts == 1 ? Fourier::Kind::kFromReal : Fourier::Kind::kComplex;
  }

  // An inverse is the transform of exchanged parts, exchanged; of real lines the conjugate.
  template <typename T>
  Status run_lines(OpRun& run, const Fourier& fourier, const DftLine& line, const T* x,
                   T* y) const {
    const bool is_exchanged = inverse && fourier.kind() == Fourier::Kind::kComplex;
    const double scale = inverse ? 1.0 / static_cast<double>(line.length) : 1.0;
    BinRule rule{line.out, line.inner * line.out_parts};
    rule.real_at = is_exchanged ? kLanes : 0;
    rule.imaginary_at = kLanes - rule.real_at;
    rule.real_scale = scale;
    rule.imaginary_scale = inverse && !is_exchanged ? -scale : scale;
    const auto load = [&](int64_t i, double* to) {
      const int64_t at = i / line.inner * line.in * line.inner + i % line.inner;
      const T* from = x + at * line.in_parts;
      if (fourier.kind() == Fourier::Kind::kFromReal) {
        load_real(line, from, to);
      } else {
        load_complex(line, rule, from, to);
      }
    };
    const auto store = [&](int64_t i, const double* from) {
      const int64_t at = i / line.inner * line.out * line.inner + i % line.inner;
      T* to = y + at * line.out_parts;
      if (fourier.kind() == Fourier::Kind::kToReal) {
        for (int64_t k = 0; k < line.out; ++k) {
          to[k * line.inner] = rounded<T>(from[k * kLanes] * scale);
        }
      } else {
        store_bins(rule, fourier, from, to);
      }
    };
    return transform_lines(run, fourier, line.outer * line.inner, load, store);
  }

  // A line with zeros behind it.
  template <typename T>
  static void load_real(const DftLine& line, const T* x, double* to) {
    const int64_t used = std::min(line.in, line.length);
    for (int64_t i = 0; i < used; ++i) to[i * kLanes] = number(x[i * line.inner]);
    for (int64_t i = used; i < line.length; ++i) to[i * kLanes] = 0;
  }

  // The same of complex numbers; what gives a real line needs the bins up to half its length.
  template <typename T>
  static void load_complex(const DftLine& line, const BinRule& rule, const T* x, double* to) {
    const int64_t count = line.out_parts == 1 ? line.length / 2 + 1 : line.length;
    const int64_t used = std::min(line.in, count);
    for (int64_t i = 0; i < used; ++i) {
      const T* from = x + i * line.inner * line.in_parts;
      to[i * kComplexStep + rule.real_at] = number(from[0]);
      to[i * kComplexStep + rule.imaginary_at] = line.in_parts == 2 ? number(from[1]) : 0.0;
    }
    for (int64_t i = used; i < count; ++i) {
      to[i * kComplexStep] = to[i * kComplexStep + kLanes] = 0;
    }
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
    const Fourier fourier(s.frame,
                          s.parts == 1 ? Fourier::Kind::kFromReal : Fourier::Kind::kComplex);
    return dispatch_input(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return run_frames(run, fourier, s, x->data<T>(), window ? window->data<T>() : nullptr,
                        y->data_mut<T>());
    });
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
  static Status run_frames(OpRun& run, const Fourier& fourier, const StftSizes& s, const T* x,
                           const T* window, T* y) {
    std::vector<double> factors(static_cast<size_t>(s.frame), 1.0);
    for (int64_t i = 0; window && i < s.frame; ++i) {
      factors[static_cast<size_t>(i)] = number(window[i]);
    }
    const BinRule rule{s.bins};
    const auto load = [&](int64_t i, double* to) {
      const T* from = x + (i / s.frames * s.length + i % s.frames * s.step) * s.parts;
      const double* factor = factors.data();
      if (s.parts == 1) {
        for (int64_t k = 0; k < s.frame; ++k) to[k * kLanes] = number(from[k]) * factor[k];
        return;
      }
      for (int64_t k = 0; k < s.frame; ++k) {
        to[k * kComplexStep] = number(from[2 * k]) * factor[k];
        to[k * kComplexStep + kLanes] = number(from[2 * k + 1]) * factor[k];
      }
    };
    const auto store = [&](int64_t i, const double* from) {
      store_bins(rule, fourier, from, y + i * s.bins * 2);
    };
    return transform_lines(run, fourier, s.batch * s.frames, load, store);
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
  def.one_type = 0b101;
  registry.add(def);
}

}  // namespace folio
