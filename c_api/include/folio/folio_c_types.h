/* Types of Folio's C API: handles, enums, callbacks and the structs that grow. Included by
 * folio_c_api.h, which states the conventions. */
#ifndef FOLIO_FOLIO_C_TYPES_H_
#define FOLIO_FOLIO_C_TYPES_H_

#include <stddef.h>
#include <stdint.h>

/* Any int may come through this boundary: in C++ too, where an enum without a type holds only its
 * own range of values. */
#ifdef __cplusplus
#define FOLIO_INT_ENUM : int
#else
#define FOLIO_INT_ENUM
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FOLIO_EXPORT __attribute__((visibility("default")))

typedef struct FolioStatus FolioStatus;                 /* an error; NULL is success */
typedef struct FolioEnv FolioEnv;                       /* threads and log of a group of sessions */
typedef struct FolioCancel FolioCancel;                 /* a flag that stops loads and runs */
typedef struct FolioModelOptions FolioModelOptions;     /* how a model is opened */
typedef struct FolioModel FolioModel;                   /* an opened, mapped and verified model */
typedef struct FolioValueInfo FolioValueInfo;           /* declared type of an input or output */
typedef struct FolioPackCache FolioPackCache;           /* packed weights kept in memory */
typedef struct FolioSessionOptions FolioSessionOptions; /* how a model is compiled */
typedef struct FolioSession FolioSession;               /* a compiled model, ready to run */
typedef struct FolioRunOptions FolioRunOptions;         /* how one run goes */
typedef struct FolioValue FolioValue;                   /* a tensor, sequence, map or optional */
typedef struct FolioIoBinding FolioIoBinding;           /* inputs and outputs fixed beforehand */
typedef struct FolioMemoryReport FolioMemoryReport;     /* where the bytes are, at one moment */

/* What went wrong. 0 to 12 have ONNX Runtime's numbers and names, used or not. */
typedef enum FolioErrorCode FOLIO_INT_ENUM {
  FOLIO_OK = 0,
  FOLIO_FAIL = 1,                 /* a defect in Folio, or a failure without a better code */
  FOLIO_INVALID_ARGUMENT = 2,     /* the call is wrong: convention 1; or what an input of a run
                                   * holds is (an index out of range) */
  FOLIO_NO_SUCHFILE = 3,          /* no file at that path */
  FOLIO_NO_MODEL = 4,             /* a file, but neither .onnx nor .ort */
  FOLIO_ENGINE_ERROR = 5,         /* not used */
  FOLIO_RUNTIME_EXCEPTION = 6,    /* not used */
  FOLIO_INVALID_PROTOBUF = 7,     /* the bytes of the model are damaged (.onnx or .ort) */
  FOLIO_MODEL_LOADED = 8,         /* not used */
  FOLIO_NOT_IMPLEMENTED = 9,      /* valid, but Folio does not do it; operators: 102 */
  FOLIO_INVALID_GRAPH = 10,       /* the bytes are sound, the graph is not (cycle, types, shapes) */
  FOLIO_EP_FAIL = 11,             /* not used */
  FOLIO_MODEL_LOAD_CANCELED = 12, /* an open or create was cancelled (FolioCancel, progress) */
  FOLIO_CANCELLED = 100,          /* a run (or its time ran out) or a save was cancelled */
  FOLIO_OUT_OF_MEMORY = 101,      /* memory or address space */
  FOLIO_UNSUPPORTED_OPERATOR = 102, /* see ModelGetUnsupportedOperator for the whole list */
  FOLIO_MODEL_CHANGED = 103,        /* a file of the model changed while it was open */
  FOLIO_CLOSED = 104,               /* the session was closed */
  FOLIO_IO = 105                    /* the operating system refused to open, read or map */
} FolioErrorCode;

/* Element types, with ONNX's numbers (TensorProto.DataType). Types of less than a byte are packed
 * low bits first, and a tensor of them has ceil(count * bits / 8) bytes. */
typedef enum FolioElementType FOLIO_INT_ENUM {
  FOLIO_UNDEFINED = 0,
  FOLIO_FLOAT = 1,
  FOLIO_UINT8 = 2,
  FOLIO_INT8 = 3,
  FOLIO_UINT16 = 4,
  FOLIO_INT16 = 5,
  FOLIO_INT32 = 6,
  FOLIO_INT64 = 7,
  FOLIO_STRING = 8,
  FOLIO_BOOL = 9, /* one byte, 0 or 1 */
  FOLIO_FLOAT16 = 10,
  FOLIO_DOUBLE = 11,
  FOLIO_UINT32 = 12,
  FOLIO_UINT64 = 13,
  FOLIO_COMPLEX64 = 14,
  FOLIO_COMPLEX128 = 15,
  FOLIO_BFLOAT16 = 16,
  FOLIO_FLOAT8E4M3FN = 17,
  FOLIO_FLOAT8E4M3FNUZ = 18,
  FOLIO_FLOAT8E5M2 = 19,
  FOLIO_FLOAT8E5M2FNUZ = 20,
  FOLIO_UINT4 = 21,
  FOLIO_INT4 = 22,
  FOLIO_FLOAT4E2M1 = 23,
  FOLIO_FLOAT8E8M0 = 24,
  FOLIO_UINT2 = 25,
  FOLIO_INT2 = 26
} FolioElementType;

/* What a value is, with ONNX Runtime's numbers (ONNXType). */
typedef enum FolioValueKind FOLIO_INT_ENUM {
  FOLIO_KIND_UNKNOWN = 0,
  FOLIO_KIND_TENSOR = 1,
  FOLIO_KIND_SEQUENCE = 2,
  FOLIO_KIND_MAP = 3,
  FOLIO_KIND_OPAQUE = 4,
  FOLIO_KIND_SPARSE_TENSOR = 5,
  FOLIO_KIND_OPTIONAL = 6
} FolioValueKind;

/* ONNX Runtime's numbers. */
typedef enum FolioLogLevel FOLIO_INT_ENUM {
  FOLIO_LOG_VERBOSE = 0,
  FOLIO_LOG_INFO = 1,
  FOLIO_LOG_WARNING = 2,
  FOLIO_LOG_ERROR = 3
} FolioLogLevel;

/* What SessionClose does with runs in flight. It returns after the last of them either way. */
typedef enum FolioCloseMode FOLIO_INT_ENUM {
  FOLIO_CLOSE_WAIT = 0,  /* lets them finish */
  FOLIO_CLOSE_CANCEL = 1 /* makes them return FOLIO_CANCELLED at the next step */
} FolioCloseMode;

/* Gives memory back to its owner: called exactly once, with the `user` given beside it, when the
 * library no longer needs the memory, from whichever thread drops the last reference. free(3) fits
 * where `user` is the memory itself. If the call that was to take the memory fails, it is not
 * called. Where NULL is passed instead, the entry says what that means. */
typedef void (*FolioReleaseFunction)(void* user);

/* One line for the log, without a newline. `message` is valid during the call. */
typedef void (*FolioLogFunction)(void* user, FolioLogLevel level, const char* message);

/* How far an open, create or save has come: `stage` is one short word ("open", "parse", "optimize",
 * "plan", "pack", "ready" ...), `fraction` grows from 0 to 1 over the call, not over the stage.
 * Returning anything but 0 cancels: the call fails with FOLIO_MODEL_LOAD_CANCELED, a save with
 * FOLIO_CANCELLED. Called in the thread that made the call. */
typedef int (*FolioProgressFunction)(void* user, const char* stage, double fraction);

/* Input of CreateEnv. */
typedef struct FolioEnvOptions {
  size_t size;
  /* Threads that compute one run, the calling thread included, of sessions whose options do not say
   * (folio.threads); at most 256. 0: environment variable FOLIO_THREADS, else the smallest of
   * affinity, cgroup quota and physical cores. */
  uint32_t thread_count;
  /* At most so many arenas (the scratch memory of runs) are kept, by the whole process, whichever
   * environment said so last; more runs than that at once get temporary ones, and nobody waits.
   * 0: leaves the limit as it is, which is none at first. */
  uint32_t max_arenas;
  /* Lines below this level are dropped; 0 is FOLIO_LOG_VERBOSE. Read only where `log` is given. */
  FolioLogLevel log_level;
  /* Receives the log of the whole process, from any thread and from several at once, until the
   * environment and all that was made with it are gone; of several environments, the newest has
   * it. NULL: does not touch the log. With no log function, warnings and errors go to standard
   * error. */
  FolioLogFunction log;
  void* log_user;
  FolioReleaseFunction log_release; /* called with log_user after the last line; may be NULL */
} FolioEnvOptions;

/* Output of GetCpuInfo. The strings live as long as the library. */
typedef struct FolioCpuInfo {
  size_t size;
  const char* level;          /* the newest kernels in use: "ref", "x86_avx2", ...; see FOLIO_CPU */
  const char* features;       /* what Folio uses of the CPU's features, separated by spaces */
  const char* brand;          /* as the CPU calls itself; "" if it does not */
  uint32_t logical_cpu_count; /* CPUs in the calling thread's affinity mask */
  uint32_t default_thread_count; /* what thread_count 0 stands for */
} FolioCpuInfo;

/* Output of ModelGetInfo. The strings belong to the model; "" where the file has none. */
typedef struct FolioModelInfo {
  size_t size;
  const char* format; /* "onnx" or "ort" */
  const char* path;   /* as given to OpenModel; "" for a model from memory */
  const char* producer_name;
  const char* producer_version;
  const char* domain;
  const char* description;
  const char* graph_name;
  int64_t model_version;
  int64_t ir_version;
  uint64_t node_count; /* of the graph and all its subgraphs, as the three below */
  uint64_t initializer_count;
  uint64_t initializer_bytes;
  uint64_t file_bytes; /* of the model file, without external data */
} FolioModelInfo;

typedef struct FolioSaveOptions { /* input of ModelSave */
  size_t size;
  const char* optimize;        /* "none", "basic", "extended", "all"; NULL: "all" */
  const char* format;          /* "ONNX", "ORT"; NULL: by the path's end */
  const char* external_file;   /* of ONNX: name of a file beside it for large initializers */
  uint64_t external_min_bytes; /* which are large; 0: 1024 */
  FolioProgressFunction progress;
  void* progress_user;
  FolioCancel* cancel;
} FolioSaveOptions;

typedef struct FolioSaveInfo { /* output of ModelSave */
  size_t size;
  uint64_t file_bytes;
  uint64_t data_bytes; /* of the file beside it; 0: there is none */
  uint64_t node_count; /* of the main graph */
  uint64_t initializer_count;
  uint64_t initializer_bytes; /* shared ones once */
} FolioSaveInfo;

/* Output of ModelGetUnsupportedOperator: one node that Folio cannot run. Strings: the model's. */
typedef struct FolioUnsupportedOperator {
  size_t size;
  const char* domain; /* "" is ai.onnx */
  const char* op_type;
  int64_t opset_version; /* that the model imports for this domain */
  const char* node_name; /* its first output's where the node has none */
  const char* reason;    /* "unknown operator", "opset 30 is newer than 28", ... */
} FolioUnsupportedOperator;

/* Input of CreatePackCache. */
typedef struct FolioPackCacheOptions {
  size_t size;
  /* 1: the cache keeps every blob until it is released, so that a session created after another was
   * released finds them. 0: a blob lives as long as a session uses it. */
  int32_t hold;
  /* 1: holds, and remembers what the blobs are, so that PackCacheWrite can put all of them into one
   * pack file. To know that, sessions that use the cache hash the weights that they pack. */
  int32_t record;
} FolioPackCacheOptions;

/* Output of PackCacheGetStats. */
typedef struct FolioPackCacheStats {
  size_t size;
  uint64_t blob_count; /* alive now */
  uint64_t blob_bytes;
  uint64_t hit_count; /* asked for and found in memory, since the cache was made */
  uint64_t miss_count;

  /* What became of the misses. */
  uint64_t found_count; /* a pack file had it */
  uint64_t found_bytes;
  uint64_t packed_count; /* packed, or computed, in memory of this process */
  uint64_t packed_bytes;
  uint64_t written_count; /* packed into a pack file and mapped from there */
  uint64_t written_bytes;

  /* Why no pack file had it. */
  uint64_t absent_count; /* none has the weight in this layout, or there is none to look in */
  uint64_t misfit_count; /* one has it with another size */
  uint64_t
      damaged_count; /* one has it, but not the bytes that were written (folio.pack_checksum) */
  uint64_t ignored_file_count; /* pack files and stores that could not be used or trusted */

  /* Bytes of model files that had to be known by content, by what told it. */
  uint64_t hashed_bytes;   /* nothing did: they were read */
  uint64_t memo_bytes;     /* a pack file, a store, or this cache's record */
  uint64_t declared_bytes; /* the model file, saved by Folio */
  uint64_t cached_bytes;   /* the user's digest cache (folio.digest_cache) */

  /* The blobs alive now, by place. */
  uint64_t heap_blob_count; /* memory of this process */
  uint64_t heap_blob_bytes;
  uint64_t sidecar_blob_count; /* a pack file beside the model, or named by folio.pack_sidecar */
  uint64_t sidecar_blob_bytes;
  uint64_t store_blob_count; /* a pack store */
  uint64_t store_blob_bytes;

  uint64_t recorded_count; /* what PackCacheWrite would write */
  uint64_t recorded_bytes;
} FolioPackCacheStats;

/* Output of PackCacheCollect. */
typedef struct FolioPackCacheCollected {
  size_t size;
  uint64_t blob_count; /* let go of */
  uint64_t blob_bytes;
} FolioPackCacheCollected;

/* Input of ModelPack. */
typedef struct FolioPackOptions {
  size_t size;
  const char* path;   /* the pack file to write or check; NULL: the model's path + ".fpack" */
  const char* store;  /* a pack store to add to instead of writing a file; or NULL */
  const char* levels; /* kernel levels as GetCpuInfo names them, separated by ','; NULL: this one */
  int32_t check;      /* 1: writes nothing, counts what is missing */
  /* 1: writes the model anew, to `path` (an .onnx; NULL: where it is), with its large weights in
   * path + ".fpack" and nowhere else, after all were read back and found equal. `store`, `levels`
   * and `check` do not go with it. */
  int32_t replace;
} FolioPackOptions;

/* Output of ModelPack. */
typedef struct FolioPackResult {
  size_t size;
  uint64_t written_blob_count;
  uint64_t written_blob_bytes;
  uint64_t found_blob_count;   /* were there already: a store's, or with `check` */
  uint64_t missing_blob_count; /* with `check`: a session would pack these */
  uint64_t raw_blob_count;     /* with `replace`: of those written, weights that no kernel packs */
  uint64_t raw_blob_bytes;
} FolioPackResult;

/* What PackStoreGetJson does. */
typedef enum FolioPackStoreAction FOLIO_INT_ENUM {
  FOLIO_PACK_STORE_LIST = 0,   /* packs and sizes */
  FOLIO_PACK_STORE_VERIFY = 1, /* and compares every blob with its checksum */
  /* Of what the store wrote: removes leftovers, packs with blobs that do not fit their checksums
   * and, above a limit, the oldest. */
  FOLIO_PACK_STORE_COLLECT = 2
} FolioPackStoreAction;

/* Output of MemoryReportGetEntry. Strings belong to the report. */
typedef struct FolioMemoryEntry {
  size_t size;
  const char* name; /* what it is: the file's path, "packed weights", "constants", ... */
  const char* kind; /* "mapping", "memory", "packed", "constant", "arena" or "buffer" */
  uint64_t bytes;   /* address space that it takes */
  uint64_t
      resident_bytes; /* of pages of files: what this process has touched of them and is in
                       * memory now; 0 for the other kinds, and where the system does not say */
  int32_t is_private; /* 1: memory that Folio allocated; 0: page cache, or the caller's */
  uint64_t pss_bytes; /* of resident_bytes this process's share: a page that n processes have
                       * touched counts 1/n */
} FolioMemoryEntry;

/* Output of MemoryReportGetSummary. 0: nothing, or the system does not say. */
typedef struct FolioMemorySummary {
  size_t size;
  uint64_t mapped_bytes;   /* files, pack files too: address space, not memory */
  uint64_t resident_bytes; /* of these: touched by this process and in memory now */
  uint64_t pss_bytes;      /* of these: this process's share of what others have touched too */
  uint64_t private_bytes;  /* memory that Folio allocated */
  uint64_t packed_sidecar_bytes; /* packed weights in the model's own pack file (mapped) */
  uint64_t packed_store_bytes;   /* in pack stores (mapped) */
  uint64_t packed_heap_bytes;    /* in memory of this process (private) */
  uint64_t constant_bytes;       /* constants that were computed or copied (private) */
  uint64_t saved_file_bytes;     /* model files: what the second and every later session of this
                                  * process did not need again. Of a session's report: its files
                                  * that other sessions use too */
  uint64_t saved_packed_bytes;   /* the same of packed weights and constants */
  /* Of the process (EnvGetMemoryReport); 0 in the report of a model or session: */
  uint64_t arena_bytes; /* scratch memory of runs, in use or idle (private) */
  uint64_t process_rss_bytes;
  uint64_t process_pss_bytes;        /* what the process takes of the machine */
  uint64_t process_anonymous_bytes;  /* pages that no file stands behind */
  uint64_t process_page_table_bytes; /* beside all of these: the kernel's tables for them */
} FolioMemorySummary;

/* Runs by duration. Bucket i counts those that took at most 10, 20, 50, 100, 200, 500 ... us (steps
 * of 1-2-5 up to 10 s) and are in no bucket before it; the last counts all the rest. */
#define FOLIO_LATENCY_BUCKET_COUNT 20

/* Output of SessionGetMetrics and EnvGetMetrics. Counters only grow, except the gauges. */
typedef struct FolioMetrics {
  size_t size;
  uint64_t run_count;       /* runs that have ended, however they ended; so do the buckets */
  uint64_t error_count;     /* of these, ended in an error other than the next */
  uint64_t cancelled_count; /* of these, cancelled or out of time */
  uint64_t in_flight_count; /* gauge: running now */
  uint64_t session_count;   /* gauge: sessions that exist (1 for a session) */
  uint64_t latency_sum_us;
  uint64_t latency_buckets[FOLIO_LATENCY_BUCKET_COUNT];
} FolioMetrics;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FOLIO_FOLIO_C_TYPES_H_ */
