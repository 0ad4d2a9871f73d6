// Equal, Less, Greater, LessOrEqual, GreaterOrEqual, with broadcasting.
//
// Source: ONNX operator spec; Equal 1, 7, 11, 13, 19 (strings), Less and Greater 1, 7, 9, 13,
//         LessOrEqual and GreaterOrEqual 12, 16; before 7: attributes broadcast and axis.
// Shapes: the inputs' numpy broadcast; the result is bool.
// Math:   comparisons with NaN are false.
// Types:  all numbers. Equal: also bool and strings.
// Errors: kInvalidArgument for mixed element types.
#include <algorithm>
#include <string>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_flags.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Greater and GreaterOrEqual are Less and LessOrEqual with their sides changed.
struct Equal {
  using Relation = EqualRelation;
  static constexpr bool kTakesStringAndBool = true;
  static constexpr bool kSwaps = false;
};
template <typename R, bool kSwapsSides>
struct Order {
  using Relation = R;
  static constexpr bool kTakesStringAndBool = false;
  static constexpr bool kSwaps = kSwapsSides;
};

void equal_strings(int64_t n, const void* av, int64_t a_step, const void* bv, int64_t b_step,
                   void* y) {
  const auto* a = static_cast<const std::string*>(av);
  const auto* b = static_cast<const std::string*>(bv);
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(y)[i] = a[i * a_step] == b[i * b_step];
}

// Bytes of a bool tensor from outside may be any non-zero value.
struct EqualBools {
  bool operator()(uint8_t a, uint8_t b) const { return (a != 0) == (b != 0); }
};

// Blocks of a length that a compiler knows: one vector instruction compares some elements.
template <int kAStep, int kBStep, typename T, typename F>
void compare_blocks(int64_t n, const T* a, const T* b, uint8_t* y) {
  constexpr int64_t kBlock = 32;
  const F f{};
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    uint8_t block[kBlock];
    for (int64_t j = 0; j < kBlock; ++j) block[j] = f(a[(i + j) * kAStep], b[(i + j) * kBStep]);
    std::copy_n(block, kBlock, y + i);
  }
  for (; i < n; ++i) y[i] = f(a[i * kAStep], b[i * kBStep]);
}

template <typename T, typename F>
void compare_row(int64_t n, const void* av, int64_t a_step, const void* bv, int64_t b_step,
                 void* yv) {
  if (n == 0) return;
  const T* a = static_cast<const T*>(av);
  const T* b = static_cast<const T*>(bv);
  auto* y = static_cast<uint8_t*>(yv);
  const auto compare = [&](auto a_steps, auto b_steps) {
    constexpr int kAStep = decltype(a_steps)::value;
    constexpr int kBStep = decltype(b_steps)::value;
    if constexpr (kHasFlags<T>) {
      flag_row<kAStep, kBStep, T, F>(n, a, b, y);
    } else {
      compare_blocks<kAStep, kBStep, T, F>(n, a, b, y);
    }
  };
  constexpr std::integral_constant<int, 0> kStays;
  constexpr std::integral_constant<int, 1> kMoves;
  if (a_step == 0 && b_step == 0) {
    std::fill_n(y, n, F{}(*a, *b));
  } else if (a_step == 0) {
    compare(kStays, kMoves);
  } else if (b_step == 0) {
    compare(kMoves, kStays);
  } else {
    compare(kMoves, kMoves);
  }
}

// A row with its sides changed.
template <BinaryRow kRow>
void swapped_row(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step, void* y) {
  kRow(n, b, b_step, a, a_step, y);
}

template <typename F>
BinaryRow row_for(DType dtype) {
  if (F::kTakesStringAndBool && dtype == DType::kString) return equal_strings;
  if (F::kTakesStringAndBool && dtype == DType::kBool) return compare_row<uint8_t, EqualBools>;
  using Relation = typename F::Relation;
  BinaryRow row = nullptr;
  dispatch(NumericTypes{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool kInBlocks = kHasFlags<T> || (std::is_arithmetic_v<T> && sizeof(T) <= 4);
    constexpr BinaryRow kRow =
        kInBlocks ? compare_row<T, Relation> : binary_row<T, T, uint8_t, Relation>;
    row = F::kSwaps ? swapped_row<kRow> : kRow;
  });
  return row;
}

template <typename F>
class ComparisonKernel final : public OpKernel {
 public:
  explicit ComparisonKernel(const LegacyBroadcast& legacy) : legacy_(legacy) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    const BinaryRow row = row_for<F>(a->dtype());
    if (!row) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1, a->dtype()));
    FOLIO_TRY(const Shape b_shape, legacy_.second(a->shape(), b->shape()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b_shape));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kBool, plan.out));
    run_binary_rows(run, plan, row, *a, *b, y);
    return Status::ok();
  }

 private:
  LegacyBroadcast legacy_;
};

template <typename F>
Result<std::unique_ptr<OpKernel>> make_comparison(OpBuild& build) {
  FOLIO_TRY(const LegacyBroadcast legacy, LegacyBroadcast::parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<ComparisonKernel<F>>(legacy));
}

// Exporters ask whether a dim is -1, and no dim is: contents are 0 where one side is known not to
// be negative and the other is a negative number.
std::optional<std::vector<Dim>> equal_contents(OpInfer& infer, int dims_side) {
  const auto dims = infer.data(dims_side);
  const auto numbers = infer.ints(1 - dims_side);
  if (!dims || !numbers || (numbers->size() != 1 && numbers->size() != dims->size())) {
    return std::nullopt;
  }
  std::vector<Dim> out;
  for (size_t i = 0; i < dims->size(); ++i) {
    const int64_t number = numbers->at(numbers->size() == 1 ? 0 : i);
    const bool differs = number < 0 && infer.table().never_negative(dims->at(i));
    out.push_back(differs ? Dim::of(0) : Dim::unknown());
  }
  return out;
}

template <typename F>
Status infer_comparison(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(infer_common_dtype(infer).status());
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  infer.set_tensor(0, DType::kBool, dims);
  if (!std::is_same_v<F, Equal> || !dims || dims->size() > 1) return Status::ok();
  for (const int side : {0, 1}) {
    if (auto contents = equal_contents(infer, side)) infer.set_data(0, std::move(*contents));
  }
  return Status::ok();
}

template <typename F>
void add(OpRegistry& registry, std::string_view type, int since) {
  registry.add({.domain = "",
                .type = type,
                .since = since,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_comparison<F>,
                .make = make_comparison<F>});
}

}  // namespace

[[gnu::cold]] void register_comparison(OpRegistry& registry) {
  add<Equal>(registry, "Equal", 1);
  add<Order<LessRelation, false>>(registry, "Less", 1);
  add<Order<LessRelation, true>>(registry, "Greater", 1);
  add<Order<LessOrEqualRelation, false>>(registry, "LessOrEqual", 12);
  add<Order<LessOrEqualRelation, true>>(registry, "GreaterOrEqual", 12);
}

}  // namespace folio
