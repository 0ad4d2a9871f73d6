#include "core/formats/onnx/tensor_reader.h"

#include <bit>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/payload.h"

namespace folio {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are used in place");

constexpr uint32_t kFieldCount = 16;  // above every number in TensorFields

// One TensorProto before its payload is decoded.
struct TensorScan {
  Bytes message;
  std::string name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  int64_t data_location = TensorFields::kLocationDefault;
  bool has_segment = false;
  ExternalLocation external;
  // Per field number: elements found (bytes for the fixed-width fields), how many
  // times the field occurred, and its last occurrence (not for varints and strings).
  uint64_t found[kFieldCount] = {};
  uint64_t pieces[kFieldCount] = {};
  Bytes last[kFieldCount];
};

// Which of the typed fields holds `dtype`.
uint32_t typed_field(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kComplex64:
      return TensorFields::kFloatData;
    case DType::kDouble:
    case DType::kComplex128:
      return TensorFields::kDoubleData;
    case DType::kInt64:
      return TensorFields::kInt64Data;
    case DType::kUint32:
    case DType::kUint64:
      return TensorFields::kUint64Data;
    case DType::kString:
      return TensorFields::kStringData;
    default:
      return TensorFields::kInt32Data;  // 32 bits and narrower; sub-byte types one byte per entry
  }
}

const char* field_name(uint32_t field) {
  switch (field) {
    case TensorFields::kFloatData:
      return "float_data";
    case TensorFields::kDoubleData:
      return "double_data";
    case TensorFields::kInt64Data:
      return "int64_data";
    case TensorFields::kUint64Data:
      return "uint64_data";
    case TensorFields::kStringData:
      return "string_data";
    case TensorFields::kRawData:
      return "raw_data";
    default:
      return "int32_data";
  }
}

Status scan_payload_field(WireReader& reader, uint32_t field, TensorScan* scan) {
  Bytes& last = scan->last[field];
  uint64_t count = 1;
  switch (field) {
    case TensorFields::kRawData:
      FOLIO_RETURN_IF_ERROR(reader.read_bytes(&last));
      count = last.size();
      break;
    case TensorFields::kFloatData:
      FOLIO_RETURN_IF_ERROR(reader.read_fixed(sizeof(float), &last));
      count = last.size();
      break;
    case TensorFields::kDoubleData:
      FOLIO_RETURN_IF_ERROR(reader.read_fixed(sizeof(double), &last));
      count = last.size();
      break;
    case TensorFields::kStringData:
      FOLIO_RETURN_IF_ERROR(reader.read_bytes(&last));
      break;
    default:
      FOLIO_RETURN_IF_ERROR(reader.count_varints(&count));
      break;
  }
  scan->found[field] += count;
  scan->pieces[field] += 1;
  return Status::ok();
}

Status scan_tensor(LoadContext& context, Bytes message, TensorScan* scan) {
  scan->message = message;
  WireReader reader = context.reader(message, "TensorProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case TensorFields::kDims:
        return reader.append_ints(&scan->dims, kMaxRank);
      case TensorFields::kDataType:
        return reader.read_int(&scan->data_type);
      case TensorFields::kName:
        return reader.read_name("name", &scan->name);
      case TensorFields::kDataLocation:
        return reader.read_int(&scan->data_location);
      case TensorFields::kSegment:
        scan->has_segment = true;
        return reader.skip();
      case TensorFields::kFloatData:
      case TensorFields::kInt32Data:
      case TensorFields::kStringData:
      case TensorFields::kInt64Data:
      case TensorFields::kRawData:
      case TensorFields::kDoubleData:
      case TensorFields::kUint64Data:
        return scan_payload_field(reader, field, scan);
      case TensorFields::kExternalData: {
        Bytes entry;
        std::string key;
        std::string value;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&entry));
        FOLIO_RETURN_IF_ERROR(read_entry(context, entry, &key, &value));
        return add_external_entry(key, value, &scan->external);
      }
      default:
        return reader.skip();
    }
  });
}

std::string type_text(const TensorScan& scan) {
  return cat(dtype_name(static_cast<DType>(scan.data_type)), dims_text(scan.dims));
}

// Checks everything that does not need the payload. `out_bytes`: what the elements take in a file
// (strings: their count).
Status check_scan(const TensorScan& scan, uint64_t* out_bytes) {
  if (scan.has_segment) return not_implemented("tensors in segments are not supported");
  if (!dtype_known(scan.data_type)) {
    return invalid_graph("element type ", scan.data_type,
                         scan.data_type == 0 ? " (UNDEFINED)" : " is unknown");
  }
  if (scan.data_location != TensorFields::kLocationDefault &&
      scan.data_location != TensorFields::kLocationExternal) {
    return invalid_graph("data_location ", scan.data_location, " is unknown");
  }
  uint64_t count = 0;
  if (!checked_count(scan.dims, &count)) {
    return invalid_graph("dims ", dims_text(scan.dims), " are negative or overflow");
  }
  const auto dtype = static_cast<DType>(scan.data_type);
  if (dtype == DType::kString) {
    *out_bytes = count;
  } else if (!dtype_bytes(dtype, count, out_bytes)) {
    return invalid_graph(type_text(scan), " has more bytes than fit 64 bits");
  }
  return Status::ok();
}

// Entries are cut to the element's width as ONNX writers pack them: float16 as its 16 bits, int8
// with or without sign extension. bool: anything but 0 is true.
void store_entry(DType dtype, size_t width, uint64_t value, uint8_t* out) {
  if (dtype == DType::kBool) value = value != 0;
  std::memcpy(out, &value, width);  // little-endian: the low bytes come first
}

// Second pass over the message: decodes the occurrences of `field` one behind the other. The scan
// has counted them, and `tensor` has room for so many: another process may write to the file
// between the two, which must not make them more.
Status decode_field(LoadContext& context, const TensorScan& scan, uint32_t field, size_t width,
                    Tensor* tensor) {
  uint8_t* out = tensor->raw_mut();
  uint64_t left = scan.found[field];
  WireReader reader = context.reader(scan.message, "TensorProto");
  const Status read = reader.each_field([&](uint32_t number) -> Status {
    if (number != field) return reader.skip();
    switch (field) {
      case TensorFields::kFloatData:
      case TensorFields::kDoubleData: {
        const size_t entry_bytes = field == TensorFields::kFloatData ? 4 : 8;
        Bytes piece;
        FOLIO_RETURN_IF_ERROR(reader.read_fixed(entry_bytes, &piece));
        if (piece.size() > left) return reader.recount_error();
        if (!piece.empty()) std::memcpy(out, piece.data(), piece.size());
        out += piece.size();
        left -= piece.size();
        return Status::ok();
      }
      case TensorFields::kStringData: {
        if (left == 0) return reader.recount_error();
        auto* text = reinterpret_cast<std::string*>(out);
        out += sizeof(std::string);
        --left;
        return reader.read_string(text);
      }
      default:
        return reader.each_varint(left, [&](uint64_t value) {
          store_entry(tensor->dtype(), width, value, out);
          out += width;
          --left;
        });
    }
  });
  if (!read.is_ok() || left == 0) return read;
  return error(Code::kModelChanged, field_name(field),
               " holds less than was counted: the file changed while it was read");
}

Status size_error(const TensorScan& scan, uint64_t expected, uint64_t found, uint32_t field) {
  const bool strings = field == TensorFields::kStringData;
  return invalid_graph(type_text(scan), " takes ", expected, strings ? " strings" : " bytes",
                       ", but ", field_name(field), " holds ", found);
}

Status decode_typed(LoadContext& context, const TensorScan& scan, uint64_t bytes,
                    InitializerDef* out) {
  const auto dtype = static_cast<DType>(scan.data_type);
  const uint32_t field = typed_field(dtype);
  const bool fixed = field == TensorFields::kFloatData || field == TensorFields::kDoubleData;
  const size_t width = dtype_is_subbyte(dtype) ? 1 : static_cast<size_t>(dtype_bits(dtype)) / 8;
  // What one counted unit is worth: see TensorScan::found.
  const uint64_t unit = fixed || dtype == DType::kString ? 1 : width;
  uint64_t found = 0;
  if (!checked_mul(scan.found[field], unit, &found) || found != bytes) {
    return size_error(scan, bytes, found, field);
  }
  const Shape shape((Span<const int64_t>(scan.dims)));
  if (fixed && scan.pieces[field] == 1) {
    return place_payload(context.source, scan.last[field], dtype, shape, out);
  }
  FOLIO_TRY(out->tensor, allocate_tensor(dtype, shape));
  return decode_field(context, scan, field, width, &out->tensor);
}

Status decode_external(LoadContext& context, const TensorScan& scan, uint64_t bytes,
                       InitializerDef* out) {
  const auto dtype = static_cast<DType>(scan.data_type);
  if (dtype == DType::kString) return invalid_graph("strings cannot be external data");
  const Shape shape((Span<const int64_t>(scan.dims)));
  if (const Tensor* given = context.options.given ? context.options.given(scan.name) : nullptr) {
    if (given->dtype() != dtype || !(given->shape() == shape)) {
      return invalid_argument("the model has ", dtype_name(dtype), " ", shape.to_string(),
                              ", the value given is ", dtype_name(given->dtype()), " ",
                              given->shape().to_string());
    }
    out->tensor = *given;
    return Status::ok();
  }
  FOLIO_TRY(const ExternalPayload payload,
            context.external.find(*context.source, scan.external, bytes));
  return place_payload(payload.source, payload.bytes, dtype, shape, out);
}

Status decode_tensor(LoadContext& context, const TensorScan& scan, InitializerDef* out) {
  uint64_t bytes = 0;
  FOLIO_RETURN_IF_ERROR(check_scan(scan, &bytes));
  if (scan.data_location == TensorFields::kLocationExternal) {
    return decode_external(context, scan, bytes, out);
  }
  const auto dtype = static_cast<DType>(scan.data_type);
  const uint32_t field = typed_field(dtype);
  // An empty raw_data beside a typed field is what some writers leave there.
  const Bytes raw = scan.last[TensorFields::kRawData];  // not repeated: the last one counts
  const bool has_raw = scan.pieces[TensorFields::kRawData] > 0;
  if (!has_raw || (raw.empty() && scan.found[field] > 0)) {
    return decode_typed(context, scan, bytes, out);
  }
  if (dtype == DType::kString) return invalid_graph("strings cannot be raw_data");
  if (scan.found[field] > 0) {
    return invalid_graph("both raw_data and ", field_name(field), " are filled");
  }
  if (raw.size() != bytes) return size_error(scan, bytes, raw.size(), TensorFields::kRawData);
  const Shape shape((Span<const int64_t>(scan.dims)));
  return place_payload(context.source, raw, dtype, shape, out);
}

}  // namespace

Status read_entry(LoadContext& context, Bytes message, std::string* key, std::string* value) {
  WireReader reader = context.reader(message, "StringStringEntryProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case EntryFields::kKey:
        return reader.read_name("key", key);
      case EntryFields::kValue:
        return reader.read_string(value);
      default:
        return reader.skip();
    }
  });
}

Status read_tensor(LoadContext& context, Bytes message, InitializerDef* out) {
  FOLIO_RETURN_IF_ERROR(context.step(message));
  TensorScan scan;
  Status scanned = scan_tensor(context, message, &scan);
  if (scanned.is_ok()) scanned = decode_tensor(context, scan, out);
  if (!scanned.is_ok()) return std::move(scanned).with_context("tensor " + quoted(scan.name));
  out->name = std::move(scan.name);
  return Status::ok();
}

}  // namespace folio
