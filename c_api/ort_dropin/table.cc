// The table itself, and the symbol that gives it out.
#include <iterator>
#include <type_traits>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

constexpr const char kWhyRefused[] = "Folio's drop-in library does not have it";

constexpr const char* kSlotNames[] = {
#define ORT_SLOT(place, name, result, arguments) #name,
#define ORT_REFUSED(place, name, result, arguments) #name,
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
};
static_assert(std::size(kSlotNames) == kNamedSlotCount);

// What stands in a slot that is refused: a function of the slot's own type.
template <size_t kPlace, typename Function>
struct Refused;

template <size_t kPlace, typename Result, typename... Arguments>
struct Refused<kPlace, Result (*)(Arguments...)> {
  static Result call(Arguments...) noexcept {
    if constexpr (std::is_same_v<Result, OrtStatus*>) {
      return not_implemented(kSlotNames[kPlace], kWhyRefused);
    } else if constexpr (!std::is_void_v<Result>) {
      return Result{};  // NULL or 0: there is none
    }
  }
};

template <size_t kPlace>
OrtStatus* unnamed_slot() noexcept {
  return guarded([] {
    const std::string name = "slot " + std::to_string(kPlace) + " of the function table";
    return not_implemented(name.c_str(), "it is newer than Folio's drop-in library");
  });
}

OrtStatus* no_compiling() noexcept {
  return not_implemented("the model compilation API", kWhyRefused);
}

constexpr OrtCompileApi make_compile_api() {
  OrtCompileApi api = {};
  api.ReleaseModelCompilationOptions = [](void*) {};
  for (auto& slot : api.others) slot = no_compiling;
  return api;
}
constexpr OrtCompileApi kCompileApi = make_compile_api();

template <size_t... kIndices>
constexpr OrtApi make_api(std::index_sequence<kIndices...>) {
  return OrtApi{
#define ORT_SLOT(place, name, result, arguments) slot::name,
#define ORT_REFUSED(place, name, result, arguments) Refused<place, decltype(OrtApi::name)>::call,
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
      {unnamed_slot<kNamedSlotCount + kIndices>...}};
}
constexpr OrtApi kApi = make_api(std::make_index_sequence<kUnnamedSlotCount>());

#define ORT_SLOT(place, name, result, arguments) \
  static_assert(offsetof(OrtApi, name) == (place) * sizeof(void*));
#define ORT_REFUSED(place, name, result, arguments) \
  static_assert(offsetof(OrtApi, name) == (place) * sizeof(void*));
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
static_assert(sizeof(OrtApi) == kSlotCount * sizeof(void*));
// The last slots of some versions, as ONNX Runtime's own assertions have them: a line lost from
// api_slots.inc together with its number would not show above.
static_assert(offsetof(OrtApi, ReleaseCustomOpDomain) / sizeof(void*) == 101);    // 1
static_assert(offsetof(OrtApi, SetGlobalSpinControl) / sizeof(void*) == 149);     // 5
static_assert(offsetof(OrtApi, SynchronizeBoundOutputs) / sizeof(void*) == 203);  // 10
static_assert(offsetof(OrtApi, AddExternalInitializersFromFilesInMemory) / sizeof(void*) ==
              279);                                                                        // 18
static_assert(offsetof(OrtApi, CreateExternalInitializerInfo) / sizeof(void*) == 389);     // 23
static_assert(offsetof(OrtApi, SetPerSessionThreadPoolCallbacks) / sizeof(void*) == 418);  // 25

// Every version's table is this one: ONNX Runtime only adds at the end.
const OrtApi* get_api(uint32_t version) { return version == 0 ? nullptr : &kApi; }

// Programs that look at it want the first two numbers; the rest says who this is.
const char* version_string() { return "1.30.0-folio." FOLIO_VERSION; }

constexpr OrtApiBase kBase = {get_api, version_string};

}  // namespace

namespace slot {

const OrtCompileApi* GetCompileApi() noexcept { return &kCompileApi; }

const char* GetBuildInfoString() noexcept { return folio().GetBuildInfo(); }

}  // namespace slot
}  // namespace folio::ort

extern "C" const OrtApiBase* OrtGetApiBase() { return &folio::ort::kBase; }
