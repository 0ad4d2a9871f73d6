#include "core/ops/op_regex.h"

#include <algorithm>
#include <string>

namespace folio {
namespace {

constexpr uint32_t kLastCharacter = 0x10ffff;
constexpr int kMaxDepth = 200;     // of groups
constexpr int kMaxRepeats = 1000;  // as RE2

// The character at `at`, which moves behind it.
uint32_t next_character(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(*at);
  const int extra = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
  uint32_t c = extra == 0 ? first : first & (0x3fu >> extra);
  if (*at + static_cast<size_t>(extra) >= text.size()) {
    ++*at;
    return first;
  }
  for (int i = 1; i <= extra; ++i) {
    const uint8_t next = byte(*at + static_cast<size_t>(i));
    if ((next & 0xc0) != 0x80) {
      ++*at;
      return first;
    }
    c = c << 6 | (next & 0x3fu);
  }
  *at += static_cast<size_t>(extra) + 1;
  return c;
}

}  // namespace

// Recursive descent over the pattern. A fragment has one entry and one exit, the latter a state
// without an effect, so that nothing needs patching later.
class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : text_(pattern) {}

  Result<Regex> compile() {
    FOLIO_TRY(const Fragment all, alternatives(0));
    if (at_ < text_.size()) return bad("an unmatched )");
    state(all.exit).kind = Regex::Kind::kMatch;
    regex_.start_ = all.entry;
    return std::move(regex_);
  }

 private:
  using Range = Regex::Range;
  using Ranges = std::vector<Range>;
  struct Fragment {
    int32_t entry = 0;
    int32_t exit = 0;  // kSplit without targets yet
  };
  struct Repeat {
    int least = 1;
    int most = 1;  // -1: any number
  };

  Regex::State& state(int32_t i) { return regex_.states_[static_cast<size_t>(i)]; }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  Status bad(std::string_view what) const {
    return invalid_graph("pattern '", text_, "' has ", what, " at ", at_);
  }

  Result<int32_t> add(Regex::Kind kind) {
    if (regex_.states_.size() >= Regex::kMaxStates) return bad("too many states");
    regex_.states_.emplace_back();
    regex_.states_.back().kind = kind;
    return static_cast<int32_t>(regex_.states_.size() - 1);
  }
  Result<Fragment> single(Regex::Kind kind) {
    FOLIO_TRY(const int32_t entry, add(kind));
    FOLIO_TRY(const int32_t exit, add(Regex::Kind::kSplit));
    state(entry).next = exit;
    return Fragment{entry, exit};
  }
  Result<Fragment> set(Ranges ranges, bool negated) {
    FOLIO_TRY(const Fragment out, single(Regex::Kind::kSet));
    state(out.entry).ranges = std::move(ranges);
    state(out.entry).negated = negated;
    return out;
  }
  Result<Fragment> nothing() {
    FOLIO_TRY(const int32_t only, add(Regex::Kind::kSplit));
    return Fragment{only, only};
  }

  Result<Fragment> alternatives(int depth) {
    if (depth > kMaxDepth) return bad("groups nested too deeply");
    FOLIO_TRY(Fragment all, sequence(depth));
    while (take("|")) {
      FOLIO_TRY(const Fragment other, sequence(depth));
      FOLIO_TRY(const int32_t entry, add(Regex::Kind::kSplit));
      FOLIO_TRY(const int32_t exit, add(Regex::Kind::kSplit));
      state(entry).next = all.entry;
      state(entry).other = other.entry;
      state(all.exit).next = exit;
      state(other.exit).next = exit;
      all = {entry, exit};
    }
    return all;
  }

  Result<Fragment> sequence(int depth) {
    FOLIO_TRY(Fragment all, nothing());
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const size_t begin = at_;
      FOLIO_TRY(Fragment part, atom(depth));
      const size_t end = at_;
      FOLIO_TRY(const Repeat times, repeat());
      if (times.least != 1 || times.most != 1) {
        FOLIO_TRY(part, repeated(part, times, begin, end, depth));
      }
      state(all.exit).next = part.entry;
      all.exit = part.exit;
    }
    return all;
  }

  // The atom of text [begin, end) as often as asked; copies are compiled from the text again.
  Result<Fragment> repeated(Fragment first, Repeat times, size_t begin, size_t end, int depth) {
    const size_t after = at_;
    FOLIO_TRY(Fragment all, nothing());
    const int copies = times.most < 0 ? std::max(times.least, 1) : times.most;
    for (int i = 0; i < copies; ++i) {
      Fragment part = first;
      if (i > 0) {
        at_ = begin;
        FOLIO_TRY(part, atom(depth));
        if (at_ != end) return bad("a part that changes when repeated");
      }
      FOLIO_TRY(const int32_t exit, add(Regex::Kind::kSplit));
      FOLIO_TRY(const int32_t entry, add(Regex::Kind::kSplit));
      state(entry).next = part.entry;
      if (i >= times.least) state(entry).other = exit;
      state(part.exit).next = exit;
      if (times.most < 0 && i == copies - 1) state(part.exit).other = part.entry;
      state(all.exit).next = entry;
      all.exit = exit;
    }
    at_ = after;
    return all;
  }

  Result<Repeat> repeat() {
    Repeat times;
    if (take("*")) {
      times = {0, -1};
    } else if (take("+")) {
      times = {1, -1};
    } else if (take("?")) {
      times = {0, 1};
    } else if (!braces(&times)) {
      return times;
    }
    if (times.least > kMaxRepeats || times.most > kMaxRepeats ||
        (times.most >= 0 && times.most < times.least)) {
      return bad("a repetition of no use");
    }
    take("?");  // lazy: the same texts match
    if (more() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) {
      return bad("a repetition of a repetition");
    }
    return times;
  }

  // {n}, {n,} or {n,m}; what looks otherwise is a plain character.
  bool braces(Repeat* times) {
    const size_t begin = at_;
    if (!take("{") || !number(&times->least)) {
      at_ = begin;
      *times = {};
      return false;
    }
    times->most = times->least;
    if (take(",") && !number(&times->most)) times->most = -1;
    if (take("}")) return true;
    at_ = begin;
    *times = {};
    return false;
  }
  bool number(int* out) {
    const size_t begin = at_;
    *out = 0;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
      *out = std::min(*out * 10 + (text_[at_++] - '0'), kMaxRepeats + 1);
    }
    return at_ > begin;
  }

  Result<Fragment> atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return bracket();
    if (take(".")) return set({{'\n', '\n'}}, true);
    if (take("^")) return single(Regex::Kind::kBegin);
    if (take("$")) return single(Regex::Kind::kEnd);
    if (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?') {
      return bad("a repetition of nothing");
    }
    if (take("\\A")) return single(Regex::Kind::kBegin);
    if (take("\\z")) return single(Regex::Kind::kEnd);
    if (take("\\Q")) return quoted();
    Ranges ranges;
    if (take("\\")) {
      bool negated = false;
      FOLIO_RETURN_IF_ERROR(escape(&ranges, &negated));
      return set(std::move(ranges), negated);
    }
    const uint32_t c = next_character(text_, &at_);
    return set({{c, c}}, false);
  }

  Result<Fragment> quoted() {
    FOLIO_TRY(Fragment all, nothing());
    while (more() && !take("\\E")) {
      const uint32_t c = next_character(text_, &at_);
      FOLIO_TRY(const Fragment part, set({{c, c}}, false));
      state(all.exit).next = part.entry;
      all.exit = part.exit;
    }
    return all;
  }

  Result<Fragment> group(int depth) {
    if (take("?P<") || (text_.substr(at_, 2) == "?<" && take("?<"))) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return bad("a group name without an end");
      at_ = end + 1;
    } else if (!take("?:") && more() && text_[at_] == '?') {
      return not_implemented("pattern '", text_, "': what follows (? at ", at_);
    }
    FOLIO_TRY(const Fragment inside, alternatives(depth + 1));
    if (!take(")")) return bad("a ( without a )");
    return inside;
  }

  static Ranges class_ranges(char name) {
    switch (name) {
      case 'd':
        return {{'0', '9'}};
      case 'w':
        return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
      default:
        return {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    }
  }

  // What follows a backslash.
  Status escape(Ranges* out, bool* negated) {
    if (!more()) return bad("a backslash at its end");
    const char c = text_[at_];
    constexpr std::string_view kNames = "ntrfva";
    constexpr std::string_view kCharacters = "\n\t\r\f\v\a";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      ++at_;
      const auto value = static_cast<uint32_t>(kCharacters[i]);
      out->push_back({value, value});
      return Status::ok();
    }
    const char lower = static_cast<char>(c | 0x20);
    if (lower == 'd' || lower == 'w' || lower == 's') {
      ++at_;
      *out = class_ranges(lower);
      *negated = c != lower;
      return Status::ok();
    }
    if (take("x")) return hexadecimal(out);
    const bool letter = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
    if (letter) return not_implemented("pattern '", text_, "': \\", std::string(1, c));
    const uint32_t value = next_character(text_, &at_);
    out->push_back({value, value});
    return Status::ok();
  }

  Status hexadecimal(Ranges* out) {
    const bool braced = take("{");
    uint32_t value = 0;
    int digits = 0;
    for (; more() && digits < (braced ? 6 : 2); ++digits, ++at_) {
      const char c = text_[at_];
      const char lower = static_cast<char>(c | 0x20);
      const bool decimal = c >= '0' && c <= '9';
      if (!decimal && !(lower >= 'a' && lower <= 'f')) break;
      value = value * 16 + static_cast<uint32_t>(decimal ? c - '0' : lower - 'a' + 10);
    }
    if (digits < (braced ? 1 : 2) || (braced && !take("}")) || value > kLastCharacter) {
      return bad("a broken \\x");
    }
    out->push_back({value, value});
    return Status::ok();
  }

  static void append_inverse(Ranges ranges, Ranges* out) {
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    uint32_t from = 0;
    for (const Range& range : ranges) {
      if (range.first > from) out->push_back({from, range.first - 1});
      from = std::max(from, range.last + 1);
    }
    if (from <= kLastCharacter) out->push_back({from, kLastCharacter});
  }

  // After "[:".
  Status named_class(Ranges* out) {
    const bool negated = take("^");
    struct Named {
      std::string_view name;
      Ranges ranges;
    };
    const Named all[] = {{"alpha:]", {{'A', 'Z'}, {'a', 'z'}}},
                         {"digit:]", {{'0', '9'}}},
                         {"alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                         {"upper:]", {{'A', 'Z'}}},
                         {"lower:]", {{'a', 'z'}}},
                         {"space:]", {{'\t', '\r'}, {' ', ' '}}},
                         {"blank:]", {{'\t', '\t'}, {' ', ' '}}},
                         {"punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                         {"xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
                         {"word:]", class_ranges('w')},
                         {"cntrl:]", {{0, 31}, {127, 127}}},
                         {"print:]", {{' ', '~'}}},
                         {"graph:]", {{'!', '~'}}},
                         {"ascii:]", {{0, 127}}}};
    for (const Named& entry : all) {
      if (!take(entry.name)) continue;
      if (negated) {
        append_inverse(entry.ranges, out);
      } else {
        out->insert(out->end(), entry.ranges.begin(), entry.ranges.end());
      }
      return Status::ok();
    }
    return bad("an unknown [:class:]");
  }

  // One character or class inside brackets; `single_character` tells which.
  Status bracket_item(Ranges* out, bool* single_character) {
    *single_character = false;
    if (take("[:")) return named_class(out);
    if (take("\\")) {
      Ranges ranges;
      bool negated = false;
      FOLIO_RETURN_IF_ERROR(escape(&ranges, &negated));
      *single_character = ranges.size() == 1 && ranges[0].first == ranges[0].last;
      if (negated) {
        append_inverse(std::move(ranges), out);
      } else {
        out->insert(out->end(), ranges.begin(), ranges.end());
      }
      return Status::ok();
    }
    const uint32_t c = next_character(text_, &at_);
    out->push_back({c, c});
    *single_character = true;
    return Status::ok();
  }

  Result<Fragment> bracket() {
    const bool negated = take("^");
    Ranges ranges;
    for (bool first = true; first || !take("]"); first = false) {
      if (!more()) return bad("a [ without a ]");
      bool single_character = false;
      FOLIO_RETURN_IF_ERROR(bracket_item(&ranges, &single_character));
      const bool is_range = single_character && text_.substr(at_, 1) == "-" &&
                            at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) continue;
      ++at_;
      Ranges last;
      FOLIO_RETURN_IF_ERROR(bracket_item(&last, &single_character));
      if (!single_character || last[0].first < ranges.back().first) return bad("a broken range");
      ranges.back().last = last[0].first;
    }
    return set(std::move(ranges), negated);
  }

  std::string_view text_;
  size_t at_ = 0;
  Regex regex_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexCompiler(pattern).compile(); }

bool Regex::accepts(const State& state, uint32_t c) {
  const bool found = std::any_of(state.ranges.begin(), state.ranges.end(), [&](const Range& range) {
    return c >= range.first && c <= range.last;
  });
  return found != state.negated;
}

// Adds what is reached from `start` without a character.
void Regex::follow(int32_t start, bool at_begin, bool at_end, std::vector<int32_t>* stack,
                   Active* out) const {
  stack->assign(1, start);
  while (!stack->empty()) {
    const int32_t i = stack->back();
    stack->pop_back();
    if (i < 0 || out->member[static_cast<size_t>(i)]) continue;
    out->member[static_cast<size_t>(i)] = 1;
    out->list.push_back(i);
    const State& state = states_[static_cast<size_t>(i)];
    if (state.kind == Kind::kSplit) {
      stack->push_back(state.other);
      stack->push_back(state.next);
    } else if ((state.kind == Kind::kBegin && at_begin) || (state.kind == Kind::kEnd && at_end)) {
      stack->push_back(state.next);
    }
  }
}

bool Regex::full_match(std::string_view text) const {
  Active now;
  Active then;
  now.member.assign(states_.size(), 0);
  then.member.assign(states_.size(), 0);
  std::vector<int32_t> stack;
  follow(start_, true, text.empty(), &stack, &now);
  for (size_t at = 0; at < text.size() && !now.list.empty();) {
    const uint32_t c = next_character(text, &at);
    for (const int32_t i : now.list) {
      const State& state = states_[static_cast<size_t>(i)];
      now.member[static_cast<size_t>(i)] = 0;
      if (state.kind == Kind::kSet && accepts(state, c)) {
        follow(state.next, false, at >= text.size(), &stack, &then);
      }
    }
    now.list.clear();
    std::swap(now, then);
  }
  return std::any_of(now.list.begin(), now.list.end(), [&](int32_t i) {
    return states_[static_cast<size_t>(i)].kind == Kind::kMatch;
  });
}

}  // namespace folio
