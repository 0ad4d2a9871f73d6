/* Between a program and libfolio: notes which entries of the table are called. For LD_PRELOAD; see
 * reach_test.py.
 *
 * FolioGetApiBase here gives a table whose entry i is a few instructions that set called[i] and
 * jump to the library's. FOLIO_REACH_LIBRARY: the library; FOLIO_REACH_OUTPUT: where numbers of
 * entries called are written at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <folio/folio_c_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kEntries = sizeof(FolioApi) / sizeof(void*), kThunkBytes = 32 };
_Static_assert(kEntries <= 256, "the thunks below are too few");

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN void* reach_entries[256];
HIDDEN unsigned char reach_called[256];
extern HIDDEN char reach_thunks[];

__asm__(
    ".text\n"
    ".p2align 5\n"
    "reach_thunks:\n"
    ".set entry, 0\n"
    ".rept 256\n"
    ".p2align 5\n"
    "  movb $1, reach_called + entry(%rip)\n"
    "  jmp *reach_entries + 8 * entry(%rip)\n"
    ".set entry, entry + 1\n"
    ".endr\n");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const FolioApiBase* real;
static FolioApi table;
static FolioApiBase base;

static const FolioApi* get_api(uint32_t version) {
  return real->GetApi(version) == NULL ? NULL : &table;
}

static void begin(void) {
  void* library = dlopen(getenv("FOLIO_REACH_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  const FolioApiBase* (*get)(void) = NULL;
  void** thunks = (void**)&table;
  if (library != NULL) *(void**)&get = dlsym(library, "FolioGetApiBase");
  if (get == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    abort();
  }
  real = get();
  memcpy(reach_entries, real->GetApi(FOLIO_API_VERSION), sizeof table);
  for (int i = 0; i < kEntries; ++i) thunks[i] = reach_thunks + i * kThunkBytes;
  base.GetApi = get_api;
  base.GetVersionString = real->GetVersionString;
}

const FolioApiBase* FolioGetApiBase(void) {
  pthread_once(&once, begin);
  return &base;
}

__attribute__((destructor)) static void report(void) {
  FILE* file = real == NULL ? NULL : fopen(getenv("FOLIO_REACH_OUTPUT"), "a");
  if (file == NULL) return;
  for (int i = 0; i < kEntries; ++i) {
    if (reach_called[i]) fprintf(file, "%d\n", i);
  }
  fclose(file);
}
