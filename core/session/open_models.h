// OpenModels: the models that are open in this process, to be shared by all who open them again.
//
// Flow:    ModelFile::open asks for one of the same path, bytes and options, all of whose files are
//          still what stands under their names; then the structure is not parsed again, and
//          sessions share their programs.
// Owns:    nothing: entries are weak, a ModelFile takes its own out when it ends.
// Threads: any.
#pragma once

#include <string>

#include "core/base/byte_source.h"
#include "core/session/options.h"

namespace folio {

class ModelFile;

struct OpenModelKey {
  std::string path;      // as given: external data is looked for beside it
  uint64_t mapping = 0;  // ByteSource::serial()
  std::string format;
  int64_t nchwc_block_size = 0;
  auto operator<=>(const OpenModelKey&) const = default;
};

// Null: none that is the same in all its files.
Ref<ModelFile> find_open_model(const OpenModelKey& key);
// The first under a key stays.
void add_open_model(const OpenModelKey& key, ModelFile* model);
void remove_open_model(const OpenModelKey& key, const ModelFile* model);

}  // namespace folio
