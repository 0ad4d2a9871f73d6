// build_model: turns a parsed ModelDef into a verified Model.
//
// Flow:    after this returns ok, names are resolved, every value has one producer, graphs are
//          acyclic and in topological order, functions are inlined and Constant nodes are
//          initializers: nothing below checks these again.
// Owns:    the Model owns its structure; payloads stay with their keepers.
// Errors:  kInvalidGraph naming the node and value; limits of model_def.h are enforced here.
//          kModelLoadCancelled.
#pragma once

#include <functional>
#include <memory>

#include "core/model/graph.h"

namespace folio {

// `free_dims` fixes named dims (free dimension overrides).
using FreeDims = std::vector<std::pair<std::string, int64_t>>;

// `goes_on` is asked now and then where that may take long; false ends it. May be empty.
Result<std::unique_ptr<Model>> build_model(ModelDef def, const FreeDims& free_dims,
                                           const std::function<bool()>& goes_on = {});

}  // namespace folio
