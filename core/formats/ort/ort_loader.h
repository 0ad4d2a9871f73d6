// load_ort: an ORT-format file (flatbuffers, identifier "ORTM") becomes a ModelDef.
//
// Flow:    formats/load.h calls it. The whole file goes through the flatbuffers verifier with our
//          limits, then ort_reader takes it apart: ort_reader.cc the model, graphs and nodes,
//          ort_types, ort_tensors and ort_attributes what their names say.
// Owns:    nothing; payload views keep the source alive.
// Threads: any number of loads at once.
// Errors:  as formats/load.h: kInvalidProtobuf when the verifier refuses the bytes, kNotImplemented
//          for newer format versions and for data outside the file.
// Bytes:   a source whose bytes do not start at a multiple of 8 (only memory given by a caller can
//          be so) is copied whole, since flatbuffers reads scalars in place.
#pragma once

#include "core/formats/load.h"

namespace folio {

// Versions of the format that are read; very old files name a release of ORT, "1.4.0", instead.
inline constexpr int kMinOrtVersion = 1;
inline constexpr int kMaxOrtVersion = 6;

// Of `options`, max_nodes and max_dense_bytes matter here.
Result<ModelDef> load_ort(Ref<ByteSource> source, const LoadOptions& options = {});

}  // namespace folio
