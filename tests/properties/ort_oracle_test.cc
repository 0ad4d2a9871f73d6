// What operators compute of random cases is what ONNX Runtime computes of them: same types, shapes
// and elements, and what one takes the other takes, but for the differences that kDifferences
// names.
//
// FOLIO_PROPERTIES_ORT names ONNX Runtime's library (ort_oracle_test.py gets it from npm); without
// it the test is skipped. FOLIO_RANDOM_OPERATOR names the only operator to run, FOLIO_RANDOM_ROUNDS
// how many cases it gets (default 24).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/properties/one_node.h"
#include "tests/properties/ort_compare.h"
#include "tests/properties/ort_library.h"
#include "tests/properties/random_case.h"

namespace folio::properties {
namespace {

// ---------------------------------------------------------------- what differs, and why

enum class Difference { kOrtRefuses, kFolioRefuses, kResult };

struct Known {
  Difference difference;
  std::string_view domain, type;
  std::string_view said;  // part of what was said; "": whatever it is
  std::string_view why;
  bool is_steady = true;  // met in every run, on every machine
};
const std::vector<Known> kDifferences = {
#include "tests/properties/ort_differences.inc"
};

// Operators of which no case is compared, and why.
struct NeverCompared {
  std::string_view name, why;
};
constexpr NeverCompared kNeverCompared[] = {
    {"If", "cases have no graphs; folio test compares control flow with ONNX's data"},
    {"Loop", "the same"},
    {"Scan", "the same"},
    {"SequenceMap", "the same"},
    {"com.microsoft.BeamSearch", "the same; ort_generation_test.cc compares texts"},
    {"com.microsoft.GreedySearch", "the same; and behind an end token it leaves memory as it was"},
    {"com.microsoft.Sampling", "the same"},
    {"com.microsoft.WhisperBeamSearch", "the same; ort_generation_test.cc compares texts"},
    {"SwiGLU", "ONNX Runtime 1.30 does not have it"},
    {"Swish", "the same"},
    {"ai.onnx.preview.FlexAttention", "the same"},
    {"ai.onnx.preview.training.Adagrad", "the same"},
    {"ai.onnx.preview.training.Adam", "the same"},
    {"ai.onnx.preview.training.Momentum", "the same"},
    {"com.microsoft.BiasAdd", "ONNX Runtime's CPU has no kernel"},
    {"com.microsoft.BiasSplitGelu", "the same"},
    {"com.microsoft.Irfft", "the same"},
    {"com.microsoft.QLinearReduceMean", "the same"},
    {"com.microsoft.Rfft", "the same"},
};

// Operators that end the process in ONNX Runtime when a case is not one of samples.cc: random
// numbers of a spread that is not positive, or between ends in the wrong order, abort; an exception
// of Reshape, depending on what stood in memory, leaves its C function.
constexpr std::string_view kOrtCrashes[] = {"RandomNormal", "RandomNormalLike", "RandomUniform",
                                            "RandomUniformLike", "Reshape"};

// Those that end it when one of many inputs is left out.
constexpr std::string_view kOrtCrashesOnGaps[] = {"Max", "Min"};

template <size_t kCount>
bool is_among(const std::string_view (&types)[kCount], std::string_view type) {
  return std::count(std::begin(types), std::end(types), type) > 0;
}

bool ends_ort(const Case& drawn) {
  const auto is_absent = [](const Case::Input& input) { return input.value.is_none(); };
  return is_among(kOrtCrashes, drawn.type) ||
         (is_among(kOrtCrashesOnGaps, drawn.type) &&
          std::any_of(drawn.inputs.begin(), drawn.inputs.end(), is_absent));
}

// Operators that multiply unsigned and signed bytes; see OrtLibrary::saturates_bytes().
constexpr std::string_view kByteProducts[] = {
    "ConvInteger",   "DynamicQuantizeLSTM",  "DynamicQuantizeMatMul",
    "MatMulInteger", "MatMulIntegerToFloat", "QAttention",
    "QGemm",         "QLinearConv",          "QLinearMatMul"};

bool multiplies_signed_bytes(const Case& drawn) {
  return is_among(kByteProducts, drawn.type) &&
         std::any_of(drawn.inputs.begin(), drawn.inputs.end(), [](const Case::Input& input) {
           return input.value.is_tensor() && input.value.tensor().dtype() == DType::kInt8;
         });
}

// Of each output the input whose memory ONNX Runtime wants it to have.
std::vector<int> in_place(const Case& drawn) {
  constexpr size_t kInputs = 9;  // the caches are behind queries, keys and values, which may lack
  if (drawn.type != "SparseAttention" || drawn.outputs < 3 || drawn.inputs.size() < kInputs)
    return {};
  int caches = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (!drawn.inputs[i].value.is_none() && !drawn.inputs[i].constant) ++caches;
  }
  const bool given = !drawn.inputs[3].value.is_none() && !drawn.inputs[4].value.is_none() &&
                     !drawn.inputs[3].constant && !drawn.inputs[4].constant;
  return given ? std::vector<int>{-1, caches, caches + 1} : std::vector<int>{};
}

OrtOutcome run_folio(const OneNode& model) {
  OrtOutcome out;
  const Status status = run_one(model, &out.outputs);
  if (!status.is_ok()) out.error = status.message();
  return out;
}

// ---------------------------------------------------------------- the comparison

class Comparison {
 public:
  explicit Comparison(const OrtLibrary& ort) : ort_(ort), ort_saturates_(ort.saturates_bytes()) {}

  // True when both gave outputs.
  bool compare(const Case& drawn, bool must_run) {
    const OneNode model = model_of(drawn);
    const OrtOutcome folio = run_folio(model);
    if (must_run && !folio.error.empty()) {
      ADD_FAILURE() << drawn.describe()
                    << ": Folio refuses a setting of samples.cc: " << folio.error;
    }
    const OrtOutcome ort = ort_.run(model.bytes, model.inputs, model.outputs, in_place(drawn));
    if (!folio.error.empty() && !ort.error.empty()) return false;
    if (!folio.error.empty()) {
      note(Difference::kFolioRefuses, drawn, folio.error);
    } else if (!ort.error.empty()) {
      note(Difference::kOrtRefuses, drawn, ort.error);
    } else {
      const bool is_oracle = !ort_saturates_ || !multiplies_signed_bytes(drawn);
      const std::string found = is_oracle ? first_difference(folio, ort) : "";
      if (!found.empty()) note(Difference::kResult, drawn, found);
      return true;
    }
    return false;
  }

  void expect_all_met() const {
    for (size_t i = 0; i < kDifferences.size(); ++i) {
      const Known& known = kDifferences[i];
      EXPECT_TRUE(met_.contains(i) || !known.is_steady)
          << known.domain << "." << known.type << " '" << known.said
          << "' differs no more: ort_differences.inc is not in step";
    }
  }

 private:
  void note(Difference difference, const Case& drawn, const std::string& said) {
    const std::string text = drawn.describe() + ": " + said;
    for (size_t i = 0; i < kDifferences.size(); ++i) {
      const Known& known = kDifferences[i];
      const bool of_all = known.type == "*";
      if (known.difference == difference &&
          (of_all || (known.domain == drawn.domain && known.type == drawn.type)) &&
          text.find(known.said) != std::string::npos) {
        met_.insert(i);
        return;
      }
    }
    constexpr std::string_view kWords[] = {"ORT refuses", "Folio refuses", "results differ"};
    ADD_FAILURE() << kWords[static_cast<size_t>(difference)] << ": " << text;
  }

  const OrtLibrary& ort_;
  const bool ort_saturates_;
  std::set<size_t> met_;  // of kDifferences
};

TEST(OrtOracle, GivesTheSameResults) {
  const char* path = std::getenv("FOLIO_PROPERTIES_ORT");
  if (!path) GTEST_SKIP() << "FOLIO_PROPERTIES_ORT does not name ONNX Runtime's library";
  const int rounds = env_number("FOLIO_RANDOM_ROUNDS", 24);
  const char* only = std::getenv("FOLIO_RANDOM_OPERATOR");
  const std::unique_ptr<OrtLibrary> ort = OrtLibrary::open(path);
  ASSERT_NE(ort, nullptr);
  Comparison comparison(*ort);
  int compared = 0;
  std::map<std::string, int> runs_of;
  for (const OpDef& def : op_registry().all()) {
    if ((only && def.type != only) || def.domain.starts_with("folio")) continue;
    if (std::getenv("FOLIO_RANDOM_TRACE")) {
      std::fprintf(stderr, "%s since %d\n", name_of(def.domain, def.type).c_str(), def.since);
    }
    Attempts attempts(def, Numbers::kTame);
    int runs = 0;
    for (int round = 0; round < rounds; ++round) {
      const Attempt attempt = attempts.next();
      if (attempt.drawn.has_graphs || (!attempt.must_run && ends_ort(attempt.drawn))) continue;
      if (only && std::getenv("FOLIO_RANDOM_TRACE")) {
        std::fprintf(stderr, "  %s\n", attempt.drawn.describe().c_str());
      }
      if (comparison.compare(attempt.drawn, attempt.must_run)) ++runs;
    }
    compared += runs;
    runs_of[name_of(def.domain, def.type)] += runs;
    if (only) std::printf("%s: %d of %d compared\n", only, runs, rounds);
  }
  std::printf("%d cases compared with ONNX Runtime %s\n", compared, ort->version().c_str());
  if (only || rounds != 24) return;
  comparison.expect_all_met();
  std::set<std::string> never;
  for (const auto& [name, runs] : runs_of) {
    if (runs == 0) never.insert(name);
  }
  for (const std::string& name : never) {
    const bool known = std::any_of(std::begin(kNeverCompared), std::end(kNeverCompared),
                                   [&](const NeverCompared& each) { return each.name == name; });
    EXPECT_TRUE(known) << name << " is never compared";
  }
  EXPECT_EQ(never.size(), std::size(kNeverCompared)) << "kNeverCompared names too many";
}

}  // namespace
}  // namespace folio::properties
