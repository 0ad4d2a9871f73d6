// The model kinds of make_model: a builder each, in kind_<name>.cc (deep, many: kind_limits.cc).
//
// Flow:    make_model.cc, tests -> build_...(options) -> ModelFiles -> write_model_files.
// Owns:    ModelFiles owns its model and data.
// Threads: any; builders have no state.
// Errors:  builders cannot fail for options in the ranges stated here; write_model_files says what
//          went wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/make_model/model_file.h"
#include "tools/make_model/onnx_model.h"

namespace model_writer {

inline constexpr uint64_t kMegabyte = 1000000;

// IR and opset of a kind that needs nothing newer: what tools of 2022 read.
inline constexpr int64_t kPlainIrVersion = 8;
inline constexpr int64_t kPlainOpset = 17;

struct ModelFiles {
  ModelWriter model;
  std::optional<ExternalData> data;  // in the model's folder, under data->location()
  std::string genai_config = {};     // in the model's folder; empty: none
};

// Writes the data file first, so that a model never stands without its data.
WriteResult write_model_files(const ModelFiles& files, const std::string& model_path,
                              const WriteProgress& progress = nullptr);

// Empty if `location` may name a data file: relative, no "..", not the model's own name.
std::string external_location_error(const std::string& location, const std::string& model_path);

// A model with producer "folio make_model", the kind and the seed in its metadata, and the graph
// named after the kind.
ModelWriter new_model(const std::string& kind, uint64_t seed, int64_t ir_version, int64_t opset);

// Layers of MatMul, Add and Relu (none behind the last) over x [batch, width].
struct MlpOptions {
  uint64_t seed = 1;
  uint64_t layers = 4;   // 1 to 10000
  uint64_t width = 256;  // 1 to 1000000; not used when size_mb is given
  uint64_t size_mb = 0;  // weights in 10^6 bytes; 0: as layers and width say
  std::string external;  // location of the data file; empty: weights inline
  uint64_t external_alignment = 4096;
  bool biases_as_inputs = false;  // with their values as defaults, which a run may override
};
ModelFiles build_mlp(const MlpOptions& options);

// A small residual network over x [batch, 3, 32, 32].
ModelFiles build_cnn(uint64_t seed);

// If, Loop and Scan, nested, with own initializers and captured outer values.
ModelFiles build_control(uint64_t seed);

// 4-bit weights: MatMulNBits with and without zero points, DequantizeLinear before MatMul.
struct Int4Options {
  uint64_t seed = 1;
  uint64_t width = 128;  // 64 to 65536, rounded up to a multiple of 64
};
ModelFiles build_int4(const Int4Options& options);

// A language model of onnxruntime-genai's shape: input_ids, attention_mask and a key/value cache
// to logits [batch, sequence, 512]; 2 key/value heads of 32, up to 1024 positions.
struct DecoderOptions {
  uint64_t seed = 1;
  uint64_t layers = 2;                    // 1 to 1000
  std::string model_name = "model.onnx";  // as genai_config.json names it
  int64_t accuracy_level = 4;             // of MatMulNBits: 0 to 4
};
ModelFiles build_decoder(const DecoderOptions& options);

// Weights that a runtime can compute at load: casts, products, transposes, concatenations and
// dequantisations of initializers.
struct FoldOptions {
  uint64_t seed = 1;
  uint64_t width = 64;   // 2 to 65536, rounded up to an even number
  uint64_t size_mb = 0;  // stored initializers in 10^6 bytes; 0: as width says
};
ModelFiles build_fold(const FoldOptions& options);

// Initializers over the same, overlapping and unaligned ranges of one data file.
ModelFiles build_aliased(uint64_t seed, const std::string& location);

// Shape arithmetic over symbolic dims, and shapes that depend on data.
ModelFiles build_shapes(uint64_t seed);

// Initializers of every element type, in raw_data and in the typed field.
enum class TypeSet {
  kBasic,     // opset 17: what tools of 2022 read
  kStandard,  // opset 21: and 8-bit floats and 4-bit integers
  kAll,       // opset 26: and complex numbers and all that came later; hardly any runtime loads it
};
ModelFiles build_types(uint64_t seed, TypeSet set);

// Model-local functions, nested, with attributes handed through.
ModelFiles build_functions(uint64_t seed);

// Sequences and optionals.
enum class SequenceOutputs {
  kTensors,
  kSequences,  // and a sequence and an optional among the outputs
};
ModelFiles build_sequences(uint64_t seed, SequenceOutputs outputs);

// `depth` If nodes, each in the branch of the one before; at least 1.
ModelFiles build_deep(uint64_t seed, uint64_t depth);

// A chain of `nodes` Add nodes; at least 1.
ModelFiles build_many(uint64_t seed, uint64_t nodes);

}  // namespace model_writer
