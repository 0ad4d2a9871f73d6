// The same as samples/c/run_model.c, in C++ and linked: opens a model, says what goes in and comes
// out, runs it once with zeros (dims that are not fixed become 1) and prints the outputs in short.
//
//   run_model_cpp MODEL
#include <algorithm>
#include <cstdio>
#include <folio/folio.hpp>
#include <string>
#include <vector>

namespace {

constexpr size_t kShownElements = 8;

std::string shape_text(const folio::ValueInfo& info) {
  if (info.kind != FOLIO_KIND_TENSOR) return "not a tensor";
  std::string text = folio::type_name(info.type) + "[";
  for (size_t i = 0; i < info.dims.size(); ++i) {
    const std::string& symbol = info.symbolic_dims[i];
    if (i != 0) text += ", ";
    text += info.dims[i] >= 0 ? std::to_string(info.dims[i]) : symbol.empty() ? "?" : symbol;
  }
  return text + "]";
}

folio::Value zeros_for(const folio::ValueInfo& info) {
  folio::Dims dims = info.dims;
  std::replace_if(
      dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 0; }, 1);
  return folio::Value::tensor(info.type, dims);
}

template <typename T>
void print_elements(const folio::Value& value) {
  const T* elements = value.as<T>();
  const size_t count = value.element_count();
  for (size_t i = 0; i < std::min(count, kShownElements); ++i) {
    std::printf(" %s", std::to_string(elements[i]).c_str());
  }
  if (count > kShownElements) std::printf(" ...");
}

void print_value(const std::string& name, const folio::Value& value) {
  if (value.kind() != FOLIO_KIND_TENSOR) {
    std::printf("  %s: %zu parts\n", name.c_str(), value.part_count());
    return;
  }
  std::printf("  %s: %s[", name.c_str(), folio::type_name(value.type()).c_str());
  const folio::Dims dims = value.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    std::printf("%s%s", i != 0 ? ", " : "", std::to_string(dims[i]).c_str());
  }
  std::printf("] =");
  switch (value.type()) {
    case FOLIO_FLOAT:
      print_elements<float>(value);
      break;
    case FOLIO_INT64:
      print_elements<std::int64_t>(value);
      break;
    case FOLIO_INT32:
      print_elements<std::int32_t>(value);
      break;
    default:
      std::printf(" %zu elements", value.element_count());
  }
  std::printf("\n");
}

void run_model(const std::string& path) {
  folio::Session session(path);
  const std::vector<folio::ValueInfo> input_infos = session.inputs();
  const std::vector<folio::ValueInfo> output_infos = session.outputs();

  std::vector<folio::Value> values;
  for (const folio::ValueInfo& info : input_infos) {
    std::printf("input %s: %s\n", info.name.c_str(), shape_text(info).c_str());
    values.push_back(zeros_for(info));
  }
  for (const folio::ValueInfo& info : output_infos) {
    std::printf("output %s: %s\n", info.name.c_str(), shape_text(info).c_str());
  }

  std::vector<folio::Input> inputs;
  for (size_t i = 0; i < values.size(); ++i) inputs.emplace_back(input_infos[i].name, values[i]);
  const std::vector<folio::Value> outputs = session.run(inputs);
  std::printf("run with zeros:\n");
  for (size_t i = 0; i < outputs.size(); ++i) print_value(output_infos[i].name, outputs[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_model_cpp MODEL\n");
    return 2;
  }
  try {
    std::printf("Folio %s\n", folio::version_string().c_str());
    run_model(argv[1]);
  } catch (const folio::Error& error) {
    std::fprintf(stderr, "%s: %s\n", folio::error_name(error.code()).c_str(), error.what());
    return 3;
  }
  return 0;
}
