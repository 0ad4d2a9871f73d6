// save_model: an optimized model as an .onnx or .ort file, with its large constants where they
// belong.
//
// Flow:    session/ takes a fresh Model, runs the portable passes on it and gives it here. The
//          structure is exported, payloads are laid out, and files are written one payload at a
//          time; then they get their names, data first.
// Owns:    nothing; the Model stays as it is.
// Threads: one. Two saves to one path: the later one's files stay.
// Errors:  kInvalidArgument for options that make no sense; kFail for a node that no file may hold;
//          kIo, kNoSuchFile with the file's name. After an error no file has been left or
//          replaced, but for a data file whose name an earlier one had (a failure between two
//          renames).
#pragma once

#include <string>

#include "core/save/payload_writer.h"

namespace folio {

enum class SaveFormat : uint8_t {
  kByName,  // .ort by the path's end, else .onnx
  kOnnx,
  kOrt,
};

// What kByName stands for with this path.
SaveFormat save_format(SaveFormat format, const std::string& path);

struct SaveOptions {
  SaveFormat format = SaveFormat::kByName;
  // Where an .onnx keeps initializers of at least `external_min_bytes`, beside it; "": inside,
  // unless the file would be larger than 2 GB: then FILE.data.
  std::string external_file;
  uint64_t external_min_bytes = 1024;
  SaveProgress progress;
  // Tests set a smaller size from which an .ort needs a data file, and an .onnx a file beside it.
  uint64_t max_file_bytes = 0x7FFFFFFE;
};

struct SaveResult {
  std::string format;  // "onnx" or "ort"
  uint64_t file_bytes = 0;
  std::string data_file;  // path; "": none
  uint64_t data_bytes = 0;
  uint64_t nodes = 0;         // of the main graph
  uint64_t initializers = 0;  // distinct ones, subgraphs included
  uint64_t initializer_bytes = 0;
};

[[gnu::cold]] Result<SaveResult> save_model(const Model& model, const Evaluator& evaluator,
                                            const std::string& path, const SaveOptions& options);

}  // namespace folio
