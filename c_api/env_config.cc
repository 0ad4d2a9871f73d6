#include "c_api/env_config.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/log.h"
#include "core/base/text.h"

namespace folio {
namespace {

constexpr const char kConfig[] = "FOLIO_CONFIG";
constexpr const char kPackStore[] = "FOLIO_PACK_STORE";

std::string_view trimmed(std::string_view text) {
  const std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

void set(std::string_view variable, std::string_view key, std::string_view value,
         ModelOptions* model, SessionOptions* session) {
  const Status status = set_config(model, session, key, value);
  if (!status.is_ok()) {
    log(LogLevel::kWarning, cat("environment variable ", variable, ": ", status.message()));
  }
}

struct Defaults {
  ModelOptions model;
  SessionOptions session;
};

const Defaults& defaults() {
  static const auto* const made = [] {
    auto* result = new Defaults;
    // Not of a program that runs with other rights than those of who set the variables.
    if (const char* store = secure_getenv(kPackStore)) {
      set(kPackStore, "folio.pack_store", store, &result->model, &result->session);
    }
    if (const char* config = secure_getenv(kConfig)) {
      apply_config(config, &result->model, &result->session);
    }
    return result;
  }();
  return *made;
}

}  // namespace

void apply_config(std::string_view text, ModelOptions* model, SessionOptions* session) {
  each_part(text, ';', [&](std::string_view part) {
    const std::string_view entry = trimmed(part);
    if (entry.empty()) return;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      log(LogLevel::kWarning,
          cat("environment variable ", kConfig, ": '", entry, "' is not KEY=VALUE"));
      return;
    }
    set(kConfig, trimmed(entry.substr(0, equals)), trimmed(entry.substr(equals + 1)), model,
        session);
  });
}

const ModelOptions& model_defaults() { return defaults().model; }
const SessionOptions& session_defaults() { return defaults().session; }

}  // namespace folio
