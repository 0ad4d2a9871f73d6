// MemorySource: a model that the caller gives as bytes.
//
// Flow:    session/ wraps the caller's bytes -> formats/ read them as they read a file; external
//          data come from bytes given beside the model, or from a folder if the caller names one.
// Owns:    a copy of the bytes, or, borrowed, the promise to call `on_release` exactly once when
//          the last Ref goes (from whichever thread that is).
// Threads: immutable after creation.
// Errors:  kOutOfMemory (copy); open_sibling: kNoSuchFile naming the location, else as
//          open_in_folder.
#pragma once

#include <map>
#include <string>

#include "core/base/buffer.h"
#include "core/base/byte_source.h"
#include "core/os/mapped_file.h"

namespace folio {

struct MemorySourceOptions {
  std::string name = "<bytes>";
  std::map<std::string, Ref<ByteSource>> siblings;  // by the location that the model names
  std::string folder;                               // external data on disk; empty: none
  FileLoading loading = FileLoading::kMap;          // of files in `folder`
};

class MemorySource final : public ByteSource {
 public:
  using Release = void (*)(void* user);

  static Result<Ref<MemorySource>> copy(Bytes bytes, MemorySourceOptions options = {});

  // `on_release` may be null: the bytes then outlive everything. It must not throw.
  static Ref<MemorySource> borrow(Bytes bytes, Release on_release, void* user,
                                  MemorySourceOptions options = {});

  Bytes bytes() const override { return bytes_; }
  const std::string& name() const override { return options_.name; }
  bool is_copy() const { return static_cast<bool>(copy_); }

  // Siblings given as bytes come first; their names are compared exactly, but for a leading "./".
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override;

 private:
  MemorySource(Bytes bytes, Ref<Buffer> own, Release on_release, void* user,
               MemorySourceOptions options);
  ~MemorySource() override;

  Bytes bytes_;  // borrows from copy_ or from the caller
  Ref<Buffer> copy_;
  Release release_;
  void* user_;
  MemorySourceOptions options_;
};

}  // namespace folio
