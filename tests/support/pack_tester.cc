#include "tests/support/pack_tester.h"

#include <unistd.h>

#include <fstream>
#include <numeric>

#include "tests/support/model_tester.h"
#include "tests/support/op_tester.h"

namespace folio::pack_tester {
namespace {

std::vector<float> numbers(float seed) {
  std::vector<float> out(kSize * kSize);
  for (size_t i = 0; i < out.size(); ++i) out[i] = seed + static_cast<float>(i % 97) / 64;
  return out;
}

}  // namespace

// y = x a (-b) + c c^T-like constant.
std::string model_bytes(float seed) {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, kSize}));
  graph.initializer(f32_tensor("a", {kSize, kSize}, numbers(seed)));
  graph.initializer(f32_tensor("b", {kSize, kSize}, numbers(seed + 1)));
  graph.initializer(f32_tensor("c", {kSize, kSize}, numbers(seed + 2)));
  graph.node("Neg", {"b"}, {"minus_b"});
  graph.node("MatMul", {"x", "a"}, {"p"});
  graph.node("MatMul", {"p", "minus_b"}, {"q"});
  graph.node("Exp", {"c"}, {"d"});
  graph.node("ReduceSum", {"q"}, {"s"});
  graph.node("Add", {"d", "s"}, {"y"});
  graph.output("y", f32_type({kSize, kSize}));
  return writer.serialize();
}

std::string write_model_at(const std::string& path, float seed) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << model_bytes(seed);
  usleep(150'000);
  return path;
}

SessionOptions fresh() {
  SessionOptions options;
  options.cache = std::make_shared<PackedCache>();
  options.threads = 1;
  return options;
}

SessionOptions with_store(const std::string& folder) {
  SessionOptions options = fresh();
  options.pack.stores = {folder};
  return options;
}

Ref<Session> open(const std::string& path, const SessionOptions& options) {
  auto file = ModelFile::open(path, {});
  EXPECT_TRUE(file.is_ok()) << text_of(file.status());
  if (!file.is_ok()) return nullptr;
  auto session = Session::create(std::move(file).take(), options);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return session.is_ok() ? std::move(session).take() : nullptr;
}

std::vector<float> run(const Ref<Session>& session) {
  if (!session) return {};
  std::vector<float> x(2 * kSize);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<Value> outputs;
  const auto status = session->run({}, {{"x", Value(make_tensor<float>({2, kSize}, x))}},
                                   {{"y", Tensor()}}, &outputs);
  EXPECT_TRUE(status.is_ok()) << text_of(status);
  return status.is_ok() ? floats_of(outputs[0]) : std::vector<float>();
}

int blobs_in(const Ref<Session>& session, BlobPlace place) {
  int count = 0;
  for (const auto& blob : session->program().blobs) count += blob->place() == place;
  return count;
}

}  // namespace folio::pack_tester
