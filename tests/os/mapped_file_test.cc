#include "core/os/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "core/base/buffer.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::string text_of(const Ref<ByteSource>& source) {
  const Bytes bytes = source->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Ref<ByteSource> open_ok(const std::string& path, FileLoading mode = FileLoading::kMap) {
  Result<Ref<ByteSource>> opened = open_mapped_file(path, mode);
  EXPECT_TRUE(opened.is_ok()) << opened.status().message();
  return opened.is_ok() ? std::move(opened).take() : nullptr;
}

Code open_code(const std::string& path) { return open_mapped_file(path).status().code(); }

Code sibling_code(const Ref<ByteSource>& model, const std::string& location) {
  return model->open_sibling(location).status().code();
}

// Lines of /proc/self/maps that name `path`.
int count_mappings(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.size() > path.size() &&
        line.compare(line.size() - path.size(), path.size(), path) == 0) {
      ++count;
    }
  }
  return count;
}

void set_mtime(const std::string& path, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(MappedFile, ASerialNumberNamesAMappingAndIsNeverUsedAgain) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  Ref<ByteSource> a = open_ok(path);
  Ref<ByteSource> b = open_ok(folder.link("model.onnx", "soft.onnx"));
  const Ref<ByteSource> other = open_ok(folder.write("other.onnx", "weights"));
  const uint64_t serial = a->serial();
  EXPECT_NE(serial, 0U);
  EXPECT_EQ(b->serial(), serial);
  EXPECT_NE(other->serial(), serial);
  a = nullptr;
  b = nullptr;
  // Unmapped and mapped again, perhaps at the same address: another mapping.
  EXPECT_NE(open_ok(path)->serial(), serial);
}

TEST(MappedFile, SharesOneMappingBetweenAllNamesOfAFile) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const std::string hard = folder.path("hard.onnx");
  fs::create_hard_link(path, hard);
  const std::string soft = folder.link("model.onnx", "soft.onnx");

  const RegistryStats before = registry_stats();
  const Ref<ByteSource> a = open_ok(path);
  const Ref<ByteSource> b = open_ok(path);
  const Ref<ByteSource> c = open_ok(hard);
  const Ref<ByteSource> d = open_ok(soft);
  EXPECT_EQ(a->bytes().data(), b->bytes().data());
  EXPECT_EQ(a->bytes().data(), c->bytes().data());
  EXPECT_EQ(a->bytes().data(), d->bytes().data());
  EXPECT_EQ(count_mappings(path) + count_mappings(hard), 1);
  EXPECT_EQ(registry_stats().mapped_files, before.mapped_files + 1);
  EXPECT_EQ(registry_stats().mapped_bytes, before.mapped_bytes + 7);
  EXPECT_EQ(a->name(), path);
  EXPECT_EQ(d->name(), soft);
}

TEST(MappedFile, UnmapsWithTheLastReference) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const RegistryStats before = registry_stats();
  Ref<ByteSource> a = open_ok(path);
  Ref<ByteSource> b = open_ok(path);
  a = nullptr;
  EXPECT_EQ(text_of(b), "weights");
  EXPECT_EQ(count_mappings(path), 1);
  b = nullptr;
  EXPECT_EQ(count_mappings(path), 0);
  EXPECT_EQ(registry_stats().mapped_files, before.mapped_files);
}

TEST(MappedFile, IsSharedAndReadOnly) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> model = open_ok(path);
  std::ifstream maps("/proc/self/maps");
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) found = line;
  }
  EXPECT_NE(found.find(" r--s "), std::string::npos) << found;
}

TEST(MappedFile, KeepsTheOldBytesWhenTheFileIsReplacedByRename) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "old weights");
  const Ref<ByteSource> old_model = open_ok(path);
  fs::rename(folder.write("new.onnx", "new weights"), path);
  const Ref<ByteSource> new_model = open_ok(path);
  EXPECT_EQ(text_of(old_model), "old weights");
  EXPECT_EQ(text_of(new_model), "new weights");
  EXPECT_TRUE(as_mapped_file(*old_model)->check_unchanged().is_ok());
}

TEST(MappedFile, MapsAnewWhenMtimeMoved) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  set_mtime(path, 1000);
  const Ref<ByteSource> a = open_ok(path);
  set_mtime(path, 2000);
  const Ref<ByteSource> b = open_ok(path);
  EXPECT_NE(a->bytes().data(), b->bytes().data());
  EXPECT_EQ(as_mapped_file(*a)->identity()->mtime_ns, 1000 * int64_t{1000000000});
  EXPECT_EQ(as_mapped_file(*b)->identity()->mtime_ns, 2000 * int64_t{1000000000});
}

TEST(MappedFile, ReportsAFileThatWasWrittenTo) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  set_mtime(path, 1000);
  const Ref<ByteSource> model = open_ok(path);
  EXPECT_TRUE(as_mapped_file(*model)->check_unchanged().is_ok());
  folder.write("model.onnx", "WEIGHTS");
  EXPECT_EQ(as_mapped_file(*model)->check_unchanged().code(), Code::kModelChanged);
  set_mtime(path, 1000);  // as a tool would that preserves times: ctime still tells
  EXPECT_EQ(as_mapped_file(*model)->check_unchanged().code(), Code::kModelChanged);
}

TEST(MappedFile, ReportsAFileThatGrew) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> model = open_ok(path);
  std::ofstream(path, std::ios::app) << "more";
  const Status status = as_mapped_file(*model)->check_unchanged();
  EXPECT_EQ(status.code(), Code::kModelChanged);
  EXPECT_NE(status.message().find("11 bytes, 7 when"), std::string_view::npos) << status.message();
}

TEST(MappedFile, TakesNewNamesAndModesForNoChange) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> model = open_ok(path);
  fs::rename(path, folder.path("moved.onnx"));
  EXPECT_TRUE(as_mapped_file(*model)->check_unchanged().is_ok());
  const std::string other = folder.write("other.onnx", "weights");
  const Ref<ByteSource> second = open_ok(other);
  ASSERT_EQ(chmod(other.c_str(), 0400), 0);
  EXPECT_TRUE(as_mapped_file(*second)->check_unchanged().is_ok());
  fs::remove(other);
  EXPECT_TRUE(as_mapped_file(*second)->check_unchanged().is_ok());
}

TEST(MappedFile, ReadsAPrivateCopyOnRequest) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> mapped = open_ok(path);
  const Ref<ByteSource> copied = open_ok(path, FileLoading::kRead);
  const Ref<ByteSource> again = open_ok(path, FileLoading::kRead);
  EXPECT_NE(mapped->bytes().data(), copied->bytes().data());
  EXPECT_EQ(copied->bytes().data(), again->bytes().data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copied->bytes().data()) % 64, 0u);
  folder.write("model.onnx", "WEIGHTS");
  EXPECT_EQ(text_of(copied), "weights");
  EXPECT_TRUE(as_mapped_file(*copied)->check_unchanged().is_ok());
}

TEST(MappedFile, PassesRefusedMemoryOnWhenReading) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  set_allocation_hook([](size_t) { return false; });
  const Code code = open_mapped_file(path, FileLoading::kRead).status().code();
  set_allocation_hook(nullptr);
  EXPECT_EQ(code, Code::kOutOfMemory);
}

TEST(MappedFile, SaysWhyItCannotOpen) {
  const TempFolder folder;
  const Status missing = open_mapped_file(folder.path("none.onnx")).status();
  EXPECT_EQ(missing.code(), Code::kNoSuchFile);
  EXPECT_NE(missing.message().find("none.onnx': No such file or directory"), std::string_view::npos)
      << missing.message();
  EXPECT_EQ(open_code(""), Code::kNoSuchFile);
  EXPECT_EQ(open_code(folder.write("empty.onnx", "")), Code::kInvalidArgument);
  EXPECT_EQ(open_code(folder.path()), Code::kInvalidArgument);
  EXPECT_EQ(open_code("/dev/null"), Code::kInvalidArgument);
  EXPECT_EQ(open_code(folder.write("file", "x") + "/below"), Code::kNoSuchFile);
  EXPECT_EQ(open_code(std::string("a\0b", 3)), Code::kInvalidArgument);
}

TEST(MappedFile, DoesNotHangOnAFifo) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  const Status status = open_mapped_file(folder.path("fifo")).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("is a fifo"), std::string_view::npos) << status.message();
}

TEST(MappedFile, SaysThatAFileIsUnreadable) {
  const TempFolder folder;
  const std::string path = folder.write("secret.onnx", "weights");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);  // root reads everything
    const Status status = open_mapped_file(path).status();
    const bool says_why = status.message().find("Permission denied") != std::string_view::npos;
    _exit(status.code() == Code::kIo && says_why ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MappedFile, OpensSiblingsInItsFolder) {
  const TempFolder folder;
  const Ref<ByteSource> model = open_ok(folder.write("model.onnx", "m"));
  folder.write("data.bin", "data");
  folder.write("sub/deep.bin", "deep");
  folder.link("sub/deep.bin", "inside.bin");
  EXPECT_EQ(text_of(model->open_sibling("data.bin").value()), "data");
  EXPECT_EQ(text_of(model->open_sibling("./data.bin").value()), "data");
  EXPECT_EQ(text_of(model->open_sibling("sub/deep.bin").value()), "deep");
  EXPECT_EQ(text_of(model->open_sibling("inside.bin").value()), "deep");
  EXPECT_EQ(model->open_sibling("data.bin").value()->name(), folder.path("data.bin"));
}

TEST(MappedFile, SharesSiblingsThroughTheRegistry) {
  const TempFolder folder;
  const Ref<ByteSource> model = open_ok(folder.write("model.onnx", "m"));
  const Ref<ByteSource> opened = open_ok(folder.write("data.bin", "data"));
  const Ref<ByteSource> sibling = model->open_sibling("data.bin").value();
  EXPECT_EQ(sibling->bytes().data(), opened->bytes().data());
}

TEST(MappedFile, LoadsSiblingsAsItWasLoaded) {
  const TempFolder folder;
  const Ref<ByteSource> model = open_ok(folder.write("model.onnx", "m"), FileLoading::kRead);
  folder.write("data.bin", "data");
  const Ref<ByteSource> sibling = model->open_sibling("data.bin").value();
  EXPECT_EQ(as_mapped_file(*sibling)->loading(), FileLoading::kRead);
}

TEST(MappedFile, FindsSiblingsOfARelativePathAfterChdir) {
  const TempFolder folder;
  folder.write("model.onnx", "m");
  folder.write("data.bin", "data");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const Ref<ByteSource> model = open_ok("model.onnx");
  fs::current_path(before);
  const Result<Ref<ByteSource>> sibling = model->open_sibling("data.bin");
  ASSERT_TRUE(sibling.is_ok()) << sibling.status().message();
  EXPECT_EQ(text_of(sibling.value()), "data");
  EXPECT_EQ(sibling.value()->name(), "data.bin");
}

TEST(MappedFile, RefusesLocationsThatLeaveTheFolder) {
  const TempFolder folder;
  const std::string secret = folder.write("secret.bin", "secret");
  folder.write("models-private/x.bin", "secret");
  const Ref<ByteSource> model = open_ok(folder.write("models/model.onnx", "m"));
  folder.write("models/sub/data.bin", "data");
  folder.link(secret, "models/absolute_link.bin");
  folder.link("../secret.bin", "models/relative_link.bin");
  folder.link("..", "models/up");
  folder.link(folder.path("models-private"), "models/beside");
  folder.link("/proc/self/root", "models/root");

  for (const std::string& location :
       {std::string(""), secret, std::string("../secret.bin"), std::string(".."),
        std::string("sub/../../secret.bin"), std::string("sub/../sub/data.bin"),
        std::string("sub/.."), std::string("absolute_link.bin"), std::string("relative_link.bin"),
        std::string("up/secret.bin"), std::string("beside/x.bin"), "root" + secret,
        std::string("sub/data.bin\0x", 14), std::string(5000, 'a')}) {
    EXPECT_EQ(sibling_code(model, location), Code::kInvalidGraph) << location;
  }
}

TEST(MappedFile, RefusesSiblingsThatAreNoFiles) {
  const TempFolder folder;
  const Ref<ByteSource> model = open_ok(folder.write("model.onnx", "m"));
  folder.write("sub/data.bin", "data");
  folder.write("empty.bin", "");
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(sibling_code(model, "sub"), Code::kInvalidGraph);
  EXPECT_EQ(sibling_code(model, "."), Code::kInvalidGraph);
  EXPECT_EQ(sibling_code(model, "fifo"), Code::kInvalidGraph);
  EXPECT_EQ(sibling_code(model, "empty.bin"), Code::kInvalidGraph);
  EXPECT_EQ(sibling_code(model, "none.bin"), Code::kNoSuchFile);
  EXPECT_EQ(sibling_code(model, "..none.bin"), Code::kNoSuchFile);
}

// models--x/snapshots/rev/model.onnx -> ../../blobs/abc, as a Hugging Face cache has it.
TEST(MappedFile, OpensSiblingsInAHubCache) {
  const TempFolder folder;
  folder.write("blobs/abc", "model");
  folder.write("blobs/def", "data");
  folder.write("blobs/ghi", "newer data");
  for (const std::string rev : {"snapshots/1/", "snapshots/2/"}) {
    folder.link("../../blobs/abc", rev + "model.onnx");
  }
  folder.link("../../blobs/def", "snapshots/1/model.onnx_data");
  folder.link("../../blobs/ghi", "snapshots/2/model.onnx_data");
  folder.write("outside.bin", "secret");
  folder.link("../../outside.bin", "snapshots/1/escape");

  const Ref<ByteSource> one = open_ok(folder.path("snapshots/1/model.onnx"));
  const Ref<ByteSource> two = open_ok(folder.path("snapshots/2/model.onnx"));
  EXPECT_EQ(one->bytes().data(), two->bytes().data());
  EXPECT_EQ(text_of(one->open_sibling("model.onnx_data").value()), "data");
  EXPECT_EQ(text_of(two->open_sibling("model.onnx_data").value()), "newer data");
  EXPECT_EQ(sibling_code(one, "escape"), Code::kInvalidGraph);
  EXPECT_EQ(sibling_code(one, "def"), Code::kNoSuchFile);  // the names are those of the snapshot
}

TEST(MappedFile, OpensOnceWhenManyThreadsOpen) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> first = open_ok(path);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Result<Ref<ByteSource>> opened = open_mapped_file(path);
        if (!opened.is_ok() || opened.value()->bytes().data() != first->bytes().data()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Reading takes long enough for the others to miss the registry too.
TEST(MappedFile, ReadsIntoOneCopyWhenManyThreadsMiss) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", std::string(size_t{4} << 20, 'w'));
  for (int round = 0; round < 10; ++round) {
    std::vector<Ref<ByteSource>> opened(4);
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (Ref<ByteSource>& mine : opened) {
      threads.emplace_back([&] {
        ready.fetch_add(1);
        while (ready.load() < 4) std::this_thread::yield();
        mine = open_ok(path, FileLoading::kRead);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Ref<ByteSource>& source : opened) {
      ASSERT_EQ(source->bytes().data(), opened[0]->bytes().data()) << round;
    }
    ASSERT_EQ(registry_stats().read_files, 1u);
  }
}

TEST(MappedFile, SurvivesOpeningWhileTheLastReferenceGoes) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const RegistryStats before = registry_stats();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        Result<Ref<ByteSource>> opened = open_mapped_file(path);
        if (!opened.is_ok() || text_of(opened.value()) != "weights") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(registry_stats().mapped_files, before.mapped_files);
  EXPECT_EQ(count_mappings(path), 0);
}

TEST(MappedFile, ClosesItsDescriptorOnExec) {
  const TempFolder folder;
  const std::string path = folder.write("model.onnx", "weights");
  const Ref<ByteSource> model = open_ok(path);
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    std::error_code failed;
    if (fs::read_symlink("/proc/self/fd/" + std::to_string(fd), failed) != path) continue;
    ++found;
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

uint64_t referenced_rss_kib(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find(path) != std::string::npos) inside = true;
    if (inside && line.compare(0, 4, "Rss:") == 0) return std::stoull(line.substr(4));
  }
  return 0;
}

TEST(MappedFile, DropsWholePagesInsideTheRange) {
  const TempFolder folder;
  const size_t pages = 16;
  const std::string path = folder.write("model.onnx", std::string(pages * 4096, 'w'));
  const Ref<ByteSource> model = open_ok(path);
  const auto touch = [&] {
    int sum = 0;
    for (size_t i = 0; i < pages; ++i) sum += model->bytes()[i * 4096];
    return sum;
  };
  ASSERT_EQ(touch(), static_cast<int>(pages) * 'w');
  ASSERT_EQ(referenced_rss_kib(path), pages * 4);
  const MappedFile* const file = as_mapped_file(*model);
  file->drop_pages(1, 4096);  // no whole page inside
  EXPECT_EQ(referenced_rss_kib(path), pages * 4);
  file->drop_pages(1, 3 * 4096);
  EXPECT_EQ(referenced_rss_kib(path), (pages - 2) * 4);
  file->drop_pages(0, UINT64_MAX);
  EXPECT_EQ(referenced_rss_kib(path), 0u);
  file->drop_pages(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(touch(), static_cast<int>(pages) * 'w');
}

}  // namespace
}  // namespace folio
