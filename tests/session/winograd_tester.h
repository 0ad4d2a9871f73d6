// What tests of Winograd's convolution in sessions share: how a session packs, and what it has.
#pragma once

#include "tests/support/model_tester.h"

namespace folio {

inline SessionOptions packing_with(int threads, Packing packing) {
  SessionOptions options;
  options.threads = threads;
  options.packing = packing;
  return options;
}

// The first output for x; empty where the run fails.
inline std::vector<float> floats_of_run(const Ref<Session>& session, const Value& x) {
  const auto outputs = run_all(*session, {{"x", x}});
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  return outputs.is_ok() ? floats_of(outputs.value()[0]) : std::vector<float>();
}

// Packed weights of so many bytes.
inline int count_blobs(const Session& session, BlobPlace place, uint64_t bytes) {
  int count = 0;
  for (const auto& blob : session.program().packed_now()) {
    count += blob->place() == place && blob->bytes() == bytes;
  }
  return count;
}

}  // namespace folio
