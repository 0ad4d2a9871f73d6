/* Opens a model with ONNX Runtime, runs it once with zeros, and holds it: the process that the demo
 * measures beside `folio bench --hold`.
 *
 *   ort_hold LIBONNXRUNTIME MODEL
 *
 * Prints "load_ms X first_run_ms Y", then SESSION_READY, and waits for the end of its input. One
 * thread, all options at their defaults. Dims that are not fixed become 1; inputs must be tensors
 * of numbers. Exit code 3: the library or the model does not work, with a reason.
 */
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/folio/ort_api.h"

enum { kLogError = 3, kMostValues = 64, kMostDims = 16 };
enum { kMostElementBytes = 16, kMostElements = 1 << 28 };

static const OrtApi* ort;

static void die(const char* what, const char* detail) {
  fprintf(stderr, "ort_hold: %s: %s\n", what, detail);
  exit(3);
}

static void check(OrtHandle* status) {
  if (status != NULL) die("ONNX Runtime", ort->GetErrorMessage(status));
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void load_library(const char* path) {
  const OrtApiBase* (*get_base)(void) = NULL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != NULL ? dlsym(library, "OrtGetApiBase") : NULL;
  if (symbol == NULL) die(path, dlerror());
  memcpy(&get_base, &symbol, sizeof symbol);
  ort = get_base()->GetApi(kOrtApiVersion);
  if (ort == NULL) die(path, "is too old");
}

static OrtHandle* zeros_for_input(const OrtHandle* session, size_t index, const OrtHandle* memory) {
  OrtHandle *info, *value;
  const OrtHandle* tensor;
  int64_t dims[kMostDims];
  size_t dim_count, i, elements = 1;
  int type;
  void* data;
  check(ort->SessionGetInputTypeInfo(session, index, &info));
  check(ort->CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == NULL) die("input", "is not a tensor");
  check(ort->GetTensorElementType(tensor, &type));
  check(ort->GetDimensionsCount(tensor, &dim_count));
  if (dim_count > kMostDims) die("input", "has too many dims");
  check(ort->GetDimensions(tensor, dims, dim_count));
  for (i = 0; i < dim_count; ++i) {
    if (dims[i] < 0) dims[i] = 1;
    if (dims[i] != 0 && elements > kMostElements / (size_t)dims[i]) die("input", "is too large");
    elements *= (size_t)dims[i];
  }
  data = calloc(elements + 1, kMostElementBytes); /* room for any type of number */
  if (data == NULL) die("input", "out of memory");
  check(ort->CreateTensorWithDataAsOrtValue(memory, data, elements * kMostElementBytes, dims,
                                            dim_count, type, &value));
  return value;
}

static void run_once(OrtHandle* session) {
  const char *input_names[kMostValues], *output_names[kMostValues];
  const OrtHandle* inputs[kMostValues];
  OrtHandle *outputs[kMostValues] = {NULL}, *allocator, *memory;
  size_t input_count, output_count, i;
  char* name;
  check(ort->GetAllocatorWithDefaultOptions(&allocator));
  check(ort->CreateCpuMemoryInfo(kOrtArenaAllocator, 0, &memory));
  check(ort->SessionGetInputCount(session, &input_count));
  check(ort->SessionGetOutputCount(session, &output_count));
  if (input_count > kMostValues || output_count > kMostValues) die("model", "too many inputs");
  for (i = 0; i < input_count; ++i) {
    check(ort->SessionGetInputName(session, i, allocator, &name));
    input_names[i] = name;
    inputs[i] = zeros_for_input(session, i, memory);
  }
  for (i = 0; i < output_count; ++i) {
    check(ort->SessionGetOutputName(session, i, allocator, &name));
    output_names[i] = name;
  }
  check(ort->Run(session, NULL, input_names, inputs, input_count, output_names, output_count,
                 outputs));
}

int main(int argc, char** argv) {
  OrtHandle *env, *options, *session;
  double started, loaded, ran;
  if (argc != 3) {
    fprintf(stderr, "usage: ort_hold LIBONNXRUNTIME MODEL\n");
    return 2;
  }
  load_library(argv[1]);
  check(ort->CreateEnv(kLogError, "ort_hold", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->SetIntraOpNumThreads(options, 1));
  started = now_ms();
  check(ort->CreateSession(env, argv[2], options, &session));
  loaded = now_ms();
  run_once(session);
  ran = now_ms();
  printf("load_ms %.2f first_run_ms %.2f\nSESSION_READY\n", loaded - started, ran - loaded);
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0; /* the kernel takes everything back */
}
