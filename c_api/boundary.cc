#include "c_api/boundary.h"

#include "core/base/utf8.h"

namespace folio {
namespace {

// Constant-initialised, so that it is there before and after everything else.
FolioStatus g_out_of_memory = {FOLIO_OUT_OF_MEMORY, "out of memory"};

struct OwnedStatus : FolioStatus {
  std::string text;
};

FolioStatus* make_status(FolioErrorCode code, std::string_view message) noexcept {
  try {
    auto status = std::make_unique<OwnedStatus>();
    status->text = utf8_repaired(message);
    status->code = code;
    status->message = status->text.c_str();
    return status.release();
  } catch (...) {
    return &g_out_of_memory;
  }
}

}  // namespace

FolioStatus* to_c(const Status& status) noexcept {
  if (status.is_ok()) return nullptr;
  return make_status(static_cast<FolioErrorCode>(static_cast<int>(status.code())),
                     status.message());
}

FolioStatus* out_of_memory() noexcept { return &g_out_of_memory; }

FolioStatus* unexpected(const char* what) noexcept { return make_status(FOLIO_FAIL, what); }

void release_status(FolioStatus* status) noexcept {
  if (status != &g_out_of_memory) delete static_cast<OwnedStatus*>(status);
}

Status as_load_error(Status status) {
  if (status.code() != Code::kCancelled) return status;
  return Status(Code::kModelLoadCancelled, std::string(status.message()));
}

Status check_name(const char* name, const char* what) {
  if (!name) return invalid_argument("argument '", what, "' is NULL");
  if (utf8_valid(name)) return Status::ok();
  return invalid_argument("argument '", what, "' is not valid UTF-8: '", name, "'");
}

Status check_memory(const void* data, size_t bytes) {
  if (bytes <= UINTPTR_MAX - reinterpret_cast<uintptr_t>(data)) return Status::ok();
  return invalid_argument("memory of ", bytes, " bytes does not fit behind the address given");
}

Status check_index(size_t index, size_t count, const char* what) {
  if (index < count) return Status::ok();
  return invalid_argument("index ", index, " is out of range: there are ", count, " ", what);
}

Result<Shape> shape_of(const int64_t* dims, size_t dim_count) {
  if (!dims && dim_count > 0) {
    return invalid_argument("argument 'dims' is NULL and 'dim_count' is ", dim_count);
  }
  return shape_from({dims, dim_count});
}

Result<DType> dtype_of(FolioElementType type) {
  const int number = static_cast<int>(type);
  if (number > 0 && dtype_known(number)) return static_cast<DType>(number);
  return invalid_argument("element type ", number, " is not one of FolioElementType");
}

char* copy_for_caller(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

Status size_error(size_t found, size_t expected, const char* type) {
  return invalid_argument("the size of ", type, " is ", found, ", expected at least ", expected,
                          ": set it to sizeof before the call");
}

}  // namespace folio
