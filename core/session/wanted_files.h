// wanted_files: which bytes of which mapped files the runs of a program read, for Residency.
//
// Flow:    Session, when its program is ready, before the first run.
// Owns:    the result holds counts of the files.
// Threads: any; reads the program only.
#pragma once

#include <vector>

#include "core/os/residency.h"
#include "core/plan/program.h"
#include "core/session/file_watch.h"

namespace folio {

// In the order of first use, neighbours joined. Left out: what was packed into memory, and tables
// of which a run reads a few rows.
std::vector<WantedFile> wanted_files(const Program& program, const FileWatch& watch);

}  // namespace folio
