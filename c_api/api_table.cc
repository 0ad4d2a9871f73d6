// The table and the one exported symbol.
#include <cstddef>

#include "c_api/entries.h"
#include "core/os/throwing.h"

namespace folio {
namespace {

// Designators must come in the table's order: an entry at a wrong place does not compile.
constexpr FolioApi kApi = {
#define FOLIO_ROW(name) .name = entry::name,
    FOLIO_ENTRIES(FOLIO_ROW)
#undef FOLIO_ROW
};

constexpr size_t place(size_t offset) { return offset / sizeof(void (*)(void)); }

// Where each version ends. A line is added per version and none is ever changed.
static_assert(place(offsetof(FolioApi, ResizeStringTensorElement)) == 132,
              "version 1 has 133 entries");
static_assert(place(sizeof(FolioApi)) == 133, "a new entry belongs to a new version");

const FolioApi* get_api(uint32_t version) {
  (void)is_ready_to_throw();  // while there is memory
  return version >= 1 && version <= FOLIO_API_VERSION ? &kApi : nullptr;
}

constexpr FolioApiBase kBase = {get_api, entry::GetVersionString};

}  // namespace
}  // namespace folio

extern "C" const FolioApiBase* FolioGetApiBase(void) { return &folio::kBase; }
