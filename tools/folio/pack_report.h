// What the command says of packed weights: those that it wrote, and those that a session uses.
//
// JSON:    the object `pack` of folio bench and folio compare, docs/folio_command.md.
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

// What became of the weights of `session`, the process's only model.
nlohmann::ordered_json pack_use_json(const folio::Session& session);

// "packed weights: 0 made, 3 found, from: a pack file", of that object.
std::string pack_use_text(const nlohmann::json& use);

// Whether any are mapped from a pack file or a store.
bool is_from_file(const nlohmann::json& use);

}  // namespace folio_cli
