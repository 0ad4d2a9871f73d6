// NewFile: a file that appears under its name whole, or not at all.
//
// Flow:    create -> write, pad_to ... -> finish (bytes are on the disk) -> publish (the name is
//          theirs). What is written in between has no name anywhere (O_TMPFILE), or a hidden one
//          where the file system knows no such files.
//          What is mapped of it is guarded (core/os/sigbus_guard.h), and mapped() tells whether it
//          is still what was written.
// Owns:    the descriptor. Unpublished bytes go with the object, also when the process dies. A
//          hidden name is held under flock: one that can be locked is an orphan, which the next
//          create for the same path removes.
// Threads: one.
// Errors:  kIo naming the file, what was tried, at which byte, and errno's text; kNoSuchFile for a
//          missing folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/buffer.h"
#include "core/base/byte_source.h"
#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

namespace internal {
class WrittenFile;  // what mappings of a NewFile, and their users, share
}

class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> create(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Status write(Bytes bytes);
  // Takes disk space for so many bytes more, where the file system can promise it, so that a full
  // disk is an error now.
  Status reserve(uint64_t bytes);
  // Zeros up to this offset, which is not before the file's end.
  Status pad_until(uint64_t offset);
  // Replaces bytes that were written already.
  Status write_at(uint64_t offset, Bytes bytes);
  // What was written, as other processes will see it: shared and read-only. Lives on its own.
  Result<Ref<Buffer>> map(uint64_t offset, uint64_t bytes) const;
  // For whoever reads what was mapped: from `publish` on whether the file has changed, as long as
  // something is mapped, and at all times whether some of it is gone. It has bytes and an identity
  // once it has a name, those of the file as others open it, and never a serial.
  Ref<const ByteSource> mapped() const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Waits until the disk has all bytes.
  Status finish();
  // Makes the time of modification the latest one, not in the future, that has these nanoseconds of
  // its second: a mark that goes when somebody writes to the file. Call it just before `publish`.
  // Where the file system cannot, there is no mark.
  void sign_time(int64_t nanoseconds);
  // Gives the file its name, in the place of one that had it. Readers of that one keep it.
  // kReadOnly: with mode 0444, for files that nobody may change any more.
  enum class Mode : uint8_t { kByUmask, kReadOnly };
  Status publish(Mode mode = Mode::kByUmask);
  // Takes the name away again, where `publish` put it on nothing.
  void retract();

  // Tests make step n fail as a full disk does: the hook sees each system call that writes before
  // it is made ("create", "reserve", "write", "map", "sync", "mode", "link", "rename") and returns
  // false to refuse it. Null: none.
  using StepHook = bool (*)(const char* step);
  static void set_step_hook(StepHook hook);

 private:
  NewFile(std::string path, std::string folder, int fd, std::string temporary);
  Status put(uint64_t offset, Bytes bytes);
  Status fail(const char* what, int number) const;
  void watch_name() const;

  const std::string path_;
  const std::string folder_;
  int fd_;
  std::string temporary_;  // the hidden name; "" while there is none
  uint64_t size_ = 0;
  const uint32_t generation_;  // a child of fork must not take its parent's name away
  bool replaced_ = false;
  bool published_ = false;
  const Ref<internal::WrittenFile> written_;
};

}  // namespace folio
