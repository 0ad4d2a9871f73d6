// Seeded numbers for weights: the same on every machine, made while they are written.
//
// Flow:    model kinds -> Payload / vector -> TensorWriter or ExternalData.
// Owns:    nothing.
// Threads: any; a Seeds counter belongs to one thread.
// Errors:  none.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/make_model/proto_writer.h"

namespace model_writer {

// Element `index` of the stream `seed`: splitmix64 by position, so that any part can be made alone.
uint64_t splitmix64_at(uint64_t seed, uint64_t index);

// Uniform in [low, high), from the 24 high bits: exact in a float before scaling.
float uniform_at(uint64_t seed, uint64_t index, float low, float high);

// `count` f32 values as bytes to be made later, and at once.
Payload uniform_payload(uint64_t seed, uint64_t count, float low, float high);
std::vector<float> uniform_values(uint64_t seed, uint64_t count, float low, float high);

// Half-width of weights U(-s, s) that keep the variance of a sum over `fan_in` products: each has
// variance s^2 / 3 = 1 / fan_in.
float weight_scale(uint64_t fan_in);

// The same numbers as IEEE half floats, rounded to nearest even.
Payload uniform_f16_payload(uint64_t seed, uint64_t count, float low, float high);
uint16_t f16_bits(float value);
uint16_t bf16_bits(float value);

// Bytes without structure: int8 weights, packed 4-bit weights.
Payload random_bytes_payload(uint64_t seed, uint64_t bytes);
std::vector<uint8_t> random_bytes(uint64_t seed, uint64_t bytes);

// A different stream for each tensor of a model.
class Seeds {
 public:
  explicit Seeds(uint64_t seed) : seed_(seed) {}
  uint64_t next() { return splitmix64_at(seed_, count_++); }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

}  // namespace model_writer
