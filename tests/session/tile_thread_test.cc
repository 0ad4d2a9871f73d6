// Sessions of hosts whose threads have small signal stacks: with the same kernels, so the same
// bits, and nothing that makes such a thread's signal frames grow.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "core/os/cpu_features.h"
#include "core/os/tile_threads.h"
#include "tests/support/model_tester.h"
#include "tests/support/run_floats.h"
#include "tests/support/signal_stack.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::small_signal_stack;
using testing::TempFolder;
using testing::with_signal_stack;

constexpr int64_t kSize = 192;

std::vector<float> numbers(int step) { return floats_of_many_bits(kSize * kSize, step); }

// Products of the run, and of a constant that is folded when the model is loaded.
model_writer::ModelWriter products() {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({kSize, kSize}));
  graph.initializer(f32_tensor("w", {kSize, kSize}, numbers(37)));
  graph.initializer(f32_tensor("v", {kSize, kSize}, numbers(41)));
  graph.node("MatMul", {"v", "w"}, {"constant"});
  graph.node("MatMul", {"x", "constant"}, {"y"});
  graph.output("y", f32_type({kSize, kSize}));
  return writer;
}

Result<std::vector<float>> load_and_run() {
  FOLIO_TRY(const Ref<Session> session, open_session(products()));
  const Tensor x = make_tensor<float>({kSize, kSize}, numbers(43));
  FOLIO_TRY(const std::vector<Value> outputs, run_all(*session, {{"x", x}}));
  return floats_of(outputs[0]);
}

TEST(TileThread, ResultsAreThoseOfAnyThread) {
  const auto expected = load_and_run();
  ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
  with_signal_stack(small_signal_stack(), [&] {
    const auto result = load_and_run();
    ASSERT_TRUE(result.is_ok()) << text_of(result.status());
    EXPECT_EQ(result.value(), expected.value());
  });
  EXPECT_EQ(tile_thread_count() > 0, (cpu_bits() & kCpuAmxTile) != 0);
}

// The C API says so, and a virtual machine's callback works in no other.
TEST(TileThread, ProgressIsToldInTheThreadThatLoads) {
  with_signal_stack(small_signal_stack(), [] {
    int told = 0;
    SessionOptions options;
    options.progress = [&, own = std::this_thread::get_id()](float, const char*) {
      EXPECT_EQ(std::this_thread::get_id(), own);
      ++told;
      return true;
    };
    const auto session = open_session(products(), options);
    ASSERT_TRUE(session.is_ok()) << text_of(session.status());
    EXPECT_GT(told, 2);
  });
}

TEST(TileThread, AProgressCallbackMayMakeASessionOfTheModelThatIsLoaded) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", products().serialize());
  with_signal_stack(small_signal_stack(), [&] {
    auto model = ModelFile::open(path, ModelOptions{});
    ASSERT_TRUE(model.is_ok()) << text_of(model.status());
    int made = 0;
    SessionOptions options;
    options.progress = [&](float, const char*) {
      if (made++ == 0) made += Session::create(model.value(), SessionOptions{}).is_ok() ? 100 : 0;
      return true;
    };
    EXPECT_TRUE(Session::create(model.value(), options).is_ok());
    EXPECT_GT(made, 100);
  });
}

void exit_well(int) { _exit(0); }

// Ends the process with 0, unless the signal of its last word finds no room.
[[noreturn]] void run_and_raise() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t kBytes = 16 << 10;  // of CoreCLR, a page of which forbids access
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory, page, PROT_NONE);
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  struct sigaction action = {};
  action.sa_handler = exit_well;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, nullptr) != 0 || sigaction(SIGSEGV, &action, nullptr) != 0) _exit(2);
  if (!load_and_run().is_ok()) _exit(3);
  raise(SIGSEGV);
  _exit(4);
}

// As a null reference is thrown in CoreCLR.
TEST(TileThread, AHostsFaultFindsItsHandlerAfterARun) {
  if ((cpu_bits() & kCpuAmxTile) == 0) GTEST_SKIP() << "this CPU has no tiles";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_and_raise(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace folio
