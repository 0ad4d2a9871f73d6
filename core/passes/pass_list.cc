#include "core/passes/passes.h"

namespace folio {
namespace {

// Folding feeds inference (a computed Reshape target gives dims) and the other way round; real
// models settle after two or three rounds, so the limit only guards against a pass that never does.
constexpr int kMaxRounds = 8;

}  // namespace

Status run_passes(Model* model, const Evaluator& evaluator, Optimize level) {
  FOLIO_RETURN_IF_ERROR(check_supported(*model));
  bool changed = true;
  for (int round = 0; round < kMaxRounds && changed; ++round) {
    changed = false;
    FOLIO_RETURN_IF_ERROR(infer_shapes(model));
    if (level == Optimize::kOff) return Status::ok();
    if (round == 0) {
      bool widened = false;
      widen_half(model, &widened);
      if (widened) FOLIO_RETURN_IF_ERROR(infer_shapes(model));
    }
    remove_identities(model, &changed);
    FOLIO_RETURN_IF_ERROR(fold_constants(model, evaluator, &changed, Dequantized::kKeep));
    drop_dead(model);
  }
  if (changed) FOLIO_RETURN_IF_ERROR(infer_shapes(model));
  bool fused = false;
  fuse_qdq(model, &fused);
  fuse_integer_matmul(model, &fused);
  // Constants that no operator takes as bytes.
  bool folded = false;
  FOLIO_RETURN_IF_ERROR(fold_constants(model, evaluator, &folded));
  if (fused || folded) {
    drop_dead(model);
    FOLIO_RETURN_IF_ERROR(infer_shapes(model));
  }
  fused = false;
  fuse_activations(model, &fused);  // values keep the types they have
  if (fused) drop_dead(model);
  return Status::ok();
}

}  // namespace folio
