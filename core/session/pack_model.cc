#include "core/session/pack_model.h"

#include <algorithm>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"

namespace folio {
namespace {

// "avx2" for the folder x86_avx2.
std::string_view short_name(std::string_view level) {
  return level.starts_with("x86_") ? level.substr(4) : level;
}

Result<CpuBits> bits_of(const std::string& name) {
  std::string known;
  for (const KernelLevel& level : kernel_levels()) {
    if (!level_usable(level, cpu_bits())) continue;
    if (name == level.name || name == short_name(level.name)) return level.needs;
    known += cat(known.empty() ? "" : ", ", short_name(level.name));
  }
  return invalid_argument("kernels '", name, "' cannot run here; expected one of ", known);
}

Status build_for(const Ref<ModelFile>& model, const SessionOptions& session) {
  auto made = Session::create(model, session);
  return made.is_ok() ? Status::ok() : std::move(made).take_status();
}

}  // namespace

Result<PackModelResult> pack_model(const Ref<ModelFile>& model, SessionOptions session,
                                   const PackModelOptions& options) {
  if (!session.prepack) {
    return invalid_argument("nothing can be packed with session.disable_prepacking = 1");
  }
  std::vector<CpuBits> levels;
  for (const std::string& name : options.levels) {
    FOLIO_TRY(const CpuBits bits, bits_of(name));
    levels.push_back(bits);
  }
  if (levels.empty()) levels.push_back(cpu_bits());

  PackModelResult result;
  PackOptions pack = session.pack;
  pack.sidecar.clear();  // what stands in another file must stand in this one too
  result.path = options.path.empty() ? cat(model->source()->name(), ".fpack") : options.path;
  if (!options.store.empty()) {
    pack.stores = {options.store};
    result.path = options.store;
    FOLIO_RETURN_IF_ERROR(PackStore::open(options.store, PackChecksum::kOff, true).take_status());
  } else {
    pack.stores.clear();
    (options.check ? pack.sidecar : pack.output) = result.path;
  }
  pack.producer = cat("folio ", FOLIO_VERSION);
  pack.is_read_only = options.check;
  pack.must_store = !options.check;
  FOLIO_TRY(session.library, PackLibrary::open(pack));
  // Blobs that the process has already must be written all the same.
  session.cache = std::make_shared<PackedCache>();
  session.on_file_change = OnFileChange::kError;
  session.profile_prefix.clear();  // nothing runs
  for (const CpuBits bits : levels) {
    session.kernels = bits;
    FOLIO_RETURN_IF_ERROR(build_for(model, session));
  }
  FOLIO_RETURN_IF_ERROR(session.library->finish());
  const PackLibrary::Stats& stats = session.library->stats();
  result.written_blobs = stats.written_blobs;
  result.written_bytes = stats.written_bytes;
  result.found_blobs = stats.hits - stats.own_hits;
  result.missing_blobs = stats.misses + stats.misfits + stats.damaged - stats.written_blobs;
  return result;
}

}  // namespace folio
