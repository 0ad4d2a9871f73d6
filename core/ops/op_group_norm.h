// What InstanceNormalization and GroupNormalization share, channels first or last.
//
// Owns:    plain numbers.
#pragma once

#include "core/ops/op.h"

namespace folio {

struct GroupNormAttrs {
  int64_t num_groups = 0;  // 0: each channel is an instance
  float epsilon = 1e-5F;

  int64_t groups(int64_t channels) const { return num_groups == 0 ? channels : num_groups; }
};

inline Result<GroupNormAttrs> parse_group_norm(const Attributes& attributes, bool is_instance) {
  GroupNormAttrs out;
  FOLIO_TRY(out.epsilon, attributes.get_float("epsilon", 1e-5F));
  if (is_instance) return out;
  FOLIO_TRY(out.num_groups, attributes.get_int("num_groups"));
  if (out.num_groups < 1) {
    return invalid_graph("attribute 'num_groups' is ", out.num_groups, ", expected >= 1");
  }
  return out;
}

inline Status check_channels(const GroupNormAttrs& attrs, int64_t channels) {
  if (attrs.num_groups == 0 || channels % attrs.num_groups == 0) return Status::ok();
  return invalid_argument(channels, " channels do not divide into ", attrs.num_groups, " groups");
}

// Scale and bias have so many numbers.
inline Status check_parameters(const Tensor& scale, const Tensor& bias, int64_t expected) {
  for (const Tensor* each : {&scale, &bias}) {
    if (each->rank() != 1 || each->count() != expected) {
      return invalid_argument("scale or bias has shape ", each->shape().to_string(), ", expected [",
                              expected, "]");
    }
  }
  return Status::ok();
}

inline Status infer_group_norm(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace folio
