#include "tools/folio/usage.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tools/folio/cli.h"

namespace folio_cli {

namespace {

// Letters put in, left out, replaced, or swapped with their neighbour ("bnech": one).
size_t typing_errors(const std::string& from, const std::string& to) {
  std::vector<std::vector<size_t>> least(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      size_t& here = least[i][j];
      here = std::max(i, j);  // of an empty word and another
      if (i == 0 || j == 0) continue;
      here = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                       least[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
      const bool is_swap = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_swap) here = std::min(here, least[i - 2][j - 2] + 1);
    }
  }
  return least[from.size()][to.size()];
}

// " (did you mean ...?)" of the word that was meant, or "".
std::string guess(const std::string& word, const std::vector<std::string>& words) {
  constexpr size_t kTypingErrorsMax = 2;
  std::string best;
  size_t fewest = kTypingErrorsMax + 1;
  for (const std::string& other : words) {
    const size_t errors = typing_errors(word, other);
    if (errors >= fewest || errors >= other.size()) continue;
    fewest = errors;
    best = other;
  }
  return best.empty() ? "" : " (did you mean " + best + "?)";
}

}  // namespace

CLI::Validator whole_number(uint64_t min, uint64_t max) {
  const auto check = [min, max](std::string& text) -> std::string {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && at == end && number >= min && number <= max) {
      text = std::to_string(number);  // CLI11 would take 010 for 8
      return "";
    }
    const std::string low = std::to_string(min);
    return "needs a whole number " +
           (max == std::numeric_limits<uint64_t>::max()
                ? "of at least " + low
                : "from " + low + " to " + std::to_string(max)) +
           ", got '" + text + "'";
  };
  return {check, ""};
}

CLI::Validator real_number() {
  const auto check = [](std::string& text) -> std::string {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && std::isfinite(number) && number >= 0) return "";
    return "needs a number of at least 0, got '" + text + "'";
  };
  return {check, ""};
}

std::string wrong_option(const std::vector<std::string>& words,
                         const std::vector<std::string>& options) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_known = std::find(options.begin(), options.end(), name) != options.end();
    if (name.size() < 2 || name[0] != '-' || is_known) continue;
    return "there is no option '" + name + "'" + guess(name, options);
  }
  return "";
}

std::string wrong_command(const std::string& word, const std::vector<std::string>& commands) {
  const std::string list = list_text(commands);
  if (word.empty()) return "needs a command: " + list;
  return "there is no command '" + word + "'" + guess(word, commands) + "; commands: " + list;
}

}  // namespace folio_cli
