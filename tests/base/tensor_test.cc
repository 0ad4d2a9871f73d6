// Shapes, sizes, buffers and tensors: hostile dims, overflow, and who keeps bytes alive.
#include "core/base/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/base/checked_math.h"

namespace folio {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, OverflowIsReported) {
  int64_t out = 0;
  EXPECT_TRUE(checked_mul(int64_t{3}, int64_t{4}, &out));
  EXPECT_EQ(out, 12);
  EXPECT_FALSE(checked_mul(kHuge, int64_t{2}, &out));
  EXPECT_FALSE(checked_add(kHuge, int64_t{1}, &out));
  EXPECT_FALSE(checked_sub(std::numeric_limits<int64_t>::min(), int64_t{1}, &out));
  EXPECT_TRUE(range_inside(4, 4, 8));
  EXPECT_FALSE(range_inside(4, 5, 8));
  EXPECT_FALSE(range_inside(UINT64_MAX, 2, 8));
  EXPECT_FALSE(range_inside(2, UINT64_MAX, 8));
}

TEST(Shape, HostileDimsAreRefused) {
  const std::vector<std::vector<int64_t>> bad{
      {-1}, {kHuge, 2}, {kHuge, kHuge}, {0, kHuge, kHuge}, {2, -3}};
  for (const auto& dims : bad) EXPECT_FALSE(shape_from(dims).is_ok());
  EXPECT_FALSE(shape_from(std::vector<int64_t>(kMaxRank + 1, 1)).is_ok());
  EXPECT_TRUE(shape_from(std::vector<int64_t>(kMaxRank, 1)).is_ok());
  const auto empty = shape_from(std::vector<int64_t>{0, kHuge});
  ASSERT_TRUE(empty.is_ok());
  EXPECT_EQ(empty.value().count(), 0);
}

TEST(Shape, InsertAndErase) {
  Shape shape{2, 3};
  shape.insert(1, 7);
  EXPECT_EQ(shape, (Shape{2, 7, 3}));
  shape.erase(0);
  EXPECT_EQ(shape.to_string(), "[7,3]");
  EXPECT_EQ(Shape().to_string(), "[]");
  EXPECT_EQ(Shape().count(), 1);
}

TEST(Shape, AxesAreNormalized) {
  EXPECT_EQ(normalize_axis(-1, 3).value(), 2);
  EXPECT_EQ(normalize_axis(0, 3).value(), 0);
  EXPECT_FALSE(normalize_axis(3, 3).is_ok());
  EXPECT_FALSE(normalize_axis(-4, 3).is_ok());
  EXPECT_FALSE(normalize_axis(0, 0).is_ok());
  EXPECT_FALSE(normalize_axis(std::numeric_limits<int64_t>::min(), 3).is_ok());
}

TEST(Shape, Broadcasting) {
  EXPECT_EQ(broadcast({2, 1}, {3}).value(), (Shape{2, 3}));
  EXPECT_EQ(broadcast({0}, {1}).value(), (Shape{0}));
  EXPECT_EQ(broadcast({}, {4}).value(), (Shape{4}));
  EXPECT_FALSE(broadcast({2}, {3}).is_ok());
  EXPECT_FALSE(broadcast({kHuge, 1}, {1, 3}).is_ok());
}

TEST(Buffer, AbsurdSizesAreOutOfMemory) {
  EXPECT_EQ(allocate_buffer(SIZE_MAX).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(allocate_strings(SIZE_MAX / 8).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(allocate_tensor(DType::kFloat, {kHuge}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(allocate_tensor(DType::kUint8, {kHuge}).status().code(), Code::kOutOfMemory);
}

TEST(Buffer, BytesAreCountedWhileTheyLive) {
  const uint64_t before = buffer_bytes_live();
  {
    const auto buffer = allocate_buffer(1000);
    ASSERT_TRUE(buffer.is_ok());
    EXPECT_EQ(buffer_bytes_live(), before + 1000);
    EXPECT_GE(buffer_bytes_peak(), before + 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.value()->data()) % 64, 0U);
  }
  EXPECT_EQ(buffer_bytes_live(), before);
}

TEST(Buffer, AViewKeepsItsKeeper) {
  const uint64_t before = buffer_bytes_live();
  Ref<Buffer> view;
  {
    Ref<Buffer> owner = allocate_buffer(64).take();
    owner->data()[5] = 42;
    uint8_t* const data = owner->data();
    view = view_buffer(Buffer::Kind::kConstant, data, 64, owner);
  }
  EXPECT_EQ(view->data()[5], 42);
  EXPECT_GT(buffer_bytes_live(), before);
  view = nullptr;
  EXPECT_EQ(buffer_bytes_live(), before);
}

TEST(Buffer, TheHookRefuses) {
  set_allocation_hook([](size_t bytes) { return bytes < 100; });
  const auto small = allocate_buffer(99);
  const auto large = allocate_buffer(100);
  const auto strings = allocate_strings(10);
  set_allocation_hook(nullptr);
  EXPECT_TRUE(small.is_ok());
  EXPECT_EQ(large.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(strings.status().code(), Code::kOutOfMemory);
}

TEST(Tensor, CopiesAreApart) {
  Tensor strings = allocate_tensor(DType::kString, {2}).take();
  strings.data_mut<std::string>()[1] = std::string(100, 'x');
  const Tensor copy = copy_tensor(strings).take();
  strings.data_mut<std::string>()[1] = "y";
  EXPECT_EQ(copy.data<std::string>()[1], std::string(100, 'x'));
  const Tensor empty = copy_tensor(allocate_tensor(DType::kFloat, {0, 3}).take()).take();
  EXPECT_EQ(empty.bytes(), 0U);
}

TEST(Tensor, OnlyHeapBytesEscape) {
  EXPECT_TRUE(allocate_tensor(DType::kFloat, {1}).take().escapes());
  float number = 0;
  for (const auto kind : {Buffer::Kind::kArena, Buffer::Kind::kConstant, Buffer::Kind::kBorrowed}) {
    Ref<Buffer> view = view_buffer(kind, &number, sizeof(number), nullptr);
    EXPECT_FALSE(Tensor(DType::kFloat, {1}, view->data(), view).escapes());
  }
}

TEST(Status, ContextIsPutInFront) {
  const Status status = invalid_argument("bad ", 7).with_context("node 'a'");
  EXPECT_EQ(status.message(), "node 'a': bad 7");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(Status::ok().with_context("x").is_ok());
}

struct Counted : RefCounted {
  explicit Counted(int* count) : count_(count) { ++*count_; }
  ~Counted() override { --*count_; }
  int* count_;
};

TEST(Ref, CountsAndWeakTries) {
  int alive = 0;
  {
    Ref<Counted> a = make_ref<Counted>(&alive);
    EXPECT_TRUE(a->is_unique());
    const Ref<Counted> b = a;
    EXPECT_FALSE(a->is_unique());
    ASSERT_TRUE(b->try_add_ref());
    const Ref<Counted> c = Ref<Counted>::adopt(b.get());
    a = nullptr;
    EXPECT_EQ(alive, 1);
    const Ref<Counted>& self = c;
    a = self;
    EXPECT_EQ(a, c);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace folio
