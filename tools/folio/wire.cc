#include "tools/folio/wire.h"

#include <cstring>

#include "tools/folio/cli.h"

namespace folio_cli {

namespace {

constexpr int kDepthMax = 16;  // of containers in containers

void put_number(uint64_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_bytes(const void* bytes, size_t count, std::string* out) {
  put_number(count, out);
  out->append(static_cast<const char*>(bytes), count);
}

void put_value(const HostValue& value, std::string* out) {
  put_number(static_cast<uint64_t>(value.kind), out);
  put_number(static_cast<uint64_t>(value.type), out);
  put_bytes(value.dims.data(), value.dims.size() * sizeof(int64_t), out);
  put_bytes(value.bytes.data(), value.bytes.size(), out);
  put_number(value.strings.size(), out);
  for (const std::string& text : value.strings) put_bytes(text.data(), text.size(), out);
  put_number(value.parts.size(), out);
  for (const HostValue& part : value.parts) put_value(part, out);
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  uint64_t number() {
    uint64_t number = 0;
    std::memcpy(&number, take(sizeof number), sizeof number);
    return number;
  }

  std::string text() {
    const uint64_t count = number();
    return std::string(take(count), count);
  }

  HostValue value(int depth) {
    if (depth > kDepthMax) fail();
    HostValue value;
    value.kind = static_cast<folio::ValueKind>(number());
    value.type = static_cast<folio::ElementType>(number());
    const std::string dims = text();
    value.dims.resize(dims.size() / sizeof(int64_t));
    if (!value.dims.empty()) {
      std::memcpy(value.dims.data(), dims.data(), value.dims.size() * sizeof(int64_t));
    }
    const uint64_t count = number();
    const auto* first = reinterpret_cast<const std::byte*>(take(count));
    value.bytes.assign(first, first + count);
    for (uint64_t i = number(); i > 0; --i) value.strings.push_back(text());
    for (uint64_t i = number(); i > 0; --i) value.parts.push_back(this->value(depth + 1));
    return value;
  }

 private:
  [[noreturn]] static void fail() {
    throw CliError(kExitCannotRun, "a process did not write all of its outputs");
  }

  const char* take(uint64_t count) {
    if (count > bytes_.size() - at_) fail();
    const char* first = bytes_.data() + at_;
    at_ += count;
    return first;
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string pack_values(const std::vector<HostValue>& values) {
  std::string bytes;
  put_number(values.size(), &bytes);
  for (const HostValue& value : values) put_value(value, &bytes);
  return bytes;
}

std::vector<HostValue> unpack_values(const std::string& bytes) {
  Reader reader(bytes);
  std::vector<HostValue> values;
  for (uint64_t i = reader.number(); i > 0; --i) values.push_back(reader.value(0));
  return values;
}

}  // namespace folio_cli
