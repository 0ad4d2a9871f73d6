// A folder for files that go with the process.
//
// Owns:    the folder, and removes it with all in it.
// Errors:  CliError if it cannot be made.
#pragma once

#include <string>

namespace folio_cli {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace folio_cli
