// The masks of com.microsoft's attention operators as a ScoreRule.
//
// Source: ONNX Runtime ContribOperators: Attention, MultiHeadAttention (mask_index,
//         key_padding_mask, attention_bias, unidirectional).
// Math:   masked keys get mask_filter_value added, later keys of a unidirectional operator the
//         lowest float; attention_bias is added as it is. So a row that masks everything still
//         has weights, as there.
// Owns:   plain views.
#pragma once

#include "core/ops/op_attention.h"

namespace folio {

class PaddingRule final : public ScoreRule {
 public:
  bool causal = false;
  float filter = -10000.0F;
  int64_t past = 0;

  // mask [B], [2 * B] or [3 * B + 2]: ends (and starts) of sequences; [B, T], [B, S, T] or
  // [B, 1, M, M]: ones and zeros.
  Status bind_mask(const OpRun& run, int input, const Heads& q, int64_t total);
  // bias [B or 1, H or 1, S, T]
  Status bind_bias(OpRun& run, int input, const Heads& q, int64_t total);

  KeyRange visible(int64_t b, int64_t i) const override;
  void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const override;

 private:
  const int32_t* ends_ = nullptr;    // [B]
  const int32_t* starts_ = nullptr;  // [B]
  const int32_t* flags_ = nullptr;
  int64_t flags_batch_ = 0;
  int64_t flags_row_ = 0;
  const float* bias_ = nullptr;
  int64_t bias_batch_ = 0;
  int64_t bias_head_ = 0;
  int64_t bias_row_ = 0;
};

}  // namespace folio
