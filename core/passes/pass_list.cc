#include "core/passes/passes.h"

namespace folio {
namespace {

// Folding feeds inference (a computed Reshape target gives dims) and the other way round; real
// models settle after two or three rounds, so the limit only guards against a pass that never does.
constexpr int kMaxRounds = 8;

// fuse_qdq leaves operators that the operator set must have.
constexpr int kBytesOpset = 12;

// What is saved stays as small as it was, and another machine may compute float16 itself.
bool is_for_saving(Optimize level) { return level < Optimize::kUnpacked; }

// In the order in which one makes what another looks for. Values keep the types they have.
void fuse(Model* model, Optimize level) {
  const Leaves leaves = is_for_saving(level) ? Leaves::kPortable : Leaves::kAll;
  bool changed = false;
  simplify_moves(model, &changed);
  // Without packed weights the image is gathered, and from phases faster; and those that are made
  // here would not stand in the file.
  if (level != Optimize::kUnpacked) {
    fold_focus(model, &changed);
    untranspose_convs(model, &changed);
  }
  fold_scales(model, &changed);
  fuse_functions(model, &changed, leaves);
  fuse_norms(model, &changed);
  if (leaves == Leaves::kAll) {
    keep_indices(model, &changed);
    fuse_group_norms(model, &changed);
    fuse_attention(model, &changed);
  }
  fuse_matmul(model, &changed, leaves);
  fuse_skips(model, &changed, leaves);
  fuse_activations(model, &changed, leaves);
  if (leaves == Leaves::kAll) {
    fuse_integer_conv(model, &changed);
    fuse_byte_adds(model, &changed);
  }
  if (level == Optimize::kAll) channels_last(model, &changed);
  if (changed) drop_dead(model);
}

// Quantized parts of the graph; then the constants that no operator takes as bytes.
Status use_bytes(Model* model, const Evaluator& evaluator, uint64_t* budget, Optimize level) {
  bool changed = false;
  if (is_for_saving(level) && model->opset_version("") < kBytesOpset) return Status::ok();
  fuse_qdq(model, &changed, is_for_saving(level) ? Leaves::kPortable : Leaves::kAll);
  fuse_integer_matmul(model, &changed);
  if (!is_for_saving(level)) {
    fuse_tables(model, &changed);
    fuse_blocks(model, &changed);
  }
  if (changed) drop_dead(model);  // what was fused leaves nodes whose results nobody wants computed
  if (!is_for_saving(level)) {
    FOLIO_RETURN_IF_ERROR(fold_constants(model, evaluator, budget, &changed));
  }
  if (!changed) return Status::ok();
  drop_dead(model);
  return infer_shapes(model);
}

}  // namespace

Status run_passes(Model* model, const Evaluator& evaluator, Optimize level, Halves halves) {
  const bool widen = !is_for_saving(level) || halves == Halves::kWiden;
  const Dequantized keep = is_for_saving(level) ? Dequantized::kKeepHalves : Dequantized::kKeep;
  FOLIO_RETURN_IF_ERROR(check_supported(*model));
  drop_idle(model);
  uint64_t budget = fold_budget(*model);
  bool changed = true;
  for (int round = 0; round < kMaxRounds && changed; ++round) {
    changed = false;
    FOLIO_RETURN_IF_ERROR(infer_shapes(model));
    if (round == 0) FOLIO_RETURN_IF_ERROR(check_types(model->graph));
    if (level == Optimize::kOff) return Status::ok();
    if (round == 0 && widen) {
      bool widened = false;
      widen_half(model, &widened);
      if (!is_for_saving(level)) widen_conv(model, &widened);
      if (widened) FOLIO_RETURN_IF_ERROR(infer_shapes(model));
    }
    remove_identities(model, &changed);
    FOLIO_RETURN_IF_ERROR(fold_constants(model, evaluator, &budget, &changed, keep));
    drop_dead(model);
  }
  if (changed) FOLIO_RETURN_IF_ERROR(infer_shapes(model));
  if (level == Optimize::kBasic) return Status::ok();
  FOLIO_RETURN_IF_ERROR(use_bytes(model, evaluator, &budget, level));
  fuse(model, level);
  return Status::ok();
}

void choose_forms(Model* model, const WinogradChoice& winograd) {
  if (winograd.fewest_tiles > 0 || winograd.bytes) choose_winograd(model, winograd);
  chain_convs(model);
  add_behind(model);
  read_channels(model);
  join_in_place(model);
  read_transposed(model);
  keep_halves(model);
}

}  // namespace folio
