// PackedCache: one blob per key, shared, weak or held, whatever fails on the way.
#include "core/prepack/packed_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "tests/support/changing_source.h"

namespace folio {
namespace {

std::atomic<int> g_made{0};

Result<Ref<const PackedBlob>> blob_of(uint8_t value, size_t bytes = 256) {
  FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(bytes));
  std::memset(buffer->data(), value, bytes);
  return Ref<const PackedBlob>(make_ref<PackedBlob>(std::move(buffer), bytes));
}
Result<Ref<const PackedBlob>> make_ones() {
  ++g_made;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return blob_of(1);
}
Result<Ref<const PackedBlob>> make_fails() { return invalid_argument("no such matrix"); }
Result<Ref<const PackedBlob>> make_throws() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  throw std::bad_alloc();
}

const PackKey kKey{1, 2};

TEST(PackedCache, TheSecondAskerGetsTheSameBlob) {
  PackedCache cache;
  const auto first = cache.get_or_make(kKey, make_ones);
  const auto second = cache.get_or_make(kKey, make_fails);
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
  {
    const auto blob = cache.get_or_make(kKey, make_ones);
    ASSERT_TRUE(blob.is_ok());
  }
  EXPECT_EQ(cache.stats().live_blobs, 0U);
  ASSERT_TRUE(cache.get_or_make(kKey, make_ones).is_ok());
  EXPECT_EQ(cache.stats().misses, 2U);
}

TEST(PackedCache, ABlobWhoseFileHasChangedIsAbsentThoughItIsInUse) {
  for (const bool is_gone : {false, true}) {
    PackedCache cache;
    const auto file = make_ref<testing::ChangingSource>("a pack");
    const auto in_file = [&]() -> Result<Ref<const PackedBlob>> {
      FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(256));
      return Ref<const PackedBlob>(
          make_ref<PackedBlob>(std::move(buffer), 256, BlobPlace::kStore, file));
    };
    const auto old = cache.get_or_make(kKey, in_file).take();
    EXPECT_EQ(cache.find(kKey), old);
    EXPECT_EQ(old->file(), Ref<const ByteSource>(file));
    (is_gone ? file->is_gone : file->has_changed) = true;
    EXPECT_EQ(cache.find(kKey), Ref<const PackedBlob>());
    const auto fresh = cache.get_or_make(kKey, make_ones).take();
    EXPECT_NE(fresh, old);
    EXPECT_EQ(cache.get_or_make(kKey, make_fails).take(), fresh);
    EXPECT_EQ(cache.stats().live_blobs, 2U);
  }
}

TEST(PackedCache, HoldModeKeepsUntilCleared) {
  PackedCache cache(PackedCache::Keep::kHold);
  ASSERT_TRUE(cache.get_or_make(kKey, make_ones).is_ok());
  EXPECT_EQ(cache.stats().live_blobs, 1U);
  const auto used = cache.get_or_make(kKey, make_fails);
  cache.clear();
  EXPECT_EQ(cache.stats().live_blobs, 1U) << "still in use";
  ASSERT_TRUE(used.is_ok());
  EXPECT_EQ(used.value()->data()[0], 1);
}

TEST(PackedCache, BlobsOutliveTheirCache) {
  Ref<const PackedBlob> kept;
  {
    PackedCache cache(PackedCache::Keep::kHold);
    kept = cache.get_or_make(kKey, make_ones).take();
  }
  EXPECT_EQ(kept->data()[7], 1);
}

TEST(PackedCache, AFailureLeavesNoEntry) {
  PackedCache cache;
  EXPECT_FALSE(cache.get_or_make(kKey, make_fails).is_ok());
  EXPECT_EQ(cache.stats().failures, 1U);
  EXPECT_TRUE(cache.get_or_make(kKey, make_ones).is_ok());
}

TEST(PackedCache, AnAbsurdSizeIsOutOfMemory) {
  PackedCache cache;
  const auto blob = cache.get_or_make(kKey, [] { return blob_of(1, SIZE_MAX); });
  EXPECT_EQ(blob.status().code(), Code::kOutOfMemory);
}

TEST(PackedCache, ABlobUnderTwoKeysIsOneBlob) {
  PackedCache cache;
  const PackKey other{3, 4};
  const auto first = cache.get_or_make(kKey, make_ones);
  // As a load does that knows the place of a weight and learns what it contains.
  const auto alias = cache.get_or_make(other, [&] { return cache.get_or_make(kKey, make_fails); });
  ASSERT_TRUE(first.is_ok() && alias.is_ok());
  EXPECT_EQ(alias.value()->data(), first.value()->data());
  EXPECT_EQ(cache.stats().live_blobs, 1U);
  EXPECT_EQ(cache.stats().live_bytes, 256U);
  EXPECT_EQ(cache.stats().misses, 1U);
  EXPECT_EQ(cache.get_or_make(other, make_fails).value(), alias.value());
}

TEST(PackedCache, WhoHoldsOneOfTwoKeysKeepsBoth) {
  PackedCache cache;
  const PackKey other{3, 4};
  auto first = cache.get_or_make(kKey, make_ones).take();
  auto alias = cache.get_or_make(other, [&] { return cache.get_or_make(kKey, make_fails); }).take();
  first = nullptr;
  EXPECT_TRUE(cache.get_or_make(kKey, make_fails).is_ok());
  alias = nullptr;
  EXPECT_FALSE(cache.get_or_make(kKey, make_fails).is_ok());
  EXPECT_EQ(cache.stats().live_blobs, 0U);
}

TEST(PackedCache, FindGivesWhatIsThereAndMakesNothing) {
  PackedCache cache;
  EXPECT_FALSE(cache.find(kKey));
  auto blob = cache.get_or_make(kKey, [&] {
    EXPECT_FALSE(cache.find(kKey)) << "it is being made";
    return make_ones();
  });
  EXPECT_EQ(cache.find(kKey), blob.value());
  blob = invalid_argument("gone");
  EXPECT_FALSE(cache.find(kKey));
  EXPECT_EQ(cache.stats().misses, 1U);
}

TEST(PackedCache, AnExceptionWakesThoseWhoWait) {
  PackedCache cache;
  std::thread thrower(
      [&] { EXPECT_THROW((void)cache.get_or_make(kKey, make_throws), std::bad_alloc); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(cache.get_or_make(kKey, make_ones).is_ok());
  thrower.join();
  EXPECT_EQ(cache.stats().live_blobs, 0U);
}

TEST(PackedCache, ManyAskersPackOnce) {
  PackedCache cache(PackedCache::Keep::kHold);
  g_made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(cache.get_or_make(kKey, make_ones).is_ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(g_made, 1);
  EXPECT_EQ(cache.stats().hits, 7U);
}

TEST(PackedCache, ComingAndGoingFromManyThreads) {
  PackedCache cache;
  const auto fast = [] { return blob_of(7); };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < 500; ++n) {
        const auto blob = cache.get_or_make(PackKey{0, n % 2}, fast);
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
