#include "core/ops/op_nhwc_chain.h"

#include "core/base/checked_math.h"
#include "core/ops/op_nhwc_product.h"
#include "core/ops/op_nhwc_window.h"

namespace folio {
namespace {

constexpr size_t kFloat = sizeof(float);
// Floats between steps that stay in L2 beside the rest, and lines of the output below which too
// many would be computed twice.
constexpr int64_t kHeldFloats = 80 * 1024;
constexpr int64_t kLeastLines = 4;

// The largest of parts of nearly one size, of at most `most`.
int64_t even_part(int64_t all, int64_t most) {
  const int64_t parts = (all + most - 1) / most;
  return (all + parts - 1) / parts;
}

struct Lines {
  int64_t from = 0;
  int64_t to = 0;
  int64_t count() const { return to - from; }
};

bool is_filter(const NhwcStep& step) {
  return is_depthwise_conv(step.args.weights->shape().dims(), step.sizes.group);
}

// One convolution of a chain.
class Link {
 public:
  Link(const OpRun& run, const NhwcStep& step)
      : sizes_(step.sizes),
        args_(step.args),
        window_(step.sizes.window),
        reach_((window_.kernel[1] - 1) * window_.dilation[1] + 1) {
    if (is_filter(step)) {
      filter_.emplace(sizes_, run.kernels(), args_);
    } else {
      product_.emplace(sizes_, run.kernels(), args_, run.parallel().thread_count());
    }
  }

  int64_t line_floats() const { return window_.out[2] * sizes_.group * sizes_.c_out; }
  // Lines of the image before that so many of the output see, at most.
  int64_t seen_count(int64_t lines) const {
    return std::min((lines - 1) * window_.stride[1] + reach_, window_.in[1]);
  }
  Lines seen(const Lines& out) const {
    Lines in;
    in.from =
        std::clamp<int64_t>(out.from * window_.stride[1] - window_.pad_begin[1], 0, window_.in[1]);
    in.to = std::clamp<int64_t>((out.to - 1) * window_.stride[1] - window_.pad_begin[1] + reach_,
                                in.from, window_.in[1]);
    return in;
  }

  size_t zero_bytes() const { return product_ ? product_->zero_bytes() : 0; }
  size_t scratch_bytes() const {
    return product_ ? product_->scratch_bytes() : NhwcRow::scratch_bytes(window_);
  }

  // Lines `out` of an image to y. `x`: the lines that they see, null: the image where it stands.
  void compute(int64_t image, const Lines& out, const float* x, float* y, uint8_t* scratch,
               const float* zeros) const {
    if (product_) {
      const int64_t first = image * window_.out[1];
      product_->compute_rows((first + out.from) * window_.out[2], (first + out.to) * window_.out[2],
                             x, y, scratch, zeros);
      return;
    }
    const int64_t channels = sizes_.group;
    Window w = window_;
    if (x) {  // a smaller image, with less above it
      const Lines lines = seen(out);
      w.in[1] = lines.count();
      w.pad_begin[1] += lines.from;
    } else {
      x = args_.x + image * w.in_count() * channels;
    }
    const NhwcRow row(w, channels, args_.packed, scratch);
    filter_->compute_to(row, x, out.from, out.to, y);
  }

  // Where a line of the last one's output goes.
  float* output(int64_t image, int64_t line) const {
    return args_.y + (image * window_.out[1] + line) * line_floats();
  }

 private:
  const ConvSizes& sizes_;
  const NhwcConvArgs& args_;
  const Window& window_;
  int64_t reach_;
  std::optional<NhwcProduct> product_;
  std::optional<WindowLines> filter_;
};

class Chain {
 public:
  Chain(const OpRun& run, Span<const NhwcStep> steps)
      : batch_(steps.back().sizes.batch), height_(steps.back().sizes.window.out[1]) {
    for (const NhwcStep& step : steps) links_.emplace_back(run, step);
    // Enough strips for all threads, unless too much would be computed twice. Bits are the same.
    const int64_t threads = run.parallel().thread_count();
    const int64_t share = threads == 1 ? height_ : batch_ * height_ / (2 * threads);
    strip_ = even_part(height_, std::clamp(share, std::min(kLeastLines, height_), height_));
    int64_t block = strip_;
    while (block > 1 && held_floats(block) > kHeldFloats) --block;
    block_ = even_part(strip_, block);
    lay_out();
  }

  int64_t strips() const { return batch_ * per_image(); }
  size_t zero_bytes() const { return zero_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }

  void compute(int64_t strip, uint8_t* scratch, const float* zeros) const {
    Strip s;
    s.image = strip / per_image();
    s.scratch = scratch;
    s.zeros = zeros;
    const int64_t begin = strip % per_image() * strip_;
    const int64_t end = std::min(begin + strip_, height_);
    for (int64_t at = begin; at < end; at += block_) {
      const Lines out{at, std::min(at + block_, end)};
      make(links_.size() - 1, out, links_.back().output(s.image, at), &s);
    }
  }

 private:
  // What a thread has.
  struct Strip {
    int64_t image = 0;
    uint8_t* scratch = nullptr;
    const float* zeros = nullptr;
    Lines held[kMostSteps];  // of each one's output, in scratch
  };

  int64_t per_image() const { return (height_ + strip_ - 1) / strip_; }

  // body(link, lines of its output), for all but the last.
  template <typename Body>
  void for_each_held(int64_t block, const Body& body) const {
    for (size_t i = links_.size() - 1; i-- > 0;) {
      block = links_[i + 1].seen_count(block);
      body(i, block);
    }
  }

  int64_t held_floats(int64_t block) const {
    int64_t sum = 0;
    for_each_held(block, [&](size_t i, int64_t lines) { sum += lines * links_[i].line_floats(); });
    return sum;
  }

  void lay_out() {
    places_.resize(links_.size());
    size_t bytes = 0;
    for_each_held(block_, [&](size_t i, int64_t lines) {
      places_[i] = bytes;
      bytes += align_up(static_cast<size_t>(lines * links_[i].line_floats()) * kFloat, 64);
    });
    rest_ = bytes;
    size_t most = 0;
    for (const Link& link : links_) {
      most = std::max(most, link.scratch_bytes());
      zero_bytes_ = std::max(zero_bytes_, link.zero_bytes());
    }
    scratch_bytes_ = rest_ + most;
  }

  // Lines `out` of step i to y.
  void make(size_t i, const Lines& out, float* y, Strip* s) const {
    const float* x = nullptr;
    if (i > 0) x = hold(i - 1, links_[i].seen(out), s);
    links_[i].compute(s->image, out, x, y, s->scratch + rest_, s->zeros);
  }

  // Lines `wanted` of step i, which begin and end no earlier than those that were held before.
  const float* hold(size_t i, const Lines& wanted, Strip* s) const {
    auto* const lines = reinterpret_cast<float*>(s->scratch + places_[i]);
    const int64_t line = links_[i].line_floats();
    Lines& held = s->held[i];
    const int64_t kept = std::max<int64_t>(0, held.to - wanted.from);
    if (kept > 0 && wanted.from > held.from) {
      std::memmove(lines, lines + (wanted.from - held.from) * line,
                   static_cast<size_t>(kept * line) * kFloat);
    }
    held = wanted;
    if (kept < wanted.count()) {
      make(i, {wanted.from + kept, wanted.to}, lines + kept * line, s);
    }
    return lines;
  }

  std::vector<Link> links_;
  std::vector<size_t> places_;  // of each step's lines in scratch
  size_t rest_ = 0;
  size_t scratch_bytes_ = 0;
  size_t zero_bytes_ = 0;
  int64_t batch_;
  int64_t height_;  // of the output
  int64_t strip_;   // lines of it, as are
  int64_t block_;   // these
};

// Whether so much stands between a step and the next.
bool joins(const NhwcStep& step) {
  const auto floats = static_cast<uint64_t>(step.sizes.out.count());
  return floats / std::max<uint64_t>(1, static_cast<uint64_t>(step.sizes.batch)) >=
         kFewestChainFloats;
}

Status run_joined(OpRun& run, Span<NhwcStep> steps) {
  if (steps.size() == 1) return run_nhwc_conv(run, steps[0].sizes, steps[0].args);
  for (NhwcStep& step : steps) {
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
    if (!is_last && joins(steps[i])) continue;
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
