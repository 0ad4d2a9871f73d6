#include "tools/make_model/kinds.h"

#include <filesystem>

namespace model_writer {

namespace fs = std::filesystem;

WriteResult write_model_files(const ModelFiles& files, const std::string& model_path,
                              const WriteProgress& progress) {
  if (files.data) {
    const std::string& location = files.data->location();
    const std::string error = external_location_error(location, model_path);
    if (!error.empty()) return {error};
    const fs::path data_path = fs::path(model_path).parent_path() / location;
    const WriteResult result = files.data->write_file(data_path.string(), progress);
    if (!result.ok()) return result;
  }
  if (!files.genai_config.empty()) {
    const fs::path path = fs::path(model_path).parent_path() / "genai_config.json";
    const WriteResult result = write_text_file(files.genai_config, path.string());
    if (!result.ok()) return result;
  }
  return write_model_file(files.model, model_path, progress);
}

std::string external_location_error(const std::string& location, const std::string& model_path) {
  const std::string quoted = "external data file '" + location + "'";
  const fs::path path(location);
  if (location.empty()) return quoted + ": the name is empty";
  if (path.is_absolute()) return quoted + ": expected a path relative to the model's folder";
  for (const fs::path& part : path) {
    if (part == "..") return quoted + ": expected a path inside the model's folder, without '..'";
  }
  if (path.lexically_normal() == fs::path(model_path).filename()) {
    return quoted + ": is the model file itself";
  }
  return {};
}

ModelWriter new_model(const std::string& kind, uint64_t seed, int64_t ir_version, int64_t opset) {
  ModelWriter model(ir_version, kind);
  model.producer("folio make_model", "1");
  model.opset("", opset);
  model.metadata("make_model.kind", kind);
  model.metadata("make_model.seed", std::to_string(seed));
  return model;
}

}  // namespace model_writer
