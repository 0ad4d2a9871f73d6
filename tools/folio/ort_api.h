/* The slots of ONNX Runtime's OrtApi table that the tools call, at their places: for ort_peer.cc
 * and tools/ort_peer/ort_hold.c, without ONNX Runtime's headers.
 *
 * Places:  the table only ever grows at its end, so that they hold for every version from
 *          kOrtApiVersion on.
 * Owns:    what a ...Create or Get... gives by `out` is the caller's, to be released by the slot
 *          for it; what is const is not.
 * Errors:  NULL, or a status that the caller releases.
 */
#ifndef FOLIO_TOOLS_ORT_API_H_
#define FOLIO_TOOLS_ORT_API_H_

#include <stddef.h>
#include <stdint.h>

typedef void OrtHandle; /* OrtEnv, OrtSession, OrtValue, OrtStatus ...: opaque here */

typedef struct OrtApi {
  void* slots_0[2];
  const char* (*GetErrorMessage)(const OrtHandle* status);                     /* 2 */
  OrtHandle* (*CreateEnv)(int log_level, const char* log_id, OrtHandle** out); /* 3 */
  void* slots_4[3];
  OrtHandle* (*CreateSession)(const OrtHandle* env, const char* path, const OrtHandle* options,
                              OrtHandle** out); /* 7 */
  OrtHandle* (*CreateSessionFromArray)(const OrtHandle* env, const void* bytes, size_t byte_count,
                                       const OrtHandle* options, OrtHandle** out); /* 8 */
  OrtHandle* (*Run)(OrtHandle* session, const OrtHandle* options, const char* const* input_names,
                    const OrtHandle* const* inputs, size_t input_count,
                    const char* const* output_names, size_t output_count,
                    OrtHandle** outputs);              /* 9 */
  OrtHandle* (*CreateSessionOptions)(OrtHandle** out); /* 10 */
  void* slots_11[12];
  OrtHandle* (*SetSessionGraphOptimizationLevel)(OrtHandle* options, int level); /* 23 */
  OrtHandle* (*SetIntraOpNumThreads)(OrtHandle* options, int count);             /* 24 */
  void* slots_25[5];
  OrtHandle* (*SessionGetInputCount)(const OrtHandle* session, size_t* out);  /* 30 */
  OrtHandle* (*SessionGetOutputCount)(const OrtHandle* session, size_t* out); /* 31 */
  void* slots_32[1];
  OrtHandle* (*SessionGetInputTypeInfo)(const OrtHandle* session, size_t index,
                                        OrtHandle** out); /* 33 */
  void* slots_34[2];
  OrtHandle* (*SessionGetInputName)(const OrtHandle* session, size_t index, OrtHandle* allocator,
                                    char** out); /* 36 */
  OrtHandle* (*SessionGetOutputName)(const OrtHandle* session, size_t index, OrtHandle* allocator,
                                     char** out); /* 37 */
  void* slots_38[10];
  OrtHandle* (*CreateTensorAsOrtValue)(OrtHandle* allocator, const int64_t* dims, size_t dim_count,
                                       int type, OrtHandle** out); /* 48 */
  OrtHandle* (*CreateTensorWithDataAsOrtValue)(const OrtHandle* memory, void* data, size_t bytes,
                                               const int64_t* dims, size_t dim_count, int type,
                                               OrtHandle** out); /* 49 */
  void* slots_50[1];
  OrtHandle* (*GetTensorMutableData)(OrtHandle* value, void** out); /* 51 */
  OrtHandle* (*FillStringTensor)(OrtHandle* value, const char* const* strings,
                                 size_t count);                                 /* 52 */
  OrtHandle* (*GetStringTensorDataLength)(const OrtHandle* value, size_t* out); /* 53 */
  OrtHandle* (*GetStringTensorContent)(const OrtHandle* value, void* bytes, size_t byte_count,
                                       size_t* offsets, size_t count);                  /* 54 */
  OrtHandle* (*CastTypeInfoToTensorInfo)(const OrtHandle* info, const OrtHandle** out); /* 55 */
  OrtHandle* (*GetOnnxTypeFromTypeInfo)(const OrtHandle* info, int* out);               /* 56 */
  void* slots_57[3];
  OrtHandle* (*GetTensorElementType)(const OrtHandle* info, int* out);             /* 60 */
  OrtHandle* (*GetDimensionsCount)(const OrtHandle* info, size_t* out);            /* 61 */
  OrtHandle* (*GetDimensions)(const OrtHandle* info, int64_t* dims, size_t count); /* 62 */
  OrtHandle* (*GetSymbolicDimensions)(const OrtHandle* info, const char** names,
                                      size_t count); /* 63 */
  void* slots_64[1];
  OrtHandle* (*GetTensorTypeAndShape)(const OrtHandle* value, OrtHandle** out); /* 65 */
  void* slots_66[1];
  OrtHandle* (*GetValueType)(const OrtHandle* value, int* out); /* 67 */
  void* slots_68[1];
  OrtHandle* (*CreateCpuMemoryInfo)(int allocator_type, int memory_type, OrtHandle** out); /* 69 */
  void* slots_70[6];
  OrtHandle* (*AllocatorFree)(OrtHandle* allocator, void* memory); /* 76 */
  void* slots_77[1];
  OrtHandle* (*GetAllocatorWithDefaultOptions)(OrtHandle** out); /* 78 */
  void* slots_79[1];
  OrtHandle* (*GetValue)(const OrtHandle* value, int index, OrtHandle* allocator,
                         OrtHandle** out);                          /* 80 */
  OrtHandle* (*GetValueCount)(const OrtHandle* value, size_t* out); /* 81 */
  OrtHandle* (*CreateValue)(const OrtHandle* const* parts, size_t count, int kind,
                            OrtHandle** out); /* 82 */
  void* slots_83[9];
  void (*ReleaseEnv)(OrtHandle* env);           /* 92 */
  void (*ReleaseStatus)(OrtHandle* status);     /* 93 */
  void (*ReleaseMemoryInfo)(OrtHandle* memory); /* 94 */
  void (*ReleaseSession)(OrtHandle* session);   /* 95 */
  void (*ReleaseValue)(OrtHandle* value);       /* 96 */
  void* slots_97[1];
  void (*ReleaseTypeInfo)(OrtHandle* info);               /* 98 */
  void (*ReleaseTensorTypeAndShapeInfo)(OrtHandle* info); /* 99 */
  void (*ReleaseSessionOptions)(OrtHandle* options);      /* 100 */
  void* slots_101[3];
  OrtHandle* (*CastTypeInfoToSequenceTypeInfo)(const OrtHandle* info,
                                               const OrtHandle** out); /* 104 */
  void* slots_105[2];
  OrtHandle* (*GetSequenceElementType)(const OrtHandle* info, OrtHandle** out); /* 107 */
  void* slots_108[22];
  OrtHandle* (*AddSessionConfigEntry)(OrtHandle* options, const char* key,
                                      const char* value); /* 130 */
  void* slots_131[61];
  OrtHandle* (*HasValue)(const OrtHandle* value, int* out); /* 192 */
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)(void);
} OrtApiBase;

enum { kOrtApiVersion = 16, kOrtArenaAllocator = 1 };

#endif
