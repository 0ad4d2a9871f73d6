// folio run: one run of a model, with inputs from files or made up.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"
#include "tools/folio/host_value.h"
#include "tools/folio/npy.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/table.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

constexpr size_t kShownElements = 6;

HostValue read_input(const std::string& path, const folio::ValueInfo& info) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") return read_npy(path, info.type);
  if (extension == ".pb") return read_pb(path, info.kind);
  throw CliError(kExitUsage, "--input " + info.name + "=" + path + ": neither .npy nor .pb");
}

std::string first_elements(const HostValue& tensor) {
  std::string text;
  const size_t count = tensor.element_count();
  for (size_t i = 0; i < std::min(count, kShownElements); ++i) {
    if (i != 0) text += " ";
    if (tensor.type == FOLIO_STRING) {
      text += "'" + one_line(tensor.strings[i]) + "'";
    } else if (is_integer(tensor.type) || is_complex(tensor.type)) {
      text += element_as_text(tensor.type, tensor.bytes.data(), i);
    } else {
      text += number_text("%.6g", element_as_double(tensor.type, tensor.bytes.data(), i));
    }
  }
  return text + (count > kShownElements ? " ..." : "");
}

// "min, mean, max" over what is finite, and how many are not.
std::string summary(const HostValue& tensor) {
  const size_t count = tensor.element_count();
  if (tensor.type == FOLIO_STRING || is_complex(tensor.type) || count <= kShownElements) return "";
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  double sum = 0;
  size_t finite = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = element_as_double(tensor.type, tensor.bytes.data(), i);
    if (!std::isfinite(value)) continue;
    low = std::fmin(low, value);
    high = std::fmax(high, value);
    sum += value;
    ++finite;
  }
  std::string text;
  if (finite != 0) {
    text = "min " + number_text("%.6g", low) + ", mean " +
           number_text("%.6g", sum / static_cast<double>(finite)) + ", max " +
           number_text("%.6g", high);
  }
  if (finite != count) {
    text += (text.empty() ? "" : ", ") + std::to_string(count - finite) + " not finite";
  }
  return text;
}

// Names of parts are the value's with _0, _1 ... or _keys, _values.
void show(const std::string& name, const HostValue& value, const std::string& indent) {
  std::printf("%s%s  %s\n", indent.c_str(), one_line(name).c_str(), describe(value).c_str());
  if (value.kind == FOLIO_KIND_TENSOR) {
    const std::string numbers = summary(value);
    if (!numbers.empty()) std::printf("%s  %s\n", indent.c_str(), numbers.c_str());
    if (value.element_count() != 0) {
      std::printf("%s  %s\n", indent.c_str(), first_elements(value).c_str());
    }
    return;
  }
  const bool is_map = value.kind == FOLIO_KIND_MAP;
  for (size_t i = 0; i < std::min(value.parts.size(), kShownElements); ++i) {
    const std::string part = is_map ? (i == 0 ? "keys" : "values") : std::to_string(i);
    show(part, value.parts[i], indent + "  ");
  }
  if (value.parts.size() > kShownElements) std::printf("%s  ...\n", indent.c_str());
}

class OutputFolder {
 public:
  explicit OutputFolder(const std::string& folder) : folder_(folder) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      throw CliError(kExitCannotRun, "cannot make the folder " + folder + ": " + error.message());
    }
  }

  // Writes the tensors that `value` consists of.
  void write(const std::string& name, const HostValue& value) {
    if (value.kind != FOLIO_KIND_TENSOR) {
      const bool is_map = value.kind == FOLIO_KIND_MAP;
      for (size_t i = 0; i < value.parts.size(); ++i) {
        const std::string part = is_map ? (i == 0 ? "keys" : "values") : std::to_string(i);
        write(name + "_" + part, value.parts[i]);
      }
      return;
    }
    const std::filesystem::path path = folder_ / file_name(name);
    write_npy(path.string(), value);
    const std::string note = npy_note(value.type);
    std::printf("wrote %s%s\n", path.c_str(), note.empty() ? "" : (" (" + note + ")").c_str());
  }

 private:
  // Names of values may hold anything; two names must not become one file.
  std::string file_name(const std::string& name) {
    std::string stem = one_line(name);
    for (char& c : stem) {
      if (c == '/' || c == ' ') c = '_';
    }
    if (stem.empty() || stem[0] == '.') stem = "_" + stem;
    std::string file = stem + ".npy";
    for (int i = 2; !taken_.insert(file).second; ++i)
      file = stem + "_" + std::to_string(i) + ".npy";
    return file;
  }

  std::filesystem::path folder_;
  std::set<std::string> taken_;
};

std::map<std::string, std::string> input_files(const RunCommand& command) {
  std::map<std::string, std::string> files;
  for (const std::string& option : command.inputs) {
    const auto [name, file] = split_assignment("--input", option, SplitAt::kFirst);
    if (!files.emplace(name, file).second) {
      throw CliError(kExitUsage, "--input " + name + " is given twice");
    }
  }
  return files;
}

std::string names_of(const std::vector<folio::ValueInfo>& infos) {
  std::string names;
  for (const folio::ValueInfo& info : infos) names += (names.empty() ? "" : ", ") + info.name;
  return names;
}

}  // namespace

int run_run(const CommonOptions& common, const RunCommand& command) {
  auto files = input_files(command);
  const RandomInputs random(command.input);
  load_library(common);
  folio::Session session(command.model, make_session_options(command.session));
  const std::vector<folio::ValueInfo> infos = session.inputs();
  const std::string unused = random.unused_names(ports_of(infos));
  if (!unused.empty()) throw CliError(kExitUsage, "no input has the name of" + unused);
  std::vector<std::string> names;
  std::vector<folio::Value> values;
  const auto add = [&](const folio::ValueInfo& info, bool may_make_up) {
    const auto file = files.find(info.name);
    if (file == files.end() && !may_make_up) return;
    const HostValue value =
        file == files.end() ? random.make(port_of(info)) : read_input(file->second, info);
    if (file != files.end()) files.erase(file);
    names.push_back(info.name);
    values.push_back(to_value(value));
  };
  for (const folio::ValueInfo& info : infos) add(info, true);
  for (const folio::ValueInfo& info : session.overridable_initializers()) add(info, false);
  if (!files.empty()) {
    throw CliError(kExitUsage, "--input " + files.begin()->first +
                                   ": the model's inputs are: " + names_of(infos));
  }
  std::vector<folio::Input> inputs;
  for (size_t i = 0; i < names.size(); ++i) inputs.emplace_back(names[i], values[i]);
  const std::vector<folio::Value> outputs = session.run(inputs);
  // A store gets what was packed when all is; without one nobody needs the rest.
  const auto names_store = [](const std::string& entry) {
    return entry.rfind("folio.pack_store=", 0) == 0;
  };
  const std::vector<std::string>& config = command.session.config;
  if (std::any_of(config.begin(), config.end(), names_store)) session.wait_packed();
  const std::vector<folio::ValueInfo> output_infos = session.outputs();
  std::vector<HostValue> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(from_value(outputs[i]));
    show(output_infos[i].name, results[i], "");
  }
  if (command.output_dir.empty()) return kExitOk;
  OutputFolder folder(command.output_dir);
  for (size_t i = 0; i < results.size(); ++i) folder.write(output_infos[i].name, results[i]);
  return kExitOk;
}

}  // namespace folio_cli
