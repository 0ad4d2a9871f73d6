// MurmurHash3: 32 bits that stand for a number or a text.
//
// Source: com.microsoft MurmurHash3 1 (ONNX Runtime's contrib operators); the hash is Austin
//         Appleby's MurmurHash3_x86_32, in the public domain.
// Shapes: x [dims..] -> y [dims..].
// Math:   y = hash(bytes of the element, seed): uint32, or with positive other than 1 int32.
// Types:  int32, uint32, int64, uint64, float, double, strings; y uint32 or int32.
#include <bit>
#include <cstring>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Four bytes, or the up to three that are left, the lowest first.
uint32_t word_of(const uint8_t* bytes, size_t count) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

uint32_t scrambled(uint32_t word) { return std::rotl(word * 0xcc9e2d51U, 15) * 0x1b873593U; }

uint32_t hash_of(const uint8_t* bytes, size_t count, uint32_t seed) {
  uint32_t h = seed;
  size_t i = 0;
  for (; count - i >= 4; i += 4) {
    h = std::rotl(h ^ scrambled(word_of(bytes + i, 4)), 13) * 5 + 0xe6546b64U;
  }
  if (i < count) h ^= scrambled(word_of(bytes + i, count - i));
  h ^= static_cast<uint32_t>(count);
  h = (h ^ h >> 16) * 0x85ebca6bU;
  h = (h ^ h >> 13) * 0xc2b2ae35U;
  return h ^ h >> 16;
}

bool is_hashed(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
    case DType::kUint32:
    case DType::kInt64:
    case DType::kUint64:
    case DType::kFloat:
    case DType::kDouble:
    case DType::kString:
      return true;
    default:
      return false;
  }
}

class MurmurHash3 final : public OpKernel {
 public:
  MurmurHash3(uint32_t seed, DType result) : seed_(seed), result_(result) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!is_hashed(x->dtype())) {
      return invalid_argument("input 0 is ", dtype_name(x->dtype()),
                              ", expected a number of 32 or 64 bits or a string");
    }
    FOLIO_TRY(Tensor * y, run.output(0, result_, x->shape()));
    // Of either type: the bits are the same.
    for (int64_t i = 0, n = x->count(); i < n; ++i) {
      uint32_t hash = 0;
      if (x->is_string()) {
        const std::string& text = x->data<std::string>()[i];
        hash = hash_of(reinterpret_cast<const uint8_t*>(text.data()), text.size(), seed_);
      } else {
        const size_t bytes = x->bytes() / static_cast<size_t>(n);
        hash = hash_of(x->raw() + static_cast<size_t>(i) * bytes, bytes, seed_);
      }
      std::memcpy(y->raw_mut() + 4 * i, &hash, sizeof(hash));
    }
    return Status::ok();
  }

 private:
  uint32_t seed_;
  DType result_;
};

Result<DType> result_of(const Attributes& attrs) {
  FOLIO_TRY(const int64_t positive, attrs.get_int("positive", 1));
  return positive == 1 ? DType::kUint32 : DType::kInt32;
}

Status infer_hash(OpInfer& infer) {
  FOLIO_TRY(const DType result, result_of(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, result, x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_hash(OpBuild& build) {
  FOLIO_TRY(const DType result, result_of(build.attrs()));
  FOLIO_TRY(const int64_t seed, build.attrs().get_int("seed", 0));
  return std::unique_ptr<OpKernel>(
      std::make_unique<MurmurHash3>(static_cast<uint32_t>(seed), result));
}

}  // namespace

[[gnu::cold]] void register_murmur_hash3(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MurmurHash3";
  def.is_exact = true;
  def.infer = infer_hash;
  def.make = make_hash;
  registry.add(def);
}

}  // namespace folio
