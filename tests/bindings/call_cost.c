/* Nanoseconds of one bound run of a tiny model, from C: what CallCost.java and CallCost.cs are
 * compared with. */
#include <folio/folio_c_api.h>
#include <folio/folio_load.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kRuns = 200000, kRounds = 11 };

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

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  char error[256];
  void* library = NULL;
  const int64_t dims[2] = {1, 4};
  float in[4] = {1, 2, 3, 4};
  float out[4];
  double rounds[kRounds];
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
    rounds[round] = (now_ns() - begin) / kRuns;
  }
  qsort(rounds, kRounds, sizeof rounds[0], compare);
  printf("%.1f\n", rounds[kRounds / 2]);
  return 0;
}
