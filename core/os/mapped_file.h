// Mapped files: model files as immutable bytes, each mapped once per process.
//
// Flow:    path -> open_mapped_file -> formats/ parse the bytes; external data come through
//          open_sibling. Every open returns its own small MappedFile (name and folders differ
//          between two links to one file); files that are the same share one mapping.
// Owns:    a MappedFile shares its mapping by count; the last one unmaps. The registry is weak. A
//          mapping keeps its file descriptor, for check_unchanged (one descriptor per file).
// Threads: any; a MappedFile is immutable.
// Errors:  missing: kNoSuchFile. Unreadable: kIo. Directory, fifo, device, empty file:
//          kInvalidArgument. Siblings: see open_sibling. Messages hold the path and errno's text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/ref.h"
#include "core/base/status.h"

namespace folio {

enum class FileLoading : uint8_t {
  kMap,   // MAP_SHARED | PROT_READ: pages belong to the page cache, a write faults
  kRead,  // a private copy: for file systems that map badly, or files that others overwrite
};

namespace internal {
class FileBytes;  // the shared part: mapping or copy, identity, registry entry
}

class MappedFile final : public ByteSource {
 public:
  uint64_t serial() const override;  // of the mapping, which all that open this file share
  Bytes bytes() const override;
  const std::string& name() const override { return name_; }

  // External data. The file that `location` leads to, all symlinks resolved, must lie in the folder
  // of the path given by the user or in the folder of the model's real path (a hub cache keeps
  // links in one folder and all files in another). Checked on the opened file, so that nothing
  // can be exchanged between check and use. Refused or unusable: kInvalidGraph; kNoSuchFile, kIo.
  // Loaded as this file was.
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override;

  const FileIdentity* identity() const override;
  FileLoading loading() const;

  // Without symlinks, at the time of opening; empty when the kernel could not tell.
  const std::string& real_path() const { return real_path_; }

  // kModelChanged when size, mtime or ctime are no longer those at open. A ctime that moved because
  // the file was renamed, replaced by rename, linked, or got another owner or mode is no change:
  // the bytes are the same. Costs one fstat (about 0.2 us). A private copy never changes.
  Status check_unchanged() const override;

  // The SIGBUS guard has put zeros into the mapping.
  bool is_damaged() const override;

  // Of the mapped file, for what the kernel is asked about it; -1 for a private copy.
  int descriptor() const;

  // Gives the pages that lie wholly inside [offset, offset + count) back (MADV_DONTNEED): they
  // leave this process, not the page cache, and return at the next touch. Out-of-range parts are
  // ignored; a private copy keeps its pages.
  void drop_pages(uint64_t offset, uint64_t count) const override;
  void expect_sparse_reads(bool begins) const override;

 private:
  friend class MappedFileOpener;  // mapped_file_posix.cc
  MappedFile(Ref<internal::FileBytes> file, std::string name, std::string real_path,
             std::string given_folder);
  ~MappedFile() override;

  Ref<internal::FileBytes> file_;
  std::string name_;
  std::string real_path_;
  std::string given_folder_;  // real path of the folder that the user's path names
};

// The value is always a MappedFile; see as_mapped_file.
Result<Ref<ByteSource>> open_mapped_file(const std::string& path,
                                         FileLoading mode = FileLoading::kMap);

// For files that decide results without being the user's model (pack files): no symlink, owned by
// this user or root, writable by neither group nor others; else kInvalidArgument says which.
Result<Ref<ByteSource>> open_trusted_file(const std::string& path);

// The same check of a file that is open, but for what is true of the file beside it too: whoever
// could write to that one may write to this. `beside` may be null.
Status check_trusted_beside(const MappedFile& file, const MappedFile* beside);

// The same check of a folder.
Status check_trusted_folder(const std::string& path);

// The same rule as open_sibling's for models that come as bytes: `location` inside `folder`,
// nothing else.
Result<Ref<ByteSource>> open_in_folder(const std::string& folder, const std::string& location,
                                       FileLoading mode);

// For identity and descriptor; null when `source` neither is a file nor forwards to one.
const MappedFile* as_mapped_file(const ByteSource& source);

struct RegistryStats {
  uint64_t mapped_files = 0;
  uint64_t mapped_bytes = 0;  // address space; how much is resident: see memory_stats.h
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  std::vector<Bytes> mappings;  // where they stand; whoever touches them needs a file of its own
};
RegistryStats registry_stats();

}  // namespace folio
