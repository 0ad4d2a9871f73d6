// Helpers for tests of pack files: a model with three weights to pack, and sessions that find
// nothing but what files have.
//
// Errors:  a load or run that fails fails the test, and gives nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/temp_folder.h"

namespace folio::pack_tester {

inline constexpr int64_t kSize = 160;  // 100 KiB a matrix: above what is computed at once

// A weight of the file, a computed one, a computed summand: three blobs. Models of seeds that
// differ by 1 have weights in common.
std::string model_bytes(float seed = 1);

// Makes `path`, and the folders above it. Old enough for its digests to be remembered.
std::string write_model_at(const std::string& path, float seed = 1);
inline std::string write_model(const testing::TempFolder& folder, const std::string& name,
                               float seed = 1) {
  return write_model_at(folder.path(name), seed);
}

// A session as another process would make it: nothing is found in this one.
SessionOptions fresh();
SessionOptions with_store(const std::string& folder);

Ref<Session> open(const std::string& path, const SessionOptions& options = fresh());
std::vector<float> run(const Ref<Session>& session);
int blobs_in(const Ref<Session>& session, BlobPlace place);

inline std::string sidecar(const std::string& path) { return path + ".fpack"; }

}  // namespace folio::pack_tester
