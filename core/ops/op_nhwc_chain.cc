#include "core/ops/op_nhwc_chain.h"

#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc_product.h"
#include "core/ops/op_nhwc_window.h"

namespace folio {
namespace {

constexpr size_t kFloat = sizeof(float);
// Floats of a chain that stay in L2 beside the rest, and lines of the output below which too many
// would be computed twice.
constexpr int64_t kHeldFloats = 80 * 1024;
constexpr int64_t kLeastLines = 4;

struct Lines {
  int64_t from = 0;
  int64_t to = 0;
  int64_t count() const { return to - from; }
};

bool is_filter(const NhwcStep& step) {
  return !step.args.weights ||
         is_depthwise_conv(step.args.weights->shape().dims(), step.sizes.group);
}

// A filter, or MaxPool, with what makes its image, what reads its output, or both.
class Chain {
 public:
  Chain(const OpRun& run, Span<const NhwcStep> steps)
      : step_(is_filter(steps[0]) ? steps[0] : steps[1]),
        last_step_(steps.back()),
        w_(step_.sizes.window),
        channels_(step_.sizes.group),
        filter_(step_.sizes, run.kernels(), step_.args) {
    const int threads = run.parallel().thread_count();
    if (&step_ != &steps[0]) {
      first_.emplace(steps[0].sizes, run.kernels(), steps[0].args, threads);
    }
    if (&step_ != &last_step_) {
      last_.emplace(last_step_.sizes, run.kernels(), last_step_.args, threads);
    }
    // Enough strips for all threads, unless too much would be computed twice. Bits are the same.
    const int64_t height = w_.out[1];
    const int64_t share = threads == 1 ? height : step_.sizes.batch * height / (2 * threads);
    strip_ = even_part(height, std::clamp(share, std::min(kLeastLines, height), height));
    int64_t block = strip_;
    while (block > 1 && ring_floats(block) + filtered_floats(block) > kHeldFloats) --block;
    block_ = even_part(strip_, block);
    lay_out();
  }

  int64_t strips() const { return step_.sizes.batch * per_image(); }
  size_t zero_bytes() const {
    return std::max(first_ ? first_->zero_bytes() : 0, last_ ? last_->zero_bytes() : 0);
  }
  size_t scratch_bytes() const { return scratch_bytes_; }

  void compute(int64_t strip, uint8_t* scratch, const float* zeros) const {
    Strip s;
    s.image = strip / per_image();
    s.scratch = scratch;
    s.zeros = zeros;
    const int64_t begin = strip % per_image() * strip_;
    const int64_t end = std::min(begin + strip_, w_.out[1]);
    for (int64_t at = begin; at < end; at += block_) {
      const Lines out{at, std::min(at + block_, end)};
      const int64_t line = s.image * w_.out[1] + at;
      const int64_t pixel = line * w_.out[2];
      if (!last_) {
        filter(out, step_.args.y + line * filter_.floats(), &s);
        continue;
      }
      auto* const filtered = reinterpret_cast<float*>(scratch + filtered_at_);
      filter(out, filtered, &s);
      last_->compute_rows(pixel, pixel + out.count() * w_.out[2], filtered,
                          last_step_.args.y + pixel * last_step_.args.y_pixel(last_step_.sizes),
                          scratch + rest_at_, zeros);
    }
  }

 private:
  // What a thread has.
  struct Strip {
    int64_t image = 0;
    uint8_t* scratch = nullptr;
    const float* zeros = nullptr;
    int64_t made = 0;  // lines of the filter's image before that are made, or not seen
  };

  int64_t per_image() const { return (w_.out[1] + strip_ - 1) / strip_; }

  // Lines of its image that so many of the filter's output see, at most.
  int64_t seen_count(int64_t lines) const {
    return std::min((lines - 1) * w_.stride[1] + span(w_, 1), w_.in[1]);
  }
  Lines seen(const Lines& out) const {
    Lines in;
    in.from = std::clamp<int64_t>(out.from * w_.stride[1] - w_.pad_begin[1], 0, w_.in[1]);
    in.to = std::clamp<int64_t>((out.to - 1) * w_.stride[1] - w_.pad_begin[1] + span(w_, 1),
                                in.from, w_.in[1]);
    return in;
  }

  int64_t ring_floats(int64_t lines) const {
    return first_ ? seen_count(lines) * w_.in[2] * channels_ : 0;
  }
  int64_t filtered_floats(int64_t lines) const { return last_ ? lines * filter_.floats() : 0; }

  void lay_out() {
    ring_ = seen_count(block_);
    filtered_at_ = align_up(static_cast<size_t>(ring_floats(block_)) * kFloat, 64);
    rest_at_ = filtered_at_ + align_up(static_cast<size_t>(filtered_floats(block_)) * kFloat, 64);
    scratch_bytes_ =
        rest_at_ + std::max({first_ ? first_->scratch_bytes() : 0,
                             last_ ? last_->scratch_bytes() : 0, NhwcRow::scratch_bytes(w_)});
  }

  // Lines `out` of the filter to y.
  void filter(const Lines& out, float* y, Strip* s) const {
    const float* x =
        first_ ? reinterpret_cast<const float*>(s->scratch)
               : step_.args.x + s->image * w_.in_count() * step_.args.x_pixel(step_.sizes);
    if (first_) make(seen(out), s);
    NhwcRow row(w_, channels_, step_.args.packed, s->scratch + rest_at_);
    if (first_) {
      row.set_ring(ring_);
    } else {
      row.set_x_step(step_.args.x_pixel(step_.sizes));
    }
    filter_.compute_to(row, x, out.from, out.to, y);
  }

  // What is not there yet of lines `in` of the filter's image.
  void make(const Lines& in, Strip* s) const {
    const int64_t floats = w_.in[2] * channels_;
    for (int64_t line = std::max(s->made, in.from); line < in.to;) {
      const int64_t lines = std::min(in.to - line, ring_ - line % ring_);
      const int64_t pixel = (s->image * w_.in[1] + line) * w_.in[2];
      auto* const to = reinterpret_cast<float*>(s->scratch) + line % ring_ * floats;
      first_->compute_rows(pixel, pixel + lines * w_.in[2], nullptr, to, s->scratch + rest_at_,
                           s->zeros);
      line += lines;
    }
    s->made = in.to;
  }

  const NhwcStep& step_;  // the filter
  const NhwcStep& last_step_;
  const Window& w_;
  int64_t channels_;
  WindowLines filter_;
  std::optional<NhwcProduct> first_;
  std::optional<NhwcProduct> last_;
  int64_t strip_ = 0;  // lines of the output, as are
  int64_t block_ = 0;  // these
  int64_t ring_ = 0;   // lines of the filter's image that a thread has, line h in place h % ring_
  // Bytes of scratch: that ring, the filter's output, and what one of them needs.
  size_t filtered_at_ = 0;
  size_t rest_at_ = 0;
  size_t scratch_bytes_ = 0;
};

// Whether so much stands between a step and the next, and one of them is a filter.
bool joins(const NhwcStep& step, const NhwcStep& next) {
  const auto floats = static_cast<uint64_t>(step.sizes.out.count());
  return is_filter(step) != is_filter(next) &&
         floats / std::max<uint64_t>(1, static_cast<uint64_t>(step.sizes.batch)) >=
             kFewestChainFloats;
}

Status run_joined(OpRun& run, Span<NhwcStep> steps) {
  if (steps.size() == 1) {
    const NhwcStep& step = steps[0];
    return (step.args.weights ? run_nhwc_conv : run_window_rows)(run, step.sizes, step.args);
  }
  for (NhwcStep& step : steps) {
    if (!step.args.weights) continue;
    FOLIO_RETURN_IF_ERROR(prepare_nhwc_conv(run, step.sizes, &step.args));
  }
  const Chain chain(run, {steps.data(), steps.size()});
  return run_nhwc_chunks(run, chain, chain.strips(), 1);
}

}  // namespace

Attributes attributes_of_step(const Attributes& chain, size_t step) {
  const std::string_view prefix = kChainSteps[step];
  Attributes attrs;
  for (const AttributeDef& attribute : chain.all()) {
    if (attribute.name.rfind(prefix, 0) != 0) continue;
    AttributeDef copy = attribute;
    copy.name.erase(0, prefix.size());
    attrs.set(std::move(copy));
  }
  return attrs;
}

void set_attributes_of_step(const Attributes& attrs, size_t step, Attributes* chain) {
  for (AttributeDef copy : attrs.all()) {
    copy.name.insert(0, kChainSteps[step]);
    chain->set(std::move(copy));
  }
}

bool fits_in_chain(const NhwcStep& step) {
  const bool is_product = step.sizes.group == 1 && is_pointwise(step.sizes.window);
  return is_filter(step) || (is_product && !step.args.is_planes);
}

Status run_nhwc_chain(OpRun& run, std::vector<NhwcStep> steps) {
  size_t begin = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_last = i + 1 == steps.size();
    const bool is_full = i > begin && is_filter(steps[begin]);
    if (!is_last && !is_full && joins(steps[i], steps[i + 1])) continue;
    if (!is_last) {
      const auto floats = static_cast<size_t>(steps[i].sizes.out.count());
      FOLIO_TRY(uint8_t * bytes, run.scratch(floats * kFloat));
      steps[i].args.y = reinterpret_cast<float*>(bytes);
      steps[i + 1].args.x = steps[i].args.y;
    }
    FOLIO_RETURN_IF_ERROR(run_joined(run, {steps.data() + begin, i + 1 - begin}));
    begin = i + 1;
  }
  return Status::ok();
}

}  // namespace folio
