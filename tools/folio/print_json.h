// print_json: what every --json of the command ends with.
//
// Errors:  none: names and paths need not be UTF-8; what is not becomes U+FFFD.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace folio_cli {

enum class JsonForm { kOneLine, kIndented };

// `Json` may keep the order of its keys or not.
template <typename Json>
void print_json(const Json& json, JsonForm form) {
  const int indent = form == JsonForm::kOneLine ? -1 : 2;
  const std::string text =
      json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

}  // namespace folio_cli
