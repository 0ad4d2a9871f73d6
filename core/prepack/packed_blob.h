// PackedBlob: one packed weight, immutable, 64-byte aligned, padding zeroed.
//
// Owns:    its bytes, through a Buffer: heap now, a mapped pack file later.
// Threads: immutable.
#pragma once

#include "core/base/buffer.h"

namespace folio {

class PackedBlob : public RefCounted {
 public:
  PackedBlob(Ref<Buffer> buffer, size_t bytes) : buffer_(std::move(buffer)), bytes_(bytes) {}

  const uint8_t* data() const { return buffer_->data(); }
  size_t bytes() const { return bytes_; }

 private:
  Ref<Buffer> buffer_;
  size_t bytes_;
};

}  // namespace folio
