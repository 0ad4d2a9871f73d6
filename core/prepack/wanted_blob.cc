#include "core/prepack/wanted_blob.h"

namespace folio {
namespace {

using Found = Result<Ref<const PackedBlob>>;

Found make_in_memory(const WantedBlob& wanted) {
  if (wanted.make) return wanted.make();
  FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(wanted.bytes));
  FOLIO_RETURN_IF_ERROR(wanted.fill(buffer->data()));
  return Ref<const PackedBlob>(make_ref<PackedBlob>(std::move(buffer), wanted.bytes));
}

Found look_or_make(PackLibrary& library, const PackKey& key, const WantedBlob& wanted) {
  if (!wanted.was_looked_for) {
    if (Ref<const PackedBlob> found = library.find(key, wanted.bytes)) return found;
  }
  const PackWriter::Label label{key, wanted.layout, wanted.version, wanted.name};
  FOLIO_TRY(Ref<const PackedBlob> written, library.write(label, wanted.bytes, wanted.fill));
  if (written) return written;
  return make_in_memory(wanted);
}

}  // namespace

Found find_or_make(PackedCache& cache, PackLibrary* library, const WantedBlob& wanted) {
  const auto wait = wanted.may_wait ? PackedCache::Wait::kYes : PackedCache::Wait::kNo;
  if (!library) {
    return cache.get_or_make(
        wanted.place, [&] { return make_in_memory(wanted); }, wait);
  }
  const auto by_content = [&] {
    const PackKey key = wanted.content(*library);
    return cache.get_or_make(
        key, [&] { return look_or_make(*library, key, wanted); }, wait);
  };
  return wanted.is_placed ? cache.get_or_make(wanted.place, by_content, wait) : by_content();
}

Found find_blob(PackedCache& cache, PackLibrary* library, const WantedBlob& wanted) {
  if (!library) return cache.find(wanted.place);
  const auto by_content = [&] {
    const PackKey key = wanted.content(*library);
    return cache.get_or_make(
        key, [&]() -> Found { return library->find(key, wanted.bytes); }, PackedCache::Wait::kNo);
  };
  return wanted.is_placed ? cache.get_or_make(wanted.place, by_content, PackedCache::Wait::kNo)
                          : by_content();
}

}  // namespace folio
