// One process of `folio compare-side`, and what it said.
//
// Threads: one.
// Errors:  a process that crashes, is too slow or says nothing is an error in what is returned.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace folio_cli {

struct SideSaid {
  nlohmann::json said;  // an object, perhaps an empty one
  std::string stage;    // where it failed: start, load, inputs, run, outputs; or ""
  std::string error;    // "": it did not
  int exit_code = 0;
};

// `arguments` begin with the executable; `timeout_seconds` is what they say, for the message.
SideSaid run_side(const std::vector<std::string>& arguments, uint32_t timeout_seconds);

// Of at least one number.
double median_of(std::vector<double> numbers);

}  // namespace folio_cli
