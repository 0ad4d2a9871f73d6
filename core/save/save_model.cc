#include "core/save/save_model.h"

#include <algorithm>
#include <memory>

#include "core/formats/ort/ort_data_file.h"
#include "core/save/onnx_writer.h"
#include "core/save/ort_writer.h"

namespace folio {
namespace {

// Below this nothing is worth a file of its own when the format forces one.
constexpr uint64_t kForcedExternalFrom = 4096;
constexpr uint64_t kNothingExternal = ~uint64_t{0};

std::string folder_prefix(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string file_name(const std::string& path) { return path.substr(folder_prefix(path).size()); }

class Saver {
 public:
  Saver(const Evaluator& evaluator, const std::string& path, const SaveOptions& options)
      : evaluator_(evaluator), path_(path), options_(options) {}

  Result<SaveResult> save(const Model& model) {
    FOLIO_RETURN_IF_ERROR(check_options());
    const bool is_ort = format() == SaveFormat::kOrt;
    FOLIO_TRY(exported_, export_model(model, is_ort ? VersionsOf::kNodes : VersionsOf::kImports));
    FOLIO_RETURN_IF_ERROR(compute_strings());
    if (options_.progress && !options_.progress(0, payload_bytes())) {
      return error(Code::kCancelled, "saving was cancelled");
    }
    FOLIO_TRY(file_, NewFile::create(path_));
    reserve_digests();
    FOLIO_RETURN_IF_ERROR(is_ort ? write_ort() : write_onnx());
    FOLIO_RETURN_IF_ERROR(put_digests());
    FOLIO_RETURN_IF_ERROR(publish());
    return result(is_ort);
  }

 private:
  SaveFormat format() const { return save_format(options_.format, path_); }

  Status check_options() const {
    const std::string& name = options_.external_file;
    if (name.empty()) return Status::ok();
    if (name.find('/') != std::string::npos || name == "." || name == ".." ||
        name.find('\0') != std::string::npos) {
      return invalid_argument("external initializers go to a file beside the model: '", name,
                              "' is not the name of one");
    }
    if (name == file_name(path_)) {
      return invalid_argument("the model and its external initializers cannot both be '", name,
                              "'");
    }
    if (format() == SaveFormat::kOrt) {
      return invalid_argument("an .ort file has no external initializers; '", name,
                              "' is for .onnx");
    }
    return Status::ok();
  }

  // Strings stand among the structure: those that are recipes are computed before.
  Status compute_strings() {
    const PayloadWriter payloads(evaluator_, exported_->payloads, nullptr);
    for (Payload& payload : exported_->payloads) {
      if (!payload.is_string || payload.initializer->tensor) continue;
      auto computed = make_ref<Initializer>();
      computed->name = payload.initializer->name;
      FOLIO_TRY(computed->tensor, payloads.tensor(payload));
      computed->dtype = computed->tensor->dtype();
      computed->shape = computed->tensor->shape();
      payload.initializer = std::move(computed);
    }
    return Status::ok();
  }

  uint64_t payload_bytes() const {
    uint64_t sum = 0;
    for (const Payload& payload : exported_->payloads) sum += payload.bytes;
    return sum;
  }

  // ---- what the file says of its weights (core/prepack/declared_digests.h)

  void reserve_digests() {
    for (const Payload& payload : exported_->payloads) {
      declared_count_ += !payload.is_string && payload.bytes >= DeclaredDigests::kFrom;
    }
    if (declared_count_ == 0) return;
    exported_->def.metadata.emplace_back(DeclaredDigests::kKey,
                                         DeclaredDigests::placeholder(declared_count_));
  }

  // Both formats have the entry before the first large payload.
  Status put_digests() {
    if (declared_count_ == 0) return Status::ok();
    declared_.set_size(DeclaredDigests::File::kModel, file_->size());
    if (data_) declared_.set_size(DeclaredDigests::File::kData, data_->size());
    const std::string text = declared_.to_text(declared_count_);
    const std::string placeholder = DeclaredDigests::placeholder(declared_count_);
    FOLIO_TRY(const Ref<Buffer> written, file_->map(0, file_->size()));
    const std::string_view all(reinterpret_cast<const char*>(written->data()), written->bytes());
    const size_t at = all.find(placeholder);
    if (at == std::string_view::npos) return error(Code::kFail, "no place for the digests");
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    FOLIO_RETURN_IF_ERROR(file_->write_at(at, {bytes, text.size()}));
    signature_ = DeclaredDigests::signature(text);
    return Status::ok();
  }

  // ---- .onnx

  Status write_onnx() {
    std::string data_name = options_.external_file;
    uint64_t min_bytes = data_name.empty() ? kNothingExternal : options_.external_min_bytes;
    PayloadLayout external = lay_out(exported_->payloads, 0, min_bytes);
    auto writer = std::make_unique<OnnxWriter>(*exported_, external, data_name);
    writer->lay_out();
    if (writer->size() > options_.max_file_bytes && data_name.empty()) {
      data_name = file_name(path_) + ".data";
      external = lay_out(exported_->payloads, 0, kForcedExternalFrom);
      writer = std::make_unique<OnnxWriter>(*exported_, external, data_name);
      writer->lay_out();
    }
    PayloadWriter payloads(evaluator_, exported_->payloads, options_.progress);
    payloads.declare(&declared_, file_.get());
    if (!external.order.empty()) {
      FOLIO_TRY(data_, NewFile::create(folder_prefix(path_) + data_name));
      FOLIO_RETURN_IF_ERROR(payloads.write_all(external, data_.get()));
    }
    return writer->write(&payloads, file_.get());
  }

  // ---- .ort

  Status write_ort() {
    PayloadWriter payloads(evaluator_, exported_->payloads, options_.progress);
    payloads.declare(&declared_, file_.get());
    PayloadLayout external = lay_out(exported_->payloads, 0, kNothingExternal);
    std::string binding;
    // The structure must fit beside the constants; it is measured below, this decides.
    constexpr uint64_t kStructureReserve = 64 << 20;
    const uint64_t reserve = std::min(kStructureReserve, options_.max_file_bytes / 4);
    if (payload_bytes() > options_.max_file_bytes - reserve) {
      external = lay_out(exported_->payloads, OrtDataFile::kHeaderBytes, kForcedExternalFrom);
      FOLIO_RETURN_IF_ERROR(write_data_file(external, &payloads, &binding));
    }
    OrtFileWriter writer(*exported_, external, binding);
    FOLIO_RETURN_IF_ERROR(writer.build(payloads));
    return writer.write(&payloads, file_.get());
  }

  Status write_data_file(const PayloadLayout& layout, PayloadWriter* payloads,
                         std::string* binding) {
    FileBinding bound;
    bound.name = file_name(path_) + ".data";
    FOLIO_TRY(data_, NewFile::create(path_ + ".data"));
    const OrtDataFile::Header empty = {};
    FOLIO_RETURN_IF_ERROR(data_->write(empty));
    payloads->start_digest();
    FOLIO_RETURN_IF_ERROR(payloads->write_all(layout, data_.get()));
    bound.digest = payloads->take_digest();
    bound.size = data_->size();
    FOLIO_RETURN_IF_ERROR(data_->write_at(0, OrtDataFile::header(bound)));
    *binding = bound.to_text();
    return Status::ok();
  }

  // ----

  // Everything is on the disk before anything has a name.
  Status publish() {
    if (data_) FOLIO_RETURN_IF_ERROR(data_->finish());
    FOLIO_RETURN_IF_ERROR(file_->finish());
    if (declared_count_ > 0) {
      if (data_) data_->sign_time(signature_);
      file_->sign_time(signature_);
    }
    if (data_) FOLIO_RETURN_IF_ERROR(data_->publish());
    auto status = file_->publish();
    if (!status.is_ok() && data_) data_->retract();
    return status;
  }

  SaveResult result(bool is_ort) const {
    SaveResult out;
    out.format = is_ort ? "ort" : "onnx";
    out.file_bytes = file_->size();
    if (data_) {
      out.data_file = data_->path();
      out.data_bytes = data_->size();
    }
    out.nodes = exported_->def.graph.nodes.size();
    out.initializers = exported_->payloads.size();
    out.initializer_bytes = payload_bytes();
    return out;
  }

  const Evaluator& evaluator_;
  const std::string& path_;
  const SaveOptions& options_;
  std::unique_ptr<ExportedModel> exported_;
  std::unique_ptr<NewFile> file_;
  std::unique_ptr<NewFile> data_;
  size_t declared_count_ = 0;
  DeclaredDigests declared_;
  int64_t signature_ = 0;
};

}  // namespace

SaveFormat save_format(SaveFormat format, const std::string& path) {
  if (format != SaveFormat::kByName) return format;
  return path.ends_with(".ort") ? SaveFormat::kOrt : SaveFormat::kOnnx;
}

Result<SaveResult> save_model(const Model& model, const Evaluator& evaluator,
                              const std::string& path, const SaveOptions& options) {
  auto saved = Saver(evaluator, path, options).save(model);
  if (saved.is_ok()) return saved;
  return std::move(saved).take_status().with_context(cat("saving '", path, "'"));
}

}  // namespace folio
