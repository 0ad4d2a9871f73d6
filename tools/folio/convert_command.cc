// folio convert: a model as another file, optimized as far as other runtimes can follow.

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/folio/cli.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/progress_line.h"
#include "tools/folio/timing.h"

namespace folio_cli {

namespace {

// Where the library puts what does not stand in the model.
std::string data_file(const ConvertCommand& command) {
  const std::filesystem::path output(command.output);
  if (command.external_file.empty()) return command.output + ".data";
  return (output.parent_path() / command.external_file).string();
}

std::string pack_file(const ConvertCommand& command) { return command.output + ".fpack"; }

FolioPackResult pack(const ConvertCommand& command) {
  ProgressLine line("packing " + command.output);
  folio::SessionOptions session;
  session.progress([&line](const std::string&, double done) { return line.show(done); });
  folio::PackOptions options;
  options.path = pack_file(command);
  return folio::pack(folio::Model::open(command.output), session, options);
}

}  // namespace

int run_convert(const CommonOptions& common, const ConvertCommand& command) {
  if (command.external_file.find('/') != std::string::npos) {
    throw CliError(kExitUsage, "--external-data: '" + command.external_file +
                                   "' is not the name of a file beside the output");
  }
  load_library(common);
  const double start_ms = wall_ms();
  const folio::Model model = folio::Model::open(command.model);
  folio::SaveOptions options;
  options.optimize = command.optimize;
  options.format = command.format;
  options.external_file = command.external_file;
  options.external_min_bytes = command.external_min_bytes;
  FolioSaveInfo info = {};
  {
    ProgressLine line("saving " + command.output);
    options.progress = [&line](const std::string&, double fraction) { return line.show(fraction); };
    info = with_usage_errors([&] { return model.save(command.output, options); });
  }
  std::optional<FolioPackResult> packed;
  if (command.pack) packed = pack(command);
  const double seconds = (wall_ms() - start_ms) / 1e3;
  if (command.json) {
    nlohmann::ordered_json json = {{"model", command.model},
                                   {"output", command.output},
                                   {"optimize", command.optimize},
                                   {"file_bytes", info.file_bytes}};
    if (info.data_bytes > 0) json["data_file"] = data_file(command);
    json["data_bytes"] = info.data_bytes;
    json["nodes_before"] = model.info().node_count;
    json["nodes"] = info.node_count;
    json["initializers"] = info.initializer_count;
    json["initializer_bytes"] = info.initializer_bytes;
    if (packed) {
      json["pack_file"] = pack_file(command);
      add_written(*packed, &json);
    }
    json["seconds"] = seconds;
    print_json(json, JsonForm::kOneLine);
    return kExitOk;
  }
  std::printf("%s: %llu bytes, %llu nodes, %llu initializers, %.2f s\n",
              one_line(command.output).c_str(), static_cast<unsigned long long>(info.file_bytes),
              static_cast<unsigned long long>(info.node_count),
              static_cast<unsigned long long>(info.initializer_count), seconds);
  if (info.data_bytes > 0) {
    std::printf("%s: %llu bytes\n", one_line(data_file(command)).c_str(),
                static_cast<unsigned long long>(info.data_bytes));
  }
  if (packed) std::printf("%s\n", written_text(pack_file(command), *packed).c_str());
  return kExitOk;
}

}  // namespace folio_cli
