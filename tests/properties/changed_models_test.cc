// What changed models compute: with passes what they compute without, and where ONNX Runtime takes
// them what it computes.
//
// ONNX's own node tests are changed field by field (tests/support/model_mutator.h), and most
// changes still load. Each case is a process of its own: ONNX Runtime ends some.
// FOLIO_PROPERTIES_ORT names ONNX Runtime's library. FOLIO_RANDOM_ROUNDS sets how many changes each
// model gets (default 1; 0: as it is), FOLIO_RANDOM_SEED gives others, FOLIO_RANDOM_OPERATOR is a
// part of the names of the only models, FOLIO_RANDOM_KEEP the folder that gets the models that
// failed, FOLIO_CHANGED_MODELS the folder of folders with a model.onnx each, instead of
// libonnx-testdata's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/formats/onnx/load_context.h"
#include "core/formats/onnx/tensor_reader.h"
#include "tests/properties/draw.h"
#include "tests/properties/one_node.h"
#include "tests/properties/ort_compare.h"
#include "tests/properties/random_case.h"
#include "tests/support/child.h"
#include "tests/support/model_mutator.h"
#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"

namespace folio::properties {
namespace {

namespace fs = std::filesystem;
using testing::contents;

constexpr const char* kNodeTests = "/usr/share/libonnx-testdata/data/node";
constexpr size_t kMostBytes = 256 << 20;
constexpr unsigned kMostSeconds = 20;
constexpr int64_t kFreeDim = 2;

struct KnownDifference {
  std::string_view model;  // the beginning of its name
  std::string_view said;   // part of it
  std::string_view why;
};
const std::vector<KnownDifference> kKnown = {
#include "tests/properties/changed_models.inc"
};

bool allow(size_t bytes) { return bytes <= kMostBytes && buffer_bytes_live() <= kMostBytes; }

// The values that the model was published with.
std::vector<Tensor> published_inputs(const fs::path& folder) {
  std::vector<Tensor> out;
  for (int i = 0;; ++i) {
    const fs::path path = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return out;
    LoadContext context{source_of(contents(path)), LoadOptions()};
    InitializerDef read;
    const Status status = read_tensor(context, context.source->bytes(), &read);
    if (!status.is_ok() || read.tensor.is_string()) {
      out.emplace_back();  // a sequence, or what is drawn as well
      continue;
    }
    Tensor copy = allocate_tensor(read.tensor.dtype(), read.tensor.shape()).take();
    if (copy.bytes() > 0) std::memcpy(copy.raw_mut(), read.tensor.raw(), copy.bytes());
    out.push_back(std::move(copy));
  }
}

// Whether the declared type has room for the tensor.
bool takes(const TypeInfo& type, const Tensor& tensor) {
  if (!type.is_tensor() || type.dtype != tensor.dtype()) return false;
  if (!type.dims) return true;
  if (type.dims->size() != static_cast<size_t>(tensor.rank())) return false;
  for (size_t i = 0; i < type.dims->size(); ++i) {
    const Dim dim = (*type.dims)[i];
    if (dim.is_value() && dim.value != tensor.shape()[static_cast<int>(i)]) return false;
  }
  return true;
}

Value drawn_input(const TypeInfo& type, Draw& draw) {
  if (type.kind == TypeInfo::Kind::kSequence && type.element && type.element->is_tensor()) {
    return make_sequence(type.element->dtype, {drawn_input(*type.element, draw)});
  }
  if (!type.is_tensor() || type.dtype == DType::kUndefined) return {};
  Shape shape;
  if (type.dims) {
    for (const Dim dim : *type.dims) shape.push_back(dim.is_value() ? dim.value : kFreeDim);
  }
  uint64_t count = 0;
  if (!checked_count(shape.dims(), &count) || count > 1 << 20) return {};
  return Value(draw.tensor(type.dtype, shape));
}

struct Folio {
  OrtOutcome outcome;
  std::vector<NamedValue> inputs;
  std::vector<std::string> outputs;
};

// Loads and runs it; inputs are drawn unless they are given.
Folio run_folio(const std::string& model, Optimize optimize, const std::vector<Tensor>& published,
                uint64_t seed, const std::vector<NamedValue>* inputs) {
  Folio out;
  auto file = ModelFile::open(source_of(model), {});
  if (!file.is_ok()) {
    out.outcome.error = file.status().message();
    return out;
  }
  SessionOptions options;
  options.threads = 1;
  options.packing = Packing::kOff;
  options.optimize = optimize;
  const auto session = Session::create(std::move(file).take(), options);
  if (!session.is_ok()) {
    out.outcome.error = session.status().message();
    return out;
  }
  Draw draw(seed, Numbers::kTame);
  const auto& ports = session.value()->program().inputs;
  for (size_t i = 0; !inputs && i < ports.size(); ++i) {
    if (ports[i].has_default) continue;
    const bool is_published = i < published.size() && takes(ports[i].type, published[i]);
    Value value = is_published ? Value(published[i]) : drawn_input(ports[i].type, draw);
    out.inputs.push_back(NamedValue{ports[i].name, std::move(value)});
  }
  if (inputs) out.inputs = *inputs;
  std::vector<WantedOutput> wanted;
  for (const PortInfo& port : session.value()->program().outputs) {
    out.outputs.push_back(port.name);
    wanted.push_back({port.name, {}});
  }
  RunOptions run;
  run.timeout = std::chrono::seconds(5);
  const Status status = session.value()->run(run, out.inputs, wanted, &out.outcome.outputs);
  if (!status.is_ok()) out.outcome.error = status.message();
  return out;
}

std::string inputs_text(const std::vector<NamedValue>& inputs) {
  constexpr int64_t kMost = 32;
  std::string out;
  for (const NamedValue& input : inputs) {
    if (!input.value.is_tensor()) continue;
    out += cat("; ", input.name, " ", elements_text(input.value.tensor(), kMost));
  }
  return out;
}

class Changes {
 public:
  explicit Changes(const OrtLibrary* ort) : ort_(ort) {}

  int compared() const { return compared_; }

  void try_one(const std::string& name, const std::string& model,
               const std::vector<Tensor>& published, uint64_t seed) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(kMostSeconds);
      close(ends[0]);
      compare(model, published, seed, ends[1]);
      _exit(0);
    }
    close(ends[1]);
    std::string said;
    std::array<char, 4096> buffer;
    for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
      said.append(buffer.data(), static_cast<size_t>(n));
    }
    close(ends[0]);
    const int verdict = verdict_of(child);
    judge(name, model, said, verdict, seed);
  }

 private:
  // What the child says, in this order: kRan when Folio is done, kAsked when both have run, the
  // difference.
  static constexpr char kRan = 'F';
  static constexpr char kAsked = 'O';

  static void say(int to, std::string_view words) { (void)!write(to, words.data(), words.size()); }

  void compare(const std::string& model, const std::vector<Tensor>& published, uint64_t seed,
               int to) const {
    set_allocation_hook(allow);
    const Folio plain = run_folio(model, Optimize::kOff, published, seed, nullptr);
    const Folio fused = run_folio(model, Optimize::kAll, published, seed, &plain.inputs);
    set_allocation_hook(nullptr);
    say(to, std::string(1, kRan));
    const std::string& error = plain.outcome.error;
    if (error.empty() != fused.outcome.error.empty() && !plain.outputs.empty()) {
      say(to, cat("with passes '", fused.outcome.error, "', without '", error, "'"));
      return;
    }
    if (!error.empty() || plain.outputs.empty()) return;
    const std::string passes = first_difference(fused.outcome, plain.outcome);
    if (!passes.empty()) {
      say(to, "with passes " + passes);
      return;
    }
    if (!ort_) return;
    const OrtOutcome ort = ort_->run(model, plain.inputs, plain.outputs);
    if (!ort.error.empty()) return;
    say(to, std::string(1, kAsked));
    const std::string found = first_difference(plain.outcome, ort);
    if (!found.empty()) say(to, found + inputs_text(plain.inputs));
  }

  static bool is_known(const std::string& name, const std::string& said) {
    return std::any_of(kKnown.begin(), kKnown.end(), [&](const KnownDifference& known) {
      return name.starts_with(known.model) && said.find(known.said) != std::string::npos;
    });
  }

  void judge(const std::string& name, const std::string& model, std::string said, int verdict,
             uint64_t seed) {
    if (said.empty() || said[0] != kRan) {
      said = cat("Folio ended with ", verdict);
    } else {
      said.erase(0, 1);
      if (!said.empty() && said[0] == kAsked) {
        ++compared_;
        said.erase(0, 1);
      }
      if (said.empty() || is_known(name, said)) return;
    }
    ADD_FAILURE() << name << ", seed " << seed << ": " << said;
    if (const char* keep = std::getenv("FOLIO_RANDOM_KEEP")) {
      std::ofstream(fs::path(keep) / (name + "_" + std::to_string(seed) + ".onnx"),
                    std::ios::binary)
          << model;
    }
  }

  const OrtLibrary* ort_;
  int compared_ = 0;
};

void try_changes(const OrtLibrary* ort) {
  const char* const given = std::getenv("FOLIO_CHANGED_MODELS");
  const fs::path folder = given ? given : kNodeTests;
  if (!fs::is_directory(folder)) GTEST_SKIP() << "no folder " << folder;
  const char* const only = std::getenv("FOLIO_RANDOM_OPERATOR");
  const int rounds = env_number("FOLIO_RANDOM_ROUNDS", 1);
  const auto first = static_cast<uint64_t>(env_number("FOLIO_RANDOM_SEED", 1)) << 20;
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (only && entry.path().filename().string().find(only) == std::string::npos) continue;
    if (fs::exists(entry.path() / "model.onnx")) models.push_back(entry.path());
  }
  std::sort(models.begin(), models.end());
  Changes changes(ort);
  uint64_t seed = first;
  for (const fs::path& model : models) {
    const std::string name = model.filename().string();
    const std::string bytes = contents(model / "model.onnx");
    const std::vector<Tensor> published = published_inputs(model);
    if (rounds == 0) changes.try_one(name, bytes, published, seed);
    for (int round = 0; round < rounds; ++round, ++seed) {
      changes.try_one(name, testing::change_model_tamely(bytes, seed), published, seed);
    }
  }
  std::printf("%d models, %d of their changes compared with ONNX Runtime\n",
              static_cast<int>(models.size()), changes.compared());
}

TEST(ChangedModels, ComputeWithPassesWhatTheyComputeWithout) { try_changes(nullptr); }

TEST(OrtOracle, ChangedModelsGiveTheSameResults) {
  const char* const path = std::getenv("FOLIO_PROPERTIES_ORT");
  if (!path) GTEST_SKIP() << "FOLIO_PROPERTIES_ORT does not name ONNX Runtime's library";
  const std::unique_ptr<OrtLibrary> ort = OrtLibrary::open(path);
  ASSERT_NE(ort, nullptr);
  try_changes(ort.get());
}

}  // namespace
}  // namespace folio::properties
