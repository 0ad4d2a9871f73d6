// Draw: what the property tests draw at random; Case: one node with its inputs; Sample: a line of
// text from which cases that fit an operator are drawn.
//
// Flow:    a test draws a Case, wholly at random or from a Sample, and gives it to OpTester or
//          makes a model of it.
// Threads: one.
#pragma once

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_def.h"
#include "tests/support/op_tester.h"

namespace folio::properties {

enum class Numbers { kTame, kHostile };  // hostile: some that break sums, products and indices

class Draw {
 public:
  explicit Draw(uint64_t seed, Numbers numbers = Numbers::kHostile)
      : random_(seed), hostile_(numbers == Numbers::kHostile) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <typename List>
  auto& of(const List& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(std::size(list))))];
  }

  int64_t number();  // mostly what fits small tensors
  double real();
  std::string text();
  std::vector<int64_t> numbers(int64_t most);
  Shape shape();
  DType dtype();
  Tensor tensor(DType dtype, const Shape& shape);
  AttributeDef attribute(std::string name, AttributeDef::Type type);

 private:
  int64_t dim();

  std::mt19937_64 random_;
  bool hostile_;
};

struct Case {
  struct Input {
    Value value;  // none: absent
    bool constant = false;
  };

  std::string domain;
  std::string type;
  int version = 1;
  std::vector<AttributeDef> attributes;
  std::vector<Input> inputs;
  int outputs = 1;
  bool has_graphs = false;

  std::string describe() const;  // "com.microsoft.Gelu 1 (alpha=0.5; float[2,3], absent)"
};

// A setting that an operator takes. All letters stand for numbers from 1 to 4, drawn anew for each
// case; a number is a sum of products of numbers and letters (2*h+1).
//
//   attributes   name=value, with spaces between; value: a number, 0.5, 'text', a list of these in
//                brackets, or @ and a tensor; a|b is one of them; a ? behind it: there or not.
//                The word graphs: all graph attributes are there
//   inputs       type[dims], with ; between: a type (f32, i64 ...), or a class of them, an upper
//                case letter (and a digit) for which all that name it have the same one.
//                {1,2} behind it: these elements; <a,b>: integers, or floats, of a <= x < b;
//                = before it: a constant; ? behind it: there or not; seq(...): a sequence;
//                nothing: absent
struct Sample {
  std::string_view domain;
  std::string_view type;
  int since;  // the versions from which the case's is drawn
  int until;
  int outputs;
  std::string_view attributes;
  std::string_view inputs;
};

// Of every operator whose wholly random draws fit too rarely.
Span<const Sample> samples();

Case case_of(const Sample& sample, Draw& draw);

// "f32", "i4" ...: a type as samples name it; kUndefined: none.
DType type_named(std::string_view name);

}  // namespace folio::properties
