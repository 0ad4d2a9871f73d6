// Slots: memory infos, allocators and arena configurations.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

constexpr size_t kAlignment = 64;  // one cache line, as ONNX Runtime's own allocator gives

void* allocate(OrtAllocator*, size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, bytes) == 0 ? memory : nullptr;
}

void deallocate(OrtAllocator*, void* memory) { std::free(memory); }

const OrtMemoryInfo* info_of_default(const OrtAllocator*) { return &cpu_memory(); }

// It keeps no count of what it gave.
OrtStatus* no_stats(const OrtAllocator*, OrtKeyValuePairs** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    *out = new OrtKeyValuePairs;
    return nullptr;
  });
}

void* allocate_on_stream(OrtAllocator* self, size_t bytes, OrtSyncStream*) {
  return allocate(self, bytes);
}

OrtStatus* shrink(OrtAllocator*) { return nullptr; }

struct Device {
  const char* name;
  int type;  // OrtMemoryInfoDeviceType: CPU 0, GPU 1, FPGA 2, NPU 3
};

// Names by which programs describe memory. Those of other devices are known, so that a program may
// compare with them; a tensor over such memory is refused.
constexpr Device kDevices[] = {
    {"Cpu", 0},           {"CUDA_CPU", 0},     {"Cuda", 1},         {"CudaPinned", 0},
    {"Cann", 3},          {"CannPinned", 0},   {"DML", 1},          {"HIP", 1},
    {"HipPinned", 0},     {"OpenVINO_CPU", 0}, {"OpenVINO_GPU", 1}, {"QnnHtpShared", 3},
    {"WebGPU_Buffer", 1}, {"WebGPU_Buf", 1},   {"WebNN_Tensor", 1}, {"WebNN_Ten", 1},
};

// Keys of CreateArenaCfgV2.
constexpr const char* kArenaKeys[] = {
    "max_mem",
    "arena_extend_strategy",
    "initial_chunk_size_bytes",
    "max_dead_bytes_per_chunk",
    "initial_growth_chunk_size_bytes",
    "max_power_of_two_extend_bytes",
};

OrtStatus* make_info(const char* name, int allocator_type, int id, int memory_type,
                     OrtMemoryInfo** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(name);
    ORT_NOT_NULL(out);
    for (const Device& device : kDevices) {
      if (std::strcmp(device.name, name) != 0) continue;
      auto info = std::make_unique<OrtMemoryInfo>();
      info->name = name;
      info->id = device.type == 0 && std::strcmp(name, "Cpu") == 0 ? 0 : id;
      info->memory_type = memory_type;
      info->allocator_type = allocator_type;
      info->device_type = device.type;
      *out = info.release();
      return nullptr;
    }
    return make_status(kInvalidArgument, std::string("memory of the device '") + name +
                                             "' is not supported; CreateMemoryInfo_V2 takes any");
  });
}

}  // namespace

const OrtMemoryInfo& cpu_memory() {
  static const auto* const info = new OrtMemoryInfo{"Cpu", 0, 0, 0, 0, 0, 0};
  return *info;
}

OrtAllocator* default_allocator() {
  static OrtAllocator allocator = {kApiVersion, allocate, deallocate,         info_of_default,
                                   allocate,    no_stats, allocate_on_stream, shrink};
  return &allocator;
}

namespace slot {

OrtStatus* CreateMemoryInfo(const char* name, int allocator_type, int id, int memory_type,
                            OrtMemoryInfo** out) noexcept {
  return make_info(name, allocator_type, id, memory_type, out);
}

OrtStatus* CreateMemoryInfo_V2(const char* name, int device_type, uint32_t vendor_id,
                               int32_t device_id, int device_memory, size_t, int allocator_type,
                               OrtMemoryInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(name);
    ORT_NOT_NULL(out);
    *out = new OrtMemoryInfo{name,        device_id,     0,        allocator_type,
                             device_type, device_memory, vendor_id};
    return nullptr;
  });
}

OrtStatus* CreateCpuMemoryInfo(int allocator_type, int memory_type, OrtMemoryInfo** out) noexcept {
  return make_info("Cpu", allocator_type, 0, memory_type, out);
}

OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(a);
    ORT_NOT_NULL(b);
    ORT_NOT_NULL(out);
    const bool equal = a->name == b->name && a->id == b->id && a->memory_type == b->memory_type &&
                       a->allocator_type == b->allocator_type && a->device_type == b->device_type &&
                       a->device_memory == b->device_memory && a->vendor_id == b->vendor_id;
    *out = equal ? 0 : -1;
    return nullptr;
  });
}

OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* info, const char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->name.c_str();
    return nullptr;
  });
}

OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->id;
    return nullptr;
  });
}

OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->memory_type;
    return nullptr;
  });
}

OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->allocator_type;
    return nullptr;
  });
}

void MemoryInfoGetDeviceType(const OrtMemoryInfo* info, int* out) noexcept {
  if (info && out) *out = info->device_type;
}

int MemoryInfoGetDeviceMemType(const OrtMemoryInfo* info) noexcept {
  return info ? info->device_memory : 0;
}

uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* info) noexcept {
  return info ? info->vendor_id : 0;
}

void ReleaseMemoryInfo(OrtMemoryInfo* info) noexcept { delete info; }

OrtStatus* AllocatorAlloc(OrtAllocator* allocator, size_t bytes, void** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    void* memory = allocator->Alloc(allocator, bytes);
    if (!memory && bytes > 0) return out_of_memory();
    *out = memory;
    return nullptr;
  });
}

OrtStatus* AllocatorFree(OrtAllocator* allocator, void* memory) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(allocator);
    allocator->Free(allocator, memory);
    return nullptr;
  });
}

OrtStatus* AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    *out = allocator->Info(allocator);
    return nullptr;
  });
}

OrtStatus* AllocatorGetStats(const OrtAllocator* allocator, OrtKeyValuePairs** out) noexcept {
  constexpr uint32_t kFirstWithStats = 23;
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    if (allocator->version >= kFirstWithStats && allocator->GetStats) {
      return allocator->GetStats(allocator, out);
    }
    return not_implemented("AllocatorGetStats", "the allocator has no statistics");
  });
}

OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    *out = default_allocator();
    return nullptr;
  });
}

OrtStatus* CreateAllocator(const OrtSession*, const OrtMemoryInfo* info,
                           OrtAllocator** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    if (info->device_type != 0) {
      return make_status(kInvalidArgument, "no allocator for memory of '" + info->name + "'");
    }
    *out = default_allocator();
    return nullptr;
  });
}

// All that are given out are the process's one.
void ReleaseAllocator(OrtAllocator*) noexcept {}

OrtStatus* GetSharedAllocator(OrtEnv*, const OrtMemoryInfo* info, OrtAllocator** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->device_type == 0 ? default_allocator() : nullptr;
    return nullptr;
  });
}

OrtStatus* CreateArenaCfg(size_t, int, int, int, OrtArenaCfg** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    *out = new OrtArenaCfg;
    return nullptr;
  });
}

OrtStatus* CreateArenaCfgV2(const char* const* keys, const size_t*, size_t count,
                            OrtArenaCfg** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    if (count > 0) ORT_NOT_NULL(keys);
    for (size_t i = 0; i < count; ++i) {
      ORT_NOT_NULL(keys[i]);
      const auto is_it = [&](const char* known) { return std::strcmp(known, keys[i]) == 0; };
      if (!std::any_of(std::begin(kArenaKeys), std::end(kArenaKeys), is_it)) {
        return make_status(kInvalidArgument, std::string("unknown arena key '") + keys[i] + "'");
      }
    }
    return CreateArenaCfg(0, 0, 0, 0, out);
  });
}

void ReleaseArenaCfg(OrtArenaCfg* config) noexcept { delete config; }

}  // namespace slot
}  // namespace folio::ort
