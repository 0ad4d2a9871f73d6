#include "tools/folio/test_layout.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tools/folio/cli.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;

constexpr char kSetPrefix[] = "test_data_set_";

bool is_set(const fs::path& path) { return path.filename().string().rfind(kSetPrefix, 0) == 0; }

// `open`: the folders that are being walked already.
void find_below(const fs::path& folder, std::set<fs::path>* open, std::vector<fs::path>* models) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !open->insert(real).second) return;
  for (const char* name : {"model.onnx", "model.ort"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) models->push_back(folder / name);
  }
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!is_set(it->path()) && fs::is_directory(it->path(), ignored)) folders.push_back(it->path());
  }
  if (error) {
    throw CliError(kExitUsage, "cannot list " + folder.string() + ": " + error.message());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) find_below(below, open, models);
  open->erase(real);
}

void take(const nlohmann::json& object, const char* key, std::optional<double>* out) {
  if (object.contains(key) && object[key].is_number()) *out = object[key].get<double>();
}

}  // namespace

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<std::pair<uint64_t, fs::path>> sets;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!is_set(it->path()) || !fs::is_directory(it->path(), ignored)) continue;
    const std::string number = it->path().filename().string().substr(sizeof kSetPrefix - 1);
    sets.emplace_back(std::strtoull(number.c_str(), nullptr, 10), it->path());
  }
  std::sort(sets.begin(), sets.end());
  std::vector<fs::path> paths;
  for (const auto& [number, path] : sets) paths.push_back(path);
  return paths;
}

std::vector<fs::path> models_below(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw CliError(kExitUsage, folder.string() + " is not a folder");
  }
  std::vector<fs::path> models;
  std::set<fs::path> open;
  find_below(folder, &open, &models);
  return models;
}

fs::path data_file(const fs::path& set, const char* what, size_t index) {
  return set / (std::string(what) + "_" + std::to_string(index) + ".pb");
}

HostValue read_value(const fs::path& path, const Port& port) {
  HostValue value = read_pb(path.string(), port.kind);
  const bool is_tensor = value.kind == FOLIO_KIND_TENSOR;
  if (is_tensor && port.type == FOLIO_BFLOAT16 && value.type == FOLIO_UINT16) {
    value.type = FOLIO_BFLOAT16;
  }
  return value;
}

std::vector<NamedValue> read_inputs(const fs::path& set, const std::vector<Port>& ports) {
  std::vector<NamedValue> inputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    const fs::path path = data_file(set, "input", i);
    if (!fs::exists(path)) continue;
    HostValue value = read_value(path, ports[i]);
    if (value.kind == FOLIO_KIND_OPTIONAL && value.parts.empty()) continue;
    if (value.kind == FOLIO_KIND_SEQUENCE && value.parts.empty()) {
      value.type = ports[i].element;  // which the file of an empty sequence does not say
    }
    inputs.push_back({ports[i].name, std::move(value)});
  }
  if (fs::exists(data_file(set, "input", ports.size()))) {
    throw CliError(kExitCannotRun, data_file(set, "input", ports.size()).string() +
                                       ": the model has " + std::to_string(ports.size()) +
                                       " inputs");
  }
  return inputs;
}

Tolerances::Tolerances(const fs::path& folder, double rtol, double atol)
    : rtol_(rtol), atol_(atol) {
  std::error_code error;
  const fs::path path = folder / "data.json";
  if (!fs::exists(path, error)) return;
  data_ = nlohmann::json::parse(read_file(path.string()), nullptr, false);
  if (!data_.is_object()) {
    throw CliError(kExitCannotRun, path.string() + " is not a JSON object");
  }
}

Tolerance Tolerances::of(const std::string& output) const {
  Tolerance result;
  take(data_, "rtol", &result.rtol);
  take(data_, "atol", &result.atol);
  if (data_.contains("outputs") && data_["outputs"].contains(output)) {
    take(data_["outputs"][output], "rtol", &result.rtol);
    take(data_["outputs"][output], "atol", &result.atol);
  }
  if (rtol_ >= 0) result.rtol = rtol_;
  if (atol_ >= 0) result.atol = atol_;
  return result;
}

}  // namespace folio_cli
