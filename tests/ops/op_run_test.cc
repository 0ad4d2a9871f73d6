// Scratch of operators: what stays from one call to the next.
#include <gtest/gtest.h>

#include "core/kernels/select.h"
#include "core/ops/op_scratch.h"
#include "tests/support/no_host.h"

namespace folio {
namespace {

uint8_t* scratch(OpRun& run, size_t bytes) {
  Result<uint8_t*> result = run.scratch(bytes);
  EXPECT_TRUE(result.is_ok());
  uint8_t* data = std::move(result).take();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U) << bytes;
  return data;
}

TEST(OpRun, ScratchStaysForTheNextCallUnlessItIsLarge) {
  NoHost host;
  InlineParallel parallel;
  OpRun run(host, kernels_for(0), parallel);
  const auto live = [] { return buffer_bytes_live(); };
  const uint64_t before = live();
  run.begin({}, {}, {});
  uint8_t* const small = scratch(run, 100);
  uint8_t* const medium = scratch(run, 5000);
  EXPECT_NE(small, medium);
  scratch(run, 1 << 20);
  EXPECT_EQ(live() - before, 5100U + (1 << 20));
  run.begin({}, {}, {});
  EXPECT_EQ(live() - before, 5100U);  // the large one is gone
  EXPECT_EQ(scratch(run, 4000), medium);
  EXPECT_EQ(scratch(run, 100), small);
  EXPECT_NE(scratch(run, 100), small);  // taken in this call
  EXPECT_EQ(live() - before, 5200U);
}

TEST(ThreadScratch, IsGivenBackUnlessSomethingWasTakenAfterIt) {
  NoHost host;
  InlineParallel parallel;
  OpRun run(host, kernels_for(0), parallel);
  run.begin({}, {}, {});
  const uint64_t before = buffer_bytes_live();
  for (int i = 0; i < 100; ++i) {  // as a product for each of 100 heads
    ThreadScratch each;
    ASSERT_TRUE(ThreadScratch::make(run, 1000, &each).is_ok());
  }
  EXPECT_EQ(buffer_bytes_live() - before, 1024U);
  uint8_t* kept = nullptr;
  {
    ThreadScratch first;
    ASSERT_TRUE(ThreadScratch::make(run, 1000, &first).is_ok());
    kept = scratch(run, 500);
  }
  EXPECT_NE(scratch(run, 500), kept);
}

}  // namespace
}  // namespace folio
