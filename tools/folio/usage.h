// What the command line is checked with, so that a refusal says what would have been right.
//
// Errors:  a check's message follows the option's name: "--jobs: needs a whole number ...".
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace folio_cli {

// Runs, processes, milliseconds: more of them is a typing error.
inline constexpr uint64_t kCountMax = 1'000'000'000;

// For CLI::Option::transform: digits only, of a number in [min, max].
CLI::Validator whole_number(uint64_t min, uint64_t max = kCountMax);

// For CLI::Option::check: finite and at least 0.
CLI::Validator real_number();

// What is wrong with the first of `words`, which a command has no place for, that looks like an
// option and is none of `options` ("--threads"); "": none does.
std::string wrong_option(const std::vector<std::string>& words,
                         const std::vector<std::string>& options);

// What is wrong with `word`, which stands where one of `commands` should; "": nothing stands there.
std::string wrong_command(const std::string& word, const std::vector<std::string>& commands);

}  // namespace folio_cli
