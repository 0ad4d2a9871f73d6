// Every operator of the registry, with inputs, types, shapes and attributes drawn at random, must
// end in an error that says something or in outputs that agree with what inference said of them.
//
// The asan lane runs this: what an operator reads or writes beside its tensors ends the test. Most
// draws are refused; attributes and shapes are drawn so that each operator also accepts some.
// FOLIO_RANDOM_ROUNDS sets how many draws an operator gets (default 40), FOLIO_RANDOM_OPERATOR
// names the only one to run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr size_t kMaxBytes = 4 << 20;  // one allocation
constexpr int kMaxCalls = 50;          // of subgraphs, in one setting

bool allow(size_t bytes) { return bytes <= kMaxBytes; }

// What operators ask for. A name has one kind, and sometimes another than its operator wants.
constexpr const char* kIntNames[] = {"K",
                                     "N",
                                     "accuracy_level",
                                     "align_corners",
                                     "allowzero",
                                     "antialias",
                                     "axis",
                                     "batch_axis",
                                     "batch_dims",
                                     "bits",
                                     "block_size",
                                     "blocksize",
                                     "broadcast",
                                     "ceil_mode",
                                     "center_point_box",
                                     "channels_last",
                                     "count_include_pad",
                                     "do_rotary",
                                     "dtype",
                                     "end",
                                     "exclude_outside",
                                     "exclusive",
                                     "fmod",
                                     "group",
                                     "hidden_size",
                                     "ignore_index",
                                     "interleaved",
                                     "inverse",
                                     "is_causal",
                                     "is_test",
                                     "k",
                                     "keepdims",
                                     "kv_num_heads",
                                     "largest",
                                     "layout",
                                     "linear_before_reset",
                                     "local_window_size",
                                     "max_gram_length",
                                     "max_skip_count",
                                     "min_gram_length",
                                     "n_targets",
                                     "ndim",
                                     "new_axis",
                                     "noop_with_empty_axes",
                                     "num_groups",
                                     "num_heads",
                                     "num_outputs",
                                     "num_scan_inputs",
                                     "offset_group",
                                     "onesided",
                                     "output_dtype",
                                     "output_height",
                                     "output_width",
                                     "p",
                                     "periodic",
                                     "q_num_heads",
                                     "qk_matmul_output_mode",
                                     "quant_type",
                                     "quantize_axis",
                                     "reverse",
                                     "rotary_embedding_dim",
                                     "sample_size",
                                     "sampling_ratio",
                                     "saturate",
                                     "select_last_index",
                                     "size",
                                     "softmax_precision",
                                     "sorted",
                                     "start",
                                     "storage_order",
                                     "time_axis",
                                     "to",
                                     "training_mode",
                                     "transA",
                                     "transB",
                                     "transBatchA",
                                     "transBatchB",
                                     "unidirectional",
                                     "upper",
                                     "vocab_size"};
constexpr const char* kListNames[] = {"axes",
                                      "dilations",
                                      "ends",
                                      "inputdimensions",
                                      "kernel_shape",
                                      "leaf_targetids",
                                      "ngram_counts",
                                      "ngram_indexes",
                                      "nodes_falsenodeids",
                                      "nodes_featureids",
                                      "nodes_nodeids",
                                      "nodes_treeids",
                                      "nodes_truenodeids",
                                      "output_padding",
                                      "output_shape",
                                      "pads",
                                      "perm",
                                      "pool_int64s",
                                      "qkv_hidden_sizes",
                                      "scan_input_axes",
                                      "scan_input_directions",
                                      "scan_output_axes",
                                      "shape",
                                      "split",
                                      "starts",
                                      "strides",
                                      "tree_roots",
                                      "vectors_per_class"};
constexpr const char* kFloatNames[] = {
    "alpha", "beta", "bias",    "epsilon",       "high",     "lambd",
    "low",   "max",  "mean",    "min",           "momentum", "norm_coefficient",
    "scale", "seed", "softcap", "spatial_scale", "value"};
constexpr const char* kFloatListNames[] = {
    "activation_alpha", "coefficients", "intercepts", "offset", "rho", "scales", "support_vectors"};
constexpr const char* kTextNames[] = {
    "activation",     "approximate", "auto_pad",           "coordinate_transformation_mode",
    "direction",      "equation",    "interpolation_mode", "mode",
    "nearest_mode",   "norm",        "padding_mode",       "pattern",
    "post_transform", "reduction",   "round_mode"};
constexpr const char* kTexts[] = {"",           "NOTSET",     "SAME_UPPER",
                                  "SAME_LOWER", "VALID",      "nearest",
                                  "linear",     "cubic",      "bilinear",
                                  "constant",   "reflect",    "edge",
                                  "wrap",       "zeros",      "border",
                                  "half_pixel", "asymmetric", "align_corners",
                                  "forward",    "reverse",    "bidirectional",
                                  "none",       "add",        "mul",
                                  "max",        "min",        "sum",
                                  "mean",       "tanh",       "Relu",
                                  "DCR",        "CRD",        "L1",
                                  "MAX",        "TFIDF",      "NONE",
                                  "LOGISTIC",   "SOFTMAX",    "standard",
                                  "nesterov",   "gelu",       "silu",
                                  "avg",        "lp",         "ij,jk->ik",
                                  "ii",         "...i->...",  "[a-z]+",
                                  "up"};
constexpr const char* kGraphNames[] = {"body",     "then_branch", "else_branch", "score_mod",
                                       "prob_mod", "decoder",     "encoder"};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <typename T, size_t kCount>
  const T& of(const T (&list)[kCount]) {
    return list[static_cast<size_t>(below(kCount))];
  }

  // Mostly what fits small tensors; one in 32 what breaks sums and products.
  int64_t number() {
    constexpr int64_t kHostile[] = {std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    int64_t{1} << 31,
                                    -(int64_t{1} << 31) - 1,
                                    (int64_t{1} << 62) + 1,
                                    100000,
                                    -7};
    if (one_in(32)) return of(kHostile);
    return one_in(6) ? -1 - below(3) : below(5);
  }
  double real() {
    constexpr double kHostile[] = {std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN(),
                                   1e30,
                                   -1e300,
                                   1e-40};
    if (one_in(16)) return of(kHostile);
    return static_cast<double>(below(65) - 32) / 16;
  }
  std::vector<int64_t> numbers(int64_t most) {
    std::vector<int64_t> out(static_cast<size_t>(below(most + 1)));
    for (int64_t& each : out) each = number();
    return out;
  }
  Shape shape() {
    Shape out;
    for (int64_t rank = below(6); rank > 0; --rank) out.push_back(dim());
    return out;
  }
  DType dtype() {
    constexpr DType kCommon[] = {DType::kFloat, DType::kFloat, DType::kInt64, DType::kInt32,
                                 DType::kBool,  DType::kUint8, DType::kInt8};
    return one_in(3) ? static_cast<DType>(1 + below(kDTypeCount - 1)) : of(kCommon);
  }
  Tensor tensor(DType dtype, const Shape& shape) {
    Tensor out = allocate_tensor(dtype, shape).take();
    if (out.is_string()) {
      for (int64_t i = 0; i < out.count(); ++i) out.data_mut<std::string>()[i] = of(kTexts);
    } else if (dtype_is_float(dtype)) {
      std::vector<double> values(static_cast<size_t>(out.count()));
      for (double& value : values) value = real();
      return make_float_tensor(dtype, shape, values);
    } else if (dtype == DType::kInt64 || dtype == DType::kInt32) {
      for (int64_t i = 0; i < out.count(); ++i) {
        if (dtype == DType::kInt64) {
          out.data_mut<int64_t>()[i] = number();
        } else {
          out.data_mut<int32_t>()[i] = static_cast<int32_t>(number());
        }
      }
    } else {
      const int64_t bound = dtype == DType::kBool ? 2 : one_in(2) ? 5 : 256;
      for (size_t i = 0; i < out.bytes(); ++i)
        out.raw_mut()[i] = static_cast<uint8_t>(below(bound));
    }
    return out;
  }

 private:
  int64_t dim() {
    constexpr int64_t kDims[] = {0, 1, 1, 2, 2, 3, 4, 4, 5, 7};
    return of(kDims);
  }

  std::mt19937_64 random_;
};

// An operator's inputs often agree in type and shape; so do most of these.
void draw_inputs(Draw& draw, int count, OpTester* t) {
  const DType main = draw.dtype();
  const Shape base = draw.shape();
  for (int i = 0; i < count; ++i) {
    if (i > 0 && draw.one_in(12)) {
      t->input_absent();
      continue;
    }
    const DType dtype = draw.one_in(3) ? draw.dtype() : main;
    Shape shape = base;
    if (draw.one_in(3)) shape = draw.shape();
    if (draw.one_in(4)) shape = draw.one_in(3) ? Shape{} : Shape{draw.below(5)};
    Value value(draw.tensor(dtype, shape));
    t->input_value(draw.one_in(16) ? make_sequence(dtype, {value}) : std::move(value));
  }
}

void draw_attributes(Draw& draw, OpTester* t) {
  const int64_t rare = 1 + draw.below(4);  // one in so many is there
  for (const char* name : kIntNames) {
    if (draw.one_in(rare)) t->attr(name, draw.number());
  }
  for (const char* name : kListNames) {
    if (draw.one_in(rare)) t->attr_ints(name, draw.numbers(5));
  }
  for (const char* name : kFloatNames) {
    if (draw.one_in(rare)) t->attr(name, static_cast<float>(draw.real()));
  }
  for (const char* name : kFloatListNames) {
    if (!draw.one_in(rare)) continue;
    std::vector<float> values(static_cast<size_t>(draw.below(5)));
    for (float& value : values) value = static_cast<float>(draw.real());
    t->attr_floats(name, values);
  }
  for (const char* name : kTextNames) {
    if (draw.one_in(rare)) t->attr(name, draw.of(kTexts));
  }
  if (draw.one_in(8)) t->attr(draw.of(kIntNames), "no number");
}

// Bodies that give their inputs back, as Loop's do that change nothing.
void draw_subgraphs(Draw& draw, int* calls, OpTester* t) {
  const int64_t skipped = draw.below(2);
  const auto types = [skipped](const std::vector<TypeInfo>& inputs) {
    const auto first =
        inputs.begin() + std::min<int64_t>(skipped, static_cast<int64_t>(inputs.size()));
    return Result<std::vector<TypeInfo>>(std::vector<TypeInfo>(first, inputs.end()));
  };
  const auto run = [skipped, calls](Span<const Value> inputs, std::vector<Value>* outputs) {
    if (++*calls > kMaxCalls) return invalid_argument("enough calls");
    const auto first = std::min<size_t>(static_cast<size_t>(skipped), inputs.size());
    outputs->assign(inputs.begin() + first, inputs.end());
    return Status::ok();
  };
  for (const char* name : kGraphNames) {
    if (!draw.one_in(4)) t->subgraph(name, types, run);
  }
}

uint64_t seed_of(const OpDef& def, int round) {
  uint64_t seed = static_cast<uint64_t>(round) * 1000003 + static_cast<uint64_t>(def.since);
  for (const char c : std::string(def.domain) + "." + std::string(def.type)) {
    seed = seed * 131 + static_cast<uint8_t>(c);
  }
  return seed;
}

// How many settings of one draw ended in outputs.
int try_one(const OpDef& def, int round) {
  Draw draw(seed_of(def, round));
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(draw.below(std::min(most - least, 4) + 1));
  };
  const int newest = std::max(def.since, std::min(def.until, kNewestOpset));
  const int version = def.since + static_cast<int>(draw.below(newest - def.since + 1));
  OpTester t(std::string(def.type), version, std::string(def.domain));
  draw_inputs(draw, between(def.min_inputs, def.max_inputs), &t);
  draw_attributes(draw, &t);
  int calls = 0;
  draw_subgraphs(draw, &calls, &t);
  t.outputs(between(def.min_outputs, def.max_outputs));
  return t.survives();
}

int env_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

TEST(RandomOperators, EndInAnErrorOrInOutputsAsInferred) {
  const int rounds = env_number("FOLIO_RANDOM_ROUNDS", 40);
  const char* only = std::getenv("FOLIO_RANDOM_OPERATOR");
  set_allocation_hook(allow);
  size_t operators = 0;
  size_t accepted = 0;
  for (const OpDef& def : op_registry().all()) {
    if (only && def.type != only) continue;
    ++operators;
    int outputs = 0;
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE(testing::Message() << def.domain << "." << def.type << " since " << def.since
                                      << ", round " << round);
      outputs += try_one(def, round);
    }
    accepted += outputs > 0 ? 1 : 0;
    if (only) std::printf("%s: %d of %d gave outputs\n", only, outputs, 4 * rounds);
  }
  set_allocation_hook(nullptr);
  EXPECT_GT(operators, only ? 0U : 300U);
  if (!only && rounds >= 40) {
    EXPECT_GT(2 * accepted, operators) << "the draws fit too rarely";
  }
}

}  // namespace
}  // namespace folio
