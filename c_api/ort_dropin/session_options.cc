#include "c_api/ort_dropin/session_options.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace folio::ort {
namespace {

// Keys that only tune machinery which Folio does not have. They change no result, so that nobody
// need be told that they have no effect.
constexpr std::string_view kTuningKeys[] = {
    "session.allow_released_opsets_only",
    "session.debug_layout_transformation",
    "session.disable_aot_function_inlining",
    "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover",
    "session.disable_model_compile",
    "session.disable_quant_qdq",
    "session.disable_qdq_constant_folding",
    "session.dynamic_block_base",
    "session.enable_quant_qdq_cleanup",
    "session.force_spinning_stop",
    "session.graph_optimizations_loop_level",
    "session.inter_op.allow_spinning",
    "session.inter_op_thread_affinities",
    "session.intra_op.allow_spinning",
    "session.intra_op_thread_affinities",
    "session.node_partition_config_file",
    "session.qdqisint8allowed",
    "session.qdq_matmulnbits_accuracy_level",
    "session.record_ep_graph_assignment_info",
    "session.share_prepacked_weights_for_all_initializers",
    "session.strict_shape_type_inference",
    "session.use_deterministic_compute",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.x64quantprecision",
};
constexpr std::string_view kTuningPrefixes[] = {"ep.", "memory.", "mlas.", "optimization."};

// Keys of which ONNX Runtime takes every value but "1" for "0".
constexpr std::string_view kFlags[] = {
    "session.disable_prepacking",           "session.save_external_prepacked_constant_initializers",
    "session.set_denormal_as_zero",         "session.use_memory_mapped_ort_model",
    "session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers",
};

template <size_t kCount>
bool is_in(const std::string_view (&list)[kCount], std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

bool only_tunes(std::string_view key) {
  return is_in(kTuningKeys, key) ||
         std::any_of(std::begin(kTuningPrefixes), std::end(kTuningPrefixes),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

OrtStatus* add(FolioSessionOptions* options, std::string_view key, std::string_view value) {
  ORT_CALL(
      folio().AddSessionConfigEntry(options, std::string(key).c_str(), std::string(value).c_str()));
  return nullptr;
}

OrtStatus* add_settings(const OrtSessionOptions& options, const OrtEnv* env,
                        FolioSessionOptions* out) {
  constexpr int kMostThreads = 9999;  // of the key's values
  if (options.per_session_threads && options.intra_op_threads > 0) {
    ORT_TRY(add(out, "folio.threads",
                std::to_string(std::min(options.intra_op_threads, kMostThreads))));
  }
  if (!options.per_session_threads && env && env->denormal_as_zero) {
    ORT_TRY(add(out, "session.set_denormal_as_zero", "1"));
  }
  if (options.optimization_level == 0) ORT_TRY(add(out, "folio.optimize", "none"));
  if (!options.saved_path.empty()) {
    ORT_TRY(add(out, "session.optimized_model_filepath", options.saved_path));
  }
  if (!options.profile_prefix.empty()) ORT_TRY(add(out, "folio.profile", options.profile_prefix));
  return nullptr;
}

OrtStatus* add_config(const Pairs& config, FolioSessionOptions* out) {
  for (const auto& [key, value] : config) {
    if (only_tunes(key)) continue;
    if (is_in(kFlags, key)) {
      ORT_TRY(add(out, key, value == "1" ? "1" : "0"));
    } else {
      ORT_TRY(add(out, key, value));
    }
  }
  return nullptr;
}

OrtStatus* add_free_dims(const Pairs& free_dims, FolioSessionOptions* out) {
  for (const auto& [name, text] : free_dims) {
    int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (value < 0 || name.empty()) continue;  // ONNX Runtime lets them have no effect
    ORT_CALL(folio().AddFreeDimensionOverrideByName(out, name.c_str(), value));
  }
  return nullptr;
}

}  // namespace

OrtStatus* folio_options(const OrtSessionOptions& options, const OrtEnv* env, FolioPackCache* cache,
                         Options* out) {
  FolioSessionOptions* made = nullptr;
  ORT_CALL(folio().CreateSessionOptions(&made));
  Options result(made);
  ORT_TRY(add_settings(options, env, made));
  ORT_TRY(add_config(options.config, made));
  ORT_TRY(add_free_dims(options.free_dims, made));
  for (const auto& [name, value] : options.initializers) {
    ORT_CALL(folio().AddInitializer(made, name.c_str(), value->get()));
  }
  for (const OrtSessionOptions::File& file : options.files) {
    ORT_CALL(folio().SessionOptionsAddExternalFileFromMemory(made, file.name.c_str(), file.data,
                                                             file.bytes, nullptr, nullptr));
  }
  ORT_CALL(folio().SessionOptionsSetPackCache(made, cache));
  ORT_CALL(folio().SessionOptionsSetCancel(made, options.cancel.get()));
  *out = std::move(result);
  return nullptr;
}

}  // namespace folio::ort
