/* A C99 program that loads the library with dlopen, as the first of its libraries in C++, and calls
 * it when there is no memory at all: calls say so, in threads too that never called before, and the
 * process goes on. */
#define _POSIX_C_SOURCE 200809L
#include <folio/folio_load.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#endif

static const FolioApi* folio;
static FolioErrorCode code_without_memory[2];
static FolioErrorCode code_afterwards[2];

typedef struct Block {
  struct Block* next;
} Block;

/* Takes all the memory that there is. */
static Block* take_all(void) {
  Block* all = NULL;
  size_t bytes;
  for (bytes = 1 << 20; bytes >= sizeof(Block); bytes /= 2) {
    Block* block;
    while ((block = malloc(bytes)) != NULL) block->next = all, all = block;
  }
  return all;
}

static void give_back(Block* all) {
  while (all != NULL) {
    Block* next = all->next;
    free(all);
    all = next;
  }
}

static FolioErrorCode code_of_call(void) {
  FolioSessionOptions* options = NULL;
  FolioStatus* status = folio->CreateSessionOptions(&options);
  FolioErrorCode code = status != NULL ? folio->GetErrorCode(status) : FOLIO_OK;
  folio->ReleaseStatus(status);
  folio->ReleaseSessionOptions(options);
  return code;
}

static pthread_barrier_t barrier;

static void* other_thread(void* unused) {
  pthread_barrier_wait(&barrier); /* there is no memory */
  code_without_memory[1] = code_of_call();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); /* there is again */
  code_afterwards[1] = code_of_call();
  return unused;
}

static void call_without_memory(void) {
  struct rlimit before, none;
  Block* all;
  getrlimit(RLIMIT_AS, &before);
  none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_AS, &none);
  all = take_all();
  code_without_memory[0] = code_of_call();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  setrlimit(RLIMIT_AS, &before);
  give_back(all);
  code_afterwards[0] = code_of_call();
  pthread_barrier_wait(&barrier);
}

int main(void) {
  char error[256];
  void* library = NULL;
  pthread_t thread;
  int i, failed = 0;
#ifdef HAS_SHADOW
  printf("left out: a sanitizer's shadow needs addresses\n");
  return 0;
#endif
  folio = folio_load(FOLIO_LIBRARY_PATH, FOLIO_API_VERSION, &library, error, sizeof error);
  if (folio == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  pthread_barrier_init(&barrier, NULL, 2);
  if (pthread_create(&thread, NULL, other_thread, NULL) != 0) return 1;
  call_without_memory();
  pthread_join(thread, NULL);
  for (i = 0; i < 2; ++i) {
    printf("thread %d: code %d without memory, %d afterwards\n", i, (int)code_without_memory[i],
           (int)code_afterwards[i]);
    if (code_without_memory[i] != FOLIO_OUT_OF_MEMORY) failed = 1;
    if (code_afterwards[i] != FOLIO_OK) failed = 1;
  }
  return failed;
}
