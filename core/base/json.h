// Texts as JSON has them.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace folio {

// `text` in quotes, as JSON wants it; valid UTF-8.
std::string json_string(std::string_view text);

}  // namespace folio
