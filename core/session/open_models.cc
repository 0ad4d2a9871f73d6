#include "core/session/open_models.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/os/fork.h"
#include "core/os/mapped_file.h"
#include "core/session/model_file.h"

namespace folio {
namespace {

struct Table {
  std::mutex mutex;
  std::map<OpenModelKey, ModelFile*> models;
};

Table& table() {
  // Never destroyed: models may outlive static objects.
  static Table* const only = [] {
    auto* const made = new Table;
    hold_across_fork(ForkOrder::kSession, &made->mutex);
    return made;
  }();
  return *only;
}

Ref<ModelFile> find_alive(const OpenModelKey& key) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  const auto at = t.models.find(key);
  if (at == t.models.end() || !at->second->try_add_ref()) return nullptr;
  return Ref<ModelFile>::adopt(at->second);
}

// A name under which another file stands now: whoever opens the model anew wants that one. A pack
// file that this process wrote (it has no serial) may have no name, not yet or no more.
bool has_its_name(const Ref<const ByteSource>& file) {
  if (file->serial() == 0) return true;
  const auto now = open_mapped_file(file->name());
  return now.is_ok() && now.value()->serial() == file->serial();
}

}  // namespace

Ref<ModelFile> find_open_model(const OpenModelKey& key) {
  Ref<ModelFile> model = find_alive(key);
  if (!model || !model->watch().check_now().is_ok()) return nullptr;
  const auto files = model->watch().files();
  return std::all_of(files.begin(), files.end(), has_its_name) ? model : nullptr;
}

void add_open_model(const OpenModelKey& key, ModelFile* model) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  t.models.try_emplace(key, model);
}

void remove_open_model(const OpenModelKey& key, const ModelFile* model) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  const auto at = t.models.find(key);
  if (at != t.models.end() && at->second == model) t.models.erase(at);
}

}  // namespace folio
