// load_ort: an ORT-format file (flatbuffers, identifier "ORTM") becomes a ModelDef.
//
// Flow:    formats/load.h calls it after sniffing.
// Owns:    nothing; payload views keep the source alive.
// Threads: any number of loads at once.
// Errors:  as formats/load.h; messages start with the source's name.
#pragma once

#include "core/base/byte_source.h"
#include "core/base/status.h"
#include "core/model/model_def.h"

namespace folio {

Result<ModelDef> load_ort(Ref<ByteSource> source);

}  // namespace folio
