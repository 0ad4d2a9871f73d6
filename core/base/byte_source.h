// ByteSource: immutable bytes with a keeper, and a way to open files that stand beside them.
//
// Flow:    os/ maps files, session/ wraps bytes given by the caller; formats/ only read.
// Owns:    the bytes, until the last Ref goes; initializers hold one.
// Threads: immutable after creation.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/ref.h"
#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

// A number that nothing in this process had before; never 0.
uint64_t next_source_serial();

// Which file it was, and which state of it. Equal identities are the same bytes, as far as a file
// system can tell.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

class ByteSource : public RefCounted {
 public:
  // A number that no other live or dead source of this process has, unless both are the same
  // bytes: what a packed weight is named by without hashing. 0: none, contents must be hashed.
  // Memory given by the caller has none, so that equal copies of a model share what is packed.
  virtual uint64_t serial() const { return 0; }

  virtual Bytes bytes() const = 0;

  // Of the file that the bytes are; null: they are no file's.
  virtual const FileIdentity* identity() const { return nullptr; }

  // These bytes have been read and will hardly be read again: a mapping gives the pages that lie
  // wholly inside back, to return from the page cache at the next touch. Only advice.
  virtual void drop_pages(uint64_t offset, uint64_t count) const { (void)offset, (void)count; }

  // From `begins` = true to false the bytes are touched here and there, as a graph is between its
  // weights: of a file no more is read than that, and its two ends. Only advice.
  virtual void expect_sparse_reads(bool begins) const { (void)begins; }

  // kModelChanged when the bytes may no longer be those of the time of opening: what a file's own
  // times and size tell. A few tenths of a microsecond.
  virtual Status check_unchanged() const { return Status::ok(); }

  // Some of the bytes are gone for good (the file became shorter, its device failed), and zeros
  // stand in their place. One load of an atomic.
  virtual bool is_damaged() const { return false; }
  // The same as an error, kModelChanged.
  Status check_damage() const;

  // The source that holds the bytes, for one that only forwards to it.
  virtual const ByteSource& origin() const { return *this; }

  // For messages: the path as the user gave it, or "<bytes>".
  virtual const std::string& name() const = 0;

  // Opens external data named by a model file. `location` is hostile: absolute paths, "..", and
  // symlinks that leave the model's folder (and its real path's folder) are kInvalidGraph;
  // a missing file is kNoSuchFile.
  virtual Result<Ref<ByteSource>> open_sibling(const std::string& location) const = 0;
};

}  // namespace folio
