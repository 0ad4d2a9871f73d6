#include "core/formats/ort/ort_loader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/base/utf8.h"
#include "core/formats/ort/ort_reader.h"

namespace folio {
namespace {

constexpr size_t kIdentifierAt = 4;
constexpr size_t kIdentifierBytes = 4;
constexpr size_t kMaxFileBytes = 0x7FFFFFFE;     // offsets have 32 bits, one the sign
constexpr size_t kAlignment = alignof(int64_t);  // of the widest scalar of the schema

// Tables in tables. A subgraph takes three (node, attribute, graph), a nested type two; what
// stands around them (session, model, shape, dim) fits in ten. One level of each above the
// reader's own limits, so that it is the reader who says what nests too deeply.
constexpr uint32_t kMaxTableDepth = 3 * (kMaxSubgraphDepth + 1) + 2 * (kMaxTypeDepth + 1) + 10;

// Bytes moved to where flatbuffers may read them.
class AlignedCopy final : public ByteSource {
 public:
  AlignedCopy(Ref<ByteSource> original, Ref<Buffer> copy)
      : original_(std::move(original)), copy_(std::move(copy)) {}

  Bytes bytes() const override { return {copy_->data(), copy_->bytes()}; }
  const std::string& name() const override { return original_->name(); }
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override {
    return original_->open_sibling(location);
  }

 private:
  Ref<ByteSource> original_;
  Ref<Buffer> copy_;
};

Result<Ref<ByteSource>> aligned(Ref<ByteSource> source) {
  const Bytes bytes = source->bytes();
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0) return source;
  FOLIO_TRY(Ref<Buffer> copy, allocate_buffer(bytes.size()));
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  return Ref<ByteSource>(make_ref<AlignedCopy>(std::move(source), std::move(copy)));
}

Status check_envelope(Bytes bytes) {
  if (bytes.size() < kIdentifierAt + kIdentifierBytes ||
      std::memcmp(bytes.data() + kIdentifierAt, ort_schema::InferenceSessionIdentifier(),
                  kIdentifierBytes) != 0) {
    return error(Code::kInvalidProtobuf, "not an ORT-format model: its ", bytes.size(),
                 " bytes do not have the identifier \"", ort_schema::InferenceSessionIdentifier(),
                 "\"");
  }
  // The verifier asserts this.
  if (bytes.size() > kMaxFileBytes) {
    return error(Code::kInvalidProtobuf, "an ORT-format model has at most ", kMaxFileBytes,
                 " bytes, this file has ", bytes.size());
  }
  return Status::ok();
}

Status verify(Bytes bytes) {
  flatbuffers::Verifier::Options limits;
  limits.max_depth = kMaxTableDepth;
  // Tables form a tree when ORT writes them: each takes at least 4 bytes and 4 where it is
  // referred to. Twice as many are let through for writers that share some; many more would be a
  // small file that unfolds without end.
  limits.max_tables = static_cast<uint32_t>(bytes.size() / 4);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), limits);
  if (!ort_schema::VerifyInferenceSessionBuffer(verifier)) {
    return error(Code::kInvalidProtobuf, "damaged ORT-format model: an offset or size in its ",
                 bytes.size(), " bytes is wrong, or tables nest deeper than ", kMaxTableDepth);
  }
  return Status::ok();
}

// "6", or "1.4.0" in files from before the format had versions of its own.
Status check_version(const flatbuffers::String* text) {
  if (!text) return invalid_graph("the model has no ort_version");
  const std::string_view version(text->data(), text->size());
  const char* end = version.data() + version.size();
  int major = 0;
  const auto [rest, problem] = std::from_chars(version.data(), end, major);
  const bool digits_and_dots = std::all_of(
      version.begin(), version.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  const bool too_large = problem == std::errc::result_out_of_range;
  if (!digits_and_dots || problem == std::errc::invalid_argument || (!too_large && major < 1)) {
    return invalid_graph("ort_version '", utf8_shortened(utf8_repaired(version), 100),
                         "' is not a version");
  }
  if (too_large || major > kMaxOrtVersion) {
    return not_implemented("the file has version ", utf8_shortened(version, 100),
                           " of the ORT format, supported are ", kMinOrtVersion, " to ",
                           kMaxOrtVersion);
  }
  return Status::ok();
}

Status read(const Ref<ByteSource>& source, const LoadOptions& options, ModelDef* out) {
  FOLIO_RETURN_IF_ERROR(check_envelope(source->bytes()));
  FOLIO_TRY(const Ref<ByteSource> usable, aligned(source));
  const Bytes bytes = usable->bytes();
  FOLIO_RETURN_IF_ERROR(verify(bytes));
  const auto* session = ort_schema::GetInferenceSession(bytes.data());
  FOLIO_RETURN_IF_ERROR(check_version(session->ort_version()));
  if (!session->model()) return invalid_graph("the file has no model");
  return OrtReader(usable, options).read_model(*session->model(), out);
}

}  // namespace

Result<ModelDef> load_ort(Ref<ByteSource> source, const LoadOptions& options) {
  ModelDef model;
  model.format = "ort";
  Status status = read(source, options, &model);
  if (!status.is_ok()) return std::move(status).with_context(source->name());
  return model;
}

}  // namespace folio
