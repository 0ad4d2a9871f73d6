// ContentId: names a constant by what it is: its bytes, or how it is made from other constants.
//
// Rule:    XXH3-128. Equal ids are taken for equal content wherever they were computed: in another
//          process, on another machine, in a pack file. Nothing that differs between machines for
//          equal content (addresses, names, padding) may be added.
// Threads: plain values; an IdHasher belongs to one thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/span.h"

namespace folio {

struct ContentId {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const ContentId&) const = default;
};

ContentId hash_bytes(Bytes bytes);

// XXH3-64: for checksums, which name nothing.
uint64_t checksum_bytes(Bytes bytes);

// Hashes a sequence of numbers, texts and ids; each is added with its length or fixed width, so
// that different sequences are different bytes.
class IdHasher {
 public:
  void add(uint64_t number) { append(&number, sizeof number); }
  void add(std::string_view text);
  void add(const ContentId& id) {
    add(id.high);
    add(id.low);
  }
  ContentId id() const;

 private:
  void append(const void* bytes, size_t count);

  // Most ids are of few bytes, and a load makes several for each weight: they need no allocation.
  std::array<uint8_t, 256> few_;  // as long as more_ is empty
  size_t few_count_ = 0;
  std::vector<uint8_t> more_;  // then all of them
};

}  // namespace folio
