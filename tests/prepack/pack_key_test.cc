// PackKey and layouts: equal keys for interchangeable blobs, different ones for all others.
#include "core/prepack/pack_key.h"

#include <gtest/gtest.h>

#include <set>

#include "core/prepack/layout.h"

namespace folio {
namespace {

PackRequest request_4x2() {
  PackRequest request;
  request.version = 1;
  request.k = 4;
  request.n = 2;
  request.row_stride = 2;
  request.col_stride = 1;
  return request;
}

TEST(PackKey, EveryPartOfARequestCounts) {
  std::set<PackKey> keys{make_pack_key({1, 2}, request_4x2()), make_pack_key({1, 3}, request_4x2()),
                         make_raw_key({1, 2})};
  for (int part = 0; part < 7; ++part) {
    PackRequest request = request_4x2();
    if (part == 0) ++request.version;
    if (part == 1) ++request.k;
    if (part == 2) ++request.n;
    if (part == 3) ++request.row_stride;
    if (part == 4) ++request.col_stride;
    if (part == 5) ++request.taps;
    if (part == 6) ++request.groups;
    keys.insert(make_pack_key({1, 2}, request));
  }
  EXPECT_EQ(keys.size(), 10U);
}

// The files of earlier versions are found by these: a change makes every pack file useless.
TEST(PackKey, KeysAreThoseOfTheFormat) {
  const PackKey key = make_pack_key({1, 2}, request_4x2());
  EXPECT_EQ(key.high, 11695013567537452088U);
  EXPECT_EQ(key.low, 6856666699681683951U);
}

TEST(IdHasher, SequencesOfAnyLengthHaveTheIdOfTheirBytes) {
  std::vector<uint64_t> numbers;
  IdHasher hash;
  for (uint64_t i = 0; i < 100; ++i) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
    EXPECT_EQ(hash.id(), hash_bytes({bytes, numbers.size() * sizeof(uint64_t)})) << i;
    numbers.push_back(i * i);
    hash.add(i * i);
  }
}

TEST(IdHasher, SequencesAreNotTakenForOneAnother) {
  IdHasher a;
  a.add("ab");
  a.add("c");
  IdHasher b;
  b.add("a");
  b.add("bc");
  EXPECT_NE(a.id(), b.id());
}

TEST(Layout, SizesArePaddedToWholePanels) {
  uint64_t bytes = 0;
  ASSERT_TRUE(f32p16_bytes(3, 17, &bytes));
  EXPECT_EQ(bytes, 3U * 32 * 4);
  ASSERT_TRUE(f32p16_bytes(0, 17, &bytes));
  EXPECT_EQ(bytes, 0U);
  ASSERT_TRUE(f16p16_bytes(3, 17, &bytes));
  EXPECT_EQ(bytes, 3U * 32 * 2);
  ASSERT_TRUE(bf16p16_bytes(3, 17, &bytes));
  EXPECT_EQ(bytes, 4U * 32 * 2) << "rows in pairs";
}

TEST(Layout, AbsurdSizesAreRefused) {
  uint64_t bytes = 0;
  EXPECT_FALSE(f32p16_bytes(-1, 1, &bytes));
  EXPECT_FALSE(f32p16_bytes(1, -1, &bytes));
  EXPECT_FALSE(f32p16_bytes(1, INT64_MAX, &bytes));
  EXPECT_FALSE(f32p16_bytes(INT64_MAX, INT64_MAX - 15, &bytes));
  EXPECT_FALSE(f32p16_bytes(int64_t{1} << 40, int64_t{1} << 24, &bytes));
  for (const auto half_bytes : {f16p16_bytes, bf16p16_bytes}) {
    EXPECT_FALSE(half_bytes(-1, 1, &bytes));
    EXPECT_FALSE(half_bytes(1, -1, &bytes));
    EXPECT_FALSE(half_bytes(1, INT64_MAX, &bytes));
    EXPECT_FALSE(half_bytes(INT64_MAX, INT64_MAX - 15, &bytes));
    EXPECT_FALSE(half_bytes(int64_t{1} << 40, int64_t{1} << 24, &bytes));
  }
}

}  // namespace
}  // namespace folio
