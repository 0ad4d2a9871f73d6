// SplitToSequence and ConcatFromSequence: a tensor cut into a sequence, and joined again.
//
// Source: ONNX operator spec, SplitToSequence, opsets 11, 24; ConcatFromSequence, opset 11.
// Shapes: SplitToSequence: `split` is the size of each piece (a scalar: the last may be smaller) or
//         their sizes; without it pieces of 1, without the axis unless keepdims.
//         ConcatFromSequence: as Concat, or with new_axis a stack along an axis of its own.
// Types:  SplitToSequence: all types. ConcatFromSequence: all types but those of 2 and 4 bits.
// Errors: kInvalidArgument when sizes do not add up, or elements do not fit each other.
#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_sequence.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

class SplitToSequence final : public OpKernel {
 public:
  SplitToSequence(int64_t axis, bool keep) : axis_(axis), keep_(keep) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    FOLIO_TRY(const std::vector<int64_t> sizes, sizes_of(run, x->dim(axis)));
    auto sequence = make_ref<SequenceData>();
    sequence->dtype = x->dtype();
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    int64_t at = 0;
    for (const int64_t size : sizes) {
      Shape shape = x->shape();
      shape[axis] = size;
      StridedView view;
      view.offset = at * strides[axis];
      for (int i = 0; i < shape.rank(); ++i) view.add(shape[i], strides[i]);
      FOLIO_TRY(Tensor piece, allocate_tensor(x->dtype(), shape));
      FOLIO_RETURN_IF_ERROR(copy_strided(run, view, *x, &piece));
      if (!run.has_input(1) && !keep_) {
        shape.erase(axis);
        piece = piece.reshaped(shape);
      }
      sequence->elements.emplace_back(std::move(piece));
      at += size;
    }
    run.set_output(0, Value(Ref<const SequenceData>(sequence)));
    return Status::ok();
  }

 private:
  static Result<std::vector<int64_t>> sizes_of(OpRun& run, int64_t dim) {
    std::vector<int64_t> given{1};
    bool each = true;
    if (run.has_input(1)) {
      FOLIO_TRY(given, run.ints(1));
      each = run.value(1).tensor().rank() == 0;
    }
    std::vector<int64_t> sizes;
    if (each) {
      const int64_t size = given[0];
      if (size < 1) return invalid_argument("split is ", size, ", expected 1 or more");
      // A piece is far more than a byte: dims of empty tensors must not fill the memory.
      if (dim / size > (int64_t{1} << 26)) {
        return invalid_argument("a dim of ", dim, " in pieces of ", size, " are too many");
      }
      for (int64_t at = 0; at < dim; at += std::min(size, dim - at)) {
        sizes.push_back(std::min(size, dim - at));
      }
      return sizes;
    }
    int64_t sum = 0;
    for (const int64_t size : given) {
      if (size < 0 || !checked_add(sum, size, &sum)) {
        return invalid_argument("split has a size of ", size);
      }
    }
    if (sum != dim) return invalid_argument("split's sizes add up to ", sum, ", the dim is ", dim);
    return given;
  }

  int64_t axis_;
  bool keep_;
};

class ConcatFromSequence final : public OpKernel {
 public:
  ConcatFromSequence(int64_t axis, bool stack) : axis_(axis), stack_(stack) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* sequence, sequence_input(run, 0));
    if (sequence->elements.empty() || !sequence->elements[0].is_tensor()) {
      return invalid_argument("the sequence holds no tensor");
    }
    const Tensor& first = sequence->elements[0].tensor();
    if (stack_ && first.rank() == kMaxRank) {
      return not_implemented("a result of rank ", kMaxRank + 1);
    }
    FOLIO_TRY(const int axis, normalize_axis(axis_, first.rank() + (stack_ ? 1 : 0)));
    std::vector<int64_t> dims(first.shape().begin(), first.shape().end());
    if (stack_) {
      dims.insert(dims.begin() + axis, static_cast<int64_t>(sequence->elements.size()));
    }
    for (size_t k = 1; k < sequence->elements.size(); ++k) {
      const Value& value = sequence->elements[k];
      Shape same = value.is_tensor() ? value.tensor().shape() : Shape();
      int64_t grown = 0;
      if (!stack_ && same.rank() == first.rank()) {
        grown = same[axis];
        same[axis] = first.dim(axis);
      }
      if (!value.is_tensor() || value.tensor().dtype() != first.dtype() ||
          !(same == first.shape())) {
        return invalid_argument("element ", k, " does not fit element 0, ",
                                dtype_name(first.dtype()), " ", first.shape().to_string(),
                                ", along axis ", axis);
      }
      int64_t& dim = dims[static_cast<size_t>(axis)];
      if (!checked_add(dim, grown, &dim)) return invalid_argument("the joined dim overflows");
    }
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * out, run.output(0, first.dtype(), shape));
    if (out->count() == 0) return Status::ok();
    return dispatch_move(first.dtype(), [&](auto tag) {
      join<typename decltype(tag)::type>(*sequence, axis, out);
      return Status::ok();
    });
  }

 private:
  template <typename T>
  static void join(const SequenceData& sequence, int axis, Tensor* out) {
    const Shape& shape = out->shape();
    const int64_t outer = shape.product(0, axis);
    const int64_t out_block = shape.product(axis, shape.rank());
    T* to = out->data_mut<T>();
    for (const Value& value : sequence.elements) {
      const Tensor& x = value.tensor();
      const int64_t block = x.count() / outer;
      for (int64_t i = 0; i < outer; ++i) {
        move_run(to + i * out_block, x.data<T>() + i * block, block);
      }
      to += block;
    }
  }

  int64_t axis_;
  bool stack_;
};

Status infer_split(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, infer.attrs().get_int("axis", 0));
  FOLIO_TRY(const int64_t keep, infer.attrs().get_int("keepdims", 1));
  TypeInfo element = infer.input(0);
  if (element.has_rank()) {
    FOLIO_TRY(const int axis, normalize_axis(given, element.rank()));
    if (!infer.has_input(1) && keep == 0) {
      element.dims->erase(element.dims->begin() + axis);
    } else {
      (*element.dims)[static_cast<size_t>(axis)] = Dim::unknown();
    }
  }
  infer.set_output(0, TypeInfo::sequence(std::move(element)));
  return Status::ok();
}

Status infer_join(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, infer.attrs().get_int("axis"));
  FOLIO_TRY(const int64_t stack, infer.attrs().get_int("new_axis", 0));
  FOLIO_TRY(const TypeInfo element, sequence_element(infer, 0));
  std::optional<Dims> out = element.dims;
  if (out) {
    const int rank = element.rank() + (stack != 0 ? 1 : 0);
    FOLIO_TRY(const int axis, normalize_axis(given, rank));
    if (stack != 0) out->insert(out->begin() + axis, Dim::unknown());
    (*out)[static_cast<size_t>(axis)] = Dim::unknown();
  }
  infer.set_tensor(0, element.dtype, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_split(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(const int64_t keep, build.attrs().get_int("keepdims", 1));
  return std::unique_ptr<OpKernel>(std::make_unique<SplitToSequence>(axis, keep != 0));
}

Result<std::unique_ptr<OpKernel>> make_join(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis"));
  FOLIO_TRY(const int64_t stack, build.attrs().get_int("new_axis", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<ConcatFromSequence>(axis, stack != 0));
}

}  // namespace

[[gnu::cold]] void register_split_to_sequence(OpRegistry& registry) {
  OpDef def;
  def.type = "SplitToSequence";
  def.since = 11;
  def.max_inputs = 2;
  def.infer = infer_split;
  def.make = make_split;
  registry.add(def);
  def.type = "ConcatFromSequence";
  def.max_inputs = 1;
  def.infer = infer_join;
  def.make = make_join;
  registry.add(def);
}

}  // namespace folio
