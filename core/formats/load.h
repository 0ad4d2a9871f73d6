// load_model_def: from the bytes of a model file to a ModelDef, whatever its format.
//
// Flow:    os/ or session/ give a ByteSource -> sniffed here -> formats/onnx or formats/ort ->
//          model/build_model verifies across nodes.
// Owns:    nothing; the ModelDef's tensors keep the source (and its siblings) alive.
// Threads: any number of loads at once; one load stays on its thread.
// Errors:  kInvalidProtobuf (not a model, or damaged bytes), kInvalidGraph (well-formed bytes that
//          make no sense), kNotImplemented, kNoSuchFile (external data), kModelLoadCancelled.
//          Messages start with the source's name.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/byte_source.h"
#include "core/base/status.h"
#include "core/model/model_def.h"

namespace folio {

enum class ModelFormat : uint8_t { kAuto, kOnnx, kOrt };

struct LoadOptions {
  ModelFormat format = ModelFormat::kAuto;

  // Called now and then while an .onnx is parsed, with how far the parser is in the file (payloads
  // are passed over, not read). Returning false ends the load with kModelLoadCancelled. It must
  // not throw. May be empty.
  std::function<bool(uint64_t bytes_done, uint64_t bytes_total)> on_progress;

  // A value of the caller's for the initializer of that name, or null. One that the model keeps in
  // an external file is taken from here instead, and the file need not exist. May be empty.
  std::function<const Tensor*(const std::string& name)> given;

  // Limits on what a hostile file may make us allocate.
  size_t max_nodes = kMaxNodes;                  // of the whole model, subgraphs included
  uint64_t max_dense_bytes = uint64_t{1} << 30;  // all sparse tensors of the model, made dense
};

// kOrt when bytes 4 to 7 are the identifier "ORTM" of an ORT-format flatbuffer, else kOnnx (which
// has no magic number: only parsing tells).
ModelFormat sniff_format(Bytes bytes);

Result<ModelDef> load_model_def(Ref<ByteSource> source, const LoadOptions& options);

}  // namespace folio
