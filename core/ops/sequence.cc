// SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt, SequenceLength.
//
// Source: ONNX operator spec, opset 11 of each.
// Math:   positions are counted from the end when negative; SequenceInsert appends by default,
//         SequenceErase takes off the last element.
// Types:  tensors of all types.
// Errors: kInvalidArgument when a position is outside, or a tensor is not of the sequence's type.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_sequence.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

// The position in input i, in [0, count).
Result<size_t> position_of(OpRun& run, int i, size_t count) {
  FOLIO_TRY(const std::vector<int64_t> given, run.ints(i));
  if (given.size() != 1) return invalid_argument("position has ", given.size(), " elements, not 1");
  int64_t at = given[0];
  if (!wrap_index(&at, static_cast<int64_t>(count))) {
    return invalid_argument("position ", given[0], " is outside the ", count, " there are");
  }
  return static_cast<size_t>(at);
}

void publish(OpRun& run, Ref<SequenceData> sequence) {
  run.set_output(0, Value(Ref<const SequenceData>(std::move(sequence))));
}

class SequenceConstruct final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    auto sequence = make_ref<SequenceData>();
    for (int i = 0; i < run.input_count(); ++i) {
      FOLIO_RETURN_IF_ERROR(append_tensor(run, i, sequence.get()));
    }
    publish(run, std::move(sequence));
    return Status::ok();
  }
};

class SequenceEmpty final : public OpKernel {
 public:
  explicit SequenceEmpty(DType dtype) : dtype_(dtype) {}

  Status run(OpRun& run) const override {
    auto sequence = make_ref<SequenceData>();
    sequence->dtype = dtype_;
    publish(run, std::move(sequence));
    return Status::ok();
  }

 private:
  DType dtype_;
};

class SequenceInsert final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* from, sequence_input(run, 0));
    auto sequence = make_ref<SequenceData>();
    sequence->dtype = from->dtype;
    sequence->elements.reserve(from->elements.size() + 1);
    sequence->elements = from->elements;
    size_t at = from->elements.size();
    if (run.has_input(2)) {
      // Of a sequence of n, -n is the front, and n (not -1) the back.
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(2));
      const auto count = static_cast<int64_t>(at);
      if (given.size() != 1 || given[0] < -count || given[0] > count) {
        return invalid_argument("position must be one number from ", -count, " to ", count);
      }
      at = static_cast<size_t>(given[0] < 0 ? given[0] + count : given[0]);
    }
    FOLIO_RETURN_IF_ERROR(append_tensor(run, 1, sequence.get()));
    std::rotate(sequence->elements.begin() + static_cast<ptrdiff_t>(at),
                sequence->elements.end() - 1, sequence->elements.end());
    publish(run, std::move(sequence));
    return Status::ok();
  }
};

class SequenceErase final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* from, sequence_input(run, 0));
    const size_t count = from->elements.size();
    if (count == 0) return invalid_argument("the sequence is empty");
    size_t at = count - 1;
    if (run.has_input(1)) {
      FOLIO_TRY(at, position_of(run, 1, count));
    }
    auto sequence = make_ref<SequenceData>();
    sequence->dtype = from->dtype;
    sequence->elements = from->elements;
    sequence->elements.erase(sequence->elements.begin() + static_cast<ptrdiff_t>(at));
    publish(run, std::move(sequence));
    return Status::ok();
  }
};

class SequenceAt final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* from, sequence_input(run, 0));
    FOLIO_TRY(const size_t at, position_of(run, 1, from->elements.size()));
    run.set_output(0, from->elements[at]);
    return Status::ok();
  }
};

class SequenceLength final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* from, sequence_input(run, 0));
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt64, Shape()));
    *out->data_mut<int64_t>() = static_cast<int64_t>(from->elements.size());
    return Status::ok();
  }
};

Result<DType> empty_dtype(const Attributes& attrs) {
  FOLIO_TRY(const int64_t dtype, attrs.get_int("dtype", static_cast<int64_t>(DType::kFloat)));
  if (!dtype_known(dtype) || dtype == 0) {
    return invalid_graph("dtype is ", dtype, ", which is no element type");
  }
  return static_cast<DType>(dtype);
}

Status infer_construct(OpInfer& infer) {
  TypeInfo element = infer.input(0);
  for (int i = 1; i < infer.input_count(); ++i) element = common_type(element, infer.input(i));
  infer.set_output(0, TypeInfo::sequence(std::move(element)));
  return Status::ok();
}

Status infer_empty(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, empty_dtype(infer.attrs()));
  infer.set_output(0, TypeInfo::sequence(TypeInfo::tensor(dtype)));
  return Status::ok();
}

Status infer_insert(OpInfer& infer) {
  FOLIO_TRY(const TypeInfo element, sequence_element(infer, 0));
  infer.set_output(0, TypeInfo::sequence(common_type(element, infer.input(1))));
  return Status::ok();
}

Status infer_erase(OpInfer& infer) {
  FOLIO_TRY(TypeInfo element, sequence_element(infer, 0));
  infer.set_output(0, TypeInfo::sequence(std::move(element)));
  return Status::ok();
}

Status infer_at(OpInfer& infer) {
  FOLIO_TRY(TypeInfo element, sequence_element(infer, 0));
  infer.set_output(0, std::move(element));
  return Status::ok();
}

Status infer_length(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(sequence_element(infer, 0).status());
  infer.set_tensor(0, DType::kInt64, Dims{});
  return Status::ok();
}

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>());
}

Result<std::unique_ptr<OpKernel>> make_empty(OpBuild& build) {
  FOLIO_TRY(const DType dtype, empty_dtype(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<SequenceEmpty>(dtype));
}

void add(OpRegistry& registry, std::string_view type, int min_inputs, int max_inputs, InferFn infer,
         MakeFn make_kernel) {
  OpDef def;
  def.type = type;
  def.since = 11;
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.places_outputs = type != "SequenceAt";
  def.infer = infer;
  def.make = make_kernel;
  registry.add(def);
}

}  // namespace

[[gnu::cold]] void register_sequence(OpRegistry& registry) {
  add(registry, "SequenceConstruct", 1, kVariadic, infer_construct, make<SequenceConstruct>);
  add(registry, "SequenceEmpty", 0, 0, infer_empty, make_empty);
  add(registry, "SequenceInsert", 2, 3, infer_insert, make<SequenceInsert>);
  add(registry, "SequenceErase", 1, 2, infer_erase, make<SequenceErase>);
  add(registry, "SequenceAt", 2, 2, infer_at, make<SequenceAt>);
  add(registry, "SequenceLength", 1, 1, infer_length, make<SequenceLength>);
}

}  // namespace folio
