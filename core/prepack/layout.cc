#include "core/prepack/layout.h"

#include "core/base/checked_math.h"

namespace folio {

uint16_t layout_version(Layout layout) {
  switch (layout) {
    case Layout::kF32P16:
      return kF32P16Version;
    case Layout::kS8P16K4:
      return kS8P16K4Version;
    case Layout::kF32Wino43:
      return kF32Wino43Version;
    case Layout::kF32WinoLine:
      return kF32WinoLineVersion;
    case Layout::kS16Wino43:
      return kS16Wino43Version;
    case Layout::kF32Tapwise:
      return kF32TapwiseVersion;
    case Layout::kF16P16:
      return kF16P16Version;
    case Layout::kBF16P16:
      return kBF16P16Version;
    case Layout::kF16Exact:
      return kF16ExactVersion;
    case Layout::kRaw:
      break;
  }
  return kRawVersion;
}

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kRaw:
      return "RAW";
    case Layout::kF32P16:
      return "F32P16";
    case Layout::kS8P16K4:
      return "S8P16K4";
    case Layout::kF32Wino43:
      return "F32WINO43";
    case Layout::kF32WinoLine:
      return "F32WINOLINE";
    case Layout::kS16Wino43:
      return "S16WINO43";
    case Layout::kF32Tapwise:
      return "F32TAPWISE";
    case Layout::kF16P16:
      return "F16P16";
    case Layout::kBF16P16:
      return "BF16P16";
    case Layout::kF16Exact:
      return "F16EXACT";
  }
  return "unknown";
}

namespace {

// Panels of 16 columns.
bool p16_bytes(int64_t k, int64_t n, uint64_t element, uint64_t* out_bytes) {
  if (k < 0 || n < 0 || n > INT64_MAX - 15) return false;
  const uint64_t columns = (static_cast<uint64_t>(n) + 15) / 16 * 16;
  uint64_t count = 0;
  return checked_mul(static_cast<uint64_t>(k), columns, &count) &&
         checked_mul(count, element, out_bytes);
}

}  // namespace

bool f32p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes) {
  return p16_bytes(k, n, sizeof(float), out_bytes);
}

bool f16p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes) {
  return p16_bytes(k, n, sizeof(uint16_t), out_bytes);
}

bool bf16p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes) {
  return k < INT64_MAX && p16_bytes(k + k % 2, n, sizeof(uint16_t), out_bytes);
}

bool s16wino43_bytes(int64_t k, int64_t n, uint64_t* out_bytes) {
  uint64_t rows = 0;  // and one of sums and one of magnitudes, twice as wide
  return k >= 0 && checked_mul(static_cast<uint64_t>(k), uint64_t{36}, &rows) &&
         rows <= INT64_MAX - 4 &&
         p16_bytes(static_cast<int64_t>(rows) + 4, n, sizeof(int16_t), out_bytes);
}

bool s8p16k4_bytes(int64_t k, int64_t n, uint64_t* out_bytes) {
  if (k < 0 || n < 0 || n > INT64_MAX - 15 || k > INT64_MAX - 3) return false;
  const uint64_t columns = (static_cast<uint64_t>(n) + 15) / 16 * 16;
  const uint64_t rows = (static_cast<uint64_t>(k) + 3) / 4 * 4;
  uint64_t with_sums = 0;
  return checked_add(rows, uint64_t{sizeof(int32_t)}, &with_sums) &&
         checked_mul(with_sums, columns, out_bytes);
}

}  // namespace folio
