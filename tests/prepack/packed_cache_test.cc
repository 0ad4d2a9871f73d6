// PackedCache: one blob per key, shared, weak or held, whatever fails on the way.
#include "core/prepack/packed_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <new>
#include <thread>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

std::atomic<int> g_fills{0};

Status fill_ones(const PackRequest& request, const void*, const Tensor&, uint8_t* blob) {
  ++g_fills;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::memset(blob, 1, request.bytes);
  return Status::ok();
}
Status fill_fails(const PackRequest&, const void*, const Tensor&, uint8_t*) {
  return invalid_argument("no such matrix");
}
Status fill_throws(const PackRequest&, const void*, const Tensor&, uint8_t*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  throw std::bad_alloc();
}

PackRequest request_of(Status (*fill)(const PackRequest&, const void*, const Tensor&, uint8_t*)) {
  PackRequest request;
  request.version = 1;
  request.bytes = 256;
  request.fill = fill;
  return request;
}

const PackKey kKey{1, 2};

TEST(PackedCache, TheSecondAskerGetsTheSameBlob) {
  PackedCache cache;
  const Tensor source = make_tensor<float>({1}, {1});
  const auto first = cache.get_or_pack(kKey, source, request_of(fill_ones));
  const auto second = cache.get_or_pack(kKey, source, request_of(fill_fails));
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(first.value()->data()[255], 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.value()->data()) % 64, 0U);
  const PackedCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1U);
  EXPECT_EQ(stats.misses, 1U);
  EXPECT_EQ(stats.live_blobs, 1U);
  EXPECT_EQ(stats.live_bytes, 256U);
}

TEST(PackedCache, ABlobDiesWithItsLastUser) {
  PackedCache cache;
  const Tensor source = make_tensor<float>({1}, {1});
  {
    const auto blob = cache.get_or_pack(kKey, source, request_of(fill_ones));
    ASSERT_TRUE(blob.is_ok());
  }
  EXPECT_EQ(cache.stats().live_blobs, 0U);
  ASSERT_TRUE(cache.get_or_pack(kKey, source, request_of(fill_ones)).is_ok());
  EXPECT_EQ(cache.stats().misses, 2U);
}

TEST(PackedCache, HoldModeKeepsUntilCleared) {
  PackedCache cache(PackedCache::Keep::kHold);
  const Tensor source = make_tensor<float>({1}, {1});
  ASSERT_TRUE(cache.get_or_pack(kKey, source, request_of(fill_ones)).is_ok());
  EXPECT_EQ(cache.stats().live_blobs, 1U);
  const auto used = cache.get_or_pack(kKey, source, request_of(fill_fails));
  cache.clear();
  EXPECT_EQ(cache.stats().live_blobs, 1U) << "still in use";
  ASSERT_TRUE(used.is_ok());
  EXPECT_EQ(used.value()->data()[0], 1);
}

TEST(PackedCache, BlobsOutliveTheirCache) {
  Ref<const PackedBlob> kept;
  {
    PackedCache cache(PackedCache::Keep::kHold);
    kept = cache.get_or_pack(kKey, make_tensor<float>({1}, {1}), request_of(fill_ones)).take();
  }
  EXPECT_EQ(kept->data()[7], 1);
}

TEST(PackedCache, AFailureLeavesNoEntry) {
  PackedCache cache;
  const Tensor source = make_tensor<float>({1}, {1});
  EXPECT_FALSE(cache.get_or_pack(kKey, source, request_of(fill_fails)).is_ok());
  EXPECT_EQ(cache.stats().failures, 1U);
  EXPECT_TRUE(cache.get_or_pack(kKey, source, request_of(fill_ones)).is_ok());
}

TEST(PackedCache, AnAbsurdSizeIsOutOfMemory) {
  PackedCache cache;
  PackRequest request = request_of(fill_ones);
  request.bytes = UINT64_MAX;
  const auto blob = cache.get_or_pack(kKey, make_tensor<float>({1}, {1}), request);
  EXPECT_EQ(blob.status().code(), Code::kOutOfMemory);
}

TEST(PackedCache, AnExceptionWakesThoseWhoWait) {
  PackedCache cache;
  const Tensor source = make_tensor<float>({1}, {1});
  std::thread thrower([&] {
    EXPECT_THROW((void)cache.get_or_pack(kKey, source, request_of(fill_throws)), std::bad_alloc);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(cache.get_or_pack(kKey, source, request_of(fill_ones)).is_ok());
  thrower.join();
  EXPECT_EQ(cache.stats().live_blobs, 0U);
}

TEST(PackedCache, ManyAskersPackOnce) {
  PackedCache cache(PackedCache::Keep::kHold);
  const Tensor source = make_tensor<float>({1}, {1});
  g_fills = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&] { EXPECT_TRUE(cache.get_or_pack(kKey, source, request_of(fill_ones)).is_ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(g_fills, 1);
  EXPECT_EQ(cache.stats().hits, 7U);
}

TEST(PackedCache, ComingAndGoingFromManyThreads) {
  PackedCache cache;
  const Tensor source = make_tensor<float>({1}, {1});
  const auto fast = [](const PackRequest& request, const void*, const Tensor&, uint8_t* blob) {
    std::memset(blob, 7, request.bytes);
    return Status::ok();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < 500; ++n) {
        const auto blob = cache.get_or_pack(PackKey{0, n % 2}, source, request_of(fast));
        ASSERT_TRUE(blob.is_ok());
        EXPECT_EQ(blob.value()->data()[100], 7);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.stats().live_blobs, 0U);
  EXPECT_EQ(cache.stats().live_bytes, 0U);
}

}  // namespace
}  // namespace folio
