// Options of models, sessions and runs: plain structs with visible defaults, and the one table of
// configuration keys that fills them from strings.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/cpu_bits.h"
#include "core/base/tensor.h"
#include "core/formats/load.h"
#include "core/kernels/kernels.h"
#include "core/model/graph_builder.h"
#include "core/os/residency.h"
#include "core/passes/passes.h"
#include "core/prepack/pack_library.h"
#include "core/prepack/packed_cache.h"

namespace folio {

// Called on the loading thread with a fraction in [0, 1]; returning false cancels (kCancelled).
using Progress = std::function<bool(float done, const char* what)>;

// What a run says when a file of its model is no longer as it was opened.
enum class OnFileChange : uint8_t { kError, kWarn };

struct ModelOptions {
  bool read_into_memory = false;  // folio.model_loading = map (default) | read
  bool sigbus_guard = false;      // folio.sigbus_guard: turned on for the process, never off
  // session.use_memory_mapped_ort_model, session.use_ort_model_bytes_for_initializers: with 0 for
  // either, the bytes of an .ort model belong to the session alone.
  bool map_ort_model = true;
  bool use_ort_bytes = true;
  bool owns_ort_bytes() const { return !map_ort_model || !use_ort_bytes; }
  // session.use_ort_model_bytes_directly: bytes given without a release function are not copied.
  bool borrow_ort_bytes = false;
  std::string format;            // session.load_model_format: "" = by content, ONNX, ORT
  int64_t nchwc_block_size = 0;  // folio.nchwc_block_size: 0 = as the model shows it, 8, 16
  std::map<std::string, Ref<ByteSource>> files;  // external data given as bytes, by location
  // Of the session that is created with the model: external initializers are taken from here.
  std::vector<std::pair<std::string, Tensor>> initializers;
  Progress progress;
};

// When weights are packed that no pack file has.
enum class Packing : uint8_t {
  kBehind,  // after the load, by the process's idle worker; runs go on meanwhile
  kLoad,    // the load waits for it
  kOff,     // not at all: kernels take the weights as the model has them
};

// What products of float compute with their weights as.
enum class FloatWeights : uint8_t {
  kAuto,      // kBfloat16 where the precision multiplies bfloat16, and the kernels have it
  kFloat32,   // as the model has them
  kBfloat16,  // rounded
};

// The optimized model as a file.
struct ModelSaving {
  std::string path;           // session.optimized_model_filepath; "": not wanted
  std::string format;         // session.save_model_format: "" = by name, ONNX, ORT
  std::string external_file;  // session.optimized_model_external_initializers_file_name
  // session.optimized_model_external_initializers_min_size_in_bytes
  uint64_t external_min_bytes = 1024;
  bool packs = false;  // session.save_external_prepacked_constant_initializers
};

struct SessionOptions {
  ModelSaving saving;
  bool prepack = true;                                 // session.disable_prepacking
  Packing packing = Packing::kBehind;                  // folio.packing = behind | load | off
  bool conv_winograd = true;                           // folio.conv_winograd = auto | off
  FloatWeights weights = FloatWeights::kAuto;          // folio.float32_weights = auto | ...
  FolioPrecision precision = kFolioHighest;            // folio.float32_matmul_precision
  bool flush_denormals = false;                        // session.set_denormal_as_zero
  Optimize optimize = Optimize::kAll;                  // folio.optimize = all | none
  int threads = 0;                                     // folio.threads: 0 = the process pool's size
  bool sigbus_guard = false;                           // as in ModelOptions
  OnFileChange on_file_change = OnFileChange::kError;  // folio.on_file_change = error | warn
  ResidencyMode residency = ResidencyMode::kCache;     // folio.residency = cache | prefetch | lock
  FreeDims free_dims;
  std::vector<std::pair<std::string, Tensor>> initializers;  // replace those of the model
  std::shared_ptr<PackedCache> cache;                        // null: the process's own
  PackOptions pack;                                          // folio.pack_*, folio.digest_cache
  bool find_sidecar = true;  // folio.pack_sidecar = auto | off | PATH (pack.sidecar)
  Ref<PackLibrary> library;  // pack_model: instead of what `pack` names; who gave it finishes it
  std::optional<CpuBits> kernels;  // pack_model: constants are made for this level
  std::string profile_prefix;      // folio.profile: where the profile goes; "": there is none
  Progress progress;
};

struct RunOptions {
  const std::atomic<bool>* cancel = nullptr;
  std::chrono::milliseconds timeout{0};  // 0 = none
  std::string tag;                       // stands in messages of this run
};

// Sets one key; what the caller has no options for is null. kInvalidArgument for an unknown
// `folio.` key (with the nearest known one), a key of options that are null, or a bad value; an
// unknown `session.` key is logged once and ignored, as in ONNX Runtime.
Status set_config(ModelOptions* model, SessionOptions* session, std::string_view key,
                  std::string_view value);

}  // namespace folio
