// ProtoRope: a protobuf message in the making, with places for bytes that are written later.
//
// Flow:    onnx_writer makes the innermost messages first and puts each into the next; the lengths
//          that protobuf wants in front are known then, though payloads are only numbers.
// Owns:    everything but the payloads.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/span.h"

namespace folio {

class ProtoRope {
 public:
  // Text and the payloads between: piece i is `text`, then payload number `payload`, if any.
  struct Piece {
    std::string text;
    size_t payload = kNoPayload;
  };
  static constexpr size_t kNoPayload = ~size_t{0};

  void add_int(uint32_t field, int64_t value);
  void add_float(uint32_t field, float value);
  void add_text(uint32_t field, std::string_view text);
  // Only when not empty.
  void add_text_if(uint32_t field, std::string_view text);
  void add_message(uint32_t field, ProtoRope message);
  void add_packed_ints(uint32_t field, Span<const int64_t> values);
  void add_packed_floats(uint32_t field, Span<const float> values);
  // The bytes of payload number `payload` as a field.
  void add_payload(uint32_t field, size_t payload, uint64_t bytes);

  uint64_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  void put_varint(uint64_t value);
  void put_key(uint32_t field, uint32_t wire_type);
  void put(std::string_view bytes);

  std::vector<Piece> pieces_ = {Piece()};
  uint64_t size_ = 0;
};

}  // namespace folio
