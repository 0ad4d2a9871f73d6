// Every operator of the registry, with inputs, types, shapes and attributes drawn at random, must
// end in an error that says something or in outputs that agree with what inference said of them.
//
// The asan lane runs this: what an operator reads or writes beside its tensors ends the test. Which
// attributes an operator reads, and of which type, it tells while it runs (set_attribute_hook): no
// list of them is kept. Wholly random draws take turns with samples.cc's, half of which are bent in
// one place. Each operator must take some draws, but for those that kOnlyRefused names.
// FOLIO_RANDOM_ROUNDS sets how many draws an operator gets (default 200), FOLIO_RANDOM_SEED gives
// others, FOLIO_RANDOM_OPERATOR names the only one to run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/properties/random_case.h"

namespace folio::properties {
namespace {

constexpr size_t kMaxBytes = 4 << 20;  // one allocation
constexpr int kMaxCalls = 50;          // of subgraphs, in one setting

bool allow(size_t bytes) { return bytes <= kMaxBytes; }

constexpr const char* kGraphNames[] = {"body",     "then_branch", "else_branch", "score_mod",
                                       "prob_mod", "decoder",     "encoder"};

// Operators that take no draw, and why.
struct Refusal {
  std::string_view domain, type, why;
};
constexpr Refusal kOnlyRefused[] = {
    {"com.microsoft", "BeamSearch", "its decoder subgraphs are whole language models"},
    {"com.microsoft", "GreedySearch", "its decoder subgraph is a whole language model"},
    {"com.microsoft", "Sampling", "its decoder subgraph is a whole language model"},
    {"com.microsoft", "WhisperBeamSearch", "its decoder subgraphs are whole language models"},
    {"folio", "Unpack", "its input is a packed weight: as many bytes as its attributes say"},
};

// Bodies that give their inputs back, as Loop's do that change nothing, or all but the first; of
// no inputs one number.
void draw_subgraphs(Draw& draw, bool all, int* calls, OpTester* t) {
  const size_t skipped = all ? 1 : static_cast<size_t>(draw.below(2));
  const auto types = [skipped](const std::vector<TypeInfo>& inputs) {
    const auto first = inputs.begin() + static_cast<int64_t>(std::min(skipped, inputs.size()));
    std::vector<TypeInfo> out(first, inputs.end());
    if (inputs.empty()) out.push_back(TypeInfo::tensor(DType::kFloat, Dims{}));
    return Result<std::vector<TypeInfo>>(std::move(out));
  };
  const auto run = [skipped, calls](Span<const Value> inputs, std::vector<Value>* outputs) {
    if (++*calls > kMaxCalls) return invalid_argument("enough calls");
    outputs->assign(inputs.begin() + std::min(skipped, inputs.size()), inputs.end());
    if (inputs.empty()) outputs->emplace_back(make_tensor<float>({}, {1.5F}));
    return Status::ok();
  };
  for (const char* name : kGraphNames) {
    if (all || !draw.one_in(4)) t->subgraph(name, types, run);
  }
}

// How many settings of one case ended in outputs.
int try_case(Attempt& attempt, std::string* refusal) {
  const Case& drawn = attempt.drawn;
  OpTester t(drawn.type, drawn.version, drawn.domain);
  for (const AttributeDef& attribute : drawn.attributes) t.attr(attribute);
  for (const Case::Input& input : drawn.inputs) {
    input.value.is_none() ? t.input_absent() : t.input_value(input.value);
  }
  int calls = 0;
  if (drawn.has_graphs || !attempt.must_run) {
    draw_subgraphs(attempt.draw, drawn.has_graphs, &calls, &t);
  }
  t.outputs(drawn.outputs);
  const int ran = t.survives();
  if (ran == 0) *refusal = t.refusal();
  return ran;
}

struct Outcome {
  int accepted = 0;
  std::string refusal;  // of the last sample that was refused as it is
};

Outcome try_operator(const OpDef& def, int rounds) {
  Outcome out;
  Attempts attempts(def, Numbers::kHostile);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(testing::Message()
                 << name_of(def.domain, def.type) << " since " << def.since << ", round " << round);
    Attempt attempt = attempts.next();
    SCOPED_TRACE(attempt.drawn.describe());
    std::string refusal;
    out.accepted += try_case(attempt, &refusal);
    if (attempt.must_run && !refusal.empty()) {
      out.refusal = attempt.drawn.describe() + ": " + refusal;
    }
  }
  return out;
}

bool is_only_refused(const OpDef& def) {
  return std::any_of(std::begin(kOnlyRefused), std::end(kOnlyRefused), [&](const Refusal& each) {
    return each.domain == def.domain && each.type == def.type;
  });
}

TEST(RandomOperators, EndInAnErrorOrInOutputsAsInferred) {
  const int rounds = env_number("FOLIO_RANDOM_ROUNDS", 200);
  const char* only = std::getenv("FOLIO_RANDOM_OPERATOR");
  set_allocation_hook(allow);
  size_t operators = 0;
  for (const OpDef& def : op_registry().all()) {
    if (only && def.type != only) continue;
    ++operators;
    const Outcome outcome = try_operator(def, rounds);
    if (only) std::printf("%s: %d of %d gave outputs\n", only, outcome.accepted, 4 * rounds);
    EXPECT_EQ(outcome.refusal, "") << "samples.cc has a setting that the operator refuses";
    if (rounds < 40) continue;
    EXPECT_EQ(outcome.accepted == 0, is_only_refused(def))
        << name_of(def.domain, def.type) << " since " << def.since << " took " << outcome.accepted
        << " of " << 4 * rounds << " settings: kOnlyRefused or samples.cc is not in step";
  }
  set_allocation_hook(nullptr);
  EXPECT_GT(operators, only ? 0U : 300U);
}

}  // namespace
}  // namespace folio::properties
