#include <folio/folio.hpp>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

TEST(Cpp, RunsAndSharesNothingItShouldNot) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  folio::Session session(path, folio::SessionOptions().threads(1));
  std::vector<float> x = {1, 2, 3};
  const auto input = folio::Value::wrap(x, {1, 3});
  const auto outputs = session.run({{"x", input}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].to_vector<float>(), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(session.inputs()[0].symbolic_dims[0], "batch");
  session.prepare_shapes({{"x", {7, 3}}});
  EXPECT_TRUE(session.wait_packed());
  EXPECT_EQ(session.metrics().run_count, 1u);
  EXPECT_EQ(session.memory_report().entries()[0].name, path);
  EXPECT_EQ(session.memory_report().summary().mapped_bytes, add_model().size());
  session.close();
  EXPECT_THROW(session.run({{"x", input}}), folio::Error);
}

TEST(Cpp, ErrorsCarryCodeAndMessage) {
  try {
    folio::Session session("/nowhere/at/all.onnx");
    FAIL() << "opened";
  } catch (const folio::Error& error) {
    EXPECT_EQ(error.code(), FOLIO_NO_SUCHFILE);
    EXPECT_NE(std::string(error.what()).find("/nowhere/at/all.onnx"), std::string::npos);
  }
}

TEST(Cpp, ExceptionsOfAProgressCallbackComeOut) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  folio::SessionOptions options;
  options.progress([](const std::string&, double) -> bool { throw std::runtime_error("mine"); });
  try {
    folio::Session session(path, options);
    FAIL() << "opened";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
}

TEST(Cpp, ValuesStandForExternalInitializersWhoseFileIsNotThere) {
  const TempFolder folder;
  const std::string path = folder.write("external.onnx", external_model());
  std::vector<float> x = {10, 20, 30};
  const auto input = folio::Value::wrap(x, {1, 3});
  for (const float first : {1.0F, 5.0F}) {  // one session's values are not another's
    std::vector<float> w = {first, 2, 3};
    folio::SessionOptions options;
    options.initializer("w", folio::Value::wrap(w, {3}));
    folio::Session session(path, options);
    EXPECT_EQ(session.run({{"x", input}})[0].to_vector<float>(),
              (std::vector<float>{10 + first, 22, 33}));
    try {
      folio::Session without(path);
      FAIL() << "opened";
    } catch (const folio::Error& error) {
      EXPECT_EQ(error.code(), FOLIO_NO_SUCHFILE) << error.what();
    }
  }
  std::vector<float> w = {1, 2};
  folio::SessionOptions options;
  options.initializer("w", folio::Value::wrap(w, {2}));
  try {
    folio::Session session(path, options);
    FAIL() << "opened";
  } catch (const folio::Error& error) {
    EXPECT_EQ(error.code(), FOLIO_INVALID_ARGUMENT) << error.what();
    EXPECT_NE(std::string(error.what()).find("'w'"), std::string::npos) << error.what();
  }
}

TEST(Cpp, ASaveCanBeStoppedFromOutside) {
  const TempFolder folder;
  const auto model = folio::Model::open(folder.write("add.onnx", add_model()));
  const folio::Cancel cancel;
  folio::SaveOptions options;
  options.cancel = &cancel;
  EXPECT_EQ(model.save(folder.path("saved.onnx"), options).node_count, 2u);
  cancel.request();
  try {
    model.save(folder.path("never.onnx"), options);
    FAIL() << "saved";
  } catch (const folio::Error& error) {
    EXPECT_EQ(error.code(), FOLIO_CANCELLED);
  }
}

TEST(Cpp, AModelIsOpenedAgain) {
  const TempFolder folder;
  const folio::Model model = folio::Model::open(folder.write("add.onnx", add_model()));
  const folio::Model again = model.reload();
  EXPECT_NE(again.get(), model.get());
  EXPECT_EQ(again.inputs().at(0).name, "x");
}

TEST(Cpp, ARecordingCacheIsWrittenAndCollected) {
  const TempFolder folder;
  const std::string path = folder.write("matmul.onnx", matmul_model());
  const std::string pack = folder.path("m.fpack");
  auto cache = folio::PackCache::recording();
  {
    const folio::Session session(path, folio::SessionOptions().pack_cache(cache));
    EXPECT_EQ(cache.collect().blob_count, 0u);
    EXPECT_EQ(cache.write(pack).written_blob_count, 1u);
  }
  EXPECT_EQ(cache.collect().blob_count, 1u);
  const folio::Session session(
      path, folio::SessionOptions().pack_cache(cache).config("folio.pack_sidecar", pack));
  EXPECT_EQ(cache.stats().sidecar_blob_count, 1u);
  EXPECT_THROW(folio::PackCache(true).write(pack), folio::Error);
}

TEST(Cpp, BindingAndEnvironment) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  folio::EnvOptions env_options;
  env_options.thread_count = 1;
  env_options.log = [](folio::LogLevel, const std::string&) {};
  const folio::Env env(env_options);
  folio::Session session(env, path, folio::SessionOptions());
  folio::IoBinding binding(session);
  std::vector<float> x = {1, 2, 3};
  const auto input = folio::Value::wrap(x, {1, 3});
  std::vector<float> room(3);
  bool released = false;
  binding.bind_input("x", input);
  binding.bind_output_with_capacity("y", room.data(), 12, [&] { released = true; });
  session.run(binding);
  EXPECT_EQ(room, (std::vector<float>{11, 22, 33}));
  binding.clear_outputs();
  EXPECT_TRUE(released);
  EXPECT_EQ(env.metrics().run_count, 1u);
}

TEST(Cpp, AProfileIsEndedAndWritten) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  std::vector<float> x = {1, 2, 3};
  const auto input = folio::Value::wrap(x, {1, 3});
  folio::Session session(path, folio::SessionOptions().profile(folder.path("p")));
  session.run({{"x", input}});
  EXPECT_GT(session.profiling_start().time_since_epoch(), std::chrono::hours(24 * 365 * 50));
  const std::string file = session.end_profiling();
  EXPECT_EQ(file.rfind(folder.path("p_"), 0), 0U) << file;
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(session.end_profiling(), "") << "it was ended";
  const folio::Session without(path);
  EXPECT_EQ(without.profiling_start().time_since_epoch().count(), 0);
}

TEST(Cpp, SessionsFromBytesTakeExternalFilesInPlace) {
  const std::string model = external_model();
  const std::string bytes = external_bytes();
  std::vector<float> x = {1, 2, 3};
  const auto input = folio::Value::wrap(x, {1, 3});
  bool released = false;
  {
    folio::SessionOptions options;
    options.external_file("./weights.bin", bytes.data(), bytes.size(), [&] { released = true; });
    folio::Session session = folio::Session::from_array(model.data(), model.size(), options);
    options = folio::SessionOptions();
    EXPECT_FALSE(released) << "the session reads it";
    EXPECT_EQ(session.run({{"x", input}})[0].to_vector<float>(), (std::vector<float>{11, 22, 33}));
  }
  EXPECT_TRUE(released);
  EXPECT_THROW(folio::Session::from_array(model.data(), model.size()), folio::Error);
}

TEST(Cpp, ExceptionsOfAProgressCallbackComeOutOfAnOpenFromMemory) {
  const std::string model = add_model();
  folio::ModelOptions options;
  options.progress([](const std::string&, double) -> bool { throw std::out_of_range("mine"); });
  bool released = false;
  const auto release = [&] { released = true; };
  EXPECT_THROW(folio::Model::open_memory(model.data(), model.size(), options), std::out_of_range);
  EXPECT_THROW(folio::Model::open_memory(model.data(), model.size(), options, release),
               std::out_of_range);
  EXPECT_FALSE(released) << "a failed call takes nothing over";
}

TEST(Cpp, StringsAreWritten) {
  auto texts = folio::Value::strings({"a", "b"}, {2});
  texts.set_string(1, std::string("longer \0 than before", 20));
  texts.set_string(0, "");
  EXPECT_EQ(texts.string_at(0), "");
  EXPECT_EQ(texts.string_at(1), std::string("longer \0 than before", 20));
  EXPECT_THROW(texts.set_string(2, "x"), folio::Error);
}

TEST(Cpp, MetadataIsFoundByKey) {
  const std::string bytes = add_model();
  const auto model = folio::Model::open_memory(bytes.data(), bytes.size(), folio::ModelOptions());
  EXPECT_FALSE(model.find_metadata("no such key").has_value());
  for (const auto& [key, value] : model.metadata()) EXPECT_EQ(model.find_metadata(key), value);
  EXPECT_FALSE(model.metadata().empty());
}

}  // namespace
}  // namespace capi_test
