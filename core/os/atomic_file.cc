#include "core/os/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace folio {
namespace {

std::atomic<FileFaultHook> g_fault_hook{nullptr};

// Makes a system call unless a test lets it fail; repeats it when a signal came in between.
template <typename Call>
auto faulty(const char* name, Call&& call) -> decltype(call()) {
  if (const FileFaultHook hook = g_fault_hook.load(std::memory_order_relaxed)) {
    if (const int number = hook(name)) {
      errno = number;
      return -1;
    }
  }
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class MappedRange final : public Buffer {
 public:
  MappedRange(uint8_t* start, size_t length, uint8_t* data, size_t bytes)
      : Buffer(Kind::kConstant, data, bytes), start_(start), length_(length) {}

 private:
  ~MappedRange() override { munmap(start_, length_); }
  uint8_t* start_;
  size_t length_;
};

std::string temporary_prefix(const std::string& name) { return "." + name + "."; }
constexpr std::string_view kTemporarySuffix = ".tmp";

std::string temporary_name(const std::string& name) {
  static std::atomic<uint64_t> counter{0};
  return cat(temporary_prefix(name), getpid(), "-", counter.fetch_add(1), kTemporarySuffix);
}

// Temporaries of the same target whose makers died: nobody holds their lock.
void remove_orphans(int folder, const std::string& name) {
  const int list_fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (!list) {
    if (list_fd >= 0) close(list_fd);
    return;
  }
  const std::string prefix = temporary_prefix(name);
  while (const dirent* entry = readdir(list)) {
    const std::string_view found = entry->d_name;
    if (!found.starts_with(prefix) || !found.ends_with(kTemporarySuffix)) continue;
    const int fd = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry->d_name, 0);
    close(fd);
  }
  closedir(list);
}

}  // namespace

void set_file_fault_hook(FileFaultHook hook) { g_fault_hook = hook; }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(name_, other.name_);
  std::swap(temporary_, other.temporary_);
  std::swap(folder_, other.folder_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlinkat(folder_, temporary_.c_str(), 0);
  if (fd_ >= 0) close(fd_);
  if (folder_ >= 0) close(folder_);
}

Status AtomicFile::failed(const char* call) const {
  const int number = errno;
  const char* text = strerrordesc_np(number);
  const bool missing = number == ENOENT || number == ENOTDIR;
  return error(missing ? Code::kNoSuchFile : Code::kIo, "cannot write '", path_, "': ", call, ": ",
               text ? text : "unknown error");
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile file;
  file.path_ = path;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  file.name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  if (file.name_.empty() || path.find('\0') != std::string::npos) {
    return invalid_argument("'", path, "' names no file");
  }
  file.folder_ = faulty("open folder",
                        [&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (file.folder_ < 0) return file.failed("open folder");
  remove_orphans(file.folder_, file.name_);
  file.fd_ = faulty("open unnamed", [&] {
    return openat(file.folder_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  });
  if (file.fd_ >= 0) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) {
    return file.failed("open");
  }
  const std::string temporary = temporary_name(file.name_);
  file.fd_ = faulty("open temporary", [&] {
    return openat(file.folder_, temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  });
  if (file.fd_ < 0) return file.failed("open temporary");
  file.temporary_ = temporary;
  if (faulty("flock", [&] { return flock(file.fd_, LOCK_EX | LOCK_NB); }) != 0) {
    return file.failed("flock");
  }
  return file;
}

Status AtomicFile::reserve(uint64_t offset, uint64_t bytes) {
  const int result = faulty("fallocate", [&] {
    return fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  });
  // Where the file system cannot promise space, write finds out.
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return Status::ok();
  return failed("fallocate");
}

Status AtomicFile::write(uint64_t offset, Bytes bytes) {
  for (size_t done = 0; done < bytes.size();) {
    // 1 GiB: a single write is limited to a little under 2 GiB.
    const size_t part = std::min<size_t>(bytes.size() - done, size_t{1} << 30);
    const ssize_t put = faulty("pwrite", [&] {
      return pwrite(fd_, bytes.data() + done, part, static_cast<off_t>(offset + done));
    });
    if (put < 0) return failed("pwrite");
    if (put == 0) {
      errno = ENOSPC;
      return failed("pwrite");
    }
    done += static_cast<size_t>(put);
  }
  return Status::ok();
}

Result<Ref<Buffer>> AtomicFile::map(uint64_t offset, uint64_t bytes) const {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = offset / page * page;
  const uint64_t length = offset + bytes - first;
  void* start = MAP_FAILED;
  const int result = faulty("mmap", [&] {
    start = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd_, static_cast<off_t>(first));
    return start == MAP_FAILED ? -1 : 0;
  });
  if (result != 0) return failed("mmap");
  auto* const base = static_cast<uint8_t*>(start);
  return Ref<Buffer>(new MappedRange(base, length, base + (offset - first), bytes));
}

Status AtomicFile::link_named() {
  const std::string self = cat("/proc/self/fd/", fd_);
  const auto link_as = [&](const std::string& name) {
    return faulty("linkat", [&] {
      return linkat(AT_FDCWD, self.c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW);
    });
  };
  if (link_as(name_) == 0) return Status::ok();
  if (errno != EEXIST) return failed("linkat");
  // A link cannot replace: under another name first, locked so that nobody takes it for an orphan.
  if (faulty("flock", [&] { return flock(fd_, LOCK_EX | LOCK_NB); }) != 0) return failed("flock");
  const std::string temporary = temporary_name(name_);
  if (link_as(temporary) != 0) return failed("linkat");
  temporary_ = temporary;
  return Status::ok();
}

Status AtomicFile::publish() {
  if (faulty("fchmod", [&] { return fchmod(fd_, 0444); }) != 0) return failed("fchmod");
  if (faulty("fsync", [&] { return fsync(fd_); }) != 0) return failed("fsync");
  if (temporary_.empty()) FOLIO_RETURN_IF_ERROR(link_named());
  if (!temporary_.empty()) {
    const int result = faulty(
        "rename", [&] { return renameat(folder_, temporary_.c_str(), folder_, name_.c_str()); });
    if (result != 0) return failed("rename");
    temporary_.clear();
  }
  // The name must survive a power cut too; where a folder cannot be synced, it is there anyway.
  (void)faulty("fsync folder", [&] { return fsync(folder_); });
  return Status::ok();
}

}  // namespace folio
