#include <algorithm>
#include <iterator>

#include "core/ops/op_regex.h"

namespace folio {
namespace {

bool is_word(std::string_view text, size_t at) {  // of RE2: ASCII alone
  if (at >= text.size()) return false;
  const char c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

}  // namespace

uint32_t Regex::next_character(std::string_view text, size_t* at) {
  const size_t begin = *at;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[begin + i]); };
  ++*at;
  const uint8_t first = byte(0);
  if (first < 0x80) return first;
  const size_t more = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
  if (more == 0 || more >= text.size() - begin) return kNoCharacter;
  uint32_t c = first & (0x3fu >> more);
  for (size_t i = 1; i <= more; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kNoCharacter;
    c = c << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (c < kLeast[more]) return kNoCharacter;
  *at += more;
  return c;
}

bool Regex::Set::has(uint32_t c) const {
  if (c < 128) return (ascii[c / 64] >> (c % 64) & 1) != 0;
  const auto after =
      std::upper_bound(others.begin(), others.end(), c,
                       [](uint32_t value, const Range& r) { return value < r.first; });
  return after != others.begin() && c <= std::prev(after)->last;
}

bool RegexSearch::holds(Regex::Kind kind, std::string_view text, size_t at) const {
  switch (kind) {
    case Regex::Kind::kBeginText:
      return at == 0;
    case Regex::Kind::kEndText:
      return at == text.size();
    case Regex::Kind::kBeginLine:
      return at == 0 || text[at - 1] == '\n';
    case Regex::Kind::kEndLine:
      return at == text.size() || text[at] == '\n';
    default: {
      const bool changes = (at > 0 && is_word(text, at - 1)) != is_word(text, at);
      return changes == (kind == Regex::Kind::kBoundary);
    }
  }
}

// The first place from `at` on where a match may begin, or the end.
size_t RegexSearch::first_candidate(std::string_view text, size_t at) const {
  if (regex_.may_be_empty_) return at;
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte >= 0x80 ? !regex_.first_.others.empty() : regex_.first_.has(byte)) break;
  }
  return at;
}

// Follows a thread from `state` to the sets that it waits at. The first thread that comes to a
// state began first: those behind it are of no use.
void RegexSearch::enter(int32_t state, size_t begin, std::string_view text, size_t at) {
  if (state < 0) return;
  int32_t i = state;
  while (true) {
    int32_t next = -1;
    if (seen_[static_cast<size_t>(i)] != place_) {
      seen_[static_cast<size_t>(i)] = place_;
      const Regex::State& s = regex_.states_[static_cast<size_t>(i)];
      if (s.kind == Regex::Kind::kSet) {
        then_.push_back({i, begin});
      } else if (s.kind == Regex::Kind::kMatch) {
        // `at` only grows: a later match of the same beginning is a longer one.
        if (!best_ || begin <= best_->begin) best_ = {begin, at};
      } else if (s.kind == Regex::Kind::kSplit) {
        if (s.other >= 0) stack_.push_back(s.other);
        next = s.next;
      } else if (holds(s.kind, text, at)) {
        next = s.next;
      }
    }
    if (next < 0) {
      if (stack_.empty()) return;
      next = stack_.back();
      stack_.pop_back();
    }
    i = next;
  }
}

// Threads stand in the order in which they began.
std::optional<RegexSearch::Match> RegexSearch::run(std::string_view text, size_t from,
                                                   bool everywhere) {
  best_.reset();
  then_.clear();
  ++place_;
  for (size_t at = from;;) {
    if (everywhere && then_.empty() && !best_) {
      at = first_candidate(text, at);
      ++place_;
    }
    if (!best_ && (everywhere || at == from)) enter(regex_.start_, at, text, at);
    const bool is_over = then_.empty() && (best_ || !everywhere);
    if (is_over || at >= text.size()) return best_;
    std::swap(now_, then_);
    then_.clear();
    const uint32_t c = Regex::next_character(text, &at);
    ++place_;
    for (const Thread& thread : now_) {
      if (best_ && thread.begin > best_->begin) break;
      const Regex::State& s = regex_.states_[static_cast<size_t>(thread.state)];
      if (regex_.sets_[static_cast<size_t>(s.set)].has(c)) enter(s.next, thread.begin, text, at);
    }
  }
}

bool RegexSearch::full_match(std::string_view text) {
  const std::optional<Match> found = run(text, 0, false);
  return found && found->end == text.size();
}

std::optional<RegexSearch::Match> RegexSearch::find(std::string_view text, size_t from) {
  return run(text, from, true);
}

}  // namespace folio
