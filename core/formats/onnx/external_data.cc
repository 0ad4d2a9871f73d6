#include "core/formats/onnx/external_data.h"

#include <charconv>

#include "core/base/checked_math.h"
#include "core/base/utf8.h"

namespace folio {
namespace {

// Locations with which ONNX Runtime marks addresses in its own memory ("*/_ORT_MEM_ADDR_/*", the
// offset is a pointer). In a file they can only be an attack or a mistake.
constexpr std::string_view kMemoryTagPrefix = "*/_ORT_";

Result<uint64_t> parse_decimal(const std::string& key, const std::string& value) {
  uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const std::from_chars_result parsed = std::from_chars(value.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return invalid_graph("external data has ", key, " '",
                         utf8_shortened(utf8_repaired(value.substr(0, 40)), 40),
                         "', expected a decimal number below 2^64");
  }
  return number;
}

Status check_path(const std::string& path) {
  if (path.empty()) return invalid_graph("external data has no location");
  if (path.find('\0') != std::string::npos) {
    return invalid_graph("external data has a NUL byte in its location");
  }
  if (!utf8_valid(path)) return invalid_graph("external data location is not valid UTF-8");
  if (std::string_view(path).substr(0, kMemoryTagPrefix.size()) == kMemoryTagPrefix) {
    return invalid_graph("external data location '", utf8_shortened(path, 100),
                         "' names an address in memory, not a file");
  }
  return Status::ok();
}

}  // namespace

Status add_external_entry(const std::string& key, const std::string& value,
                          ExternalLocation* location) {
  if (key == "location") {
    location->path = value;
  } else if (key == "offset") {
    FOLIO_TRY(location->offset, parse_decimal(key, value));
  } else if (key == "length") {
    FOLIO_TRY(location->length, parse_decimal(key, value));
  }
  return Status::ok();
}

Result<ExternalPayload> ExternalFiles::find(const ByteSource& model,
                                            const ExternalLocation& location, uint64_t bytes) {
  FOLIO_RETURN_IF_ERROR(check_path(location.path));
  if (location.length && *location.length != bytes) {
    return invalid_graph("external data in '", utf8_shortened(location.path, 100), "' has length ",
                         *location.length, ", expected ", bytes, " bytes");
  }
  auto known = files_.find(location.path);
  if (known == files_.end()) {
    FOLIO_TRY(Ref<ByteSource> opened, model.open_sibling(location.path));
    known = files_.emplace(location.path, std::move(opened)).first;
  }
  const Bytes file = known->second->bytes();
  if (!range_inside(location.offset, bytes, file.size())) {
    return invalid_graph("external data file '", utf8_shortened(location.path, 100),
                         "' is too short: ", bytes, " bytes at offset ", location.offset,
                         " are needed, the file has ", file.size(), " bytes");
  }
  return ExternalPayload{known->second, location.offset, file.subspan(location.offset, bytes)};
}

}  // namespace folio
