// TopK: the k largest or smallest elements along an axis, and where they stand.
//
// Source: ONNX operator spec, TopK, opsets 1 (k an attribute), 10 (k an input), 11 (largest,
//         sorted), 24 (bfloat16).
// Shapes: x [.., n, ..] -> values, indices int64 [.., k, ..].
// Math:   of equal elements the one with the lower index comes first; NaN counts as larger than
//         any number. The result is sorted even where `sorted` is 0.
// Types:  all numbers; indices int64.
// Errors: kInvalidArgument when k is negative or above n.
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

template <typename C>
struct Entry {
  C value;
  int64_t index;
};

template <typename C>
bool is_nan(C value) {
  if constexpr (std::is_floating_point_v<C>) return value != value;
  return false;
}

// Strict orders of all values, NaN included, with the index to break ties.
template <typename C>
struct Larger {
  bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    if (a.value > b.value) return true;
    if (a.value < b.value) return false;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value);
    return a.index < b.index;
  }
};
template <typename C>
struct Smaller {
  bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    if (a.value < b.value) return true;
    if (a.value > b.value) return false;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(b.value);
    return a.index < b.index;
  }
};

template <typename C, typename Before>
void select(Entry<C>* entries, int64_t n, int64_t k, Before before) {
  if (k < n) std::nth_element(entries, entries + k, entries + n, before);
  std::sort(entries, entries + k, before);
}

struct Place {
  int64_t n = 0;
  int64_t k = 0;
  int64_t inner = 0;
  int64_t rows = 0;
};

class TopK final : public OpKernel {
 public:
  int64_t axis = -1;
  int64_t attribute_k = -1;  // before opset 10
  bool largest = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    Place place;
    place.n = x->dim(at);
    place.k = attribute_k;
    if (attribute_k < 0) {
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(1));
      if (given.size() != 1) return invalid_argument("K has ", given.size(), " elements, not 1");
      place.k = given[0];
    }
    if (place.k < 0 || place.k > place.n) {
      return invalid_argument("k is ", place.k, ", expected 0 to ", place.n, ", dim ", at, " of ",
                              x->shape().to_string());
    }
    if (!contains(NumericTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    Shape shape = x->shape();
    place.inner = shape.product(at + 1, shape.rank());
    place.rows = shape.product(0, at) * place.inner;
    shape[at] = place.k;
    FOLIO_TRY(Tensor * values, run.output(0, x->dtype(), shape));
    FOLIO_TRY(Tensor * indices, run.output(1, DType::kInt64, shape));
    if (values->count() == 0) return Status::ok();
    Status status;
    dispatch(NumericTypes{}, x->dtype(), [&](auto tag) {
      status = find<typename decltype(tag)::type>(run, *x, place, values, indices);
    });
    return status;
  }

 private:
  template <typename T>
  Status find(OpRun& run, const Tensor& x, const Place& place, Tensor* values,
              Tensor* indices) const {
    using C = Compute<T>;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(place.n) * sizeof(Entry<C>), &scratch));
    T* to = values->data_mut<T>();
    int64_t* where = indices->data_mut<int64_t>();
    run.parallel().for_range(place.rows, rows_per_task(place.n), [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* entries = reinterpret_cast<Entry<C>*>(block.data());
      for (int64_t row = begin; row < end; ++row) {
        const int64_t outer = row / place.inner;
        const int64_t inner = row % place.inner;
        const T* from = x.data<T>() + outer * place.n * place.inner + inner;
        for (int64_t i = 0; i < place.n; ++i) {
          entries[i] = {static_cast<C>(from[i * place.inner]), i};
        }
        if (largest) {
          select(entries, place.n, place.k, Larger<C>());
        } else {
          select(entries, place.n, place.k, Smaller<C>());
        }
        const int64_t first = outer * place.k * place.inner + inner;
        for (int64_t i = 0; i < place.k; ++i) {
          to[first + i * place.inner] = from[entries[i].index * place.inner];
          where[first + i * place.inner] = entries[i].index;
        }
      }
    });
    return Status::ok();
  }
};

Status infer_top_k(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", -1));
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
    out = *x;
    Dim k = Dim::unknown();
    if (infer.version() < 10) {
      FOLIO_TRY(const int64_t given, infer.attrs().get_int("k"));
      k = Dim::of(given);
    } else if (const auto data = infer.data(1); data && data->size() == 1) {
      k = (*data)[0];
    }
    (*out)[static_cast<size_t>(at)] = k;
  }
  infer.set_tensor(0, infer.dtype(0), out);
  infer.set_tensor(1, DType::kInt64, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_top_k(OpBuild& build) {
  auto kernel = std::make_unique<TopK>();
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", -1));
  if (build.version() < 10) {
    FOLIO_TRY(kernel->attribute_k, build.attrs().get_int("k"));
    if (kernel->attribute_k < 0) {
      return invalid_graph("k is ", kernel->attribute_k, ", expected 0 or more");
    }
  }
  if (build.version() >= 11) {
    FOLIO_TRY(const int64_t largest, build.attrs().get_int("largest", 1));
    kernel->largest = largest != 0;
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_top_k(OpRegistry& registry) {
  OpDef def;
  def.type = "TopK";
  def.until = 9;
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer_top_k;
  def.make = make_top_k;
  registry.add(def);
  def.since = 10;
  def.until = kLatest;
  def.min_inputs = def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
