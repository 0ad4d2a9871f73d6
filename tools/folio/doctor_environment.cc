#include "tools/folio/doctor_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "tools/folio/cli.h"
#include "tools/folio/pack_report.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;
using Json = Findings::Json;

// Every variable that the library, this command or the bindings read; docs/config_keys.md says what
// they do. tests/tools/folio_doctor_test.py looks for others in the sources.
constexpr const char* kVariables[] = {"FOLIO_CONFIG",      "FOLIO_PACK_STORE",
                                      "FOLIO_THREADS",     "FOLIO_CPU",
                                      "FOLIO_NATIVE_PATH", "FOLIO_ORT_LIBRARY",
                                      "XDG_CACHE_HOME",    "HOME",
                                      "XDG_RUNTIME_DIR",   "TMPDIR"};

std::string lower_case(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The value of folio.pack_store where options begin, and the variable that says so.
struct StoreList {
  std::string variable;
  std::string folders;
};
StoreList store_list() {
  StoreList list = {"FOLIO_PACK_STORE", value_of("FOLIO_PACK_STORE")};
  for (const std::string& part : split(value_of("FOLIO_CONFIG"), ';')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || trimmed(part.substr(0, equals)) != "folio.pack_store") {
      continue;
    }
    list = {"FOLIO_CONFIG", trimmed(part.substr(equals + 1))};
  }
  return list;
}

// Whether the library could make `folder`, and those above it that are missing.
bool can_be_made(const fs::path& folder) {
  std::error_code error;
  fs::path above = fs::absolute(folder, error);
  while (!fs::exists(above, error) && above.has_relative_path()) above = above.parent_path();
  return access(above.c_str(), W_OK | X_OK) == 0;
}

// What is in a folder of the list.
struct Store {
  const char* state = "unusable";  // or packs, empty, missing
  std::string text;                // what there is, or why it cannot be used
  bool is_writable = false;
  Json counts = Json::object();
};

// As the library has it: who can write a store can change results.
bool is_trusted(const struct stat& folder) {
  const bool is_ours = folder.st_uid == 0 || folder.st_uid == geteuid();
  return is_ours && (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool has_been_used(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "index.fpack", ignored) || fs::exists(folder / "lock", ignored);
}

Store store_in(const std::string& folder) {
  Store store;
  struct stat found = {};
  if (stat(folder.c_str(), &found) != 0 && errno == ENOENT) {
    store.is_writable = can_be_made(folder);
    store.state = "missing";
    store.text = store.is_writable ? "not there, can be made" : "not there, cannot be made";
    return store;
  }
  store.is_writable = access(folder.c_str(), W_OK | X_OK) == 0;
  if (S_ISDIR(found.st_mode) && is_trusted(found) && !has_been_used(folder)) {
    store.state = "empty";
    store.text = "no packs";
    return store;
  }
  try {
    store.counts = Json::parse(folio::pack_store_json(folder));
    store.state = "packs";
    store.text = store.counts["pack_count"].dump() + " packs, " +
                 store.counts["blob_count"].dump() + " blobs, " + size_text(store.counts["bytes"]);
  } catch (const folio::Error& error) {
    store.text = error.what();
  }
  return store;
}

Json store_json(const std::string& folder, const Store& store) {
  const auto count = [&store](const char* key) {
    return store.counts.contains(key) ? store.counts[key] : Json(0);
  };
  const bool is_usable = std::string(store.state) != "unusable";
  return {{"path", folder},
          {"state", store.state},
          {"writable", store.is_writable},
          {"pack_count", count("pack_count")},
          {"blob_count", count("blob_count")},
          {"bytes", count("bytes")},
          {"error", is_usable ? Json() : Json(store.text)}};
}

// `is_last`: what is packed is added there.
void note_store(const std::string& variable, const std::string& folder, bool is_last,
                Findings* findings) {
  const Store store = store_in(folder);
  const std::string state = store.state;
  const bool is_unusable = state == "unusable";
  std::string text = store.text;
  if (!is_unusable && state != "missing" && is_last)
    text += store.is_writable ? ", writable" : ", not writable";
  findings->append("pack_stores", "pack store " + folder, store_json(folder, store), text);
  const std::string start = variable + ": ";
  if (is_unusable) {
    findings->warn(start + store.text + "; this pack store is not used");
  } else if (is_last && !store.is_writable) {
    findings->warn(start + "'" + folder + "' cannot be " +
                   (state == "missing" ? "made" : "written") +
                   ": weights that are packed are not kept; name a folder of this user");
  } else if (!is_last && state == "missing") {
    findings->warn(start + "'" + folder + "' is not there, and only the last store is made");
  }
}

}  // namespace

folio::Env collect_warnings(Findings* findings) {
  folio::EnvOptions options;
  options.log = [findings](folio::LogLevel /*level*/, const std::string& message) {
    findings->warn(message);
  };
  return folio::Env(options);
}

void find_environment(Findings* findings) {
  findings->begin("environment", "environment");
  for (const char* name : kVariables) {
    const char* const value = std::getenv(name);
    findings->add(lower_case(name), name, value == nullptr ? Json() : Json(value),
                  value == nullptr ? "not set" : value);
  }
  const folio::SessionOptions defaults;  // reads FOLIO_CONFIG and FOLIO_PACK_STORE, and warns
  const StoreList list = store_list();
  std::vector<std::string> folders = split(list.folders, ':');
  folders.erase(std::remove(folders.begin(), folders.end(), ""), folders.end());
  for (const std::string& folder : folders) {
    note_store(list.variable, folder, &folder == &folders.back(), findings);
  }
}

}  // namespace folio_cli
