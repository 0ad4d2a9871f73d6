// Every element type that ONNX, and ONNX Runtime's schemas of com.microsoft, allow for an
// operator's inputs (allowed_types.inc) is taken.
//
// For each type parameter of each version, the operator's samples (samples.cc; where it has none,
// inputs of floats [2,3]) are drawn with the inputs of that parameter in each of its types, and one
// of them must give outputs. kRefused names those that are not taken, and why. Doubles must give
// what floats give, which are theirs.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/base/text.h"
#include "tests/properties/random_case.h"
#include "tests/support/model_tester.h"

namespace folio::properties {
namespace {

struct Allowed {
  std::string_view domain, type;
  int since;
  std::string_view parameter, inputs, dtypes;

  bool has_input(size_t i) const {
    bool found = false;
    each_part(inputs, ',', [&](std::string_view text) {
      const bool and_more = text.back() == '+';
      if (and_more) text.remove_suffix(1);
      size_t at = 0;
      std::from_chars(text.data(), text.data() + text.size(), at);
      found |= at == i || (and_more && at < i);
    });
    return found;
  }
};
constexpr Allowed kAllowed[] = {
#include "tests/properties/allowed_types.inc"
};

struct Refused {
  std::string_view domain, type, parameter, dtypes, why;
};
constexpr std::string_view kNarrow = "elements of 2 and 4 bits are for Cast and quantization";
constexpr Refused kRefused[] = {
    {"", "Col2Im", "T", "bool str c64 c128",
     "sums of flags and strings mean nothing; nobody sums complex numbers"},
    {"", "Unique", "T", "c64 c128", "complex numbers have no order"},
    {"", "QLinearMatMul", "T1", "f8 f8z f8b f8bz", "float8 is for Cast and quantization"},
    {"", "QLinearMatMul", "T2", "f8 f8z f8b f8bz", "float8 is for Cast and quantization"},
    {"", "QLinearMatMul", "T3", "f8 f8z f8b f8bz", "float8 is for Cast and quantization"},
    {"", "Scan", "V", "i4 u4 i2 u2 f4", kNarrow},
    {"", "Scan", "I", "i64", "of version 8, whose bodies this test does not have"},
    {"com.microsoft", "FusedGemm", "T", "i32 u32 i64 u64", "its functions are of floats"},
    {"com.microsoft", "GroupQueryAttention", "T_CACHE", "f8", "caches of float8 are refused"},
    {"com.microsoft", "GroupQueryAttention", "T_CACHE", "f16 bf16",
     "beside queries of floats, which the samples have: one type for both"},
    {"com.microsoft", "QMoE", "T1", "f8", "weights are codes of 2 to 8 bits"},
    {"com.microsoft", "QMoE", "T2", "f8s f8", "of weights of float4 and float8"},
    {"com.microsoft", "Unique", "T", "c64 c128", "complex numbers have no order"},
    {"", "TensorScatter", "T", "i4 u4 i2 u2 f4", kNarrow},
};

bool lists(std::string_view dtypes, std::string_view dtype) {
  bool found = false;
  each_part(dtypes, ' ', [&](std::string_view each) { found |= each == dtype; });
  return found;
}

const Refused* refused(const Allowed& row, std::string_view dtype) {
  for (const Refused& each : kRefused) {
    if (each.domain == row.domain && each.type == row.type && each.parameter == row.parameter &&
        lists(each.dtypes, dtype)) {
      return &each;
    }
  }
  return nullptr;
}

// The same numbers in another type, as Cast gives them; others where Cast has none.
Tensor converted(const Tensor& from, DType dtype, Draw& draw) {
  if (from.dtype() == dtype) return from;
  Recipe cast;
  cast.op_type = "Cast";
  cast.version = kNewestOpset;
  cast.attributes.set(int_attribute("to", static_cast<int64_t>(dtype)));
  auto input = make_ref<Initializer>();
  input->dtype = from.dtype();
  input->shape = from.shape();
  input->tensor = from;
  cast.inputs = {input};
  auto outputs = evaluate_outputs(test_evaluator(), cast);
  if (outputs.is_ok()) return outputs.value()[0].tensor();
  return draw.tensor(dtype, from.shape());
}

Value converted(const Value& from, DType dtype, Draw& draw) {
  if (from.is_tensor()) return Value(converted(from.tensor(), dtype, draw));
  if (from.kind() != Value::Kind::kSequence) return from;
  std::vector<Value> elements;
  for (const Value& each : from.sequence().elements) {
    elements.push_back(converted(each, dtype, draw));
  }
  return make_sequence(dtype, std::move(elements));
}

// Whether one of the samples gives outputs with the parameter's inputs in this type; else why not.
class Trial {
 public:
  Trial(const OpDef& def, const Allowed& row, int version)
      : row_(row), version_(version), samples_(samples_of(def)) {
    std::erase_if(samples_,
                  [&](const Sample& each) { return each.since > version || each.until < version; });
    if (!samples_.empty()) return;
    for (int i = 0; i < std::min(std::max(def.min_inputs, 1), 4); ++i) {
      inputs_ += i == 0 ? "f32[2,3]" : "; f32[2,3]";
    }
    samples_.push_back({def.domain, def.type, version, version, def.min_outputs, "", inputs_});
    samples_.back().outputs = std::max(1, def.min_outputs);
  }

  bool takes(DType dtype, std::string* why) {
    bool any = false;
    for (int round = 0; round < kRounds; ++round) {
      for (const Sample& sample : samples_) {
        Draw draw(static_cast<uint64_t>(round) * 977 + static_cast<uint64_t>(dtype),
                  Numbers::kTame);
        Case drawn = case_of(sample, draw);
        if (!convert(dtype, &drawn, draw)) continue;
        any = true;
        if (runs(drawn, why)) return true;
      }
    }
    if (!any) why->clear();  // no sample has such an input
    return !any;
  }

  // The parameter's inputs as floats, and the same numbers as doubles; gives how many were
  // compared.
  int compare_doubles() {
    int compared = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (const Sample& sample : samples_) {
        Draw draw(static_cast<uint64_t>(round) * 977, Numbers::kTame);
        Case floats = case_of(sample, draw);
        if (!convert(DType::kFloat, &floats, draw)) continue;
        Case doubles = floats;
        convert(DType::kDouble, &doubles, draw);
        OpTester a(floats.type, version_, floats.domain);
        OpTester b(floats.type, version_, floats.domain);
        fill(floats, &a);
        fill(doubles, &b);
        if (a.survives() != 4 || b.survives() != 4) continue;
        ++compared;
        for (int i = 0; i < floats.outputs; ++i) {
          expect_near(b.output(i), a.output(i), cat(floats.describe(), ", output ", i));
        }
      }
    }
    return compared;
  }

 private:
  static constexpr int kRounds = 16;

  bool convert(DType dtype, Case* drawn, Draw& draw) const {
    bool any = false;
    for (size_t i = 0; i < drawn->inputs.size(); ++i) {
      const bool is_other = drawn->type == "SequenceInsert" && i < 2;  // S holds T
      if ((!row_.has_input(i) && !is_other) || drawn->inputs[i].value.is_none()) continue;
      drawn->inputs[i].value = converted(drawn->inputs[i].value, dtype, draw);
      any = true;
    }
    return any;
  }

  bool runs(const Case& drawn, std::string* why) const {
    OpTester t(drawn.type, version_, drawn.domain);
    fill(drawn, &t);
    if (t.survives() == 4) return true;
    *why = drawn.describe() + ": " + t.refusal();
    return false;
  }

  void fill(const Case& drawn, OpTester* to) const {
    OpTester& t = *to;
    for (const AttributeDef& attribute : drawn.attributes) t.attr(attribute);
    for (const Case::Input& input : drawn.inputs) {
      input.value.is_none() ? t.input_absent() : t.input_value(input.value);
    }
    if (drawn.has_graphs) {
      for (const char* name : {"body", "then_branch", "else_branch"}) {
        t.subgraph(name, types_of_inputs, give_back);
      }
    }
    t.outputs(drawn.outputs);
  }

  static void expect_near(const Value& got, const Value& floats, const std::string& where) {
    if (!got.is_tensor() || !floats.is_tensor() || !dtype_is_float(got.tensor().dtype())) return;
    Draw draw(0);
    const Tensor a = converted(got.tensor(), DType::kDouble, draw);
    const Tensor b = converted(floats.tensor(), DType::kDouble, draw);
    ASSERT_EQ(a.shape(), b.shape()) << where;
    for (int64_t i = 0; i < a.count(); ++i) {
      const double expected = b.data<double>()[i];
      if (a.data<double>()[i] == expected || std::isnan(expected)) continue;
      ASSERT_NEAR(a.data<double>()[i], expected, 1e-4 * (1 + std::abs(expected)))
          << where << ", element " << i;
    }
  }

  // Bodies that give all inputs but the first back; of no inputs one number.
  static Result<std::vector<TypeInfo>> types_of_inputs(const std::vector<TypeInfo>& inputs) {
    std::vector<TypeInfo> out;
    for (size_t i = 1; i < inputs.size(); ++i) out.push_back(inputs[i]);
    if (inputs.empty()) out.push_back(TypeInfo::tensor(DType::kFloat, Dims{}));
    return out;
  }
  static Status give_back(Span<const Value> inputs, std::vector<Value>* outputs) {
    outputs->clear();
    for (size_t i = 1; i < inputs.size(); ++i) outputs->push_back(inputs[i]);
    if (inputs.empty()) outputs->emplace_back(make_tensor<float>({}, {1.5F}));
    return Status::ok();
  }

  const Allowed& row_;
  int version_;
  std::string inputs_;
  std::vector<Sample> samples_;
};

// A version that the row and the definition share, if it can be one that samples have; 0: none.
int version_of(const OpDef& def, const Allowed& row) {
  int next = def.domain.empty() ? kNewestOpset + 1 : kLatest;
  for (const Allowed& other : kAllowed) {
    if (other.domain == row.domain && other.type == row.type && other.since > row.since) {
      next = std::min(next, other.since);
    }
  }
  const int first = std::max(row.since, def.since);
  const int last = std::min(next - 1, def.until);
  if (first > last) return 0;
  int best = 0;
  for (const Sample& sample : samples_of(def)) {
    const int from = std::max(first, sample.since);
    if (from <= std::min(last, sample.until) && (best == 0 || from < best)) best = from;
  }
  return best == 0 ? last : best;
}

TEST(AllowedTypes, AreAllTaken) {
  const char* only = std::getenv("FOLIO_RANDOM_OPERATOR");
  int taken = 0;
  for (const OpDef& def : op_registry().all()) {
    for (const Allowed& row : kAllowed) {
      if (row.domain != def.domain || row.type != def.type || (only && row.type != only)) continue;
      const int version = version_of(def, row);
      if (version == 0) continue;
      Trial trial(def, row, version);
      each_part(row.dtypes, ' ', [&](std::string_view dtype) {
        std::string why;
        const bool takes = trial.takes(type_named(dtype), &why);
        taken += takes ? 1 : 0;
        if (const Refused* known = refused(row, dtype)) {
          EXPECT_FALSE(takes) << "kRefused has " << row.type << " " << row.parameter << " " << dtype
                              << ": " << known->why;
          return;
        }
        EXPECT_TRUE(takes) << name_of(def.domain, def.type) << " " << version << " refuses "
                           << row.parameter << " = " << dtype << ": " << why;
      });
    }
  }
  EXPECT_GT(taken, only ? 0 : 3000);
}

// Random numbers are another stream for each type.
bool is_random(std::string_view type) {
  return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial";
}

TEST(AllowedTypes, DoublesGiveWhatFloatsGive) {
  const char* only = std::getenv("FOLIO_RANDOM_OPERATOR");
  int compared = 0;
  for (const OpDef& def : op_registry().all()) {
    for (const Allowed& row : kAllowed) {
      if (row.domain != def.domain || row.type != def.type || (only && row.type != only)) continue;
      const int version = version_of(def, row);
      if (version == 0 || is_random(row.type) || !lists(row.dtypes, "f32") ||
          !lists(row.dtypes, "f64")) {
        continue;
      }
      SCOPED_TRACE(cat(row.type, " ", version, " ", row.parameter));
      compared += Trial(def, row, version).compare_doubles();
    }
  }
  EXPECT_GT(compared, only ? 0 : 2000);
}

}  // namespace
}  // namespace folio::properties
