// Helpers for tests of core/save: models on disk, saved in every form and run beside the original.
#pragma once

#include <string>
#include <vector>

#include "core/save/save_model.h"
#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"
#include "tools/make_model/kinds.h"

namespace folio::testing {

// The model at `path` after the passes of `level`, saved at `to`.
Result<SaveResult> save_file(const std::string& path, const std::string& to, Optimize level,
                             const SaveOptions& options = {});

// One run of the model at `path`: inputs are made up from their types, the same for every file.
Result<std::vector<Value>> run_file(const std::string& path);

// Outputs of runs: the same kinds, types, shapes and numbers (within rounding).
::testing::AssertionResult same_values(const std::vector<Value>& a, const std::vector<Value>& b);

Result<ModelDef> load_file(const std::string& path);

// Names of the files in a folder, hidden ones too, sorted.
std::vector<std::string> files_in(const std::string& folder);

}  // namespace folio::testing
