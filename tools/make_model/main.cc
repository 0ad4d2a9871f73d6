// make_model KIND -o FILE: writes a seeded ONNX model, so that nothing needs outside data.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/make_model/kinds.h"

namespace model_writer {

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitFailed = 3;

// Below this a file is written before a bar could be read.
constexpr uint64_t kProgressBytesMin = 100 * kMegabyte;

// A bar on standard error, when somebody sits there.
void show_progress(uint64_t done, uint64_t total) {
  if (total < kProgressBytesMin || isatty(STDERR_FILENO) == 0) return;
  constexpr int kColumns = 40;
  const int filled = static_cast<int>(done * kColumns / total);
  const std::string bar =
      std::string(static_cast<size_t>(filled), '#') + std::string(kColumns - filled, '.');
  std::fprintf(stderr, "\r[%s] %5.1f%% of %.0f MB%s", bar.c_str(),
               100.0 * static_cast<double>(done) / static_cast<double>(total),
               static_cast<double>(total) / static_cast<double>(kMegabyte),
               done == total ? "\n" : "");
  std::fflush(stderr);
}

// What the command line says; every kind reads its own part.
struct CommandLine {
  std::string output;
  uint64_t seed = 1;
  MlpOptions mlp;
  Int4Options int4;
  FoldOptions fold;
  DecoderOptions decoder;
  std::string aliased_location;
  TypeSet type_set = TypeSet::kStandard;
  SequenceOutputs sequence_outputs = SequenceOutputs::kTensors;
  uint64_t depth = 8;
  uint64_t nodes = 1000;
};

using Build = std::function<ModelFiles(const CommandLine&)>;

// One kind: its subcommand and how it is built.
struct Kind {
  CLI::App* command;
  Build build;
};

class Cli {
 public:
  Cli() {
    app_.name("make_model");
    app_.require_subcommand(1);
    app_.footer(
        "The same kind, options and seed give the same bytes on every machine.\n"
        "Options of a kind: make_model KIND --help");
    list_ = app_.add_subcommand("list", "print the kinds");
    add_sized_kinds();
    add_decoder();
    add_plain_kinds();
    add_limit_kinds();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? 0 : kExitUsage;
    }
    if (list_->parsed()) return print_kinds();
    for (const Kind& kind : kinds_) {
      if (kind.command->parsed()) return write(kind);
    }
    return kExitUsage;
  }

 private:
  CLI::App* add_kind(const std::string& name, const std::string& text, Build build) {
    CLI::App* command = app_.add_subcommand(name, text);
    command->add_option("-o,--output", line_.output, "the model file to write")
        ->required()
        ->type_name("FILE");
    command->add_option("--seed", line_.seed, "where the random numbers begin")
        ->capture_default_str()
        ->type_name("N");
    kinds_.push_back({command, std::move(build)});
    return command;
  }

  static void add_number(CLI::App* command, const std::string& name, uint64_t& value,
                         const std::string& text, uint64_t low, uint64_t high) {
    command->add_option(name, value, text)
        ->capture_default_str()
        ->type_name("N")
        ->check(CLI::Range(low, high));
  }

  void add_sized_kinds() {
    CLI::App* mlp = add_kind("mlp", "layers of MatMul, Add and Relu, of any size", [](auto& line) {
      MlpOptions options = line.mlp;
      options.seed = line.seed;
      return build_mlp(options);
    });
    add_number(mlp, "--layers", line_.mlp.layers, "number of layers", 1, 10000);
    add_number(mlp, "--width", line_.mlp.width, "rows and columns of each layer", 1, 1000000);
    add_number(mlp, "--size-mb", line_.mlp.size_mb,
               "weights in 10^6 bytes; sets the width; 0: --width does", 0, 1000000);
    mlp->add_option("--external", line_.mlp.external,
                    "put the weights into FILE, a path relative to the model's folder")
        ->type_name("FILE");
    mlp->add_flag("--biases-as-inputs", line_.mlp.biases_as_inputs,
                  "make the biases inputs that have a default");
    add_number(mlp, "--external-align", line_.mlp.external_alignment,
               "alignment of tensors in the data file", 1, 1 << 21);

    CLI::App* fold = add_kind(
        "fold", "weights computed from constants: cast, mul, concat, dequantize", [](auto& line) {
          FoldOptions options = line.fold;
          options.seed = line.seed;
          return build_fold(options);
        });
    add_number(fold, "--width", line_.fold.width, "rows and columns of each weight", 2, 65536);
    add_number(fold, "--size-mb", line_.fold.size_mb,
               "stored bytes in 10^6; sets the width; 0: --width does", 0, 2000);

    CLI::App* int4 = add_kind(
        "int4", "4-bit weights: MatMulNBits, and DequantizeLinear before MatMul", [](auto& line) {
          Int4Options options = line.int4;
          options.seed = line.seed;
          return build_int4(options);
        });
    add_number(int4, "--width", line_.int4.width,
               "rows and columns of each weight, rounded up to a multiple of 64", 64, 65536);
  }

  void add_decoder() {
    CLI::App* decoder =
        add_kind("decoder", "a small language model with a key/value cache, and genai_config.json",
                 [](auto& line) {
                   DecoderOptions options = line.decoder;
                   options.seed = line.seed;
                   options.model_name = std::filesystem::path(line.output).filename().string();
                   return build_decoder(options);
                 });
    add_number(decoder, "--layers", line_.decoder.layers, "number of layers", 1, 1000);
  }

  void add_plain_kinds() {
    add_kind("cnn", "small residual network: Conv, BatchNormalization, pools, Gemm",
             [](auto& line) { return build_cnn(line.seed); });
    add_kind("control", "If, Loop and Scan with own and captured values",
             [](auto& line) { return build_control(line.seed); });
    CLI::App* aliased = add_kind(
        "aliased", "initializers over the same and overlapping external ranges", [](auto& line) {
          const std::string file = std::filesystem::path(line.output).filename().string();
          return build_aliased(
              line.seed, line.aliased_location.empty() ? file + ".data" : line.aliased_location);
        });
    aliased
        ->add_option("--external", line_.aliased_location,
                     "the data file, relative to the model's folder [model name + .data]")
        ->type_name("FILE");
    add_kind("shapes", "shape arithmetic on symbolic dims, and NonZero",
             [](auto& line) { return build_shapes(line.seed); });
    CLI::App* types = add_kind("types", "initializers of every element type in every storage",
                               [](auto& line) { return build_types(line.seed, line.type_set); });
    const std::map<std::string, TypeSet> sets = {
        {"basic", TypeSet::kBasic}, {"standard", TypeSet::kStandard}, {"all", TypeSet::kAll}};
    types
        ->add_option("--set", line_.type_set,
                     "basic (opset 17), standard (21: 8-bit floats, 4-bit integers; default), "
                     "all (26: complex, and what came later)")
        ->transform(CLI::CheckedTransformer(sets))
        ->type_name("NAME");
    add_kind("functions", "model-local functions, nested, with attribute references",
             [](auto& line) { return build_functions(line.seed); });
    CLI::App* sequences = add_kind("sequences", "sequences and optionals", [](auto& line) {
      return build_sequences(line.seed, line.sequence_outputs);
    });
    sequences->add_flag_callback(
        "--sequence-outputs", [this] { line_.sequence_outputs = SequenceOutputs::kSequences; },
        "a sequence and an optional among the outputs");
  }

  void add_limit_kinds() {
    CLI::App* deep = add_kind("deep", "nested If subgraphs",
                              [](auto& line) { return build_deep(line.seed, line.depth); });
    add_number(deep, "--depth", line_.depth, "levels of nesting", 1, 1000000);
    CLI::App* many = add_kind("many", "a long chain of Add nodes",
                              [](auto& line) { return build_many(line.seed, line.nodes); });
    add_number(many, "--nodes", line_.nodes, "number of nodes", 1, 10000000);
  }

  int print_kinds() const {
    for (const Kind& kind : kinds_) {
      std::printf("%-10s %s\n", kind.command->get_name().c_str(),
                  kind.command->get_description().c_str());
    }
    return 0;
  }

  int write(const Kind& kind) const {
    const WriteResult result = write_model_files(kind.build(line_), line_.output, show_progress);
    if (result.ok()) return 0;
    std::fprintf(stderr, "make_model: %s\n", result.error.c_str());
    return kExitFailed;
  }

  CommandLine line_;
  CLI::App app_{"Writes seeded ONNX models for tests, demos and benchmarks."};
  CLI::App* list_ = nullptr;
  std::vector<Kind> kinds_;
};

}  // namespace

}  // namespace model_writer

int main(int argc, char** argv) { return model_writer::Cli().run(argc, argv); }
