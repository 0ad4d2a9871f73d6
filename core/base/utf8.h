// UTF-8 checks for names that come from files and users.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace folio {

// True when `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most
// U+10FFFF). NUL is a character like any other.
bool utf8_valid(std::string_view text);

// `text` with every byte that belongs to no well-formed character replaced by U+FFFD. For texts
// that are only shown (doc strings, producer names).
std::string utf8_repaired(std::string_view text);

// At most `max_bytes` of valid `text`, cut between characters, with "..." when cut. For messages.
std::string utf8_shortened(std::string_view text, size_t max_bytes);

}  // namespace folio
