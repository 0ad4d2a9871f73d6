// Runs a fuzz target over saved inputs, so that every past finding is an ordinary test.
//
// Usage:  <x>_fuzz FILE_OR_FOLDER...   each file, and each file below each folder, in the order of
//         its path
// Errors: a file that cannot be read fails the run; a path that does not exist is an empty
//         corpus.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& root) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(root)) files.push_back(root);
  if (fs::is_directory(root)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  // The name comes first: after a crash it is the last line.
  std::printf("%s (%zu bytes)\n", path.c_str(), bytes.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    LLVMFuzzerTestOneInput(nullptr, 0);
    size_t count = 1;
    for (int i = 1; i < argc; ++i) {
      for (const fs::path& path : files_below(argv[i])) {
        if (!replay(path)) return 1;
        ++count;
      }
    }
    std::printf("%zu inputs replayed\n", count);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay failed: %s\n", error.what());
    return 1;
  }
}
