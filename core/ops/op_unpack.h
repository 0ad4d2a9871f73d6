// Weights that a model file has in a kernel's layout only (folio pack --replace): what its nodes
// folio.Unpack say of them, and the way back to the weight as it was.
//
// Node:    blob (uint8 [bytes], an initializer) -> weight. Attributes, all required: layout
//          ("F32P16"), version (of the layout), dtype (ONNX's number), shape; matrix: k, n,
//          row_stride, col_stride, taps, groups (as PackRequest); checksum (XXH3-64 of the blob).
// Flow:    save/ writes the nodes; passes/take_packed_weights makes constants of them, whose recipe
//          is the node; plan/ hands the blob to operators that ask for just this layout; for all
//          others the operator (unpack.cc) moves the elements back.
// Owns:    plain values.
// Errors:  kInvalidGraph for whatever does not agree: a node says that each element of the weight
//          stands at one place of the blob, or it is refused.
#pragma once

#include "core/base/parallel.h"
#include "core/kernels/kernels.h"
#include "core/model/graph.h"
#include "core/prepack/pack_request.h"

namespace folio {

inline constexpr std::string_view kUnpackDomain = "folio";
inline constexpr std::string_view kUnpackType = "Unpack";
inline constexpr int kUnpackVersion = 1;

struct PackedWeight {
  DType dtype = DType::kUndefined;
  Shape shape;
  PackRequest form;       // without `fill`; `bytes` of the blob
  uint64_t checksum = 0;  // of the blob
};

// Whether a weight packed as `form` says is all there and can be had back: ok, or why not.
// `form.bytes` must be those of the layout.
Status check_packed_weight(const PackedWeight& weight);

std::vector<AttributeDef> packed_weight_attributes(const PackedWeight& weight);
Result<PackedWeight> parse_packed_weight(const Attributes& attributes);

// Whether a node or recipe is such a weight.
template <typename Operation>
bool is_unpack(const Operation& from) {
  return from.op_type == kUnpackType && from.domain == kUnpackDomain &&
         from.version == kUnpackVersion;
}

// The blob behind a constant that is such a weight and not unpacked yet; null: it is none.
const Initializer* packed_blob_of(const Initializer& constant);

// Whether a constant is made from others: neither its bytes nor such a weight stand in the file.
inline bool is_computed(const Initializer& constant) {
  return !constant.tensor && !packed_blob_of(constant);
}

// What an operator asks for is what the blob is.
bool is_same_form(const PackRequest& a, const PackRequest& b);

// Writes the elements of a weight that was checked. `blob` is aligned to 64; `out` as the dtype.
void unpack_weight(const FolioKernels& kernels, Parallel& parallel, const PackedWeight& weight,
                   const uint8_t* blob, uint8_t* out);

}  // namespace folio
