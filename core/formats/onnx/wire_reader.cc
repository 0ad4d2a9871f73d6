#include "core/formats/onnx/wire_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/utf8.h"
#include "core/model/model_def.h"

namespace folio {
namespace {

constexpr uint64_t kMaxFieldNumber = (1 << 29) - 1;

bool is_known(WireType type) {
  return type <= WireType::kLengthDelimited || type == WireType::kFixed32;
}

const char* wire_type_name(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "varint";
    case WireType::kFixed64:
      return "64-bit";
    case WireType::kLengthDelimited:
      return "length-delimited";
    case WireType::kFixed32:
      return "32-bit";
  }
  return "unknown";
}

// Bytes of a value that has no length of its own; 0 for the others.
uint64_t fixed_width(WireType type) {
  if (type == WireType::kFixed64) return 8;
  return type == WireType::kFixed32 ? 4 : 0;
}

const char* as_chars(const uint8_t* bytes) { return reinterpret_cast<const char*>(bytes); }

}  // namespace

bool take_long_varint(Bytes* bytes, uint64_t* out) {
  const size_t most = std::min<size_t>(bytes->size(), 10);
  uint64_t value = 0;
  for (size_t i = 0; i < most; ++i) {
    const uint8_t byte = (*bytes)[i];
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    *bytes = bytes->subspan(i + 1);
    *out = value;
    return true;
  }
  return false;
}

FieldCounts::FieldCounts(Bytes message) {
  uint64_t key = 0;
  while (take_varint(&message, &key)) {
    const auto type = static_cast<WireType>(key & 7);
    uint64_t number = 0;
    const bool has_number = type == WireType::kVarint || type == WireType::kLengthDelimited;
    if (!is_known(type) || (has_number && !take_varint(&message, &number))) return;
    const uint64_t length = type == WireType::kLengthDelimited ? number : fixed_width(type);
    if (length > message.size()) return;
    message = message.subspan(length);
    if (key >> 3 < std::size(counts_)) ++counts_[key >> 3];
  }
}

WireReader::WireReader(Bytes message, const uint8_t* file_begin, const char* message_name)
    : rest_(message),
      file_begin_(file_begin),
      field_begin_(message.data()),
      message_name_(message_name) {}

Status WireReader::field_error(std::string_view what) const {
  return error(Code::kInvalidProtobuf, "byte ", field_begin_ - file_begin_, ": ", message_name_,
               " field ", field_, " ", what);
}

Status WireReader::take_key() {
  field_begin_ = rest_.data();
  uint64_t key = 0;
  const bool ends = take_varint(&rest_, &key);
  type_ = static_cast<WireType>(key & 7);
  if (ends && is_known(type_) && key >> 3 > 0 && key >> 3 <= kMaxFieldNumber) {
    field_ = static_cast<uint32_t>(key >> 3);
    return Status::ok();
  }
  return error(Code::kInvalidProtobuf, "byte ", field_begin_ - file_begin_, ": ", message_name_,
               " has no valid field here (",
               ends ? cat("number ", key >> 3, ", wire type ", key & 7) : "its key does not end",
               ")");
}

Status WireReader::expect(WireType type) const {
  if (type_ == type) return Status::ok();
  return field_error(
      cat("has wire type ", wire_type_name(type_), ", expected ", wire_type_name(type)));
}

Status WireReader::take_length(uint64_t* out) {
  if (!take_varint(&rest_, out)) return field_error("has a damaged length");
  if (*out > rest_.size()) {
    return field_error(cat("says ", *out, " bytes, but only ", rest_.size(),
                           " are left: the file is truncated or damaged"));
  }
  if (*out > std::numeric_limits<uint32_t>::max()) {
    return field_error(cat("has ", *out, " bytes; at most 4294967295 are supported"));
  }
  return Status::ok();
}

Status WireReader::skip() {
  uint64_t length = fixed_width(type_);
  if (type_ == WireType::kLengthDelimited) FOLIO_RETURN_IF_ERROR(take_length(&length));
  uint64_t number = 0;
  const bool ends = type_ != WireType::kVarint || take_varint(&rest_, &number);
  if (!ends || length > rest_.size()) return field_error("is truncated or damaged");
  rest_ = rest_.subspan(length);
  return Status::ok();
}

Status WireReader::read_int(int64_t* out) {
  FOLIO_RETURN_IF_ERROR(expect(WireType::kVarint));
  uint64_t value = 0;
  if (!take_varint(&rest_, &value)) return field_error("is truncated or damaged");
  *out = static_cast<int64_t>(value);
  return Status::ok();
}

Status WireReader::read_float(float* out) {
  FOLIO_RETURN_IF_ERROR(expect(WireType::kFixed32));
  if (rest_.size() < sizeof *out) return field_error("is truncated");
  std::memcpy(out, rest_.data(), sizeof *out);
  rest_ = rest_.subspan(sizeof *out);
  return Status::ok();
}

Status WireReader::read_bytes(Bytes* out) {
  FOLIO_RETURN_IF_ERROR(expect(WireType::kLengthDelimited));
  uint64_t length = 0;
  FOLIO_RETURN_IF_ERROR(take_length(&length));
  *out = rest_.subspan(0, length);
  rest_ = rest_.subspan(length);
  return Status::ok();
}

Status WireReader::read_string(std::string* out) {
  Bytes bytes;
  FOLIO_RETURN_IF_ERROR(read_bytes(&bytes));
  out->assign(as_chars(bytes.data()), bytes.size());
  return Status::ok();
}

Status WireReader::read_name(const char* field, std::string* out) {
  Bytes bytes;
  FOLIO_RETURN_IF_ERROR(read_bytes(&bytes));
  const auto at = field_begin_ - file_begin_;
  if (bytes.size() > kMaxNameBytes) {
    return invalid_graph("byte ", at, ": ", message_name_, ".", field, " has ", bytes.size(),
                         " bytes; at most ", kMaxNameBytes, " are allowed");
  }
  // The copy is checked: the file may change at any time.
  out->assign(as_chars(bytes.data()), bytes.size());
  if (!utf8_valid(*out)) {
    return invalid_graph("byte ", at, ": ", message_name_, ".", field, " is not valid UTF-8: '",
                         utf8_shortened(utf8_repaired(out->substr(0, 100)), 100), "'");
  }
  return Status::ok();
}

Status WireReader::append_name(const char* field, std::vector<std::string>* out) {
  return read_name(field, &out->emplace_back());
}

Status WireReader::read_text(std::string* out) {
  FOLIO_RETURN_IF_ERROR(read_string(out));
  if (!utf8_valid(*out)) *out = utf8_repaired(*out);
  return Status::ok();
}

Status WireReader::append_ints(std::vector<int64_t>* out, size_t max_count) {
  uint64_t count = 0;
  const WireReader here = *this;
  FOLIO_RETURN_IF_ERROR(count_varints(&count));
  if (count > max_count || out->size() > max_count - count) {
    return invalid_graph("byte ", field_begin_ - file_begin_, ": ", message_name_, " field ",
                         field_, " has ", out->size() + count, " or more values; at most ",
                         max_count, " are supported");
  }
  *this = here;
  // Unpacked ones come one by one, and most lists are short.
  if (out->empty()) out->reserve(std::max<size_t>(count, 4));
  return each_varint(count, [&](uint64_t value) { out->push_back(static_cast<int64_t>(value)); });
}

Status WireReader::append_floats(std::vector<float>* out) {
  Bytes bytes;
  FOLIO_RETURN_IF_ERROR(read_fixed(sizeof(float), &bytes));
  const size_t before = out->size();
  out->resize(before + bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(out->data() + before, bytes.data(), bytes.size());
  return Status::ok();
}

Status WireReader::read_fixed(size_t width, Bytes* out) {
  if (fixed_width(type_) == width) {
    const Bytes here = rest_;
    FOLIO_RETURN_IF_ERROR(skip());
    *out = here.subspan(0, width);
    return Status::ok();
  }
  FOLIO_RETURN_IF_ERROR(read_bytes(out));
  if (out->size() % width == 0) return Status::ok();
  return field_error(cat("has ", out->size(), " bytes, not a multiple of ", width));
}

Status WireReader::recount_error() const {
  return error(Code::kModelChanged, "byte ", field_begin_ - file_begin_, ": ", message_name_,
               " field ", field_,
               " holds more than was counted: the file changed while it was read");
}

Status WireReader::count_varints(uint64_t* out) {
  if (type_ == WireType::kVarint) {
    *out = 1;
    return skip();
  }
  Bytes packed;
  FOLIO_RETURN_IF_ERROR(read_bytes(&packed));
  if (!packed.empty() && packed.back() >= 0x80) return field_error("ends inside a packed value");
  *out = static_cast<uint64_t>(
      std::count_if(packed.begin(), packed.end(), [](uint8_t byte) { return byte < 0x80; }));
  return Status::ok();
}

}  // namespace folio
