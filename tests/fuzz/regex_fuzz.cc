// Fuzzes patterns: Regex::compile, and all matches of what compiles in a text.
//
// An input is the pattern, a byte of 0 and the text; without one the text is the pattern.
#include <cstdlib>
#include <string_view>

#include "core/ops/op_regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace folio;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view pattern = input.substr(0, end);
  const std::string_view text = end == std::string_view::npos ? input : input.substr(end + 1);
  const Result<Regex> regex = Regex::compile(pattern);
  if (regex.is_ok() == !regex.status().message().empty()) std::abort();
  if (!regex.is_ok()) return 0;
  RegexSearch search(regex.value());
  const bool all = search.full_match(text);
  bool found_all = false;
  for (size_t from = 0; from <= text.size();) {
    const auto found = search.find(text, from);
    if (!found) break;
    if (found->begin < from || found->end < found->begin || found->end > text.size()) std::abort();
    found_all |= found->begin == 0 && found->end == text.size();
    from = found->end > found->begin ? found->end : found->end + 1;
  }
  if (all && !found_all) std::abort();  // what begins first and is longest is the whole text
  return 0;
}
