// PackKey and layouts: equal keys for interchangeable blobs, different ones for all others.
#include "core/prepack/pack_key.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/op_tester.h"

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

TEST(PackKey, ContentNamesUnmappedSources) {
  const Tensor a = make_tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor b = make_tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor c = make_tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 9});
  const PackRequest request = request_4x2();
  EXPECT_EQ(make_pack_key({&a}, request), make_pack_key({&b}, request));
  EXPECT_NE(make_pack_key({&a}, request), make_pack_key({&c}, request));
}

TEST(PackKey, APlaceInAMappingNamesMappedSources) {
  const Tensor a = make_tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor b = make_tensor<float>({4, 2}, {9, 9, 9, 9, 9, 9, 9, 9});
  const PackRequest request = request_4x2();
  // Not even read: the same place of the same mapping holds the same bytes.
  EXPECT_EQ(make_pack_key({&a, 7, 64}, request), make_pack_key({&b, 7, 64}, request));
  EXPECT_NE(make_pack_key({&a, 7, 64}, request), make_pack_key({&a, 7, 128}, request));
  EXPECT_NE(make_pack_key({&a, 7, 64}, request), make_pack_key({&a, 8, 64}, request));
  EXPECT_NE(make_pack_key({&a, 7, 64}, request), make_pack_key({&a}, request));
}

TEST(PackKey, EveryPartOfARequestCounts) {
  const Tensor a = make_tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor reshaped = a.reshaped({2, 4});
  std::set<PackKey> keys{make_pack_key({&a}, request_4x2()),
                         make_pack_key({&reshaped}, request_4x2())};
  for (int part = 0; part < 5; ++part) {
    PackRequest request = request_4x2();
    if (part == 0) ++request.version;
    if (part == 1) ++request.k;
    if (part == 2) ++request.n;
    if (part == 3) ++request.row_stride;
    if (part == 4) ++request.col_stride;
    keys.insert(make_pack_key({&a}, request));
  }
  EXPECT_EQ(keys.size(), 7U);
}

TEST(Layout, SizesArePaddedToWholePanels) {
  uint64_t bytes = 0;
  ASSERT_TRUE(f32p16_bytes(3, 17, &bytes));
  EXPECT_EQ(bytes, 3U * 32 * 4);
  ASSERT_TRUE(f32p16_bytes(0, 17, &bytes));
  EXPECT_EQ(bytes, 0U);
}

TEST(Layout, AbsurdSizesAreRefused) {
  uint64_t bytes = 0;
  EXPECT_FALSE(f32p16_bytes(-1, 1, &bytes));
  EXPECT_FALSE(f32p16_bytes(1, -1, &bytes));
  EXPECT_FALSE(f32p16_bytes(1, INT64_MAX, &bytes));
  EXPECT_FALSE(f32p16_bytes(INT64_MAX, INT64_MAX - 15, &bytes));
  EXPECT_FALSE(f32p16_bytes(int64_t{1} << 40, int64_t{1} << 24, &bytes));
}

}  // namespace
}  // namespace folio
