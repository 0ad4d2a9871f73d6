/* Loads libfolio at run time, so that a program needs neither to link it nor to have it installed.
 *
 *   char error[256];
 *   void* library = NULL;
 *   const FolioApi* folio = folio_load(NULL, FOLIO_API_VERSION, &library, error, sizeof error);
 *   if (folio == NULL) return fail(error);
 *   ...                       // release all handles
 *   folio_unload(library);    // or never
 *
 * Header only: include it where it is called, and link -ldl where the C library still has one.
 * Threads: any.  Errors: NULL and one line of text; the library is not kept loaded then.
 */
#ifndef FOLIO_FOLIO_LOAD_H_
#define FOLIO_FOLIO_LOAD_H_

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "folio/folio_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the function table of the library at `path`, or NULL.
 *
 * path:        a path with a slash, or a bare name that the dynamic linker searches for;
 *              NULL is "libfolio.so.1".
 * version:     FOLIO_API_VERSION, or an older one if that is all the program needs.
 * out_library: receives what folio_unload takes; untouched on failure.
 * error:       receives the reason of a failure, cut to error_bytes with its NUL; may be NULL if
 *              error_bytes is 0. Untouched on success. */
static inline const FolioApi* folio_load(const char* path, uint32_t version, void** out_library,
                                         char* error, size_t error_bytes) {
  const char* name = path != NULL ? path : "libfolio.so.1";
  const FolioApiBase* (*get_base)(void) = NULL;
  const FolioApiBase* base;
  const FolioApi* api;
  void* symbol;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char* reason = dlerror();
    if (error_bytes != 0) {
      snprintf(error, error_bytes, "cannot load %s: %s", name, reason != NULL ? reason : "?");
    }
    return NULL;
  }
  symbol = dlsym(library, "FolioGetApiBase");
  if (symbol == NULL) {
    if (error_bytes != 0) {
      snprintf(error, error_bytes, "%s has no FolioGetApiBase: it is not Folio", name);
    }
    dlclose(library);
    return NULL;
  }
  /* ISO C has no conversion from an object pointer to a function pointer; POSIX promises that their
   * bytes are the same. */
  memcpy(&get_base, &symbol, sizeof symbol);
  base = get_base();
  api = base->GetApi(version);
  if (api == NULL) {
    if (error_bytes != 0) {
      snprintf(error, error_bytes, "%s is Folio %s, which does not have API version %u", name,
               base->GetVersionString(), (unsigned)version);
    }
    dlclose(library);
    return NULL;
  }
  *out_library = library;
  return api;
}

/* Gives the library back; its table and all handles are invalid afterwards. NULL is fine. */
static inline void folio_unload(void* library) {
  if (library != NULL) dlclose(library);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FOLIO_FOLIO_LOAD_H_ */
