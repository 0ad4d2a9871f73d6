#include "core/session/session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/log.h"
#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/sigbus_guard.h"
#include "core/os/thread_pool.h"
#include "core/os/tile_threads.h"
#include "core/passes/passes.h"
#include "core/plan/program_builder.h"
#include "core/run/float_control.h"
#include "core/session/pack_model.h"
#include "core/session/wanted_files.h"

namespace folio {
namespace {

// Rank and fixed dims must agree, symbols are free.
bool shape_fits(const TypeInfo& type, const Shape& shape) {
  if (!type.dims) return true;
  bool fits = shape.rank() == type.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) {
    const Dim dim = (*type.dims)[static_cast<size_t>(i)];
    fits = !dim.is_value() || dim.value == shape[i];
  }
  return fits;
}

// "tensor(float)[batch,3]": the type with the names that its dims have in the model.
std::string type_text(const TypeInfo& type, const DimTable& table) {
  if (!type.has_rank()) return type_to_string(type);
  std::string text = type_to_string(TypeInfo::tensor(type.dtype)) + "[";
  for (const Dim dim : *type.dims) {
    if (text.back() != '[') text += ',';
    const std::string& name = dim.is_symbol() ? table.name(dim.symbol) : "";
    text += dim.is_value() ? std::to_string(dim.value) : name.empty() ? "?" : name;
  }
  return text + "]";
}

// "input 'x' has shape [2,3], expected tensor(float)[2,4]".
Status check_input(const PortInfo& port, const Value& value, const DimTable& table) {
  const TypeInfo& type = port.type;
  const auto wrong_kind = [&] {
    return invalid_argument("input '", port.name, "' must be ", type_text(type, table));
  };
  if (type.kind == TypeInfo::Kind::kOptional || type.kind == TypeInfo::Kind::kUnknown) {
    return Status::ok();
  }
  if (type.kind == TypeInfo::Kind::kSequence) {
    return value.kind() == Value::Kind::kSequence ? Status::ok() : wrong_kind();
  }
  if (type.kind == TypeInfo::Kind::kMap) {
    return value.kind() == Value::Kind::kMap ? Status::ok() : wrong_kind();
  }
  if (!value.is_tensor()) return wrong_kind();
  const Tensor& tensor = value.tensor();
  if (tensor.dtype() != type.dtype) {
    return invalid_argument("input '", port.name, "' is ", dtype_name(tensor.dtype()),
                            ", expected ", dtype_name(type.dtype));
  }
  if (shape_fits(type, tensor.shape())) return Status::ok();
  return invalid_argument("input '", port.name, "' has shape ", tensor.shape().to_string(),
                          ", expected ", type_text(type, table));
}

std::string names_of(const std::vector<PortInfo>& ports) {
  std::string names;
  for (const PortInfo& port : ports) names += cat(names.empty() ? "'" : ", '", port.name, "'");
  return names.empty() ? "none" : names;
}

// What the load found and made is kept, unless a file changed meanwhile: its bytes would stand
// under the wrong name, and not even a caller who is only to be warned wants that.
Status finish_library(PackLibrary* library, const FileWatch& watch) {
  if (!library || !watch.check_now().is_ok()) return Status::ok();
  return library->finish();
}

// Whoever reads a blob is told when its file changes, whoever has opened that file: another model
// of the process, the older one of a reload, or the process itself, which wrote it.
void watch_blob(const PackedBlob& blob, FileWatch* watch) {
  if (blob.file()) watch->add(blob.file());
}

// Of a load's progress: where packing begins that was left until then.
constexpr float kPacking = 0.6F;

// A timeout of more than that is none; adding it to the clock could overflow.
constexpr std::chrono::hours kLongestTimeout{24 * 365};

}  // namespace

Result<Ref<Session>> Session::create(Ref<ModelFile> model, const SessionOptions& options) {
  if (options.sigbus_guard) enable_sigbus_guard();
  auto session = make_ref<Session>(std::move(model), options);
  const auto begin = Profile::Clock::now();
  if (!options.profile_prefix.empty()) {
    FOLIO_TRY(session->profile_, Profile::start(options.profile_prefix));
  }
  auto status = with_tiles(cpu_bits(), [&] { return session->compile(); });
  if (session->profile_) session->profile_->add_load(begin, Profile::Clock::now());
  if (!status.is_ok()) {
    if (session->profile_) session->profile_->drop();
    return std::move(status).with_context(session->model_->info().path);
  }
  return session;
}

Session::~Session() {
  if (program_ && !key_.empty()) model_->release_program(key_, std::move(program_));
}

// Where even all parts of numbers are multiplied faster than the numbers, Winograd's fewer products
// of numbers are faster for large images, whose channels are few; those of one part never are. A
// Xeon with AMX, 2026-11, GFLOP/s of 3x3 convolutions, direct and Winograd's: highest 28 x 28 x 128
// (49 tiles) 252, 375, 14 x 14 x 256 (16) 240, 220; high 56 x 56 x 64 (196) 330, 390, 28 x 28 x 128
// 417, 375.
WinogradChoice Session::winograd() const {
  constexpr int64_t kBesideThreeParts = 32;
  constexpr int64_t kBesideTwoParts = 128;
  if (!options_.conv_winograd || !options_.prepack) return {0, false};
  const FolioKernels& kernels = kernels_for(options_.kernels.value_or(cpu_bits()));
  WinogradChoice choice{kWinogradTiles, kernels.winograd_bytes != 0};
  if (folio_multiplies_parts(&kernels, kFolioHighest) == 0) return choice;
  choice.fewest_tiles = options_.precision == kFolioHighest ? kBesideThreeParts
                        : options_.precision == kFolioHigh  ? kBesideTwoParts
                                                            : 0;
  return choice;
}

// Of `medium`, products round to bfloat16 whatever they are given; weights that are rounded once
// have half the bytes and need no rounding in each run.
bool Session::rounds_weights() const {
  if (options_.weights != FloatWeights::kAuto) return options_.weights == FloatWeights::kBfloat16;
  if (!options_.prepack) return false;
  const FolioKernels& kernels = kernels_for(options_.kernels.value_or(cpu_bits()));
  return options_.precision == kFolioMedium && folio_multiplies_parts(&kernels, kFolioMedium) != 0;
}

// What two sessions must agree on to share a program; empty: nothing to share.
std::string Session::program_key() const {
  if (!options_.initializers.empty() || options_.cache || options_.library) return "";
  std::string key = cat(
      "prepack=", options_.prepack, " packing=", options_.packing != Packing::kOff,
      " optimize=", static_cast<int>(options_.optimize), " winograd=", winograd().fewest_tiles,
      " byte_winograd=", winograd().bytes, " rounds=", rounds_weights(),
      " find=", options_.find_sidecar, " checksum=", options_.pack.checksum != PackChecksum::kOff,
      " profile=", !options_.profile_prefix.empty(), " sidecar=", options_.pack.sidecar.size(), ':',
      options_.pack.sidecar);
  for (const std::string& store : options_.pack.stores) key += cat(" store=", store);
  FreeDims dims = options_.free_dims;
  std::sort(dims.begin(), dims.end());
  // With its length, since a name may hold any character.
  for (const auto& [name, value] : dims) key += cat(' ', name.size(), ':', name, '=', value);
  return key;
}

// ONNX Runtime saves what the session optimized; here that is what is portable of it.
Status Session::save_optimized() {
  const ModelSaving& saving = options_.saving;
  if (saving.path.empty()) return Status::ok();
  if (saving.packs && !options_.prepack) {
    return invalid_argument(
        "session.save_external_prepacked_constant_initializers needs prepacked weights, but "
        "session.disable_prepacking is set");
  }
  const Optimize level = options_.optimize == Optimize::kOff ? Optimize::kOff : Optimize::kExtended;
  auto saved =
      model_->save(saving, level, options_.free_dims, options_.initializers, *threads_, nullptr);
  if (!saved.is_ok()) return std::move(saved).take_status();
  return saving.packs ? pack_saved() : Status::ok();
}

// The sidecar of the model that was just saved, for sessions with these options.
Status Session::pack_saved() const {
  SessionOptions session = options_;
  const std::string path = std::move(session.saving.path);
  session.saving = {};
  session.progress = nullptr;
  session.initializers.clear();  // they stand in the saved model
  FOLIO_TRY(const Ref<ModelFile> model, ModelFile::open(path, ModelOptions{}));
  auto packed = pack_model(model, std::move(session), PackModelOptions{});
  return packed.is_ok() ? Status::ok() : std::move(packed).take_status();
}

Status Session::compile() {
  threads_ = options_.threads == 1 ? std::unique_ptr<Parallel>(std::make_unique<InlineParallel>())
                                   : std::make_unique<PoolView>(options_.threads);
  kernels_ = &kernels_for(cpu_bits(), options_.precision);
  FOLIO_RETURN_IF_ERROR(save_optimized());
  key_ = program_key();
  if (key_.empty()) {
    FOLIO_TRY(program_, make_program());
  } else {
    FOLIO_TRY(program_, model_->program(key_, [&] { return make_program(); }));
  }
  // One that another session compiled may be older than a change.
  FOLIO_RETURN_IF_ERROR(model_->watch().check(options_.on_file_change));
  if (options_.packing == Packing::kLoad) FOLIO_RETURN_IF_ERROR(wait_packed_at_load());
  FOLIO_RETURN_IF_ERROR(progress_.at(1.0F, "ready"));
  if (made_program_ || options_.residency != ResidencyMode::kCache) {
    ResidencyPlan plan =
        plan_residency(options_.residency, wanted_files(*program_, model_->watch()));
    residency_ = Residency::start(std::move(plan.now));
    at_first_run_ = std::move(plan.at_first_run);
  }
  return Status::ok();
}

// The pack files of this load; null when there can be none.
Result<Ref<PackLibrary>> Session::open_library() const {
  if (options_.library) return options_.library;
  PackOptions pack = options_.pack;
  if (!options_.prepack) return Ref<PackLibrary>();
  // Beside a model whose weights stand in a pack file only there is that one, which is no cache.
  const bool may_have_sidecar = model_->source()->identity() && model_->pack_file().empty();
  if (options_.find_sidecar && may_have_sidecar && pack.sidecar.empty()) {
    pack.sidecar = cat(model_->source()->name(), ".fpack");
    pack.may_lack_sidecar = true;
  }
  pack.declared = model_->declared();
  pack.record = options_.cache ? options_.cache->record() : nullptr;
  pack.report = [cache = options_.cache](const PackCounts& counts) {
    (cache ? *cache : PackedCache::process()).add(counts);
  };
  if (!pack.is_used()) return Ref<PackLibrary>();
  FOLIO_TRY(Ref<PackLibrary> library, PackLibrary::open(pack));
  if (library->is_empty()) return Ref<PackLibrary>();
  return library;
}

Status Session::wait_packed_at_load() {
  Status status = progress_.at(kPacking, "pack");  // also where nothing is left to be packed
  if (!status.is_ok()) return status;
  const auto go_on = [&](size_t done, size_t total) {
    status = progress_.at(
        kPacking + (1.0F - kPacking) * static_cast<float>(done) / static_cast<float>(total),
        "pack");
    return status.is_ok();
  };
  program_->weights->wait(std::chrono::steady_clock::time_point::max(), go_on);
  return status;
}

bool Session::wait_packed(std::chrono::milliseconds timeout) {
  const bool is_endless = timeout < std::chrono::milliseconds(0) || timeout >= kLongestTimeout;
  const auto now = std::chrono::steady_clock::now();
  return program_->weights->wait(is_endless ? now.max() : now + timeout,
                                 [&](size_t, size_t) { return !is_closed(); });
}

// Once a process: the level below computes instead.
static void warn_of_failed_kernels() {
  static const bool told = [] {
    if (const char* const failed = failed_kernel_level(cpu_bits())) {
      log(LogLevel::kWarning,
          cat("kernels ", failed, " gave wrong results when they were checked on ",
              "this machine: ", kernel_level_name(cpu_bits()), " are used"));
    }
    return true;
  }();
  (void)told;
}

// The spine: the model was mapped and parsed by ModelFile; here it becomes a program.
Result<Ref<Program>> Session::make_program() {
  const CpuBits bits = options_.kernels ? *options_.kernels : cpu_bits();
  warn_of_failed_kernels();
  const Evaluator evaluator{kernels_for(bits), *threads_, [this] { return progress_.again(); }};
  const FloatControl float_control(/*flush_denormals=*/false);  // the program may be shared

  FOLIO_RETURN_IF_ERROR(progress_.at(0.0F, "parse"));
  FOLIO_TRY(const std::unique_ptr<Model> model, model_->take_model(options_.free_dims));
  FOLIO_RETURN_IF_ERROR(replace_initializers(model.get(), options_.initializers));

  FOLIO_RETURN_IF_ERROR(progress_.at(0.2F, "optimize"));
  const bool unpacked = options_.optimize == Optimize::kAll && !options_.prepack;
  FOLIO_RETURN_IF_ERROR(
      run_passes(model.get(), evaluator, unpacked ? Optimize::kUnpacked : options_.optimize));
  choose_forms(model.get(), winograd());
  if (rounds_weights()) round_weights(model.get());

  FOLIO_RETURN_IF_ERROR(progress_.at(0.5F, "plan"));
  ProgramOptions plan;
  plan.prepack = options_.prepack;
  plan.cache = options_.cache ? options_.cache.get() : &PackedCache::process();
  plan.arithmetic = kernel_level_name(bits);
  plan.keeps_attributes = !options_.profile_prefix.empty();
  FOLIO_TRY(plan.library, open_library());
  // Whoever named a cache or a pack file to be written wants it filled when the load returns.
  const bool is_later = !options_.library && !options_.cache;
  if (is_later) plan.when = WeightPacker::When::kLater;
  const float end = is_later ? kPacking : 1.0F;
  plan.progress = [&](size_t done, size_t total) {
    const float part = static_cast<float>(done) / static_cast<float>(total);
    return progress_.at(0.5F + (end - 0.5F) * part, is_later ? "plan" : "pack");
  };
  plan.older = model_->older_weights();
  plan.checks_blobs = options_.pack.checksum != PackChecksum::kOff;
  FOLIO_TRY(Ref<Program> program, build_program(model.get(), evaluator, plan));
  const Ref<FileWatch> watch(&model_->watch());
  for (const auto& blob : program->packed_now()) watch_blob(*blob, watch.get());
  // Constants were computed and weights packed from the files' bytes.
  FOLIO_RETURN_IF_ERROR(watch->check(options_.on_file_change));
  made_program_ = true;
  if (is_later && options_.packing != Packing::kOff) {
    // Fails only for a file that the caller asked for.
    const auto done = [watch](PackLibrary* library) { (void)finish_library(library, *watch); };
    program->weights->start(done, [watch](const auto& blob) { watch_blob(blob, watch.get()); });
  } else {
    program->weights->leave();
    if (!options_.library) FOLIO_RETURN_IF_ERROR(finish_library(plan.library.get(), *watch));
  }
  return program;
}

Status Session::bind_inputs(const std::vector<NamedValue>& inputs, RunRequest* request) const {
  const std::vector<PortInfo>& ports = program_->inputs;
  request->inputs.assign(ports.size(), Value());
  std::vector<uint8_t> given(ports.size(), 0);
  for (const NamedValue& input : inputs) {
    const auto it = std::find_if(ports.begin(), ports.end(),
                                 [&](const PortInfo& port) { return port.name == input.name; });
    if (it == ports.end()) {
      return invalid_argument("the model has no input '", input.name, "'; it has ",
                              names_of(ports));
    }
    const auto index = static_cast<size_t>(it - ports.begin());
    if (given[index]++) return invalid_argument("input '", input.name, "' is given twice");
    FOLIO_RETURN_IF_ERROR(check_input(*it, input.value, program_->dims));
    request->inputs[index] = input.value;
    // Kernels read whole elements: memory that a caller cut out of a larger piece may stand
    // anywhere.
    if (input.value.is_tensor() && !is_aligned_for(input.value.tensor())) {
      auto aligned = copy_tensor(input.value.tensor());
      if (!aligned.is_ok()) {
        return std::move(aligned).take_status().with_context(cat("input '", input.name, "'"));
      }
      request->inputs[index] = Value(std::move(aligned).take());
    }
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const bool optional = ports[i].type.kind == TypeInfo::Kind::kOptional;
    if (!given[i] && !ports[i].has_default && ports[i].is_read && !optional) {
      return invalid_argument("input '", ports[i].name, "' (",
                              type_text(ports[i].type, program_->dims), ") is missing");
    }
  }
  return Status::ok();
}

Status Session::bind_outputs(const std::vector<WantedOutput>& wanted, RunRequest* request,
                             std::vector<size_t>* order) const {
  const std::vector<PortInfo>& ports = program_->outputs;
  request->wanted.assign(ports.size(), 0);
  request->memory.assign(ports.size(), Tensor());
  order->reserve(wanted.size());
  for (const WantedOutput& output : wanted) {
    // A model may give one value several times: each time it is asked for is the next one.
    bool known = false;
    size_t index = 0;
    for (; index < ports.size(); ++index) {
      if (ports[index].name != output.name) continue;
      known = true;
      if (!request->wanted[index]) break;
    }
    if (!known)
      return invalid_argument("the model has no output '", output.name, "'; it has ",
                              names_of(ports));
    if (index == ports.size()) {
      return invalid_argument("output '", output.name,
                              "' is asked for twice, or more often than the model gives it");
    }
    request->wanted[index] = 1;
    request->memory[index] = output.memory;
    order->push_back(index);
  }
  return Status::ok();
}

Status Session::execute(const RunOptions& options, const std::vector<NamedValue>& inputs,
                        const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs) {
  FOLIO_RETURN_IF_ERROR(model_->watch().check(options_.on_file_change));
  RunRequest request;
  std::vector<size_t> order;
  FOLIO_RETURN_IF_ERROR(bind_inputs(inputs, &request));
  FOLIO_RETURN_IF_ERROR(bind_outputs(wanted, &request, &order));
  request.control.cancel = options.cancel;
  request.control.closing = &cancel_runs_;
  if (options.timeout.count() > 0 && options.timeout < kLongestTimeout) {
    request.control.deadline = std::chrono::steady_clock::now() + options.timeout;
  }
  request.parallel = threads_.get();
  request.kernels = kernels_;
  request.flush_denormals = options_.flush_denormals;
  std::vector<Value> all;
  std::vector<StepTime> times;
  const bool is_profiled = profile_ && profile_->is_on();
  Profile::Clock::time_point begin;
  if (is_profiled) {
    request.times = &times;
    begin = Profile::Clock::now();
  }
  const Status done = run_program(*program_, request, &all);
  if (is_profiled) profile_->add_run(begin, Profile::Clock::now(), times);
  // Also when it failed: zeros in place of a weight may be why.
  FOLIO_RETURN_IF_ERROR(model_->watch().check(options_.on_file_change));
  FOLIO_RETURN_IF_ERROR(done);
  std::vector<Value> out;
  out.reserve(order.size());
  for (const size_t index : order) out.push_back(std::move(all[index]));
  *outputs = std::move(out);
  return Status::ok();
}

Status Session::begin_run() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_.load(std::memory_order_relaxed)) {
    return error(Code::kClosed, "the session is closed");
  }
  ++running_;
  if (!at_first_run_.empty()) populating_ = Residency::start(std::exchange(at_first_run_, {}));
  return Status::ok();
}

void Session::end_run() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

Status Session::run(const RunOptions& options, const std::vector<NamedValue>& inputs,
                    const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs) {
  FOLIO_RETURN_IF_ERROR(begin_run());
  struct End {
    Session* session;
    ~End() { session->end_run(); }
  } const end{this};
  const auto start = std::chrono::steady_clock::now();
  auto status = with_tiles(cpu_bits(), [&] { return execute(options, inputs, wanted, outputs); });
  const auto elapsed = std::chrono::steady_clock::now() - start;
  metrics_.add(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count()));
  if (status.code() == Code::kCancelled) {
    metrics_.cancelled.fetch_add(1, std::memory_order_relaxed);
  } else if (!status.is_ok()) {
    metrics_.failed.fetch_add(1, std::memory_order_relaxed);
    if (status.code() != Code::kClosed && status.code() != Code::kModelChanged) {
      status = std::move(status).with_context(model_->info().path);
    }
  }
  return options.tag.empty() ? std::move(status)
                             : std::move(status).with_context(cat("run '", options.tag, "'"));
}

Status Session::prepare(const std::vector<std::pair<std::string, Shape>>& shapes) {
  if (is_closed()) return error(Code::kClosed, "the session is closed");
  std::vector<int64_t> signature = program_->shapes.unknown_signature();
  std::map<std::string, int64_t> by_name;  // what inputs that are not in `shapes` have, too
  for (const auto& [name, shape] : shapes) {
    const auto port =
        std::find_if(program_->inputs.begin(), program_->inputs.end(),
                     [&, &wanted = name](const PortInfo& p) { return p.name == wanted; });
    if (port == program_->inputs.end()) {
      return invalid_argument("the model has no input '", name, "'");
    }
    if (!port->type.is_tensor() || !shape_fits(port->type, shape)) {
      return invalid_argument("input '", name, "' has shape ", shape.to_string(), ", expected ",
                              type_text(port->type, program_->dims));
    }
    for (int d = 0; port->type.dims && d < shape.rank(); ++d) {
      const Dim dim = (*port->type.dims)[static_cast<size_t>(d)];
      const int32_t place = program_->shapes.place_of(dim);
      if (place < 0) continue;
      int64_t& known = signature[static_cast<size_t>(place)];
      if (known < 0) known = shape[d];  // the first input decides, as in a run
      by_name.emplace(program_->dims.name(dim.symbol), shape[d]);
    }
  }
  for (const PortInfo& port : program_->inputs) {
    if (!port.is_read || port.has_default || !port.type.has_rank()) continue;
    for (const Dim dim : *port.type.dims) {
      const int32_t place = program_->shapes.place_of(dim);
      if (place < 0) continue;
      int64_t& known = signature[static_cast<size_t>(place)];
      if (known >= 0) continue;
      const auto named = by_name.find(program_->dims.name(dim.symbol));
      if (named != by_name.end() && !named->first.empty()) {
        known = named->second;
        continue;
      }
      return invalid_argument("the shape of input '", port.name, "' (",
                              type_text(port.type, program_->dims), ") is needed");
    }
  }
  program_->shapes.plan_for(signature);
  return Status::ok();
}

void Session::close(Close how) {
  std::unique_lock<std::mutex> lock(mutex_);
  closed_.store(true, std::memory_order_release);
  if (how == Close::kCancel) cancel_runs_.store(true, std::memory_order_relaxed);
  idle_.wait(lock, [&] { return running_ == 0; });
}

}  // namespace folio
