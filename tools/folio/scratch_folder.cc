#include "tools/folio/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/folio/cli.h"

namespace folio_cli {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "folio-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw CliError(kExitCannotRun, "cannot make " + name + ": " + std::strerror(errno));
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace folio_cli
