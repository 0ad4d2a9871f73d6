// Of folio doctor: the environment variables that Folio reads, and the pack stores that they name.
//
// Threads: one.
// Errors:  none: what is wrong is a warning of the findings.
#pragma once

#include "folio/folio.hpp"
#include "tools/folio/doctor_findings.h"

namespace folio_cli {

// What the library warns of, here of variables with values that it does not take, becomes the
// findings' while this lives; `findings` lives longer. Made before the library reads any.
folio::Env collect_warnings(Findings* findings);

void find_environment(Findings* findings);

}  // namespace folio_cli
