// What the command says of packed weights: those that it wrote.
//
// Threads: any.
// Errors:  none of its own.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "folio/folio.hpp"

namespace folio_cli {

// "512 bytes", "12.5 KB", "97.4 MB": units of 2^10.
std::string size_text(uint64_t bytes);

// "FILE: 3 weights packed, 1.2 MB, 4 were there"; `target` is a pack file or a store.
std::string written_text(const std::string& target, const FolioPackResult& result);

// The same for programs.
void add_written(const FolioPackResult& result, nlohmann::ordered_json* json);

}  // namespace folio_cli
