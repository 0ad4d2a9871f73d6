#include "core/ops/op_regex.h"

#include <algorithm>
#include <string>

#include "core/base/utf8.h"

namespace folio {
namespace {

constexpr uint32_t kLastCharacter = 0x10ffff;
constexpr int kMaxDepth = 200;     // of groups
constexpr int kMaxRepeats = 1000;  // as RE2

// The pattern itself, or its beginning: messages name it.
std::string shown(std::string_view pattern) {
  return utf8_shortened(utf8_repaired(pattern.substr(0, 200)), 200);
}

}  // namespace

// Recursive descent over the pattern. A fragment has one entry and one exit, the latter a state
// without an effect, so that nothing needs patching later. The first error ends the pattern: what
// is made of it then is not looked at.
class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : text_(pattern) {}

  Result<Regex> compile() {
    if (!utf8_valid(text_)) return invalid_graph("pattern '", shown(text_), "' is not UTF-8");
    const Fragment all = alternatives(0);
    if (at_ < text_.size()) bad("an unmatched )");
    if (!error_.is_ok()) return std::move(error_);
    state(all.exit).kind = Kind::kMatch;
    regex_.start_ = all.entry;
    shorten();
    find_first();
    return std::move(regex_);
  }

 private:
  using Range = Regex::Range;
  using Ranges = std::vector<Range>;
  using Kind = Regex::Kind;
  struct Fragment {
    int32_t entry = 0;
    int32_t exit = 0;  // kSplit without targets yet
  };
  struct Repeat {
    int least = 1;
    int most = 1;  // -1: any number
  };
  struct Flags {
    bool fold = false;   // i
    bool lines = false;  // m
    bool dot = false;    // s
  };

  Regex::State& state(int32_t i) { return regex_.states_[static_cast<size_t>(i)]; }
  int32_t state_count() const { return static_cast<int32_t>(regex_.states_.size()); }
  bool more() const { return at_ < text_.size(); }
  bool next_is(char c) const { return more() && text_[at_] == c; }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  uint32_t character() { return Regex::next_character(text_, &at_); }
  void bad(std::string_view what, Code code = Code::kInvalidGraph) {
    if (error_.is_ok())
      error_ = error(code, "pattern '", shown(text_), "' has ", what, " at ", at_);
    at_ = text_.size();
  }
  Fragment failed(std::string_view what) {
    bad(what);
    return {};
  }
  void missing(std::string_view what) { bad(what, Code::kNotImplemented); }

  // ---------------------------------------------------------------- states

  int32_t add(Regex::State state) {
    if (regex_.states_.size() >= Regex::kMaxStates) {
      bad("too many states");
      return 0;
    }
    regex_.states_.push_back(state);
    return state_count() - 1;
  }
  Fragment nothing() {
    const int32_t only = add({});
    return {only, only};
  }
  Fragment single(Kind kind, int32_t set = -1) {
    const int32_t entry = add({kind, set});
    const int32_t exit = add({});
    state(entry).next = exit;
    return {entry, exit};
  }
  // The fragment whose states are those of [first, end) once more.
  Fragment copy(Fragment part, int32_t first, int32_t end) {
    const int32_t moved = state_count() - first;
    if (regex_.states_.size() + static_cast<size_t>(end - first) > Regex::kMaxStates) {
      bad("too many states");
      return part;
    }
    for (int32_t i = first; i < end; ++i) {
      Regex::State again = state(i);
      if (again.next >= 0) again.next += moved;
      if (again.other >= 0) again.other += moved;
      add(again);
    }
    return {part.entry + moved, part.exit + moved};
  }

  // No thread stops at a state that leads to one other.
  void shorten() {
    const auto past = [this](int32_t i) {
      while (i >= 0 && state(i).kind == Kind::kSplit && state(i).other < 0) i = state(i).next;
      return i;
    };
    for (int32_t i = state_count(); i-- > 0;) {  // most lead to later ones, done by then
      state(i).next = past(state(i).next);
      state(i).other = past(state(i).other);
    }
    regex_.start_ = past(regex_.start_);
  }

  // Every set that is reached without a character, whatever ^ and \b say.
  void find_first() {
    std::vector<uint8_t> seen(regex_.states_.size(), 0);
    std::vector<int32_t> stack{regex_.start_};
    Ranges ranges;
    regex_.may_be_empty_ = false;
    while (!stack.empty()) {
      const int32_t i = stack.back();
      stack.pop_back();
      if (i < 0 || seen[static_cast<size_t>(i)]) continue;
      seen[static_cast<size_t>(i)] = 1;
      if (state(i).kind == Kind::kMatch) regex_.may_be_empty_ = true;
      if (state(i).kind == Kind::kSet) {
        const Regex::Set& set = regex_.sets_[static_cast<size_t>(state(i).set)];
        for (size_t k = 0; k < 2; ++k) regex_.first_.ascii[k] |= set.ascii[k];
        ranges.insert(ranges.end(), set.others.begin(), set.others.end());
        continue;
      }
      stack.push_back(state(i).next);
      stack.push_back(state(i).other);
    }
    tidy(&ranges);
    regex_.first_.others = std::move(ranges);
  }

  // ---------------------------------------------------------------- sets

  static void tidy(Ranges* ranges) {
    std::sort(ranges->begin(), ranges->end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    Ranges out;
    for (const Range& range : *ranges) {
      if (out.empty() || range.first > out.back().last + 1) {
        out.push_back(range);
      } else {
        out.back().last = std::max(out.back().last, range.last);
      }
    }
    *ranges = std::move(out);
  }

  static Ranges inverse(Ranges ranges) {
    tidy(&ranges);
    Ranges out;
    uint32_t from = 0;
    for (const Range& range : ranges) {
      if (range.first > from) out.push_back({from, range.first - 1});
      from = range.last + 1;
    }
    if (from <= kLastCharacter) out.push_back({from, kLastCharacter});
    return out;
  }

  // With (?i) the letters of the other case too. Those of ASCII have two of other scripts: the sign
  // of Kelvin and the long s.
  void fold(Ranges* ranges) {
    if (!flags_.fold) return;
    constexpr Range kPairs[] = {{'k', 0x212a}, {'s', 0x17f}};
    const Ranges before = *ranges;
    for (const Range& range : before) {
      if (range.last >= 128 && !(range.first <= 128 && range.last == kLastCharacter) &&
          !(has_no_case(range))) {
        return missing("(?i) and a letter beyond ASCII");
      }
      for (uint32_t c = 'a'; c <= 'z'; ++c) {
        const bool is_there = (range.first <= c && c <= range.last) ||
                              (range.first <= c - 32 && c - 32 <= range.last);
        if (is_there) ranges->insert(ranges->end(), {{c, c}, {c - 32, c - 32}});
      }
      for (const Range& pair : kPairs) {
        const bool is_there = (range.first <= pair.first && pair.first <= range.last) ||
                              (range.first <= pair.first - 32 && pair.first - 32 <= range.last);
        if (is_there) ranges->push_back({pair.last, pair.last});
      }
    }
  }
  // Scripts without capitals: punctuation, East Asian, Hangul.
  static bool has_no_case(const Range& range) {
    constexpr Range kPlain[] = {{0x2000, 0x20ff}, {0x2e80, 0xa63f}, {0xac00, 0xd7a3}};
    return std::any_of(std::begin(kPlain), std::end(kPlain), [&](const Range& plain) {
      return plain.first <= range.first && range.last <= plain.last;
    });
  }

  // Appends what `ranges`, or everything but them, has.
  void append(Ranges ranges, bool negated, Ranges* out) {
    fold(&ranges);
    if (negated) ranges = inverse(std::move(ranges));
    out->insert(out->end(), ranges.begin(), ranges.end());
  }

  // A character out of these, which have both cases already.
  Fragment set(Ranges ranges) {
    tidy(&ranges);
    Regex::Set set;
    for (const Range& range : ranges) {
      for (uint32_t c = range.first; c <= std::min(range.last, 127u); ++c) {
        set.ascii[c / 64] |= uint64_t{1} << (c % 64);
      }
      if (range.last >= 128) set.others.push_back({std::max(range.first, 128u), range.last});
    }
    regex_.sets_.push_back(std::move(set));
    return single(Kind::kSet, static_cast<int32_t>(regex_.sets_.size()) - 1);
  }
  Fragment one_of(Ranges ranges, bool negated) {
    Ranges all;
    append(std::move(ranges), negated, &all);
    return set(std::move(all));
  }
  Fragment one(uint32_t c) { return one_of({{c, c}}, false); }

  // ---------------------------------------------------------------- the pattern

  Fragment alternatives(int depth) {
    if (depth > kMaxDepth) return failed("groups nested too deeply");
    const Flags outside = flags_;
    Fragment all = sequence(depth);
    while (take("|")) {
      const Fragment other = sequence(depth);
      const int32_t entry = add({Kind::kSplit, -1, all.entry, other.entry});
      const int32_t exit = add({});
      state(all.exit).next = exit;
      state(other.exit).next = exit;
      all = {entry, exit};
    }
    flags_ = outside;
    return all;
  }

  Fragment sequence(int depth) {
    Fragment all = nothing();
    while (true) {
      take_marks();
      if (!more() || (!quoted_ && (next_is('|') || next_is(')')))) return all;
      const int32_t first = state_count();
      Fragment part = quoted_ ? one(character()) : atom(depth);
      // Marks between an atom and its repetitions do not part them.
      do {
        take_marks();
        if (!quoted_) {
          part = repeated(part, first);
        }
        take_marks();
      } while (!quoted_ && repeats_next());
      state(all.exit).next = part.entry;
      all.exit = part.exit;
    }
  }

  // \Q, \E and (?flags), which stand for no text.
  void take_marks() {
    for (bool found = true; found && more();) {
      found = quoted_ ? take("\\E") : take("\\Q");
      if (found) {
        quoted_ = !quoted_;
      } else if (!quoted_ && text_.substr(at_, 2) == "(?") {
        const size_t begin = at_;
        Flags inside = flags_;
        at_ += 2;
        found = take_flags(&inside) && take(")");
        if (found) {
          flags_ = inside;
        } else {
          at_ = begin;
        }
      }
    }
  }

  // The atom whose states are those from `first` on as often as what follows says.
  Fragment repeated(Fragment atom, int32_t first) {
    const int32_t end = state_count();
    const Repeat times = repeat();
    if (times.least == 1 && times.most == 1) return atom;
    Fragment all = nothing();
    const int copies = times.most < 0 ? std::max(times.least, 1) : times.most;
    for (int i = 0; i < copies; ++i) {
      const bool is_last = i == copies - 1;
      const Fragment part = is_last ? atom : copy(atom, first, end);
      const int32_t exit = add({});
      const int32_t entry = add({Kind::kSplit, -1, part.entry});
      if (i >= times.least) state(entry).other = exit;
      state(part.exit).next = exit;
      if (times.most < 0 && is_last) state(part.exit).other = part.entry;
      state(all.exit).next = entry;
      all.exit = exit;
    }
    return all;
  }

  Repeat repeat() {
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
      bad("a repetition of no use");
    }
    take("?");  // lazy: the same texts match
    if (repeats_next()) bad("a repetition of a repetition");
    return times;
  }
  bool repeats_next() {
    const size_t begin = at_;
    Repeat times;
    const bool found = next_is('*') || next_is('+') || next_is('?') || braces(&times);
    at_ = begin;
    return found;
  }

  // {n}, {n,} or {n,m}; what looks otherwise is a plain character.
  bool braces(Repeat* times) {
    const size_t begin = at_;
    Repeat found;
    if (take("{") && number(&found.least)) {
      found.most = found.least;
      if (take(",") && !number(&found.most)) found.most = -1;
      if (take("}")) {
        *times = found;
        return true;
      }
    }
    at_ = begin;
    return false;
  }
  // Digits, the first of which is 0 only if it is the only one.
  bool number(int* out) {
    const size_t begin = at_;
    *out = 0;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
      *out = std::min(*out * 10 + (text_[at_++] - '0'), kMaxRepeats + 1);
    }
    return at_ > begin && (at_ == begin + 1 || text_[begin] != '0');
  }

  Fragment atom(int depth) {
    if (repeats_next()) return failed("a repetition of nothing");
    if (take("(")) return group(depth);
    if (take("[")) return bracket();
    if (take(".")) return set(flags_.dot ? Ranges{{0, kLastCharacter}} : inverse({{'\n', '\n'}}));
    if (take("^")) return single(flags_.lines ? Kind::kBeginLine : Kind::kBeginText);
    if (take("$")) return single(flags_.lines ? Kind::kEndLine : Kind::kEndText);
    if (take("\\A")) return single(Kind::kBeginText);
    if (take("\\z")) return single(Kind::kEndText);
    if (take("\\b")) return single(Kind::kBoundary);
    if (take("\\B")) return single(Kind::kNoBoundary);
    if (!take("\\")) return one(character());
    Ranges ranges;
    bool negated = false;
    escape(&ranges, &negated);
    return one_of(std::move(ranges), negated);
  }

  Fragment group(int depth) {
    const Flags outside = flags_;
    if (take("?")) {
      if (take("P<") ||
          (text_.substr(at_, 2) != "<=" && text_.substr(at_, 2) != "<!" && take("<"))) {
        group_name();
      } else if (!take_flags(&flags_) || !take(":")) {
        bad("what RE2 does not know after (?");
      }
    }
    const Fragment inside = alternatives(depth + 1);
    if (!take(")")) bad("a ( without a )");
    flags_ = outside;
    return inside;
  }

  // A name and >.
  void group_name() {
    const size_t begin = at_;
    const auto is_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
    };
    while (more() && is_word(text_[at_])) ++at_;
    if (at_ == begin || !take(">")) return bad("a broken group name");
  }

  // Letters of i, m, s, U, and after - of what is switched off; U only says what is lazy.
  bool take_flags(Flags* flags) {
    bool on = true;
    for (size_t begin = at_; more(); ++at_) {
      switch (text_[at_]) {
        case 'i':
          flags->fold = on;
          break;
        case 'm':
          flags->lines = on;
          break;
        case 's':
          flags->dot = on;
          break;
        case 'U':
          break;
        case '-':
          if (!on) return false;
          on = false;
          begin = at_ + 1;
          break;
        default:
          return on || at_ > begin;
      }
    }
    return false;
  }

  // ---------------------------------------------------------------- escapes and brackets

  // Of pairs of first and last characters.
  static Ranges ranges_of(std::string_view pairs) {
    Ranges out;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      out.push_back({static_cast<uint32_t>(pairs[i]), static_cast<uint32_t>(pairs[i + 1])});
    }
    return out;
  }
  static Ranges class_ranges(char name) {
    return ranges_of(name == 'd' ? "09" : name == 'w' ? "09AZ__az" : "\t\n\f\r  ");
  }

  // What follows a backslash.
  void escape(Ranges* out, bool* negated) {
    if (!more()) return bad("a backslash at its end");
    const char c = text_[at_];
    constexpr std::string_view kNames = "ntrfva";
    constexpr std::string_view kCharacters = "\n\t\r\f\v\a";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      ++at_;
      const auto value = static_cast<uint32_t>(kCharacters[i]);
      out->push_back({value, value});
      return;
    }
    const char lower = static_cast<char>(c | 0x20);
    if (lower == 'd' || lower == 'w' || lower == 's') {
      ++at_;
      *out = class_ranges(lower);
      *negated = c != lower;
      return;
    }
    if (take("x")) return hexadecimal(out);
    if (c >= '0' && c <= '7') return octal(out);
    if (lower == 'p') return missing("a class of Unicode, \\p,");
    if (c == 'C') return missing("\\C, a byte,");
    const bool is_word =
        (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
    if (is_word) return bad("an unknown escape");
    ++at_;
    out->push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(c)});
  }

  // Up to three digits; one alone, but 0, would be what a group has found.
  void octal(Ranges* out) {
    const size_t begin = at_;
    uint32_t value = 0;
    while (at_ < begin + 3 && more() && text_[at_] >= '0' && text_[at_] <= '7') {
      value = value * 8 + static_cast<uint32_t>(text_[at_++] - '0');
    }
    if (at_ == begin + 1 && value != 0) return bad("a reference to a group");
    out->push_back({value, value});
  }

  void hexadecimal(Ranges* out) {
    const bool braced = take("{");
    uint32_t value = 0;
    int digits = 0;
    for (; more() && (braced || digits < 2) && value <= kLastCharacter; ++digits, ++at_) {
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
  }

  // After "[:", which has its end.
  void named_class(Ranges* out) {
    const bool negated = take("^");
    constexpr std::string_view kNamed[][2] = {{"alpha:]", "AZaz"},
                                              {"digit:]", "09"},
                                              {"alnum:]", "09AZaz"},
                                              {"upper:]", "AZ"},
                                              {"lower:]", "az"},
                                              {"space:]", "\t\r  "},
                                              {"blank:]", "\t\t  "},
                                              {"punct:]", "!/:@[`{~"},
                                              {"xdigit:]", "09AFaf"},
                                              {"word:]", "09AZ__az"},
                                              {"cntrl:]", {"\0\x1f\x7f\x7f", 4}},
                                              {"print:]", " ~"},
                                              {"graph:]", "!~"},
                                              {"ascii:]", {"\0\x7f", 2}}};
    for (const auto& [name, pairs] : kNamed) {
      if (take(name)) return append(ranges_of(pairs), negated, out);
    }
    bad("an unknown [:class:]");
  }

  // The end of a range inside brackets.
  uint32_t bracket_character() {
    if (!more()) bad("a [ without a ]");
    if (!more() || !take("\\")) return more() ? character() : 0;
    Ranges ranges;
    bool negated = false;
    escape(&ranges, &negated);
    if (ranges.size() == 1 && ranges[0].first == ranges[0].last) return ranges[0].first;
    bad("a broken range");
    return 0;
  }

  // A character, a range or a class inside brackets.
  void bracket_item(Ranges* out) {
    if (text_.substr(at_, 2) == "[:" && text_.find(":]", at_ + 2) != std::string_view::npos) {
      at_ += 2;
      return named_class(out);
    }
    const std::string_view ahead = text_.substr(at_, 2);
    for (const char* name : {"\\d", "\\D", "\\w", "\\W", "\\s", "\\S"}) {
      if (ahead != name) continue;
      at_ += 2;
      const char lower = static_cast<char>(name[1] | 0x20);
      return append(class_ranges(lower), name[1] != lower, out);
    }
    Range range{};
    range.first = bracket_character();
    range.last = range.first;
    if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      ++at_;
      range.last = bracket_character();
      if (range.last < range.first) return bad("a broken range");
    }
    return append({range}, false, out);
  }

  Fragment bracket() {
    const bool negated = take("^");
    Ranges ranges;
    for (bool first = true; first || !take("]"); first = false) {
      if (!more()) return failed("a [ without a ]");
      bracket_item(&ranges);
    }
    return set(negated ? inverse(std::move(ranges)) : std::move(ranges));
  }

  std::string_view text_;
  size_t at_ = 0;
  Flags flags_;
  bool quoted_ = false;  // between \Q and \E
  Regex regex_;
  Status error_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexCompiler(pattern).compile(); }

}  // namespace folio
