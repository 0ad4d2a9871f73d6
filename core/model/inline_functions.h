// Inlines calls of model-local functions (ONNX IR, "Functions") before names are resolved.
//
// Flow:    build_model calls it first; afterwards no node names a function.
// Errors:  kInvalidGraph for recursion, too much nesting or growth, or wrong argument counts.
#pragma once

#include "core/model/model_def.h"

namespace folio {

Status inline_functions(ModelDef* def);

}  // namespace folio
