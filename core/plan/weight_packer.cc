#include "core/plan/weight_packer.h"

#include <cstring>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Smaller constants are computed or copied by each program: that costs less than looking them up.
constexpr uint64_t kLookedUpFrom = 64 << 10;

uint64_t bytes_of(const Initializer& constant) {
  uint64_t bytes = 0;
  const auto count = static_cast<uint64_t>(constant.shape.count());
  return dtype_bytes(constant.dtype, count, &bytes) ? bytes : 0;
}

void drop_pages(const Initializer& constant) {
  if (!constant.source) return;
  constant.source->drop_pages(constant.offset, constant.tensor->bytes());
}

Tensor tensor_over(const Initializer& constant, const PackedBlob& blob) {
  // The view keeps the blob, not only its bytes: the cache finds it as long as somebody reads it.
  Ref<RefCounted> keeper(const_cast<PackedBlob*>(&blob));
  return Tensor(constant.dtype, constant.shape, const_cast<uint8_t*>(blob.data()),
                view_buffer(Buffer::Kind::kConstant, blob.data(), blob.bytes(), std::move(keeper)));
}

// Output 0 of a view operator is its input's bytes.
Initializer* viewed_input(const Initializer& constant) {
  const Recipe& recipe = *constant.recipe;
  const OpDef* def = op_registry().find(recipe.domain, recipe.op_type, recipe.version);
  if (!def || def->view_of < 0 || recipe.output != 0) return nullptr;
  return recipe.inputs[static_cast<size_t>(def->view_of)].get();
}

}  // namespace

Status WeightPacker::compute(Initializer* constant) { return evaluate(evaluator_, constant); }

Result<Ref<const PackedBlob>> WeightPacker::from_library(
    const Initializer& constant, const PackKey& key, const PackWriter::Label& label, uint64_t bytes,
    const PackWriter::Fill& fill, const Maker& pack) {
  if (ids_.is_declared(constant)) {
    // What is found is what the name says. What is made here may be something else, if the model's
    // file does not say the truth: then it must not have that name.
    Ref<const PackedBlob> found = cache_.find(key);
    if (!found) found = library_->find(key, bytes);
    return found ? cache_.get_or_make(key, [&] { return Result(found); }) : pack();
  }
  return cache_.get_or_make(key, [&]() -> Result<Ref<const PackedBlob>> {
    if (Ref<const PackedBlob> found = library_->find(key, bytes)) return found;
    FOLIO_TRY(Ref<const PackedBlob> written, library_->write(label, bytes, fill));
    if (written) return written;
    return pack();
  });
}

Result<Ref<const PackedBlob>> WeightPacker::of_twin(const Initializer& constant,
                                                    const KeyOf& key_of) {
  if (!ids_.has_twins()) return Ref<const PackedBlob>();
  const PackKey key = key_of(ids_.twin(constant));
  const Ref<const PackedBlob> found = cache_.find(key);
  if (!found || !ids_.has_equal_twin(constant)) return Ref<const PackedBlob>();
  return cache_.get_or_make(key, [&] { return Result(found); });
}

void WeightPacker::note(const Initializer& constant, const PackKey& place, PackWriter::Label label,
                        const KeyOf& key_of, const Ref<const PackedBlob>& blob) {
  if (!library_ || !library_->wants(place)) return;
  label.key = key_of(ids_.content(constant));
  label.name = constant.name;
  library_->note({place, std::move(label), blob});
}

Result<Ref<const PackedBlob>> WeightPacker::packed(Initializer* constant,
                                                   const PackRequest& request) {
  const PackWriter::Fill fill = [&](uint8_t* blob) -> Status {
    FOLIO_RETURN_IF_ERROR(compute(constant));
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, *constant->tensor, blob));
    // From here on kernels read the blob: without this, every process that packs would have the
    // pages of both forms.
    drop_pages(*constant);
    return Status::ok();
  };
  const Maker pack = [&]() -> Result<Ref<const PackedBlob>> {
    FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(request.bytes));
    FOLIO_RETURN_IF_ERROR(fill(buffer->data()));
    return Ref<const PackedBlob>(make_ref<PackedBlob>(std::move(buffer), request.bytes));
  };
  const KeyOf key_of = [&](const ContentId& id) { return make_pack_key(id, request); };
  const PackKey place = key_of(ids_.place(*constant));
  const Maker look = [&]() -> Result<Ref<const PackedBlob>> {
    FOLIO_TRY(Ref<const PackedBlob> twin, of_twin(*constant, key_of));
    if (twin) return twin;
    if (!library_) return pack();
    const PackKey key = key_of(ids_.content(*constant));
    const PackWriter::Label label{key, request.layout, request.version, constant->name};
    return from_library(*constant, key, label, request.bytes, fill, pack);
  };
  // Constants that no file holds have one name only.
  const bool has_place = !library_ || !(ids_.place(*constant) == ids_.content(*constant));
  FOLIO_TRY(Ref<const PackedBlob> blob, has_place ? cache_.get_or_make(place, look) : look());
  note(*constant, place, {{}, request.layout, request.version, {}}, key_of, blob);
  return blob;
}

Result<Ref<const PackedBlob>> WeightPacker::raw(Initializer* constant) {
  const uint64_t bytes = bytes_of(*constant);
  const PackWriter::Fill fill = [&](uint8_t* blob) -> Status {
    FOLIO_RETURN_IF_ERROR(compute(constant));
    std::memcpy(blob, constant->tensor->raw(), bytes);
    drop_pages(*constant);
    return Status::ok();
  };
  // Computed bytes become the blob; those of a file are copied to be aligned.
  const Maker make = [&]() -> Result<Ref<const PackedBlob>> {
    FOLIO_RETURN_IF_ERROR(compute(constant));
    Tensor tensor = *constant->tensor;
    if (!is_aligned_for(tensor)) {
      FOLIO_TRY(tensor, copy_tensor(tensor));
      drop_pages(*constant);
    }
    Ref<Buffer> view =
        view_buffer(Buffer::Kind::kConstant, tensor.raw(), tensor.bytes(), tensor.buffer());
    return Ref<const PackedBlob>(make_ref<PackedBlob>(std::move(view), tensor.bytes()));
  };
  const KeyOf key_of = make_raw_key;
  const PackKey place = key_of(ids_.place(*constant));
  const Maker look = [&]() -> Result<Ref<const PackedBlob>> {
    FOLIO_TRY(Ref<const PackedBlob> twin, of_twin(*constant, key_of));
    if (twin) return twin;
    if (!library_) return make();
    const PackKey key = key_of(ids_.content(*constant));
    const PackWriter::Label label{key, Layout::kRaw, kRawVersion, constant->name};
    return from_library(*constant, key, label, bytes, fill, make);
  };
  const bool has_place = !library_ || !(ids_.place(*constant) == ids_.content(*constant));
  FOLIO_TRY(Ref<const PackedBlob> blob, has_place ? cache_.get_or_make(place, look) : look());
  note(*constant, place, {{}, Layout::kRaw, kRawVersion, {}}, key_of, blob);
  return blob;
}

Result<Tensor> WeightPacker::tensor(Initializer* constant, bool aligned) {
  if (!constant->tensor) {
    if (Initializer* input = viewed_input(*constant)) {
      FOLIO_TRY(const Tensor source, tensor(input, /*aligned=*/false));
      input->tensor = source;
      FOLIO_RETURN_IF_ERROR(compute(constant));
    }
  }
  const bool is_large = bytes_of(*constant) >= kLookedUpFrom;
  if (!constant->tensor && is_large) {
    FOLIO_TRY(Ref<const PackedBlob> blob, raw(constant));
    if (blob->bytes() == bytes_of(*constant)) {
      constant->tensor = tensor_over(*constant, *blob);
      constant->recipe.reset();
      raw_blobs_.push_back(std::move(blob));
    }
  }
  FOLIO_RETURN_IF_ERROR(compute(constant));
  if (!aligned || is_aligned_for(*constant->tensor)) return *constant->tensor;
  if (!is_large) return copy_tensor(*constant->tensor);
  FOLIO_TRY(Ref<const PackedBlob> blob, raw(constant));
  const Tensor tensor = tensor_over(*constant, *blob);
  raw_blobs_.push_back(std::move(blob));
  return tensor;
}

}  // namespace folio
