// Unique: each entry of a tensor or of an axis once.
//
// Source: ONNX operator spec, Unique, opset 11.
// Shapes: x [outer.., n, inner..] -> y with the axis cut to the entries found (without an axis: the
//         elements of x, one dim), indices [found] of their first places, inverse_indices [n],
//         counts [found].
// Math:   sorted: in ascending order (NaN last, all NaN as one), else by first place. Entries
//         without elements are one entry, as in numpy.
// Types:  all numbers, bool, strings; indices and counts int64.
#include <cmath>
#include <numeric>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using Types = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, bool, std::string>;

// -1, 0 or 1; a total order, with NaN above all.
template <typename T>
int compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string>) {
    return a < b ? -1 : b < a ? 1 : 0;
  } else {
    const auto x = static_cast<Compute<T>>(a);
    const auto y = static_cast<Compute<T>>(b);
    if (x < y) return -1;
    if (x > y) return 1;
    return static_cast<int>(x != x) - static_cast<int>(y != y);
  }
}

// Entry i is x[o, i, j] for all o < outer and j < inner.
struct Entries {
  int64_t count = 0;
  int64_t outer = 1;
  int64_t inner = 1;
};

template <typename T>
int compare_entries(const T* x, const Entries& entries, int64_t a, int64_t b) {
  for (int64_t o = 0; o < entries.outer; ++o) {
    const T* row = x + o * entries.count * entries.inner;
    for (int64_t i = 0; i < entries.inner; ++i) {
      const int order = compare(row[a * entries.inner + i], row[b * entries.inner + i]);
      if (order != 0) return order;
    }
  }
  return 0;
}

struct Found {
  std::vector<int64_t> first;    // of each group, in the order of the result
  std::vector<int64_t> inverse;  // the group of each entry
  std::vector<int64_t> counts;
};

// Single numbers stand beside their places while they are sorted: looking them up takes longer.
template <typename T>
std::vector<int64_t> order_of_numbers(const T* x, int64_t count) {
  struct Placed {
    T value;
    int64_t at;
  };
  std::vector<Placed> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = {x[i], static_cast<int64_t>(i)};
  std::sort(numbers.begin(), numbers.end(), [](const Placed& a, const Placed& b) {
    const int result = compare(a.value, b.value);
    return result != 0 ? result < 0 : a.at < b.at;
  });
  std::vector<int64_t> order(numbers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = numbers[i].at;
  return order;
}

// Entries ascending, equal ones by place.
template <typename T>
std::vector<int64_t> order_of(const T* x, const Entries& entries) {
  if constexpr (!std::is_same_v<T, std::string>) {
    if (entries.outer == 1 && entries.inner == 1) return order_of_numbers(x, entries.count);
  }
  std::vector<int64_t> order(static_cast<size_t>(entries.count));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int result = compare_entries(x, entries, a, b);
    return result != 0 ? result < 0 : a < b;
  });
  return order;
}

template <typename T>
Found find_groups(const T* x, const Entries& entries, bool sorted) {
  const std::vector<int64_t> order = order_of(x, entries);
  Found found;
  found.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare_entries(x, entries, order[i - 1], order[i]) != 0) {
      found.first.push_back(order[i]);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(found.first.size()) - 1;
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

class Unique final : public OpKernel {
 public:
  Unique(std::optional<int64_t> axis, bool sorted) : axis_(axis), sorted_(sorted) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
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
    Status status = wrong_type(0, x->dtype());
    dispatch(Types{}, x->dtype(), [&](auto tag) {
      status = find<typename decltype(tag)::type>(run, *x, entries, shape, axis);
    });
    return status;
  }

 private:
  template <typename T>
  Status find(OpRun& run, const Tensor& x, const Entries& entries, Shape shape, int axis) const {
    const Found found = find_groups(x.data<T>(), entries, sorted_);
    shape[axis] = static_cast<int64_t>(found.first.size());
    FOLIO_TRY(Tensor * y, run.output(0, x.dtype(), shape));
    T* to = y->data_mut<T>();
    for (int64_t o = 0; o < entries.outer; ++o) {
      for (const int64_t first : found.first) {
        move_run(to, x.data<T>() + (o * entries.count + first) * entries.inner, entries.inner);
        to += entries.inner;
      }
    }
    FOLIO_RETURN_IF_ERROR(give(run, 1, found.first));
    FOLIO_RETURN_IF_ERROR(give(run, 2, found.inverse));
    return give(run, 3, found.counts);
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
    if (!run.has_output(i)) return Status::ok();
    FOLIO_TRY(Tensor * out,
              run.output(i, DType::kInt64, Shape{static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), out->data_mut<int64_t>());
    return Status::ok();
  }

  std::optional<int64_t> axis_;
  bool sorted_;
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
  return std::unique_ptr<OpKernel>(std::make_unique<Unique>(axis, sorted != 0));
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
}

}  // namespace folio
