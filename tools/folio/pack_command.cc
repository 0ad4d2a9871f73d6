// folio pack, folio store, and folio inspect of a pack file.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/progress_line.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

// Bytes of "20G" and the like; "": 0.
uint64_t parse_limit(const std::string& text) {
  if (text.empty()) return 0;
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const std::string unit(at, end);
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  const bool has_unit = unit.empty() || shift != 0;
  if (error != std::errc() || !has_unit || number > (UINT64_MAX >> shift)) {
    throw CliError(
        kExitUsage,
        "--limit needs a number of bytes, alone or with K, M or G behind it (20G), got '" + text +
            "'");
  }
  return number << shift;
}

// A dim that the model lacks would be packed for nothing.
void check_dims(const PackCommand& command, const std::string& path, const folio::Model& model) {
  InputOptions named;
  named.dims = command.dims;
  const RandomInputs checked(named);
  try {
    checked.check_names(ports_of(model.inputs()));
  } catch (const CliError& error) {
    if (command.models.size() == 1) throw;
    // The others may have it.
    throw CliError(kExitCannotRun, path + ": " + error.what());
  }
}

FolioPackResult pack_one(const PackCommand& command, const std::string& path) {
  const folio::Model model = folio::Model::open(path);
  check_dims(command, path, model);
  folio::SessionOptions session = make_session_options(command.session);
  for (const std::string& dim : command.dims) {
    const auto [name, value] = split_assignment("--dim", dim, SplitAt::kLast);
    session.free_dimension(name, parse_count("--dim", value, 0));
  }
  ProgressLine line("packing " + path);
  session.progress([&](const std::string&, double done) { return line.show(done); });
  folio::PackOptions options;
  options.path = command.output;
  options.store = command.store;
  options.levels = command.levels;
  options.check = command.check;
  options.replace = command.replace;
  const auto pack = [&] { return folio::pack(model, session, options); };
  // Without it, what is not valid is rather the state of files that stand there already.
  return command.levels.empty() ? pack() : with_usage_errors(pack);
}

// With every blob compared. A file that is cut short is as damaged as one with wrong bytes.
std::string read_pack_file(const std::string& path) {
  ProgressLine line("comparing " + path + " with its checksums");
  line.show_begin();
  try {
    return folio::pack_file_json(path, /*verify=*/true);
  } catch (const folio::Error& error) {
    std::error_code ignored;
    const bool is_empty = std::filesystem::is_regular_file(path, ignored) &&
                          std::filesystem::file_size(path, ignored) == 0;
    if (error.code() != FOLIO_INVALID_GRAPH && !is_empty) throw;
    throw CliError(kExitTestFailed, error.what());
  }
}

// What is written, or checked.
std::string target_of(const PackCommand& command, const std::string& model) {
  if (!command.store.empty()) return command.store;
  if (command.replace) return (command.output.empty() ? model : command.output) + ".fpack";
  return command.output.empty() ? model + ".fpack" : command.output;
}

// `target`: where, as people read it.
std::string result_text(const PackCommand& command, const std::string& target,
                        const FolioPackResult& result) {
  if (command.replace) {
    const uint64_t packed = result.written_blob_count - result.raw_blob_count;
    return one_line(target) + ": " + std::to_string(packed) + " weights packed, " +
           size_text(result.written_blob_bytes - result.raw_blob_bytes) + "; " +
           std::to_string(result.raw_blob_count) + " as they are, " +
           size_text(result.raw_blob_bytes) + "; all read back and equal";
  }
  if (command.check) {
    return one_line(target) + ": " + std::to_string(result.found_blob_count) + " weights found, " +
           std::to_string(result.missing_blob_count) + " missing";
  }
  return written_text(target, result);
}

Json result_json(const PackCommand& command, const std::string& target,
                 const FolioPackResult& result) {
  Json json = {{"target", target}};
  add_written(result, &json);
  json["missing_blob_count"] = result.missing_blob_count;
  if (command.replace) {
    json["raw_blob_count"] = result.raw_blob_count;
    json["raw_blob_bytes"] = result.raw_blob_bytes;
  }
  return json;
}

// Packs one of the models and says how that went, on standard error if it went wrong. Throws what
// every other model would throw, too.
ExitCode pack_and_say(const PackCommand& command, const std::string& model) {
  Json json = {{"model", model}};
  ExitCode code = kExitOk;
  const auto fail = [&](const std::string& error, ExitCode why) {
    code = why;
    json["error"] = error;
    say_error(error);
  };
  try {
    const FolioPackResult result = pack_one(command, model);
    const std::string target = target_of(command, model);
    // Lines of several models into one store would be the same.
    const std::string what = command.store.empty() ? target : model + " in " + target;
    if (!command.json) std::printf("%s\n", result_text(command, what, result).c_str());
    json.update(result_json(command, target, result));
    if (result.missing_blob_count != 0) code = kExitTestFailed;
  } catch (const folio::Error& error) {
    fail(error.what(), exit_code_of(error));
  } catch (const CliError& error) {
    if (error.exit_code() == kExitUsage) throw;
    fail(error.what(), error.exit_code());
  }
  if (command.json) print_json(json, JsonForm::kOneLine);
  std::fflush(stdout);
  return code;
}

void print_file(const Json& json) {
  std::printf("file    %s\nsize    %s\nwriter  %s\n", json["path"].get<std::string>().c_str(),
              size_text(json["bytes"]).c_str(), json["writer"].get<std::string>().c_str());
  if (json["is_only_copy"]) {
    std::printf("holds the only copy of a model's weights: no cache, do not remove it\n");
  }
  Table table({{"  layout", Align::kLeft}, {"bytes", Align::kRight}, {"weight", Align::kLeft}});
  std::vector<Json> blobs = json["blobs"];
  std::stable_sort(blobs.begin(), blobs.end(),
                   [](const Json& a, const Json& b) { return a["offset"] < b["offset"]; });
  for (const Json& blob : blobs) {
    table.add({"  " + blob["layout"].get<std::string>() + "-" +
                   std::to_string(blob["version"].get<int>()),
               std::to_string(blob["bytes"].get<uint64_t>()),
               one_line(blob["name"].get<std::string>())});
  }
  std::printf("\n%zu packed weights\n%s", blobs.size(), table.text().c_str());
  for (const Json& name : json["damaged"]) {
    std::printf("DAMAGED %s\n", one_line(name.get<std::string>()).c_str());
  }
}

void print_store(const Json& json) {
  std::printf("%s: %s packs, %s blobs, %s\n", json["path"].get<std::string>().c_str(),
              json["pack_count"].dump().c_str(), json["blob_count"].dump().c_str(),
              size_text(json["bytes"]).c_str());
  if (json.contains("packs")) {
    Table table({{"  pack", Align::kLeft}, {"blobs", Align::kRight}, {"bytes", Align::kRight}});
    for (const Json& pack : json["packs"]) {
      table.add({"  " + pack["name"].get<std::string>(), pack["blob_count"].dump(),
                 pack["bytes"].dump()});
    }
    std::printf("%s", table.text().c_str());
    return;
  }
  if (json["removed_count"] != 0) {
    std::printf("removed %s files, %s\n", json["removed_count"].dump().c_str(),
                size_text(json["removed_bytes"]).c_str());
  }
  for (const Json& what : json["damaged"]) {
    std::printf("DAMAGED %s\n", one_line(what.get<std::string>()).c_str());
  }
  for (const Json& what : json["ignored"]) {
    std::printf("ignored %s\n", one_line(what.get<std::string>()).c_str());
  }
}

// The answer, parsed; with a line for those who wait for the checksums.
Json ask_store(const std::string& folder, FolioPackStoreAction action, uint64_t limit) {
  ProgressLine line("comparing the packs of " + folder + " with their checksums");
  if (action != FOLIO_PACK_STORE_LIST) line.show_begin();
  return Json::parse(folio::pack_store_json(folder, action, limit));
}

}  // namespace

int inspect_pack_file(const std::string& path, bool json) {
  const Json found = Json::parse(read_pack_file(path));
  if (json) {
    print_json(found, JsonForm::kIndented);
  } else {
    print_file(found);
  }
  return found["damaged"].empty() ? kExitOk : kExitTestFailed;
}

int run_pack(const CommonOptions& common, const PackCommand& command) {
  if (!command.output.empty() && (command.models.size() > 1 || !command.store.empty())) {
    throw CliError(kExitUsage, "-o names one file: it goes with one model and without --store");
  }
  const bool is_other = command.check || !command.store.empty() || !command.levels.empty();
  if (command.replace && (is_other || !command.dims.empty())) {
    throw CliError(kExitUsage, "--replace goes without --check, --store, --isa and --dim");
  }
  load_library(common);
  make_session_options(command.session);  // refuses what every model would refuse
  ExitCode result = kExitOk;
  size_t failed = 0;
  for (const std::string& model : command.models) {
    const ExitCode one = pack_and_say(command, model);
    if (one != kExitOk && one != kExitTestFailed) ++failed;
    // As folio compare has it; a weight that is missing (1) comes last: more is known of it.
    if (one == kExitCannotRun || (result != kExitCannotRun && one > result)) result = one;
  }
  if (failed == 0 || command.models.size() == 1) return result;
  throw CliError(result, std::to_string(failed) + " of " + std::to_string(command.models.size()) +
                             " models could not be " + (command.check ? "checked" : "packed"));
}

int run_store(const CommonOptions& common, const StoreCommand& command) {
  const uint64_t limit = parse_limit(command.limit);
  if (!command.limit.empty() && command.action != "gc") {
    throw CliError(kExitUsage, "--limit goes with gc only");
  }
  load_library(common);
  const FolioPackStoreAction action = command.action == "ls"       ? FOLIO_PACK_STORE_LIST
                                      : command.action == "verify" ? FOLIO_PACK_STORE_VERIFY
                                                                   : FOLIO_PACK_STORE_COLLECT;
  const Json found = ask_store(command.folder, action, limit);
  if (command.json) {
    print_json(found, JsonForm::kIndented);
  } else {
    print_store(found);
  }
  const bool is_damaged = action == FOLIO_PACK_STORE_VERIFY && !found["damaged"].empty();
  return is_damaged ? kExitTestFailed : kExitOk;
}

}  // namespace folio_cli
