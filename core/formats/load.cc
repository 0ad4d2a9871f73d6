#include "core/formats/load.h"

#include <cstring>

#include "core/formats/onnx/onnx_loader.h"
#include "core/formats/ort/ort_loader.h"

namespace folio {

ModelFormat sniff_format(Bytes bytes) {
  const bool is_ort = bytes.size() >= 8 && std::memcmp(bytes.data() + 4, "ORTM", 4) == 0;
  return is_ort ? ModelFormat::kOrt : ModelFormat::kOnnx;
}

Result<ModelDef> load_model_def(Ref<ByteSource> source, const LoadOptions& options) {
  const ModelFormat format =
      options.format == ModelFormat::kAuto ? sniff_format(source->bytes()) : options.format;
  return format == ModelFormat::kOrt ? load_ort(std::move(source), options)
                                     : load_onnx(std::move(source), options);
}

}  // namespace folio
