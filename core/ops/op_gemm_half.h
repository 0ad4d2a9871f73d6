// Products with a right operand of float16 or bfloat16 (op_gemm.h): a thread widens a piece of it
// into scratch that stays in L1 or L2, multiplies all rows of its block by it, and goes on.
#pragma once

#include "core/ops/op_activation.h"
#include "core/ops/op_gemm.h"

namespace folio {

// As gemm_f32(); neither m nor n is 0. `function`: applied to C at the end, or null.
Status gemm_halves(OpRun& run, const FolioGemmF32& args, const GemmB& b,
                   const Activation* function = nullptr);

}  // namespace folio
