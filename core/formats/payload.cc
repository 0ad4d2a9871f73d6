#include "core/formats/payload.h"

#include <bit>
#include <cstring>

namespace folio {

static_assert(std::endian::native == std::endian::little, "payloads are used in place");

Status place_payload(const Ref<ByteSource>& source, Bytes payload, DType dtype, const Shape& shape,
                     InitializerDef* out) {
  if (payload.size() < kSmallTensorBytes) {
    FOLIO_TRY(out->tensor, allocate_tensor(dtype, shape));
    if (!payload.empty()) std::memcpy(out->tensor.raw_mut(), payload.data(), payload.size());
    return Status::ok();
  }
  Ref<Buffer> view =
      view_buffer(Buffer::Kind::kConstant, payload.data(), payload.size(), Ref<RefCounted>(source));
  uint8_t* data = view->data();
  out->tensor = Tensor(dtype, shape, data, std::move(view));
  out->source = source;
  out->offset = static_cast<uint64_t>(payload.data() - source->bytes().data());
  return Status::ok();
}

}  // namespace folio
