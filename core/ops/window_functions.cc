// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: constants of audio models.
//
// Source: ONNX operator spec, opset 17.
// Shapes: size (scalar) -> [size]; MelWeightMatrix -> [dft_length / 2 + 1, mel bins].
// Math:   a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size (periodic) or size - 1.
//         Mel bins: triangles between neighbouring centres that lie on the mel scale (bins + 2
//         steps), mel = 2595 log10(1 + hz / 700), rounded down to spectrum bins.
// Types:  all numbers (output_datatype; default float); integers are truncated.
// Errors: kInvalidArgument for negative sizes and sizes that are no scalars.
#include <algorithm>
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr double kPi = 3.14159265358979323846;

Result<int64_t> size_input(const OpRun& run, int input) {
  FOLIO_TRY(const std::vector<int64_t> values, run.ints(input));
  if (values.size() != 1 || values[0] < 0) {
    return invalid_argument("input ", input, " holds ", values.size(),
                            " numbers or a negative one, expected one size");
  }
  return values[0];
}

Result<double> number_input(const OpRun& run, int input) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input));
  double value = 0;
  if (tensor->count() != 1) return invalid_argument("input ", input, " is no scalar");
  const bool known = dispatch(FloatTypes{}, tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<Compute<T>>(*tensor->data<T>());
  });
  return known ? Result<double>(value) : Result<double>(wrong_type(input, tensor->dtype()));
}

Result<DType> output_type(const Attributes& attrs) {
  FOLIO_TRY(const int64_t number, attrs.get_int("output_datatype", 1));
  if (!dtype_known(number) || !contains(NumericTypes{}, static_cast<DType>(number))) {
    return invalid_graph("attribute 'output_datatype' is ", number, ", which is no number type");
  }
  return static_cast<DType>(number);
}

template <typename T>
T narrow(double value) {
  if constexpr (std::is_integral_v<T>) {
    return saturating_cast<T>(value);
  } else {
    return static_cast<T>(static_cast<Compute<T>>(value));
  }
}

// ---------------------------------------------------------------- windows

struct Cosines {
  std::string_view type;
  double a0, a1, a2;
};

constexpr Cosines kCosines[] = {
    {"HannWindow", 0.5, 0.5, 0},
    {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
    {"BlackmanWindow", 0.42, 0.5, 0.08},
};

class Window final : public OpKernel {
 public:
  Cosines cosines{};
  bool periodic = true;
  DType dtype = DType::kFloat;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const int64_t size, size_input(run, 0));
    FOLIO_TRY(Tensor * y, run.output(0, dtype, Shape{size}));
    const auto n = static_cast<double>(std::max<int64_t>(periodic ? size : size - 1, 1));
    dispatch(NumericTypes{}, dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < size; ++i) {
        const double turn = 2 * kPi * static_cast<double>(i) / n;
        y->data_mut<T>()[i] =
            narrow<T>(cosines.a0 - cosines.a1 * std::cos(turn) + cosines.a2 * std::cos(2 * turn));
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_window(OpBuild& build) {
  auto kernel = std::make_unique<Window>();
  for (const Cosines& row : kCosines) {
    if (row.type == build.node().op_type) kernel->cosines = row;
  }
  FOLIO_TRY(const int64_t periodic, build.attrs().get_int("periodic", 1));
  FOLIO_TRY(kernel->dtype, output_type(build.attrs()));
  kernel->periodic = periodic != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_window(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, output_type(infer.attrs()));
  const auto data = infer.data(0);
  infer.set_tensor(0, dtype, Dims{data && data->size() == 1 ? (*data)[0] : Dim::unknown()});
  return Status::ok();
}

// ---------------------------------------------------------------- mel weights

double to_mel(double hz) { return 2595 * std::log10(1 + hz / 700); }
double to_hz(double mel) { return 700 * (std::pow(10.0, mel / 2595) - 1); }

// Inputs num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz.
class MelWeightMatrix final : public OpKernel {
 public:
  DType dtype = DType::kFloat;

  [[gnu::cold]] Status run(OpRun& run) const override {
    FOLIO_TRY(const int64_t bins, size_input(run, 0));
    FOLIO_TRY(const int64_t dft_length, size_input(run, 1));
    FOLIO_TRY(const int64_t rate, size_input(run, 2));
    FOLIO_TRY(const double lower, number_input(run, 3));
    FOLIO_TRY(const double upper, number_input(run, 4));
    if (rate == 0) return invalid_argument("the sample rate is 0");
    const int64_t spectrum = dft_length / 2 + 1;
    FOLIO_TRY(Tensor * y, run.output(0, dtype, Shape{spectrum, bins}));
    const double low = to_mel(lower);
    const double step = (to_mel(upper) - low) / static_cast<double>(bins + 2);
    const auto edge = [&](int64_t i) {
      const double hz = to_hz(low + step * static_cast<double>(i));
      const double at =
          std::floor(static_cast<double>(dft_length + 1) * hz / static_cast<double>(rate));
      return std::clamp<int64_t>(saturating_cast<int64_t>(at), 0, spectrum);
    };
    dispatch(NumericTypes{}, dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* out = y->data_mut<T>();
      std::fill_n(out, y->count(), T{});
      for (int64_t i = 0; i < bins && y->count() > 0; ++i) {
        const int64_t begin = edge(i);
        const int64_t centre = edge(i + 1);
        const int64_t end = edge(i + 2);
        const auto rise = static_cast<double>(centre - begin);
        if (rise == 0 && centre < spectrum) out[centre * bins + i] = narrow<T>(1);
        for (int64_t j = begin; rise > 0 && j <= std::min(centre, spectrum - 1); ++j) {
          out[j * bins + i] = narrow<T>(static_cast<double>(j - begin) / rise);
        }
        const auto fall = static_cast<double>(end - centre);
        for (int64_t j = centre; fall > 0 && j < end; ++j) {
          out[j * bins + i] = narrow<T>(static_cast<double>(end - j) / fall);
        }
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_mel(OpBuild& build) {
  auto kernel = std::make_unique<MelWeightMatrix>();
  FOLIO_TRY(kernel->dtype, output_type(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_mel(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, output_type(infer.attrs()));
  const auto bins = infer.data(0);
  const auto length = infer.data(1);
  Dims out(2, Dim::unknown());
  DimTable& table = infer.table();
  if (length && length->size() == 1) {
    out[0] = table.add(table.floor_div((*length)[0], Dim::of(2)), Dim::of(1));
  }
  if (bins && bins->size() == 1) out[1] = (*bins)[0];
  infer.set_tensor(0, dtype, std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_window_functions(OpRegistry& registry) {
  OpDef def;
  def.since = 17;
  for (const Cosines& row : kCosines) {
    def.type = row.type;
    def.infer = infer_window;
    def.make = make_window;
    registry.add(def);
  }
  def.type = "MelWeightMatrix";
  def.min_inputs = def.max_inputs = 5;
  def.infer = infer_mel;
  def.make = make_mel;
  registry.add(def);
}

}  // namespace folio
