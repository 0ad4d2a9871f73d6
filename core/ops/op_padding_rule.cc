#include "core/ops/op_padding_rule.h"

#include <algorithm>
#include <limits>

namespace folio {

Status PaddingRule::bind_mask(const OpRun& run, int input, const Heads& q, int64_t total) {
  if (!run.has_input(input)) return Status::ok();
  FOLIO_TRY(const Tensor* mask, run.tensor(input, DType::kInt32));
  const Shape& s = mask->shape();
  const auto* data = mask->data<int32_t>();
  const int64_t batch = q.batch;
  if (s.rank() == 1 && (s[0] == batch || s[0] == 2 * batch || s[0] == 3 * batch + 2)) {
    ends_ = data;
    starts_ = s[0] == 2 * batch ? data + batch : nullptr;
    return Status::ok();
  }
  if (s == Shape{batch, total}) {
    flags_ = data;
    flags_batch_ = total;
    return Status::ok();
  }
  if (s == Shape{batch, q.seq, total}) {
    flags_ = data;
    flags_batch_ = q.seq * total;
    flags_row_ = total;
    return Status::ok();
  }
  const bool square = s.rank() == 4 && s[0] == batch && s[1] == 1 && s[2] == s[3] &&
                      s[2] >= past + q.seq && s[3] >= total;
  if (square) {
    flags_ = data + past * s[3];
    flags_batch_ = s[2] * s[3];
    flags_row_ = s[3];
    return Status::ok();
  }
  return invalid_argument("mask has shape ", s.to_string(), ", which does not fit batch ", batch,
                          ", ", q.seq, " queries and ", total, " keys");
}

Status PaddingRule::bind_bias(OpRun& run, int input, const Heads& q, int64_t total) {
  if (!run.has_input(input)) return Status::ok();
  FOLIO_TRY(const Tensor* bias, run.tensor(input));
  const Shape& s = bias->shape();
  const bool fits = s.rank() == 4 && (s[0] == 1 || s[0] == q.batch) &&
                    (s[1] == 1 || s[1] == q.heads) && s[2] == q.seq && s[3] >= total;
  if (!fits) {
    return invalid_argument("attention_bias ", s.to_string(), " does not broadcast to [", q.batch,
                            ",", q.heads, ",", q.seq, ",", total, "]");
  }
  FOLIO_TRY(bias_, floats_of(run, *bias));
  bias_row_ = s[3];
  bias_head_ = s[1] == 1 ? 0 : s[2] * s[3];
  bias_batch_ = s[0] == 1 ? 0 : s[1] * s[2] * s[3];
  return Status::ok();
}

KeyRange PaddingRule::visible(int64_t, int64_t i) const {
  KeyRange keys{0, std::numeric_limits<int64_t>::max()};
  if (causal && !flags_ && !ends_) keys.end = past + i + 1;
  return keys;
}

void PaddingRule::add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const {
  if (bias_) {
    const float* from = bias_ + b * bias_batch_ + h * bias_head_ + i * bias_row_;
    for (int64_t j = keys.begin; j < keys.end; ++j) row[j] += from[j];
  }
  if (!flags_ && !ends_) return;
  // Causal keys get one constant in place of the mask's, not on top of it.
  const int64_t later = causal ? std::min(past + i + 1, keys.end) : keys.end;
  if (flags_) {
    const int32_t* from = flags_ + b * flags_batch_ + i * flags_row_;
    for (int64_t j = keys.begin; j < later; ++j) row[j] += from[j] > 0 ? 0.0F : filter;
  } else {
    const int64_t start = starts_ ? starts_[b] : 0;
    for (int64_t j = keys.begin; j < later; ++j) {
      if (j < start || j >= ends_[b]) row[j] += filter;
    }
  }
  for (int64_t j = later; j < keys.end; ++j) row[j] += std::numeric_limits<float>::lowest();
}

}  // namespace folio
