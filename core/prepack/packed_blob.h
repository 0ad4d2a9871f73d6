// PackedBlob: one packed weight, immutable, 64-byte aligned, padding zeroed.
//
// Owns:    its bytes, through a Buffer: heap, or a mapped pack file.
// Threads: immutable.
#pragma once

#include "core/base/buffer.h"

namespace folio {

// Where a blob's bytes live, for reports.
enum class BlobPlace : uint8_t {
  kHeap,     // packed in this process, private memory
  kSidecar,  // MODEL.fpack beside the model, or a pack file that the caller named
  kStore,    // a pack store
};
inline constexpr int kBlobPlaces = 3;

class PackedBlob : public RefCounted {
 public:
  PackedBlob(Ref<Buffer> buffer, size_t bytes, BlobPlace place = BlobPlace::kHeap)
      : buffer_(std::move(buffer)), bytes_(bytes), place_(place) {}

  const uint8_t* data() const { return buffer_->data(); }
  size_t bytes() const { return bytes_; }
  BlobPlace place() const { return place_; }
  const Ref<Buffer>& buffer() const { return buffer_; }

 private:
  Ref<Buffer> buffer_;
  size_t bytes_;
  BlobPlace place_;
};

}  // namespace folio
