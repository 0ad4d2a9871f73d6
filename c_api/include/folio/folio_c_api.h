/* The C interface of Folio, a CPU inference runtime for ONNX (.onnx) and ORT-format (.ort) models.
 *
 * One symbol is exported, FolioGetApiBase; everything else is reached through a table of functions:
 *
 *   const FolioApi* folio = FolioGetApiBase()->GetApi(FOLIO_API_VERSION);   NULL: library too old
 *   FolioSession* session = NULL;
 *   FolioStatus* status = folio->CreateSession(NULL, "model.onnx", NULL, &session);
 *   if (status != NULL) {
 *     fprintf(stderr, "%s\n", folio->GetErrorMessage(status));
 *     folio->ReleaseStatus(status);
 *   }
 *
 * With dlopen, see folio_load.h. C++ has folio.hpp. A whole program: samples/c/run_model.c.
 *
 * CONVENTIONS. They hold for every entry; an entry's comment only adds to them.
 *
 *  1. Errors. An entry that can fail returns FolioStatus*: NULL is success; anything else carries a
 *     code and a message, belongs to the caller and goes back through ReleaseStatus. A failed call
 *     leaves its out-parameters untouched and takes nothing over from the caller. Any entry may
 *     answer FOLIO_INVALID_ARGUMENT (a NULL where none is allowed, an unknown name, an index out of
 *     range, a value of the wrong kind) and FOLIO_OUT_OF_MEMORY; "Errors:" names the others. Branch
 *     on codes, never on messages. Nothing throws, aborts, exits or writes to standard output.
 *  2. Handles (FolioSession* ...) are opaque. What arrives through a Folio<Type>** is the caller's,
 *     and goes back through Release<Type>, which accepts NULL and cannot fail. Handles that depend
 *     on each other hold each other: any order of release is legal. Options are copied when used.
 *  3. Borrowed results. What arrives through a const pointer (const char*, const int64_t*,
 *     const FolioValueInfo*) belongs to the handle in the first argument and is valid until that
 *     handle is released or, where it can be changed, changed. Do not free it.
 *  4. Arguments are borrowed for the call. Memory that the library keeps for longer is taken with a
 *     FolioReleaseFunction, which says when it may go; see there.
 *  5. Threads. Entries may be called from any thread. One handle may be used by many threads at
 *     once where it is passed as const, and as FolioSession* and FolioCancel* too; all other
 *     non-const handles by one thread at a time. Release: no other thread may be using the handle.
 *  6. Strings are UTF-8 and end with NUL; no string comes back NULL unless its entry says so. A
 *     path is passed to the operating system byte for byte.
 *  7. Structs that may grow begin with `size`. Set it to sizeof before the call. The library reads
 *     and writes no further; what it does not know about in a longer struct it leaves alone. In
 *     structs that you fill, 0 and NULL in any other member ask for the default.
 *  8. Callbacks run without any lock of the library held, in whatever thread is doing the work.
 *     They must not throw or longjmp. They may call any entry but one that would wait for the
 *     very call they are in: SessionClose on a session whose run it is, or, while a session is
 *     created, creating another of the same model with equal options.
 *  9. Dims are int64_t, outermost first, and never negative in values. A scalar has 0 dims (dims
 *     may then be NULL). Sizes in bytes are called bytes, sizes in elements count.
 * 10. The table is append-only: entries keep place, signature and meaning. "Since N" is the
 *     FOLIO_API_VERSION with which an entry came; GetApi(N) promises all entries up to N.
 *
 * Platform: Linux x86-64. C99, or C++11 and later.
 */
#ifndef FOLIO_FOLIO_C_API_H_
#define FOLIO_FOLIO_C_API_H_

#include "folio/folio_c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FOLIO_API_VERSION 1u

/* The table. Entries are grouped by the handle they work on; the order is the ABI. */
typedef struct FolioApi {
  /* ---- Base ----------------------------------------------------------------------------------
   * These never fail. The strings live as long as the library. */

  /* "1.2.3". Since 1. */
  const char* (*GetVersionString)(void);

  /* Version, compiler and build type in one line, for bug reports. Since 1. */
  const char* (*GetBuildInfo)(void);

  /* What Folio found of the CPU and what it makes of it. Since 1. */
  FolioStatus* (*GetCpuInfo)(FolioCpuInfo* out);

  /* "INVALID_ARGUMENT" and the like; "UNKNOWN" for a number that is no code. Since 1. */
  const char* (*GetErrorName)(FolioErrorCode code);

  /* "float", "int64", "uint4" and the like; "undefined" for a number that is no type. Since 1. */
  const char* (*GetElementTypeName)(FolioElementType type);

  /* Bits of one element: 32, 64, 4 ...; 0 for strings and numbers that are no type. Since 1. */
  uint32_t (*GetElementTypeBits)(FolioElementType type);

  /* Frees a string that an entry gave through a char**. NULL is fine. Since 1. */
  void (*ReleaseString)(char* string);

  /* ---- Status -------------------------------------------------------------------------------- */

  /* The code; FOLIO_OK for NULL. Since 1. */
  FolioErrorCode (*GetErrorCode)(const FolioStatus* status);

  /* One line that names the file, node and operator as far as they matter, what was found and what
   * was expected. Valid until ReleaseStatus; "" for NULL. Since 1. */
  const char* (*GetErrorMessage)(const FolioStatus* status);

  /* Since 1. */
  void (*ReleaseStatus)(FolioStatus* status);

  /* ---- Env -----------------------------------------------------------------------------------
   * Optional: wherever an entry takes a FolioEnv*, NULL is the process's default environment, which
   * is made at its first use, has the defaults of FolioEnvOptions and lasts as long as the process.
   * All environments use one pool of threads; none starts before the first run that needs one. */

  /* `options` may be NULL. Since 1. */
  FolioStatus* (*CreateEnv)(const FolioEnvOptions* options, FolioEnv** out);

  /* Gives the memory that idle arenas and blocks of the process hold back to the system. Costs the
   * next runs its first touch. `env` may be NULL. Since 1. */
  FolioStatus* (*EnvTrim)(const FolioEnv* env);

  /* Sums over all sessions of the environment, released ones included. `env` may be NULL. Since
   * 1. */
  FolioStatus* (*EnvGetMetrics)(const FolioEnv* env, FolioMetrics* out);

  /* The same in Prometheus' text format. Free with ReleaseString. `env` may be NULL. Since 1. */
  FolioStatus* (*EnvGetMetricsText)(const FolioEnv* env, char** out);

  /* All that Folio holds in this process, and what the system says of the process. `env` may be
   * NULL. Since 1. */
  FolioStatus* (*EnvGetMemoryReport)(const FolioEnv* env, FolioMemoryReport** out);

  /* Since 1. */
  void (*ReleaseEnv)(FolioEnv* env);

  /* ---- Cancel --------------------------------------------------------------------------------
   * One flag may serve any number of opens, creates and runs; once set it stays set. */

  /* Since 1. */
  FolioStatus* (*CreateCancel)(FolioCancel** out);

  /* Sets the flag and returns at once. Calls that carry it fail at their next step, new ones before
   * their first: runs and saves with FOLIO_CANCELLED, the others with
   * FOLIO_MODEL_LOAD_CANCELED. Since 1. */
  FolioStatus* (*CancelRequest)(FolioCancel* cancel);

  /* 1 if the flag is set, else 0. Since 1. */
  FolioStatus* (*CancelIsRequested)(const FolioCancel* cancel, int32_t* out);

  /* Since 1. */
  void (*ReleaseCancel)(FolioCancel* cancel);

  /* ---- ModelOptions -------------------------------------------------------------------------- */

  /* Since 1. */
  FolioStatus* (*CreateModelOptions)(FolioModelOptions** out);

  /* Sets a key to a value; the last one counts. Keys: docs/config_keys.md. An unknown key that
   * begins with "folio." is an error that suggests the nearest; any other, a warning. Since 1. */
  FolioStatus* (*AddModelConfigEntry)(FolioModelOptions* options, const char* key,
                                      const char* value);

  /* NULL takes the callback away. Since 1. */
  FolioStatus* (*ModelOptionsSetProgress)(FolioModelOptions* options,
                                          FolioProgressFunction progress, void* user);

  /* Held by the options until replaced; NULL takes it away. Since 1. */
  FolioStatus* (*ModelOptionsSetCancel)(FolioModelOptions* options, FolioCancel* cancel);

  /* Memory to be used where the model names the external data file `name` (as it is written in
   * the model, "weights.bin"), instead of a file. With `release` NULL the bytes are copied here
   * and now; else they are borrowed, by the options and by models opened with them. Since 1. */
  FolioStatus* (*AddExternalFileFromMemory)(FolioModelOptions* options, const char* name,
                                            const void* data, size_t bytes,
                                            FolioReleaseFunction release, void* user);

  /* Since 1. */
  void (*ReleaseModelOptions)(FolioModelOptions* options);

  /* ---- Model ---------------------------------------------------------------------------------
   * An open model is immutable. Sessions of one model share its mapping, and models that name the
   * same unchanged file share one mapping too, in this process and (page cache) between processes.
   * While a model is open, replace its file by rename, never in place: loads and runs of a model
   * whose file changed are MODEL_CHANGED (folio.on_file_change, folio.sigbus_guard). */

  /* Maps the file, parses and verifies it. Weights are not read. Operators that Folio lacks are no
   * error here. `env` and `options` may be NULL.
   * Errors: NO_SUCHFILE, NO_MODEL, INVALID_PROTOBUF, INVALID_GRAPH, NOT_IMPLEMENTED, IO,
   * MODEL_CHANGED, MODEL_LOAD_CANCELED. Since 1. */
  FolioStatus* (*OpenModel)(const FolioEnv* env, const char* path, const FolioModelOptions* options,
                            FolioModel** out);

  /* The same from memory. With `release` NULL the bytes are copied; else they are borrowed and must
   * not change until it is called. External data: AddExternalFileFromMemory. Since 1. */
  FolioStatus* (*OpenModelFromMemory)(const FolioEnv* env, const void* data, size_t bytes,
                                      FolioReleaseFunction release, void* user,
                                      const FolioModelOptions* options, FolioModel** out);

  /* Name, producer, size and so on. Since 1. */
  FolioStatus* (*ModelGetInfo)(const FolioModel* model, FolioModelInfo* out);

  /* Inputs that a run has to be given. Since 1. */
  FolioStatus* (*ModelGetInputCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetInput)(const FolioModel* model, size_t index, const FolioValueInfo** out);

  /* Since 1. */
  FolioStatus* (*ModelGetOutputCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetOutput)(const FolioModel* model, size_t index, const FolioValueInfo** out);

  /* Inputs that have a default in the model, which a run may override. Since 1. */
  FolioStatus* (*ModelGetOverridableInitializerCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetOverridableInitializer)(const FolioModel* model, size_t index,
                                                 const FolioValueInfo** out);

  /* The model's own key-value pairs (metadata_props), in the order of the file. Since 1. */
  FolioStatus* (*ModelGetMetadataCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetMetadataEntry)(const FolioModel* model, size_t index, const char** out_key,
                                        const char** out_value);

  /* The value of a key; *out becomes NULL where the model has no such key. Since 1. */
  FolioStatus* (*ModelLookupMetadata)(const FolioModel* model, const char* key, const char** out);

  /* Nodes that keep CreateSession from succeeding; count 0: none that can be told without
   * compiling. Since 1. */
  FolioStatus* (*ModelGetUnsupportedOperatorCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetUnsupportedOperator)(const FolioModel* model, size_t index,
                                              FolioUnsupportedOperator* out);

  /* Operator sets that the model imports: a domain ("" is ai.onnx) and its version. Since 1. */
  FolioStatus* (*ModelGetOpsetCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetOpset)(const FolioModel* model, size_t index, const char** out_domain,
                                int64_t* out_version);

  /* Operators by name ("Conv", "com.microsoft.Gelu") and how many nodes of the graph and all its
   * subgraphs are of them, in the order of the names. Since 1. */
  FolioStatus* (*ModelGetOperatorCount)(const FolioModel* model, size_t* out);
  FolioStatus* (*ModelGetOperator)(const FolioModel* model, size_t index, const char** out_name,
                                   uint64_t* out_node_count);

  /* What the model holds: mappings and graph. Since 1. */
  FolioStatus* (*ModelGetMemoryReport)(const FolioModel* model, FolioMemoryReport** out);

  /* Since 1. */
  void (*ReleaseModel)(FolioModel* model);

  /* ---- ValueInfo -----------------------------------------------------------------------------
   * Borrowed from a model or session; there is nothing to release. */

  /* Since 1. */
  FolioStatus* (*ValueInfoGetName)(const FolioValueInfo* info, const char** out);

  /* FOLIO_KIND_UNKNOWN where the model does not say. Since 1. */
  FolioStatus* (*ValueInfoGetKind)(const FolioValueInfo* info, FolioValueKind* out);

  /* Element type of a tensor; key type of a map. FOLIO_UNDEFINED where there is none or the model
   * does not say. Since 1. */
  FolioStatus* (*ValueInfoGetElementType)(const FolioValueInfo* info, FolioElementType* out);

  /* 1 if the number of dims is declared, else 0 (then there are 0 dims to read). Since 1. */
  FolioStatus* (*ValueInfoHasShape)(const FolioValueInfo* info, int32_t* out);

  /* Dims of a tensor; -1 where a dim is not a fixed number. Since 1. */
  FolioStatus* (*ValueInfoGetDims)(const FolioValueInfo* info, const int64_t** out_dims,
                                   size_t* out_count);

  /* The name of dim `index` ("batch"); "" if it is a number or has no name. Since 1. */
  FolioStatus* (*ValueInfoGetSymbolicDim)(const FolioValueInfo* info, size_t index,
                                          const char** out);

  /* Of a sequence or optional, what it contains; of a map, its values. *out becomes NULL for a
   * tensor. Since 1. */
  FolioStatus* (*ValueInfoGetElement)(const FolioValueInfo* info, const FolioValueInfo** out);

  /* ---- PackCache -----------------------------------------------------------------------------
   * Weights rearranged for the kernels, by content: equal weights are packed once. All sessions of
   * a process share one cache; an own one is for those who want to hold or to measure. */

  /* `options` may be NULL. Since 1. */
  FolioStatus* (*CreatePackCache)(const FolioPackCacheOptions* options, FolioPackCache** out);

  /* NULL is the cache that the process shares. Since 1. */
  FolioStatus* (*PackCacheGetStats)(const FolioPackCache* cache, FolioPackCacheStats* out);

  /* Sessions that use it keep what they need. Since 1. */
  void (*ReleasePackCache)(FolioPackCache* cache);

  /* ---- SessionOptions ------------------------------------------------------------------------ */

  /* Since 1. */
  FolioStatus* (*CreateSessionOptions)(FolioSessionOptions** out);

  /* As AddModelConfigEntry. Where a session is created from a path or from bytes, keys of the model
   * are given here too; CreateSessionFromModel does not look at those. Since 1. */
  FolioStatus* (*AddSessionConfigEntry)(FolioSessionOptions* options, const char* key,
                                        const char* value);

  /* Fixes every dim called `name` ("batch") to `value` >= 0 (1 where runs give single items); runs
   * must then keep to it. A name that the model lacks is no error. Since 1. */
  FolioStatus* (*AddFreeDimensionOverrideByName)(FolioSessionOptions* options, const char* name,
                                                 int64_t value);

  /* Replaces the initializer `name` of the graph by a tensor of the same type and shape. The
   * options and the sessions hold `value`; it must not be changed any more. A name that is no
   * initializer makes the create fail. Where a session is created from a path or from bytes, and
   * the model keeps that initializer in an external file, the file need not exist. Since 1. */
  FolioStatus* (*AddInitializer)(FolioSessionOptions* options, const char* name, FolioValue* value);

  /* NULL goes back to the cache that the process shares. Since 1. */
  FolioStatus* (*SessionOptionsSetPackCache)(FolioSessionOptions* options, FolioPackCache* cache);

  /* NULL takes the callback away. Since 1. */
  FolioStatus* (*SessionOptionsSetProgress)(FolioSessionOptions* options,
                                            FolioProgressFunction progress, void* user);

  /* Cancels the create, not the runs. NULL takes it away. Since 1. */
  FolioStatus* (*SessionOptionsSetCancel)(FolioSessionOptions* options, FolioCancel* cancel);

  /* Since 1. */
  void (*ReleaseSessionOptions)(FolioSessionOptions* options);

  /* ---- Session ------------------------------------------------------------------------------- */

  /* Opens the file and compiles it: OpenModel and CreateSessionFromModel in one. `env` and
   * `options` may be NULL. Errors: those two's. Since 1. */
  FolioStatus* (*CreateSession)(const FolioEnv* env, const char* path,
                                const FolioSessionOptions* options, FolioSession** out);

  /* The same from memory, which is copied; to borrow it, OpenModelFromMemory. Since 1. */
  FolioStatus* (*CreateSessionFromArray)(const FolioEnv* env, const void* data, size_t bytes,
                                         const FolioSessionOptions* options, FolioSession** out);

  /* Compiles a model. Sessions with equal options share the result, unless those replace an
   * initializer or name a cache. Environment: the model's. Errors: UNSUPPORTED_OPERATOR,
   * INVALID_GRAPH, NOT_IMPLEMENTED, IO, MODEL_CHANGED, MODEL_LOAD_CANCELED; where a key names a
   * file to write, NO_SUCHFILE (its folder). Since 1. */
  FolioStatus* (*CreateSessionFromModel)(const FolioModel* model,
                                         const FolioSessionOptions* options, FolioSession** out);

  /* The session's model, for its information; a reference of the caller's own, to be released with
   * ReleaseModel. Since 1. */
  FolioStatus* (*SessionGetModel)(const FolioSession* session, FolioModel** out);

  /* As the model's, with free dimension overrides applied, and with dims that the model leaves open
   * but compiling found. They also answer after SessionClose. Since 1. */
  FolioStatus* (*SessionGetInputCount)(const FolioSession* session, size_t* out);
  FolioStatus* (*SessionGetInput)(const FolioSession* session, size_t index,
                                  const FolioValueInfo** out);
  FolioStatus* (*SessionGetOutputCount)(const FolioSession* session, size_t* out);
  FolioStatus* (*SessionGetOutput)(const FolioSession* session, size_t index,
                                   const FolioValueInfo** out);
  FolioStatus* (*SessionGetOverridableInitializerCount)(const FolioSession* session, size_t* out);
  FolioStatus* (*SessionGetOverridableInitializer)(const FolioSession* session, size_t index,
                                                   const FolioValueInfo** out);

  /* Plans runs with these input shapes beforehand, so that the first one need not: input i has
   * dim_counts[i] dims at dims[i]. Inputs left out must have fixed shapes, or dims that those
   * given determine. The last 16 plans are kept. Errors: CLOSED. Since 1. */
  FolioStatus* (*SessionPrepareShapes)(FolioSession* session, const char* const* input_names,
                                       const int64_t* const* dims, const size_t* dim_counts,
                                       size_t input_count);

  /* Runs the model: any number of threads may, at once. Each name must be one of the model's, in
   * any order. Inputs may be left out where the model has a default or no node reads them. Only
   * what the named outputs need is computed.
   *
   * outputs[i] NULL: receives a new value, the caller's to release. outputs[i] a tensor: is written
   * into, if its type and shape are those of the result, else the run fails. One value must not be
   * output twice, nor both input and output, with one exception: a key/value cache that a node
   * makes of an input which nothing else reads (past and present of GroupQueryAttention,
   * TensorScatter) may be written in the memory of that input, the whole of it; then only new rows
   * are written. After an error, outputs[i] that was NULL still is, and the contents of tensors
   * that were given are undefined. `options` may be NULL. Errors: CANCELLED, CLOSED,
   * MODEL_CHANGED, NOT_IMPLEMENTED; INVALID_ARGUMENT also where an operator met data that it cannot
   * compute. Since 1. */
  FolioStatus* (*Run)(FolioSession* session, const FolioRunOptions* options,
                      const char* const* input_names, FolioValue* const* inputs, size_t input_count,
                      const char* const* output_names, size_t output_count, FolioValue** outputs);

  /* Runs with what is bound; results are then in the binding. A binding serves one run at a time: a
   * second one at once fails. Errors: as Run. Since 1. */
  FolioStatus* (*RunWithBinding)(FolioSession* session, const FolioRunOptions* options,
                                 FolioIoBinding* binding);

  /* Since 1. */
  FolioStatus* (*SessionGetMetrics)(const FolioSession* session, FolioMetrics* out);

  /* The same in Prometheus' text format. Free with ReleaseString. Since 1. */
  FolioStatus* (*SessionGetMetricsText)(const FolioSession* session, char** out);

  /* What the session and its model hold, alone or with other sessions. Since 1. */
  FolioStatus* (*SessionGetMemoryReport)(const FolioSession* session, FolioMemoryReport** out);

  /* Refuses new runs (FOLIO_CLOSED), returns when none is in flight. The handle stays valid.
   * Closing again is no error. Since 1. */
  FolioStatus* (*SessionClose)(FolioSession* session, FolioCloseMode mode);

  /* No run may be in flight: SessionClose sees to that. Since 1. */
  void (*ReleaseSession)(FolioSession* session);

  /* ---- RunOptions ---------------------------------------------------------------------------- */

  /* Since 1. */
  FolioStatus* (*CreateRunOptions)(FolioRunOptions** out);

  /* As AddModelConfigEntry. Since 1. */
  FolioStatus* (*AddRunConfigEntry)(FolioRunOptions* options, const char* key, const char* value);

  /* Held by the options; NULL takes it away. Since 1. */
  FolioStatus* (*RunOptionsSetCancel)(FolioRunOptions* options, FolioCancel* cancel);

  /* A run that takes longer fails with FOLIO_CANCELLED at its next step. 0: no limit. Since 1. */
  FolioStatus* (*RunOptionsSetTimeout)(FolioRunOptions* options, uint64_t timeout_ms);

  /* A name for the run, for messages and the log. Since 1. */
  FolioStatus* (*RunOptionsSetRunTag)(FolioRunOptions* options, const char* tag);

  /* Since 1. */
  void (*ReleaseRunOptions)(FolioRunOptions* options);

  /* ---- Value --------------------------------------------------------------------------------- */

  /* A tensor in memory of the library: zeros (or empty strings), aligned to 64 bytes. Since 1. */
  FolioStatus* (*CreateTensor)(FolioElementType type, const int64_t* dims, size_t dim_count,
                               FolioValue** out);

  /* A tensor over the caller's memory, of which `bytes` must be exactly the tensor's. An alignment
   * of 64 is best; memory that is not aligned to its elements is copied by each run, and where a
   * sequence or map is made of it. With `release` NULL the memory must live until the value is
   * released and no run, sequence, binding or session uses it. Not for strings. Since 1. */
  FolioStatus* (*CreateTensorWithData)(void* data, size_t bytes, const int64_t* dims,
                                       size_t dim_count, FolioElementType type,
                                       FolioReleaseFunction release, void* user, FolioValue** out);

  /* The same over memory that is never written: the tensor cannot be an output. Since 1. */
  FolioStatus* (*CreateTensorWithConstData)(const void* data, size_t bytes, const int64_t* dims,
                                            size_t dim_count, FolioElementType type,
                                            FolioReleaseFunction release, void* user,
                                            FolioValue** out);

  /* A tensor of copies of as many strings as `dims` says. `string_bytes` has the length of each;
   * NULL: they end with NUL. Since 1. */
  FolioStatus* (*CreateStringTensor)(const char* const* strings, const size_t* string_bytes,
                                     const int64_t* dims, size_t dim_count, FolioValue** out);

  /* A sequence that holds references to `count` tensors, all of element type `type` (which an empty
   * sequence needs too). Since 1. */
  FolioStatus* (*CreateSequence)(FolioElementType type, FolioValue* const* elements, size_t count,
                                 FolioValue** out);

  /* A map that holds references to two tensors of one dim and equal length: keys of int64 or
   * string, values of any type. Since 1. */
  FolioStatus* (*CreateMap)(FolioValue* keys, FolioValue* values, FolioValue** out);

  /* Since 1. */
  FolioStatus* (*GetValueKind)(const FolioValue* value, FolioValueKind* out);

  /* Of a tensor; of a sequence's tensors (FOLIO_UNDEFINED for maps); of a map's keys. Since 1. */
  FolioStatus* (*GetElementType)(const FolioValue* value, FolioElementType* out);

  /* Of a tensor. Since 1. */
  FolioStatus* (*GetTensorDims)(const FolioValue* value, const int64_t** out_dims,
                                size_t* out_count);

  /* Product of the dims. Since 1. */
  FolioStatus* (*GetTensorElementCount)(const FolioValue* value, size_t* out);

  /* Bytes at GetTensorData; 0 for strings. Since 1. */
  FolioStatus* (*GetTensorBytes)(const FolioValue* value, size_t* out);

  /* The elements, row-major. Never NULL, even for 0 elements. Not for strings. Since 1. */
  FolioStatus* (*GetTensorData)(const FolioValue* value, const void** out);

  /* The same, writable; not while a run uses the value. Valid as long as the value. Not for tensors
   * over const memory. Since 1. */
  FolioStatus* (*GetTensorMutableData)(FolioValue* value, void** out);

  /* String `index` (row-major) of a string tensor; it may contain NULs, and ends with one that
   * *out_bytes does not count. Since 1. */
  FolioStatus* (*GetStringTensorElement)(const FolioValue* value, size_t index, const char** out,
                                         size_t* out_bytes);

  /* Parts of a value: a sequence has its length, a map 2 (keys, values), an optional 0 or 1, a
   * tensor 0. Since 1. */
  FolioStatus* (*GetValueCount)(const FolioValue* value, size_t* out);

  /* Part `index`: a reference of the caller's own to the same data, to be released with
   * ReleaseValue. Since 1. */
  FolioStatus* (*GetValue)(const FolioValue* value, size_t index, FolioValue** out);

  /* Since 1. */
  void (*ReleaseValue)(FolioValue* value);

  /* ---- IoBinding -----------------------------------------------------------------------------
   * For repeated runs over the same memory, and for outputs of unknown size in memory of the
   * caller's. A binding holds the values bound to it. */

  /* Since 1. */
  FolioStatus* (*CreateIoBinding)(FolioSession* session, FolioIoBinding** out);

  /* Binds, or replaces what was bound to `name`. Since 1. */
  FolioStatus* (*BindInput)(FolioIoBinding* binding, const char* name, FolioValue* value);

  /* Asks for output `name`. `value` NULL: each run makes a new value; a tensor: each run writes
   * into it, as in Run: a cache into the value bound as its input. Since 1. */
  FolioStatus* (*BindOutput)(FolioIoBinding* binding, const char* name, FolioValue* value);

  /* Asks for output `name` in memory that has room for `capacity_bytes`: a run makes a tensor of
   * the result's shape over the front of it, or fails with INVALID_ARGUMENT and a message that
   * says how many bytes it takes. Each run writes the same memory. Not for strings. A capacity that
   * goes past the last address is INVALID_ARGUMENT. `release` as in CreateTensorWithData.
   * Since 1. */
  FolioStatus* (*BindOutputWithCapacity)(FolioIoBinding* binding, const char* name, void* data,
                                         size_t capacity_bytes, FolioReleaseFunction release,
                                         void* user);

  /* Since 1. */
  FolioStatus* (*ClearBoundInputs)(FolioIoBinding* binding);
  FolioStatus* (*ClearBoundOutputs)(FolioIoBinding* binding);

  /* Outputs, in the order in which they were bound. Since 1. */
  FolioStatus* (*GetBoundOutputCount)(const FolioIoBinding* binding, size_t* out);
  FolioStatus* (*GetBoundOutputName)(const FolioIoBinding* binding, size_t index, const char** out);

  /* Result `index` of the last successful run: a reference of the caller's own, to be released with
   * ReleaseValue. An error before the first run. Since 1. */
  FolioStatus* (*GetBoundOutputValue)(const FolioIoBinding* binding, size_t index,
                                      FolioValue** out);

  /* Since 1. */
  void (*ReleaseIoBinding)(FolioIoBinding* binding);

  /* ---- MemoryReport --------------------------------------------------------------------------
   * A snapshot. What several sessions share stands in it once. */

  /* Since 1. */
  FolioStatus* (*MemoryReportGetEntryCount)(const FolioMemoryReport* report, size_t* out);
  FolioStatus* (*MemoryReportGetEntry)(const FolioMemoryReport* report, size_t index,
                                       FolioMemoryEntry* out);

  /* The report as one JSON object: "entries", sums, "summary" (the members of FolioMemorySummary),
   * "kernels" in use; of a session, its "arithmetic" ("x86_avx512vnni", "x86_avx512+winograd"), the
   * "threads" that compute a run, the caller's included, and the "arena" of its last run,
   * "planned_bytes" and "live_bytes", below which none can be; of an environment, "process": what
   * the system says of this process. Since 1. */
  FolioStatus* (*MemoryReportGetJson)(const FolioMemoryReport* report, const char** out);

  /* The report as a table for people. Since 1. */
  FolioStatus* (*MemoryReportGetText)(const FolioMemoryReport* report, const char** out);

  /* Since 1. */
  void (*ReleaseMemoryReport)(FolioMemoryReport* report);

  /* ---- Pack files and stores ----------------------------------------------------------------- */

  /* Makes the pack file of a model: its weights in the form from which the kernels compute, found
   * by content, mapped and shared by every session and process that opens the model later.
   * Sessions find MODEL.fpack beside the model, and stores by the key folio.pack_store. `options`
   * are those of the sessions to come (configuration, free dimensions, progress, cancel) and may be
   * NULL; so may `pack` and `out`. The file appears whole or not at all. Errors:
   * CreateSessionFromModel's, NO_SUCHFILE (the folder to write to). Since 1. */
  FolioStatus* (*ModelPack)(const FolioModel* model, const FolioSessionOptions* options,
                            const FolioPackOptions* pack, FolioPackResult* out);

  /* What a pack file holds, as a JSON object: "path", "bytes", "writer", "blobs" (name, layout,
   * bytes, offset, key), "files". `verify` 1: compares every blob with its checksum and adds
   * "damaged". *out goes to ReleaseString. Errors: NO_SUCHFILE, IO, INVALID_GRAPH (no pack file, or
   * a damaged one). Since 1. */
  FolioStatus* (*PackFileGetJson)(const char* path, int32_t verify, char** out);

  /* Housekeeping of a pack store; a JSON object of what was found and done. `limit_bytes` counts
   * for FOLIO_PACK_STORE_COLLECT; 0: no limit. *out goes to ReleaseString. Errors: NO_SUCHFILE, IO,
   * INVALID_ARGUMENT (no store is in the folder, or one that is not to be trusted). Since 1. */
  FolioStatus* (*PackStoreGetJson)(const char* folder, FolioPackStoreAction action,
                                   uint64_t limit_bytes, char** out);

  /* ---- Model, continued ---------------------------------------------------------------------- */

  /* Opens what stands at the model's path now, with the options that `model` was opened with (but
   * for progress and cancel). `model` and its sessions go on as they are; a file that did not
   * change is not mapped again. Errors: OpenModel's; INVALID_ARGUMENT for a model from memory.
   * Since 1. */
  FolioStatus* (*ModelReload)(const FolioModel* model, FolioModel** out);

  /* Writes the model as a file (docs/saving.md), whole or not at all. `options` and `out` may be
   * NULL. Errors: FOLIO_IO, FOLIO_NO_SUCHFILE (folder), FOLIO_UNSUPPORTED_OPERATOR,
   * FOLIO_CANCELLED, FOLIO_MODEL_CHANGED, FOLIO_NOT_IMPLEMENTED (what the format cannot hold).
   * Since 1. */
  FolioStatus* (*ModelSave)(const FolioModel* model, const char* path,
                            const FolioSaveOptions* options, FolioSaveInfo* out);

  /* ---- Session, continued -------------------------------------------------------------------- */

  /* Waits until all weights of the session are packed (docs/packs.md, folio.packing) and what there
   * was to write to a store is written; packs in the calling thread what nobody has begun.
   * `timeout_ms`: 0 only asks, -1 waits as long as it takes. *out_is_packed: 0 at the timeout, or
   * when the session is closed meanwhile. Results of runs do not depend on it. Since 1. */
  FolioStatus* (*SessionWaitPacked)(FolioSession* session, int64_t timeout_ms,
                                    int32_t* out_is_packed);

  /* ---- PackCache, continued ------------------------------------------------------------------ */

  /* Writes all that a recording cache has as one pack file, whole or not at all: what sessions of
   * one or of several models packed, or found in pack files. Later sessions find it beside a model
   * (MODEL.fpack) or by folio.pack_sidecar. `out` may be NULL; it says what was written. Errors:
   * INVALID_ARGUMENT for a cache that does not record, FOLIO_IO, FOLIO_NO_SUCHFILE (folder),
   * MODEL_CHANGED where a weight's own pack file has changed. Since 1. */
  FolioStatus* (*PackCacheWrite)(const FolioPackCache* cache, const char* path,
                                 FolioPackResult* out);

  /* Lets go of blobs that the cache holds and no session uses; a recording one forgets them. `out`
   * may be NULL. Since 1. */
  FolioStatus* (*PackCacheCollect)(FolioPackCache* cache, FolioPackCacheCollected* out);

  /* ---- MemoryReport, continued --------------------------------------------------------------- */

  /* The report's sums: mapped, resident, private, packed by place, shared. Since 1. */
  FolioStatus* (*MemoryReportGetSummary)(const FolioMemoryReport* report, FolioMemorySummary* out);

  /* ---- Continued: SessionOptions, Session, Value --------------------------------------------- */

  /* As AddExternalFileFromMemory, for creates that open the model too. Since 1. */
  FolioStatus* (*SessionOptionsAddExternalFileFromMemory)(FolioSessionOptions* options,
                                                          const char* name, const void* data,
                                                          size_t bytes,
                                                          FolioReleaseFunction release, void* user);

  /* Ends the profile that the key folio.profile began, and writes it: *out is the file's path, ""
   * where there is no profile or it was ended before; to be freed with ReleaseString. Runs go on,
   * without being recorded. Errors: FOLIO_IO. Since 1. */
  FolioStatus* (*SessionEndProfiling)(FolioSession* session, char** out);

  /* The date and time at which the times of the profile begin, in nanoseconds since 1970; 0 where
   * there is no profile. Since 1. */
  FolioStatus* (*SessionGetProfilingStartTime)(const FolioSession* session, uint64_t* out);

  /* Makes string `index` (row-major) of a string tensor `bytes` long, and gives the place where
   * they are to be written, valid until the string is resized again or the value released; what
   * stood there before stays as far as it fits, new bytes are 0. As with GetTensorMutableData: not
   * while a run uses the value, and not of a tensor that a model made a constant. Since 1. */
  FolioStatus* (*ResizeStringTensorElement)(FolioValue* value, size_t index, size_t bytes,
                                            char** out);

  /* End of version 1. Do not insert above. */
} FolioApi;

/* What FolioGetApiBase returns: never changes. */
typedef struct FolioApiBase {
  /* The table, if the library has all entries of `version`; else, and for 0, NULL. The table is
   * valid as long as the library is loaded, and the same for every version. */
  const FolioApi* (*GetApi)(uint32_t version);

  /* "1.2.3", also where GetApi returns NULL. */
  const char* (*GetVersionString)(void);
} FolioApiBase;

/* The one exported symbol. Cannot fail, does no work, may be called from any thread. */
FOLIO_EXPORT const FolioApiBase* FolioGetApiBase(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FOLIO_FOLIO_C_API_H_ */
