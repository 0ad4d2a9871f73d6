// Reads and writes the .pb files of ONNX's test layout: TensorProto, SequenceProto, OptionalProto.
//
// Flow:    input_<i>.pb and output_<i>.pb hold one message each; which one, the graph's declared
//          type says.
// Threads: any.
// Errors:  CliError: what is wrong with the bytes; the caller adds the file's name.
#pragma once

#include <string>

#include "tools/folio/host_value.h"

namespace folio_cli {

// `kind` is the declared kind; FOLIO_KIND_UNKNOWN reads a TensorProto.
HostValue parse_pb(const std::string& message, folio::ValueKind kind);
std::string serialize_pb(const HostValue& value);

// The same with a file's name in errors.
HostValue read_pb(const std::string& path, folio::ValueKind kind);

// A whole file; CliError if it cannot be read.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

}  // namespace folio_cli
