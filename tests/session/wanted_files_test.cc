// What is read ahead when a program is ready, and when nothing is.
#include "core/session/wanted_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "core/os/mapped_file.h"
#include "tests/support/model_tester.h"
#include "tests/support/op_tester.h"
#include "tests/support/temp_folder.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

constexpr uint64_t kWidth = 512;

// Two layers with their weights in "weights.bin", in a folder that goes with the test.
class ModelOnDisk {
 public:
  explicit ModelOnDisk(uint64_t width) {
    model_writer::MlpOptions mlp;
    mlp.layers = 2;
    mlp.width = width;
    mlp.external = "weights.bin";
    const auto written = model_writer::write_model_files(model_writer::build_mlp(mlp), path());
    EXPECT_TRUE(written.ok()) << written.error;
  }
  std::string path() const { return folder_.path("mlp.onnx"); }
  std::string weights() const { return folder_.path("weights.bin"); }

 private:
  testing::TempFolder folder_;
};

// Weights used in place, so that runs read the file.
SessionOptions in_place() {
  SessionOptions options;
  options.prepack = false;
  return options;
}

Ref<Session> session_of(const std::string& path) { return folio::session_of(path, in_place()); }

uint64_t wanted_bytes(Session& session) {
  uint64_t sum = 0;
  for (const WantedFile& file : wanted_files(session.program(), session.model().watch())) {
    for (const FileRange& range : file.ranges) sum += range.count;
  }
  return sum;
}

TEST(WantedFiles, AreTheWeightsThatRunsReadFromFiles) {
  const ModelOnDisk model(kWidth);
  const Ref<Session> in_file = session_of(model.path());
  ASSERT_TRUE(in_file);
  const auto files = wanted_files(in_file->program(), in_file->model().watch());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_NE(files[0].file->name().find("weights.bin"), std::string::npos);
  constexpr uint64_t kWeights = 2 * kWidth * kWidth * sizeof(float);
  EXPECT_GE(wanted_bytes(*in_file), kWeights);
  EXPECT_LT(wanted_bytes(*in_file), kWeights + 100000);
  const Ref<Session> packed = folio::session_of(model.path(), {});
  ASSERT_TRUE(packed);
  EXPECT_TRUE(packed->wait_packed(std::chrono::milliseconds(-1)));
  EXPECT_LT(wanted_bytes(*packed), 100000U) << "packed weights are read from memory";
}

TEST(WantedFiles, ATableOfWhichRowsArePickedIsNotReadAhead) {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("ids", model_writer::Type::tensor(kI64, {2}));
  graph.initializer(f32_tensor("table", {1000, 64}, std::vector<float>(64000, 1.0F)));
  graph.node("Gather", {"table", "ids"}, {"y"});
  graph.output("y", f32_type({2, 64}));
  const testing::TempFolder folder;
  const Ref<Session> session = session_of(folder.write("gather.onnx", writer.serialize()));
  ASSERT_TRUE(session);
  EXPECT_EQ(wanted_bytes(*session), 0U);
}

// Out of the page cache; false where temporary files are in memory.
bool make_cold(const std::string& path) {
  struct statfs s = {};
  if (statfs(path.c_str(), &s) != 0) return false;
  if (file_system_of(static_cast<uint32_t>(s.f_type)) != FileSystem::kLocal) return false;
  const int fd = open(path.c_str(), O_RDWR);
  const bool done = fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(fd);
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const auto found = residency_evidence({file, {{0, file->bytes().size()}}});
  return done && found.cached && *found.cached < 0.1;
}

TEST(SessionResidency, OnlyTheSessionThatCompilesReadsAColdModelAhead) {
  const ModelOnDisk model(1024);
  if (!make_cold(model.weights())) GTEST_SKIP() << "no cold files here";
  const Ref<Session> first = session_of(model.path());
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->residency());
  const auto second = Session::create(first->model_ref(), in_place());
  ASSERT_TRUE(second.is_ok());
  EXPECT_FALSE(second.value()->residency());
}

TEST(SessionResidency, AWarmModelIsLeftAloneUntilTheFirstRun) {
  const ModelOnDisk model(2048);
  SessionOptions options = in_place();
  const Ref<Session> session = folio::session_of(model.path(), options);
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->residency());
  EXPECT_FALSE(session->populating());
  const std::vector<NamedValue> inputs = {
      {"x", Value(make_tensor<float>({1, 2048}, std::vector<float>(2048, 1.0F)))}};
  ASSERT_TRUE(run_all(*session, inputs).is_ok());
  Residency* const first = session->populating();
  ASSERT_TRUE(first);
  ASSERT_TRUE(run_all(*session, inputs).is_ok());
  EXPECT_EQ(session->populating(), first) << "once";
  options.residency = ResidencyMode::kPrefetch;
  const auto prefetching = Session::create(session->model_ref(), options);
  ASSERT_TRUE(prefetching.is_ok());
  EXPECT_TRUE(prefetching.value()->residency());
}

}  // namespace
}  // namespace folio
