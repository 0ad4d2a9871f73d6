#include "core/os/memory_source.h"

#include <cstring>
#include <utility>

#include "core/os/anonymous_memory.h"

namespace folio {
namespace {

std::string without_dot_slash(const std::string& location) {
  return location.compare(0, 2, "./") == 0 ? location.substr(2) : location;
}

}  // namespace

MemorySource::MemorySource(Bytes bytes, Ref<Buffer> own, Release on_release, void* user,
                           MemorySourceOptions options)
    : bytes_(bytes),
      copy_(std::move(own)),
      release_(on_release),
      user_(user),
      options_(std::move(options)) {}

MemorySource::~MemorySource() {
  if (release_) release_(user_);
}

Result<Ref<MemorySource>> MemorySource::copy(Bytes bytes, MemorySourceOptions options) {
  FOLIO_TRY(Ref<Buffer> own, allocate_large_buffer(bytes.size()));
  if (!bytes.empty()) std::memcpy(own->data(), bytes.data(), bytes.size());
  const Bytes view(own->data(), bytes.size());
  return Ref<MemorySource>(
      new MemorySource(view, std::move(own), nullptr, nullptr, std::move(options)));
}

Ref<MemorySource> MemorySource::borrow(Bytes bytes, Release on_release, void* user,
                                       MemorySourceOptions options) {
  return Ref<MemorySource>(new MemorySource(bytes, nullptr, on_release, user, std::move(options)));
}

Result<Ref<ByteSource>> MemorySource::open_sibling(const std::string& location) const {
  const auto& given = options_.siblings;
  auto found = given.find(location);
  if (found == given.end()) found = given.find(without_dot_slash(location));
  if (found != given.end()) return found->second;
  if (!options_.folder.empty()) {
    return open_in_folder(options_.folder, location, options_.loading);
  }
  return error(Code::kNoSuchFile, "external data '", location.substr(0, 200),
               "' was not given beside the model's bytes (", options_.name, "), and no folder was");
}

}  // namespace folio
