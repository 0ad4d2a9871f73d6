#include "core/model/dim_table.h"

#include <algorithm>
#include <optional>

#include "core/base/checked_math.h"

namespace folio {
namespace {

using Op = DimTable::Op;

// Dims are never negative, but differences inside expressions may be: -1 alone cannot mean
// "unknown" for them, so evaluation works on optionals and only the end result is clamped.
std::optional<int64_t> compute(Op op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case Op::kSymbol:
      return std::nullopt;
    case Op::kAdd:
      return checked_add(a, b, &out) ? std::optional(out) : std::nullopt;
    case Op::kSub:
      return checked_sub(a, b, &out) ? std::optional(out) : std::nullopt;
    case Op::kMul:
      return checked_mul(a, b, &out) ? std::optional(out) : std::nullopt;
    case Op::kFloorDiv:
    case Op::kCeilDiv: {
      if (b <= 0) return std::nullopt;
      const int64_t quotient = a / b;
      const int64_t rest = a % b;
      if (op == Op::kFloorDiv) return rest < 0 ? quotient - 1 : quotient;
      return rest > 0 ? quotient + 1 : quotient;
    }
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kBroadcast:
      if (a == b || b == 1) return a;
      return a == 1 ? std::optional(b) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Dim DimTable::named(const std::string& name) {
  if (name.empty()) return anonymous();
  if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) return Dim::of(fixed->second);
  expressions_.push_back({Op::kSymbol, {}, {}, name, false});
  return Dim::of_symbol(static_cast<int32_t>(expressions_.size()) - 1);
}

Dim DimTable::anonymous() {
  expressions_.push_back({});
  return Dim::of_symbol(static_cast<int32_t>(expressions_.size()) - 1);
}

Dim DimTable::product(const Dims& dims) {
  Dim total = Dim::of(1);
  for (const Dim dim : dims) total = mul(total, dim);
  return total;
}

Dim DimTable::broadcast(Dim a, Dim b) {
  if (a == b) return a;
  // Two numbers that do not fit together are the run's to refuse.
  if (a.is_value() && b.is_value() && a.value != 1 && b.value != 1) return Dim::unknown();
  if (a.is_value()) return a.value == 1 ? b : a;
  if (b.is_value()) return b.value == 1 ? a : b;
  // One is the other cut at a number, as a slice of a table of positions is: where they differ,
  // only a 1 fits.
  const auto is_cut = [&](Dim cut, Dim whole) {
    const Expression& e = expressions_[static_cast<size_t>(cut.symbol)];
    const Dim bound = e.a == whole ? e.b : e.a;
    const bool holds = e.a == whole || e.b == whole;
    return e.op == Op::kMin && holds && bound.is_value() && bound.value >= 1;
  };
  if (!a.is_symbol() || !b.is_symbol()) return Dim::unknown();
  // Where both fit together, that is what one of them and the other have.
  const auto has = [&](Dim joined, Dim part) {
    const Expression& e = expressions_[static_cast<size_t>(joined.symbol)];
    return e.op == Op::kBroadcast && (e.a == part || e.b == part);
  };
  if (is_cut(a, b) || has(b, a)) return b;
  return is_cut(b, a) || has(a, b) ? a : make(Op::kBroadcast, a, b);
}

// Only what shape arithmetic of exporters meets: neutral elements and (x * c) / c, (x + c) - c.
Dim DimTable::simplified(Op op, Dim a, Dim b) const {
  const bool is_div = op == Op::kFloorDiv || op == Op::kCeilDiv;
  if (b.is_value() && b.value == 0 && (op == Op::kAdd || op == Op::kSub)) return a;
  if (a.is_value() && a.value == 0 && op == Op::kAdd) return b;
  if (b.is_value() && b.value == 1 && (op == Op::kMul || is_div)) return a;
  if (a.is_value() && a.value == 1 && op == Op::kMul) return b;
  if (a == b && (op == Op::kMin || op == Op::kMax)) return a;
  if (a == b && op == Op::kSub) return Dim::of(0);
  if (!a.is_symbol()) return Dim::unknown();
  const Expression& inner = expressions_[static_cast<size_t>(a.symbol)];
  if (is_div && inner.op == Op::kMul && b.is_value() && b.value > 0) {
    if (inner.b == b) return inner.a;
    if (inner.a == b) return inner.b;
  }
  if (op == Op::kSub && inner.op == Op::kAdd) {
    if (inner.b == b) return inner.a;
    if (inner.a == b) return inner.b;
  }
  if (op == Op::kAdd && inner.op == Op::kSub && inner.b == b) return inner.a;
  return Dim::unknown();
}

// (x * c) * d is x * (c * d), so that the product of a batch and numbers divides by all of them.
bool DimTable::join_factors(Dim* a, Dim* b) const {
  if (a->is_value()) std::swap(*a, *b);
  if (!a->is_symbol() || !b->is_value()) return false;
  const Expression& inner = expressions_[static_cast<size_t>(a->symbol)];
  int64_t factor = 0;
  if (inner.op != Op::kMul || !inner.a.is_value() ||
      !checked_mul(inner.a.value, b->value, &factor)) {
    return false;
  }
  *a = inner.b;
  *b = Dim::of(factor);
  return true;
}

Dim DimTable::make(Op op, Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown()) return Dim::unknown();
  if (a.is_value() && b.is_value()) {
    const auto value = compute(op, a.value, b.value);
    return value && *value >= 0 ? Dim::of(*value) : Dim::unknown();
  }
  if (const Dim simple = simplified(op, a, b); !simple.is_unknown()) return simple;
  if (op == Op::kMul && join_factors(&a, &b)) return mul(a, b);
  const bool commutes = op != Op::kSub && op != Op::kFloorDiv && op != Op::kCeilDiv;
  if (commutes && std::tie(b.symbol, b.value) < std::tie(a.symbol, a.value)) std::swap(a, b);
  const Key key{op, a.value, a.symbol, b.value, b.symbol};
  const auto [it, added] = by_key_.try_emplace(key, static_cast<int32_t>(expressions_.size()));
  if (added) {
    const bool may_be_negative = op == Op::kSub || !never_negative(a) || !never_negative(b);
    expressions_.push_back({op, a, b, {}, may_be_negative});
  }
  return Dim::of_symbol(it->second);
}

void DimTable::evaluate(std::vector<int64_t>* values) const {
  // Operands always stand before their expression, so one pass in order is enough.
  std::vector<std::optional<int64_t>> exact(expressions_.size());
  for (size_t i = 0; i < expressions_.size(); ++i) {
    const Expression& e = expressions_[i];
    if (e.op == Op::kSymbol) {
      if ((*values)[i] >= 0) exact[i] = (*values)[i];
      continue;
    }
    const auto operand = [&](Dim d) {
      return d.is_value() ? std::optional(d.value) : exact[static_cast<size_t>(d.symbol)];
    };
    const auto a = operand(e.a);
    const auto b = operand(e.b);
    if (a && b) exact[i] = compute(e.op, *a, *b);
    (*values)[i] = exact[i] && *exact[i] >= 0 ? *exact[i] : -1;
  }
}

}  // namespace folio
