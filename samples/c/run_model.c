/* Loads libfolio with dlopen, opens a model, says what goes in and comes out, runs it once with
 * zeros (dims that are not fixed become 1) and prints the first elements of each output.
 *
 *   run_model [--library PATH/libfolio.so.1] MODEL
 */
#include <folio/folio_load.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kShownElements = 8 };

static const FolioApi* folio;

/* Every call of the library that can fail goes through here. */
static void check(FolioStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", folio->GetErrorName(folio->GetErrorCode(status)),
          folio->GetErrorMessage(status));
  folio->ReleaseStatus(status);
  exit(3);
}

static void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count != 0 ? count : 1, bytes);
  if (memory == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  return memory;
}

static void print_info(const char* what, const FolioValueInfo* info) {
  const char* name;
  const int64_t* dims;
  size_t dim_count, i;
  FolioValueKind kind;
  FolioElementType type;
  check(folio->ValueInfoGetName(info, &name));
  check(folio->ValueInfoGetKind(info, &kind));
  check(folio->ValueInfoGetElementType(info, &type));
  check(folio->ValueInfoGetDims(info, &dims, &dim_count));
  printf("%s %s: ", what, name);
  if (kind != FOLIO_KIND_TENSOR) {
    printf("not a tensor (kind %d)\n", (int)kind);
    return;
  }
  printf("%s[", folio->GetElementTypeName(type));
  for (i = 0; i < dim_count; ++i) {
    const char* symbol;
    check(folio->ValueInfoGetSymbolicDim(info, i, &symbol));
    if (i != 0) printf(", ");
    if (dims[i] >= 0) {
      printf("%" PRId64, dims[i]);
    } else {
      printf("%s", symbol[0] != '\0' ? symbol : "?");
    }
  }
  printf("]\n");
}

static FolioValue* zeros_for(const FolioValueInfo* info) {
  const int64_t* declared;
  size_t dim_count, i;
  FolioElementType type;
  int64_t* dims;
  FolioValue* value = NULL;
  check(folio->ValueInfoGetElementType(info, &type));
  check(folio->ValueInfoGetDims(info, &declared, &dim_count));
  dims = allocate(dim_count, sizeof *dims);
  for (i = 0; i < dim_count; ++i) dims[i] = declared[i] >= 0 ? declared[i] : 1;
  check(folio->CreateTensor(type, dims, dim_count, &value));
  free(dims);
  return value;
}

static void print_elements(const FolioValue* value, FolioElementType type, size_t count) {
  const void* data;
  size_t i;
  check(folio->GetTensorData(value, &data));
  for (i = 0; i < count; ++i) {
    if (type == FOLIO_FLOAT) {
      printf(" %g", (double)((const float*)data)[i]);
    } else if (type == FOLIO_INT64) {
      printf(" %" PRId64, ((const int64_t*)data)[i]);
    } else if (type == FOLIO_INT32) {
      printf(" %" PRId32, ((const int32_t*)data)[i]);
    }
  }
}

static void print_value(const char* name, const FolioValue* value) {
  FolioValueKind kind;
  FolioElementType type;
  const int64_t* dims;
  size_t dim_count, count, i;
  check(folio->GetValueKind(value, &kind));
  if (kind != FOLIO_KIND_TENSOR) {
    check(folio->GetValueCount(value, &count));
    printf("  %s: %zu parts (kind %d)\n", name, count, (int)kind);
    return;
  }
  check(folio->GetElementType(value, &type));
  check(folio->GetTensorDims(value, &dims, &dim_count));
  check(folio->GetTensorElementCount(value, &count));
  printf("  %s: %s[", name, folio->GetElementTypeName(type));
  for (i = 0; i < dim_count; ++i) printf("%s%" PRId64, i != 0 ? ", " : "", dims[i]);
  printf("] =");
  if (type == FOLIO_STRING) {
    printf(" %zu strings", count);
  } else {
    print_elements(value, type, count < kShownElements ? count : kShownElements);
    if (count > kShownElements) printf(" ...");
  }
  printf("\n");
}

static void run(FolioSession* session) {
  size_t input_count, output_count, i;
  const char **input_names, **output_names;
  FolioValue **inputs, **outputs;
  check(folio->SessionGetInputCount(session, &input_count));
  check(folio->SessionGetOutputCount(session, &output_count));
  input_names = allocate(input_count, sizeof *input_names);
  output_names = allocate(output_count, sizeof *output_names);
  inputs = allocate(input_count, sizeof *inputs);
  outputs = allocate(output_count, sizeof *outputs);

  for (i = 0; i < input_count; ++i) {
    const FolioValueInfo* info;
    check(folio->SessionGetInput(session, i, &info));
    check(folio->ValueInfoGetName(info, &input_names[i]));
    print_info("input", info);
    inputs[i] = zeros_for(info);
  }
  for (i = 0; i < output_count; ++i) {
    const FolioValueInfo* info;
    check(folio->SessionGetOutput(session, i, &info));
    check(folio->ValueInfoGetName(info, &output_names[i]));
    print_info("output", info);
  }

  check(folio->Run(session, NULL, input_names, inputs, input_count, output_names, output_count,
                   outputs));
  printf("run with zeros:\n");
  for (i = 0; i < output_count; ++i) print_value(output_names[i], outputs[i]);

  for (i = 0; i < input_count; ++i) folio->ReleaseValue(inputs[i]);
  for (i = 0; i < output_count; ++i) folio->ReleaseValue(outputs[i]);
  free(inputs);
  free(outputs);
  free(input_names);
  free(output_names);
}

int main(int argc, char** argv) {
  const char* library_path = NULL;
  const char* model_path;
  char error[512];
  void* library = NULL;
  FolioSession* session = NULL;
  if (argc == 4 && strcmp(argv[1], "--library") == 0) {
    library_path = argv[2];
  } else if (argc != 2) {
    fprintf(stderr, "usage: run_model [--library libfolio.so.1] MODEL\n");
    return 2;
  }
  model_path = argv[argc - 1];

  folio = folio_load(library_path, FOLIO_API_VERSION, &library, error, sizeof error);
  if (folio == NULL) {
    fprintf(stderr, "%s\n", error);
    return 3;
  }
  printf("Folio %s\n", folio->GetVersionString());
  check(folio->CreateSession(NULL, model_path, NULL, &session));
  run(session);
  folio->ReleaseSession(session);
  folio_unload(library);
  return 0;
}
