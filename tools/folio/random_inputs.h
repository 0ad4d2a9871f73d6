// Makes the inputs that nobody gave: seeded by the input's name, so that they are the same in every
// program that follows the rule.
//
// Rule:    state = seed; for each byte of the name: state = state * 131 + byte; then splitmix64.
//          u = (next >> 11) * 2^-53. Reals: lo + u * (hi - lo), from -1 to 1 unless a range is
//          given. Integers: floor(lo + u * (hi - lo + 1)), from 1 to 1. A dim that is not fixed is
//          1 unless its name has a value.
// Errors:  CliError for options that cannot be read, and for inputs that are no tensors.
#pragma once

#include <set>

#include "tools/folio/cli.h"
#include "tools/folio/host_value.h"
#include "tools/folio/port.h"

namespace folio_cli {

class RandomInputs {
 public:
  explicit RandomInputs(const InputOptions& options);

  HostValue make(const Port& input) const;

  // Throws CliError for names in --dim and --range that none of `inputs` has: typing errors.
  void check_names(const std::vector<Port>& inputs) const;

  // The dims of `inputs` that nothing gives a value, so that they become 1; "?": without a name.
  std::set<std::string> free_dims(const std::vector<Port>& inputs) const;

 private:
  struct Range {
    double lo;
    double hi;
  };

  uint64_t seed_;
  std::map<std::string, int64_t> dims_;
  std::map<std::string, Range> ranges_;
};

}  // namespace folio_cli
