// What the program asked of a session, as Folio's options.
//
// Flow:    session_slots.cc calls it for each session that is made.
// Owns:    nothing; the result is the caller's.
// Threads: any.
// Errors:  a key whose value Folio refuses.
#pragma once

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {

// `env` may be null, `cache` too.
OrtStatus* folio_options(const OrtSessionOptions& options, const OrtEnv* env, FolioPackCache* cache,
                         Options* out);

}  // namespace folio::ort
