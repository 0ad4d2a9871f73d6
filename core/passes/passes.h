// Passes: graph -> graph. Shapes are inferred, constants folded, what does nothing removed, nodes
// fused. docs/passes.md lists what each matches and leaves.
//
// Flow:    session/ calls run_passes between build_model and plan/.
// Owns:    nothing; they rewrite the Model they are given.
// Threads: one thread while loading.
// Errors:  what inference finds wrong (kInvalidGraph, with the node's label); unsupported
//          operators are all listed in one kUnsupportedOperator status.
#pragma once

#include <string>
#include <vector>

#include "core/ops/op_evaluate.h"

namespace folio {

// A node that this build cannot run, and why.
struct UnsupportedNode {
  std::string domain;
  std::string op_type;
  int version = 0;  // that is in force for the domain
  std::string name;
  std::string reason;
};
std::vector<UnsupportedNode> unsupported_nodes(const Model& model);

// "Foo (opset 17): node 'a', node 'b'" for each operator that this build lacks; empty: none.
std::vector<std::string> unsupported_operators(const Model& model);
Status check_supported(const Model& model);

// Whether inputs that an operator wants of one type, or of float (OpDef::one_type, float_inputs),
// are, where types are known, in the graph as it was read: passes may keep weights of 16 bits
// beside floats, and widen others.
Status check_types(const Graph& graph);

// Types, dims and small integer contents of every value, by the operators' own rules.
Status infer_shapes(Model* model);

// Nodes whose inputs are all constant become constants: small results at once, large ones as
// recipes that nobody computes before somebody reads them. Sets *changed. What would have more
// bytes than *budget has left stays a node, which a run computes.
// kKeep: constants that DequantizeLinear makes are left to fuse_qdq; kKeepHalves: and so are
// float16 constants in float32, which take twice the bytes in a file.
enum class Dequantized { kFold, kKeep, kKeepHalves };
Status fold_constants(Model* model, const Evaluator& evaluator, uint64_t* budget, bool* changed,
                      Dequantized dequantized = Dequantized::kFold);

// How many bytes of constants may be folded of a model as it was read, over all calls.
uint64_t fold_budget(const Model& model);

// Removes Identity, inference-mode Dropout and Casts to the type the value has already.
void remove_identities(Model* model, bool* changed);

// Removes nodes that name no output: nothing they do can be seen, so they need not be right either.
void drop_idle(Model* model);

// Removes nodes that no output needs.
void drop_dead(Model* model);

// Computes float16 in float32 where ONNX Runtime's CPU does; needs inferred types.
void widen_half(Model* model, bool* changed);

// Convolutions of bfloat16 as those of float, whose weights are packed; needs inferred types.
void widen_conv(Model* model, bool* changed);

// Removes and merges nodes that only move or rename elements.
void simplify_moves(Model* model, bool* changed);

// Conv reads the image of which Slices and a Concat made it phases; before fold_scales, which
// leaves weights without bytes; needs inferred types.
void fold_focus(Model* model, bool* changed);

// ConvTranspose of stride 1 becomes Conv; before fold_scales, which takes Conv in groups too.
void untranspose_convs(Model* model, bool* changed);

// ScatterElements reads indices that an Expand repeats for it; leaves nodes of Folio's own.
void keep_indices(Model* model, bool* changed);

// Conv, ConvTranspose and Gemm take in BatchNormalization and constants per channel.
void fold_scales(Model* model, bool* changed);

// What a fusion may leave: nodes that ONNX Runtime knows too, at the model's operator sets, or also
// Folio's own.
enum class Leaves { kPortable, kAll };

// Gelu, SiLU and HardSwish by parts become one node.
void fuse_functions(Model* model, bool* changed, Leaves leaves = Leaves::kAll);

// Layer and RMS normalization by parts become one node; fuse_skips: with the sum before.
void fuse_norms(Model* model, bool* changed);
void fuse_skips(Model* model, bool* changed, Leaves leaves = Leaves::kAll);

// Group normalization by parts becomes one node, which the model's operator set may not have.
void fuse_group_norms(Model* model, bool* changed);

// Attention by parts becomes one node; before fuse_matmul, which would take those parts.
void fuse_attention(Model* model, bool* changed);

// MatMul takes in transposes, factors, bias and function.
void fuse_matmul(Model* model, bool* changed, Leaves leaves = Leaves::kAll);

// Conv and Gemm take in the function that reads their result; needs inferred types.
void fuse_activations(Model* model, bool* changed, Leaves leaves = Leaves::kAll);

// Operators between DequantizeLinear and QuantizeLinear compute in bytes; needs inferred types.
void fuse_qdq(Model* model, bool* changed, Leaves leaves = Leaves::kAll);

// What is left between them, a function of one value, becomes a table.
void fuse_tables(Model* model, bool* changed);

// Products with weights of few bits, which DequantizeLinear widens, read the bits; before
// fold_constants widens them.
void fuse_blocks(Model* model, bool* changed);

// Products of dynamically quantized activations give floats at once.
void fuse_integer_matmul(Model* model, bool* changed);

// Convolutions of dynamically quantized images give floats at once; needs inferred types.
void fuse_integer_conv(Model* model, bool* changed);

// Convolutions of bytes take in the sum that reads their result; needs inferred types.
void fuse_byte_adds(Model* model, bool* changed);

// Convolutions, pooling and what stands between them compute with channels last; needs inferred
// types. Worth it only where weights are packed.
void channels_last(Model* model, bool* changed);

// Which convolutions compute by Winograd's algorithm where that is faster.
inline constexpr int64_t kWinogradTiles = 9;  // fewer read too many bytes of weights for each
struct WinogradChoice {
  int64_t fewest_tiles = kWinogradTiles;  // of 4 x 4 outputs of an image of floats; 0: no floats
  bool bytes = false;                     // those of bytes, too
};

// The last step of a load: the next ones, in their order.
void choose_forms(Model* model, const WinogradChoice& winograd);

// Convolutions with channels last compute by Winograd's algorithm where that is faster.
void choose_winograd(Model* model, const WinogradChoice& choice = {});

// Convolutions before and after a depthwise one become one step with it where what stands between
// them is large.
void chain_convs(Model* model);

// Convolutions with channels last take in the Add behind their function.
void add_behind(Model* model);

// Who reads channels of an image with channels last, which Split and Slice would copy, reads the
// image.
void read_channels(Model* model);

// Convolutions and what resizes images, with channels last, write where Concat would copy what they
// make; after chain_convs, which looks for convolutions that make images of their own.
void join_in_place(Model* model);

// Products read constant matrices that a Transpose would copy where they stand.
void read_transposed(Model* model);

// Operators that widen float16 and bfloat16 weights themselves read those instead of their copies
// in float32; no other pass knows such nodes.
void keep_halves(Model* model);

// Weights of products become bfloat16 (folio.float32_weights); as above.
void round_weights(Model* model);

// Weights that the file has in a kernel's layout only (ops/op_unpack.h) become constants, which
// unpacking makes. Not one of run_passes: right after a model was built, so that whoever looks at
// it sees weights.
Status take_packed_weights(Model* model);

// Nodes of com.microsoft.nchwc (passes/nchwc.h) become ordinary ones. `block`: 8, 16, or 0 for what
// the model lets one find out. Not one of run_passes: right after a model was built.
Status take_nchwc(Model* model, int64_t block);

// All of the above in their order.
enum class Optimize {
  kOff,       // inference only
  kBasic,     // to be saved: constants folded, what does nothing or is not needed removed
  kExtended,  // to be saved: also all fusions that leave portable nodes
  kUnpacked,  // to be run: without forms that need packed weights
  kAll,       // to be run
};
// To be saved, float16 stays for others to widen, unless they do not (ONNX Runtime with .ort
// files).
enum class Halves { kByLevel, kWiden };
Status run_passes(Model* model, const Evaluator& evaluator, Optimize level,
                  Halves halves = Halves::kByLevel);

}  // namespace folio
