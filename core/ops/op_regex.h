// Regex, RegexSearch: regular expressions, in time linear in the text.
//
// Flow:    compile() turns a pattern into a list of states; a RegexSearch follows all of them at
//          once, one character after the other. Nobody asks for groups or for the first way to
//          match: of the matches that begin first the longest counts, as with RE2's longest_match,
//          and a lazy repetition is like any other.
// Syntax:  RE2's, as far as it is regular: characters, ., [sets] with ranges and [:names:], \d \w
//          \s and their opposites, \b \B, \n \t \r \f \v \a \123 \xHH \x{H} \Q..\E, (groups),
//          (?:groups), (?P<name>groups), (?<name>groups), (?imsU-imsU) and (?i:groups), |, * + ?
//          {n} {n,} {n,m} and their lazy forms, ^ $ \A \z.
// Threads: a Regex is immutable; a RegexSearch belongs to one thread.
// Errors:  kInvalidGraph for malformed patterns and for more than kMaxStates states;
//          kNotImplemented for \p, \C, and (?i) of letters beyond ASCII.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace folio {

class Regex {
 public:
  static constexpr size_t kMaxStates = 100000;

  static Result<Regex> compile(std::string_view pattern);

 private:
  friend class RegexCompiler;
  friend class RegexSearch;

  static constexpr uint32_t kNoCharacter = UINT32_MAX;

  struct Range {
    uint32_t first;
    uint32_t last;
  };
  struct Set {
    uint64_t ascii[2] = {0, 0};  // a bit each
    std::vector<Range> others;   // in order

    bool has(uint32_t c) const;
  };
  enum class Kind : uint8_t {
    kSet,
    kSplit,
    kBeginText,
    kEndText,
    kBeginLine,
    kEndLine,
    kBoundary,
    kNoBoundary,
    kMatch
  };
  struct State {
    Kind kind = Kind::kSplit;
    int32_t set = -1;    // kSet: an index of sets_
    int32_t next = -1;   // -1: nowhere
    int32_t other = -1;  // kSplit
  };

  // The character at `at`, which moves behind it; kNoCharacter for a byte that is no UTF-8.
  static uint32_t next_character(std::string_view text, size_t* at);

  std::vector<State> states_;
  std::vector<Set> sets_;
  int32_t start_ = 0;
  Set first_;  // what a match may begin with; unused if it may be empty
  bool may_be_empty_ = true;
};

// Searches with one Regex, which must live longer, and the memory that they share.
class RegexSearch {
 public:
  struct Match {
    size_t begin;
    size_t end;
  };

  explicit RegexSearch(const Regex& regex)
      : regex_(regex), seen_(regex.states_.size(), 0), now_(), then_(), stack_() {}

  // True when the whole of `text` matches.
  bool full_match(std::string_view text);

  // The match that begins first, not before `from`, and the longest of those. ^ and \b look at
  // what stands before `from` too. A byte that is no UTF-8 matches nothing.
  std::optional<Match> find(std::string_view text, size_t from);

 private:
  struct Thread {
    int32_t state;
    size_t begin;
  };

  bool holds(Regex::Kind kind, std::string_view text, size_t at) const;
  size_t first_candidate(std::string_view text, size_t at) const;
  void enter(int32_t state, size_t begin, std::string_view text, size_t at);
  std::optional<Match> run(std::string_view text, size_t from, bool everywhere);

  const Regex& regex_;
  std::vector<uint64_t> seen_;  // by state: the last place_ where a thread came to it
  uint64_t place_ = 0;
  std::vector<Thread> now_;
  std::vector<Thread> then_;
  std::vector<int32_t> stack_;
  std::optional<Match> best_;
};

}  // namespace folio
