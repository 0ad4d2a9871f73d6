#include "core/session/wanted_files.h"

#include <algorithm>
#include <unordered_set>

namespace folio {
namespace {

// Ranges with less than that between them are one: a read of its own would cost more.
constexpr uint64_t kGap = uint64_t{64} << 10;

class Collector {
 public:
  explicit Collector(const FileWatch& watch) {
    for (Ref<const ByteSource>& file : watch.files()) files_.push_back({std::move(file), {}});
  }

  void add(const Program& program) {
    for (const Step& step : program.steps) {
      for (size_t i = 0; i < step.inputs.size(); ++i) add_input(program, step, i);
      for (const Subprogram& sub : step.subprograms) add(*sub.program);
    }
  }

  std::vector<WantedFile> take() {
    std::vector<WantedFile> out;
    for (WantedFile& file : files_) {
      if (!file.ranges.empty()) out.push_back(std::move(file));
    }
    return out;
  }

 private:
  void add_input(const Program& program, const Step& step, size_t i) {
    const WeightSlot* const slot = i < step.packed.size() ? step.packed[i] : nullptr;
    if (const PackedBlob* const blob = slot ? slot->peek() : nullptr) {
      add(blob->data(), blob->bytes());
      return;
    }
    const Operand input = step.inputs[i];
    if (!input.is_constant() || has_bit(step.picked_inputs, i)) return;
    const Value& value = program.constants[input.index()];
    if (value.is_tensor()) add(value.tensor().raw(), value.tensor().bytes());
  }

  void add(const uint8_t* data, uint64_t count) {
    if (count == 0 || !data || !seen_.insert(data).second) return;
    for (WantedFile& file : files_) {
      const Bytes bytes = file.file->bytes();
      const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
      const auto at = reinterpret_cast<uintptr_t>(data);
      if (at < begin || at - begin >= bytes.size()) continue;
      const uint64_t offset = at - begin;
      FileRange* const last = file.ranges.empty() ? nullptr : &file.ranges.back();
      const uint64_t end = last ? last->offset + last->count : 0;
      if (last && offset >= last->offset && offset <= end + kGap) {
        last->count = std::max(end, offset + count) - last->offset;
      } else {
        file.ranges.push_back({offset, count});
      }
      return;
    }
  }

  std::vector<WantedFile> files_;
  std::unordered_set<const uint8_t*> seen_;
};

}  // namespace

std::vector<WantedFile> wanted_files(const Program& program, const FileWatch& watch) {
  Collector collector(watch);
  collector.add(program);
  return collector.take();
}

}  // namespace folio
