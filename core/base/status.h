// Status and Result<T>: how every room reports that the world is wrong (file, argument, memory).
//
// Owns:    an OK Status is one null pointer; an error owns its code and message.
// Threads: value types; no sharing.
// Errors:  the lowest layer that knows writes the message (file, node, expected, found); layers
//          above may prefix where it happened with `with_context`, never repeat it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace folio {

// 0 to 12 are ONNX Runtime's OrtErrorCode numbers and names; ours start at 100 (design section 9).
enum class Code : int {
  kOk = 0,
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kNoModel = 4,
  kEngineError = 5,
  kRuntimeException = 6,
  kInvalidProtobuf = 7,
  kModelLoaded = 8,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kEpFail = 11,
  kModelLoadCancelled = 12,
  kCancelled = 100,
  kOutOfMemory = 101,
  kUnsupportedOperator = 102,
  kModelChanged = 103,
  kClosed = 104,
  kIo = 105,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other);
  Status& operator=(Status&&) noexcept = default;

  static Status ok() { return {}; }
  bool is_ok() const { return rep_ == nullptr; }
  Code code() const { return is_ok() ? Code::kOk : error_code(); }
  std::string_view message() const;

  // Prefixes an error's message with "`where`: ", unless that is how it begins; OK stays OK.
  Status with_context(std::string_view where) &&;

 private:
  struct Rep;
  struct Free {
    [[gnu::cold]] void operator()(Rep* rep) const noexcept;
  };

  // Out of line, as all that errors alone need: thousands of places have a Status.
  [[gnu::cold]] Code error_code() const;

  std::unique_ptr<Rep, Free> rep_;
};

namespace internal {
// What a message is made of: a text, which is not owned, or a number.
class Part {
 public:
  Part(std::string_view text) : kind_(kText), text_(text) {}
  Part(const char* text) : Part(std::string_view(text)) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  Part(char c) : kind_(kChar), char_(c) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Part(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = kDouble;
      double_ = number;
    } else if constexpr (std::is_signed_v<T>) {
      kind_ = kSigned;
      signed_ = number;
    } else {
      kind_ = kUnsigned;
      unsigned_ = number;
    }
  }

  void append_to(std::string* out) const;

 private:
  enum Kind { kText, kChar, kSigned, kUnsigned, kDouble };
  Kind kind_;
  union {
    std::string_view text_;
    char char_;
    int64_t signed_;
    uint64_t unsigned_;
    double double_;
  };
};

// Out of line, where messages are made: there are thousands of places with one.
std::string join(std::initializer_list<Part> parts);
[[gnu::cold]] Status make_error(Code code, std::initializer_list<Part> parts);
}  // namespace internal

// Concatenates strings and numbers: cat("input ", 1, " has rank ", 3).
template <typename... Parts>
std::string cat(const Parts&... parts) {
  return internal::join({internal::Part(parts)...});
}

template <typename... Parts>
Status error(Code code, const Parts&... parts) {
  return internal::make_error(code, {internal::Part(parts)...});
}

template <typename... Parts>
Status invalid_argument(const Parts&... parts) {
  return error(Code::kInvalidArgument, parts...);
}

template <typename... Parts>
Status invalid_graph(const Parts&... parts) {
  return error(Code::kInvalidGraph, parts...);
}

template <typename... Parts>
Status not_implemented(const Parts&... parts) {
  return error(Code::kNotImplemented, parts...);
}

// What `work` gives, or that it threw std::bad_alloc: for who knows of what it is part, such as a
// node, and puts that before the message.
template <typename Work>
Status catching_bad_alloc(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "out of memory");
  }
}

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Status take_status() && { return std::move(status_); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T take() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define FOLIO_CONCAT_INNER(a, b) a##b
#define FOLIO_CONCAT(a, b) FOLIO_CONCAT_INNER(a, b)

// FOLIO_RETURN_IF_ERROR(expr): passes an error Status up.
#define FOLIO_RETURN_IF_ERROR(expr)                 \
  do {                                              \
    ::folio::Status folio_status = (expr);          \
    if (!folio_status.is_ok()) return folio_status; \
  } while (false)

// FOLIO_TRY(const int axis, normalize_axis(...)): declares on success, passes the error up
// otherwise.
#define FOLIO_TRY(declaration, expr) \
  FOLIO_TRY_INNER(FOLIO_CONCAT(folio_result_, __LINE__), declaration, expr)
#define FOLIO_TRY_INNER(result, declaration, expr)             \
  auto result = (expr);                                        \
  if (!result.is_ok()) return std::move(result).take_status(); \
  declaration = std::move(result).take()

}  // namespace folio
