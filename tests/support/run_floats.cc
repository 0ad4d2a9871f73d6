#include "tests/support/run_floats.h"

#include "tests/support/model_tester.h"

namespace folio {

std::vector<float> floats_of_many_bits(int64_t count, int step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i) * step % 2003 - 1001) / 3000;
  }
  return values;
}

std::vector<std::vector<float>> run_floats(Session& session,
                                           const std::function<std::vector<float>(int64_t)>& fill) {
  std::vector<NamedValue> inputs;
  for (const PortInfo& port : session.program().inputs) {
    const Shape shape = *port.type.static_shape();
    inputs.push_back({port.name, make_tensor<float>(shape, fill(shape.count()))});
  }
  const auto outputs = run_all(session, inputs);
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  std::vector<std::vector<float>> out;
  if (!outputs.is_ok()) return out;
  for (const Value& value : outputs.value()) out.push_back(floats_of(value));
  return out;
}

}  // namespace folio
