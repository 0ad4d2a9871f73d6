#include "core/session/options.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace folio {
namespace {

enum class KeyOf { kModel, kSession, kBoth };

struct Key {
  std::string_view name;
  KeyOf of;
  std::string_view values;  // for the message
  // False when the value is none of these.
  bool (*set)(ModelOptions* model, SessionOptions* session, std::string_view value);
};

bool set_flag(bool* flag, std::string_view value) {
  if (value != "0" && value != "1") return false;
  *flag = value == "1";
  return true;
}

bool set_threads(int* threads, std::string_view value) {
  if (value.empty() || value.size() > 4) return false;
  int number = 0;
  for (const char c : value) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  *threads = number;
  return true;
}

// "64", "64K", "64M", "64G": bytes.
bool set_bytes(uint64_t* bytes, std::string_view value) {
  uint64_t unit = 1;
  if (!value.empty()) {
    const char last = value.back();
    unit = last == 'K' ? 1024 : last == 'M' ? 1024 * 1024 : last == 'G' ? 1024 * 1024 * 1024 : 1;
  }
  if (unit > 1) value.remove_suffix(1);
  if (value.empty() || value.size() > 12) return false;
  uint64_t number = 0;
  for (const char c : value) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return checked_mul(number, unit, bytes);
}

// Folders separated by ':', as in PATH; empty ones are left out.
bool set_folders(std::vector<std::string>* folders, std::string_view value) {
  folders->clear();
  each_part(value, ':', [&](std::string_view folder) {
    if (!folder.empty()) folders->emplace_back(folder);
  });
  return true;
}

template <typename E, size_t N>
bool set_choice(E* target, std::string_view value,
                const std::pair<std::string_view, E> (&choices)[N]) {
  for (const auto& [name, choice] : choices) {
    if (name != value) continue;
    *target = choice;
    return true;
  }
  return false;
}

bool set_format(std::string* format, std::string_view value) {
  if (value != "ONNX" && value != "ORT") return false;
  *format = std::string(value);
  return true;
}

// Where words and paths are possible values, a path shows that it is one: a misspelt word is none.
bool is_path(std::string_view value) {
  return value.find('/') != std::string_view::npos && value.find('\0') == std::string_view::npos;
}

bool set_sidecar(SessionOptions* options, std::string_view value) {
  if (value != "auto" && value != "off" && !is_path(value) && !value.ends_with(".fpack")) {
    return false;
  }
  options->find_sidecar = value == "auto";
  options->pack.sidecar = value == "auto" || value == "off" ? "" : std::string(value);
  return true;
}

// All keys of this version. docs/config_keys.md has the same table.
constexpr Key kKeys[] = {
    {"folio.model_loading", KeyOf::kModel, "map or read",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       if (v != "map" && v != "read") return false;
       m->read_into_memory = v == "read";
       return true;
     }},
    {"folio.conv_winograd", KeyOf::kSession, "auto or off",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       if (v != "auto" && v != "off") return false;
       s->conv_winograd = v == "auto";
       return true;
     }},
    {"folio.digest_cache", KeyOf::kSession, "off, on or the path of a folder (/..., ./...)",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       if (v != "off" && v != "on" && !is_path(v)) return false;
       s->pack.digest_cache = v == "off" ? "" : v == "on" ? default_digest_cache() : std::string(v);
       return true;
     }},
    {"folio.float32_matmul_precision", KeyOf::kSession, "highest, high or medium",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_choice<FolioPrecision, 3>(
           &s->precision, v,
           {{"highest", kFolioHighest}, {"high", kFolioHigh}, {"medium", kFolioMedium}});
     }},
    {"folio.float32_weights", KeyOf::kSession, "auto, float32 or bfloat16",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_choice<FloatWeights, 3>(&s->weights, v,
                                          {{"auto", FloatWeights::kAuto},
                                           {"float32", FloatWeights::kFloat32},
                                           {"bfloat16", FloatWeights::kBfloat16}});
     }},
    {"folio.nchwc_block_size", KeyOf::kModel, "0, 8 or 16",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       return set_choice<int64_t, 3>(&m->nchwc_block_size, v, {{"0", 0}, {"8", 8}, {"16", 16}});
     }},
    {"folio.on_file_change", KeyOf::kSession, "error or warn",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       if (v != "error" && v != "warn") return false;
       s->on_file_change = v == "error" ? OnFileChange::kError : OnFileChange::kWarn;
       return true;
     }},
    {"folio.optimize", KeyOf::kSession, "all or none",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       if (v != "all" && v != "none") return false;
       s->optimize = v == "all" ? Optimize::kAll : Optimize::kOff;
       return true;
     }},
    {"folio.pack_checksum", KeyOf::kSession, "off, first_use or open",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_choice<PackChecksum, 3>(&s->pack.checksum, v,
                                          {{"off", PackChecksum::kOff},
                                           {"first_use", PackChecksum::kFirstUse},
                                           {"open", PackChecksum::kOpen}});
     }},
    {"folio.pack_sidecar", KeyOf::kSession,
     "auto, off or the path of a pack file (/..., ./..., *.fpack)",
     [](ModelOptions*, SessionOptions* s, std::string_view v) { return set_sidecar(s, v); }},
    {"folio.pack_store", KeyOf::kSession, "folders separated by ':'",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_folders(&s->pack.stores, v);
     }},
    {"folio.pack_store_limit", KeyOf::kSession, "bytes, or a number with K, M or G; 0: no limit",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_bytes(&s->pack.store_limit, v);
     }},
    {"folio.pack_trust", KeyOf::kSession, "bound, stat or verify",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_choice<PackTrust, 3>(&s->pack.trust, v,
                                       {{"bound", PackTrust::kBound},
                                        {"stat", PackTrust::kStat},
                                        {"verify", PackTrust::kVerify}});
     }},
    {"folio.packing", KeyOf::kSession, "behind, load or off",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_choice<Packing, 3>(
           &s->packing, v,
           {{"behind", Packing::kBehind}, {"load", Packing::kLoad}, {"off", Packing::kOff}});
     }},
    {"folio.profile", KeyOf::kSession, "the path of a file, without its end",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       s->profile_prefix = std::string(v);
       return true;
     }},
    {"folio.residency", KeyOf::kSession, "cache, prefetch or lock",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       if (v != "cache" && v != "prefetch" && v != "lock") return false;
       s->residency = v == "cache"      ? ResidencyMode::kCache
                      : v == "prefetch" ? ResidencyMode::kPrefetch
                                        : ResidencyMode::kLock;
       return true;
     }},
    {"folio.sigbus_guard", KeyOf::kBoth, "0 or 1",
     [](ModelOptions* m, SessionOptions* s, std::string_view v) {
       bool on = false;
       if (!set_flag(&on, v)) return false;
       if (m) m->sigbus_guard = on;
       if (s) s->sigbus_guard = on;
       return true;
     }},
    {"folio.threads", KeyOf::kSession, "a number, 0 for the process's default",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_threads(&s->threads, v);
     }},
    {"session.disable_prepacking", KeyOf::kSession, "0 or 1",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       bool disable = false;
       if (!set_flag(&disable, v)) return false;
       s->prepack = !disable;
       return true;
     }},
    {"session.set_denormal_as_zero", KeyOf::kSession, "0 or 1",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_flag(&s->flush_denormals, v);
     }},
    {"session.load_model_format", KeyOf::kModel, "ONNX or ORT",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       return set_format(&m->format, v);
     }},
    {"session.use_memory_mapped_ort_model", KeyOf::kModel, "0 or 1",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       return set_flag(&m->map_ort_model, v);
     }},
    {"session.use_ort_model_bytes_for_initializers", KeyOf::kModel, "0 or 1",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       return set_flag(&m->use_ort_bytes, v);
     }},
    {"session.use_ort_model_bytes_directly", KeyOf::kModel, "0 or 1",
     [](ModelOptions* m, SessionOptions*, std::string_view v) {
       return set_flag(&m->borrow_ort_bytes, v);
     }},
    {"session.optimized_model_filepath", KeyOf::kSession, "a path",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       s->saving.path = std::string(v);
       return true;
     }},
    {"session.save_model_format", KeyOf::kSession, "ONNX or ORT",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_format(&s->saving.format, v);
     }},
    {"session.optimized_model_external_initializers_file_name", KeyOf::kSession, "a file's name",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       s->saving.external_file = std::string(v);
       return true;
     }},
    {"session.optimized_model_external_initializers_min_size_in_bytes", KeyOf::kSession,
     "a number of bytes",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_bytes(&s->saving.external_min_bytes, v);
     }},
    {"session.save_external_prepacked_constant_initializers", KeyOf::kSession, "0 or 1",
     [](ModelOptions*, SessionOptions* s, std::string_view v) {
       return set_flag(&s->saving.packs, v);
     }},
};

// Levenshtein distance, for "did you mean".
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view key) {
  const auto closer = [&](const Key& a, const Key& b) {
    return distance(key, a.name) < distance(key, b.name);
  };
  return std::min_element(std::begin(kKeys), std::end(kKeys), closer)->name;
}

void warn_once(std::string_view key) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    // Bounded: a host that makes up keys must not grow this.
    if (warned.size() > 256 || !warned.insert(std::string(key)).second) return;
  }
  log(LogLevel::kWarning, cat("config key '", key, "' has no effect in Folio"));
}

}  // namespace

Status set_config(ModelOptions* model, SessionOptions* session, std::string_view key,
                  std::string_view value) {
  constexpr size_t kMaxKey = 1024;
  constexpr size_t kMaxValue = 8192;  // ONNX Runtime's limits
  if (key.empty() || key.size() > kMaxKey) {
    return invalid_argument("a config key has ", key.size(), " characters, expected 1 to ",
                            kMaxKey);
  }
  if (value.size() > kMaxValue) {
    return invalid_argument("the value of config key '", key, "' has ", value.size(),
                            " characters, expected at most ", kMaxValue);
  }
  for (const Key& known : kKeys) {
    if (known.name != key) continue;
    const bool fits =
        (known.of != KeyOf::kSession && model) || (known.of != KeyOf::kModel && session);
    if (!fits) {
      const std::string_view owners = known.of == KeyOf::kModel     ? "models"
                                      : known.of == KeyOf::kSession ? "sessions"
                                                                    : "models and sessions";
      return invalid_argument("config key '", key, "' is one of ", owners,
                              " and has no place here");
    }
    if (known.set(model, session, value)) return Status::ok();
    return invalid_argument("config key '", key, "' is '", value, "', expected ", known.values);
  }
  if (key.starts_with("folio.")) {
    return invalid_argument("unknown config key '", key, "'; did you mean '", nearest(key), "'?");
  }
  warn_once(key);
  return Status::ok();
}

}  // namespace folio
