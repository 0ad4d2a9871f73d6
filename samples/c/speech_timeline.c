/* Who speaks when: runs the Silero voice activity model over a recording, 32 ms at a time, and
 * prints where there is speech.
 *
 *   speech_timeline [--library PATH/libfolio.so.1] silero_vad_v5.onnx RECORDING.wav
 *
 * The recording is 16 bit mono PCM at 16 kHz. The model looks at 512 samples, with the 64 before
 * them as context, and hands a state of 2 x 1 x 128 numbers from each call to the next; it answers
 * with the probability that somebody speaks. All tensors lie over arrays of this program, which
 * are made once: a call copies and allocates nothing.
 */
#define _POSIX_C_SOURCE 200809L

#include <folio/folio_load.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kSampleRate = 16000,
  kWindow = 512, /* samples, 32 ms */
  kContext = 64,
  kInput = kContext + kWindow,
  kState = 2 * 1 * 128,
  kPauseMs = 300, /* a shorter pause is part of the speech around it */
  kPictureColumns = 72,
  kMaxWavBytes = 1 << 30
};
static const float kThreshold = 0.5f;

static const FolioApi* folio;

static void check(FolioStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", folio->GetErrorName(folio->GetErrorCode(status)),
          folio->GetErrorMessage(status));
  folio->ReleaseStatus(status);
  exit(3);
}

static void die(const char* what, const char* detail) {
  fprintf(stderr, "%s: %s\n", what, detail);
  exit(3);
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- the recording ---- */

typedef struct Recording {
  float* samples; /* -1 to 1 */
  size_t count;
} Recording;

static uint32_t little_endian(const unsigned char* bytes, int count) {
  uint32_t value = 0;
  while (count-- > 0) value = value << 8 | bytes[count];
  return value;
}

static unsigned char* read_file(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  unsigned char* data;
  long end = -1;
  if (file == NULL) die(path, "cannot be opened");
  if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (end < 0 || end > kMaxWavBytes) die(path, "is no recording of at most 1 GiB");
  rewind(file);
  data = malloc((size_t)end + 1);
  if (data == NULL) die(path, "out of memory");
  *bytes = fread(data, 1, (size_t)end, file);
  fclose(file);
  return data;
}

/* Finds the chunk `id` of a RIFF file. A size that reaches over the end, as programs write that do
 * not know it yet, means the rest of the file. */
static const unsigned char* find_chunk(const unsigned char* data, size_t bytes, const char* id,
                                       size_t* chunk_bytes) {
  size_t at = 12;
  while (bytes >= 8 && at <= bytes - 8) {
    const size_t left = bytes - at - 8;
    size_t size = little_endian(data + at + 4, 4);
    if (size > left) size = left;
    if (memcmp(data + at, id, 4) == 0) {
      *chunk_bytes = size;
      return data + at + 8;
    }
    at += 8 + size + (size & 1); /* chunks begin at even places */
  }
  return NULL;
}

static Recording read_wav(const char* path) {
  size_t bytes, format_bytes, data_bytes, i;
  unsigned char* file = read_file(path, &bytes);
  const unsigned char *format, *data;
  Recording recording;
  if (bytes < 12 || memcmp(file, "RIFF", 4) != 0 || memcmp(file + 8, "WAVE", 4) != 0) {
    die(path, "is no WAV file");
  }
  format = find_chunk(file, bytes, "fmt ", &format_bytes);
  data = find_chunk(file, bytes, "data", &data_bytes);
  if (format == NULL || format_bytes < 16 || data == NULL) die(path, "is no WAV file");
  if (little_endian(format, 2) != 1 || little_endian(format + 2, 2) != 1 ||
      little_endian(format + 4, 4) != kSampleRate || little_endian(format + 14, 2) != 16) {
    die(path, "is not 16 bit mono PCM at 16 kHz");
  }
  recording.count = data_bytes / 2;
  recording.samples = malloc((recording.count + 1) * sizeof(float));
  if (recording.samples == NULL) die(path, "out of memory");
  for (i = 0; i < recording.count; ++i) {
    int value = (int)little_endian(data + 2 * i, 2);
    if (value >= 32768) value -= 65536;
    recording.samples[i] = (float)value / 32768.0f;
  }
  free(file);
  return recording;
}

/* ---- the model ---- */

static FolioValue* tensor_over(void* data, size_t bytes, const int64_t* dims, size_t dim_count,
                               FolioElementType type) {
  FolioValue* value = NULL;
  check(folio->CreateTensorWithData(data, bytes, dims, dim_count, type, NULL, NULL, &value));
  return value;
}

/* Writes the probability of speech in each window. */
static void find_speech(FolioSession* session, const Recording* recording, float* probabilities) {
  static const char* const input_names[] = {"input", "state", "sr"};
  static const char* const output_names[] = {"output", "stateN"};
  static const int64_t input_dims[] = {1, kInput}, state_dims[] = {2, 1, 128}, one[] = {1, 1};
  float samples[kInput] = {0}, states[2][kState] = {{0}}, probability = 0;
  int64_t sample_rate = kSampleRate;
  FolioValue* input = tensor_over(samples, sizeof samples, input_dims, 2, FOLIO_FLOAT);
  FolioValue* rate = tensor_over(&sample_rate, sizeof sample_rate, NULL, 0, FOLIO_INT64);
  FolioValue* output = tensor_over(&probability, sizeof probability, one, 2, FOLIO_FLOAT);
  FolioValue* state[2];
  size_t start, window;
  state[0] = tensor_over(states[0], sizeof states[0], state_dims, 3, FOLIO_FLOAT);
  state[1] = tensor_over(states[1], sizeof states[1], state_dims, 3, FOLIO_FLOAT);

  for (start = 0, window = 0; start < recording->count; start += kWindow, ++window) {
    const size_t left = recording->count - start;
    const size_t count = left < kWindow ? left : kWindow;
    /* One state is read, the other written; the next call reads what this one wrote. */
    FolioValue* inputs[3] = {input, state[window % 2], rate};
    FolioValue* outputs[2] = {output, state[(window + 1) % 2]};
    memmove(samples, samples + kWindow, kContext * sizeof *samples);
    memcpy(samples + kContext, recording->samples + start, count * sizeof *samples);
    memset(samples + kContext + count, 0, (kWindow - count) * sizeof *samples);
    check(folio->Run(session, NULL, input_names, inputs, 3, output_names, 2, outputs));
    probabilities[window] = probability;
  }
  folio->ReleaseValue(input);
  folio->ReleaseValue(rate);
  folio->ReleaseValue(output);
  folio->ReleaseValue(state[0]);
  folio->ReleaseValue(state[1]);
}

/* ---- the timeline ---- */

/* Windows [begin, end) of speech. */
typedef struct Segment {
  size_t begin, end;
} Segment;

static double seconds(size_t window) { return (double)(window * kWindow) / kSampleRate; }

/* `segments` has room for one of each two windows. Returns how many there are. */
static size_t find_segments(const float* probabilities, size_t window_count, Segment* segments) {
  const size_t pause_windows = (size_t)kPauseMs * (kSampleRate / 1000) / kWindow;
  size_t count = 0, window;
  for (window = 0; window < window_count; ++window) {
    if (probabilities[window] < kThreshold) continue;
    if (count != 0 && window - segments[count - 1].end <= pause_windows) {
      segments[count - 1].end = window + 1;
    } else {
      segments[count].begin = window;
      segments[count++].end = window + 1;
    }
  }
  return count;
}

static void print_timeline(const Segment* segments, size_t count, size_t window_count) {
  char picture[kPictureColumns + 1];
  size_t i, column;
  memset(picture, '.', kPictureColumns);
  picture[kPictureColumns] = '\0';
  for (i = 0; i < count; ++i) {
    const size_t first = segments[i].begin * kPictureColumns / window_count;
    const size_t last = (segments[i].end - 1) * kPictureColumns / window_count;
    for (column = first; column <= last; ++column) picture[column] = '#';
  }
  printf("  |%s| %.1f s\n", picture, seconds(window_count));
  for (i = 0; i < count; ++i) {
    const double begin = seconds(segments[i].begin), end = seconds(segments[i].end);
    printf("  segment %zu: %6.2f s - %6.2f s  (%.2f s)\n", i + 1, begin, end, end - begin);
  }
  printf("%zu segments of speech\n", count);
}

static void show_speech(const char* model_path, const char* wav_path) {
  const Recording recording = read_wav(wav_path);
  const size_t window_count = (recording.count + kWindow - 1) / kWindow;
  float* probabilities = malloc((window_count + 1) * sizeof *probabilities);
  Segment* segments = malloc((window_count / 2 + 1) * sizeof *segments);
  FolioSession* session = NULL;
  double started, opened, done;
  if (probabilities == NULL || segments == NULL) die(wav_path, "out of memory");

  started = now_ms();
  check(folio->CreateSession(NULL, model_path, NULL, &session));
  opened = now_ms();
  find_speech(session, &recording, probabilities);
  done = now_ms();
  printf("%s: %.1f s of sound; model opened in %.1f ms, %zu windows in %.1f ms\n", wav_path,
         (double)recording.count / kSampleRate, opened - started, window_count, done - opened);
  if (window_count != 0) {
    print_timeline(segments, find_segments(probabilities, window_count, segments), window_count);
  }
  folio->ReleaseSession(session);
  free(segments);
  free(probabilities);
  free(recording.samples);
}

int main(int argc, char** argv) {
  const char* library_path = NULL;
  char error[512];
  void* library = NULL;
  if (argc == 5 && strcmp(argv[1], "--library") == 0) {
    library_path = argv[2];
  } else if (argc != 3) {
    fprintf(stderr, "usage: speech_timeline [--library libfolio.so.1] MODEL RECORDING.wav\n");
    return 2;
  }
  folio = folio_load(library_path, FOLIO_API_VERSION, &library, error, sizeof error);
  if (folio == NULL) die("Folio", error);
  show_speech(argv[argc - 2], argv[argc - 1]);
  folio_unload(library);
  return 0;
}
