#include "core/os/run_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace folio {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

Ref<Buffer> buffer_of(RunBlocks& run, size_t bytes) {
  Result<Ref<Buffer>> made = run.buffer(bytes);
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return made.is_ok() ? std::move(made).take() : nullptr;
}

TEST(RunBlocks, AreAlignedWritableAndMayLeaveTheRun) {
  BlockPool pool;
  RunBlocks run(pool);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, 3 * kMiB + 1}) {
    const Ref<Buffer> buffer = buffer_of(run, bytes);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_EQ(buffer->kind(), Buffer::Kind::kHeap);
    std::memset(buffer->data(), 0xAB, bytes);
  }
}

TEST(RunBlocks, AreUsedAgainInTheRunAndByTheNext) {
  BlockPool pool;
  const uint8_t* first = nullptr;
  {
    RunBlocks run(pool);
    first = buffer_of(run, kMiB)->data();
    EXPECT_EQ(buffer_of(run, kMiB)->data(), first);
  }
  RunBlocks next(pool);
  EXPECT_EQ(buffer_of(next, kMiB)->data(), first);
  EXPECT_EQ(pool.stats().created, 1u);
}

TEST(RunBlocks, FitACacheThatGrowsByARow) {
  BlockPool pool;
  for (size_t rows = 1000; rows < 1040; ++rows)
    buffer_of(*std::make_unique<RunBlocks>(pool), rows * 1024);
  EXPECT_LE(pool.stats().created, 2u);
}

TEST(RunBlocks, NoOneSharesABlock) {
  BlockPool pool;
  RunBlocks a(pool);
  RunBlocks b(pool);
  const Ref<Buffer> first = buffer_of(a, kMiB);
  const Ref<Buffer> second = buffer_of(b, kMiB);
  EXPECT_NE(first->data(), second->data());
  EXPECT_EQ(pool.stats().of_runs_bytes, 2 * kMiB);
}

// A model whose values have several sizes, none at the same time as another.
TEST(RunBlocks, OfSeveralSizesAreNotMadeAnewInEachRun) {
  BlockPool pool;
  const auto run_once = [&] {
    RunBlocks run(pool);
    { const Ref<Buffer> large = buffer_of(run, 8 * kMiB); }
    const Ref<Buffer> small[] = {buffer_of(run, kMiB), buffer_of(run, kMiB), buffer_of(run, kMiB)};
  };
  run_once();
  const uint64_t created = pool.stats().created;
  for (int i = 0; i < 5; ++i) run_once();
  EXPECT_EQ(pool.stats().created, created);
}

// As YOLOv8's operators take it, up to three at once; of all sizes together it is more than idle
// blocks may be. The output is held until the next run has its own.
TEST(RunBlocks, ScratchOfManySizesIsNotMadeAnewInEachRun) {
  constexpr size_t kUnit = 32 * 1024;
  const std::vector<std::vector<size_t>> operators = {{10},        {10, 20}, {5, 10},  {10, 10},
                                                      {10, 5, 10}, {10, 20}, {10, 32}, {20, 32},
                                                      {20, 40},    {5, 20}};
  BlockPool pool;
  Ref<Buffer> output;
  const auto run_once = [&] {
    RunBlocks run(pool);
    for (const std::vector<size_t>& sizes : operators) {
      std::vector<Ref<Buffer>> held;
      for (const size_t size : sizes) {
        Result<Ref<Buffer>> scratch = run.scratch(size * kUnit);
        ASSERT_TRUE(scratch.is_ok()) << scratch.status().message();
        held.push_back(std::move(scratch).take());
      }
    }
    output = buffer_of(run, 22 * kUnit);
  };
  for (int i = 0; i < 5; ++i) run_once();
  const uint64_t created = pool.stats().created;
  for (int i = 0; i < 5; ++i) run_once();
  EXPECT_EQ(pool.stats().created, created);
  EXPECT_LE(pool.stats().idle_bytes, 2 * 62 * kUnit);
}

TEST(RunBlocks, IdleOnesTakeAtMostTwiceWhatRunsHadAtOnce) {
  BlockPool pool;
  RunBlocks run(pool);
  for (size_t i = 1; i < 40; ++i) {  // each too large or too small for what came before
    buffer_of(run, i % 2 ? 4 * kMiB : kMiB / i);
    EXPECT_LE(pool.stats().idle_bytes, 8 * kMiB);
  }
}

// A host that keeps the results of a thousand runs and drops them at once.
TEST(RunBlocks, OutputsThatWereKeptGoBackToTheSystem) {
  BlockPool pool;
  std::vector<Ref<Buffer>> kept;
  for (int i = 0; i < 50; ++i) {
    RunBlocks run(pool);
    kept.push_back(buffer_of(run, kMiB));
  }
  EXPECT_EQ(pool.stats().created, 50u);
  EXPECT_EQ(pool.stats().of_runs_bytes, 0u);
  const uint64_t before = buffer_bytes_live();
  kept.clear();
  EXPECT_EQ(before - buffer_bytes_live(), 50 * kMiB);
  EXPECT_EQ(pool.stats().idle_bytes, 2 * kMiB);
}

TEST(RunBlocks, DieOnOtherThreadsAndAfterTheirRun) {
  BlockPool pool;
  Ref<Buffer> output;
  {
    RunBlocks run(pool);
    output = buffer_of(run, kMiB);
  }
  std::thread([moved = std::move(output)]() mutable { moved = nullptr; }).join();
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST(RunBlocks, OfManyThreadsAreNeverShared) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      Ref<Buffer> kept;  // an output, released in the middle of the next run
      for (int i = 0; i < 200; ++i) {
        RunBlocks run(pool);
        const Ref<Buffer> a = buffer_of(run, size_t{65536} + static_cast<size_t>(i % 7) * 40000);
        const Ref<Buffer> b = buffer_of(run, 200000);
        std::memset(a->data(), t, a->bytes());
        std::memset(b->data(), t + 100, b->bytes());
        kept = a;
        if (i % 50 == 0) pool.trim();
        EXPECT_EQ(a->data()[a->bytes() - 1], t);
        EXPECT_EQ(b->data()[b->bytes() - 1], t + 100);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().of_runs_bytes, 0u);
}

TEST(BlockPool, TrimsIdleBlocksOnly) {
  BlockPool pool;
  RunBlocks run(pool);
  const Ref<Buffer> held = buffer_of(run, kMiB);
  buffer_of(run, 2 * kMiB);
  EXPECT_EQ(pool.trim(), 2 * kMiB);
  EXPECT_EQ(pool.stats().idle, 0u);
  EXPECT_EQ(pool.stats().of_runs_bytes, kMiB);
  std::memset(held->data(), 1, held->bytes());
}

bool refuses_large(size_t bytes) { return bytes < 2 * kMiB; }

TEST(BlockPool, CountsNothingThatItCouldNotMake) {
  BlockPool pool;
  RunBlocks run(pool);
  set_allocation_hook(refuses_large);
  const Result<Ref<Buffer>> made = run.buffer(2 * kMiB);
  set_allocation_hook(nullptr);
  ASSERT_FALSE(made.is_ok());
  EXPECT_EQ(made.status().code(), Code::kOutOfMemory);
  EXPECT_FALSE(run.buffer(SIZE_MAX / 4).is_ok());
  EXPECT_EQ(pool.stats().of_runs_bytes, 0u);
  EXPECT_EQ(pool.stats().created, 0u);
}

TEST(RunBlocks, CopyTensors) {
  BlockPool pool;
  RunBlocks run(pool);
  Result<Tensor> source = run.tensor(DType::kInt32, Shape{300, 100});
  ASSERT_TRUE(source.is_ok());
  for (int32_t i = 0; i < 30000; ++i) source.value().data_mut<int32_t>()[i] = i;
  const Result<Tensor> copy = run.copy(source.value());
  ASSERT_TRUE(copy.is_ok());
  EXPECT_NE(copy.value().raw(), source.value().raw());
  EXPECT_EQ(std::memcmp(copy.value().raw(), source.value().raw(), 120000), 0);
  EXPECT_FALSE(run.tensor(DType::kFloat, Shape{INT64_MAX, INT64_MAX}).is_ok());
  EXPECT_EQ(run.tensor(DType::kString, Shape{2}).value().data<std::string>()[1], "");
}

}  // namespace
}  // namespace folio
