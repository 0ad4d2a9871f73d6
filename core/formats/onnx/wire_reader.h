// WireReader: the fields of one protobuf message, each checked before it is read.
//
// Source:  the protobuf encoding (protobuf.dev, "Encoding"): a field is a key, number * 8 + wire
//          type, and a value. Groups (wire types 3 and 4) are in no ONNX file and are refused.
// Flow:    the readers of this folder walk messages with it.
// Owns:    nothing; borrows the message, which borrows from the file.
// Threads: one thread.
// Errors:  kInvalidProtobuf with byte offset, message and field; kModelChanged when a field holds
//          more than was counted.
// Pages:   a length-delimited field is passed over by its length; its bytes are not touched.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// take_varint for any length.
bool take_long_varint(Bytes* bytes, uint64_t* out);

// The varint at the front of `bytes`, taken off it. False when it does not end inside `bytes` or
// within 10 of them, the most that 64 bits need. Most keys and lengths are one byte.
inline bool take_varint(Bytes* bytes, uint64_t* out) {
  if (bytes->empty() || bytes->front() >= 0x80) return take_long_varint(bytes, out);
  *out = bytes->front();
  *bytes = bytes->subspan(1);
  return true;
}

// How often each of the fields 0 to 15 stands in a message, so that vectors are made in one piece.
// A hint: counting ends quietly at damage, which reading then reports.
class FieldCounts {
 public:
  explicit FieldCounts(Bytes message);
  // Room for what `field` will fill. A hostile file's count buys no more than a bounded amount.
  template <typename T>
  void reserve(uint32_t field, std::vector<T>* out) const {
    constexpr size_t kMost = 1 << 16;
    out->reserve(out->size() + std::min<size_t>(counts_[field], kMost));
  }

 private:
  uint32_t counts_[16] = {};
};

class WireReader {
 public:
  // `file_begin` is where offsets in messages count from; `message_name` must be a literal.
  WireReader(Bytes message, const uint8_t* file_begin, const char* message_name);

  // Calls `read_field(number)` for every field until the message ends or an error. read_field
  // consumes the field with exactly one of the calls below (skip() for what it does not know).
  template <typename ReadField>
  Status each_field(ReadField&& read_field) {
    while (!rest_.empty()) {
      FOLIO_RETURN_IF_ERROR(take_key());
      FOLIO_RETURN_IF_ERROR(read_field(field_));
    }
    return Status::ok();
  }

  Status skip();
  Status read_int(int64_t* out);
  Status read_float(float* out);
  Status read_bytes(Bytes* out);         // a view: bytes, or a nested message
  Status read_string(std::string* out);  // a copy, any bytes
  // A copy of at most kMaxNameBytes of valid UTF-8; `field` names it in errors.
  Status read_name(const char* field, std::string* out);
  Status append_name(const char* field, std::vector<std::string>* out);
  // Text that is only shown: ill-formed UTF-8 is replaced.
  Status read_text(std::string* out);

  // Repeated scalars, packed or not. `max_count` bounds out->size() afterwards.
  Status append_ints(std::vector<int64_t>* out, size_t max_count);
  Status append_floats(std::vector<float>* out);

  // The little-endian bytes of a repeated fixed-width field (`width` 4 or 8), packed or not.
  Status read_fixed(size_t width, Bytes* out);

  // kModelChanged: the current field holds more than when it was counted.
  Status recount_error() const;

  // How many varints the current field holds: one, or as many as are packed. Only counts bytes
  // that end a varint; each_varint finds those that are too long.
  Status count_varints(uint64_t* out);

  // sink(uint64_t) for every varint of the current field, packed or not. `most`: what sink has room
  // for, which is what was counted before; the file may have changed since.
  template <typename Sink>
  Status each_varint(uint64_t most, Sink&& sink) {
    if (type_ == WireType::kVarint) {
      if (most == 0) return recount_error();
      int64_t value = 0;
      FOLIO_RETURN_IF_ERROR(read_int(&value));
      sink(static_cast<uint64_t>(value));
      return Status::ok();
    }
    Bytes packed;
    FOLIO_RETURN_IF_ERROR(read_bytes(&packed));
    for (; !packed.empty(); --most) {
      uint64_t value = 0;
      if (most == 0) return recount_error();
      if (!take_varint(&packed, &value)) return field_error("holds a damaged packed value");
      sink(value);
    }
    return Status::ok();
  }

 private:
  Status take_key();
  Status expect(WireType type) const;
  Status take_length(uint64_t* out);
  Status field_error(std::string_view what) const;

  Bytes rest_;  // of the message
  const uint8_t* file_begin_;
  const uint8_t* field_begin_;  // of the current field's key
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  const char* message_name_;
};

}  // namespace folio
