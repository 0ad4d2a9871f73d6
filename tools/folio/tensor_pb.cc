#include "tools/folio/tensor_pb.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"

namespace folio_cli {

namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

// Field numbers of onnx.proto and onnx-data.proto.
namespace tensor_field {
constexpr uint32_t kDims = 1, kDataType = 2, kFloatData = 4, kInt32Data = 5, kStringData = 6,
                   kInt64Data = 7, kRawData = 9, kDoubleData = 10, kUint64Data = 11,
                   kExternalData = 13;
}
namespace container_field {  // SequenceProto and OptionalProto
constexpr uint32_t kElemType = 2, kTensor = 3, kSparseTensor = 4, kSequence = 5, kMap = 6,
                   kOptional = 7;
}
namespace map_field {
constexpr uint32_t kKeyType = 2, kKeys = 3, kStringKeys = 4, kValues = 5;
}

// Sequences in sequences; real files have one level.
constexpr int kDepthMax = 16;

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

template <typename T>
void append(std::vector<std::byte>* bytes, T value) {
  const size_t old = bytes->size();
  bytes->resize(old + sizeof value);
  std::memcpy(bytes->data() + old, &value, sizeof value);
}

void require_wire(const pbf_reader& field, bool good) {
  if (!good) fail("field " + std::to_string(field.tag()) + " has a wrong wire type");
}

bool is_bytes(const pbf_reader& field) {
  return field.wire_type() == protozero::pbf_wire_type::length_delimited;
}

// sink(number) for each number of a repeated varint field, packed or not.
template <typename Sink>
void each_varint(pbf_reader& field, Sink sink) {
  if (is_bytes(field)) {
    for (const int64_t number : field.get_packed_int64()) sink(number);
    return;
  }
  require_wire(field, field.wire_type() == protozero::pbf_wire_type::varint);
  sink(field.get_int64());
}

// The same for float (width 4) and double (width 8): appends their bytes.
void append_fixed(pbf_reader& field, size_t width, std::vector<std::byte>* bytes) {
  if (is_bytes(field)) {
    const auto view = field.get_view();
    if (view.size() % width != 0) fail("packed numbers end within one");
    const auto* first = reinterpret_cast<const std::byte*>(view.data());
    bytes->insert(bytes->end(), first, first + view.size());
    return;
  }
  const auto expected =
      width == 4 ? protozero::pbf_wire_type::fixed32 : protozero::pbf_wire_type::fixed64;
  require_wire(field, field.wire_type() == expected);
  if (width == 4) {
    append(bytes, field.get_fixed32());
  } else {
    append(bytes, field.get_fixed64());
  }
}

// Int32Data holds what has no field of its own: each number is one element (or a pair of 4 bits).
void append_integer(FolioElementType type, int64_t number, std::vector<std::byte>* bytes) {
  switch (facts_of(type).bits) {
    case 64:
      return append(bytes, number);
    case 32:
      return append(bytes, static_cast<int32_t>(number));
    case 16:
      return append(bytes, static_cast<int16_t>(number));
    default:
      return append(bytes, static_cast<int8_t>(number));
  }
}

struct TypedFields {
  std::vector<std::byte> fixed;
  std::vector<int64_t> integers;
  std::string raw;
  bool has_raw = false;
};

void read_tensor_field(pbf_reader& field, HostValue* out, TypedFields* fields) {
  switch (field.tag()) {
    case tensor_field::kDims:
      return each_varint(field, [&](int64_t dim) { out->dims.push_back(dim); });
    case tensor_field::kDataType:
      require_wire(field, field.wire_type() == protozero::pbf_wire_type::varint);
      out->type = static_cast<FolioElementType>(field.get_int32());
      return;
    case tensor_field::kFloatData:
      return append_fixed(field, 4, &fields->fixed);
    case tensor_field::kDoubleData:
      return append_fixed(field, 8, &fields->fixed);
    case tensor_field::kInt32Data:
    case tensor_field::kInt64Data:
    case tensor_field::kUint64Data:
      return each_varint(field, [&](int64_t number) { fields->integers.push_back(number); });
    case tensor_field::kStringData:
      require_wire(field, is_bytes(field));
      out->strings.push_back(field.get_string());
      return;
    case tensor_field::kRawData:
      require_wire(field, is_bytes(field));
      fields->raw = field.get_bytes();
      fields->has_raw = true;
      return;
    case tensor_field::kExternalData:
      fail("external data in a test tensor");
    default:
      field.skip();
  }
}

HostValue parse_tensor(pbf_reader message) {
  HostValue result;
  TypedFields fields;
  while (message.next()) read_tensor_field(message, &result, &fields);
  const size_t count = checked_count(result.dims, result.type);
  const std::string what = describe(result);
  if (result.type == FOLIO_STRING) {
    if (result.strings.size() != count) {
      fail(what + " has " + std::to_string(result.strings.size()) + " strings");
    }
    return result;
  }
  if (facts_of(result.type).bits == 0) {
    fail("a tensor of type number " + std::to_string(result.type));
  }
  if (fields.has_raw) {
    const auto* first = reinterpret_cast<const std::byte*>(fields.raw.data());
    result.bytes.assign(first, first + fields.raw.size());
  } else {
    result.bytes = std::move(fields.fixed);
    for (const int64_t number : fields.integers) {
      append_integer(result.type, number, &result.bytes);
    }
  }
  const size_t expected = packed_bytes(result.type, count);
  if (result.bytes.size() != expected) {
    fail(what + " needs " + std::to_string(expected) + " bytes, the file has " +
         std::to_string(result.bytes.size()));
  }
  return result;
}

HostValue parse_container(pbf_reader message, folio::ValueKind kind, int depth);

// Scalars of one type become one tensor, as the library gives the values of a map.
HostValue joined(const HostValue& sequence) {
  HostValue result;
  result.dims = {static_cast<int64_t>(sequence.parts.size())};
  for (const HostValue& part : sequence.parts) {
    if (part.kind != FOLIO_KIND_TENSOR || part.element_count() != 1) return sequence;
    if (result.type != FOLIO_UNDEFINED && part.type != result.type) return sequence;
    result.type = part.type;
    result.bytes.insert(result.bytes.end(), part.bytes.begin(), part.bytes.end());
    result.strings.insert(result.strings.end(), part.strings.begin(), part.strings.end());
  }
  return result;
}

HostValue parse_map(pbf_reader message, int depth) {
  HostValue keys;
  HostValue values;
  while (message.next()) {
    switch (message.tag()) {
      case map_field::kKeyType:
        require_wire(message, message.wire_type() == protozero::pbf_wire_type::varint);
        keys.type = static_cast<FolioElementType>(message.get_int32());
        break;
      case map_field::kKeys:
        each_varint(message, [&](int64_t key) { append_integer(keys.type, key, &keys.bytes); });
        break;
      case map_field::kStringKeys:
        require_wire(message, is_bytes(message));
        keys.strings.push_back(message.get_string());
        break;
      case map_field::kValues:
        require_wire(message, is_bytes(message));
        values = joined(parse_container(message.get_message(), FOLIO_KIND_SEQUENCE, depth + 1));
        break;
      default:
        message.skip();
    }
  }
  if (keys.type != FOLIO_STRING && facts_of(keys.type).bits < 8) fail("a map without a key type");
  const size_t count = keys.type == FOLIO_STRING ? keys.strings.size()
                                                 : keys.bytes.size() / packed_bytes(keys.type, 1);
  keys.dims = {static_cast<int64_t>(count)};
  HostValue result;
  result.kind = FOLIO_KIND_MAP;
  result.parts = {std::move(keys), std::move(values)};
  return result;
}

HostValue parse_container(pbf_reader message, folio::ValueKind kind, int depth) {
  if (depth > kDepthMax) fail("sequences nested more than " + std::to_string(kDepthMax) + " deep");
  HostValue result;
  result.kind = kind;
  while (message.next()) {
    const uint32_t tag = message.tag();
    if (tag < container_field::kTensor || tag > container_field::kOptional) {
      message.skip();
      continue;
    }
    require_wire(message, is_bytes(message));
    if (tag == container_field::kSparseTensor) fail("a sparse tensor");
    pbf_reader part = message.get_message();
    if (tag == container_field::kTensor) {
      result.parts.push_back(parse_tensor(part));
    } else if (tag == container_field::kMap) {
      result.parts.push_back(parse_map(part, depth));
    } else {
      const auto inner =
          tag == container_field::kSequence ? FOLIO_KIND_SEQUENCE : FOLIO_KIND_OPTIONAL;
      result.parts.push_back(parse_container(part, inner, depth + 1));
    }
  }
  if (kind == FOLIO_KIND_OPTIONAL && result.parts.size() > 1) fail("an optional with two values");
  return result;
}

std::string tensor_message(const HostValue& value) {
  std::string message;
  pbf_writer writer(message);
  writer.add_packed_int64(tensor_field::kDims, value.dims.begin(), value.dims.end());
  writer.add_int32(tensor_field::kDataType, value.type);
  if (value.type == FOLIO_STRING) {
    for (const std::string& text : value.strings) {
      writer.add_bytes(tensor_field::kStringData, text);
    }
  } else {
    writer.add_bytes(tensor_field::kRawData, reinterpret_cast<const char*>(value.bytes.data()),
                     value.bytes.size());
  }
  return message;
}

}  // namespace

HostValue parse_pb(const std::string& message, folio::ValueKind kind) {
  try {
    const pbf_reader reader(message);
    if (kind == FOLIO_KIND_SEQUENCE || kind == FOLIO_KIND_OPTIONAL) {
      return parse_container(reader, kind, 0);
    }
    return kind == FOLIO_KIND_MAP ? parse_map(reader, 0) : parse_tensor(reader);
  } catch (const protozero::exception& error) {
    fail(std::string("not a protobuf message (") + error.what() + ")");
  }
}

std::string serialize_pb(const HostValue& value) {
  if (value.kind == FOLIO_KIND_TENSOR) return tensor_message(value);
  if (value.kind == FOLIO_KIND_MAP) fail("maps are not written");
  std::string message;
  pbf_writer writer(message);
  for (const HostValue& part : value.parts) {
    const bool is_tensor = part.kind == FOLIO_KIND_TENSOR;
    if (!is_tensor && part.kind != FOLIO_KIND_SEQUENCE) fail("a sequence of maps is not written");
    // SequenceProto.DataType and OptionalProto.DataType: 1 tensor, 3 sequence.
    if (&part == &value.parts.front()) {
      writer.add_int32(container_field::kElemType, is_tensor ? 1 : 3);
    }
    writer.add_message(is_tensor ? container_field::kTensor : container_field::kSequence,
                       serialize_pb(part));
  }
  return message;
}

std::string read_file(const std::string& path) {
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("cannot open " + path + ": " + std::strerror(errno));
  std::string bytes;
  char chunk[1 << 16];
  for (;;) {
    const size_t got = std::fread(chunk, 1, sizeof chunk, file.get());
    bytes.append(chunk, got);
    if (got < sizeof chunk) break;
  }
  if (std::ferror(file.get()) != 0) fail("cannot read " + path + ": " + std::strerror(errno));
  return bytes;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail("cannot write " + path + ": " + std::strerror(errno));
  const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
  const bool closed = std::fclose(file) == 0;
  if (written != bytes.size() || !closed) {
    fail("cannot write " + path + ": " + std::strerror(errno));
  }
}

HostValue read_pb(const std::string& path, folio::ValueKind kind) {
  const std::string message = read_file(path);
  try {
    return parse_pb(message, kind);
  } catch (const CliError& error) {
    fail(path + ": " + error.what());
  }
}

}  // namespace folio_cli
