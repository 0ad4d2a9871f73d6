#include "tools/make_model/proto_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace model_writer {

// Numbers are written as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

// Smaller messages are copied behind their parent's bytes: cheaper than a list element each.
constexpr uint64_t kCopyBytesMax = 4096;

// At most ten bytes: 64 bits in groups of seven.
void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

template <class T>
void append_fixed(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace

bool write_payload(const Payload& payload, const ByteSink& sink) {
  uint64_t left = payload.bytes;
  bool exact = true;
  if (payload.produce) {
    payload.produce([&](const void* data, size_t bytes) {
      const uint64_t taken = std::min<uint64_t>(bytes, left);
      exact = exact && taken == bytes;
      if (taken > 0) sink(data, static_cast<size_t>(taken));
      left -= taken;
    });
  }
  exact = exact && left == 0;
  static constexpr std::array<char, 4096> kZeros{};
  while (left > 0) {
    const uint64_t taken = std::min<uint64_t>(kZeros.size(), left);
    sink(kZeros.data(), static_cast<size_t>(taken));
    left -= taken;
  }
  return exact;
}

std::string varint_bytes(uint64_t value) {
  std::string out;
  append_varint(out, value);
  return out;
}

std::string& ProtoMessage::literal() {
  if (pieces_.empty() || pieces_.back().payload.produce) pieces_.emplace_back();
  return pieces_.back().literal;
}

void ProtoMessage::append_raw(std::string_view bytes) {
  literal().append(bytes);
  byte_count_ += bytes.size();
}

void ProtoMessage::put_tag(uint32_t field, uint32_t wire_type) {
  append_raw(varint_bytes(uint64_t{field} << 3 | wire_type));
}

void ProtoMessage::put_varint(uint32_t field, uint64_t value) {
  put_tag(field, kVarint);
  append_raw(varint_bytes(value));
}

void ProtoMessage::put_int(uint32_t field, int64_t value) {
  put_varint(field, static_cast<uint64_t>(value));
}

void ProtoMessage::put_f32(uint32_t field, float value) {
  put_tag(field, kFixed32);
  append_fixed(literal(), value);
  byte_count_ += sizeof value;
}

void ProtoMessage::put_f64(uint32_t field, double value) {
  put_tag(field, kFixed64);
  append_fixed(literal(), value);
  byte_count_ += sizeof value;
}

void ProtoMessage::put_bytes(uint32_t field, std::string_view value) {
  put_tag(field, kBytes);
  append_raw(varint_bytes(value.size()));
  append_raw(value);
}

void ProtoMessage::put_payload(uint32_t field, Payload payload) {
  put_tag(field, kBytes);
  append_raw(varint_bytes(payload.bytes));
  if (payload.bytes == 0) return;
  byte_count_ += payload.bytes;
  if (!payload.produce) payload.produce = [](const ByteSink&) {};
  pieces_.push_back(Piece{{}, std::move(payload)});
}

void ProtoMessage::put_message(uint32_t field, ProtoMessage message) {
  put_tag(field, kBytes);
  append_raw(varint_bytes(message.byte_count_));
  append(std::move(message));
}

void ProtoMessage::put_packed_ints(uint32_t field, const std::vector<int64_t>& values) {
  if (values.empty()) return;
  std::string packed;
  for (const int64_t value : values) append_varint(packed, static_cast<uint64_t>(value));
  put_bytes(field, packed);
}

void ProtoMessage::put_packed_f32(uint32_t field, const std::vector<float>& values) {
  if (values.empty()) return;
  std::string packed;
  for (const float value : values) append_fixed(packed, value);
  put_bytes(field, packed);
}

void ProtoMessage::put_packed_f64(uint32_t field, const std::vector<double>& values) {
  if (values.empty()) return;
  std::string packed;
  for (const double value : values) append_fixed(packed, value);
  put_bytes(field, packed);
}

void ProtoMessage::append(ProtoMessage other) {
  if (other.pieces_.size() == 1 && !other.pieces_.front().payload.produce &&
      other.byte_count_ <= kCopyBytesMax) {
    append_raw(other.pieces_.front().literal);
    return;
  }
  byte_count_ += other.byte_count_;
  pieces_.splice(pieces_.end(), other.pieces_);
}

bool ProtoMessage::write_to(const ByteSink& sink) const {
  bool exact = true;
  for (const Piece& piece : pieces_) {
    if (piece.payload.produce) {
      exact = write_payload(piece.payload, sink) && exact;
    } else if (!piece.literal.empty()) {
      sink(piece.literal.data(), piece.literal.size());
    }
  }
  return exact;
}

std::string ProtoMessage::serialize() const {
  std::string out;
  out.reserve(static_cast<size_t>(byte_count_));
  [[maybe_unused]] const bool exact = write_to(
      [&](const void* data, size_t bytes) { out.append(static_cast<const char*>(data), bytes); });
  assert(exact);
  return out;
}

}  // namespace model_writer
