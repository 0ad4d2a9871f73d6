// Text in parts.
#pragma once

#include <algorithm>
#include <string_view>

namespace folio {

// Calls visit(part) for what stands between separators, empty parts too, but for what follows the
// last separator when that is nothing.
template <typename Visit>
void each_part(std::string_view text, char separator, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace folio
