// Element types outside the library: names, sizes, and elements as numbers.
//
// Threads: any; nothing has state.
// Errors:  none: unknown types have 0 bits; asking such a type for numbers gives NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "folio/folio_c_api.h"

namespace folio_cli {

struct ElementTypeFacts {
  const char* name;
  uint32_t bits;      // 0: strings and numbers that are no type
  const char* npy;    // numpy's descr; nullptr: none
  bool npy_is_exact;  // false: numpy lacks the type, and `npy` holds its raw bits
};

const ElementTypeFacts& facts_of(FolioElementType type);
// The type of that name; undefined: none.
FolioElementType type_named(const std::string& name);

// Bytes of `count` elements; sub-byte types are packed.
size_t packed_bytes(FolioElementType type, size_t count);

bool is_complex(FolioElementType type);
bool is_float(FolioElementType type);    // real ones
bool is_integer(FolioElementType type);  // bool too

// Element `index` of packed data; of a complex number, the real part.
double element_as_double(FolioElementType type, const std::byte* data, size_t index);
double imaginary_part(FolioElementType type, const std::byte* data, size_t index);

// Exactly as text: integers without rounding.
std::string element_as_text(FolioElementType type, const std::byte* data, size_t index);

// Element `index` of a type of at most 16 bits, as bits.
uint32_t element_bits(FolioElementType type, const std::byte* data, size_t index);
// Stores the low bits in element `index` of a type of at most 16 bits.
void store_bits(FolioElementType type, uint32_t bits, std::byte* data, size_t index);

// Stores a number in element `index`, rounded to nearest even; integers are cut. Not for strings
// and complex numbers.
void store_double(FolioElementType type, double value, std::byte* data, size_t index);

}  // namespace folio_cli
