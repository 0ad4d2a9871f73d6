// folio pack, folio store, and folio inspect of a pack file.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/print_json.h"
#include "tools/folio/progress_line.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

std::string size_text(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10 << 10) return std::to_string(bytes) + " bytes";
  if (bytes < 10 << 20) return number_text("%.1f KB", number / (1 << 10));
  return number_text("%.1f MB", number / (1 << 20));
}

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
void check_dims(const PackCommand& command, const folio::Model& model) {
  InputOptions named;
  named.dims = command.dims;
  RandomInputs(named).check_names(ports_of(model.inputs()));
}

FolioPackResult pack_one(const PackCommand& command, const std::string& path) {
  const folio::Model model = folio::Model::open(path);
  check_dims(command, model);
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
  bool is_complete = true;
  for (const std::string& model : command.models) {
    const FolioPackResult result = pack_one(command, model);
    is_complete = is_complete && result.missing_blob_count == 0;
    const std::string target = target_of(command, model);
    if (command.json) {
      Json json = {{"model", model},
                   {"target", target},
                   {"written_blob_count", result.written_blob_count},
                   {"written_blob_bytes", result.written_blob_bytes},
                   {"found_blob_count", result.found_blob_count},
                   {"missing_blob_count", result.missing_blob_count}};
      if (command.replace) {
        json["raw_blob_count"] = result.raw_blob_count;
        json["raw_blob_bytes"] = result.raw_blob_bytes;
      }
      print_json(json, JsonForm::kOneLine);
    } else if (command.replace) {
      const uint64_t packed = result.written_blob_count - result.raw_blob_count;
      std::printf("%s: %llu weights packed, %s; %llu as they are, %s; all read back and equal\n",
                  target.c_str(), static_cast<unsigned long long>(packed),
                  size_text(result.written_blob_bytes - result.raw_blob_bytes).c_str(),
                  static_cast<unsigned long long>(result.raw_blob_count),
                  size_text(result.raw_blob_bytes).c_str());
    } else if (command.check) {
      std::printf("%s: %llu weights found, %llu missing\n", target.c_str(),
                  static_cast<unsigned long long>(result.found_blob_count),
                  static_cast<unsigned long long>(result.missing_blob_count));
    } else {
      std::printf("%s: %llu weights packed, %s%s\n", target.c_str(),
                  static_cast<unsigned long long>(result.written_blob_count),
                  size_text(result.written_blob_bytes).c_str(),
                  result.found_blob_count > 0
                      ? (", " + std::to_string(result.found_blob_count) + " were there").c_str()
                      : "");
    }
  }
  return is_complete ? kExitOk : kExitTestFailed;
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
