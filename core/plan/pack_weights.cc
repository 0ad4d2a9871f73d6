#include "core/plan/pack_weights.h"

namespace folio {
namespace {

// The request's context while its weight is being packed.
struct MappedWeight {
  const PackRequest* request;
  const Initializer* initializer;
};

// From here on kernels read the blob: without this, every process that packs would have the pages
// of both forms.
Status fill_and_drop(const PackRequest&, const void* context, const Tensor& tensor, uint8_t* blob) {
  const auto& weight = *static_cast<const MappedWeight*>(context);
  const PackRequest& request = *weight.request;
  FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, tensor, blob));
  weight.initializer->source->drop_pages(weight.initializer->offset, tensor.bytes());
  return Status::ok();
}

}  // namespace

Result<Ref<const PackedBlob>> pack_weight(PackedCache& cache, const Initializer& initializer,
                                          const PackRequest& request) {
  const Tensor& tensor = *initializer.tensor;
  if (!initializer.source) {
    return cache.get_or_pack(make_pack_key({&tensor}, request), tensor, request);
  }
  const PackSource source{&tensor, initializer.source->serial(), initializer.offset};
  const MappedWeight weight{&request, &initializer};
  PackRequest dropping = request;
  dropping.fill = fill_and_drop;
  dropping.context = &weight;
  return cache.get_or_pack(make_pack_key(source, request), tensor, dropping);
}

}  // namespace folio
