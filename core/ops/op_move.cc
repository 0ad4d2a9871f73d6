#include "core/ops/op_move.h"

#include <utility>

namespace folio {
namespace {

// Runs of kBytes to 2 * kBytes, by their first and their last kBytes: no call, no loop.
template <int64_t kBytes>
void move_short_runs(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step,
                     int64_t bytes, int64_t count) {
  const int64_t last = bytes - kBytes;
  if (last == 0) {
    for (; count > 0; --count, to += to_step, from += from_step) std::memcpy(to, from, kBytes);
    return;
  }
  for (; count > 0; --count, to += to_step, from += from_step) {
    std::memcpy(to, from, kBytes);
    std::memcpy(to + last, from + last, kBytes);
  }
}

// Runs of more than kBytes, of which a call would take longer than the copy.
template <int64_t kBytes>
void move_middle_runs(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step,
                      int64_t bytes, int64_t count) {
  const int64_t last = bytes - kBytes;
  for (; count > 0; --count, to += to_step, from += from_step) {
    for (int64_t at = 0; at < last; at += kBytes) std::memcpy(to + at, from + at, kBytes);
    std::memcpy(to + last, from + last, kBytes);
  }
}

}  // namespace

void put_apart(int64_t n, const float* x, int64_t stride, float* y) {
  if (stride == 1) {
    std::copy_n(x, n, y);
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i * stride] = x[i];
}

void pick_every_second(int64_t n, const void* x, void* y) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  constexpr size_t kSize = sizeof(uint32_t);
  const auto* from = static_cast<const uint8_t*>(x);
  auto* to = static_cast<uint8_t*>(y);
  const auto load = [&](int64_t i) {
    Four four;
    std::memcpy(&four, from + static_cast<size_t>(i) * kSize, sizeof four);
    return four;
  };
  const auto store = [&](int64_t i, Four four) {
    std::memcpy(to + static_cast<size_t>(i) * kSize, &four, sizeof four);
  };
  int64_t i = 0;
  for (; i + 4 < n; i += 4) {
    store(i, __builtin_shufflevector(load(2 * i), load(2 * i + 4), 0, 2, 4, 6));
  }
  if (i > 0) {  // the last four, some of them once more
    const int64_t last = 2 * n - 9;
    return store(n - 4, __builtin_shufflevector(load(last), load(last + 4), 1, 3, 5, 7));
  }
  for (; i < n; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * kSize, from + static_cast<size_t>(2 * i) * kSize,
                kSize);
  }
}

void move_byte_runs(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step,
                    int64_t bytes, int64_t count) {
  if (bytes <= 0) return;
  if (to_step == bytes && from_step == bytes) bytes *= std::exchange(count, 1);
  constexpr int64_t kLongest = 256;  // of those without calls
  if (bytes > kLongest) {
    for (; count > 0; --count, to += to_step, from += from_step) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
    return;
  }
  const auto move = bytes > 64    ? move_middle_runs<32>
                    : bytes >= 32 ? move_short_runs<32>
                    : bytes >= 16 ? move_short_runs<16>
                    : bytes >= 8  ? move_short_runs<8>
                    : bytes >= 4  ? move_short_runs<4>
                    : bytes >= 2  ? move_short_runs<2>
                                  : move_short_runs<1>;
  move(to, to_step, from, from_step, bytes, count);
}

void unpack_bits(const Tensor& from, uint8_t* to) {
  const int bits = dtype_bits(from.dtype());
  const int per_byte = 8 / bits;
  const auto mask = static_cast<uint8_t>((1 << bits) - 1);
  const int64_t count = from.count();
  for (int64_t i = 0; i < count; ++i) {
    const auto shift = static_cast<int>(i % per_byte) * bits;
    to[i] = static_cast<uint8_t>(from.raw()[i / per_byte] >> shift & mask);
  }
}

void pack_bits(const uint8_t* from, Tensor* to) {
  const int bits = dtype_bits(to->dtype());
  const int per_byte = 8 / bits;
  const int64_t count = to->count();
  for (int64_t i = 0; i < count; i += per_byte) {
    unsigned byte = 0;
    for (int64_t j = i; j < std::min<int64_t>(i + per_byte, count); ++j) {
      byte |= static_cast<unsigned>(from[j]) << (static_cast<int>(j - i) * bits);
    }
    to->raw_mut()[i / per_byte] = static_cast<uint8_t>(byte);
  }
}

Result<std::vector<int>> normalize_axes(Span<const int64_t> axes, int rank) {
  std::vector<int> out;
  for (const int64_t given : axes) {
    FOLIO_TRY(const int axis, normalize_axis(given, rank));
    if (std::find(out.begin(), out.end(), axis) != out.end()) {
      return invalid_argument("axis ", given, " is given twice");
    }
    out.push_back(axis);
  }
  return out;
}

void row_strides(const Shape& shape, int64_t* strides) {
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

Status copy_to_output(OpRun& run, int i, const Tensor& source) {
  FOLIO_TRY(Tensor * out, run.output(i, source.dtype(), source.shape()));
  if (source.is_string()) {
    std::copy_n(source.data<std::string>(), source.count(), out->data_mut<std::string>());
  } else if (source.bytes() > 0 && source.raw() != out->raw()) {
    std::memcpy(out->raw_mut(), source.raw(), source.bytes());
  }
  return Status::ok();
}

void infer_same(OpInfer& infer, int from, int to) {
  infer.set_output(to, infer.input(from));
  if (auto data = infer.data(from)) infer.set_data(to, std::move(*data));
}

Result<std::optional<int64_t>> optional_axis(const Attributes& attrs) {
  if (!attrs.has("axis")) return std::optional<int64_t>();
  FOLIO_TRY(const int64_t axis, attrs.get_int("axis"));
  return std::optional<int64_t>(axis);
}

Status infer_selection(OpInfer& infer) {
  std::optional<Dims> out = Dims{Dim::unknown()};
  FOLIO_TRY(const std::optional<int64_t> given, optional_axis(infer.attrs()));
  if (given) {
    const Dims* x = infer.dims_of(0);
    out.reset();
    if (x) {
      FOLIO_TRY(const int axis, normalize_axis(*given, static_cast<int>(x->size())));
      out = *x;
      (*out)[static_cast<size_t>(axis)] = Dim::unknown();
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace folio
