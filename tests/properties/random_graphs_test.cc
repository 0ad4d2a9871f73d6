// What passes, packing, threads and saving make of graphs drawn at random (random_graph.h) computes
// what the nodes compute one by one.
//
// The yardstick: a session without passes and packed weights. Compared with it, within rounding:
// with passes, packed or not, with other dims where they are symbols, with these fixed while
// loading, saved as .onnx and .ort and loaded again, in bfloat16 (roughly); with the same bits:
// packed before the load ends, never, in a pack file, with two threads, and for one output alone.
// FOLIO_PROPERTIES_ORT names ONNX Runtime's library, which the yardstick is compared with then.
// FOLIO_RANDOM_ROUNDS sets how many graphs of a kind there are (default 120), FOLIO_RANDOM_SEED
// gives others, FOLIO_RANDOM_GRAPH is the only one to run, and FOLIO_RANDOM_KEEP the folder that
// gets the models that failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/session/pack_model.h"
#include "tests/properties/graph_draw.h"
#include "tests/properties/ort_library.h"
#include "tests/properties/random_case.h"
#include "tests/properties/random_graph.h"
#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"

namespace folio::properties {
namespace {

using Outcome = OrtOutcome;  // of Folio, too

Outcome run(Session& session, const std::vector<std::string>& outputs,
            const std::vector<NamedValue>& inputs) {
  Outcome out;
  std::vector<WantedOutput> wanted;
  for (const std::string& name : outputs) wanted.push_back({name, {}});
  const Status status = session.run({}, inputs, wanted, &out.outputs);
  if (!status.is_ok()) out.error = cat("run: ", status.message());
  return out;
}

Outcome run(const RandomGraph& graph, Result<Ref<ModelFile>> file, const SessionOptions& options,
            const std::vector<NamedValue>& inputs) {
  if (!file.is_ok()) return {cat("open: ", file.status().message()), {}};
  const auto opened = Session::create(std::move(file).take(), options);
  if (!opened.is_ok()) return {cat("load: ", opened.status().message()), {}};
  return run(*opened.value(), graph.outputs, inputs);
}

Outcome run(const RandomGraph& graph, Result<Ref<ModelFile>> file, const SessionOptions& options) {
  return run(graph, std::move(file), options, graph.inputs);
}

Outcome run(const RandomGraph& graph, const std::string& bytes, const SessionOptions& options) {
  return run(graph, ModelFile::open(source_of(bytes), {}), options);
}

// What two tensors of the same shape are apart.
struct Apart {
  double farthest = 0;  // infinity where one has a number and the other has none
  double sum = 0;
  double largest = 0;  // magnitude of both
};

// Where float16 may overflow at different places, what is no number of one does not count.
Apart apart(const Tensor& a, const Tensor& b, bool may_overflow) {
  Apart out;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = a.data<float>()[i];
    const double y = b.data<float>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const bool is_finite = std::isfinite(x) && std::isfinite(y);
    if (!is_finite && may_overflow) continue;
    out.farthest = std::max(out.farthest, is_finite ? std::abs(x - y) : HUGE_VAL);
    out.sum += std::abs(x - y);
    out.largest = std::max({out.largest, std::abs(x), std::abs(y)});
  }
  return out;
}

enum class Nearness { kSame, kRounding, kFloat16, kBfloat16, kCodes };

// kCodes: a sum that stands between two codes may become either, and what follows from it differs
// too. Wrong codes everywhere, by half a step in the mean, would not pass.
bool are_near(const Apart& apart, int64_t count, Nearness nearness) {
  if (nearness != Nearness::kCodes) {
    const double share = nearness == Nearness::kBfloat16  ? 0.1
                         : nearness == Nearness::kFloat16 ? 0.05
                                                          : 1e-4;
    return apart.farthest <= share * (1 + apart.largest);
  }
  const double step = kStep * std::max(1.0, apart.largest / 4);
  return apart.farthest <= 12 * step && apart.sum <= step * (24 + static_cast<double>(count) / 8);
}

bool are_same(const Tensor& a, const Tensor& b) {
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// "": as near as that.
std::string difference(const RandomGraph& graph, const Outcome& expected, const Outcome& got,
                       Nearness nearness) {
  if (got.error != "" || expected.error != "") return cat(got.error, expected.error);
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const Tensor& a = expected.outputs[i].tensor();
    const Tensor& b = got.outputs[i].tensor();
    if (!(a.shape() == b.shape())) {
      return cat(graph.outputs[i], ": ", a.shape().to_string(), " and ", b.shape().to_string());
    }
    const Apart found = apart(a, b, nearness == Nearness::kFloat16);
    if (nearness == Nearness::kSame ? are_same(a, b) : are_near(found, a.count(), nearness)) {
      continue;
    }
    return cat(graph.outputs[i], a.shape().to_string(), ": apart by ",
               std::to_string(found.farthest), " at most and ", std::to_string(found.sum),
               " in all, of ", std::to_string(found.largest));
  }
  return "";
}

SessionOptions options_of(Packing packing, int threads) {
  SessionOptions out;
  out.packing = packing;
  out.threads = threads;
  out.cache = std::make_shared<PackedCache>();
  return out;
}

SessionOptions plain_options() {
  SessionOptions out = options_of(Packing::kOff, 1);
  out.optimize = Optimize::kOff;
  out.prepack = false;
  return out;
}

Nearness nearness_of(GraphKind kind) {
  const bool of_halves = kind == GraphKind::kHalves || kind == GraphKind::kDecoderHalves;
  return kind == GraphKind::kBytes ? Nearness::kCodes
         : of_halves               ? Nearness::kFloat16
                                   : Nearness::kRounding;
}

// One graph with all settings and saved forms, against one yardstick.
class Comparison {
 public:
  Comparison(const RandomGraph& graph, GraphKind kind, const std::string& folder)
      : graph_(graph), near_(nearness_of(kind)), folder_(folder) {}

  // "": none. Files are synced to disk, which takes longer than all else.
  std::string first_difference(bool with_files) {
    expected_ = run(graph_, graph_.bytes, plain_options());
    const Outcome packed = run(graph_, graph_.bytes, options_of(Packing::kLoad, 1));
    compare("packed at load", expected_, packed, near_);
    compare("two threads", packed, run(graph_, graph_.bytes, options_of(Packing::kLoad, 2)),
            Nearness::kSame);
    compare("folio.packing=off", packed, run(graph_, graph_.bytes, options_of(Packing::kOff, 1)),
            Nearness::kSame);
    if (with_files) compare_with_pack(packed);
    SessionOptions unpacked = options_of(Packing::kOff, 1);
    unpacked.prepack = false;
    compare("disable_prepacking", expected_, run(graph_, graph_.bytes, unpacked), near_);
    compare_other_dims();
    for (const char* format : {"ONNX", "ORT"}) {
      if (with_files) compare_saved(format);
    }
    SessionOptions rounded = options_of(Packing::kLoad, 1);
    rounded.precision = kFolioMedium;
    rounded.weights = FloatWeights::kBfloat16;
    if (near_ == Nearness::kRounding) {
      compare("medium", expected_, run(graph_, graph_.bytes, rounded), Nearness::kBfloat16);
    }
    return what_;
  }

 private:
  void compare(const char* setting, const Outcome& expected, const Outcome& got,
               Nearness nearness) {
    if (what_ != "") return;
    what_ = difference(graph_, expected, got, nearness);
    if (what_ != "") what_ = cat(setting, ": ", what_);
  }

  // The second dims and the first again, which a session that has run meets anew. Where a node
  // refuses them, as a Reshape to constants does, the yardstick has no result.
  void compare_other_dims() {
    if (what_ != "") return;
    const auto open = [&](const SessionOptions& options) {
      return Session::create(ModelFile::open(source_of(graph_.bytes), {}).take(), options).take();
    };
    const Ref<Session> plain = open(plain_options());
    const Ref<Session> session = open(options_of(Packing::kLoad, 1));
    for (const auto* inputs : {&graph_.inputs, &graph_.other_inputs, &graph_.inputs}) {
      const Outcome expected = run(*plain, graph_.outputs, *inputs);
      const Outcome got = run(*session, graph_.outputs, *inputs);
      if (expected.error != "") continue;
      compare("other dims", expected, got, near_);
      if (inputs == &graph_.other_inputs) other_expected_ = expected;
    }
    compare_one_output(*session);
    if (graph_.symbols.empty()) return;
    compare_fixed("dims fixed", graph_.symbols, graph_.inputs, expected_);
    if (!other_expected_.outputs.empty()) {
      compare_fixed("other dims fixed", graph_.other_symbols, graph_.other_inputs, other_expected_);
    }
  }

  // Of what only the other outputs need nothing is computed.
  void compare_one_output(Session& session) {
    if (what_ != "") return;
    Outcome expected = run(session, graph_.outputs, graph_.inputs);
    expected.outputs.resize(1);
    const Outcome got = run(session, {graph_.outputs[0]}, graph_.inputs);
    compare("one output", expected, got, Nearness::kSame);
  }

  // Free dimension overrides.
  void compare_fixed(const char* setting, const FreeDims& dims,
                     const std::vector<NamedValue>& inputs, const Outcome& expected) {
    if (what_ != "") return;
    SessionOptions fixed = options_of(Packing::kLoad, 1);
    fixed.free_dims = dims;
    const Outcome got = run(graph_, ModelFile::open(source_of(graph_.bytes), {}), fixed, inputs);
    // A branch that no run takes may not take these dims: a model that has them fixed is refused,
    // by ONNX Runtime too.
    if (got.error.find("(If): node") != std::string::npos) return;
    compare(setting, expected, got, near_);
  }

  void compare_with_pack(const Outcome& packed) {
    if (what_ != "") return;
    const std::string path = folder_ + "/model.onnx";
    std::ofstream(path, std::ios::binary) << graph_.bytes;
    PackModelOptions sidecar;
    sidecar.path = path + ".fpack";
    auto file = ModelFile::open(path, {});
    ASSERT_TRUE(file.is_ok()) << text_of(file.status());
    const auto made = pack_model(std::move(file).take(), options_of(Packing::kLoad, 1), sidecar);
    if (!made.is_ok()) what_ = cat("pack: ", made.status().message());
    compare("from a pack file", packed,
            run(graph_, ModelFile::open(path, {}), options_of(Packing::kLoad, 1)), Nearness::kSame);
  }

  void compare_saved(const char* format) {
    if (what_ != "") return;
    SessionOptions saving = options_of(Packing::kLoad, 1);
    saving.saving.path = folder_ + "/saved";
    saving.saving.format = format;
    run(graph_, graph_.bytes, saving);
    std::ifstream file(saving.saving.path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    compare(format, expected_, run(graph_, bytes, options_of(Packing::kLoad, 1)), near_);
    if (what_ != "" || other_expected_.outputs.empty()) return;
    compare(cat(format, ", other dims").c_str(), other_expected_,
            run(graph_, ModelFile::open(source_of(bytes), {}), options_of(Packing::kLoad, 1),
                graph_.other_inputs),
            near_);
  }

  const RandomGraph& graph_;
  Nearness near_;
  const std::string& folder_;
  Outcome expected_;
  Outcome other_expected_;  // no outputs: the yardstick has none
  std::string what_;
};

// Tries graphs of one kind; `difference_of` says what is wrong with one, or nothing.
template <typename DifferenceOf>
void try_graphs(GraphKind kind, const DifferenceOf& difference_of) {
  const int rounds = env_number("FOLIO_RANDOM_ROUNDS", 120);
  const int only = env_number("FOLIO_RANDOM_GRAPH", -1);
  const auto seed = static_cast<uint64_t>(env_number("FOLIO_RANDOM_SEED", 0)) * 1'000'003;
  const char* keep = std::getenv("FOLIO_RANDOM_KEEP");
  for (int round = 0; round < rounds; ++round) {
    if (only >= 0 && round != only) continue;
    const RandomGraph graph = random_graph(kind, seed + static_cast<uint64_t>(round));
    const std::string what = difference_of(graph);
    EXPECT_EQ(what, "") << "graph " << round << ":\n" << graph.text;
    if (what == "" || !keep) continue;
    std::ofstream(cat(keep, "/", static_cast<int>(kind), "_", round, ".onnx"), std::ios::binary)
        << graph.bytes;
  }
}

void compare_settings(GraphKind kind) {
  const testing::TempFolder folder;
  int round = 0;
  try_graphs(kind, [&](const RandomGraph& graph) {
    return Comparison(graph, kind, folder.path()).first_difference(round++ % 4 == 0);
  });
}

TEST(RandomGraphs, ImagesGiveWhatTheirNodesGive) { compare_settings(GraphKind::kImages); }

TEST(RandomGraphs, BytesGiveWhatTheirNodesGive) { compare_settings(GraphKind::kBytes); }

TEST(RandomGraphs, HalvesGiveWhatTheirNodesGive) { compare_settings(GraphKind::kHalves); }

TEST(RandomGraphs, TokensGiveWhatTheirNodesGive) { compare_settings(GraphKind::kTokens); }

TEST(RandomGraphs, DecodersGiveWhatTheirNodesGive) { compare_settings(GraphKind::kDecoders); }

TEST(RandomGraphs, DecodersOfHalvesGiveWhatTheirNodesGive) {
  compare_settings(GraphKind::kDecoderHalves);
}

// ONNX Runtime infers that GroupQueryAttention's present has the dims of its past, and refuses what
// it gives instead.
bool takes_past_for_present(const RandomGraph& graph, const Outcome& got) {
  return graph.text.find("GroupQueryAttention(") != std::string::npos &&
         (got.error.find("but the computed output shape") != std::string::npos ||
          got.error.find("Shape mismatch attempting to re-use buffer") != std::string::npos ||
          got.error.find("Can't merge shape info") != std::string::npos);
}

// No other dim is less, so that no Slice leaves nothing: of empty tensors, operators of ONNX
// Runtime divide by dims or end the process otherwise.
bool grows(const RandomGraph& graph) {
  for (size_t i = 0; i < graph.symbols.size(); ++i) {
    if (graph.other_symbols[i].second < graph.symbols[i].second) return false;
  }
  return !graph.symbols.empty();
}

// "": the same results; also with other dims, where both take them.
std::string difference_from_ort(const OrtLibrary& ort, const RandomGraph& graph,
                                Nearness nearness) {
  const Outcome expected = ort.run(graph.bytes, graph.inputs, graph.outputs);
  if (takes_past_for_present(graph, expected)) return "";
  const std::string what =
      difference(graph, expected, run(graph, graph.bytes, plain_options()), nearness);
  if (what != "" || !grows(graph)) return what;
  const Outcome own =
      run(graph, ModelFile::open(source_of(graph.bytes), {}), plain_options(), graph.other_inputs);
  if (own.error != "") return "";
  const Outcome others = ort.run(graph.bytes, graph.other_inputs, graph.outputs);
  if (others.error != "") return "";
  const std::string found = difference(graph, others, own, nearness);
  return found == "" ? "" : cat("other dims: ", found);
}

TEST(OrtOracle, GraphsGiveWhatOnnxRuntimeGives) {
  const char* path = std::getenv("FOLIO_PROPERTIES_ORT");
  if (!path) GTEST_SKIP() << "FOLIO_PROPERTIES_ORT does not name ONNX Runtime's library";
  const auto ort = OrtLibrary::open(path);
  ASSERT_TRUE(ort);
  // Its passes fold a Pad by zeros into a MaxPool, whose own pads are no zeros, and round codes
  // otherwise.
  ort->disable_optimizations();
  const bool saturates = ort->saturates_bytes();
  for (const GraphKind kind :
       {GraphKind::kImages, GraphKind::kTokens, GraphKind::kBytes, GraphKind::kHalves,
        GraphKind::kDecoders, GraphKind::kDecoderHalves}) {
    try_graphs(kind, [&](const RandomGraph& graph) {
      if (saturates && graph.text.find("MatMulInteger(") != std::string::npos) return std::string();
      return difference_from_ort(*ort, graph, nearness_of(kind));
    });
  }
}

}  // namespace
}  // namespace folio::properties
