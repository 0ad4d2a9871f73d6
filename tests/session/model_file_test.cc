// Model files on disk: one mapping, one packed blob, and next to no private memory.
#include "core/session/model_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

using namespace std::chrono_literals;

namespace fs = std::filesystem;

// A model of inline weights in a folder of its own, gone with the test.
class ModelOnDisk {
 public:
  explicit ModelOnDisk(uint64_t size_mb) {
    std::string pattern = (fs::temp_directory_path() / "folio_model_file_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    model_writer::MlpOptions mlp;
    mlp.layers = 2;
    mlp.size_mb = size_mb;
    const auto written = model_writer::write_model_files(model_writer::build_mlp(mlp), path());
    EXPECT_TRUE(written.ok()) << written.error;
  }
  ~ModelOnDisk() { fs::remove_all(folder_); }
  std::string path() const { return (folder_ / "mlp.onnx").string(); }

 private:
  fs::path folder_;
};

int mappings_of(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.size() >= path.size() &&
             line.compare(line.size() - path.size(), path.size(), path) == 0;
  }
  return count;
}

TEST(ModelFile, TwoSessionsHaveOneMappingAndOneBlobPerWeight) {
  const ModelOnDisk model(2);
  const uint64_t blobs_before = PackedCache::process().stats().live_blobs;
  const auto first_file = ModelFile::open(model.path(), {});
  const auto second_file = ModelFile::open(model.path(), {});
  ASSERT_TRUE(first_file.is_ok()) << text_of(first_file.status());
  ASSERT_TRUE(second_file.is_ok());
  const auto first = Session::create(first_file.value(), {});
  const auto second = Session::create(second_file.value(), {});
  ASSERT_TRUE(first.is_ok()) << text_of(first.status());
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(mappings_of(model.path()), 1);
  ASSERT_TRUE(first.value()->wait_packed(-1ms) && second.value()->wait_packed(-1ms));
  EXPECT_EQ(PackedCache::process().stats().live_blobs - blobs_before, 2U) << "one for each layer";
  ASSERT_EQ(first.value()->program().packed_now().size(), 2U);
  EXPECT_EQ(first.value()->program().packed_now()[0], second.value()->program().packed_now()[0]);
}

TEST(ModelFile, OpenedAgainItIsShared) {
  const ModelOnDisk model(1);
  const auto first = ModelFile::open(model.path(), {});
  ASSERT_TRUE(first.is_ok()) << text_of(first.status());
  EXPECT_EQ(ModelFile::open(model.path(), {}).value(), first.value());
  EXPECT_EQ(first.value()->reopen(nullptr).value(), first.value()) << "nothing changed";
  ModelOptions in_memory;
  in_memory.read_into_memory = true;
  EXPECT_FALSE(ModelFile::open(model.path(), in_memory).value() == first.value());
  ModelOptions other_blocks;
  other_blocks.nchwc_block_size = 8;
  EXPECT_FALSE(ModelFile::open(model.path(), other_blocks).value() == first.value());
  ModelOptions cancelled;
  cancelled.progress = [](float, const char*) { return false; };
  EXPECT_FALSE(ModelFile::open(model.path(), cancelled).is_ok());
  const auto sessions = {Session::create(ModelFile::open(model.path(), {}).value(), {}),
                         Session::create(ModelFile::open(model.path(), {}).value(), {})};
  EXPECT_EQ(&sessions.begin()->value()->program(), &(sessions.begin() + 1)->value()->program());
}

TEST(ModelFile, WhatStandsUnderAnyOfItsNamesNowIsOpened) {
  namespace fs = std::filesystem;
  const testing::TempFolder folder;
  const auto write = [&](float value) {
    const std::vector<float> weights(2048, value);
    std::string bytes(weights.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), weights.data(), bytes.size());
    return folder.write("new.bin", bytes);
  };
  fs::rename(write(1), folder.path("w.bin"));
  model_writer::ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({2048}));
  writer.graph().initializer(
      model_writer::TensorWriter("w", kF32, {2048}).external("w.bin", 0, 8192));
  writer.graph().node("Add", {"x", "w"}, {"y"});
  writer.graph().output("y", f32_type({2048}));
  const std::string path = folder.write("m.onnx", writer.serialize());
  const auto sum = [&](const Ref<ModelFile>& file) {
    auto session = Session::create(file, {});
    EXPECT_TRUE(session.is_ok()) << text_of(session.status());
    const Value x = make_tensor<float>({2048}, std::vector<float>(2048, 0.0F));
    const auto outputs = run_all(*session.value(), {{"x", x}});
    return floats_of(outputs.value()[0])[0];
  };
  const auto first = ModelFile::open(path, {});
  ASSERT_TRUE(first.is_ok()) << text_of(first.status());
  EXPECT_EQ(sum(first.value()), 1.0F);
  fs::rename(write(2), folder.path("w.bin"));  // the model itself is the same file
  const auto second = ModelFile::open(path, {});
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(sum(second.value()), 2.0F);
  EXPECT_EQ(sum(first.value()), 1.0F) << "goes on with the old one";
}

TEST(ModelFile, AProgressCallbackMayLoadTheSameModel) {
  const ModelOnDisk model(1);
  SessionOptions options;
  int depth = 0;
  options.progress = [&](float, const char*) {
    if (depth > 0) return true;
    ++depth;
    SessionOptions inner;
    EXPECT_TRUE(Session::create(ModelFile::open(model.path(), {}).value(), inner).is_ok());
    --depth;
    return true;
  };
  EXPECT_TRUE(Session::create(ModelFile::open(model.path(), {}).value(), options).is_ok());
}

TEST(ModelFile, TheMappingGoesWithItsLastUser) {
  const ModelOnDisk model(1);
  Ref<Session> session;
  {
    auto file = ModelFile::open(model.path(), {});
    ASSERT_TRUE(file.is_ok());
    session = Session::create(std::move(file).take(), {}).take();
  }
  EXPECT_EQ(mappings_of(model.path()), 1);
  session = nullptr;
  // The idle worker may be about to end the weight that it has begun.
  for (int i = 0; i < 10'000 && mappings_of(model.path()) > 0; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(mappings_of(model.path()), 0);
}

std::atomic<size_t> g_asked{0};

TEST(ModelFile, LoadingCopiesNoWeight) {
  const ModelOnDisk model(50);
  g_asked = 0;
  const uint64_t live_before = buffer_bytes_live();
  set_allocation_hook([](size_t bytes) {
    g_asked += bytes;
    return true;
  });
  SessionOptions options;
  options.prepack = false;
  const auto file = ModelFile::open(model.path(), {});
  const auto session =
      file.is_ok() ? Session::create(file.value(), options) : Result<Ref<Session>>(file.status());
  set_allocation_hook(nullptr);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  EXPECT_LT(g_asked, size_t{1} << 20) << "all that was ever asked for, let alone at once";
  EXPECT_LT(buffer_bytes_live() - live_before, uint64_t{1} << 20);
}

TEST(ModelFile, WhatIsSaidWithoutASession) {
  const ModelOnDisk model(1);
  const auto file = ModelFile::open(model.path(), {});
  ASSERT_TRUE(file.is_ok());
  const ModelInfo& info = file.value()->info();
  EXPECT_EQ(info.path, model.path());
  EXPECT_EQ(info.format, "onnx");
  ASSERT_EQ(info.inputs.size(), 1U);
  EXPECT_EQ(info.inputs[0].name, "x");
  ASSERT_EQ(info.outputs.size(), 1U);
  EXPECT_EQ(info.node_count, 5);
  EXPECT_EQ(info.initializer_count, 4);
  EXPECT_GT(info.initializer_bytes, 900000U);
  EXPECT_LE(info.initializer_bytes, 1000000U);
  EXPECT_EQ(info.file_bytes, fs::file_size(model.path()));
  EXPECT_TRUE(info.unsupported.empty());
}

TEST(ModelFile, ReadIntoMemoryNeedsNoMapping) {
  const ModelOnDisk model(1);
  ModelOptions options;
  options.read_into_memory = true;
  const auto file = ModelFile::open(model.path(), options);
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  EXPECT_EQ(mappings_of(model.path()), 0);
  EXPECT_TRUE(Session::create(file.value(), {}).is_ok());
}

TEST(ModelFile, AMissingFileIsNamed) {
  const auto file = ModelFile::open("/nowhere/model.onnx", {});
  EXPECT_TRUE(fails_with(file.status(), Code::kNoSuchFile, {"/nowhere/model.onnx"}));
}

TEST(ModelFile, GarbageIsNoModel) {
  const auto file = ModelFile::open(source_of("this is no model at all"), {});
  EXPECT_EQ(file.status().code(), Code::kNoModel) << text_of(file.status());
}

}  // namespace
}  // namespace folio
