#include "core/ops/op_broadcast.h"

#include <algorithm>

namespace folio {
namespace {

// Strides of `shape` as seen from the broadcast shape of `rank` dims: 0 where it repeats.
void broadcast_strides(const Shape& shape, int rank, int64_t* strides) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int own = i - (rank - shape.rank());
    const int64_t dim = own < 0 ? 1 : shape[own];
    strides[i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}

// Whether `part`, without ones in front, is how `whole` ends.
bool is_end_of(const Shape& part, const Shape& whole) {
  int from = 0;
  while (from < part.rank() && part[from] == 1) ++from;
  const int rank = part.rank() - from;
  return part.rank() <= whole.rank() &&
         std::equal(part.end() - rank, part.end(), whole.end() - rank);
}

// The common cases: `part` is all of `whole`, one number, or what its rows end with, as a bias.
void plan_repeated(const Shape& whole, const Shape& part, int64_t BroadcastPlan::*part_step,
                   Shape BroadcastPlan::*whole_strides, Shape BroadcastPlan::*part_strides,
                   BroadcastPlan* plan) {
  const int64_t count = whole.count();
  const int64_t part_count = part.count();
  plan->out = whole;
  plan->a_step = plan->b_step = 1;
  plan->row = count;
  if (part_count == count) return;
  if (part_count == 1) {
    plan->*part_step = 0;
    return;
  }
  plan->row = part_count;
  plan->rows = count / part_count;
  plan->dims.push_back(plan->rows);
  (plan->*whole_strides).push_back(part_count);
  (plan->*part_strides).push_back(0);
}

}  // namespace

Result<BroadcastPlan> plan_broadcast(const Shape& a, const Shape& b) {
  BroadcastPlan plan;
  if (is_end_of(b, a)) {
    plan_repeated(a, b, &BroadcastPlan::b_step, &BroadcastPlan::a_strides,
                  &BroadcastPlan::b_strides, &plan);
    return plan;
  }
  if (is_end_of(a, b)) {
    plan_repeated(b, a, &BroadcastPlan::a_step, &BroadcastPlan::b_strides,
                  &BroadcastPlan::a_strides, &plan);
    return plan;
  }
  FOLIO_TRY(plan.out, broadcast(a, b));
  const int rank = plan.out.rank();
  int64_t a_strides[kMaxRank];
  int64_t b_strides[kMaxRank];
  broadcast_strides(a, rank, a_strides);
  broadcast_strides(b, rank, b_strides);

  // Groups of dims that both inputs walk through (or repeat) as one, innermost first.
  int64_t dims[kMaxRank];
  int64_t as[kMaxRank];
  int64_t bs[kMaxRank];
  int groups = 0;
  for (int i = rank - 1; i >= 0; --i) {
    if (plan.out[i] == 1) continue;
    const bool joins = groups > 0 && a_strides[i] == as[groups - 1] * dims[groups - 1] &&
                       b_strides[i] == bs[groups - 1] * dims[groups - 1];
    if (joins) {
      dims[groups - 1] *= plan.out[i];
      continue;
    }
    dims[groups] = plan.out[i];
    as[groups] = a_strides[i];
    bs[groups] = b_strides[i];
    ++groups;
  }
  if (groups > 0) {
    plan.row = dims[0];
    plan.a_step = as[0];
    plan.b_step = bs[0];
  }
  for (int g = groups - 1; g >= 1; --g) {
    plan.dims.push_back(dims[g]);
    plan.a_strides.push_back(as[g]);
    plan.b_strides.push_back(bs[g]);
    plan.rows *= dims[g];
  }
  return plan;
}

namespace {

template <typename T>
void copy_rows(const uint8_t* data, int64_t step, int64_t stride, int64_t row, int64_t count,
               uint8_t* memory) {
  const T* from = reinterpret_cast<const T*>(data);
  T* to = reinterpret_cast<T*>(memory);
  for (int64_t r = 0; r < count; ++r, from += stride) {
    for (int64_t i = 0; i < row; ++i) *to++ = from[i * step];
  }
}

}  // namespace

JoinedRows::Piece JoinedRows::join(int64_t at, int64_t row, int64_t count) {
  const uint8_t* from = data_ + at * size_;
  if (step_ == 1 && (stride_ == row || count == 1)) return {from, 1};
  if (step_ == 0 && (stride_ == 0 || count == 1)) return {from, 0};
  // Rows that are all the same, and fewer of them, are held already.
  if (held_ == at && count <= held_rows_) return {memory_, 1};
  const auto copy = size_ == 1   ? copy_rows<uint8_t>
                    : size_ == 2 ? copy_rows<uint16_t>
                    : size_ == 4 ? copy_rows<uint32_t>
                                 : copy_rows<uint64_t>;
  copy(from, step_, stride_, row, count, memory_);
  held_ = at;
  held_rows_ = count;
  return {memory_, 1};
}

int64_t BroadcastPlan::shortest_alone() const {
  const int last = dims.rank() - 1;
  const auto is_neighbour_or_same = [&](int64_t step, int64_t stride) {
    return stride == 0 || (step == 1 && stride == row);
  };
  const bool repeats = last >= 0 && is_neighbour_or_same(a_step, a_strides[last]) &&
                       is_neighbour_or_same(b_step, b_strides[last]);
  return repeats ? kRepeatedRow : kShortRow;
}

void run_binary_rows(OpRun& run, const BroadcastPlan& plan, BinaryRow row, const Tensor& a,
                     const Tensor& b, Tensor* y) {
  const int64_t a_bytes = dtype_bits(a.dtype()) / 8;
  const int64_t b_bytes = dtype_bits(b.dtype()) / 8;
  const int64_t y_bytes = dtype_bits(y->dtype()) / 8;
  uint8_t* y_data = y->raw_mut();
  for_broadcast_pieces(
      run.parallel(), plan, a.raw(), a_bytes, b.raw(), b_bytes,
      [&](const uint8_t* from_a, int64_t a_step, const uint8_t* from_b, int64_t b_step, int64_t at,
          int64_t count) { row(count, from_a, a_step, from_b, b_step, y_data + at * y_bytes); });
}

static void run_binary_half(OpRun& run, FolioBinaryF32 kernel, const BroadcastPlan& plan,
                            const Tensor& a, const Tensor& b, Tensor* y) {
  constexpr int64_t kPiece = 512;
  const FolioKernels& kernels = run.kernels();
  const bool is_f16 = y->dtype() == DType::kFloat16;
  const auto widen = is_f16 ? kernels.f16_to_f32 : kernels.bf16_to_f32;
  const auto narrow = is_f16 ? kernels.f32_to_f16 : kernels.f32_to_bf16;
  auto* y_data = y->data_mut<uint16_t>();
  for_broadcast_pieces(run.parallel(), plan, a.raw(), 2, b.raw(), 2,
                       [&](const uint8_t* from_a, int64_t a_step, const uint8_t* from_b,
                           int64_t b_step, int64_t at, int64_t count) {
                         float left[kPiece];
                         float right[kPiece];
                         float result[kPiece];
                         if (a_step == 0) widen(1, from_a, left);
                         if (b_step == 0) widen(1, from_b, right);
                         for (int64_t i = 0; i < count; i += kPiece) {
                           const int64_t n = std::min(kPiece, count - i);
                           if (a_step == 1) widen(n, from_a + 2 * i, left);
                           if (b_step == 1) widen(n, from_b + 2 * i, right);
                           kernel(n, left, a_step, right, b_step, result);
                           narrow(n, result, y_data + at + i);
                         }
                       });
}

void run_binary_f32(OpRun& run, FolioBinaryF32 kernel, const BroadcastPlan& plan, const Tensor& a,
                    const Tensor& b, Tensor* y) {
  if (is_half(y->dtype())) return run_binary_half(run, kernel, plan, a, b, y);
  float* y_data = y->data_mut<float>();
  for_broadcast_pieces(run.parallel(), plan, a.raw(), 4, b.raw(), 4,
                       [&](const uint8_t* from_a, int64_t a_step, const uint8_t* from_b,
                           int64_t b_step, int64_t at, int64_t count) {
                         kernel(count, reinterpret_cast<const float*>(from_a), a_step,
                                reinterpret_cast<const float*>(from_b), b_step, y_data + at);
                       });
}

// ---------------------------------------------------------------- opset < 7

Result<LegacyBroadcast> LegacyBroadcast::parse(const Attributes& attributes, int version) {
  LegacyBroadcast legacy;
  if (version >= 7) return legacy;
  FOLIO_TRY(const int64_t enabled, attributes.get_int("broadcast", 0));
  legacy.mode = enabled != 0 ? Mode::kAxis : Mode::kEqual;
  legacy.has_axis = attributes.has("axis");
  FOLIO_TRY(legacy.axis, attributes.get_int("axis", 0));
  return legacy;
}

Result<Shape> LegacyBroadcast::second(const Shape& a, const Shape& b) const {
  if (mode == Mode::kNumpy) return b;
  if (mode == Mode::kEqual) {
    if (!(a == b)) {
      return invalid_argument("shapes ", a.to_string(), " and ", b.to_string(),
                              " differ, and before opset 7 only broadcast=1 allows that");
    }
    return b;
  }
  const int free = a.rank() - b.rank();
  if (free < 0) {
    return invalid_argument("input 1 has ", b.rank(), " dims, more than the ", a.rank(),
                            " of input 0");
  }
  int64_t start = free;
  if (has_axis && b.rank() > 0) {
    start = axis < 0 ? axis + a.rank() : axis;
    if (start < 0 || start > free) {
      return invalid_argument("axis ", axis, " leaves no room for the ", b.rank(),
                              " dims of input 1 in the ", a.rank(), " of input 0");
    }
  }
  Shape padded = b;
  for (int64_t i = start; i < free; ++i) padded.push_back(1);
  for (int i = 1; i <= padded.rank(); ++i) {
    const int64_t dim = padded[padded.rank() - i];
    if (dim != 1 && dim != a[a.rank() - i]) {
      return invalid_argument("input 1 ", b.to_string(), " at axis ", start,
                              " does not broadcast to input 0 ", a.to_string(),
                              ", which keeps its dims before opset 7");
    }
  }
  return padded;
}

// ---------------------------------------------------------------- inference

Result<Dims> infer_broadcast(DimTable& table, const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim da = i + a.size() < rank ? Dim::of(1) : a[i + a.size() - rank];
    const Dim db = i + b.size() < rank ? Dim::of(1) : b[i + b.size() - rank];
    if (da.is_value() && db.is_value() && da.value != db.value && da.value != 1 && db.value != 1) {
      return invalid_graph("dims ", da.value, " and ", db.value, " do not broadcast");
    }
    out[i] = table.broadcast(da, db);
  }
  return out;
}

Result<std::optional<Dims>> infer_binary_dims(OpInfer& infer) {
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(1);
  if (infer.version() < 7) {
    // Input 1 never makes the output larger.
    if (a) return std::optional<Dims>(*a);
    return std::optional<Dims>();
  }
  if (!a || !b) return std::optional<Dims>();
  FOLIO_TRY(Dims out, infer_broadcast(infer.table(), *a, *b));
  return std::optional<Dims>(std::move(out));
}

Result<std::optional<Dims>> infer_variadic_dims(OpInfer& infer) {
  if (!infer.dims_of(0)) return std::optional<Dims>();
  Dims out = *infer.dims_of(0);
  for (int i = 1; i < infer.input_count(); ++i) {
    if (!infer.dims_of(i)) return std::optional<Dims>();
    FOLIO_TRY(out, infer_broadcast(infer.table(), out, *infer.dims_of(i)));
  }
  return std::optional<Dims>(std::move(out));
}

Result<DType> infer_common_dtype(const OpInfer& infer) {
  DType found = DType::kUndefined;
  for (int i = 0; i < infer.input_count(); ++i) {
    if (!infer.input(i).is_tensor()) continue;
    const DType dtype = infer.dtype(i);
    if (found == DType::kUndefined) {
      found = dtype;
    } else if (dtype != DType::kUndefined && dtype != found) {
      return invalid_graph("input ", i, " is ", dtype_name(dtype), ", but the others are ",
                           dtype_name(found));
    }
  }
  return found;
}

}  // namespace folio
