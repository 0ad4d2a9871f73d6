// pack_model: makes the pack file of a model ahead of its sessions.
//
// Flow:    `folio pack` -> C API ModelPack -> here: the spine is run for each kernel level with a
//          library that writes. Sessions find the file beside the model, or in a store.
// Errors:  kIo when the file cannot be written; what loading gives. Nothing stands under the name
//          unless all is well.
#pragma once

#include "core/session/session.h"

namespace folio {

struct PackModelOptions {
  std::string path;                 // file to write; empty: MODEL.fpack, or `store`
  std::string store;                // folder of a pack store to add to instead
  std::vector<std::string> levels;  // kernel levels ("avx2", ...); empty: this machine's
  bool check = false;               // writes nothing: counts what the file lacks
};

struct PackModelResult {
  std::string path;
  uint64_t written_blobs = 0;
  uint64_t written_bytes = 0;
  uint64_t found_blobs = 0;    // check, store: were there already
  uint64_t missing_blobs = 0;  // check
};

Result<PackModelResult> pack_model(const Ref<ModelFile>& model, SessionOptions session,
                                   const PackModelOptions& options);

}  // namespace folio
