// folio inspect: what is in a model, without running or compiling it.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"
#include "tools/folio/print_json.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

constexpr size_t kMetadataCharsMax = 200;  // in the table; JSON has all

// "float[batch,3,224,?]", "sequence(int64[?])", "map(string, float)".
std::string type_text(const folio::ValueInfo& info) {
  const auto element = [&info] { return info.element.empty() ? "?" : type_text(info.element[0]); };
  switch (info.kind) {
    case FOLIO_KIND_SEQUENCE:
      return "sequence(" + element() + ")";
    case FOLIO_KIND_OPTIONAL:
      return "optional(" + element() + ")";
    case FOLIO_KIND_MAP:
      return "map(" + std::string(facts_of(info.type).name) + ", " + element() + ")";
    case FOLIO_KIND_TENSOR:
      break;
    default:
      return "?";
  }
  std::string text = facts_of(info.type).name;
  if (!info.has_shape) return text;
  text += "[";
  for (size_t i = 0; i < info.dims.size(); ++i) {
    const std::string& symbol = info.symbolic_dims[i];
    if (i != 0) text += ",";
    text += info.dims[i] >= 0 ? std::to_string(info.dims[i]) : symbol.empty() ? "?" : symbol;
  }
  return text + "]";
}

const char* kind_name(folio::ValueKind kind) {
  switch (kind) {
    case FOLIO_KIND_TENSOR:
      return "tensor";
    case FOLIO_KIND_SEQUENCE:
      return "sequence";
    case FOLIO_KIND_MAP:
      return "map";
    case FOLIO_KIND_OPTIONAL:
      return "optional";
    default:
      return "unknown";
  }
}

Json info_json(const folio::ValueInfo& info) {
  Json json = {{"name", info.name}, {"kind", kind_name(info.kind)}, {"type", type_text(info)}};
  if (info.type != FOLIO_UNDEFINED) json["element_type"] = facts_of(info.type).name;
  if (!info.has_shape) return json;
  Json dims = Json::array();
  for (size_t i = 0; i < info.dims.size(); ++i) {
    if (info.dims[i] >= 0) {
      dims.push_back(info.dims[i]);
    } else {
      dims.push_back(info.symbolic_dims[i].empty() ? Json() : Json(info.symbolic_dims[i]));
    }
  }
  json["dims"] = dims;
  return json;
}

Json infos_json(const std::vector<folio::ValueInfo>& infos) {
  Json list = Json::array();
  for (const folio::ValueInfo& info : infos) list.push_back(info_json(info));
  return list;
}

Json to_json(const folio::Model& model) {
  const FolioModelInfo info = model.info();
  Json json = {{"path", info.path},
               {"format", info.format},
               {"file_bytes", info.file_bytes},
               {"ir_version", info.ir_version},
               {"model_version", info.model_version},
               {"producer_name", info.producer_name},
               {"producer_version", info.producer_version},
               {"domain", info.domain},
               {"description", info.description},
               {"graph_name", info.graph_name},
               {"node_count", info.node_count},
               {"initializer_count", info.initializer_count},
               {"initializer_bytes", info.initializer_bytes}};
  json["opsets"] = Json::object();
  for (const auto& [domain, version] : model.opsets()) json["opsets"][domain] = version;
  json["inputs"] = infos_json(model.inputs());
  json["outputs"] = infos_json(model.outputs());
  json["overridable_initializers"] = infos_json(model.overridable_initializers());
  json["operators"] = Json::object();
  for (const auto& [name, count] : model.operators()) json["operators"][name] = count;
  json["metadata"] = Json::object();
  for (const auto& [key, value] : model.metadata()) json["metadata"][key] = value;
  json["unsupported"] = Json::array();
  for (const auto& op : model.unsupported_operators()) {
    json["unsupported"].push_back({{"domain", op.domain},
                                   {"op_type", op.op_type},
                                   {"opset_version", op.opset_version},
                                   {"node", op.node_name},
                                   {"reason", op.reason}});
  }
  return json;
}

std::string size_text(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10 << 10) return std::to_string(bytes) + " bytes";
  if (bytes < 10 << 20) return number_text("%.1f KB", number / (1 << 10));
  return number_text("%.1f MB", number / (1 << 20));
}

void print_infos(const char* title, const std::vector<folio::ValueInfo>& infos) {
  if (infos.empty()) return;
  Table table({{"", Align::kLeft}, {"", Align::kLeft}});
  for (const folio::ValueInfo& info : infos) {
    table.add({"  " + one_line(info.name), one_line(type_text(info))});
  }
  std::printf("\n%s\n%s", title, table.text().c_str());
}

void print_operators(const folio::Model& model) {
  auto operators = model.operators();
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({{"", Align::kRight}, {"", Align::kLeft}});
  for (const auto& [name, count] : operators) {
    table.add({"  " + std::to_string(count), one_line(name)});
  }
  std::printf("\noperators\n%s", table.text().c_str());
}

void print_head(const folio::Model& model) {
  const FolioModelInfo info = model.info();
  Table table({{"", Align::kLeft}, {"", Align::kLeft}});
  const auto add = [&table](const char* name, const std::string& value) {
    if (!value.empty()) table.add({name, one_line(value)});
  };
  add("file", info.path);
  add("format", std::string(info.format) + ", IR " + std::to_string(info.ir_version));
  std::string opsets;
  for (const auto& [domain, version] : model.opsets()) {
    opsets += (opsets.empty() ? "" : ", ") + (domain.empty() ? "ai.onnx" : domain) + " " +
              std::to_string(version);
  }
  add("opsets", opsets);
  add("producer", std::string(info.producer_name) + " " + info.producer_version);
  add("graph", info.graph_name);
  if (info.model_version != 0) add("version", std::to_string(info.model_version));
  add("domain", info.domain);
  add("description", info.description);
  add("size", size_text(info.file_bytes) + " in the model file, " +
                  size_text(info.initializer_bytes) + " of weights in " +
                  std::to_string(info.initializer_count) + " initializers");
  add("nodes", std::to_string(info.node_count));
  std::printf("%s", table.text().c_str());
}

void print_text(const folio::Model& model) {
  print_head(model);
  print_infos("inputs", model.inputs());
  print_infos("inputs with a default", model.overridable_initializers());
  print_infos("outputs", model.outputs());
  print_operators(model);
  const auto metadata = model.metadata();
  if (!metadata.empty()) std::printf("\nmetadata\n");
  for (const auto& [key, value] : metadata) {
    const bool cut = value.size() > kMetadataCharsMax;
    std::printf("  %s: %s%s\n", one_line(key).c_str(),
                one_line(value.substr(0, kMetadataCharsMax)).c_str(), cut ? " ..." : "");
  }
  const auto unsupported = model.unsupported_operators();
  if (unsupported.empty()) return;
  Table table({{"  node", Align::kLeft}, {"operator", Align::kLeft}, {"reason", Align::kLeft}});
  for (const auto& op : unsupported) {
    const std::string name = (op.domain.empty() ? "" : op.domain + ".") + op.op_type + "-" +
                             std::to_string(op.opset_version);
    table.add({"  " + (op.node_name.empty() ? "(no name)" : one_line(op.node_name)), one_line(name),
               one_line(op.reason)});
  }
  std::printf("\nunsupported\n%s", table.text().c_str());
}

}  // namespace

int run_inspect(const CommonOptions& common, const InspectCommand& command) {
  load_library(common);
  if (command.model.ends_with(".fpack")) return inspect_pack_file(command.model, command.json);
  const folio::Model model = folio::Model::open(command.model);
  if (command.json) {
    print_json(to_json(model), JsonForm::kIndented);
  } else {
    print_text(model);
  }
  return model.unsupported_operators().empty() ? kExitOk : kExitUnsupported;
}

}  // namespace folio_cli
