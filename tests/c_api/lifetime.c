/* A C99 program that loads the library with dlopen and releases everything in every order: handles
 * that depend on each other hold each other. Run it under a sanitizer to see more than crashes. */
#include <folio/folio_load.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = Relu(x), x and y float [2]. */
static const unsigned char kModel[] = {
    0x08, 0x08,                                                             /* ir_version 8 */
    0x3a, 0x33,                                                             /* graph */
    0x0a, 0x0c, 0x0a, 0x01, 'x',  0x12, 0x01, 'y',  0x22, 0x04, 'R',  'e',  /* node */
    'l',  'u',                                                              /* */
    0x12, 0x01, 'g',                                                        /* name */
    0x5a, 0x0f, 0x0a, 0x01, 'x',  0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, /* input */
    0x04, 0x0a, 0x02, 0x08, 0x02,                                           /* */
    0x62, 0x0f, 0x0a, 0x01, 'y',  0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, /* output */
    0x04, 0x0a, 0x02, 0x08, 0x02,                                           /* */
    0x42, 0x02, 0x10, 0x11,                                                 /* opset 17 */
};

enum { kHandles = 8 };

static const FolioApi* folio;
static int released;

static void check(FolioStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", folio->GetErrorName(folio->GetErrorCode(status)),
          folio->GetErrorMessage(status));
  folio->ReleaseStatus(status);
  exit(1);
}

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

static void on_release(void* user) {
  require(user == &released, "the release function gets its user");
  ++released;
}

typedef struct Handles {
  FolioEnv* env;
  FolioModelOptions* model_options;
  FolioModel* model;
  FolioSessionOptions* session_options;
  FolioPackCache* cache;
  FolioSession* session;
  FolioIoBinding* binding;
  FolioValue* x;
} Handles;

static Handles create(void) {
  static float data[2] = {-1, 2};
  static const int64_t dims[1] = {2};
  Handles h;
  check(folio->CreateEnv(NULL, &h.env));
  check(folio->CreateModelOptions(&h.model_options));
  check(folio->OpenModelFromMemory(h.env, kModel, sizeof kModel, on_release, &released,
                                   h.model_options, &h.model));
  check(folio->CreatePackCache(NULL, &h.cache));
  check(folio->CreateSessionOptions(&h.session_options));
  check(folio->SessionOptionsSetPackCache(h.session_options, h.cache));
  check(folio->CreateSessionFromModel(h.model, h.session_options, &h.session));
  check(folio->CreateTensorWithData(data, sizeof data, dims, 1, FOLIO_FLOAT, on_release, &released,
                                    &h.x));
  check(folio->CreateIoBinding(h.session, &h.binding));
  check(folio->BindInput(h.binding, "x", h.x));
  check(folio->BindOutput(h.binding, "y", NULL));
  check(folio->RunWithBinding(h.session, NULL, h.binding));
  return h;
}

static void release(Handles* h, int which) {
  switch (which) {
    case 0:
      folio->ReleaseEnv(h->env);
      break;
    case 1:
      folio->ReleaseModelOptions(h->model_options);
      break;
    case 2:
      folio->ReleaseModel(h->model);
      break;
    case 3:
      folio->ReleaseSessionOptions(h->session_options);
      break;
    case 4:
      folio->ReleasePackCache(h->cache);
      break;
    case 5:
      folio->ReleaseSession(h->session);
      break;
    case 6:
      folio->ReleaseIoBinding(h->binding);
      break;
    default:
      folio->ReleaseValue(h->x);
      break;
  }
}

/* A result outlives all that it came from. */
static void release_in_order(const int* order) {
  Handles h = create();
  FolioValue* y;
  const void* data;
  int i;
  check(folio->GetBoundOutputValue(h.binding, 0, &y));
  released = 0;
  for (i = 0; i < kHandles; ++i) release(&h, order[i]);
  require(released == 2, "model and input are given back once each");
  check(folio->GetTensorData(y, &data));
  require(((const float*)data)[0] == 0 && ((const float*)data)[1] == 2, "y = Relu(x)");
  folio->ReleaseValue(y);
}

static long release_in_all_orders(int* order, int from) {
  long count = 0;
  int i, swapped;
  if (from == kHandles) {
    release_in_order(order);
    return 1;
  }
  /* All choices of the first three handles to go; the others go as they come. */
  for (i = from; i < (from < 3 ? kHandles : from + 1); ++i) {
    swapped = order[from], order[from] = order[i], order[i] = swapped;
    count += release_in_all_orders(order, from + 1);
    swapped = order[from], order[from] = order[i], order[i] = swapped;
  }
  return count;
}

int main(void) {
  char error[256];
  void* library = NULL;
  int order[kHandles], i;
  long count;
  require(folio_load("/nowhere/libfolio.so.1", FOLIO_API_VERSION, &library, error, sizeof error) ==
              NULL,
          "a library that is not there is not loaded");
  require(strstr(error, "/nowhere/libfolio.so.1") != NULL, "the error names the library");
  require(folio_load(FOLIO_LIBRARY_PATH, 1000, &library, error, sizeof error) == NULL,
          "a version of the future is refused");
  require(strstr(error, "1000") != NULL && library == NULL, "the error names the version");
  folio = folio_load(FOLIO_LIBRARY_PATH, FOLIO_API_VERSION, &library, error, sizeof error);
  if (folio == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  for (i = 0; i < kHandles; ++i) order[i] = i;
  count = release_in_all_orders(order, 0);
  for (i = 0; i < kHandles; ++i) order[i] = kHandles - 1 - i;
  count += release_in_all_orders(order, 0);
  printf("released in %ld orders\n", count);
  folio_unload(library);
  return 0;
}
