#include "core/formats/onnx/wire_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/utf8.h"
#include "core/model/model_def.h"

namespace folio {
namespace {

using protozero::pbf_wire_type;

const char* wire_type_name(pbf_wire_type type) {
  switch (type) {
    case pbf_wire_type::varint:
      return "varint";
    case pbf_wire_type::fixed64:
      return "64-bit";
    case pbf_wire_type::length_delimited:
      return "length-delimited";
    case pbf_wire_type::fixed32:
      return "32-bit";
    default:
      return "unknown";
  }
}

const char* as_chars(const uint8_t* bytes) { return reinterpret_cast<const char*>(bytes); }
const uint8_t* as_bytes(const char* chars) { return reinterpret_cast<const uint8_t*>(chars); }

}  // namespace

WireReader::WireReader(Bytes message, const uint8_t* file_begin, const char* message_name)
    : reader_(as_chars(message.data()), message.size()),
      file_begin_(file_begin),
      field_begin_(message.data()),
      message_name_(message_name) {}

const uint8_t* WireReader::position() const { return as_bytes(reader_.data().data()); }

bool WireReader::is_varint() const { return reader_.has_wire_type(pbf_wire_type::varint); }

Status WireReader::field_error(std::string_view what) const {
  return error(Code::kInvalidProtobuf, "byte ", field_begin_ - file_begin_, ": ", message_name_,
               " field ", field_, " ", what);
}

Result<bool> WireReader::next() {
  field_begin_ = position();
  try {
    const bool more = reader_.next();
    field_ = reader_.tag();
    return more;
  } catch (const protozero::exception& e) {
    return error(Code::kInvalidProtobuf, "byte ", field_begin_ - file_begin_, ": ", message_name_,
                 " has no valid field here (", e.what(), ")");
  }
}

Status WireReader::expect(pbf_wire_type type) const {
  if (reader_.has_wire_type(type)) return Status::ok();
  return field_error(cat("has wire type ", wire_type_name(reader_.wire_type()), ", expected ",
                         wire_type_name(type)));
}

// protozero cuts lengths to 32 bits, so they are tested here, in full, before it sees them.
Status WireReader::check_length() const {
  const protozero::data_view rest = reader_.data();
  const char* at = rest.data();
  const char* const end = rest.data() + rest.size();
  uint64_t length = 0;
  try {
    length = protozero::decode_varint(&at, end);
  } catch (const protozero::exception& e) {
    return field_error(cat("has a damaged length (", e.what(), ")"));
  }
  const auto left = static_cast<uint64_t>(end - at);
  if (length > left) {
    return field_error(cat("says ", length, " bytes, but only ", left,
                           " are left: the file is truncated or damaged"));
  }
  if (length > std::numeric_limits<uint32_t>::max()) {
    return field_error(cat("has ", length, " bytes; at most 4294967295 are supported"));
  }
  return Status::ok();
}

Status WireReader::skip() {
  if (reader_.has_wire_type(pbf_wire_type::length_delimited)) {
    FOLIO_RETURN_IF_ERROR(check_length());
  }
  try {
    reader_.skip();
  } catch (const protozero::exception& e) {
    return field_error(cat("is truncated or damaged (", e.what(), ")"));
  }
  return Status::ok();
}

Status WireReader::read_int(int64_t* out) {
  FOLIO_RETURN_IF_ERROR(expect(pbf_wire_type::varint));
  try {
    *out = reader_.get_int64();
  } catch (const protozero::exception& e) {
    return field_error(cat("is truncated or damaged (", e.what(), ")"));
  }
  return Status::ok();
}

Status WireReader::read_float(float* out) {
  FOLIO_RETURN_IF_ERROR(expect(pbf_wire_type::fixed32));
  try {
    *out = reader_.get_float();
  } catch (const protozero::exception& e) {
    return field_error(cat("is truncated (", e.what(), ")"));
  }
  return Status::ok();
}

Status WireReader::read_bytes(Bytes* out) {
  FOLIO_RETURN_IF_ERROR(expect(pbf_wire_type::length_delimited));
  FOLIO_RETURN_IF_ERROR(check_length());
  try {
    const protozero::data_view view = reader_.get_view();
    *out = Bytes(as_bytes(view.data()), view.size());
  } catch (const protozero::exception& e) {
    return field_error(cat("is truncated (", e.what(), ")"));
  }
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
  const std::string_view text(as_chars(bytes.data()), bytes.size());
  if (!utf8_valid(text)) {
    return invalid_graph("byte ", at, ": ", message_name_, ".", field, " is not valid UTF-8: '",
                         utf8_shortened(utf8_repaired(text.substr(0, 100)), 100), "'");
  }
  out->assign(text);
  return Status::ok();
}

Status WireReader::append_name(const char* field, std::vector<std::string>* out) {
  return read_name(field, &out->emplace_back());
}

Status WireReader::read_text(std::string* out) {
  Bytes bytes;
  FOLIO_RETURN_IF_ERROR(read_bytes(&bytes));
  *out = utf8_repaired(std::string_view(as_chars(bytes.data()), bytes.size()));
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
  return each_varint([&](uint64_t value) { out->push_back(static_cast<int64_t>(value)); });
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
  const auto single = width == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
  if (reader_.has_wire_type(single)) {
    const uint8_t* begin = position();
    FOLIO_RETURN_IF_ERROR(skip());
    *out = Bytes(begin, width);
    return Status::ok();
  }
  FOLIO_RETURN_IF_ERROR(read_bytes(out));
  if (out->size() % width == 0) return Status::ok();
  return field_error(cat("has ", out->size(), " bytes, not a multiple of ", width));
}

Status WireReader::count_varints(uint64_t* out) {
  if (is_varint()) {
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

Status WireReader::take_varint(Bytes* packed, uint64_t* out) const {
  const char* at = as_chars(packed->data());
  const char* const end = at + packed->size();
  try {
    *out = protozero::decode_varint(&at, end);
  } catch (const protozero::exception& e) {
    return field_error(cat("holds a damaged packed value (", e.what(), ")"));
  }
  *packed = packed->subspan(static_cast<size_t>(at - as_chars(packed->data())));
  return Status::ok();
}

}  // namespace folio
