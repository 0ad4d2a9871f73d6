// Inlines calls of model-local functions (ONNX IR, "Functions") before names are resolved.
//
// Flow:    build_model calls it first; afterwards no node names a function.
// Errors:  kInvalidGraph for recursion, too much nesting or growth, or wrong argument counts;
//          kModelLoadCancelled.
#pragma once

#include <functional>

#include "core/model/model_def.h"

namespace folio {

// `goes_on` is asked now and then, since a short file can ask for a lot of copies; false ends it.
// May be empty.
Status inline_functions(ModelDef* def, const std::function<bool()>& goes_on);

}  // namespace folio
