#include "core/ops/op_byte_cache.h"

#include <algorithm>

#include "core/ops/op_quantized.h"

namespace folio {
namespace {

using Int8 = QuantizedType<DType::kInt8, 8, true>;
using Int4 = QuantizedType<DType::kInt4, 4, true>;
constexpr int32_t kMiddle = 8;  // of codes of 4 bits as they are held

// A scale's strides over batch, head and element of a row.
struct Scales {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, element = 0;

  static Result<Scales> of(const Tensor& tensor, const Heads& rows) {
    const Shape& s = tensor.shape();
    const int64_t wanted[4] = {rows.batch, rows.heads, 1, rows.size};
    int64_t strides[4] = {0, 0, 0, 0};
    int64_t stride = 1;
    bool fits = s.rank() <= 4;
    for (int i = 0; fits && i < s.rank(); ++i) {
      const int64_t dim = s[s.rank() - 1 - i];
      fits = dim == 1 || dim == wanted[3 - i];
      if (dim != 1) strides[3 - i] = stride;
      stride *= dim;
    }
    if (!fits) {
      return invalid_argument("the scale of a cache has shape ", s.to_string(),
                              ", expected one that broadcasts to [", rows.batch, ",", rows.heads,
                              ",1,", rows.size, "]");
    }
    return Scales{tensor.data<float>(), strides[0], strides[1], strides[3]};
  }

  float at(int64_t b, int64_t h, int64_t i) const {
    return data[b * batch + h * head + i * element];
  }
};

// One row of numbers, each with its scale, as codes.
template <typename Scale>
void write_row(int bits, const float* from, int64_t size, const Scale& scale, uint8_t* codes) {
  if (bits == 8) {
    for (int64_t i = 0; i < size; ++i) {
      codes[i] = static_cast<uint8_t>(quantize_one<Int8>(from[i], scale(i), 0));
    }
    return;
  }
  for (int64_t i = 0; i + 1 < size; i += 2) {
    const int32_t low = quantize_one<Int4>(from[i], scale(i), 0) + kMiddle;
    const int32_t high = quantize_one<Int4>(from[i + 1], scale(i + 1), 0) + kMiddle;
    codes[i / 2] = static_cast<uint8_t>(low | high << 4);
  }
}

template <typename Scale>
void read_row(int bits, const uint8_t* codes, int64_t size, const Scale& scale, float* to) {
  if (bits == 8) {
    for (int64_t i = 0; i < size; ++i) {
      to[i] = static_cast<float>(static_cast<int8_t>(codes[i])) * scale(i);
    }
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    const int32_t code = codes[i / 2] >> i % 2 * 4 & 15;
    to[i] = static_cast<float>(code - kMiddle) * scale(i);
  }
}

}  // namespace

Result<Heads> append_bytes(OpRun& run, const ByteCache& cache, const Heads& fresh) {
  FOLIO_TRY(const Scales scales, Scales::of(*cache.scale, fresh));
  const int64_t size = fresh.size;
  const int64_t row = size * cache.bits / 8;
  const int64_t capacity = cache.present->dim(2);
  const int64_t past_capacity = cache.past ? cache.past->dim(2) : 0;
  const bool in_place = cache.past && cache.past->raw() == cache.present->raw();
  FOLIO_TRY(float* floats, scratch_floats(run, fresh.batch * fresh.heads * cache.total * size));
  uint8_t* const present = cache.present->raw_mut();
  run.parallel().for_range(fresh.batch * fresh.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / fresh.heads;
      const int64_t h = at % fresh.heads;
      const auto scale = [&](int64_t i) { return scales.at(b, h, i); };
      const int64_t rows = cache.past ? cache.past_rows[static_cast<size_t>(b)] : 0;
      uint8_t* codes = present + at * capacity * row;
      if (!in_place) {
        if (rows > 0) std::copy_n(cache.past->raw() + at * past_capacity * row, rows * row, codes);
        std::fill(codes + (rows + fresh.seq) * row, codes + capacity * row, uint8_t{0});
      }
      for (int64_t s = 0; s < fresh.seq; ++s) {
        const float* from = fresh.at(b, h) + s * fresh.seq_stride;
        write_row(cache.bits, from, size, scale, codes + (rows + s) * row);
      }
      float* to = floats + at * cache.total * size;
      for (int64_t s = 0; s < cache.total; ++s) {
        read_row(cache.bits, codes + s * row, size, scale, to + s * size);
      }
    }
  });
  return Heads::head_major(floats, fresh.batch, fresh.heads, cache.total, size);
}

}  // namespace folio
