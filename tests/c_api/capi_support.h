// What tests of the C API have in common: the table, outcomes of calls, owned handles and small
// models. They see the shared library only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "folio/folio_c_api.h"
#include "tests/support/temp_folder.h"
#include "tools/make_model/onnx_model.h"

namespace capi_test {

inline const FolioApi& api() {
  static const FolioApi* const table = FolioGetApiBase()->GetApi(FOLIO_API_VERSION);
  return *table;
}

// The end of a call; takes the status over.
struct Outcome {
  FolioErrorCode code;
  std::string message;
  explicit Outcome(FolioStatus* status)
      : code(api().GetErrorCode(status)), message(api().GetErrorMessage(status)) {
    api().ReleaseStatus(status);
  }
};

inline testing::AssertionResult is_ok(FolioStatus* status) {
  const Outcome outcome(status);
  if (outcome.code == FOLIO_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << api().GetErrorName(outcome.code) << ": " << outcome.message;
}

// The call failed with this code, and its message has all these parts.
inline testing::AssertionResult fails(FolioStatus* status, FolioErrorCode code,
                                      std::initializer_list<const char*> parts = {}) {
  const Outcome outcome(status);
  const auto wrong = [&] {
    return testing::AssertionFailure()
           << "got " << api().GetErrorName(outcome.code) << ": '" << outcome.message
           << "', expected " << api().GetErrorName(code);
  };
  if (outcome.code != code) return wrong();
  for (const char* part : parts) {
    if (outcome.message.find(part) == std::string::npos) return wrong() << " with '" << part << "'";
  }
  return testing::AssertionSuccess();
}

#define ASSERT_CALL(call) ASSERT_TRUE(capi_test::is_ok(call))
#define EXPECT_CALL(call) EXPECT_TRUE(capi_test::is_ok(call))

template <typename T, void (*FolioApi::*Release)(T*)>
struct Releaser {
  void operator()(T* handle) const { (api().*Release)(handle); }
};
template <typename T, void (*FolioApi::*Release)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;

using Env = Owned<FolioEnv, &FolioApi::ReleaseEnv>;
using Cancel = Owned<FolioCancel, &FolioApi::ReleaseCancel>;
using ModelOptions = Owned<FolioModelOptions, &FolioApi::ReleaseModelOptions>;
using Model = Owned<FolioModel, &FolioApi::ReleaseModel>;
using PackCache = Owned<FolioPackCache, &FolioApi::ReleasePackCache>;
using SessionOptions = Owned<FolioSessionOptions, &FolioApi::ReleaseSessionOptions>;
using Session = Owned<FolioSession, &FolioApi::ReleaseSession>;
using RunOptions = Owned<FolioRunOptions, &FolioApi::ReleaseRunOptions>;
using Value = Owned<FolioValue, &FolioApi::ReleaseValue>;
using Binding = Owned<FolioIoBinding, &FolioApi::ReleaseIoBinding>;
using Report = Owned<FolioMemoryReport, &FolioApi::ReleaseMemoryReport>;

// make<Cancel>(api().CreateCancel): the handle that a call gives as its last argument.
template <typename Handle, typename Entry, typename... Args>
Handle make(Entry entry, Args... args) {
  typename Handle::pointer raw = nullptr;
  EXPECT_TRUE(is_ok(entry(args..., &raw)));
  return Handle(raw);
}

template <typename T>
T sized() {
  T result{};
  result.size = sizeof result;
  return result;
}

// ---- values ----

inline Value floats(const std::vector<float>& elements, const std::vector<int64_t>& dims) {
  auto value = make<Value>(api().CreateTensor, FOLIO_FLOAT, dims.data(), dims.size());
  void* data = nullptr;
  EXPECT_TRUE(is_ok(api().GetTensorMutableData(value.get(), &data)));
  std::copy(elements.begin(), elements.end(), static_cast<float*>(data));
  return value;
}

inline Value int64_scalar(int64_t number) {
  auto value = make<Value>(api().CreateTensor, FOLIO_INT64, nullptr, size_t{0});
  void* data = nullptr;
  EXPECT_TRUE(is_ok(api().GetTensorMutableData(value.get(), &data)));
  *static_cast<int64_t*>(data) = number;
  return value;
}

inline std::vector<float> floats_of(const FolioValue* value) {
  const void* data = nullptr;
  size_t count = 0;
  EXPECT_TRUE(is_ok(api().GetTensorData(value, &data)));
  EXPECT_TRUE(is_ok(api().GetTensorElementCount(value, &count)));
  const auto* first = static_cast<const float*>(data);
  return first ? std::vector<float>(first, first + count) : std::vector<float>();
}

inline std::vector<int64_t> dims_of(const FolioValue* value) {
  const int64_t* dims = nullptr;
  size_t count = 0;
  EXPECT_TRUE(is_ok(api().GetTensorDims(value, &dims, &count)));
  return std::vector<int64_t>(dims, dims + count);
}

// ---- models ----

// y = x + [10, 20, 30] and z = x - [10, 20, 30], x [batch, 3]; the added tensor is called "w".
std::string add_model();
// y = x @ w, x [batch, 4], w [4, 4] of 0 to 15: an operator that packs its weight.
std::string matmul_model();
// y = a + count, by a Loop of `count` rounds: runs as long as a test wants, with many steps.
std::string loop_model();
// t = s, a tensor of strings [n].
std::string string_model();
// y = the initializer [1, 2, 3]; x [1] is read by nobody.
std::string constant_model();
// Like add_model, but "w" lies in the external file "weights.bin".
std::string external_model();
std::string external_bytes();

inline Session session_of(const std::string& model, const FolioSessionOptions* options = nullptr) {
  return make<Session>(api().CreateSessionFromArray, static_cast<const FolioEnv*>(nullptr),
                       static_cast<const void*>(model.data()), model.size(), options);
}

// Runs with one input and one new output.
inline FolioStatus* run_one(FolioSession* session, const char* input, FolioValue* value,
                            const char* output, Value* result,
                            const FolioRunOptions* options = nullptr) {
  FolioValue* raw = nullptr;
  FolioStatus* status = api().Run(session, options, &input, &value, 1, &output, 1, &raw);
  result->reset(raw);
  return status;
}

using folio::testing::TempFolder;

}  // namespace capi_test
