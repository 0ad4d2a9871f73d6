// write_ort: an .ort file out of a ModelDef, as ONNX Runtime lays it out or deliberately wrong.
//
// Flow:    tests build a ModelDef, write it, and load the bytes again.
// Owns:    nothing.
// Errors:  none; the caller's ModelDef is written as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_def.h"

namespace folio {

// One Tensor table before it is written.
struct OrtTensorFields {
  std::string name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::string raw_data;
  std::vector<std::string> string_data;
  int64_t external_data_offset = -1;
};

struct OrtSparseInitializer {
  std::string name;  // of the values, and so of the initializer
  Tensor values;
  Tensor indices;
  std::vector<int64_t> dims;
};

struct OrtWriteOptions {
  std::string ort_version = "6";
  size_t payload_alignment = 4;                           // ORT's; or a power of two above
  std::vector<OrtSparseInitializer> sparse_initializers;  // of the main graph
  bool with_runtime_optimizations = false;                // one record, on node 0
  // Sees every Tensor table of the file and may change it.
  std::function<void(OrtTensorFields*)> edit_tensor;
};

// Types stand in graph.values; inputs and outputs that are not among these are added.
std::string write_ort(const ModelDef& model, const OrtWriteOptions& options = {});

// Shorthands for such models.
Tensor ort_float_tensor(const std::vector<float>& values, const Shape& shape);
ValueDef ort_float_value(std::string name, const std::vector<int64_t>& dims);

// x -> Add(x, w) -> y at opset 14, with w a float initializer of `w_count` elements 0, 1, 2 ...
ModelDef ort_add_model(int64_t w_count);

}  // namespace folio
