#include "core/ops/op_byte_pool.h"

#include <cstring>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMostRows = 32;
constexpr int64_t kFewBytes = 32;  // of a pixel: fewer than a vector's

struct BytePool {
  const FolioKernels& kernels;
  const Window& w;
  int64_t channels;
  int32_t is_signed;

  // Line `at` of a plane's outputs. line, wide: memory of [w.in[2], channels] each.
  void row(const uint8_t* plane, int64_t at, uint8_t* line, uint8_t* wide, uint8_t* y) const {
    const int64_t width = w.in[2] * channels;
    const WindowTaps d = taps_inside(w, 0, at / w.out[1]);
    const WindowTaps h = taps_inside(w, 1, at % w.out[1]);
    Rows rows{*this, width, line};
    for (int64_t kd = d.from; kd < d.to; ++kd) {
      const int64_t depth = d.first + kd * w.dilation[0];
      for (int64_t kh = h.from; kh < h.to; ++kh) {
        rows.add(plane + (depth * w.in[1] + h.first + kh * w.dilation[1]) * width);
      }
    }
    if (rows.count == 0) {
      std::fill_n(y, w.out[2] * channels, lowest());
      return;
    }
    along(rows.largest(), wide, y);
  }

 private:
  // Rows of n bytes whose largest is asked for.
  struct Rows {
    const BytePool& pool;
    int64_t n;
    uint8_t* to;
    int64_t count = 0;
    const uint8_t* at[kMostRows] = {};

    void add(const uint8_t* row) {
      if (count == kMostRows) at[0] = largest(), count = 1;
      at[count++] = row;
    }
    // In `to`, or of one row where it stands.
    const uint8_t* largest() const {
      if (count == 1) return at[0];
      pool.kernels.max_b8(n, count, at, pool.is_signed, to);
      return to;
    }
  };

  uint8_t lowest() const { return is_signed != 0 ? 0x80 : 0; }

  // The outputs [first, last) whose windows lie inside of a line are taken together; of every third
  // pixel or fewer that would be more work than one by one, if a pixel has some bytes.
  void along(const uint8_t* line, uint8_t* wide, uint8_t* y) const {
    const int64_t step = w.stride[2];
    const int64_t reach = (w.kernel[2] - 1) * w.dilation[2];
    const int64_t room = w.in[2] - reach + w.pad_begin[2];
    const int64_t last = room <= 0 ? 0 : std::min((room + step - 1) / step, w.out[2]);
    int64_t first = std::min((w.pad_begin[2] + step - 1) / step, last);
    if (step > 2 && channels >= kFewBytes) first = last;
    if (first < last) {
      const int64_t begin = first * step - w.pad_begin[2];
      const int64_t pixels = (last - first - 1) * step + 1;
      Rows rows{*this, pixels * channels, step == 1 ? y + first * channels : wide};
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
        rows.add(line + (begin + kw * w.dilation[2]) * channels);
      }
      const uint8_t* largest = rows.largest();
      if (step > 1 || w.kernel[2] == 1) pick(largest, last - first, y + first * channels);
    }
    for (int64_t v = 0; v < w.out[2]; ++v) {
      if (v == first) v = last;
      if (v < w.out[2]) one(line, v, y + v * channels);
    }
  }

  // Every stride-th pixel.
  void pick(const uint8_t* from, int64_t count, uint8_t* to) const {
    const int64_t step = w.stride[2] * channels;
    if (channels == 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
      return;
    }
    for (int64_t i = 0; i < count; ++i, from += step, to += channels) {
      std::memcpy(to, from, static_cast<size_t>(channels));
    }
  }

  void one(const uint8_t* line, int64_t v, uint8_t* y) const {
    const WindowTaps r = taps_inside(w, 2, v);
    Rows rows{*this, channels, y};
    for (int64_t kw = r.from; kw < r.to; ++kw) {
      rows.add(line + (r.first + kw * w.dilation[2]) * channels);
    }
    if (rows.count == 0) {
      std::fill_n(y, channels, lowest());
    } else if (const uint8_t* largest = rows.largest(); largest != y) {
      std::copy_n(largest, channels, y);
    }
  }
};

}  // namespace

Status max_pool_bytes(OpRun& run, const Window& w, int64_t planes, int64_t channels, bool is_signed,
                      const uint8_t* x, uint8_t* y) {
  const BytePool pool{run.kernels(), w, channels, is_signed ? 1 : 0};
  const int64_t width = w.in[2] * channels;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, static_cast<size_t>(width) * 2, &scratch));
  const int64_t lines = w.out[0] * w.out[1];
  const int64_t work = std::max<int64_t>(w.out[2] * w.kernel_count() * channels, 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / work);
  run.parallel().for_range(planes * lines, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t at = begin; at < end; ++at) {
      pool.row(x + at / lines * w.in_count() * channels, at % lines, block.data(),
               block.data() + width, y + at * w.out[2] * channels);
    }
  });
  return Status::ok();
}

}  // namespace folio
