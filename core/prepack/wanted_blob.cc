#include "core/prepack/wanted_blob.h"

#include "core/os/anonymous_memory.h"

namespace folio {
namespace {

using Found = Result<Ref<const PackedBlob>>;

Found make_in_memory(const WantedBlob& wanted) {
  if (wanted.in_files_only) return not_implemented("'", wanted.name, "' is packed in files only");
  if (wanted.make) return wanted.make();
  FOLIO_TRY(Ref<Buffer> buffer, allocate_large_buffer(wanted.bytes));
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

// What is found is what the name says. What is made here may be something else, if the model's file
// does not say the truth: then it must not have that name.
Found look_for_declared(PackedCache& cache, PackLibrary& library, const PackKey& key,
                        uint64_t bytes, bool was_looked_for) {
  Ref<const PackedBlob> found = cache.find(key);
  if (!found && !was_looked_for) found = library.find(key, bytes);
  if (!found) return found;
  return cache.get_or_make(
      key, [&] { return Found(found); }, PackedCache::Wait::kNo);
}

}  // namespace

Found find_or_make(PackedCache& cache, PackLibrary* library, const WantedBlob& wanted) {
  const auto wait = wanted.may_wait ? PackedCache::Wait::kYes : PackedCache::Wait::kNo;
  if (!library) {
    return cache.get_or_make(
        wanted.place, [&] { return make_in_memory(wanted); }, wait);
  }
  const auto by_content = [&]() -> Found {
    if (wanted.check) FOLIO_RETURN_IF_ERROR(wanted.check());
    const WantedBlob::Content content = wanted.content(*library);
    const PackKey& key = content.key;
    if (content.is_declared) {
      FOLIO_TRY(Ref<const PackedBlob> found,
                look_for_declared(cache, *library, key, wanted.bytes, wanted.was_looked_for));
      return found ? Found(found) : make_in_memory(wanted);
    }
    return cache.get_or_make(
        key, [&] { return look_or_make(*library, key, wanted); }, wait);
  };
  return wanted.is_placed ? cache.get_or_make(wanted.place, by_content, wait) : by_content();
}

Found find_blob(PackedCache& cache, PackLibrary& library, const PackKey& place,
                const WantedBlob::Content& content, uint64_t bytes) {
  constexpr auto kNo = PackedCache::Wait::kNo;
  const PackKey& key = content.key;
  const auto by_content = [&]() -> Found {
    if (content.is_declared) {
      return look_for_declared(cache, library, key, bytes, /*was_looked_for=*/false);
    }
    return cache.get_or_make(
        key, [&]() -> Found { return library.find(key, bytes); }, kNo);
  };
  return cache.get_or_make(place, by_content, kNo);
}

}  // namespace folio
