#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "core/base/buffer.h"
#include "core/base/checked_math.h"
#include "core/os/anonymous_memory.h"
#include "core/os/fork.h"
#include "core/os/huge_pages.h"
#include "core/os/mapped_file.h"
#include "core/os/sigbus_guard.h"

namespace folio {
namespace {

// A location longer than this cannot be a path and is cut in messages.
constexpr size_t kMaxLocationBytes = PATH_MAX;
constexpr size_t kMaxShownBytes = 200;

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Text from a hostile file, fit for a message: short, one line.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, kMaxShownBytes));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text.size() > kMaxShownBytes ? out + "..." : out;
}

std::string quoted(std::string_view path) { return cat("'", shown(path), "'"); }

Status errno_error(std::string_view what, std::string_view path) {
  const int number = errno;
  const bool missing = number == ENOENT || number == ENOTDIR;
  return error(missing ? Code::kNoSuchFile : Code::kIo, what, " ", quoted(path), ": ",
               strerrordesc_np(number) ? strerrordesc_np(number) : "unknown error");
}

// Some file systems keep times of any year: what does not fit wraps, and still tells two apart.
int64_t nanoseconds(const timespec& t) {
  const auto wrapped = static_cast<uint64_t>(t.tv_sec) * 1000000000;
  return static_cast<int64_t>(wrapped + static_cast<uint64_t>(t.tv_nsec));
}

FileIdentity identity_of(const struct stat& s) {
  return {s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size), nanoseconds(s.st_mtim),
          nanoseconds(s.st_ctim)};
}

// Where the kernel says that `fd` points, without symlinks; empty when it cannot say (no /proc, a
// path beyond PATH_MAX, or one outside this process's root).
std::string real_path_of(int fd) {
  char target[PATH_MAX];
  const ssize_t length = readlink(cat("/proc/self/fd/", fd).c_str(), target, sizeof target);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof target) || target[0] != '/') return "";
  return std::string(target, static_cast<size_t>(length));
}

std::string folder_part(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Both real paths; an empty folder holds nothing.
bool lies_in(const std::string& path, const std::string& folder) {
  if (folder.empty() || path.empty()) return false;
  if (folder == "/") return true;
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         path[folder.size()] == '/';
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

// Regular and not empty, or an error of `code`.
Status check_kind(const struct stat& s, std::string_view path, Code code) {
  if (!S_ISREG(s.st_mode)) {
    return error(code, quoted(path), " is ", kind_of(s.st_mode), ", expected a regular file");
  }
  if (s.st_size <= 0) return error(code, quoted(path), " is empty");
  return Status::ok();
}

}  // namespace

namespace internal {

class FileBytes final : public RefCounted {
 public:
  FileBytes(const struct stat& s, FileLoading loading, UniqueFd fd, std::string path)
      : identity_(identity_of(s)),
        links_(s.st_nlink),
        mode_(s.st_mode),
        user_(s.st_uid),
        group_(s.st_gid),
        loading_(loading),
        fd_(std::move(fd)),
        path_(std::move(path)) {}

  Status map(std::string_view name);
  Status read(std::string_view name);
  Status check_unchanged(std::string_view name) const;
  void drop_pages(uint64_t offset, uint64_t count) const;
  void expect_sparse_reads(bool begins) const;
  bool is_damaged() const { return guard_.was_hit(); }
  int descriptor() const { return fd_.get(); }

  uint64_t serial() const { return serial_; }
  Bytes bytes() const { return {data_, static_cast<size_t>(identity_.size)}; }
  const FileIdentity& identity() const { return identity_; }
  FileLoading loading() const { return loading_; }

 private:
  ~FileBytes() override;
  bool only_names_changed(const struct stat& now) const;

  const uint64_t serial_ = next_source_serial();
  const FileIdentity identity_;
  const nlink_t links_;
  const mode_t mode_;
  const uid_t user_;
  const gid_t group_;
  const FileLoading loading_;
  UniqueFd fd_;  // closed once a copy has been read
  const std::string path_;
  const uint8_t* data_ = nullptr;  // a mapping, or copy_'s
  Ref<Buffer> copy_;
  GuardedRange guard_;
};

}  // namespace internal

namespace {

using internal::FileBytes;

struct Key {
  FileIdentity identity;
  FileLoading loading;
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    // Inodes are nearly unique already; what else tells keys apart is left to equality.
    return std::hash<uint64_t>()(key.identity.inode * 0x9E3779B97F4A7C15u ^ key.identity.device);
  }
};

// Weak: an entry goes with the last Ref of its FileBytes. Never destroyed, as files may be released
// while static objects die.
class Registry {
 public:
  static Registry& instance() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  Ref<FileBytes> find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return find_locked(key);
  }

  // `fresh`, or the entry that another thread made meanwhile.
  Ref<FileBytes> insert(const Key& key, const Ref<FileBytes>& fresh) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Ref<FileBytes> other = find_locked(key);
    if (other) return other;
    files_[key] = fresh.get();  // may replace one that is just dying, or damaged
    return fresh;
  }

  void erase(const Key& key, const FileBytes* file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = files_.find(key);
    if (at != files_.end() && at->second == file) files_.erase(at);
  }

  RegistryStats stats() {
    const std::lock_guard<std::mutex> lock(mutex_);
    RegistryStats stats;
    for (const auto& [key, file] : files_) {
      const bool mapped = key.loading == FileLoading::kMap;
      (mapped ? stats.mapped_files : stats.read_files) += 1;
      (mapped ? stats.mapped_bytes : stats.read_bytes) += key.identity.size;
      if (mapped) stats.mappings.push_back(file->bytes());
    }
    return stats;
  }

 private:
  Registry() { hold_across_fork(ForkOrder::kFiles, &mutex_); }

  Ref<FileBytes> find_locked(const Key& key) {
    const auto at = files_.find(key);
    if (at == files_.end()) return nullptr;
    // A device may fail and come back, the file as it was: who opens it now gets its bytes.
    if (at->second->is_damaged() || !at->second->try_add_ref()) return nullptr;
    return Ref<FileBytes>::adopt(at->second);
  }

  std::mutex mutex_;
  std::unordered_map<Key, FileBytes*, KeyHash> files_;
};

}  // namespace

namespace internal {

FileBytes::~FileBytes() {
  Registry::instance().erase(Key{identity_, loading_}, this);
  if (loading_ == FileLoading::kMap && data_) {
    guard_.clear();
    munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(identity_.size));
  }
}

Status FileBytes::map(std::string_view name) {
  // Shared and read-only: every process has the same pages, and a stray write faults.
  data_ = map_file(fd_.get(), 0, static_cast<size_t>(identity_.size));
  if (!data_) return errno_error("cannot map", name);
  guard_.set(data_, static_cast<size_t>(identity_.size));
  return Status::ok();
}

Status FileBytes::read(std::string_view name) {
  FOLIO_TRY(copy_, allocate_large_buffer(static_cast<size_t>(identity_.size)));
  uint8_t* const target = copy_->data();
  for (uint64_t done = 0; done < identity_.size;) {
    // 1 GiB: a single read is limited to a little under 2 GiB.
    const uint64_t part = std::min<uint64_t>(identity_.size - done, uint64_t{1} << 30);
    const ssize_t got = pread(fd_.get(), target + done, part, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", name);
    if (got == 0) {
      return error(Code::kModelChanged, quoted(name), " became shorter while it was read: ", done,
                   " bytes, expected ", identity_.size);
    }
    done += static_cast<uint64_t>(got);
  }
  // Half of one state and half of another would be a model that nobody wrote.
  FOLIO_RETURN_IF_ERROR(check_unchanged(name));
  data_ = target;
  fd_ = UniqueFd();
  return Status::ok();
}

// A rename, a new or removed link (which a replacement by rename is, too), chmod and chown move
// ctime and leave the bytes alone.
bool FileBytes::only_names_changed(const struct stat& now) const {
  return now.st_nlink != links_ || now.st_mode != mode_ || now.st_uid != user_ ||
         now.st_gid != group_ || real_path_of(fd_.get()) != path_;
}

Status FileBytes::check_unchanged(std::string_view name) const {
  if (!fd_.is_open()) return Status::ok();
  struct stat now = {};
  if (fstat(fd_.get(), &now) != 0) return errno_error("cannot stat", name);
  const FileIdentity current = identity_of(now);
  if (current == identity_) return Status::ok();
  if (current.size != identity_.size) {
    return error(Code::kModelChanged, quoted(name), " changed on disk: ", current.size, " bytes, ",
                 identity_.size, " when it was opened");
  }
  if (current.mtime_ns == identity_.mtime_ns && only_names_changed(now)) return Status::ok();
  return error(Code::kModelChanged, quoted(name), " was written to since it was opened");
}

void FileBytes::drop_pages(uint64_t offset, uint64_t count) const {
  if (loading_ != FileLoading::kMap || offset >= identity_.size) return;
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t end = offset + std::min(count, identity_.size - offset);
  const uint64_t first = (offset + page - 1) / page * page;
  // The file's last page holds nothing beyond it.
  const uint64_t last = end == identity_.size ? (end + page - 1) / page * page : end / page * page;
  if (first >= last) return;
  // Only advice: a failure leaves the pages where they are.
  (void)madvise(const_cast<uint8_t*>(data_) + first, last - first, MADV_DONTNEED);
}

// Around each page that is touched, the kernel reads as much as read_ahead_kb of the disk says: 128
// KiB, or 8 MiB where clouds set it so, which is all of a file whose weights are smaller. Nodes
// stand at the begin, and what tells about values at the end.
void FileBytes::expect_sparse_reads(bool begins) const {
  constexpr uint64_t kLeastBytes = uint64_t{64} << 20;
  constexpr uint64_t kEnd = uint64_t{1} << 20;
  if (loading_ != FileLoading::kMap || identity_.size < kLeastBytes) return;
  auto* const data = const_cast<uint8_t*>(data_);
  const auto size = static_cast<size_t>(identity_.size);
  (void)madvise(data, size, begins ? MADV_RANDOM : MADV_NORMAL);
  if (!begins) return;
  const size_t last = align_up(size, kEnd) - 2 * kEnd;  // the last MiB and what is beside it
  (void)madvise(data, kEnd, MADV_WILLNEED);
  (void)madvise(data + last, size - last, MADV_WILLNEED);
}

}  // namespace internal

// Turns an open descriptor into a MappedFile. A class for the sake of MappedFile's constructor.
class MappedFileOpener {
 public:
  static Result<Ref<ByteSource>> open(UniqueFd fd, const std::string& name,
                                      const std::string& given_folder, FileLoading loading,
                                      Code wrong_kind) {
    struct stat s = {};
    if (fstat(fd.get(), &s) != 0) return errno_error("cannot stat", name);
    FOLIO_RETURN_IF_ERROR(check_kind(s, name, wrong_kind));
    const std::string real_path = real_path_of(fd.get());
    const Key key{identity_of(s), loading};
    Ref<FileBytes> file = Registry::instance().find(key);
    if (!file) {
      const Ref<FileBytes> fresh = make_ref<FileBytes>(s, loading, std::move(fd), real_path);
      // Outside the registry's lock: reading may take long.
      FOLIO_RETURN_IF_ERROR(loading == FileLoading::kMap ? fresh->map(name) : fresh->read(name));
      file = Registry::instance().insert(key, fresh);
    }
    auto* const opened = new MappedFile(std::move(file), name, real_path, given_folder);
    return Ref<ByteSource>(opened);
  }
};

namespace {

// No NUL, not absolute, no "..": what can be told from the text alone.
Status check_location(const std::string& location) {
  const auto refuse = [&](std::string_view why) {
    return invalid_graph("external data location ", quoted(location), " ", why);
  };
  if (location.empty()) return refuse("is empty");
  if (location.size() > kMaxLocationBytes) return refuse("is too long");
  if (location.find('\0') != std::string::npos) return refuse("contains a NUL byte");
  if (location.front() == '/') return refuse("is absolute, expected one inside the model's folder");
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    if (std::string_view(location).substr(begin, end - begin) == "..") {
      return refuse("contains '..', expected one inside the model's folder");
    }
    begin = end + 1;
  }
  return Status::ok();
}

// `folder` and `other_folder` are real paths; `other_folder` may be empty.
Result<Ref<ByteSource>> open_location(const std::string& folder, const std::string& other_folder,
                                      const std::string& location, const std::string& name,
                                      FileLoading loading) {
  FOLIO_RETURN_IF_ERROR(check_location(location));
  // O_PATH touches nothing: what a symlink leads to is opened only once it is known to be a file
  // inside. The descriptor, not the path, is then reopened, so nothing can come in between.
  const std::string path = folder == "/" ? "/" + location : folder + "/" + location;
  const UniqueFd found(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!found.is_open()) return errno_error("cannot open external data", name);
  const std::string target = real_path_of(found.get());
  if (target.empty()) {
    return error(Code::kIo, "cannot tell where external data ", quoted(name),
                 " leads to (is /proc mounted?)");
  }
  if (!lies_in(target, folder) && !lies_in(target, other_folder)) {
    return invalid_graph("external data location ", quoted(location), " leads to ", quoted(target),
                         ", outside the model's folder ", quoted(folder));
  }
  struct stat s = {};
  if (fstat(found.get(), &s) != 0) return errno_error("cannot stat", name);
  FOLIO_RETURN_IF_ERROR(check_kind(s, name, Code::kInvalidGraph));
  UniqueFd fd(open(cat("/proc/self/fd/", found.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return errno_error("cannot open external data", name);
  return MappedFileOpener::open(std::move(fd), name, folder, loading, Code::kInvalidGraph);
}

// The real path of a folder; empty when there is none.
std::string real_folder(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return fd.is_open() ? real_path_of(fd.get()) : "";
}

std::string joined(const std::string& folder, const std::string& location) {
  return folder == "." ? location : folder == "/" ? "/" + location : folder + "/" + location;
}

}  // namespace

MappedFile::MappedFile(Ref<internal::FileBytes> file, std::string name, std::string real_path,
                       std::string given_folder)
    : file_(std::move(file)),
      name_(std::move(name)),
      real_path_(std::move(real_path)),
      given_folder_(std::move(given_folder)) {}

MappedFile::~MappedFile() = default;

uint64_t MappedFile::serial() const { return file_->serial(); }
Bytes MappedFile::bytes() const { return file_->bytes(); }
const FileIdentity* MappedFile::identity() const { return &file_->identity(); }
FileLoading MappedFile::loading() const { return file_->loading(); }
Status MappedFile::check_unchanged() const { return file_->check_unchanged(name_); }
bool MappedFile::is_damaged() const { return file_->is_damaged(); }
int MappedFile::descriptor() const { return file_->descriptor(); }
void MappedFile::drop_pages(uint64_t offset, uint64_t count) const {
  file_->drop_pages(offset, count);
}
void MappedFile::expect_sparse_reads(bool begins) const { file_->expect_sparse_reads(begins); }

Result<Ref<ByteSource>> MappedFile::open_sibling(const std::string& location) const {
  if (given_folder_.empty()) {
    return error(Code::kIo, "cannot tell the folder of ", quoted(name_),
                 ", in which external data are looked for (is /proc mounted?)");
  }
  const std::string model_folder = real_path_.empty() ? "" : folder_part(real_path_);
  return open_location(given_folder_, model_folder, location, joined(folder_part(name_), location),
                       loading());
}

Result<Ref<ByteSource>> open_mapped_file(const std::string& path, FileLoading mode) {
  if (path.find('\0') != std::string::npos) {
    return invalid_argument("path ", quoted(path), " contains a NUL byte");
  }
  // stat first, so that no device is opened; O_NONBLOCK, so that a fifo put there meanwhile cannot
  // hang the caller. What counts is the descriptor, checked again later.
  struct stat s = {};
  if (stat(path.c_str(), &s) != 0) return errno_error("cannot open", path);
  FOLIO_RETURN_IF_ERROR(check_kind(s, path, Code::kInvalidArgument));
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_open()) return errno_error("cannot open", path);
  return MappedFileOpener::open(std::move(fd), path, real_folder(folder_part(path)), mode,
                                Code::kInvalidArgument);
}

namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Status check_owner(const struct stat& s, std::string_view path) {
  if (s.st_uid != 0 && s.st_uid != geteuid()) {
    return invalid_argument(quoted(path), " belongs to user ", s.st_uid,
                            ", expected this user or root");
  }
  if ((s.st_mode & kOthersWrite) != 0) {
    return invalid_argument(quoted(path), " can be written by its group or others");
  }
  return Status::ok();
}

// A private copy has no descriptor any more.
bool stat_of(const MappedFile& file, struct stat* out) {
  if (file.descriptor() >= 0) return fstat(file.descriptor(), out) == 0;
  return stat(file.real_path().c_str(), out) == 0;
}

}  // namespace

Result<Ref<ByteSource>> open_trusted_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_open()) return errno_error("cannot open", path);
  struct stat s = {};
  if (fstat(fd.get(), &s) != 0) return errno_error("cannot stat", path);
  FOLIO_RETURN_IF_ERROR(check_owner(s, path));
  return MappedFileOpener::open(std::move(fd), path, "", FileLoading::kMap, Code::kInvalidArgument);
}

Status check_trusted_beside(const MappedFile& file, const MappedFile* beside) {
  struct stat s = {};
  if (!stat_of(file, &s)) return errno_error("cannot stat", file.name());
  struct stat other = {};
  if (beside && stat_of(*beside, &other)) {
    if (s.st_uid == other.st_uid) s.st_uid = 0;
    const bool has_one_group = s.st_gid == other.st_gid;
    s.st_mode &= ~(other.st_mode & (has_one_group ? kOthersWrite : S_IWOTH));
  }
  return check_owner(s, file.name());
}

Status check_trusted_folder(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return errno_error("cannot open", path);
  struct stat s = {};
  if (fstat(fd.get(), &s) != 0) return errno_error("cannot stat", path);
  return check_owner(s, path);
}

Result<Ref<ByteSource>> open_in_folder(const std::string& folder, const std::string& location,
                                       FileLoading mode) {
  const std::string real = folder.find('\0') == std::string::npos ? real_folder(folder) : "";
  if (real.empty()) {
    return error(Code::kNoSuchFile, "folder ", quoted(folder), " for external data ",
                 quoted(location), " cannot be opened");
  }
  return open_location(real, "", location, joined(folder, location), mode);
}

const MappedFile* as_mapped_file(const ByteSource& source) {
  return dynamic_cast<const MappedFile*>(&source.origin());
}

RegistryStats registry_stats() { return Registry::instance().stats(); }

}  // namespace folio
