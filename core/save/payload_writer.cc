#include "core/save/payload_writer.h"

#include <xxhash.h>  // header only: XXH_INLINE_ALL is set by the build

#include <algorithm>
#include <new>
#include <unordered_map>

namespace folio {

struct PayloadWriter::Digest {
  XXH3_state_t* state = XXH3_createState();
  ~Digest() { XXH3_freeState(state); }
};

namespace {

// A copy of a recipe and those it needs: computing it leaves the model's own alone. What has bytes
// is shared.
Ref<Initializer> copy_recipes(const Ref<Initializer>& root) {
  std::unordered_map<const Initializer*, Ref<Initializer>> copies;
  const auto copy = [&](const Ref<Initializer>& from) {
    if (!from || from->tensor) return from;
    Ref<Initializer>& to = copies[from.get()];
    if (to) return to;
    to = make_ref<Initializer>();
    to->name = from->name;
    to->dtype = from->dtype;
    to->shape = from->shape;
    return to;
  };
  const Ref<Initializer> out = copy(root);
  // Chains of recipes may be long: a list of our own instead of recursion.
  std::vector<Ref<Initializer>> waiting{root};
  while (!waiting.empty()) {
    const Ref<Initializer> from = waiting.back();
    waiting.pop_back();
    if (!from || from->tensor) continue;
    const Ref<Initializer> to = copies[from.get()];
    if (to->recipe) continue;
    to->recipe = std::make_unique<Recipe>(*from->recipe);
    for (Ref<Initializer>& input : to->recipe->inputs) {
      waiting.push_back(input);
      input = copy(input);
    }
  }
  return out;
}

// Shape inference of ONNX Runtime reads constants of this size and cannot do so from other files.
constexpr uint64_t kAlwaysInline = 127;

uint64_t alignment_for(uint64_t bytes) {
  return bytes >= kPageFrom ? kPageAlignment : kDataAlignment;
}

}  // namespace

PayloadLayout lay_out(const std::vector<Payload>& payloads, uint64_t begin, uint64_t min_bytes,
                      uint32_t prefix) {
  PayloadLayout layout;
  layout.prefix = prefix;
  layout.offsets.assign(payloads.size(), PayloadLayout::kInline);
  layout.end = begin;
  for (size_t i = 0; i < payloads.size(); ++i) {
    const Payload& payload = payloads[i];
    const bool is_small = payload.bytes <= kAlwaysInline || payload.bytes < min_bytes;
    if (payload.is_string || is_small) continue;
    const uint64_t alignment = alignment_for(payload.bytes);
    layout.offsets[i] = (layout.end + prefix + alignment - 1) / alignment * alignment;
    layout.end = layout.offsets[i] + payload.bytes;
    layout.order.push_back(i);
  }
  return layout;
}

PayloadWriter::PayloadWriter(const Evaluator& evaluator, const std::vector<Payload>& payloads,
                             SaveProgress progress)
    : evaluator_(evaluator), payloads_(payloads), progress_(std::move(progress)) {
  for (const Payload& payload : payloads) total_ += payload.bytes;
}

PayloadWriter::~PayloadWriter() = default;

void PayloadWriter::start_digest() {
  digest_ = std::make_unique<Digest>();
  if (!digest_->state) throw std::bad_alloc();
  XXH3_128bits_reset(digest_->state);
}

std::array<uint8_t, 16> PayloadWriter::take_digest() {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest_->state));
  digest_.reset();
  std::array<uint8_t, 16> out = {};
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), out.begin());
  return out;
}

Result<Tensor> PayloadWriter::tensor(const Payload& payload) const {
  if (payload.initializer->tensor) return *payload.initializer->tensor;
  const Ref<Initializer> copy = copy_recipes(payload.initializer);
  auto status = evaluate(evaluator_, copy.get());
  if (!status.is_ok()) {
    return std::move(status).with_context(cat("constant '", payload.initializer->name, "'"));
  }
  if (copy->dtype != payload.initializer->dtype || !(copy->shape == payload.initializer->shape)) {
    return error(Code::kFail, "constant '", copy->name, "' became ", dtype_name(copy->dtype), " ",
                 copy->shape.to_string(), ", expected ", dtype_name(payload.initializer->dtype),
                 " ", payload.initializer->shape.to_string());
  }
  return *copy->tensor;
}

Status PayloadWriter::write(const Payload& payload, NewFile* file) {
  FOLIO_TRY(const Tensor bytes, tensor(payload));
  const Bytes all{bytes.raw(), static_cast<size_t>(payload.bytes)};
  if (declared_ && payload.bytes >= DeclaredDigests::kFrom) {
    const auto which =
        file == model_ ? DeclaredDigests::File::kModel : DeclaredDigests::File::kData;
    declared_->add(which, file->size(), payload.bytes, hash_bytes(all));
  }
  FOLIO_RETURN_IF_ERROR(file->write(all));
  if (digest_) XXH3_128bits_update(digest_->state, bytes.raw(), payload.bytes);
  const Initializer& from = *payload.initializer;
  if (from.source && from.tensor) from.source->drop_pages(from.offset, payload.bytes);
  done_ += payload.bytes;
  if (!progress_ || progress_(done_, total_)) return Status::ok();
  return error(Code::kCancelled, "saving was cancelled");
}

Status PayloadWriter::write_all(const PayloadLayout& layout, NewFile* file) {
  for (const size_t i : layout.order) {
    FOLIO_RETURN_IF_ERROR(file->pad_until(layout.offsets[i] - layout.prefix));
    if (layout.prefix == sizeof(uint32_t)) {
      const auto length = static_cast<uint32_t>(payloads_[i].bytes);
      FOLIO_RETURN_IF_ERROR(
          file->write({reinterpret_cast<const uint8_t*>(&length), sizeof length}));
    }
    FOLIO_RETURN_IF_ERROR(write(payloads_[i], file));
  }
  return Status::ok();
}

}  // namespace folio
