// Entries: Base and Status.
#include <string>

#include "c_api/boundary.h"
#include "c_api/entries.h"
#include "core/base/dtype.h"
#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/thread_pool.h"
#include "core/os/tile_threads.h"

namespace folio {
namespace {

#ifdef __clang__
constexpr const char* kBuildInfo = "Folio " FOLIO_VERSION ", " __VERSION__
#else
constexpr const char* kBuildInfo = "Folio " FOLIO_VERSION ", GCC " __VERSION__
#endif
#ifdef NDEBUG
                                   ", optimized, Linux x86-64";
#else
                                   ", with assertions, Linux x86-64";
#endif

const std::string& feature_names() {
  static const auto* const names = [] {
    constexpr std::pair<CpuBits, const char*> kNames[] = {
        {kCpuAvx2, "avx2"},         {kCpuFma, "fma"},
        {kCpuF16c, "f16c"},         {kCpuAvx512F, "avx512f"},
        {kCpuAvx512Bw, "avx512bw"}, {kCpuAvx512Dq, "avx512dq"},
        {kCpuAvx512Vl, "avx512vl"}, {kCpuAvx512Vnni, "avx512_vnni"},
        {kCpuAvxVnni, "avx_vnni"},  {kCpuAvx512Bf16, "avx512_bf16"},
        {kCpuAmxTile, "amx_tile"},  {kCpuAmxInt8, "amx_int8"},
        {kCpuAmxBf16, "amx_bf16"},
    };
    auto* text = new std::string;
    for (const auto& [bit, name] : kNames) {
      if ((cpu_bits() & bit) != 0) *text += cat(text->empty() ? "" : " ", name);
    }
    return text;
  }();
  return *names;
}

}  // namespace

namespace entry {

const char* GetVersionString() { return FOLIO_VERSION; }

const char* GetBuildInfo() { return kBuildInfo; }

FolioStatus* GetCpuInfo(FolioCpuInfo* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FolioCpuInfo info = {};
    // Kernels are checked when they are asked for the first time.
    FOLIO_RETURN_IF_ERROR(with_tiles(cpu_bits(), [&] {
      info.level = kernel_level_name(cpu_bits());
      return Status::ok();
    }));
    info.features = feature_names().c_str();
    info.brand = cpu_brand().c_str();
    info.logical_cpu_count = static_cast<uint32_t>(affinity_cpu_count());
    info.default_thread_count = static_cast<uint32_t>(default_thread_count());
    return write_struct(out, info, "FolioCpuInfo");
  });
}

const char* GetErrorName(FolioErrorCode code) {
  switch (code) {
    case FOLIO_OK:
      return "OK";
    case FOLIO_FAIL:
      return "FAIL";
    case FOLIO_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case FOLIO_NO_SUCHFILE:
      return "NO_SUCHFILE";
    case FOLIO_NO_MODEL:
      return "NO_MODEL";
    case FOLIO_ENGINE_ERROR:
      return "ENGINE_ERROR";
    case FOLIO_RUNTIME_EXCEPTION:
      return "RUNTIME_EXCEPTION";
    case FOLIO_INVALID_PROTOBUF:
      return "INVALID_PROTOBUF";
    case FOLIO_MODEL_LOADED:
      return "MODEL_LOADED";
    case FOLIO_NOT_IMPLEMENTED:
      return "NOT_IMPLEMENTED";
    case FOLIO_INVALID_GRAPH:
      return "INVALID_GRAPH";
    case FOLIO_EP_FAIL:
      return "EP_FAIL";
    case FOLIO_MODEL_LOAD_CANCELED:
      return "MODEL_LOAD_CANCELED";
    case FOLIO_CANCELLED:
      return "CANCELLED";
    case FOLIO_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case FOLIO_UNSUPPORTED_OPERATOR:
      return "UNSUPPORTED_OPERATOR";
    case FOLIO_MODEL_CHANGED:
      return "MODEL_CHANGED";
    case FOLIO_CLOSED:
      return "CLOSED";
    case FOLIO_IO:
      return "IO";
  }
  return "UNKNOWN";
}

const char* GetElementTypeName(FolioElementType type) {
  const int number = static_cast<int>(type);
  // Names are literals: they end with NUL.
  return dtype_name(dtype_known(number) ? static_cast<DType>(number) : DType::kUndefined).data();
}

uint32_t GetElementTypeBits(FolioElementType type) {
  const int number = static_cast<int>(type);
  if (!dtype_known(number) || type == FOLIO_STRING) return 0;
  return static_cast<uint32_t>(dtype_bits(static_cast<DType>(number)));
}

void ReleaseString(char* string) { delete[] string; }

FolioErrorCode GetErrorCode(const FolioStatus* status) { return status ? status->code : FOLIO_OK; }

const char* GetErrorMessage(const FolioStatus* status) { return status ? status->message : ""; }

void ReleaseStatus(FolioStatus* status) { release_status(status); }

}  // namespace entry
}  // namespace folio
