#include "tests/properties/one_node.h"

#include "tests/support/model_tester.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;
using model_writer::TensorWriter;
using model_writer::Type;

ElementType element_of(DType dtype) { return static_cast<ElementType>(dtype); }

TensorWriter writer_of(std::string_view name, const Tensor& tensor) {
  const auto dims = tensor.shape().dims();
  TensorWriter out(name, element_of(tensor.dtype()), {dims.begin(), dims.end()});
  if (tensor.is_string()) {
    const auto* texts = tensor.data<std::string>();
    return out.strings({texts, texts + tensor.count()});
  }
  return out.raw(std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()));
}

AttributeWriter writer_of(const AttributeDef& a) {
  switch (a.type) {
    case AttributeDef::Type::kInt:
      return AttributeWriter::of_int(a.name, a.ints[0]);
    case AttributeDef::Type::kInts:
      return AttributeWriter::of_ints(a.name, a.ints);
    case AttributeDef::Type::kFloat:
      return AttributeWriter::of_float(a.name, a.floats[0]);
    case AttributeDef::Type::kFloats:
      return AttributeWriter::of_floats(a.name, a.floats);
    case AttributeDef::Type::kString:
      return AttributeWriter::of_string(a.name, a.strings[0]);
    case AttributeDef::Type::kStrings:
      return AttributeWriter::of_strings(a.name, a.strings);
    default:
      return AttributeWriter::of_tensor(a.name, writer_of("", a.tensors[0]));
  }
}

Type type_of(const Value& value) {
  if (value.kind() == Value::Kind::kMap) {
    return Type::map(element_of(value.map().keys.dtype()),
                     Type::tensor_of_unknown_rank(element_of(value.map().values.dtype())));
  }
  if (value.kind() == Value::Kind::kSequence) {
    return Type::sequence(Type::tensor_of_unknown_rank(element_of(value.sequence().dtype)));
  }
  const auto dims = value.tensor().shape().dims();
  return Type::tensor(element_of(value.tensor().dtype()), {dims.begin(), dims.end()});
}

}  // namespace

OneNode model_of(const Case& drawn) {
  OneNode out;
  model_writer::ModelWriter writer(10);
  writer.opset("", drawn.domain.empty() ? drawn.version : 17);
  if (!drawn.domain.empty()) writer.opset(drawn.domain, drawn.version);
  std::vector<std::string> names;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    const Case::Input& input = drawn.inputs[i];
    names.push_back(input.value.is_none() ? "" : cat("x", i));
    if (input.value.is_none()) continue;
    if (input.constant && input.value.is_tensor()) {
      writer.graph().initializer(writer_of(names[i], input.value.tensor()));
    } else {
      writer.graph().input(names[i], type_of(input.value));
      out.inputs.push_back({names[i], input.value});
    }
  }
  for (int i = 0; i < drawn.outputs; ++i) out.outputs.push_back(cat("y", i));
  auto& node = writer.graph().node(drawn.type, names, out.outputs);
  node.in_domain(drawn.domain).named("node");
  for (const AttributeDef& attribute : drawn.attributes) node.attr(writer_of(attribute));
  for (const std::string& name : out.outputs) writer.graph().output_without_type(name);
  out.bytes = writer.serialize();
  return out;
}

Status run_one(const OneNode& model, std::vector<Value>* outputs) {
  FOLIO_TRY(Ref<ModelFile> file, ModelFile::open(source_of(model.bytes), {}));
  SessionOptions options;
  options.threads = 1;
  FOLIO_TRY(const Ref<Session> session, Session::create(std::move(file), options));
  std::vector<WantedOutput> wanted;
  for (const std::string& name : model.outputs) wanted.push_back({name, {}});
  return session->run(RunOptions(), model.inputs, wanted, outputs);
}

}  // namespace folio::properties
