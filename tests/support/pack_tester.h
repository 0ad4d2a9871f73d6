// Models with weights to pack, and sessions of them as another process would make them: for tests
// of pack files, caches and reloads.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "core/session/pack_model.h"
#include "tests/support/model_tester.h"
#include "tests/support/op_tester.h"
#include "tests/support/temp_folder.h"

namespace folio::pack_test {

using testing::TempFolder;

inline constexpr int64_t kSize = 160;  // 100 KiB a matrix: above what is computed at once

inline std::vector<float> numbers(float seed) {
  std::vector<float> out(kSize * kSize);
  for (size_t i = 0; i < out.size(); ++i) out[i] = seed + static_cast<float>(i % 97) / 64;
  return out;
}

// y = x a (-b) + c c^T-like constant: a weight of the file, a computed one, a computed summand.
inline std::string model_of(float a, float b, float c) {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, kSize}));
  graph.initializer(f32_tensor("a", {kSize, kSize}, numbers(a)));
  graph.initializer(f32_tensor("b", {kSize, kSize}, numbers(b)));
  graph.initializer(f32_tensor("c", {kSize, kSize}, numbers(c)));
  graph.node("Neg", {"b"}, {"minus_b"});
  graph.node("MatMul", {"x", "a"}, {"p"});
  graph.node("MatMul", {"p", "minus_b"}, {"q"});
  graph.node("Exp", {"c"}, {"d"});
  graph.node("ReduceSum", {"q"}, {"s"});
  graph.node("Add", {"d", "s"}, {"y"});
  graph.output("y", f32_type({kSize, kSize}));
  return writer.serialize();
}

inline std::string model_bytes(float seed = 1) { return model_of(seed, seed + 1, seed + 2); }

// Old enough for its digests to be remembered.
inline std::string write_model(const TempFolder& folder, const std::string& name, float seed = 1) {
  const std::string path = folder.write(name, model_bytes(seed));
  usleep(150'000);
  return path;
}

// A session as another process would make it: nothing is found in this one.
inline SessionOptions fresh() {
  SessionOptions options;
  options.cache = std::make_shared<PackedCache>();
  options.threads = 1;
  return options;
}

inline Ref<Session> open(const std::string& path, const SessionOptions& options = fresh()) {
  return session_of(path, options);
}

inline std::vector<float> run(const Ref<Session>& session) {
  std::vector<float> x(2 * kSize);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<Value> outputs;
  const auto status = session->run({}, {{"x", Value(make_tensor<float>({2, kSize}, x))}},
                                   {{"y", Tensor()}}, &outputs);
  EXPECT_TRUE(status.is_ok()) << text_of(status);
  return status.is_ok() ? floats_of(outputs[0]) : std::vector<float>();
}

inline int blobs_in(const Ref<Session>& session, BlobPlace place) {
  int count = 0;
  for (const auto& blob : session->program().packed_now()) count += blob->place() == place;
  return count;
}

inline void pack(const std::string& path) {
  auto file = ModelFile::open(path, {});
  ASSERT_TRUE(file.is_ok());
  const auto packed = pack_model(file.value(), fresh(), {});
  ASSERT_TRUE(packed.is_ok()) << text_of(packed.status());
  EXPECT_EQ(packed.value().written_blobs, 3U) << "a, -b and exp(c)";
}

}  // namespace folio::pack_test
