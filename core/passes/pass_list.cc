#include "core/passes/passes.h"

namespace folio {
namespace {

// Folding feeds inference (a computed Reshape target gives dims) and the other way round; real
// models settle after two or three rounds, so the limit only guards against a pass that never does.
constexpr int kMaxRounds = 8;

// In the order in which one makes what another looks for. Values keep the types they have.
void fuse(Model* model, Optimize level) {
  bool changed = false;
  simplify_moves(model, &changed);
  fold_scales(model, &changed);
  fuse_functions(model, &changed);
  fuse_norms(model, &changed);
  fuse_attention(model, &changed);
  fuse_matmul(model, &changed);
  fuse_skips(model, &changed);
  fuse_activations(model, &changed);
  if (level == Optimize::kAll) channels_last(model, &changed);
  if (changed) drop_dead(model);
}

// Quantized parts of the graph; then the constants that no operator takes as bytes.
Status use_bytes(Model* model, const Evaluator& evaluator) {
  bool changed = false;
  fuse_qdq(model, &changed);
  fuse_integer_matmul(model, &changed);
  FOLIO_RETURN_IF_ERROR(fold_constants(model, evaluator, &changed));
  if (!changed) return Status::ok();
  drop_dead(model);
  return infer_shapes(model);
}

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
  FOLIO_RETURN_IF_ERROR(use_bytes(model, evaluator));
  fuse(model, level);
  return Status::ok();
}

}  // namespace folio
