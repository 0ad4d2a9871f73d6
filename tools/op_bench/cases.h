// What the families of cases are made with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/op_bench/families.h"

namespace op_bench {

using Dims = OneNode::Dims;

inline constexpr ElementType kF32 = ElementType::kFloat;
inline constexpr ElementType kF16 = ElementType::kFloat16;
inline constexpr ElementType kF64 = ElementType::kDouble;
inline constexpr ElementType kI64 = ElementType::kInt64;
inline constexpr ElementType kS32 = ElementType::kInt32;
inline constexpr ElementType kS8 = ElementType::kInt8;
inline constexpr ElementType kU8 = ElementType::kUint8;
inline constexpr ElementType kBool = ElementType::kBool;

inline std::string text_of(const Dims& dims) {
  std::string text;
  for (const int64_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

// The families fill it. A node is made twice: its name now, its model when it is run.
class Cases {
 public:
  explicit Cases(std::string family) : family_(std::move(family)) {}

  template <typename Fill>
  void add(const std::string& name, const std::string& op_type, const char* domain, Fill fill) {
    const std::string family = family_;
    list_.push_back({family + "/" + op_type + "/" + name, [=] {
                       OneNode node(family, name, op_type, domain);
                       fill(node);
                       return node.done();
                     }});
  }
  std::vector<NamedCase> take() { return std::move(list_); }

 private:
  std::string family_;
  std::vector<NamedCase> list_;
};

// Numbers of other types than float: types.cc.
std::vector<NamedCase> types();

}  // namespace op_bench
