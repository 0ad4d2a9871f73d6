// WireReader: the fields of one protobuf message, each checked before it is read.
//
// Flow:    the readers of this folder walk messages with it; protozero decodes underneath.
// Owns:    nothing; borrows the message, which borrows from the file.
// Threads: one thread.
// Errors:  kInvalidProtobuf with byte offset, message and field. protozero's exceptions end here,
//          and its debug assertions cannot be reached: the wire type is tested before each get.
// Pages:   a length-delimited field is passed over by its length; its bytes are not touched.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

class WireReader {
 public:
  // `file_begin` is where offsets in messages count from; `message_name` must be a literal.
  WireReader(Bytes message, const uint8_t* file_begin, const char* message_name);

  // Calls `read_field(number)` for every field until the message ends or an error. read_field
  // consumes the field with exactly one of the calls below (skip() for what it does not know).
  template <typename ReadField>
  Status each_field(ReadField&& read_field) {
    for (;;) {
      FOLIO_TRY(const bool more, next());
      if (!more) return Status::ok();
      FOLIO_RETURN_IF_ERROR(read_field(field_));
    }
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

  // How many varints the current field holds: one, or as many as are packed. Only counts bytes
  // that end a varint; each_varint finds those that are too long.
  Status count_varints(uint64_t* out);

  // sink(uint64_t) for every varint of the current field, packed or not.
  template <typename Sink>
  Status each_varint(Sink&& sink) {
    if (is_varint()) {
      int64_t value = 0;
      FOLIO_RETURN_IF_ERROR(read_int(&value));
      sink(static_cast<uint64_t>(value));
      return Status::ok();
    }
    Bytes packed;
    FOLIO_RETURN_IF_ERROR(read_bytes(&packed));
    while (!packed.empty()) {
      uint64_t value = 0;
      FOLIO_RETURN_IF_ERROR(take_varint(&packed, &value));
      sink(value);
    }
    return Status::ok();
  }

 private:
  Result<bool> next();
  bool is_varint() const;
  Status expect(protozero::pbf_wire_type type) const;
  Status check_length() const;
  Status take_varint(Bytes* packed, uint64_t* out) const;
  const uint8_t* position() const;
  Status field_error(std::string_view what) const;

  protozero::pbf_reader reader_;
  const uint8_t* file_begin_;
  const uint8_t* field_begin_;  // of the current field's key
  uint32_t field_ = 0;          // ours, because protozero forgets its tag in debug builds
  const char* message_name_;
};

}  // namespace folio
