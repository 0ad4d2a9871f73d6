// DimTable: the symbolic dims of one model, as hash-consed integer expressions.
//
// Flow:    shape inference builds expressions; a shape plan evaluates all of them at once, in
//          O(expressions), for the dims of one run.
// Owns:    the expressions. Dim::symbol indexes them.
// Threads: built by one thread while loading, immutable afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/model/type_info.h"

namespace folio {

class DimTable {
 public:
  enum class Op : uint8_t {
    kSymbol,
    kAdd,
    kSub,
    kMul,
    kFloorDiv,
    kCeilDiv,
    kMin,
    kMax,
    kBroadcast
  };

  // A dim that the model calls `name`. A run may give two dims of one name different sizes, so that
  // each has a symbol of its own: where symbols are equal, sizes are, in every run.
  Dim named(const std::string& name);
  // A dim of its own without a name, such as an input's unnamed dim.
  Dim anonymous();

  // Arithmetic; numbers are computed, unknown operands give unknown, overflow gives unknown.
  Dim add(Dim a, Dim b) { return make(Op::kAdd, a, b); }
  Dim sub(Dim a, Dim b) { return make(Op::kSub, a, b); }
  Dim mul(Dim a, Dim b) { return make(Op::kMul, a, b); }
  Dim floor_div(Dim a, Dim b) { return make(Op::kFloorDiv, a, b); }
  Dim ceil_div(Dim a, Dim b) { return make(Op::kCeilDiv, a, b); }
  Dim min(Dim a, Dim b) { return make(Op::kMin, a, b); }
  Dim max(Dim a, Dim b) { return make(Op::kMax, a, b); }
  Dim product(const Dims& dims);

  // True for what can only be zero or more: everything except what a subtraction went into.
  bool never_negative(Dim d) const {
    if (!d.is_symbol()) return d.is_value();
    return !expressions_[static_cast<size_t>(d.symbol)].may_be_negative;
  }

  // Broadcasting of two dims. Where nothing is known that decides, what a run has of them does: -1
  // for two that do not fit.
  Dim broadcast(Dim a, Dim b);

  size_t size() const { return expressions_.size(); }
  // The base symbol's name ("" for an anonymous dim or an expression).
  const std::string& name(int32_t symbol) const {
    return expressions_[static_cast<size_t>(symbol)].name;
  }

  // Replaces a named dim by a number wherever it is used from now on (free dimension overrides,
  // set before inference).
  void fix(const std::string& name, int64_t value) { fixed_[name] = value; }

  // Evaluates every expression. `values` has size() entries: base symbols filled in (or -1 for
  // not known), expressions are written; what depends on an unknown or overflows becomes -1.
  void evaluate(std::vector<int64_t>* values) const;

 private:
  struct Expression {
    Op op = Op::kSymbol;
    Dim a;
    Dim b;
    std::string name;
    bool may_be_negative = false;
  };
  using Key = std::tuple<Op, int64_t, int32_t, int64_t, int32_t>;

  Dim make(Op op, Dim a, Dim b);
  Dim simplified(Op op, Dim a, Dim b) const;
  bool join_factors(Dim* a, Dim* b) const;

  std::vector<Expression> expressions_;
  std::map<Key, int32_t> by_key_;
  std::map<std::string, int64_t> fixed_;
};

}  // namespace folio
