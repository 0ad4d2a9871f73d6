#include "core/save/proto_rope.h"

#include <bit>
#include <cstring>
#include <iterator>

namespace folio {
namespace {

// Wire types of protobuf.
constexpr uint32_t kVarint = 0;
constexpr uint32_t kLengthDelimited = 2;
constexpr uint32_t kFixed32 = 5;

static_assert(std::endian::native == std::endian::little, "floats are written as they stand");

void append_varint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

}  // namespace

void ProtoRope::put(std::string_view bytes) {
  if (pieces_.back().payload != kNoPayload) pieces_.emplace_back();
  pieces_.back().text.append(bytes);
  size_ += bytes.size();
}

void ProtoRope::put_varint(uint64_t value) {
  std::string bytes;
  append_varint(value, &bytes);
  put(bytes);
}

void ProtoRope::put_key(uint32_t field, uint32_t wire_type) { put_varint(field << 3 | wire_type); }

void ProtoRope::add_int(uint32_t field, int64_t value) {
  put_key(field, kVarint);
  put_varint(static_cast<uint64_t>(value));
}

void ProtoRope::add_float(uint32_t field, float value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  put_key(field, kFixed32);
  put({bytes, sizeof bytes});
}

void ProtoRope::add_text(uint32_t field, std::string_view text) {
  put_key(field, kLengthDelimited);
  put_varint(text.size());
  put(text);
}

void ProtoRope::add_text_if(uint32_t field, std::string_view text) {
  if (!text.empty()) add_text(field, text);
}

void ProtoRope::add_message(uint32_t field, ProtoRope message) {
  put_key(field, kLengthDelimited);
  put_varint(message.size_);
  // The first piece is joined with what stands here, the others follow as they are.
  std::vector<Piece>& from = message.pieces_;
  pieces_.back().text.append(from.front().text);
  pieces_.back().payload = from.front().payload;
  pieces_.insert(pieces_.end(), std::make_move_iterator(from.begin() + 1),
                 std::make_move_iterator(from.end()));
  size_ += message.size_;
}

void ProtoRope::add_packed_ints(uint32_t field, Span<const int64_t> values) {
  std::string packed;
  for (const int64_t value : values) append_varint(static_cast<uint64_t>(value), &packed);
  add_text(field, packed);
}

void ProtoRope::add_packed_floats(uint32_t field, Span<const float> values) {
  add_text(field, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

void ProtoRope::add_payload(uint32_t field, size_t payload, uint64_t bytes) {
  put_key(field, kLengthDelimited);
  put_varint(bytes);
  pieces_.back().payload = payload;
  size_ += bytes;
}

}  // namespace folio
