// Writes models and their external data to files, without holding the weights in memory.
//
// Flow:    ModelWriter / ExternalData -> write_model_file / ExternalData::write_file -> the disk.
// Owns:    ExternalData owns its payloads' functions; a file is written under a temporary name next
//          to its place and renamed, so that a failure leaves nothing half done.
// Threads: none; two writers of one path at the same time are not supported.
// Errors:  WriteResult::error says which file, what failed, and what was expected.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/make_model/onnx_model.h"

namespace model_writer {

// Protobuf's own limit: readers hold sizes as int32.
inline constexpr uint64_t kProtobufBytesMax = 0x7fffffff;

struct [[nodiscard]] WriteResult {
  std::string error;  // empty: written
  bool ok() const { return error.empty(); }
};

// Called after each few megabytes with how much of this file is written.
using WriteProgress = std::function<void(uint64_t bytes_done, uint64_t bytes_total)>;

// Refuses a model of more than kProtobufBytesMax bytes.
WriteResult write_model_file(const ModelWriter& model, const std::string& path,
                             const WriteProgress& progress = nullptr);

WriteResult write_text_file(const std::string& text, const std::string& path);

// A data file beside a model, filled range by range.
class ExternalData {
 public:
  struct Range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // `location` is what tensors call the file: a path relative to the model's folder. Ranges begin
  // at multiples of `alignment` (4096: a page, so that a range can be mapped by itself).
  explicit ExternalData(std::string location, uint64_t alignment = 4096);

  Range add(Payload payload);
  // Adds the data and gives the tensor that names it.
  TensorWriter tensor(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                      Payload payload);
  // A tensor over a range given by hand: an alias, an overlap, or a bad one.
  TensorWriter tensor_at(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                         Range range) const;

  const std::string& location() const { return location_; }
  uint64_t byte_count() const { return byte_count_; }
  // The file in memory, for tests that give a model its data without a disk.
  std::string serialize() const;
  WriteResult write_file(const std::string& path, const WriteProgress& progress = nullptr) const;

 private:
  std::string location_;
  uint64_t alignment_;
  uint64_t byte_count_ = 0;
  std::vector<Payload> payloads_;  // padding between ranges included
};

}  // namespace model_writer
