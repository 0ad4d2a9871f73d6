#include "core/session/replace_weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/log.h"
#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/memory_source.h"
#include "core/os/thread_pool.h"
#include "core/os/tile_threads.h"
#include "core/plan/weight_ids.h"
#include "core/plan/weight_uses.h"
#include "core/prepack/fpack_writer.h"
#include "core/prepack/pack_binding.h"
#include "core/run/float_control.h"
#include "core/save/stored_weights.h"

namespace folio {
namespace {

// Smaller ones stay in the model.
constexpr uint64_t kStoredFrom = 4096;
// What all packed weights together may take more than the weights: one in so many bytes.
constexpr uint64_t kPaddingShare = 33;

// Of the progress.
constexpr float kPackFrom = 0.2F;
constexpr float kVerifyFrom = 0.6F;

// A constant of the model as it was, and where it stands in the exported one.
struct Original {
  size_t graph = 0;
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  size_t payload = 0;
};

class Replacer {
 public:
  Replacer(const Ref<ModelFile>& model, const SessionOptions& session, std::string path)
      : model_(model),
        session_(session),
        path_(std::move(path)),
        threads_(std::make_unique<PoolView>(session.threads)) {}

  Result<ReplaceResult> run() {
    FOLIO_RETURN_IF_ERROR(check());
    FOLIO_RETURN_IF_ERROR(progress_.at(0.0F, "optimize"));
    FOLIO_RETURN_IF_ERROR(read_model());
    FOLIO_RETURN_IF_ERROR(choose_forms());
    FOLIO_RETURN_IF_ERROR(write_pack());
    FOLIO_RETURN_IF_ERROR(write_model());
    FOLIO_RETURN_IF_ERROR(verify());
    FOLIO_RETURN_IF_ERROR(model_->watch().check_now());
    FOLIO_RETURN_IF_ERROR(pack_->publish());
    auto status = file_->publish();
    if (!status.is_ok()) {
      // Nobody reads it; what it replaced was a cache.
      std::error_code code;
      std::filesystem::remove(result_.pack_path, code);
      return status;
    }
    name_unused_files();
    return std::move(result_);
  }

 private:
  Evaluator evaluator() const {
    return {kernels_for(cpu_bits()), *threads_, [this] { return progress_.again(); }};
  }

  Status check() {
    if (!session_.prepack || !session_.initializers.empty() || !session_.free_dims.empty()) {
      return invalid_argument(
          "weights are replaced for all sessions alike: not without prepacked "
          "weights, nor with initializers or free dimensions of one session");
    }
    const bool is_file = model_->source()->identity() != nullptr;
    is_in_place_ = path_.empty() || path_ == model_->source()->name();
    if (path_.empty()) path_ = model_->source()->name();
    if (is_in_place_ && !is_file) {
      return invalid_argument("the model was opened from memory: a file to write must be named");
    }
    if (path_.ends_with(".ort") || (is_in_place_ && model_->info().format == "ort")) {
      return invalid_argument("'", path_,
                              "': an .ort file cannot name weights in a pack file; "
                              "make an .onnx of it first (folio convert)");
    }
    if (is_in_place_ && !model_->pack_file().empty()) {
      return invalid_argument("the weights of '", path_, "' stand in '", model_->pack_file(),
                              "' already");
    }
    return Status::ok();
  }

  Status read_model() {
    FOLIO_TRY(graph_, model_->take_model({}));
    FOLIO_RETURN_IF_ERROR(run_passes(graph_.get(), evaluator(), Optimize::kOff));
    FOLIO_TRY(exported_, export_model(*graph_, VersionsOf::kImports));
    size_t index = 0;
    each_graph(&exported_->def.graph, [&](GraphDef* graph) {
      const std::vector<size_t>& payloads = exported_->initializer_payloads[graph];
      for (size_t i = 0; i < graph->initializers.size(); ++i) {
        const InitializerDef& def = graph->initializers[i];
        originals_.push_back(
            {index, def.name, def.tensor.dtype(), def.tensor.shape(), payloads[i]});
      }
      ++index;
    });
    return Status::ok();
  }

  // ---- what stands how

  // The payload of each constant of the file, which may be that of several.
  class PayloadOf {
   public:
    explicit PayloadOf(const std::vector<Payload>& payloads) {
      for (size_t i = 0; i < payloads.size(); ++i) {
        const Initializer& constant = *payloads[i].initializer;
        by_constant_[&constant] = i;
        if (constant.tensor) by_place_[place(constant)] = i;
      }
    }
    const size_t* find(const Initializer& constant) const {
      if (const auto it = by_constant_.find(&constant); it != by_constant_.end()) {
        return &it->second;
      }
      if (!constant.tensor) return nullptr;
      const auto it = by_place_.find(place(constant));
      return it == by_place_.end() ? nullptr : &it->second;
    }

   private:
    using Place = std::pair<const uint8_t*, size_t>;
    static Place place(const Initializer& constant) {
      return {constant.tensor->raw(), constant.tensor->bytes()};
    }
    std::map<const Initializer*, size_t> by_constant_;
    std::map<Place, size_t> by_place_;
  };

  bool is_stored(size_t payload) const {
    const Payload& each = exported_->payloads[payload];
    return !each.is_string && each.bytes >= kStoredFrom;
  }

  // Changes the graph: it was exported before.
  Status choose_forms() {
    const FloatControl float_control(/*flush_denormals=*/false);
    FOLIO_RETURN_IF_ERROR(run_passes(graph_.get(), evaluator(), Optimize::kAll));
    // As sessions do: F32WINO43 and the like cannot be unpacked, so those weights stay as the model
    // has them.
    const bool bytes = evaluator().kernels.winograd_bytes != 0;
    const WinogradChoice winograd{kWinogradTiles, bytes};
    folio::choose_forms(graph_.get(), session_.conv_winograd ? winograd : WinogradChoice{0, false});
    FOLIO_TRY(const WeightUses uses, weight_uses(graph_->graph, evaluator().kernels));
    std::vector<WeightUse> by_payload(exported_->payloads.size());
    const PayloadOf payload_of(exported_->payloads);
    for (const auto& [constant, use] : uses) {
      if (const size_t* payload = payload_of.find(*constant)) by_payload[*payload].add(use);
    }
    stored_.payloads.resize(exported_->payloads.size());
    for (const Original& original : originals_) {
      const WeightUse& use = by_payload[original.payload];
      auto& stored = stored_.payloads[original.payload];
      if (!is_stored(original.payload)) continue;
      const bool is_known = stored.has_value();
      if (!is_known) stored.emplace();
      PackedWeight packed{original.dtype, original.shape, {}, 0};
      if (use.packed) packed.form = *use.packed;
      const bool fits = use.packed && !use.is_raw && check_packed_weight(packed).is_ok() &&
                        (!is_known || (stored->packed && stored->packed->dtype == packed.dtype));
      stored->packed = fits ? std::optional<PackedWeight>(std::move(packed)) : std::nullopt;
    }
    const auto is_there = [](const auto& stored) { return stored.has_value(); };
    if (std::none_of(stored_.payloads.begin(), stored_.payloads.end(), is_there)) {
      return invalid_argument("no weight has ", kStoredFrom, " bytes or more: nothing to replace");
    }
    keep_small();
    return Status::ok();
  }

  // Padding adds up: those that have the most of it stay as they are.
  void keep_small() {
    struct Padded {
      double share;
      size_t payload;
      uint64_t padding;
    };
    std::vector<Padded> all;
    uint64_t total = 0;
    for (size_t i = 0; i < stored_.payloads.size(); ++i) {
      if (!stored_.payloads[i]) continue;
      const uint64_t bytes = exported_->payloads[i].bytes;
      total += bytes;
      const auto& packed = stored_.payloads[i]->packed;
      if (!packed || packed->form.bytes <= bytes) continue;
      const uint64_t padding = packed->form.bytes - bytes;
      all.push_back({static_cast<double>(padding) / static_cast<double>(bytes), i, padding});
    }
    std::sort(all.begin(), all.end(), [](const Padded& a, const Padded& b) {
      return std::pair(a.share, a.payload) < std::pair(b.share, b.payload);
    });
    uint64_t left = total / kPaddingShare;
    for (const Padded& each : all) {
      if (each.padding <= left) {
        left -= each.padding;
      } else {
        stored_.payloads[each.payload]->packed.reset();
      }
    }
  }

  // ---- the files

  Status write_pack() {
    result_.pack_path = path_ + ".fpack";
    FOLIO_TRY(pack_, PackWriter::create(result_.pack_path, cat("folio ", FOLIO_VERSION)));
    pack_->set_only_copy();
    const Evaluator evaluator = this->evaluator();
    const PayloadWriter payloads(evaluator, exported_->payloads, nullptr);
    const size_t count = stored_.payloads.size();
    for (size_t i = 0; i < count; ++i) {
      const float part = static_cast<float>(i) / static_cast<float>(count);
      FOLIO_RETURN_IF_ERROR(progress_.at(kPackFrom + (kVerifyFrom - kPackFrom) * part, "pack"));
      if (!stored_.payloads[i]) continue;
      const Payload& payload = exported_->payloads[i];
      FOLIO_TRY(const Tensor tensor, payloads.tensor(payload));
      FOLIO_RETURN_IF_ERROR(write_weight(payload, tensor, &*stored_.payloads[i]));
      const Initializer& from = *payload.initializer;
      if (from.source && from.tensor) from.source->drop_pages(from.offset, payload.bytes);
    }
    FOLIO_TRY(const uint64_t size, pack_->seal());
    FOLIO_TRY(pack_bytes_, pack_->map());
    stored_.location = std::filesystem::path(result_.pack_path).filename().string();
    const auto source = MemorySource::borrow({pack_bytes_->data(), size}, nullptr, nullptr,
                                             {result_.pack_path, {}, "", FileLoading::kMap});
    FOLIO_TRY(const PackSummary summary, read_pack_summary(*source));
    stored_.metadata = {PackBinding::kKey,
                        PackBinding::of(stored_.location, summary).file.to_text()};
    pack_source_ = source;
    return Status::ok();
  }

  // Equal weights stand there once.
  Status write_weight(const Payload& payload, const Tensor& tensor, StoredWeight* stored) {
    const Bytes bytes{tensor.raw(), static_cast<size_t>(payload.bytes)};
    const ContentId content = content_of_digest(hash_bytes(bytes), tensor.dtype(), tensor.shape());
    PackWriter::Label label{make_raw_key(content), Layout::kRaw, kRawVersion,
                            payload.initializer->name};
    if (stored->packed) {
      const PackRequest& form = stored->packed->form;
      label = {make_pack_key(content, form), form.layout, form.version, label.name};
    }
    if (!pack_->find(label.key)) {
      if (stored->packed) {
        const PackRequest& form = stored->packed->form;
        const auto fill = [&](uint8_t* blob) {
          return form.fill(form, form.context, tensor, blob);
        };
        auto added = pack_->add(label, form.bytes, fill, BlobPlace::kSidecar);
        if (!added.is_ok()) return std::move(added).take_status();
      } else {
        auto added = pack_->add(label, bytes, BlobPlace::kSidecar);
        if (!added.is_ok()) return std::move(added).take_status();
      }
      (stored->packed ? result_.packed_weights : result_.raw_weights) += 1;
      (stored->packed ? result_.packed_bytes : result_.raw_bytes) += pack_->find(label.key)->bytes;
    }
    const PackEntry& entry = *pack_->find(label.key);
    stored->offset = entry.offset;
    if (stored->packed) stored->packed->checksum = entry.checksum;
    return Status::ok();
  }

  Status write_model() {
    // Later on the payloads are those of the new model: the constants stay.
    for (const Payload& payload : exported_->payloads) constants_.push_back(payload);
    FOLIO_TRY(file_, NewFile::create(path_));
    const Evaluator evaluator = this->evaluator();
    FOLIO_RETURN_IF_ERROR(write_stored_model(exported_.get(), stored_, evaluator, file_.get()));
    return file_->finish();
  }

  // ---- what was written, read back

  Status verify() {
    FOLIO_TRY(const Ref<Buffer> bytes, file_->map(0, file_->size()));
    MemorySourceOptions naming;
    naming.name = path_;
    ModelOptions options;
    options.files[stored_.location] = pack_source_;
    options.format = "ONNX";
    const Bytes all{bytes->data(), bytes->bytes()};
    FOLIO_TRY(const Ref<ModelFile> written,
              ModelFile::open(MemorySource::borrow(all, nullptr, nullptr, naming), options));
    FOLIO_TRY(const std::unique_ptr<Model> model, written->take_model({}));
    FOLIO_RETURN_IF_ERROR(run_passes(model.get(), evaluator(), Optimize::kOff));
    FOLIO_TRY(const std::unique_ptr<ExportedModel> found,
              export_model(*model, VersionsOf::kImports));
    return compare(found.get());
  }

  Status compare(ExportedModel* found) {
    std::map<std::pair<size_t, std::string>, size_t> payloads;
    size_t index = 0;
    each_graph(&found->def.graph, [&](GraphDef* graph) {
      for (size_t i = 0; i < graph->initializers.size(); ++i) {
        payloads[{index, graph->initializers[i].name}] = found->initializer_payloads[graph][i];
      }
      ++index;
    });
    const Evaluator evaluator = this->evaluator();
    const PayloadWriter before(evaluator, constants_, nullptr);
    const PayloadWriter after(evaluator, found->payloads, nullptr);
    for (const Original& original : originals_) {
      const auto done = static_cast<float>(&original - originals_.data());
      const float part = done / static_cast<float>(originals_.size());
      FOLIO_RETURN_IF_ERROR(progress_.at(kVerifyFrom + (1.0F - kVerifyFrom) * part, "verify"));
      const auto at = payloads.find({original.graph, original.name});
      if (at == payloads.end()) return not_back(original, "is not there");
      FOLIO_TRY(const Tensor old, before.tensor(constants_[original.payload]));
      FOLIO_TRY(const Tensor now, after.tensor(found->payloads[at->second]));
      if (now.dtype() != old.dtype() || now.count() != old.count() || !is_equal(old, now)) {
        return not_back(original, "has other bytes");
      }
      const Initializer& from = *constants_[original.payload].initializer;
      if (from.source && from.tensor) from.source->drop_pages(from.offset, old.bytes());
    }
    return Status::ok();
  }

  static bool is_equal(const Tensor& a, const Tensor& b) {
    if (!a.is_string()) {
      return a.bytes() == b.bytes() &&
             (a.bytes() == 0 || !std::memcmp(a.raw(), b.raw(), a.bytes()));
    }
    const auto x = a.span<std::string>();
    return std::equal(x.begin(), x.end(), b.span<std::string>().begin());
  }

  Status not_back(const Original& original, const char* what) const {
    return error(Code::kFail, "'", path_, "' would lose a weight: '", original.name, "' ", what,
                 "; nothing was written");
  }

  // ---- afterwards

  void name_unused_files() const {
    if (!is_in_place_) return;
    std::set<std::string> names;
    for (const Ref<const ByteSource>& file : model_->watch().files()) names.insert(file->name());
    names.erase(path_);
    for (const std::string& name : names) {
      log(LogLevel::kWarning, cat("'", path_, "' does not need '", name,
                                  "' any more; if no other model does, remove it"));
    }
  }

  const Ref<ModelFile> model_;
  const SessionOptions& session_;
  LoadProgress progress_{session_.progress, "optimize", "replacing weights was cancelled"};
  std::string path_;
  const std::unique_ptr<Parallel> threads_;
  bool is_in_place_ = false;
  std::unique_ptr<Model> graph_;
  std::unique_ptr<ExportedModel> exported_;
  std::vector<Original> originals_;
  std::vector<Payload> constants_;
  StoredWeights stored_;
  std::unique_ptr<PackWriter> pack_;
  Ref<Buffer> pack_bytes_;
  Ref<ByteSource> pack_source_;
  std::unique_ptr<NewFile> file_;
  ReplaceResult result_;
};

}  // namespace

Result<ReplaceResult> replace_weights(const Ref<ModelFile>& model, const SessionOptions& session,
                                      const std::string& path) {
  auto replaced = with_tiles(cpu_bits(), [&] { return Replacer(model, session, path).run(); });
  if (replaced.is_ok()) return replaced;
  return std::move(replaced).take_status().with_context(model->source()->name());
}

}  // namespace folio
