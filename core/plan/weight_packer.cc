#include "core/plan/weight_packer.h"

#include <cstring>

#include "core/ops/op_registry.h"
#include "core/ops/op_unpack.h"

namespace folio {
namespace {

// Smaller constants are computed or copied by each program: that costs less than looking them up.
constexpr uint64_t kLookedUpFrom = 64 << 10;

// Pages of a mapped source leave this process: from here on kernels read the packed form. Without
// this every process that packs would have the pages of both.
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

void set_form(const PackRequest& request, WantedBlob* blob) {
  blob->layout = request.layout;
  blob->version = request.version;
  blob->bytes = request.bytes;
  blob->in_files_only = request.in_files_only;
}

std::function<Status()> check_of(const Tensor& tensor, const PackRequest& request) {
  return [tensor, request] { return request.check(request, tensor); };
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

WeightPacker::Asked WeightPacker::asked(Initializer* constant, KeyOf key_of) {
  Asked asked;
  asked.key_of = std::move(key_of);
  asked.blob.place = asked.key_of(ids_.place(*constant));
  asked.blob.content = [this, constant, key_of = asked.key_of](PackLibrary&) {
    const PackKey key = key_of(ids_.content(*constant));
    return WantedBlob::Content{key, ids_.is_declared(*constant)};
  };
  // Constants that no mapping holds have one name, unless they are made from some that it holds.
  asked.blob.is_placed = !library_ || stands_in_mapping(*constant) ||
                         !(ids_.place(*constant) == ids_.content(*constant));
  asked.blob.name = constant->name;
  return asked;
}

WeightPacker::Asked WeightPacker::asked(Initializer* constant, const PackRequest& request) {
  Asked asked =
      this->asked(constant, [request](const ContentId& id) { return make_pack_key(id, request); });
  set_form(request, &asked.blob);
  if (request.check && constant->tensor) asked.blob.check = check_of(*constant->tensor, request);
  asked.blob.fill = [this, constant, request](uint8_t* blob) -> Status {
    FOLIO_RETURN_IF_ERROR(compute(constant));
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, *constant->tensor, blob));
    drop_pages(*constant);
    return Status::ok();
  };
  return asked;
}

Result<Ref<const PackedBlob>> WeightPacker::of_twin(const Initializer& constant,
                                                    const Asked& asked) {
  if (!ids_.has_twins()) return Ref<const PackedBlob>();
  if (Ref<const PackedBlob> known = cache_.find(asked.blob.place)) return known;
  const PackKey key = asked.key_of(ids_.twin(constant));
  const Ref<const PackedBlob> found = cache_.find(key);
  if (!found || !ids_.has_equal_twin(constant)) return Ref<const PackedBlob>();
  // Under its own place too, for the next that asks.
  return cache_.get_or_make(asked.blob.place, [&] { return Result(found); });
}

void WeightPacker::note(const Initializer& constant, const Asked& asked,
                        const Ref<const PackedBlob>& blob) {
  if (!library_ || !library_->wants(asked.blob.place)) return;
  PackWriter::Label label;
  label.key = asked.key_of(ids_.content(constant));
  label.layout = asked.blob.layout;
  label.version = asked.blob.version;
  label.name = constant.name;
  library_->note({asked.blob.place, std::move(label), blob});
}

Result<Ref<const PackedBlob>> WeightPacker::now(const Initializer& constant, const Asked& asked) {
  FOLIO_TRY(Ref<const PackedBlob> blob, of_twin(constant, asked));
  if (!blob) {
    FOLIO_TRY(blob, find_or_make(cache_, library_, asked.blob));
  }
  note(constant, asked, blob);
  return blob;
}

// Bytes of a file, which are there to be read and to be packed at any time.
bool WeightPacker::can_wait(const Initializer& constant, bool takes_unaligned) const {
  return when_ == When::kLater && constant.tensor && stands_in_mapping(constant) &&
         (takes_unaligned || is_aligned_for(*constant.tensor));
}

// The same for any thread at any time: it has all that it needs.
WantedBlob WeightPacker::later(const Ref<Initializer>& constant, const PackRequest& request,
                               const PackKey& place) {
  WantedBlob blob;
  blob.place = place;
  set_form(request, &blob);
  if (request.check) blob.check = check_of(*constant->tensor, request);
  blob.name = constant->name;
  blob.content = [constant, request](PackLibrary& library) {
    const PackLibrary::Digest content = content_of_file_bytes(*constant, library);
    return WantedBlob::Content{make_pack_key(content.id, request), content.is_declared};
  };
  blob.fill = [constant, request](uint8_t* bytes) -> Status {
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, *constant->tensor, bytes));
    drop_pages(*constant);
    return Status::ok();
  };
  return blob;
}

Result<Ref<const PackedBlob>> WeightPacker::there(const Initializer& constant,
                                                  const PackRequest& request, const PackKey& place,
                                                  bool* was_looked_for) {
  *was_looked_for = false;
  if (Ref<const PackedBlob> known = cache_.find(place)) return known;
  if (!library_) return Ref<const PackedBlob>();
  const std::optional<PackLibrary::Digest> digest =
      library_->known_digest(*constant.source, constant.offset, constant.tensor->bytes());
  if (!digest) return Ref<const PackedBlob>();
  *was_looked_for = true;
  const ContentId content = content_of_digest(digest->id, constant.dtype, constant.shape);
  return find_blob(cache_, *library_, place, {make_pack_key(content, request), digest->is_declared},
                   request.bytes);
}

Result<Ref<const PackedBlob>> WeightPacker::packed_in_model(const Initializer& constant,
                                                            const PackRequest& request) {
  const Initializer* stored = packed_blob_of(constant);
  if (!stored) return Ref<const PackedBlob>();
  FOLIO_TRY(const PackedWeight weight, parse_packed_weight(constant.recipe->attributes));
  if (!is_same_form(weight.form, request)) return Ref<const PackedBlob>();
  const Tensor& bytes = *stored->tensor;
  if (checks_blobs_) {
    const uint64_t found = checksum_bytes({bytes.raw(), bytes.bytes()});
    if (found != weight.checksum) {
      return invalid_graph("the packed weight '", constant.name, "' is damaged: its checksum is ",
                           found, ", expected ", weight.checksum);
    }
  }
  return cache_.get_or_make(
      make_pack_key(ids_.place(constant), request), [&]() -> Result<Ref<const PackedBlob>> {
        Tensor kept = bytes;
        const bool is_aligned = reinterpret_cast<uintptr_t>(kept.raw()) % kBlobAlignment == 0;
        if (is_aligned) {
          PackCounts found;
          found.hits = 1;
          found.hit_bytes = kept.bytes();
          cache_.add(found);
        } else {
          FOLIO_TRY(kept, copy_tensor(kept));
        }
        Ref<Buffer> view =
            view_buffer(Buffer::Kind::kConstant, kept.raw(), kept.bytes(), kept.buffer());
        return Ref<const PackedBlob>(is_aligned
                                         ? make_ref<PackedBlob>(std::move(view), kept.bytes(),
                                                                BlobPlace::kSidecar, stored->source)
                                         : make_ref<PackedBlob>(std::move(view), kept.bytes()));
      });
}

Result<WeightSlot*> WeightPacker::slot(const Ref<Initializer>& constant, const PackRequest& request,
                                       bool takes_unaligned) {
  FOLIO_TRY(Ref<const PackedBlob> given, packed_in_model(*constant, request));
  if (given) return slots_->add(std::move(given));
  if (!can_wait(*constant, takes_unaligned)) {
    const Asked wanted = asked(constant.get(), request);
    auto made = now(*constant, wanted);
    if (!made.is_ok() && is_refused(wanted.blob, made.status())) {
      return slots_->add(Ref<const PackedBlob>());
    }
    FOLIO_TRY(Ref<const PackedBlob> blob, std::move(made));
    return slots_->add(std::move(blob));
  }
  Ref<const PackedBlob> found;
  if (ids_.has_twins()) {
    FOLIO_TRY(found, of_twin(*constant, asked(constant.get(), request)));
  }
  const PackKey place = make_pack_key(ids_.place(*constant), request);
  bool was_looked_for = false;
  if (!found) {
    FOLIO_TRY(found, there(*constant, request, place, &was_looked_for));
  }
  if (found) return slots_->add(std::move(found));
  WantedBlob blob = later(constant, request, place);
  blob.was_looked_for = was_looked_for;
  return slots_->add(std::move(blob));
}

Result<Ref<const PackedBlob>> WeightPacker::raw(Initializer* constant) {
  Asked asked = this->asked(constant, make_raw_key);
  asked.blob.version = kRawVersion;
  asked.blob.bytes = plain_bytes(*constant);
  asked.blob.fill = [&](uint8_t* blob) -> Status {
    FOLIO_RETURN_IF_ERROR(compute(constant));
    std::memcpy(blob, constant->tensor->raw(), asked.blob.bytes);
    drop_pages(*constant);
    return Status::ok();
  };
  // Computed bytes become the blob; those of a file are copied to be aligned.
  asked.blob.make = [&]() -> Result<Ref<const PackedBlob>> {
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
  return now(*constant, asked);
}

Result<Tensor> WeightPacker::tensor(Initializer* constant, bool aligned) {
  if (!constant->tensor) {
    if (Initializer* input = viewed_input(*constant)) {
      FOLIO_TRY(const Tensor source, tensor(input, /*aligned=*/false));
      input->tensor = source;
      FOLIO_RETURN_IF_ERROR(compute(constant));
    }
  }
  const bool is_large = plain_bytes(*constant) >= kLookedUpFrom;
  if (!constant->tensor && is_large) {
    FOLIO_TRY(Ref<const PackedBlob> blob, raw(constant));
    if (blob->bytes() == plain_bytes(*constant)) {
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
