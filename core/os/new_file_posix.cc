#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/os/file_size_signal.h"
#include "core/os/fork.h"
#include "core/os/huge_pages.h"
#include "core/os/mapped_file.h"
#include "core/os/new_file.h"
#include "core/os/sigbus_guard.h"

namespace folio {
namespace {

constexpr mode_t kMode = 0666;  // the user's umask takes away
constexpr int kNameTries = 64;

std::atomic<NewFile::StepHook> step_hook{nullptr};

// What a full disk says where a test wants it.
bool refused(const char* step) {
  const NewFile::StepHook hook = step_hook.load(std::memory_order_relaxed);
  if (!hook || hook(step)) return false;
  errno = ENOSPC;
  return true;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// What hidden names of a file's temporaries begin with. Names have at most 255 bytes; what is cut
// here is made unique by numbers.
std::string hidden_prefix(const std::string& path) {
  return cat(".", name_of(path).substr(0, 200), ".");
}
constexpr std::string_view kHiddenSuffix = ".tmp";

// A name that nobody else of this machine uses at the same time.
std::string hidden_name(const std::string& path) {
  static std::atomic<unsigned> next{0};
  const size_t name_at = path.size() - name_of(path).size();
  return cat(path.substr(0, name_at), hidden_prefix(path), getpid(), ".", next.fetch_add(1),
             kHiddenSuffix);
}

// Temporaries of `path` whose makers died: nobody holds their lock.
void remove_orphans(const std::string& folder, const std::string& path) {
  DIR* const list = opendir(folder.c_str());
  if (!list) return;
  const std::string prefix = hidden_prefix(path);
  while (const dirent* entry = readdir(list)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(kHiddenSuffix)) continue;
    const int fd =
        openat(dirfd(list), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(list), entry->d_name, 0);
    close(fd);
  }
  closedir(list);
}

Status file_error(const std::string& what, const std::string& path, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::kNoSuchFile : Code::kIo;
  const char* text = strerrordesc_np(number);
  return error(code, what, " '", path, "': ", text ? text : "unknown error");
}

// For all lists of ranges: held for moments.
std::mutex& ranges_mutex() {
  static std::mutex& only = new_mutex_held_across_fork(ForkOrder::kFiles);
  return only;
}

}  // namespace

namespace internal {

class WrittenFile final : public ByteSource {
 public:
  explicit WrittenFile(std::string path) : path_(std::move(path)) { ranges_mutex(); }

  void add(const GuardedRange* range) {
    const std::lock_guard<std::mutex> lock(ranges_mutex());
    ranges_.push_back(range);
  }
  void remove(const GuardedRange* range) {
    const std::lock_guard<std::mutex> lock(ranges_mutex());
    if (range->was_hit()) was_hit_ = true;
    std::erase(ranges_, range);
  }
  bool is_mapped() const {
    const std::lock_guard<std::mutex> lock(ranges_mutex());
    return !ranges_.empty();
  }
  // Once.
  void set_named(Ref<ByteSource> file) {
    keeper_ = std::move(file);
    named_.store(keeper_.get(), std::memory_order_release);
  }

  Bytes bytes() const override { return named() ? named()->bytes() : Bytes(); }
  const FileIdentity* identity() const override { return named() ? named()->identity() : nullptr; }
  Status check_unchanged() const override {
    return named() && is_mapped() ? named()->check_unchanged() : Status::ok();
  }
  bool is_damaged() const override {
    if (named() && named()->is_damaged()) return true;
    const std::lock_guard<std::mutex> lock(ranges_mutex());
    const auto was_hit = [](const GuardedRange* range) { return range->was_hit(); };
    return was_hit_ || std::any_of(ranges_.begin(), ranges_.end(), was_hit);
  }
  const ByteSource& origin() const override { return named() ? named()->origin() : *this; }
  const std::string& name() const override { return path_; }
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override {
    return error(Code::kNoSuchFile, "'", location, "' is not looked for beside '", path_, "'");
  }

 private:
  const ByteSource* named() const { return named_.load(std::memory_order_acquire); }

  const std::string path_;
  std::vector<const GuardedRange*> ranges_;
  bool was_hit_ = false;  // one that is no more
  Ref<ByteSource> keeper_;
  std::atomic<const ByteSource*> named_{nullptr};
};

}  // namespace internal

namespace {

class MappedRange final : public Buffer {
 public:
  explicit MappedRange(Ref<internal::WrittenFile> file)
      : Buffer(Kind::kConstant, nullptr, 0), file_(std::move(file)) {}
  // False with errno.
  bool map(int fd, uint64_t offset, uint64_t bytes) {
    static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t first = offset / page * page;
    const uint64_t length = offset + bytes - first;
    start_ = map_file(fd, first, length);
    if (!start_) return false;
    length_ = length;
    guard_.set(start_, length);
    file_->add(&guard_);  // as it stays: others look at it from here on
    data_ = start_ + (offset - first);
    bytes_ = bytes;
    return true;
  }

 private:
  ~MappedRange() override {
    file_->remove(&guard_);
    guard_.clear();
    if (start_) munmap(start_, length_);
  }
  Ref<internal::WrittenFile> file_;
  GuardedRange guard_;
  uint8_t* start_ = nullptr;
  size_t length_ = 0;
};

}  // namespace

void NewFile::set_step_hook(StepHook hook) { step_hook.store(hook, std::memory_order_relaxed); }

NewFile::NewFile(std::string path, std::string folder, int fd, std::string temporary)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      fd_(fd),
      temporary_(std::move(temporary)),
      generation_(fork_generation()),
      written_(make_ref<internal::WrittenFile>(path_)) {}

NewFile::~NewFile() {
  if (!temporary_.empty() && generation_ == fork_generation()) unlink(temporary_.c_str());
  close(fd_);
}

Result<std::unique_ptr<NewFile>> NewFile::create(const std::string& path) {
  if (path.empty() || path.back() == '/' || path.find('\0') != std::string::npos) {
    return invalid_argument("'", path, "' is not the name of a file");
  }
  struct stat existing = {};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    return invalid_argument("cannot write '", path, "': it exists and is no regular file");
  }
  const std::string folder = folder_of(path);
  remove_orphans(folder, path);
  if (refused("create")) return file_error("cannot create", path, errno);
  std::string temporary;
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode);
  for (int i = 0; fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EEXIST); ++i) {
    if (i == kNameTries) break;
    temporary = hidden_name(path);
    fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return file_error("cannot create", path, errno);
  if (!temporary.empty()) (void)flock(fd, LOCK_EX | LOCK_NB);
  return std::unique_ptr<NewFile>(new NewFile(path, folder, fd, std::move(temporary)));
}

Status NewFile::fail(const char* what, int number) const {
  return file_error(cat("cannot ", what), path_, number)
      .with_context(cat("after ", size_, " bytes"));
}

Status NewFile::put(uint64_t offset, Bytes bytes) {
  const FileSizeSignal quiet;
  while (!bytes.empty()) {
    if (refused("write")) return fail("write", errno);
    // 1 GiB: a single write is limited to a little under 2 GiB.
    const size_t part = std::min(bytes.size(), size_t{1} << 30);
    const ssize_t done = pwrite(fd_, bytes.data(), part, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail("write", errno);
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done), bytes.size() - static_cast<size_t>(done));
  }
  return Status::ok();
}

Status NewFile::write(Bytes bytes) {
  FOLIO_RETURN_IF_ERROR(put(size_, bytes));
  size_ += bytes.size();
  return Status::ok();
}

Status NewFile::pad_until(uint64_t offset) {
  static constexpr uint8_t kZeros[4096] = {};
  if (offset < size_) return error(Code::kFail, "'", path_, "' is beyond byte ", offset);
  while (size_ < offset) {
    const size_t part = std::min<uint64_t>(offset - size_, sizeof kZeros);
    FOLIO_RETURN_IF_ERROR(write({kZeros, part}));
  }
  return Status::ok();
}

Status NewFile::reserve(uint64_t bytes) {
  if (refused("reserve")) return fail("reserve space", errno);
  const FileSizeSignal quiet;
  const int result =
      fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(bytes));
  // Where the file system cannot promise space, writing finds out.
  const bool cannot = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR;
  return result == 0 || cannot ? Status::ok() : fail("reserve space", errno);
}

Result<Ref<Buffer>> NewFile::map(uint64_t offset, uint64_t bytes) const {
  if (refused("map")) return fail("map", errno);
  const auto range = make_ref<MappedRange>(written_);
  if (!range->map(fd_, offset, bytes)) return fail("map", errno);
  return Ref<Buffer>(range);
}

Ref<const ByteSource> NewFile::mapped() const { return written_; }

Status NewFile::write_at(uint64_t offset, Bytes bytes) { return put(offset, bytes); }

Status NewFile::finish() {
  if (refused("sync") || fsync(fd_) != 0) return fail("flush", errno);
  return Status::ok();
}

// By the clock that inodes' own times come from, which is some ms behind: a ctime before the mark
// would look like a mark that somebody has copied.
void NewFile::sign_time(int64_t nanoseconds) {
  timespec now = {};
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return;
  const timespec signed_time = {now.tv_sec - (nanoseconds > now.tv_nsec), nanoseconds};
  const timespec times[] = {{0, UTIME_OMIT}, signed_time};
  (void)futimens(fd_, times);
}

Status NewFile::publish(Mode mode) {
  if (mode == Mode::kReadOnly && (refused("mode") || fchmod(fd_, 0444) != 0)) {
    return fail("make read-only", errno);
  }
  if (temporary_.empty()) {
    (void)flock(fd_, LOCK_EX | LOCK_NB);  // from the first moment of the name on
    const std::string self = cat("/proc/self/fd/", fd_);
    for (int i = 0; i < kNameTries && temporary_.empty(); ++i) {
      const std::string name = hidden_name(path_);
      if (refused("link")) return fail("name", errno);
      if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = name;
      } else if (errno != EEXIST) {
        return fail("name", errno);
      }
    }
  }
  struct stat existing = {};
  replaced_ = lstat(path_.c_str(), &existing) == 0;
  if (refused("rename") || rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail("name", errno);
  }
  temporary_.clear();
  published_ = true;
  if (written_->is_mapped()) watch_name();
  // The name, too, should be on the disk. A folder that cannot be flushed is no reason to fail.
  const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return Status::ok();
}

// Its times are those of the name from here on: chmod, link and rename have moved ctime. Opened
// anew, since the kernel calls an O_TMPFILE's descriptor deleted for ever, and a later new name of
// the file would look like a write. One that was replaced already, nobody else can find.
void NewFile::watch_name() const {
  struct stat own = {};
  auto opened = open_mapped_file(path_);
  const FileIdentity* const found = opened.is_ok() ? opened.value()->identity() : nullptr;
  if (!found || fstat(fd_, &own) != 0) return;
  if (found->device == own.st_dev && found->inode == own.st_ino) {
    written_->set_named(std::move(opened).take());
  }
}

void NewFile::retract() {
  if (published_ && !replaced_) unlink(path_.c_str());
}

}  // namespace folio
