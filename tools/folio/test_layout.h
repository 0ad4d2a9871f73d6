// The ONNX test layout: model.onnx or model.ort, data.json and test_data_set_<k> beside it.
//
// Flow:    models_below -> data_sets -> read_inputs -> run -> output_<i>.pb with Tolerances.
// Threads: one.
// Errors:  CliError that names the file or folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/folio/compare.h"
#include "tools/folio/host_value.h"
#include "tools/folio/port.h"

namespace folio_cli {

// test_data_set_0, test_data_set_1 ... by number.
std::vector<std::filesystem::path> data_sets(const std::filesystem::path& folder);

// Every model.onnx and model.ort in `folder` and below. Links are followed, but not in circles.
std::vector<std::filesystem::path> models_below(const std::filesystem::path& folder);

// <set>/<what>_<index>.pb
std::filesystem::path data_file(const std::filesystem::path& set, const char* what, size_t index);

// A file's value as what the model declares. NumPy has no bfloat16, so the files of ONNX up to 1.12
// hold such numbers' bits as uint16: where the model says bfloat16 they are taken for that.
HostValue read_value(const std::filesystem::path& path, const Port& port);

struct NamedValue {
  std::string name;
  HostValue value;
};

// The inputs of a set; one without a file is left out, as is an empty optional.
std::vector<NamedValue> read_inputs(const std::filesystem::path& set,
                                    const std::vector<Port>& ports);

// data.json: {"rtol", "atol", "outputs": {NAME: {"atol"}}}.
class Tolerances {
 public:
  // What is given goes before the file; negative: not given.
  Tolerances(const std::filesystem::path& folder, double rtol, double atol);

  Tolerance of(const std::string& output) const;

 private:
  double rtol_;
  double atol_;
  nlohmann::json data_;
};

}  // namespace folio_cli
