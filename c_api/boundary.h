// The border between the C table and the core: errors out, arguments in.
//
// Flow:    an entry wraps its body in `guarded`; the body checks its arguments with the helpers
//          here, calls the core and writes the out-parameters last.
// Owns:    nothing but the out-of-memory status, which exists from the start and is never freed.
// Threads: any.
// Errors:  every exception becomes a status: what the allocator throws OUT_OF_MEMORY, others FAIL.
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/span.h"
#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/os/throwing.h"
#include "folio/folio_c_api.h"

struct FolioStatus {
  FolioErrorCode code;
  const char* message;
};

namespace folio {

// NULL for ok. When there is no memory for the error, the out-of-memory status.
FolioStatus* to_c(const Status& status) noexcept;
FolioStatus* out_of_memory() noexcept;
FolioStatus* unexpected(const char* what) noexcept;
void release_status(FolioStatus* status) noexcept;

// Calls `body`, which returns a Status; lets no exception out.
template <typename Body>
FolioStatus* guarded(Body&& body) noexcept {
  if (!is_ready_to_throw()) return out_of_memory();
  try {
    return to_c(body());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a container larger than any memory
    return out_of_memory();
  } catch (const std::exception& exception) {
    return unexpected(exception.what());
  } catch (...) {
    return unexpected("an exception of no known type");
  }
}

// Returns INVALID_ARGUMENT from the body when the argument is NULL.
#define FOLIO_NOT_NULL(argument) \
  if ((argument) == nullptr) return invalid_argument("argument '" #argument "' is NULL")

// A load that was cancelled says so in the code that loads have.
Status as_load_error(Status status);

// A name given by the user: not NULL, valid UTF-8. `what` is the argument, for the message.
Status check_name(const char* name, const char* what);
Status check_index(size_t index, size_t count, const char* what);
// Memory that cannot be: it would go on past the last address.
Status check_memory(const void* data, size_t bytes);

// Dims and type of a tensor that the user wants.
Result<Shape> shape_of(const int64_t* dims, size_t dim_count);
Result<DType> dtype_of(FolioElementType type);
inline FolioElementType type_of(DType dtype) {
  return static_cast<FolioElementType>(static_cast<int>(dtype));
}

// A heap copy that ReleaseString frees.
char* copy_for_caller(std::string_view text);

Status size_error(size_t found, size_t expected, const char* type);

// Writes `value` to a struct of the caller's, as far as that reaches; its size stays.
template <typename T>
Status write_struct(T* out, T value, const char* type) {
  if (out->size < sizeof(T)) return size_error(out->size, sizeof(T), type);
  value.size = out->size;
  std::memcpy(static_cast<void*>(out), &value, sizeof(T));
  return Status::ok();
}

// The caller's struct as this version knows it. Every struct is as it was in version 1 so far.
template <typename T>
Status read_struct(const T* in, T* value, const char* type) {
  if (in->size < sizeof(T)) return size_error(in->size, sizeof(T), type);
  std::memcpy(static_cast<void*>(value), in, sizeof(T));
  return Status::ok();
}

}  // namespace folio
