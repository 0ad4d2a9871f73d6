// What the drop-in's tests have in common: the library, opened as a program opens ONNX Runtime's,
// outcomes of calls, owned handles and small models.
//
// With FOLIO_ORT_TEST_LIBRARY naming ONNX Runtime's own libonnxruntime.so.1 the same tests run on
// that: what they say of both is then what ONNX Runtime does. `is_folio()` guards the rest.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "c_api/ort_dropin/ort_api.h"
#include "tests/support/temp_folder.h"

namespace dropin_test {

const OrtApiBase& base();
const OrtApi& api();
bool is_folio();

constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kString = 8;

struct Outcome {
  int code;
  std::string message;
  explicit Outcome(OrtStatus* status)
      : code(status ? api().GetErrorCode(status) : 0),
        message(status ? api().GetErrorMessage(status) : "") {
    if (status) api().ReleaseStatus(status);
  }
};

testing::AssertionResult is_ok(OrtStatus* status);
// The call failed with this code, and on Folio's library its message has all these parts.
testing::AssertionResult fails(OrtStatus* status, int code,
                               std::initializer_list<const char*> parts = {});

#define ASSERT_CALL(call) ASSERT_TRUE(dropin_test::is_ok(call))
#define EXPECT_CALL(call) EXPECT_TRUE(dropin_test::is_ok(call))

template <typename T, void (*OrtApi::*kRelease)(T*)>
struct Releaser {
  void operator()(T* handle) const { (api().*kRelease)(handle); }
};
template <typename T, void (*OrtApi::*kRelease)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, kRelease>>;

using Env = Owned<OrtEnv, &OrtApi::ReleaseEnv>;
using Options = Owned<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using Session = Owned<OrtSession, &OrtApi::ReleaseSession>;
using RunOptions = Owned<OrtRunOptions, &OrtApi::ReleaseRunOptions>;
using Value = Owned<OrtValue, &OrtApi::ReleaseValue>;
using Binding = Owned<OrtIoBinding, &OrtApi::ReleaseIoBinding>;
using MemoryInfo = Owned<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using TypeInfo = Owned<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using TensorInfo = Owned<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;
using Metadata = Owned<OrtModelMetadata, &OrtApi::ReleaseModelMetadata>;
using Container = Owned<OrtPrepackedWeightsContainer, &OrtApi::ReleasePrepackedWeightsContainer>;

// make<Options>(api().CreateSessionOptions): the handle that a call gives as its last argument.
template <typename Handle, typename Entry, typename... Args>
Handle make(Entry entry, Args... args) {
  typename Handle::pointer raw = nullptr;
  EXPECT_TRUE(is_ok(entry(args..., &raw)));
  return Handle(raw);
}

const OrtEnv* env();
OrtAllocator* allocator();
const OrtMemoryInfo* cpu();

// A string that a call gave in memory of `allocator()`.
std::string taken(char* text);

// ---- values ----

Value floats(std::vector<float>* elements, const std::vector<int64_t>& dims);  // over the memory
Value strings(const std::vector<const char*>& texts);                          // of one dim
std::vector<float> floats_of(OrtValue* value);
std::vector<std::string> strings_of(const OrtValue* value);
std::vector<int64_t> dims_of(const OrtValue* value);

// ---- sessions ----

Session session_of(const std::string& model, const OrtSessionOptions* options = nullptr);
OrtStatus* run_one(OrtSession* session, const char* input, const OrtValue* value,
                   const char* output, Value* result, const OrtRunOptions* options = nullptr);

// y = x + w and z = x - w, x [batch, 3], w = [10, 20, 30]; metadata author = Ada.
std::string add_model();
// The same, "w" in the external file "weights.bin", whose bytes are external_bytes().
std::string external_model();
std::string external_bytes();
// The same of IR version 4, "w" an input with a default.
std::string default_model();
// y = x @ w, x [batch, 4], w [4, 4] of 0 to 15.
std::string matmul_model();
// y = a + count, by a Loop: runs as long as a test wants.
std::string loop_model();
// t = s, strings [n].
std::string string_model();
// parts = the columns of x [2, 3] as a sequence; back = SequenceAt(parts, 0).
std::string sequence_model();
// m = a map of int64 to float, by ZipMap of x [n, 2].
std::string map_model();

using folio::testing::TempFolder;

}  // namespace dropin_test
