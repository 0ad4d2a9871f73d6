#include "core/ops/op_byte_cache.h"

#include <algorithm>

#include "core/ops/op_quantized.h"

namespace folio {
namespace {

using Int8 = QuantizedType<DType::kInt8, 8, true>;

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

}  // namespace

Result<Heads> append_bytes(OpRun& run, const ByteCache& cache, const Heads& fresh) {
  FOLIO_TRY(const Scales scales, Scales::of(*cache.scale, fresh));
  const int64_t size = fresh.size;
  const int64_t capacity = cache.present->dim(2);
  const int64_t past_capacity = cache.past ? cache.past->dim(2) : 0;
  const bool in_place = cache.past && cache.past->raw() == cache.present->raw();
  FOLIO_TRY(float* floats, scratch_floats(run, fresh.batch * fresh.heads * cache.total * size));
  uint8_t* const present = cache.present->raw_mut();
  run.parallel().for_range(fresh.batch * fresh.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / fresh.heads;
      const int64_t h = at % fresh.heads;
      const int64_t rows = cache.past ? cache.past_rows[static_cast<size_t>(b)] : 0;
      uint8_t* codes = present + at * capacity * size;
      if (!in_place) {
        if (rows > 0)
          std::copy_n(cache.past->raw() + at * past_capacity * size, rows * size, codes);
        std::fill(codes + (rows + fresh.seq) * size, codes + capacity * size, uint8_t{0});
      }
      for (int64_t s = 0; s < fresh.seq; ++s) {
        const float* from = fresh.at(b, h) + s * fresh.seq_stride;
        for (int64_t i = 0; i < size; ++i) {
          const int32_t code = quantize_one<Int8>(from[i], scales.at(b, h, i), 0);
          codes[(rows + s) * size + i] = static_cast<uint8_t>(code);
        }
      }
      float* to = floats + at * cache.total * size;
      for (int64_t s = 0; s < cache.total; ++s) {
        for (int64_t i = 0; i < size; ++i) {
          const int64_t from = s * size + i;
          to[from] = static_cast<float>(static_cast<int8_t>(codes[from])) * scales.at(b, h, i);
        }
      }
    }
  });
  return Heads::head_major(floats, fresh.batch, fresh.heads, cache.total, size);
}

}  // namespace folio
