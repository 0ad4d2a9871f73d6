/* Nanoseconds of one bound run of a tiny model, in the quickest round, from C: what CallCost.java
 * and CallCost.cs are compared with. */
#include <folio/folio_c_api.h>
#include <folio/folio_load.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kRuns = 20000, kRounds = 101 };

static const FolioApi* folio;

static void check(FolioStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", folio->GetErrorMessage(status));
  exit(1);
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  char error[256];
  void* library = NULL;
  const int64_t dims[2] = {1, 4};
  float in[4] = {1, 2, 3, 4};
  float out[4];
  double quickest = 1e18;
  FolioSession* session = NULL;
  FolioIoBinding* binding = NULL;
  FolioValue* x = NULL;
  FolioValue* y = NULL;
  if (argc != 3) return 2;
  folio = folio_load(argv[1], FOLIO_API_VERSION, &library, error, sizeof error);
  if (folio == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  check(folio->CreateSession(NULL, argv[2], NULL, &session));
  check(folio->CreateTensorWithData(in, sizeof in, dims, 2, FOLIO_FLOAT, NULL, NULL, &x));
  check(folio->CreateTensorWithData(out, sizeof out, dims, 2, FOLIO_FLOAT, NULL, NULL, &y));
  check(folio->CreateIoBinding(session, &binding));
  check(folio->BindInput(binding, "x", x));
  check(folio->BindOutput(binding, "y", y));
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_ns();
    for (int i = 0; i < kRuns; ++i) check(folio->RunWithBinding(session, NULL, binding));
    const double each = (now_ns() - begin) / kRuns;
    if (each < quickest) quickest = each;
  }
  printf("%.1f\n", quickest);
  return 0;
}
