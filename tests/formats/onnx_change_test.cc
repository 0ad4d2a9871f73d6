// Files that somebody writes to between the two walks over a tensor: the second one stores no more
// than the first one counted.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/base/utf8.h"
#include "core/formats/onnx/wire_reader.h"
#include "tests/formats/onnx_case.h"

namespace folio {
namespace {

using F = TensorFields;

// The bytes are `before` until bytes() has been asked for `calls` times, `after` from then on.
class RewrittenSource final : public ByteSource {
 public:
  RewrittenSource(std::string before, std::string after, int calls)
      : bytes_(std::move(before)), after_(std::move(after)), calls_(calls) {}

  Bytes bytes() const override {
    if (calls_-- == 0) after_.copy(bytes_.data(), after_.size());
    return Bytes(reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size());
  }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string&) const override {
    return error(Code::kNoSuchFile, "none");
  }

 private:
  mutable std::string bytes_;
  std::string after_;
  mutable int calls_;
  std::string name_ = "m.onnx";
};

// Loads the model of `before` once for each moment in which it can become that of `after`: one of
// them lies between the walks.
void expect_change_found(const PbWriter& before, const PbWriter& after) {
  constexpr int kMoments = 40;  // more than a load has
  const std::string from = model_of(graph_of_tensor(before));
  const std::string to = model_of(graph_of_tensor(after));
  ASSERT_EQ(from.size(), to.size());
  int found = 0;
  for (int calls = 0; calls < kMoments; ++calls) {
    const auto model = load_model_def(make_ref<RewrittenSource>(from, to, calls), {});
    if (calls == 0) {
      EXPECT_EQ(model.status().code(), Code::kInvalidGraph);
    }
    if (model.status().code() != Code::kModelChanged) continue;
    ++found;
    const std::string message(model.status().message());
    EXPECT_NE(message.find("'w'"), std::string::npos) << message;
    EXPECT_NE(message.find("changed while it was read"), std::string::npos) << message;
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(load_model_def(make_ref<RewrittenSource>(from, to, kMoments), {}).is_ok());
}

TEST(OnnxChange, VarintsThatBecomeMoreOrFewerAreAnError) {
  constexpr size_t kCount = 1000;
  PbWriter few = tensor_header("w", DType::kUint8, {kCount});
  few.packed_varints(F::kInt32Data, std::vector<int64_t>(kCount, 1 << 28));  // 5 bytes each
  PbWriter many = tensor_header("w", DType::kUint8, {kCount});
  many.packed_varints(F::kInt32Data, std::vector<int64_t>(5 * kCount, 1));
  expect_change_found(few, many);

  PbWriter more = tensor_header("w", DType::kInt64, {5 * kCount});
  more.packed_varints(F::kInt64Data, std::vector<int64_t>(5 * kCount, 1));
  PbWriter less = tensor_header("w", DType::kInt64, {5 * kCount});
  less.packed_varints(F::kInt64Data, std::vector<int64_t>(kCount, 1 << 28));
  expect_change_found(more, less);
}

TEST(OnnxChange, UnpackedVarintsThatBecomeMoreAreAnError) {
  PbWriter few = tensor_header("w", DType::kInt32, {3});
  for (int i = 0; i < 3; ++i) few.varint(F::kInt32Data, 1 << 28);
  PbWriter many = tensor_header("w", DType::kInt32, {3});
  for (int i = 0; i < 9; ++i) many.varint(F::kInt32Data, 1);
  expect_change_found(few, many);
}

TEST(OnnxChange, StringsThatBecomeMoreOrFewerAreAnError) {
  PbWriter few = tensor_header("w", DType::kString, {2});
  for (int i = 0; i < 2; ++i) few.bytes(F::kStringData, "12345678");
  PbWriter many = tensor_header("w", DType::kString, {2});
  for (int i = 0; i < 10; ++i) many.bytes(F::kStringData, "");
  expect_change_found(few, many);

  PbWriter more = tensor_header("w", DType::kString, {10});
  for (int i = 0; i < 10; ++i) more.bytes(F::kStringData, "");
  PbWriter less = tensor_header("w", DType::kString, {10});
  for (int i = 0; i < 2; ++i) less.bytes(F::kStringData, "12345678");
  expect_change_found(more, less);
}

TEST(OnnxChange, FloatsThatBecomeMoreAreAnError) {
  // In two pieces, or they are used where they stand.
  PbWriter few = tensor_header("w", DType::kFloat, {2});
  for (int i = 0; i < 2; ++i) few.bytes(F::kFloatData, "1234");
  few.bytes(F::kName, std::string(198, 'n'));
  few.bytes(F::kName, "w");
  PbWriter many = tensor_header("w", DType::kFloat, {2});
  for (int i = 0; i < 2; ++i) many.bytes(F::kFloatData, std::string(100, '1'));
  many.bytes(F::kName, "1234567");
  many.bytes(F::kName, "w");
  expect_change_found(few, many);
}

// Two mappings of the same memory, as those of two processes that have a file open.
class SharedBytes {
 public:
  explicit SharedBytes(const std::string& bytes) : size_(bytes.size()) {
    const int fd = memfd_create("shared", MFD_CLOEXEC);
    EXPECT_EQ(write(fd, bytes.data(), size_), static_cast<ssize_t>(size_));
    void* const read = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    void* const written = mmap(nullptr, size_, PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    EXPECT_NE(read, MAP_FAILED);
    EXPECT_NE(written, MAP_FAILED);
    read_ = static_cast<const uint8_t*>(read);
    written_ = static_cast<uint8_t*>(written);
  }
  ~SharedBytes() {
    munmap(const_cast<uint8_t*>(read_), size_);
    munmap(written_, size_);
  }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  Bytes bytes() const { return {read_, size_}; }
  volatile uint8_t* at(size_t offset) { return written_ + offset; }

 private:
  size_t size_;
  const uint8_t* read_;
  uint8_t* written_;
};

TEST(OnnxChange, NamesAndTextsAreCheckedAsTheyWereCopied) {
  constexpr int kReads = 400;
  PbWriter message;
  message.bytes(1, std::string(1 << 18, 'n'));
  SharedBytes shared(message.str());
  std::atomic<bool> is_over{false};
  // The name's first byte comes and goes; what is read may be of either moment.
  std::thread other([&] {
    volatile uint8_t* const first = shared.at(shared.bytes().size() - (1 << 18));
    while (!is_over.load()) {
      *first = 0xff;
      for (int i = 0; i < 100; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      *first = 'n';
    }
  });
  for (int i = 0; i < kReads; ++i) {
    std::string name;
    std::string text;
    WireReader names(shared.bytes(), shared.bytes().data(), "Message");
    const Status status =
        names.each_field([&](uint32_t) { return names.read_name("name", &name); });
    EXPECT_TRUE(!status.is_ok() || utf8_valid(name));
    WireReader texts(shared.bytes(), shared.bytes().data(), "Message");
    EXPECT_TRUE(texts.each_field([&](uint32_t) { return texts.read_text(&text); }).is_ok());
    EXPECT_TRUE(utf8_valid(text));
  }
  is_over = true;
  other.join();
}

}  // namespace
}  // namespace folio
