#include "tests/support/op_tester.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/kernels/select.h"
#include "core/ops/op_dispatch.h"
#include "core/prepack/packed_blob.h"

namespace folio {

struct OpTester::Case {
  const char* name = "";
  Graph graph;
  Node node;
  DimTable dims;
  std::vector<std::pair<int32_t, int64_t>> symbols;  // what each base symbol stands for
  std::vector<Value> inputs;

  Dim symbol_for(int64_t value) {
    const Dim dim = dims.anonymous();
    symbols.emplace_back(dim.symbol, value);
    return dim;
  }
};

class OpTester::Host final : public OpHost {
 public:
  explicit Host(const std::vector<Subgraph>& subgraphs) : subgraphs_(subgraphs) {}

  Result<Tensor> allocate_output(int, DType dtype, const Shape& shape) override {
    FOLIO_TRY(Tensor tensor, allocate_tensor(dtype, shape));
    // Garbage shows what an operator forgets to write.
    if (!tensor.is_string() && tensor.bytes() > 0) {
      std::memset(tensor.raw_mut(), 0xab, tensor.bytes());
    }
    return tensor;
  }
  Status run_subgraph(int k, Span<const Value> inputs, std::vector<Value>* outputs) override {
    return subgraphs_.at(static_cast<size_t>(k)).run(inputs, outputs);
  }
  Status check_cancelled() override { return Status::ok(); }

 private:
  const std::vector<Subgraph>& subgraphs_;
};

namespace {

TypeInfo type_of(const Value& value);

TypeInfo type_of_tensor(const Tensor& tensor) {
  Dims dims;
  for (const int64_t dim : tensor.shape().dims()) dims.push_back(Dim::of(dim));
  return TypeInfo::tensor(tensor.dtype(), std::move(dims));
}

TypeInfo type_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return type_of_tensor(value.tensor());
    case Value::Kind::kSequence:
      // Elements of a sequence may differ in shape: only the element type is sure.
      return TypeInfo::sequence(TypeInfo::tensor(value.sequence().dtype));
    case Value::Kind::kMap:
      return TypeInfo::map(value.map().keys.dtype(), TypeInfo::tensor(value.map().values.dtype()));
    case Value::Kind::kAbsent:
      break;
  }
  return {};
}

// A copy that nothing may outlive, at an odd address when asked.
Tensor borrowed_copy(const Tensor& source, bool unaligned) {
  if (source.is_string()) return source;
  const size_t offset = unaligned ? 1 : 0;
  Ref<Buffer> keeper = allocate_buffer(source.bytes() + offset).take();
  uint8_t* data = keeper->data() + offset;
  if (source.bytes() > 0) std::memcpy(data, source.raw(), source.bytes());
  Ref<Buffer> view = view_buffer(Buffer::Kind::kArena, data, source.bytes(), keeper);
  return Tensor(source.dtype(), source.shape(), data, std::move(view));
}

bool is_small_int(const Tensor& tensor) {
  return tensor.rank() <= 1 && tensor.count() <= 64 &&
         (tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32);
}

int64_t int_at(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kBool) return tensor.raw()[i] != 0;
  return tensor.dtype() == DType::kInt64 ? tensor.data<int64_t>()[i] : tensor.data<int32_t>()[i];
}

// Any type that has numbers, as doubles; false for the rest.
bool to_doubles(const Tensor& tensor, std::vector<double>* out) {
  using Types =
      TypeList<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t>;
  return dispatch(Types{}, tensor.dtype(), [&](auto tag) {
    const auto* data = tensor.data<typename decltype(tag)::type>();
    for (int64_t i = 0; i < tensor.count(); ++i) out->push_back(static_cast<double>(data[i]));
  });
}

std::string element_text(const Tensor& tensor, int64_t i) {
  if (tensor.is_string()) return "'" + tensor.data<std::string>()[i] + "'";
  switch (tensor.dtype()) {
    case DType::kInt64:
      return std::to_string(tensor.data<int64_t>()[i]);
    case DType::kUint64:
      return std::to_string(tensor.data<uint64_t>()[i]);
    case DType::kUint32:
      return std::to_string(tensor.data<uint32_t>()[i]);
    case DType::kBool:
      return std::to_string(tensor.data<uint8_t>()[i]);
    default:
      break;
  }
  std::vector<double> numbers;
  if (to_doubles(tensor, &numbers)) {
    return ::testing::PrintToString(numbers[static_cast<size_t>(i)]);
  }
  return "other bits";
}

bool element_equal(const Tensor& expected, const Tensor& actual, int64_t i) {
  if (expected.is_string()) {
    return expected.data<std::string>()[i] == actual.data<std::string>()[i];
  }
  const auto bits = static_cast<size_t>(dtype_bits(expected.dtype()));
  if (bits < 8) {
    const auto at = static_cast<size_t>(i) * bits;
    const int mask = (1 << bits) - 1;
    return ((expected.raw()[at / 8] ^ actual.raw()[at / 8]) >> at % 8 & mask) == 0;
  }
  const size_t at = static_cast<size_t>(i) * bits / 8;
  return std::memcmp(expected.raw() + at, actual.raw() + at, bits / 8) == 0;
}

void compare_tensors(const Tensor& expected, const Tensor& actual, double tolerance,
                     const std::string& where) {
  ASSERT_EQ(dtype_name(expected.dtype()), dtype_name(actual.dtype())) << where;
  ASSERT_EQ(expected.shape().to_string(), actual.shape().to_string()) << where;
  std::vector<double> expected_numbers;
  std::vector<double> actual_numbers;
  const bool numbers = dtype_is_float(expected.dtype()) || tolerance > 0;
  const bool as_numbers =
      numbers && to_doubles(expected, &expected_numbers) && to_doubles(actual, &actual_numbers);
  for (int64_t i = 0; i < expected.count(); ++i) {
    bool equal = false;
    if (as_numbers) {
      const double e = expected_numbers[static_cast<size_t>(i)];
      const double a = actual_numbers[static_cast<size_t>(i)];
      equal = e == a || (std::isnan(e) && std::isnan(a)) ||
              std::abs(a - e) <= tolerance * (1 + std::abs(e));
    } else {
      equal = element_equal(expected, actual, i);
    }
    ASSERT_TRUE(equal) << where << ": element " << i << " is " << element_text(actual, i)
                       << ", expected " << element_text(expected, i);
  }
}

void compare_values(const Value& expected, const Value& actual, double tolerance,
                    const std::string& where) {
  ASSERT_EQ(static_cast<int>(expected.kind()), static_cast<int>(actual.kind())) << where;
  if (expected.is_tensor()) {
    compare_tensors(expected.tensor(), actual.tensor(), tolerance, where);
  } else if (expected.kind() == Value::Kind::kSequence) {
    const SequenceData& e = expected.sequence();
    const SequenceData& a = actual.sequence();
    EXPECT_EQ(dtype_name(e.dtype), dtype_name(a.dtype)) << where;
    ASSERT_EQ(e.elements.size(), a.elements.size()) << where;
    for (size_t i = 0; i < e.elements.size(); ++i) {
      const std::string place = where + ", sequence element " + std::to_string(i);
      compare_values(e.elements[i], a.elements[i], tolerance, place);
      if (a.elements[i].is_tensor()) {
        EXPECT_TRUE(a.elements[i].tensor().escapes()) << place << " dies with the run";
      }
    }
  } else if (expected.kind() == Value::Kind::kMap) {
    compare_tensors(expected.map().keys, actual.map().keys, tolerance, where + ", map keys");
    compare_tensors(expected.map().values, actual.map().values, tolerance, where + ", map values");
    EXPECT_TRUE(actual.map().keys.escapes() && actual.map().values.escapes()) << where;
  }
}

int64_t known(const std::vector<int64_t>& symbols, Dim dim) {
  if (dim.is_value()) return dim.value;
  return dim.is_symbol() ? symbols[static_cast<size_t>(dim.symbol)] : -1;
}

void check_type(const TypeInfo& type, const Value& actual, const std::vector<int64_t>& symbols,
                const std::string& where) {
  const std::string inferred = where + ": inferred " + type_to_string(type);
  switch (type.kind) {
    case TypeInfo::Kind::kTensor: {
      ASSERT_TRUE(actual.is_tensor()) << inferred;
      const Tensor& tensor = actual.tensor();
      if (type.dtype != DType::kUndefined) {
        EXPECT_EQ(dtype_name(type.dtype), dtype_name(tensor.dtype())) << inferred;
      }
      if (!type.dims) return;
      ASSERT_EQ(type.rank(), tensor.rank()) << inferred << " of " << tensor.shape().to_string();
      for (int i = 0; i < type.rank(); ++i) {
        const int64_t dim = known(symbols, (*type.dims)[static_cast<size_t>(i)]);
        if (dim >= 0) {
          EXPECT_EQ(dim, tensor.dim(i)) << inferred << ", dim " << i;
        }
      }
      return;
    }
    case TypeInfo::Kind::kSequence:
      ASSERT_TRUE(actual.kind() == Value::Kind::kSequence) << inferred;
      for (const Value& element : actual.sequence().elements) {
        check_type(*type.element, element, symbols, where + ", element");
      }
      return;
    case TypeInfo::Kind::kMap:
      ASSERT_TRUE(actual.kind() == Value::Kind::kMap) << inferred;
      return;
    case TypeInfo::Kind::kOptional:
      if (!actual.is_none()) check_type(*type.element, actual, symbols, where + ", optional");
      return;
    default:
      return;
  }
}

// Gives the stand-in of a subgraph the inputs and outputs that inference found.
void describe_subgraph(const std::vector<TypeInfo>& inputs, const std::vector<TypeInfo>& outputs,
                       Graph* graph) {
  graph->values.clear();
  graph->inputs.clear();
  graph->outputs.clear();
  const auto add = [graph](const TypeInfo& type, std::vector<ValueId>* ids) {
    ids->push_back(static_cast<ValueId>(graph->values.size()));
    graph->values.emplace_back();
    graph->values.back().type = type;
  };
  for (const TypeInfo& type : inputs) add(type, &graph->inputs);
  for (const TypeInfo& type : outputs) add(type, &graph->outputs);
}

AttributeDef attribute_of(std::string name, AttributeDef::Type type) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = type;
  return attribute;
}

}  // namespace

Tensor make_raw_tensor(DType dtype, const Shape& shape, const std::vector<uint8_t>& bytes) {
  Tensor tensor = allocate_tensor(dtype, shape).take();
  if (!bytes.empty()) std::memcpy(tensor.raw_mut(), bytes.data(), tensor.bytes());
  return tensor;
}

Tensor make_float_tensor(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor = allocate_tensor(dtype, shape).take();
  for (int64_t i = 0; i < tensor.count() && static_cast<size_t>(i) < values.size(); ++i) {
    const double value = values[static_cast<size_t>(i)];
    const auto narrow = static_cast<float>(value);
    if (dtype == DType::kFloat) tensor.data_mut<float>()[i] = narrow;
    if (dtype == DType::kDouble) tensor.data_mut<double>()[i] = value;
    if (dtype == DType::kFloat16) tensor.data_mut<Float16>()[i] = Float16(narrow);
    if (dtype == DType::kBfloat16) tensor.data_mut<BFloat16>()[i] = BFloat16(narrow);
  }
  return tensor;
}

Value make_sequence(DType dtype, std::vector<Value> elements) {
  auto sequence = make_ref<SequenceData>();
  sequence->dtype = dtype;
  sequence->elements = std::move(elements);
  return Value(Ref<const SequenceData>(sequence));
}

Value make_map(Tensor keys, Tensor values) {
  auto map = make_ref<MapData>();
  map->keys = std::move(keys);
  map->values = std::move(values);
  return Value(Ref<const MapData>(map));
}

OpTester::OpTester(std::string type, int version, std::string domain)
    : type_(std::move(type)), version_(version), domain_(std::move(domain)) {}

OpTester& OpTester::attr(AttributeDef attribute) {
  attributes_.set(std::move(attribute));
  return *this;
}
OpTester& OpTester::attr(std::string name, int64_t value) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kInt);
  attribute.ints = {value};
  return attr(std::move(attribute));
}
OpTester& OpTester::attr(std::string name, float value) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kFloat);
  attribute.floats = {value};
  return attr(std::move(attribute));
}
OpTester& OpTester::attr(std::string name, const char* value) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kString);
  attribute.strings.emplace_back(value);
  return attr(std::move(attribute));
}
OpTester& OpTester::attr(std::string name, Tensor value) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kTensor);
  attribute.tensors.push_back(std::move(value));
  return attr(std::move(attribute));
}
OpTester& OpTester::attr_ints(std::string name, std::vector<int64_t> values) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kInts);
  attribute.ints = std::move(values);
  return attr(std::move(attribute));
}
OpTester& OpTester::attr_floats(std::string name, std::vector<float> values) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kFloats);
  attribute.floats = std::move(values);
  return attr(std::move(attribute));
}
OpTester& OpTester::attr_strings(std::string name, std::vector<std::string> values) {
  AttributeDef attribute = attribute_of(std::move(name), AttributeDef::Type::kStrings);
  attribute.strings = std::move(values);
  return attr(std::move(attribute));
}

OpTester& OpTester::subgraph(std::string attribute, SubgraphInfer infer, SubgraphRun run) {
  subgraphs_.push_back({std::move(attribute), std::move(infer), std::move(run)});
  return *this;
}

OpTester& OpTester::input_value(Value value) {
  TypeInfo type = type_of(value);
  return input_value(std::move(value), std::move(type));
}
OpTester& OpTester::input_value(Value value, TypeInfo type) {
  inputs_.push_back({std::move(value), std::move(type), false, false});
  return *this;
}
OpTester& OpTester::input_absent() {
  inputs_.push_back({Value(), TypeInfo(), true, false});
  return *this;
}

OpTester& OpTester::outputs(int count) {
  output_count_ = count;
  return *this;
}
OpTester& OpTester::expect_value(int i, Value value, double tolerance) {
  expected_.push_back({i, std::move(value), tolerance});
  return *this;
}
OpTester& OpTester::expect_inferred(int i, std::string type) {
  expected_types_.emplace_back(i, std::move(type));
  return *this;
}

Tensor OpTester::checked(Tensor tensor, size_t given) {
  EXPECT_EQ(static_cast<size_t>(tensor.count()), given) << "the test's own literal is wrong";
  return tensor;
}

const OpDef* OpTester::find_def() const {
  const OpDef* def = op_registry().find(domain_, type_, version_);
  EXPECT_NE(def, nullptr) << "no operator " << domain_ << ":" << type_ << " " << version_;
  return def;
}

void OpTester::add_input(Setting setting, size_t i, const OpDef& def, Case* out) const {
  const Input& input = inputs_[i];
  if (input.absent) {
    out->node.inputs.push_back(kNone);
    out->inputs.emplace_back();
    return;
  }
  const bool constant =
      input.value.is_tensor() && (input.always_constant || setting == Setting::kConstant);
  GraphValue value;
  value.name = cat("input", i);
  value.type = input.type;
  Value given = input.value;
  if (given.is_tensor()) {
    const bool unaligned = constant && i < 32 && (def.unaligned_inputs >> i & 1) != 0;
    given = borrowed_copy(given.tensor(), unaligned);
    if (!constant && setting == Setting::kUnranked) value.type.dims.reset();
    if (!constant && setting == Setting::kSymbolic) {
      for (Dim& dim : *value.type.dims) dim = out->symbol_for(dim.value);
      if (is_small_int(given.tensor())) {
        std::vector<Dim> data;
        for (int64_t e = 0; e < given.tensor().count(); ++e) {
          const int64_t number = int_at(given.tensor(), e);
          // Zero stays a number: Reshape trusts that a symbol among its dims is not zero.
          data.push_back(number > 0    ? out->symbol_for(number)
                         : number == 0 ? Dim::of(0)
                                       : Dim::unknown());
        }
        value.data = std::move(data);
      }
    }
  }
  if (constant) {
    value.initializer = make_ref<Initializer>();
    value.initializer->name = value.name;
    value.initializer->dtype = given.tensor().dtype();
    value.initializer->shape = given.tensor().shape();
    value.initializer->tensor = given.tensor();
  }
  out->node.inputs.push_back(static_cast<ValueId>(out->graph.values.size()));
  out->graph.values.push_back(std::move(value));
  out->inputs.push_back(std::move(given));
}

void OpTester::build(Setting setting, const OpDef& def, Case* out) const {
  static constexpr const char* kNames[] = {"static", "symbolic", "unranked", "constant"};
  out->name = kNames[static_cast<int>(setting)];
  out->node.name = "tested";
  out->node.domain = domain_;
  out->node.op_type = type_;
  out->node.version = version_;
  out->node.attributes = attributes_;
  for (const Subgraph& subgraph : subgraphs_) {
    out->node.subgraph_names.push_back(subgraph.attribute);
    out->node.subgraphs.push_back(std::make_unique<Graph>());
  }
  for (size_t i = 0; i < inputs_.size(); ++i) add_input(setting, i, def, out);
  int count = output_count_;
  for (const Expected& expected : expected_) {
    if (output_count_ < 0) count = std::max(count, expected.output + 1);
  }
  for (int i = 0; i < std::max(count, 1); ++i) {
    out->node.outputs.push_back(static_cast<ValueId>(out->graph.values.size()));
    GraphValue value;
    value.name = cat("output", i);
    out->graph.values.push_back(std::move(value));
  }
}

namespace {

// A chunk after the other, as many as there are for these threads.
class InTurn final : public Parallel {
 public:
  explicit InTurn(int threads) : threads_(threads) {}
  int thread_count() const override { return threads_; }
  void run(int64_t count, int64_t grain, Task task) override { one_.run(count, grain, task); }

 private:
  InlineParallel one_;
  int threads_;
};

// What `request` makes, each byte of which it must write: packs are files, the same for all.
Result<Ref<Buffer>> fill_whole(const PackRequest& request, const Tensor& source) {
  Ref<Buffer> made[2];
  for (const int before : {0xA5, 0}) {
    FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(request.bytes));
    std::memset(buffer->data(), before, request.bytes);
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, source, buffer->data()));
    made[before == 0] = std::move(buffer);
  }
  EXPECT_EQ(std::memcmp(made[0]->data(), made[1]->data(), request.bytes), 0)
      << "a pack in layout " << layout_name(request.layout) << " keeps what was there before";
  return std::move(made[0]);
}

}  // namespace

Status OpTester::run_kernel(const OpDef& def, Case* at) {
  const FolioKernels& kernels = kernels_for(0);
  OpBuild build(at->graph, at->node, kernels, /*prepack=*/true);
  FOLIO_TRY(const std::unique_ptr<OpKernel> kernel, def.make(build));
  std::vector<Ref<const PackedBlob>> keepers;
  std::vector<const PackedBlob*> packed(at->inputs.size(), nullptr);
  for (const auto& [input, request] : build.pack_requests()) {
    const Tensor& source = at->inputs[static_cast<size_t>(input)].tensor();
    FOLIO_TRY(const Ref<Buffer> buffer, fill_whole(request, source));
    keepers.push_back(make_ref<PackedBlob>(buffer, request.bytes));
    packed[static_cast<size_t>(input)] = keepers.back().get();
  }

  std::vector<const Value*> pointers;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    pointers.push_back(inputs_[i].absent ? nullptr : &at->inputs[i]);
  }
  const std::vector<uint8_t> wanted(at->node.outputs.size(), 1);
  Host host(subgraphs_);
  InTurn parallel(threads_);
  OpRun run(host, kernels, parallel);
  run.begin(pointers, wanted, packed);
  FOLIO_RETURN_IF_ERROR(kernel->run(run));
  outputs_ = std::move(run.outputs());
  return Status::ok();
}

Status OpTester::infer_and_run(Setting setting, const OpDef& def, Case* out) {
  build(setting, def, out);
  const auto inputs = static_cast<int>(inputs_.size());
  const auto outputs = static_cast<int>(out->node.outputs.size());
  if (inputs < def.min_inputs || inputs > def.max_inputs) {
    return invalid_graph("has ", inputs, " inputs");
  }
  if (outputs < def.min_outputs || outputs > def.max_outputs) {
    return invalid_graph("has ", outputs, " outputs");
  }
  struct State {
    OpTester* tester;
    Case* at;
  } state{this, out};
  const OpInfer::SubgraphInfer infer_subgraph =
      [](void* opaque, Graph& graph,
         const std::vector<TypeInfo>& types) -> Result<std::vector<TypeInfo>> {
    const State& self = *static_cast<State*>(opaque);
    for (size_t k = 0; k < self.tester->subgraphs_.size(); ++k) {
      if (self.at->node.subgraphs[k].get() != &graph) continue;
      FOLIO_TRY(std::vector<TypeInfo> inferred, self.tester->subgraphs_[k].infer(types));
      describe_subgraph(types, inferred, &graph);
      return inferred;
    }
    return invalid_graph("no such subgraph");
  };
  if (def.infer) {
    OpInfer infer(out->graph, out->node, out->dims, infer_subgraph, &state);
    FOLIO_RETURN_IF_ERROR(def.infer(infer));
  }
  return run_kernel(def, out);
}

// The types of tensors whose contents inference may know.
bool holds_contents(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool;
}

void OpTester::check_inferred(const Case& at, const std::string& where) const {
  std::vector<int64_t> symbols(at.dims.size(), -1);
  for (const auto& [symbol, value] : at.symbols) symbols[static_cast<size_t>(symbol)] = value;
  at.dims.evaluate(&symbols);
  for (size_t i = 0; i < at.node.outputs.size(); ++i) {
    const GraphValue& value = at.graph.value(at.node.outputs[i]);
    const std::string place = where + ", output " + std::to_string(i);
    check_type(value.type, outputs_[i], symbols, place);
    if (!value.data) continue;
    ASSERT_TRUE(outputs_[i].is_tensor()) << place;
    const Tensor& tensor = outputs_[i].tensor();
    ASSERT_TRUE(tensor.rank() <= 1 && holds_contents(tensor.dtype()))
        << place << " has inferred contents but is " << dtype_name(tensor.dtype());
    ASSERT_EQ(value.data->size(), static_cast<size_t>(tensor.count())) << place;
    for (size_t e = 0; e < value.data->size(); ++e) {
      const int64_t number = known(symbols, (*value.data)[e]);
      // A sum of symbols that leaves int32 wraps; no dims do.
      const bool wraps = tensor.dtype() == DType::kInt32 && number > INT32_MAX;
      if (number < 0 || wraps) continue;
      EXPECT_EQ(number, int_at(tensor, static_cast<int64_t>(e))) << place << ", known contents";
    }
  }
}

void OpTester::run() {
  const OpDef* def = find_def();
  if (!def) return;
  for (const Setting setting :
       {Setting::kStatic, Setting::kSymbolic, Setting::kUnranked, Setting::kConstant}) {
    Case at;
    const Status status = infer_and_run(setting, *def, &at);
    const std::string where = cat(type_, " ", version_, " (", at.name, ")");
    ASSERT_TRUE(status.is_ok()) << where << ": " << status.message();
    for (const Expected& expected : expected_) {
      const std::string place = where + ", output " + std::to_string(expected.output);
      compare_values(expected.value, output(expected.output), expected.tolerance, place);
    }
    check_inferred(at, where);
    if (setting != Setting::kStatic) continue;
    for (const auto& [i, type] : expected_types_) {
      const ValueId id = at.node.outputs[static_cast<size_t>(i)];
      EXPECT_EQ(type, type_to_string(at.graph.value(id).type)) << where << ", output " << i;
    }
  }
}

void OpTester::fails(const std::string& text) {
  const OpDef* def = find_def();
  if (!def) return;
  for (const Setting setting :
       {Setting::kStatic, Setting::kSymbolic, Setting::kUnranked, Setting::kConstant}) {
    Case at;
    const Status status = infer_and_run(setting, *def, &at);
    const std::string where = cat(type_, " ", version_, " (", at.name, ")");
    ASSERT_FALSE(status.is_ok()) << where << " did not fail";
    if (setting != Setting::kStatic) continue;
    EXPECT_NE(status.message().find(text), std::string_view::npos)
        << where << " failed with: " << status.message();
  }
}

int OpTester::survives() {
  const OpDef* def = find_def();
  int ran = 0;
  for (const Setting setting :
       {Setting::kStatic, Setting::kSymbolic, Setting::kUnranked, Setting::kConstant}) {
    Case at;
    const Status status = infer_and_run(setting, *def, &at);
    EXPECT_EQ(status.is_ok(), status.message().empty()) << at.name;
    if (!status.is_ok()) {
      refusal_ = status.message();
      continue;
    }
    check_inferred(at, cat(type_, " ", version_, " (", at.name, ")"));
    ++ran;
  }
  return ran;
}

}  // namespace folio
