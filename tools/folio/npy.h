// Reads and writes numpy's .npy files.
//
// Types:   those that numpy lacks are stored as their raw bits in unsigned integers (bfloat16 as
//          uint16, float8 as uint8); those of 2 or 4 bits as one element per byte. The name of
//          the type is not in the file: read_npy takes it.
// Format:  versions 1.0 to 3.0 are read, 1.0 is written. Little-endian; strings as UTF-32.
// Errors:  CliError that names the file.
#pragma once

#include <string>

#include "tools/folio/host_value.h"

namespace folio_cli {

// `wanted` is the type that the caller declares; raw bits become that type. FOLIO_UNDEFINED: the
// file's.
HostValue read_npy(const std::string& path, folio::ElementType wanted);
void write_npy(const std::string& path, const HostValue& tensor);

// The same between bytes; errors without a file.
HostValue parse_npy(const std::string& file, folio::ElementType wanted);
std::string serialize_npy(const HostValue& tensor);

// "", or what a reader of the file has to know: "raw bits of bfloat16".
std::string npy_note(folio::ElementType type);

}  // namespace folio_cli
