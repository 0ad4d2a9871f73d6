// PayloadWriter: where each constant of a saved file stands, and its bytes, one after the other.
//
// Flow:    the format's writer lays the structure out with the sizes known here, and then asks for
//          each payload in the file's order.
// Memory:  a recipe is computed when its payload is written and freed before the next: what is
//          private at any time is one result and what goes into it. Bytes of a mapping are written
//          from where they are, and their pages given back.
// Owns:    nothing of the model, which stays as it is: a recipe is computed on the side.
// Threads: one, while saving.
// Errors:  what computing reports, with the constant's name; what NewFile reports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/op_evaluate.h"
#include "core/os/new_file.h"
#include "core/prepack/declared_digests.h"
#include "core/save/export_model.h"

namespace folio {

// Called with the bytes written so far of all that will be; returning false ends the saving.
using SaveProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Offsets of payloads in a file of their own (or a part of one).
struct PayloadLayout {
  std::vector<uint64_t> offsets;  // by payload; kInline: not there
  std::vector<size_t> order;      // those that are there, by offset
  uint64_t end = 0;
  uint32_t prefix = 0;  // bytes before each payload that hold its length: 0 or 4

  static constexpr uint64_t kInline = ~uint64_t{0};
};

// Data are aligned to this; those from kPageFrom bytes to pages.
inline constexpr uint64_t kDataAlignment = 64;
inline constexpr uint64_t kPageAlignment = 4096;
inline constexpr uint64_t kPageFrom = 64 << 10;

// Payloads of at least `min_bytes` one behind the other from `begin`; strings and what has less
// than 128 bytes never.
PayloadLayout lay_out(const std::vector<Payload>& payloads, uint64_t begin, uint64_t min_bytes,
                      uint32_t prefix = 0);

class PayloadWriter {
 public:
  PayloadWriter(const Evaluator& evaluator, const std::vector<Payload>& payloads,
                SaveProgress progress);
  ~PayloadWriter();

  // XXH3-128 of the payloads written between the two, in their order.
  void start_digest();
  std::array<uint8_t, 16> take_digest();
  // Where each large payload stands from now on, and its digest; `model`: the file that is no data
  // file.
  void declare(DeclaredDigests* digests, const NewFile* model) {
    declared_ = digests;
    model_ = model;
  }

  // The constant's tensor, computed if need be: strings and what goes into the structure itself.
  Result<Tensor> tensor(const Payload& payload) const;
  // Its bytes at the file's end.
  Status write(const Payload& payload, NewFile* file);
  // All that `layout` places, each at its offset; nothing is written behind its begin yet.
  Status write_all(const PayloadLayout& layout, NewFile* file);

 private:
  const Evaluator& evaluator_;
  const std::vector<Payload>& payloads_;
  struct Digest;

  SaveProgress progress_;
  std::unique_ptr<Digest> digest_;
  DeclaredDigests* declared_ = nullptr;
  const NewFile* model_ = nullptr;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace folio
