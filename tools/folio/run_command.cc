// folio run: one run of a model, with inputs from files or made up.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"
#include "tools/folio/feeds.h"
#include "tools/folio/host_value.h"
#include "tools/folio/npy.h"
#include "tools/folio/print_json.h"
#include "tools/folio/progress_line.h"
#include "tools/folio/table.h"
#include "tools/folio/test_layout.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownElements = 6;

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

bool has_numbers(const HostValue& tensor) {
  return tensor.type != FOLIO_STRING && !is_complex(tensor.type);
}

// Over what is finite.
struct Summary {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  double sum = 0;
  size_t finite = 0;

  double mean() const { return sum / static_cast<double>(finite); }
};

Summary summary_of(const HostValue& tensor) {
  Summary s;
  for (size_t i = 0; i < tensor.element_count(); ++i) {
    const double value = element_as_double(tensor.type, tensor.bytes.data(), i);
    if (!std::isfinite(value)) continue;
    s.low = std::fmin(s.low, value);
    s.high = std::fmax(s.high, value);
    s.sum += value;
    ++s.finite;
  }
  return s;
}

// "min, mean, max", and how many are not finite.
std::string summary(const HostValue& tensor) {
  const size_t count = tensor.element_count();
  if (!has_numbers(tensor) || count <= kShownElements) return "";
  const Summary s = summary_of(tensor);
  std::string text;
  if (s.finite != 0) {
    text = "min " + number_text("%.6g", s.low) + ", mean " + number_text("%.6g", s.mean()) +
           ", max " + number_text("%.6g", s.high);
  }
  if (s.finite != count) {
    text += (text.empty() ? "" : ", ") + std::to_string(count - s.finite) + " not finite";
  }
  return text;
}

std::string part_name(const HostValue& whole, size_t index) {
  if (whole.kind != FOLIO_KIND_MAP) return std::to_string(index);
  return index == 0 ? "keys" : "values";
}

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
  for (size_t i = 0; i < std::min(value.parts.size(), kShownElements); ++i) {
    show(part_name(value, i), value.parts[i], indent + "  ");
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

  // The path of the file.
  std::string write(const std::string& name, const HostValue& tensor) {
    const std::string path = (folder_ / file_name(name)).string();
    write_npy(path, tensor);
    return path;
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

// Writes the tensors that `value` consists of. Names of parts are the value's with _0, _1 ... or
// _keys, _values.
void write_and_say(const std::string& name, const HostValue& value, OutputFolder* folder) {
  if (value.kind != FOLIO_KIND_TENSOR) {
    for (size_t i = 0; i < value.parts.size(); ++i) {
      write_and_say(name + "_" + part_name(value, i), value.parts[i], folder);
    }
    return;
  }
  const std::string note = npy_note(value.type);
  std::printf("wrote %s%s\n", folder->write(name, value).c_str(),
              note.empty() ? "" : (" (" + note + ")").c_str());
}

Json first_json(const HostValue& tensor) {
  Json first = Json::array();
  for (size_t i = 0; i < std::min(tensor.element_count(), kShownElements); ++i) {
    if (tensor.type == FOLIO_STRING) {
      first.push_back(tensor.strings[i]);
    } else if (is_complex(tensor.type)) {
      first.push_back(element_as_text(tensor.type, tensor.bytes.data(), i));
    } else if (is_integer(tensor.type)) {  // whole: a double holds 53 bits
      first.push_back(
          Json::parse(element_as_text(tensor.type, tensor.bytes.data(), i), nullptr, false));
    } else {
      first.push_back(element_as_double(tensor.type, tensor.bytes.data(), i));
    }
  }
  return first;
}

// `full_name` as for files, which are written if there is a folder.
Json to_json(const std::string& name, const std::string& full_name, const HostValue& value,
             OutputFolder* folder) {
  Json json = {{"name", name}};
  if (value.kind != FOLIO_KIND_TENSOR) {
    json["kind"] = value.kind == FOLIO_KIND_MAP        ? "map"
                   : value.kind == FOLIO_KIND_OPTIONAL ? "optional"
                                                       : "sequence";
    json["parts"] = Json::array();
    for (size_t i = 0; i < value.parts.size(); ++i) {
      const std::string part = part_name(value, i);
      json["parts"].push_back(to_json(part, full_name + "_" + part, value.parts[i], folder));
    }
    return json;
  }
  json["kind"] = "tensor";
  json["type"] = facts_of(value.type).name;
  json["shape"] = value.dims;
  json["first"] = first_json(value);
  if (has_numbers(value)) {
    const Summary s = summary_of(value);
    json["min"] = s.finite == 0 ? Json() : Json(s.low);
    json["mean"] = s.finite == 0 ? Json() : Json(s.mean());
    json["max"] = s.finite == 0 ? Json() : Json(s.high);
    json["not_finite"] = value.element_count() - s.finite;
  }
  if (folder != nullptr) json["file"] = folder->write(full_name, value);
  return json;
}

void print_outputs(const RunCommand& command, const std::vector<NamedValue>& outputs) {
  std::optional<OutputFolder> folder;
  if (!command.json) {
    for (const NamedValue& output : outputs) show(output.name, output.value, "");
  }
  if (!command.output_dir.empty()) folder.emplace(command.output_dir);
  if (command.json) {
    Json json = {{"model", command.model}, {"outputs", Json::array()}};
    for (const NamedValue& output : outputs) {
      json["outputs"].push_back(
          to_json(output.name, output.name, output.value, folder ? &*folder : nullptr));
    }
    print_json(json, JsonForm::kIndented);
  } else if (folder) {
    for (const NamedValue& output : outputs) write_and_say(output.name, output.value, &*folder);
  }
}

folio::Session open_session(const RunCommand& command) {
  ProgressLine line("loading " + command.model);
  folio::SessionOptions options = make_session_options(command.session);
  options.progress([&line](const std::string&, double done) { return line.show(done); });
  return folio::Session(command.model, options);
}

}  // namespace

int run_run(const CommonOptions& common, const RunCommand& command) {
  const FeedSource source(command.inputs, command.input);  // refuses bad options before the load
  load_library(common);
  folio::Session session = open_session(command);
  const std::vector<folio::Value> outputs = session.run(source.make(session).inputs);
  // A store gets what was packed when all is; without one nobody needs the rest.
  const auto names_store = [](const std::string& entry) {
    return entry.rfind("folio.pack_store=", 0) == 0;
  };
  const std::vector<std::string>& config = command.session.config;
  if (std::any_of(config.begin(), config.end(), names_store)) session.wait_packed();
  const std::vector<folio::ValueInfo> output_infos = session.outputs();
  std::vector<NamedValue> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back({output_infos[i].name, from_value(outputs[i])});
  }
  print_outputs(command, results);
  return kExitOk;
}

}  // namespace folio_cli
