// Regex: the regular expressions of RegexFullMatch, in time linear in the text.
//
// Flow:    compile() turns a pattern into a list of states; full_match() follows all of them at
//          once, one character after the other.
// Syntax:  RE2's, as far as it is regular and usual: characters, ., [sets] with ranges and
// [:names:],
//          \d \w \s and their opposites, \n \t \r \f \v \a \xHH \x{H} \Q..\E, (groups), (?:groups),
//          (?P<name>groups), |, * + ? {n} {n,} {n,m} and their lazy forms, ^ $ \A \z.
// Threads: immutable; full_match works on its own memory.
// Errors:  kInvalidGraph for malformed patterns and for more than kMaxStates states;
// kNotImplemented
//          for flags, \b, \p and the like.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace folio {

class Regex {
 public:
  static constexpr size_t kMaxStates = 100000;

  static Result<Regex> compile(std::string_view pattern);

  // True when the whole of `text` matches. Bytes that are no UTF-8 stand for themselves.
  bool full_match(std::string_view text) const;

 private:
  friend class RegexCompiler;

  struct Range {
    uint32_t first;
    uint32_t last;
  };
  enum class Kind : uint8_t { kSet, kSplit, kBegin, kEnd, kMatch };
  struct State {
    Kind kind = Kind::kMatch;
    bool negated = false;  // kSet
    std::vector<Range> ranges;
    int32_t next = -1;
    int32_t other = -1;  // kSplit
  };

  // A set of states that is walked in order of insertion.
  struct Active {
    std::vector<int32_t> list;
    std::vector<uint8_t> member;
  };

  void follow(int32_t start, bool at_begin, bool at_end, std::vector<int32_t>* stack,
              Active* out) const;
  static bool accepts(const State& state, uint32_t c);

  std::vector<State> states_;
  int32_t start_ = 0;
};

}  // namespace folio
