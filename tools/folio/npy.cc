#include "tools/folio/npy.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

const char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kAlignment = 64;  // of the data, as numpy does it

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

struct Header {
  std::string descr;
  bool fortran_order = false;
  folio::Dims dims;
};

// The text after `key:` in a header such as {'descr': '<f4', 'fortran_order': False, ...}.
std::string value_after(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos) fail("an .npy header without '" + key + "'");
  const size_t first = header.find_first_not_of(' ', colon + 1);
  return first == std::string::npos ? "" : header.substr(first);
}

Header parse_header(const std::string& text) {
  Header header;
  const std::string descr = value_after(text, "descr");
  const size_t end = descr.size() < 2 ? std::string::npos : descr.find(descr[0], 1);
  if (end == std::string::npos || (descr[0] != '\'' && descr[0] != '"')) {
    fail("an .npy file with fields or without a type");
  }
  header.descr = descr.substr(1, end - 1);
  header.fortran_order = value_after(text, "fortran_order").rfind("True", 0) == 0;
  const std::string shape = value_after(text, "shape");
  const size_t close = shape.find(')');
  if (shape.empty() || shape[0] != '(' || close == std::string::npos) {
    fail("an .npy file without a shape");
  }
  size_t at = 1;
  while (at < close) {
    const size_t comma = std::min(shape.find(',', at), close);
    std::string number = shape.substr(at, comma - at);
    number.erase(std::remove(number.begin(), number.end(), ' '), number.end());
    if (!number.empty()) header.dims.push_back(parse_count("a dim in an .npy file", number, 0));
    at = comma + 1;
  }
  return header;
}

FolioElementType type_of(const std::string& descr) {
  for (int i = 1; i <= FOLIO_COMPLEX128; ++i) {
    const auto type = static_cast<FolioElementType>(i);
    const char* npy = facts_of(type).npy;
    if (npy == nullptr) continue;
    // One byte has no order: numpy writes '|', others '<' too.
    if (descr == npy || (npy[0] == '|' && descr.substr(1) == npy + 1)) return type;
  }
  return FOLIO_UNDEFINED;
}

void append_utf8(uint32_t code, std::string* out) {
  if (code > 0x10ffff) fail("a character beyond Unicode in an .npy file");
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

// Bytes that are no UTF-8 become U+FFFD.
std::u32string decode_utf8(const std::string& text) {
  std::u32string result;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 9 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t code = more == 0 ? lead : lead & (0x3fu >> std::min<size_t>(more, 5));
    bool good = more <= 3 && i + more <= text.size();
    for (size_t k = 0; good && k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      code = code << 6 | (next & 0x3fu);
    }
    result.push_back(good ? code : U'\ufffd');
    if (good) i += more;
  }
  return result;
}

void parse_strings(const Header& header, const std::string& data, HostValue* out) {
  const bool utf32 = header.descr.find('U') != std::string::npos;
  const size_t kind = header.descr.find_first_of("US");
  const auto width = static_cast<size_t>(
      parse_count("the length of strings in an .npy file", header.descr.substr(kind + 1), 0));
  const size_t unit = utf32 ? 4 : 1;
  const size_t count = checked_count(header.dims, FOLIO_STRING);
  const size_t units = data.size() / unit;
  const bool fits = width == 0 ? data.empty() : units / width == count;
  if (!fits || count * width * unit != data.size()) {
    fail("an .npy file whose size does not fit its shape");
  }
  constexpr size_t kEmptyStringsMax = size_t{1} << 24;  // no bytes in the file bound them
  if (width == 0 && count > kEmptyStringsMax) fail("too many strings in an .npy file");
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t k = 0; k < width; ++k) {
      uint32_t code = 0;
      std::memcpy(&code, data.data() + (i * width + k) * unit, unit);
      if (utf32) {
        append_utf8(code, &text);
      } else {
        text.push_back(static_cast<char>(code));
      }
    }
    text.resize(text.find_last_not_of('\0') + 1);  // numpy pads with NUL
    out->strings.push_back(text);
  }
}

// Column-major data of `count` elements of `width` bytes, made row-major.
std::string transposed(const std::string& data, const folio::Dims& dims, size_t width) {
  std::string result(data.size(), '\0');
  folio::Dims at(dims.size(), 0);
  for (size_t from = 0; from < data.size(); from += width) {
    size_t to = 0;
    for (size_t k = 0; k < dims.size(); ++k) {
      to = to * static_cast<size_t>(dims[k]) + static_cast<size_t>(at[k]);
    }
    std::memcpy(&result[to * width], &data[from], width);
    for (size_t k = 0; k < dims.size() && ++at[k] == dims[k]; ++k) at[k] = 0;
  }
  return result;
}

// What the file has as raw bits, as the type that the caller knows it to be.
HostValue with_type(HostValue value, FolioElementType wanted) {
  if (wanted == FOLIO_UNDEFINED || wanted == value.type) return value;
  const ElementTypeFacts& facts = facts_of(wanted);
  const bool is_raw =
      !facts.npy_is_exact && facts.npy != nullptr && type_of(facts.npy) == value.type;
  if (!is_raw) return value;
  HostValue result = value;
  result.type = wanted;
  if (facts.bits >= 8) return result;
  const size_t count = value.element_count();
  result.bytes.assign(packed_bytes(wanted, count), std::byte{0});
  for (size_t i = 0; i < count; ++i) {
    store_bits(wanted, static_cast<uint32_t>(value.bytes[i]), result.bytes.data(), i);
  }
  return result;
}

// One byte per element, signed if the type is.
std::string unpacked(const HostValue& tensor) {
  std::string result(tensor.element_count(), '\0');
  const bool whole = is_integer(tensor.type);
  for (size_t i = 0; i < result.size(); ++i) {
    const double number = whole ? element_as_double(tensor.type, tensor.bytes.data(), i) : 0;
    const uint32_t bits = whole ? 0 : element_bits(tensor.type, tensor.bytes.data(), i);
    result[i] = static_cast<char>(whole ? static_cast<int>(number) : static_cast<int>(bits));
  }
  return result;
}

std::string data_of(const HostValue& tensor, std::string* descr) {
  if (tensor.type != FOLIO_STRING) {
    const ElementTypeFacts& facts = facts_of(tensor.type);
    *descr = facts.npy;
    if (facts.bits < 8) return unpacked(tensor);
    return std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  std::vector<std::u32string> decoded;
  size_t width = 1;
  for (const std::string& text : tensor.strings) {
    decoded.push_back(decode_utf8(text));
    width = std::max(width, decoded.back().size());
  }
  *descr = "<U" + std::to_string(width);
  std::string data(decoded.size() * width * 4, '\0');
  for (size_t i = 0; i < decoded.size(); ++i) {
    if (decoded[i].empty()) continue;
    std::memcpy(&data[i * width * 4], decoded[i].data(), decoded[i].size() * 4);
  }
  return data;
}

}  // namespace

HostValue parse_npy(const std::string& file, folio::ElementType wanted) {
  if (file.size() < kMagicBytes + 4 || file.compare(0, kMagicBytes, kMagic) != 0) {
    fail("not an .npy file");
  }
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(file[i])); };
  const size_t version = byte(6);
  const size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || file.size() < start) fail("an .npy file of unknown version");
  size_t header_bytes = byte(8) | byte(9) << 8;
  if (version > 1) header_bytes |= byte(10) << 16 | byte(11) << 24;
  if (header_bytes > file.size() - start) fail("an .npy file that ends within its header");
  const Header header = parse_header(file.substr(start, header_bytes));
  std::string data = file.substr(start + header_bytes);
  HostValue result;
  result.dims = header.dims;
  const bool is_order_free = header.dims.size() < 2;
  if (header.descr.size() > 1 && (header.descr[1] == 'U' || header.descr[1] == 'S')) {
    if (header.descr[0] == '>' || (header.fortran_order && !is_order_free)) {
      fail("strings that are big-endian or column-major in an .npy file");
    }
    result.type = FOLIO_STRING;
    parse_strings(header, data, &result);
    return result;
  }
  result.type = type_of(header.descr);
  if (result.type == FOLIO_UNDEFINED) fail("an .npy file of type '" + header.descr + "'");
  const size_t bytes = packed_bytes(result.type, checked_count(result.dims, result.type));
  if (data.size() != bytes) {
    fail(describe(result) + " needs " + std::to_string(bytes) + " bytes, the .npy file has " +
         std::to_string(data.size()));
  }
  if (header.fortran_order && !is_order_free) {
    data = transposed(data, header.dims, packed_bytes(result.type, 1));
  }
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  result.bytes.assign(first, first + data.size());
  return with_type(std::move(result), wanted);
}

std::string serialize_npy(const HostValue& tensor) {
  std::string descr;
  const std::string data = data_of(tensor, &descr);
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : tensor.dims) header += std::to_string(dim) + ",";
  header += "), }";
  const size_t unpadded = kMagicBytes + 4 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string file(kMagic, kMagicBytes);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

HostValue read_npy(const std::string& path, folio::ElementType wanted) {
  const std::string file = read_file(path);
  try {
    return parse_npy(file, wanted);
  } catch (const CliError& error) {
    fail(path + ": " + error.what());
  }
}

void write_npy(const std::string& path, const HostValue& tensor) {
  write_file(path, serialize_npy(tensor));
}

std::string npy_note(folio::ElementType type) {
  const ElementTypeFacts& facts = facts_of(type);
  if (facts.npy == nullptr || facts.npy_is_exact) return "";
  return (is_integer(type) ? "one byte per " : "raw bits of ") + std::string(facts.name);
}

}  // namespace folio_cli
