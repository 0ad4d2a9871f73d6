#include "tools/make_model/random_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace model_writer {

namespace {

constexpr uint64_t kBlockElements = 16384;

// Produces count elements of T, element i being make(i), block by block.
template <class T, class Make>
Payload block_payload(uint64_t count, Make make) {
  return {count * sizeof(T), [count, make](const ByteSink& sink) {
            std::vector<T> block(static_cast<size_t>(std::min(count, kBlockElements)));
            for (uint64_t done = 0; done < count; done += block.size()) {
              const size_t n = static_cast<size_t>(std::min<uint64_t>(block.size(), count - done));
              for (size_t i = 0; i < n; ++i) block[i] = make(done + i);
              sink(block.data(), n * sizeof(T));
            }
          }};
}

}  // namespace

uint64_t splitmix64_at(uint64_t seed, uint64_t index) {
  // Constants of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

float uniform_at(uint64_t seed, uint64_t index, float low, float high) {
  const float unit = static_cast<float>(splitmix64_at(seed, index) >> 40) * 0x1p-24f;
  // In double and rounded once, so that the compiler's choice of fused operations cannot show.
  const double width = static_cast<double>(high) - static_cast<double>(low);
  return static_cast<float>(std::fma(static_cast<double>(unit), width, static_cast<double>(low)));
}

Payload uniform_payload(uint64_t seed, uint64_t count, float low, float high) {
  return block_payload<float>(count,
                              [=](uint64_t index) { return uniform_at(seed, index, low, high); });
}

std::vector<float> uniform_values(uint64_t seed, uint64_t count, float low, float high) {
  std::vector<float> values(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) values[i] = uniform_at(seed, i, low, high);
  return values;
}

float weight_scale(uint64_t fan_in) {
  return static_cast<float>(std::sqrt(3.0 / static_cast<double>(std::max<uint64_t>(fan_in, 1))));
}

uint16_t f16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  const uint32_t exponent = magnitude >> 23;
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  if (exponent < 102) return static_cast<uint16_t>(sign);  // below half of the least subnormal
  // 13 mantissa bits go; below exponent 113 (2^-14) the result is subnormal and loses more.
  const uint32_t shift = exponent >= 113 ? 13 : 126 - exponent;
  uint32_t half = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  const uint32_t middle = 1u << (shift - 1);
  if (rest > middle || (rest == middle && (half & 1) != 0)) ++half;
  // The leading one of a normal number counts as one step of the exponent field.
  const uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  return static_cast<uint16_t>(sign | (base + half));
}

uint16_t bf16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

Payload uniform_f16_payload(uint64_t seed, uint64_t count, float low, float high) {
  return block_payload<uint16_t>(
      count, [=](uint64_t index) { return f16_bits(uniform_at(seed, index, low, high)); });
}

Payload random_bytes_payload(uint64_t seed, uint64_t bytes) {
  return block_payload<uint8_t>(bytes, [=](uint64_t index) {
    return static_cast<uint8_t>(splitmix64_at(seed, index / 8) >> (index % 8 * 8));
  });
}

std::vector<uint8_t> random_bytes(uint64_t seed, uint64_t bytes) {
  std::vector<uint8_t> values(static_cast<size_t>(bytes));
  for (uint64_t i = 0; i < bytes; ++i) {
    values[i] = static_cast<uint8_t>(splitmix64_at(seed, i / 8) >> (i % 8 * 8));
  }
  return values;
}

}  // namespace model_writer
