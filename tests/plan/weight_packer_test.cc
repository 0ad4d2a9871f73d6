// WeightPacker: constants are named before they are read or computed, and made once.
#include "core/plan/weight_packer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/parallel.h"
#include "core/kernels/select.h"
#include "core/os/mapped_file.h"
#include "tests/support/op_tester.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

Status fill_zeros(const PackRequest& request, const void*, const Tensor&, uint8_t* blob) {
  std::memset(blob, 0, request.bytes);
  return Status::ok();
}

PackRequest request_2x2() {
  PackRequest request;
  request.k = 2;
  request.n = 2;
  request.row_stride = 2;
  request.col_stride = 1;
  request.bytes = 64;
  request.fill = fill_zeros;
  return request;
}

Ref<Initializer> weight(std::vector<float> values, Ref<ByteSource> source) {
  auto initializer = make_ref<Initializer>();
  initializer->tensor = make_tensor<float>({2, 2}, std::move(values));
  initializer->source = std::move(source);
  initializer->offset = 16;
  return initializer;
}

Ref<ByteSource> mapped(const testing::TempFolder& folder, const char* name) {
  Result<Ref<ByteSource>> source = open_mapped_file(folder.write(name, "some model"));
  EXPECT_TRUE(source.is_ok()) << source.status().message();
  return source.is_ok() ? std::move(source).take() : nullptr;
}

// As one load would.
Ref<const PackedBlob> packed(PackedCache& cache, const Ref<Initializer>& initializer) {
  InlineParallel parallel;
  const Evaluator evaluator{kernels_for(0), parallel};
  WeightPacker packer(evaluator, cache, Ref<PackLibrary>(), "ref", WeightPacker::When::kNow);
  const Result<WeightSlot*> slot = packer.slot(initializer, request_2x2(), false);
  EXPECT_TRUE(slot.is_ok()) << slot.status().message();
  return slot.is_ok() ? packer.slots()->blobs()[0] : nullptr;
}

// The bytes differ, which a real mapping's cannot: whoever looked at them would see it.
TEST(WeightPacker, BytesOfASourceAreNotLookedAt) {
  PackedCache cache;
  const testing::TempFolder folder;
  const Ref<ByteSource> source = mapped(folder, "model.onnx");
  const Ref<Initializer> a = weight({1, 2, 3, 4}, source);
  const Ref<Initializer> b = weight({5, 6, 7, 8}, source);
  const Ref<const PackedBlob> blob = packed(cache, a);
  EXPECT_EQ(packed(cache, b).get(), blob.get());
}

TEST(WeightPacker, SourcesAreNotTakenForOneAnother) {
  PackedCache cache;
  const testing::TempFolder folder;
  const Ref<Initializer> a = weight({1, 2, 3, 4}, mapped(folder, "a.onnx"));
  const Ref<Initializer> b = weight({5, 6, 7, 8}, mapped(folder, "b.onnx"));
  const Ref<const PackedBlob> blob = packed(cache, a);
  EXPECT_NE(packed(cache, b).get(), blob.get());
}

// A source that only counts what it may forget.
class CountingSource final : public ByteSource {
 public:
  uint64_t serial() const override { return 77; }
  Bytes bytes() const override { return {}; }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string&) const override {
    return error(Code::kNoSuchFile, "no files");
  }
  void drop_pages(uint64_t offset, uint64_t count) const override {
    drops.emplace_back(offset, count);
  }
  mutable std::vector<std::pair<uint64_t, uint64_t>> drops;

 private:
  std::string name_ = "counting";
};

TEST(WeightPacker, WhoPacksGivesThePagesBackAndWhoFindsLeavesThem) {
  PackedCache cache;
  const auto source = make_ref<CountingSource>();
  const Ref<Initializer> a = weight({1, 2, 3, 4}, source);
  const Ref<const PackedBlob> blob = packed(cache, a);
  ASSERT_EQ(source->drops.size(), 1U);
  EXPECT_EQ(source->drops[0], std::make_pair(uint64_t{16}, uint64_t{16}));
  packed(cache, a);
  EXPECT_EQ(source->drops.size(), 1U);
}

TEST(WeightPacker, ComputedWeightsAreNamedByTheirBytes) {
  PackedCache cache;
  const Ref<Initializer> a = weight({1, 2, 3, 4}, nullptr);
  const Ref<Initializer> same = weight({1, 2, 3, 4}, nullptr);
  const Ref<Initializer> other = weight({1, 2, 3, 5}, nullptr);
  const Ref<const PackedBlob> blob = packed(cache, a);
  EXPECT_EQ(packed(cache, same).get(), blob.get());
  EXPECT_NE(packed(cache, other).get(), blob.get());
}

}  // namespace
}  // namespace folio
