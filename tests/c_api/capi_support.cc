#include "tests/c_api/capi_support.h"

#include "tests/support/api_models.h"

namespace capi_test {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using model_writer::Type;

ModelWriter new_model() {
  ModelWriter model(8);
  model.opset("", 17).producer("capi_test", "1").metadata("author", "Ada").metadata("empty", "");
  return model;
}

}  // namespace

std::string add_model() { return api_models::add(new_model()); }
std::string external_model() { return api_models::external(new_model()); }
std::string external_bytes() { return api_models::external_bytes(); }
std::string matmul_model() { return api_models::matmul(new_model()); }
std::string loop_model() { return api_models::loop(new_model()); }
std::string string_model() { return api_models::strings(new_model()); }

std::string constant_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {1}));
  graph.initializer(TensorWriter("c", ElementType::kFloat, {3}).floats({1, 2, 3}));
  graph.node("Identity", {"c"}, {"y"});
  graph.output("y", Type::tensor(ElementType::kFloat, {3}));
  return model.serialize();
}

}  // namespace capi_test
