// Values as bytes, from one process of this command to another on the same machine.
//
// Threads: any.
// Errors:  CliError if the bytes are not what pack_values made.
#pragma once

#include <string>
#include <vector>

#include "tools/folio/host_value.h"

namespace folio_cli {

std::string pack_values(const std::vector<HostValue>& values);
std::vector<HostValue> unpack_values(const std::string& bytes);

}  // namespace folio_cli
