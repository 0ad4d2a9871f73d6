// Fuzzes the whole spine: bytes -> ModelDef -> Model -> passes -> Program -> one run of zeros.
//
// An input is an .onnx file that has no files beside it. Unknown dims of inputs are 2. A run of
// zeros is followed by one of small numbers. What an input may allocate is limited by the
// allocation hook, how long it may compute by a deadline: between operators it is the run's,
// between the chunks of one an exception, which every operator has to let through (as it does
// bad_alloc). With FOLIO_FUZZ_VERBOSE set each input's status is printed: how far did it get?
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/formats/load.h"
#include "core/kernels/select.h"
#include "core/model/graph_builder.h"
#include "core/os/cpu_features.h"
#include "core/passes/passes.h"
#include "core/plan/program_builder.h"
#include "core/run/executor.h"
#include "tests/fuzz/model_walk.h"

namespace folio {
namespace {

constexpr size_t kMaxBytes = 8 << 20;        // one allocation
constexpr size_t kMaxTotalBytes = 32 << 20;  // alive at once
constexpr std::chrono::milliseconds kMaxTime{500};

using Clock = std::chrono::steady_clock;

struct TimeIsUp {};

// Everything in the calling thread, until the deadline.
class FuzzParallel final : public Parallel {
 public:
  explicit FuzzParallel(Clock::time_point deadline) : deadline_(deadline) {}
  int thread_count() const override { return 1; }
  void run(int64_t count, int64_t grain, Task task) override {
    InlineParallel().for_range(count, grain, [&](int64_t begin, int64_t end) {
      if (Clock::now() >= deadline_) throw TimeIsUp();
      task.run(task.state, begin, end);
    });
  }

 private:
  Clock::time_point deadline_;
};

bool allow(size_t bytes) {
  return bytes <= kMaxBytes && buffer_bytes_live() + bytes <= kMaxTotalBytes;
}

enum class Numbers { kZeros, kCounting };

// Integers from 0 to 4, and positive floats.
void count(Tensor* tensor) {
  const DType dtype = tensor->dtype();
  const auto width = static_cast<size_t>(dtype_bits(dtype) / 8);
  if (width == 0) return;
  const bool is_float = dtype_is_float(dtype);
  uint8_t* bytes = tensor->raw_mut();
  const size_t elements = tensor->bytes() / width;
  const size_t digits = dtype == DType::kBool ? 2 : 5;
  for (size_t i = 0; i < elements; ++i) {
    const auto digit = static_cast<uint8_t>(i % digits);
    bytes[i * width + (is_float ? width - 1 : 0)] = is_float ? 0x3c + digit : digit;
  }
}

// Numbers of the declared type; none for what is no tensor of a known type.
Result<Value> numbers_of(const TypeInfo& type, Numbers numbers) {
  if (type.kind == TypeInfo::Kind::kSequence) {
    auto sequence = make_ref<SequenceData>();
    sequence->dtype = type.element ? type.element->dtype : DType::kUndefined;
    return Value(Ref<const SequenceData>(sequence));
  }
  if (!type.is_tensor() || type.dtype == DType::kUndefined) return Value();
  Shape shape;
  if (type.dims) {
    for (const Dim dim : *type.dims) shape.push_back(dim.is_value() ? dim.value : 2);
  }
  FOLIO_TRY(Tensor tensor, allocate_tensor(type.dtype, shape));
  if (!tensor.is_string() && tensor.bytes() > 0) {
    std::memset(tensor.raw_mut(), 0, tensor.bytes());
    if (numbers == Numbers::kCounting) count(&tensor);
  }
  return Value(std::move(tensor));
}

size_t walk(const Value& value) { return value.is_tensor() ? walk_tensor(value.tensor()) : 0; }

Status run_once(Program& program, const Evaluator& evaluator, Clock::time_point deadline,
                Numbers numbers) {
  RunRequest request;
  for (const PortInfo& input : program.inputs) {
    if (input.has_default) {
      request.inputs.emplace_back();
      continue;
    }
    FOLIO_TRY(Value value, numbers_of(input.type, numbers));
    request.inputs.push_back(std::move(value));
  }
  request.wanted.assign(program.outputs.size(), 1);
  request.memory.assign(program.outputs.size(), Tensor());
  request.control.deadline = deadline;
  request.parallel = &evaluator.parallel;
  request.kernels = &evaluator.kernels;
  std::vector<Value> outputs;
  FOLIO_RETURN_IF_ERROR(run_program(program, request, &outputs));
  // The volatile keeps the walk from being optimised away.
  volatile size_t sum = 0;
  for (const Value& value : outputs) sum = sum + walk(value);
  return Status::ok();
}

Status load_and_compute(Bytes bytes, bool optimize) {
  LoadOptions options;
  options.format = ModelFormat::kOnnx;
  options.max_dense_bytes = 1 << 20;
  FOLIO_TRY(ModelDef def, load_model_def(make_ref<FuzzSource>(bytes), options));
  FOLIO_TRY(const std::unique_ptr<Model> model, build_model(std::move(def), {}));
  FOLIO_RETURN_IF_ERROR(take_packed_weights(model.get()));
  const Clock::time_point deadline = Clock::now() + kMaxTime;
  FuzzParallel parallel(deadline);
  const Evaluator evaluator{kernels_for(cpu_bits()), parallel};
  FOLIO_RETURN_IF_ERROR(
      run_passes(model.get(), evaluator, optimize ? Optimize::kAll : Optimize::kOff));
  PackedCache cache;
  ProgramOptions plan;
  plan.prepack = optimize;
  plan.cache = &cache;
  FOLIO_TRY(const Ref<Program> program, build_program(model.get(), evaluator, plan));
  // Twice: the second run finds the arena as the first one left it.
  FOLIO_RETURN_IF_ERROR(run_once(*program, evaluator, deadline, Numbers::kZeros));
  return run_once(*program, evaluator, deadline, Numbers::kCounting);
}

Status load_and_run(Bytes bytes, bool optimize) {
  try {
    return load_and_compute(bytes, optimize);
  } catch (const TimeIsUp&) {
    return error(Code::kCancelled, "an operator took too long");
  }
}

}  // namespace
}  // namespace folio

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace folio;
  static const bool verbose = std::getenv("FOLIO_FUZZ_VERBOSE") != nullptr;
  set_allocation_hook(allow);
  for (const bool optimize : {true, false}) {
    const Status status = load_and_run(Bytes(data, size), optimize);
    if (status.is_ok() == !status.message().empty()) std::abort();
    if (verbose)
      std::fprintf(stderr, "%s\n", status.is_ok() ? "ran" : std::string(status.message()).c_str());
  }
  set_allocation_hook(nullptr);
  return 0;
}
