// What the environment asks of every session, for programs that one cannot change: FOLIO_CONFIG
// ("folio.packing=load;folio.residency=lock") and FOLIO_PACK_STORE (the value of folio.pack_store).
//
// Flow:    options begin as these; what a program sets itself comes after, and counts.
// Owns:    the options, for the life of the process; the variables are read once, at first use.
// Threads: any.
// Errors:  none: an entry that is wrong is one warning in the log, and has no effect.
#pragma once

#include "core/session/options.h"

namespace folio {

const ModelOptions& model_defaults();
const SessionOptions& session_defaults();

// One variable's text, into these options. For tests.
void apply_config(std::string_view text, ModelOptions* model, SessionOptions* session);

}  // namespace folio
