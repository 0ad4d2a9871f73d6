// Bytes lent by the user, and progress reported to the user.
#include "c_api/handles.h"
#include "core/os/memory_source.h"

namespace folio {

Result<Ref<ByteSource>> lend_bytes(const void* data, size_t bytes, FolioReleaseFunction release,
                                   void* user, std::string name, Ref<Lent>* lent, bool directly) {
  const Bytes view(static_cast<const uint8_t*>(data), bytes);
  MemorySourceOptions options;
  options.name = std::move(name);
  if (!release && directly) {
    return Ref<ByteSource>(MemorySource::borrow(view, nullptr, nullptr, std::move(options)));
  }
  if (!release) {
    FOLIO_TRY(Ref<MemorySource> copy, MemorySource::copy(view, std::move(options)));
    return Ref<ByteSource>(copy);
  }
  auto made = make_ref<Lent>(release, user);
  const auto let_go = [](void* lent_pointer) { static_cast<Lent*>(lent_pointer)->release(); };
  Ref<ByteSource> source = MemorySource::borrow(view, let_go, made.get(), std::move(options));
  made->add_ref();  // the source's, which let_go gives back
  *lent = std::move(made);
  return source;
}

bool may_borrow(const ModelOptions& options, const void* data, size_t bytes) {
  if (!options.borrow_ort_bytes || options.owns_ort_bytes()) return false;
  const Bytes view(static_cast<const uint8_t*>(data), bytes);
  return options.format == "ORT" || sniff_format(view) == ModelFormat::kOrt;
}

Progress progress_for(FolioProgressFunction function, void* user, Ref<CancelState> cancel,
                      float from, float to) {
  if (!function && !cancel) return nullptr;
  return [=](float done, const char* what) {
    const auto cancelled = [&] {
      return cancel && cancel->requested.load(std::memory_order_relaxed);
    };
    if (cancelled()) return false;
    if (!function) return true;
    return function(user, what, static_cast<double>(from + (to - from) * done)) == 0 &&
           !cancelled();
  };
}

}  // namespace folio
