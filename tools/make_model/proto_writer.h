// Writes protobuf messages without a schema, a generator or the whole message in memory.
//
// Flow:    ModelWriter (onnx_model.h) -> ProtoMessage -> write_to -> a string or a file.
// Owns:    a message owns its bytes; a Payload owns what its function captured.
// Threads: none; a message belongs to one thread at a time.
// Errors:  write_to answers false when a payload did not give the bytes it announced.
//
// A protobuf message needs its length before its content. So a message is kept as a list of pieces
// whose sizes are known: literal bytes, or a payload that is produced only while writing. Putting a
// message into another moves its pieces, so nesting of any depth costs linear time and no
// recursion.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

// A namespace of its own: tests link this library next to folio's core, and must not mix types.
namespace model_writer {

using ByteSink = std::function<void(const void* data, size_t bytes)>;

// Bytes that are made when they are written. `produce` may be called any number of times and must
// give the same `bytes` bytes each time, in pieces of any size.
struct Payload {
  uint64_t bytes = 0;
  std::function<void(const ByteSink&)> produce;
};

// Writes a payload; what is too much is cut off and what is missing is zero, so that the lengths
// around it stay true. False if that was necessary.
[[nodiscard]] bool write_payload(const Payload& payload, const ByteSink& sink);

class ProtoMessage {
 public:
  // One field each. Field numbers are not checked: hostile models want wrong ones.
  void put_varint(uint32_t field, uint64_t value);
  void put_int(uint32_t field, int64_t value);  // int32, int64, enum, bool: sign-extended
  void put_f32(uint32_t field, float value);
  void put_f64(uint32_t field, double value);
  void put_bytes(uint32_t field, std::string_view value);
  void put_payload(uint32_t field, Payload payload);
  void put_message(uint32_t field, ProtoMessage message);

  // One field that holds all values; an empty list writes nothing, as protobuf does.
  void put_packed_ints(uint32_t field, const std::vector<int64_t>& values);
  void put_packed_f32(uint32_t field, const std::vector<float>& values);
  void put_packed_f64(uint32_t field, const std::vector<double>& values);

  // The fields of `other` follow the fields of this message.
  void append(ProtoMessage other);

  // Bytes as they are, well-formed or not, for tests of parsers.
  void append_raw(std::string_view bytes);

  uint64_t byte_count() const { return byte_count_; }
  [[nodiscard]] bool write_to(const ByteSink& sink) const;

  // The whole message in memory. Asserts that payloads kept their promise.
  std::string serialize() const;

 private:
  struct Piece {
    std::string literal;
    Payload payload;  // used if payload.produce is set; then literal is empty
  };

  void put_tag(uint32_t field, uint32_t wire_type);
  std::string& literal();

  std::list<Piece> pieces_;
  uint64_t byte_count_ = 0;
};

// The base-128 form of a number, for tests that build wire bytes by hand.
std::string varint_bytes(uint64_t value);

}  // namespace model_writer
