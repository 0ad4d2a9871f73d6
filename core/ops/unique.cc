// Unique: each entry of a tensor or of an axis once.
//
// Source: ONNX operator spec, Unique, opset 11; com.microsoft version 1: x of one dim, not sorted,
//         outputs y, inverse_indices and counts.
// Shapes: x [outer.., n, inner..] -> y with the axis cut to the entries found (without an axis: the
//         elements of x, one dim), indices [found] of their first places, inverse_indices [n],
//         counts [found].
// Math:   sorted: in ascending order (NaN last, all NaN as one), else by first place. Entries
//         without elements are one entry, as in numpy.
// Types:  all numbers, bool, strings; indices and counts int64.
#include <array>
#include <numeric>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_order.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using Types = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, std::string>;

// An element's key as one without a sign, whose digits tell the order. Types that differ in their
// keys alone share all that sorts.
template <typename T>
uint64_t digits_of(T value) {
  using Digits = std::make_unsigned_t<KeyOf<T>>;
  constexpr Digits kTop = Digits{1} << (8 * sizeof(Digits) - 1);
  return static_cast<Digits>(key_of(value)) ^ kTop;
}

// Entry i is x[o, i, j] for all o < outer and j < inner.
struct Entries {
  int64_t count = 0;
  int64_t outer = 1;
  int64_t inner = 1;
};

// -1, 0 or 1: entry a of x beside entry b.
using CompareEntries = int (*)(const void* x, const Entries& entries, int64_t a, int64_t b);

template <typename T>
int compare_entries(const void* x, const Entries& entries, int64_t a, int64_t b) {
  const auto* row = static_cast<const T*>(x);
  for (int64_t o = 0; o < entries.outer; ++o, row += entries.count * entries.inner) {
    for (int64_t i = 0; i < entries.inner; ++i) {
      const T& first = row[a * entries.inner + i];
      const T& second = row[b * entries.inner + i];
      if constexpr (std::is_same_v<T, std::string>) {
        if (const int order = first.compare(second)) return order < 0 ? -1 : 1;
      } else {
        const auto key = key_of(first);
        const auto other = key_of(second);
        if (key != other) return key < other ? -1 : 1;
      }
    }
  }
  return 0;
}

// Places of entries, ascending, equal ones by place.
struct Order {
  std::vector<int64_t> places;
  std::vector<uint8_t> is_new;  // whether the entry is another one than that before it
};

// A number beside its place: looking numbers up while they are sorted takes longer.
struct Placed {
  uint64_t key;
  int64_t at;
};

constexpr int kDigits = sizeof(uint64_t);
size_t digit_of(uint64_t key, int digit) { return static_cast<size_t>(key >> 8 * digit & 0xFF); }

// Byte by byte of the key, the least first; bytes that all have in common take no time. Equal keys
// stay as they come, which is by place.
void sort_by_digits(std::vector<Placed>* numbers) {
  std::vector<std::array<size_t, 256>> counts(kDigits);
  for (const Placed& number : *numbers) {
    for (int d = 0; d < kDigits; ++d) ++counts[static_cast<size_t>(d)][digit_of(number.key, d)];
  }
  std::vector<Placed> sorted(numbers->size());
  for (int d = 0; d < kDigits; ++d) {
    std::array<size_t, 256>& next = counts[static_cast<size_t>(d)];
    if (next[digit_of(numbers->front().key, d)] == numbers->size()) continue;
    std::exclusive_scan(next.begin(), next.end(), next.begin(), size_t{0});
    for (const Placed& number : *numbers) sorted[next[digit_of(number.key, d)]++] = number;
    numbers->swap(sorted);
  }
}

Order order_of_numbers(std::vector<Placed> numbers) {
  constexpr size_t kFew = 256;  // are sorted before digits are counted
  if (numbers.size() < kFew) {
    std::sort(numbers.begin(), numbers.end(), [](const Placed& a, const Placed& b) {
      return a.key != b.key ? a.key < b.key : a.at < b.at;
    });
  } else {
    sort_by_digits(&numbers);
  }
  Order order;
  order.places.reserve(numbers.size());
  order.is_new.reserve(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    order.places.push_back(numbers[i].at);
    order.is_new.push_back(i == 0 || numbers[i].key != numbers[i - 1].key ? 1 : 0);
  }
  return order;
}

Order order_of_entries(const void* x, const Entries& entries, CompareEntries compare) {
  Order order;
  order.places.resize(static_cast<size_t>(entries.count));
  std::iota(order.places.begin(), order.places.end(), 0);
  std::sort(order.places.begin(), order.places.end(), [&](int64_t a, int64_t b) {
    const int result = compare(x, entries, a, b);
    return result != 0 ? result < 0 : a < b;
  });
  order.is_new.assign(order.places.size(), 1);
  for (size_t i = 1; i < order.places.size(); ++i) {
    order.is_new[i] = compare(x, entries, order.places[i - 1], order.places[i]) != 0 ? 1 : 0;
  }
  return order;
}

template <typename T>
Order order_of(const T* x, const Entries& entries) {
  if constexpr (!std::is_same_v<T, std::string>) {
    if (entries.outer == 1 && entries.inner == 1) {
      std::vector<Placed> numbers(static_cast<size_t>(entries.count));
      for (size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = {digits_of(x[i]), static_cast<int64_t>(i)};
      }
      return order_of_numbers(std::move(numbers));
    }
  }
  return order_of_entries(x, entries, compare_entries<T>);
}

// Each byte but 0 is true; no C++ bool may hold all of them.
Order order_of_flags(const Tensor& x, const Entries& entries) {
  std::vector<uint8_t> flags(static_cast<size_t>(x.count()));
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = x.raw()[i] != 0 ? 1 : 0;
  return order_of(static_cast<const uint8_t*>(flags.data()), entries);
}

struct Found {
  std::vector<int64_t> first;    // of each group, in the order of the result
  std::vector<int64_t> inverse;  // the group of each entry
  std::vector<int64_t> counts;
};

Found find_groups(const Order& order, bool sorted) {
  Found found;
  found.inverse.resize(order.places.size());
  for (size_t i = 0; i < order.places.size(); ++i) {
    if (order.is_new[i] != 0) {
      found.first.push_back(order.places[i]);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[static_cast<size_t>(order.places[i])] =
        static_cast<int64_t>(found.first.size()) - 1;
  }
  if (sorted) return found;
  // By first place: rank[g] is where group g goes.
  std::vector<size_t> groups(found.first.size());
  std::iota(groups.begin(), groups.end(), size_t{0});
  std::sort(groups.begin(), groups.end(),
            [&](size_t a, size_t b) { return found.first[a] < found.first[b]; });
  Found by_place;
  std::vector<int64_t> rank(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    rank[groups[i]] = static_cast<int64_t>(i);
    by_place.first.push_back(found.first[groups[i]]);
    by_place.counts.push_back(found.counts[groups[i]]);
  }
  for (const int64_t group : found.inverse) {
    by_place.inverse.push_back(rank[static_cast<size_t>(group)]);
  }
  return by_place;
}

// Which outputs there are; -1: never.
struct Outputs {
  int first;
  int inverse;
  int counts;
};
constexpr Outputs kOutputs = {1, 2, 3};
constexpr Outputs kContribOutputs = {-1, 1, 2};

class Unique final : public OpKernel {
 public:
  Unique(std::optional<int64_t> axis, bool sorted, const Outputs& outputs)
      : axis_(axis), sorted_(sorted), outputs_(outputs) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (outputs_.first < 0 && x->rank() != 1) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", expected one dim");
    }
    Shape shape{x->count()};
    int axis = 0;
    if (axis_) {
      FOLIO_TRY(axis, normalize_axis(*axis_, x->rank()));
      shape = x->shape();
    }
    Entries entries;
    entries.count = shape[axis];
    entries.outer = shape.product(0, axis);
    entries.inner = shape.product(axis + 1, shape.rank());
    if (x->count() == 0 && entries.count > 0) return find_empty(run, *x, entries, shape, axis);
    Order order;
    if (x->dtype() == DType::kBool) {
      order = order_of_flags(*x, entries);
    } else if (!dispatch(Types{}, x->dtype(), [&](auto tag) {
                 order = order_of(x->data<typename decltype(tag)::type>(), entries);
               })) {
      return wrong_type(0, x->dtype());
    }
    const Found found = find_groups(order, sorted_);
    shape[axis] = static_cast<int64_t>(found.first.size());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    FOLIO_RETURN_IF_ERROR(dispatch_move(x->dtype(), [&](auto tag) {
      pick<typename decltype(tag)::type>(*x, entries, found.first, y);
      return Status::ok();
    }));
    FOLIO_RETURN_IF_ERROR(give(run, outputs_.first, found.first));
    FOLIO_RETURN_IF_ERROR(give(run, outputs_.inverse, found.inverse));
    return give(run, outputs_.counts, found.counts);
  }

 private:
  // y = the entries at `places`. T: as wide as their elements.
  template <typename T>
  static void pick(const Tensor& x, const Entries& entries, Span<const int64_t> places, Tensor* y) {
    const T* from = x.data<T>();
    T* to = y->data_mut<T>();
    for (int64_t o = 0; o < entries.outer; ++o, from += entries.count * entries.inner) {
      for (const int64_t place : places) {
        move_run(to, from + place * entries.inner, entries.inner);
        to += entries.inner;
      }
    }
  }

  // Entries without elements are all alike. There may be more of them than memory has room for.
  static Status find_empty(OpRun& run, const Tensor& x, const Entries& entries, Shape shape,
                           int axis) {
    shape[axis] = 1;
    FOLIO_RETURN_IF_ERROR(run.output(0, x.dtype(), shape).status());
    FOLIO_RETURN_IF_ERROR(give(run, 1, {0}));
    if (run.has_output(2)) {
      FOLIO_TRY(Tensor * inverse, run.output(2, DType::kInt64, Shape{entries.count}));
      std::fill_n(inverse->data_mut<int64_t>(), entries.count, 0);
    }
    return give(run, 3, {entries.count});
  }

  static Status give(OpRun& run, int i, const std::vector<int64_t>& values) {
    if (i < 0 || !run.has_output(i)) return Status::ok();
    FOLIO_TRY(Tensor * out,
              run.output(i, DType::kInt64, Shape{static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), out->data_mut<int64_t>());
    return Status::ok();
  }

  std::optional<int64_t> axis_;
  bool sorted_;
  Outputs outputs_;
};

Status infer_unique(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(infer_selection(infer));
  for (int i = 1; i < infer.output_count(); ++i) {
    infer.set_tensor(i, DType::kInt64, Dims{Dim::unknown()});
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_unique_entries(OpBuild& build) {
  FOLIO_TRY(const std::optional<int64_t> axis, optional_axis(build.attrs()));
  FOLIO_TRY(const int64_t sorted, build.attrs().get_int("sorted", 1));
  return std::unique_ptr<OpKernel>(std::make_unique<Unique>(axis, sorted != 0, kOutputs));
}

Status infer_contrib(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  if (x && x->size() != 1) return invalid_graph("input 0 has rank ", x->size(), ", expected 1");
  infer.set_tensor(0, infer.dtype(0), Dims{Dim::unknown()});
  infer.set_tensor(1, DType::kInt64, x ? *x : Dims{Dim::unknown()});
  infer.set_tensor(2, DType::kInt64, Dims{Dim::unknown()});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_contrib(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Unique>(std::nullopt, false, kContribOutputs));
}

}  // namespace

[[gnu::cold]] void register_unique(OpRegistry& registry) {
  OpDef def;
  def.type = "Unique";
  def.since = 11;
  def.max_outputs = 4;
  def.infer = infer_unique;
  def.make = make_unique_entries;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  def.min_outputs = def.max_outputs = 3;
  def.infer = infer_contrib;
  def.make = make_contrib;
  registry.add(def);
}

}  // namespace folio
