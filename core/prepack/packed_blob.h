// PackedBlob: one packed weight, immutable, 64-byte aligned, padding zeroed.
//
// Owns:    its bytes, through a Buffer: heap, or a mapped pack file.
// Threads: immutable.
#pragma once

#include "core/base/buffer.h"
#include "core/base/byte_source.h"

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
  PackedBlob(Ref<Buffer> buffer, size_t bytes, BlobPlace place = BlobPlace::kHeap,
             Ref<const ByteSource> file = nullptr)
      : buffer_(std::move(buffer)), bytes_(bytes), place_(place), file_(std::move(file)) {}

  const uint8_t* data() const { return buffer_->data(); }
  size_t bytes() const { return bytes_; }
  BlobPlace place() const { return place_; }
  const Ref<Buffer>& buffer() const { return buffer_; }
  // Where the bytes stand: whoever reads them, however it came by the blob, wants to know when that
  // file changes. Null: in private memory, which does not.
  const Ref<const ByteSource>& file() const { return file_; }
  // kModelChanged: the bytes may no longer be those of the weight.
  Status check_unchanged() const;

 private:
  Ref<Buffer> buffer_;
  size_t bytes_;
  BlobPlace place_;
  Ref<const ByteSource> file_;
};

inline Status PackedBlob::check_unchanged() const {
  if (!file_) return Status::ok();
  FOLIO_RETURN_IF_ERROR(file_->check_damage());
  return file_->check_unchanged();
}

}  // namespace folio
