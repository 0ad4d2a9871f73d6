#include "core/ops/op_byte_pool.h"

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMostRows = 32;

struct BytePool {
  const FolioKernels& kernels;
  const Window& w;
  int32_t is_signed;

  uint8_t lowest() const { return is_signed != 0 ? 0x80 : 0; }

  // Lines of one row of outputs, and of its windows' width: [w.in[2]] each.
  void row(const uint8_t* plane, int64_t depth, int64_t height, uint8_t* line, uint8_t* wide,
           uint8_t* y) const {
    const WindowTaps d = taps_inside(w, 0, depth);
    const WindowTaps h = taps_inside(w, 1, height);
    if (d.from >= d.to || h.from >= h.to) {
      std::fill_n(y, w.out[2], lowest());
      return;
    }
    const uint8_t* rows[kMostRows];
    int64_t count = 0;
    for (int64_t kd = d.from; kd < d.to; ++kd) {
      for (int64_t kh = h.from; kh < h.to; ++kh) {
        if (count == kMostRows) count = take(w.in[2], count, rows, line);
        const int64_t at = (d.first + kd * w.dilation[0]) * w.in[1] + h.first + kh * w.dilation[1];
        rows[count++] = plane + at * w.in[2];
      }
    }
    take(w.in[2], count, rows, line);
    // wide[i]: the largest of a whole window that begins at i.
    const int64_t reach = (w.kernel[2] - 1) * w.dilation[2];
    if (w.in[2] > reach) {
      count = 0;
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
        if (count == kMostRows) count = take(w.in[2] - reach, count, rows, wide);
        rows[count++] = line + kw * w.dilation[2];
      }
      take(w.in[2] - reach, count, rows, wide);
    }
    for (int64_t v = 0; v < w.out[2]; ++v) {
      const int64_t first = v * w.stride[2] - w.pad_begin[2];
      y[v] = first >= 0 && first + reach < w.in[2] ? wide[first] : at_edge(line, v);
    }
  }

 private:
  int64_t take(int64_t n, int64_t count, const uint8_t** rows, uint8_t* y) const {
    kernels.max_b8(n, count, rows, is_signed, y);
    rows[0] = y;
    return 1;
  }

  uint8_t at_edge(const uint8_t* line, int64_t v) const {
    const WindowTaps r = taps_inside(w, 2, v);
    uint8_t best = lowest();
    for (int64_t kw = r.from; kw < r.to; ++kw) {
      const uint8_t value = line[r.first + kw * w.dilation[2]];
      if ((value ^ lowest()) > (best ^ lowest())) best = value;
    }
    return best;
  }
};

}  // namespace

Status max_pool_bytes(OpRun& run, const Window& w, int64_t planes, bool is_signed, const uint8_t* x,
                      uint8_t* y) {
  const BytePool pool{run.kernels(), w, is_signed ? 1 : 0};
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, static_cast<size_t>(w.in[2]) * 2, &scratch));
  const int64_t work = std::max<int64_t>(w.out_count() * w.kernel_count(), 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / work);
  run.parallel().for_range(planes, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t at = 0; at < w.out[0] * w.out[1]; ++at) {
        pool.row(x + p * w.in_count(), at / w.out[1], at % w.out[1], block.data(),
                 block.data() + w.in[2], y + p * w.out_count() + at * w.out[2]);
      }
    }
  });
  return Status::ok();
}

}  // namespace folio
