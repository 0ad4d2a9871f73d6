#include "core/formats/load.h"

#include <cstring>

#include "core/formats/onnx/onnx_loader.h"
#include "core/formats/ort/ort_loader.h"

namespace folio {

ModelFormat sniff_format(Bytes bytes) {
  const bool is_ort = bytes.size() >= 8 && std::memcmp(bytes.data() + 4, "ORTM", 4) == 0;
  return is_ort ? ModelFormat::kOrt : ModelFormat::kOnnx;
}

namespace {

class SparseReads {
 public:
  explicit SparseReads(Ref<ByteSource> source) : source_(std::move(source)) {
    source_->expect_sparse_reads(true);
  }
  ~SparseReads() { source_->expect_sparse_reads(false); }
  SparseReads(const SparseReads&) = delete;
  SparseReads& operator=(const SparseReads&) = delete;

 private:
  const Ref<ByteSource> source_;
};

}  // namespace

Result<ModelDef> load_model_def(Ref<ByteSource> source, const LoadOptions& options) {
  const ModelFormat format =
      options.format == ModelFormat::kAuto ? sniff_format(source->bytes()) : options.format;
  const SparseReads sparse(source);
  return format == ModelFormat::kOrt ? load_ort(source, options) : load_onnx(source, options);
}

}  // namespace folio
