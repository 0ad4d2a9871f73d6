// replace_weights: a model anew, with its large weights in a pack file and nowhere else.
//
//   the model as the file has it -> exported -> optimized as a session would
//   -> which weights operators take packed (plan/weight_uses), and which of those can be had back
//   -> OUT.fpack, without a name: packed weights in their layout, all others as they are
//   -> OUT, without a name: it names them (save/stored_weights)
//   -> OUT is opened and each of its constants compared, bit by bit, with the model's
//   -> both get their names, the pack file first
//
// Flow:    `folio pack --replace` -> C API ModelPack -> here.
// Memory:  one weight at a time, as packing and saving have it.
// Errors:  kInvalidArgument for what cannot be replaced; kIo, kNoSuchFile; kModelChanged; kFail
//          when a constant does not come back: then nothing was written. After an error the model
//          is as it was.
#pragma once

#include "core/session/session.h"

namespace folio {

struct ReplaceResult {
  std::string pack_path;
  uint64_t packed_weights = 0;  // in a kernel's layout
  uint64_t packed_bytes = 0;
  uint64_t raw_weights = 0;  // in the pack file as they are
  uint64_t raw_bytes = 0;
};

// Writes `path` (empty: the model's own) and `path`.fpack.
[[gnu::cold]] Result<ReplaceResult> replace_weights(const Ref<ModelFile>& model,
                                                    const SessionOptions& session,
                                                    const std::string& path);

}  // namespace folio
