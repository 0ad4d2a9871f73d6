// Each slot of the table, at every level, beside ref: any count from 0 on, pointers of any
// alignment that kernels.h allows, inputs that end where memory does, outputs between guards, and
// NaN, infinities and subnormals among the numbers.
//
// A slot is a row of slots(): what it reads and writes for a count n, and how it is called. What a
// slot's arguments mean besides n, and how near it is to the truth, is in the tests by family.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>

#include "tests/kernels/kernel_slots.h"
#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

// ---- Memory -----------------------------------------------------------------------------------

// Bytes that end `gap` bytes before a page that cannot be touched, or, where they must stand at a
// multiple of 64, as near to it as that lets them; what stands before them, and in the gap, is
// guarded.
class AtTheEnd {
 public:
  AtTheEnd(size_t bytes, May may, size_t gap) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    room_ = (bytes + gap + 64 + page - 1) / page * page;
    mapping_ = static_cast<uint8_t*>(
        mmap(nullptr, room_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(mapping_ + room_, page, PROT_NONE);
    std::memset(mapping_, kGuard, room_);
    const size_t step = may == May::kStandAt64         ? 64
                        : may == May::kStandAtEights   ? 8
                        : may == May::kStandAtElements ? 4
                                                       : 1;
    first_ = (room_ - bytes - gap) / step * step;
    step_ = page;
  }
  ~AtTheEnd() { munmap(mapping_, room_ + step_); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;

  uint8_t* data() const { return bytes_ == 0 ? nullptr : mapping_ + first_; }
  std::vector<uint8_t> bytes() const { return {mapping_ + first_, mapping_ + first_ + bytes_}; }
  bool intact() const {
    for (size_t i = 0; i < room_; ++i) {
      if ((i < first_ || i >= first_ + bytes_) && mapping_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr uint8_t kGuard = 0xa5;
  uint8_t* mapping_;
  size_t room_ = 0;
  size_t step_ = 0;
  size_t first_ = 0;
  size_t bytes_;
};

// ---- Numbers ----------------------------------------------------------------------------------

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kFiniteSpecials[] = {0.0F, -0.0F, 1e-40F, -0x1p-149F, 0x1p-126F, 1.0F, -1.0F};
constexpr float kOtherSpecials[] = {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()};

enum class Numbers : uint8_t { kRandom, kSubnormal, kSpecial };

std::vector<float> floats_of(Numbers numbers, Among among, uint32_t seed, size_t count) {
  std::vector<float> values = random_floats(count, seed);
  for (size_t i = 0; i < count && numbers != Numbers::kRandom; ++i) {
    const size_t pick = (i * 7 + seed * 3) % 16;
    if (numbers == Numbers::kSubnormal) values[i] *= 0x1p-130F;
    if (numbers == Numbers::kSpecial && pick < std::size(kFiniteSpecials)) {
      values[i] = kFiniteSpecials[pick];
    }
    // Seldom, so that not all sums have one.
    const size_t other = (i * 11 + seed * 5) % 97;
    if (numbers == Numbers::kSpecial && among == Among::kAll && other < std::size(kOtherSpecials)) {
      values[i] = kOtherSpecials[other];
    }
  }
  return values;
}

void fill(const Operand& operand, Numbers numbers, Among among, uint32_t seed, int64_t n,
          uint8_t* to) {
  const size_t bytes = operand.bytes(n);
  if (operand.holds == Holds::kFloats || operand.holds == Holds::kDoubles) {
    const size_t count = bytes / operand.element_bytes();
    const std::vector<float> values = floats_of(numbers, among, seed, count);
    const std::vector<double> doubles(values.begin(), values.end());
    const bool is_double = operand.holds == Holds::kDoubles;
    const void* from = is_double ? static_cast<const void*>(doubles.data()) : values.data();
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  uint32_t state = seed * 2654435761U + 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 1664525U + 1013904223U;
    to[i] = static_cast<uint8_t>(state >> 24);
  }
}

// ---- Comparison -------------------------------------------------------------------------------

bool floats_agree(const Slot& slot, int64_t n, float got, float want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  if (slot.agrees == Agrees::kBits) return bits_of(got) == bits_of(want);
  if (slot.agrees == Agrees::kUlp) {
    return ulp_distance(got, double{want}) <= slot.tolerance(n);
  }
  return std::fabs(double{got} - double{want}) <= slot.tolerance(n);
}

bool doubles_agree(const Slot& slot, int64_t n, double got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return std::fabs(got - want) <= slot.tolerance(n);
}

template <typename T>
T element_of(const std::vector<uint8_t>& bytes, size_t i) {
  T value = 0;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
  return value;
}

::testing::AssertionResult agree(const Slot& slot, const Operand& operand, int64_t n,
                                 const std::vector<uint8_t>& got,
                                 const std::vector<uint8_t>& want) {
  if (got == want) return ::testing::AssertionSuccess();
  const bool is_double = operand.holds == Holds::kDoubles;
  if (slot.agrees == Agrees::kBytes || (!is_double && operand.holds != Holds::kFloats)) {
    return ::testing::AssertionFailure() << "other bytes";
  }
  for (size_t i = 0; i < got.size() / operand.element_bytes(); ++i) {
    const double a = is_double ? element_of<double>(got, i) : element_of<float>(got, i);
    const double b = is_double ? element_of<double>(want, i) : element_of<float>(want, i);
    if (is_double ? doubles_agree(slot, n, a, b)
                  : floats_agree(slot, n, element_of<float>(got, i), element_of<float>(want, i))) {
      continue;
    }
    return ::testing::AssertionFailure() << "at " << i << ": " << a << ", ref has " << b;
  }
  return ::testing::AssertionSuccess();
}

using Outputs = std::vector<std::vector<uint8_t>>;

Outputs run(const LevelUnderTest& level, const Slot& slot, Numbers numbers, int64_t n, size_t gap) {
  std::vector<std::unique_ptr<AtTheEnd>> in;
  std::vector<std::unique_ptr<AtTheEnd>> out;
  Pointers pointers;
  for (const Operand& operand : slot.in) {
    in.push_back(std::make_unique<AtTheEnd>(operand.bytes(n), operand.may, gap));
    fill(operand, numbers, slot.among, static_cast<uint32_t>(in.size() + static_cast<size_t>(n)), n,
         in.back()->data());
    pointers.in.push_back(in.back()->data());
  }
  for (const Operand& operand : slot.out) {
    out.push_back(std::make_unique<AtTheEnd>(operand.bytes(n), operand.may, gap));
    pointers.out.push_back(out.back()->data());
  }
  slot.call(level.kernels, n, pointers, slot.part);
  Outputs outputs;
  for (const auto& memory : in) EXPECT_TRUE(memory->intact());
  for (const auto& memory : out) {
    EXPECT_TRUE(memory->intact()) << "wrote outside of an output";
    outputs.push_back(memory->bytes());
  }
  return outputs;
}

class EverySlot : public ::testing::TestWithParam<Slot> {
 protected:
  // All levels against ref, at counts around what vectors and panels hold.
  static void check(Numbers numbers, size_t gap) {
    const Slot& slot = GetParam();
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 130}) {
      const Outputs want = run(levels_under_test().front(), slot, numbers, n, gap);
      for (const LevelUnderTest& level : levels_under_test()) {
        SCOPED_TRACE(level.name + ", n = " + std::to_string(n));
        const Outputs got = run(level, slot, numbers, n, gap);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(agree(slot, slot.out[i], n, got[i], want[i])) << "output " << i;
        }
      }
    }
  }
};

TEST_P(EverySlot, AgreesWithRefForAnyCountAndTouchesNothingElse) { check(Numbers::kRandom, 0); }

TEST_P(EverySlot, TakesPointersOfAnyAlignment) {
  for (const size_t gap : {1, 2, 3, 4, 12, 20, 60}) check(Numbers::kRandom, gap);
}

TEST_P(EverySlot, AgreesOnSubnormals) { check(Numbers::kSubnormal, 0); }

TEST_P(EverySlot, AgreesOnNanInfinitiesAndZeros) { check(Numbers::kSpecial, 0); }

INSTANTIATE_TEST_SUITE_P(All, EverySlot, ::testing::ValuesIn(slots()), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

TEST(EverySlotTable, HasARowForEverySlot) {
  std::set<size_t> rows;
  for (const Slot& slot : slots()) EXPECT_TRUE(rows.insert(slot.offset).second) << slot.name;
  for (size_t offset = 0; offset < offsetof(FolioKernels, precision); offset += sizeof(void*)) {
    EXPECT_EQ(rows.count(offset), 1U) << "slot " << offset / sizeof(void*) << " of kernels.h";
  }
}

}  // namespace
}  // namespace folio
