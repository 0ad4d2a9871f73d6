#include "tools/folio/random_inputs.h"

#include <cmath>

#include "tools/folio/element_type.h"

namespace folio_cli {

namespace {

uint64_t split_mix(uint64_t* state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double uniform(uint64_t* state) { return static_cast<double>(split_mix(state) >> 11) * 0x1p-53; }

}  // namespace

RandomInputs::RandomInputs(const InputOptions& options) : seed_(options.seed) {
  for (const std::string& option : options.dims) {
    const auto [name, value] = split_assignment("--dim", option, SplitAt::kLast);
    dims_[name] = parse_count("--dim " + name, value, 0);
  }
  for (const std::string& option : options.ranges) {
    const auto [name, value] = split_assignment("--range", option, SplitAt::kLast);
    const size_t colon = value.find(':');
    if (colon == std::string::npos) {
      throw CliError(kExitUsage, "--range needs NAME=LO:HI, got '" + option + "'");
    }
    const double lo = parse_number("--range " + name, value.substr(0, colon));
    const double hi = parse_number("--range " + name, value.substr(colon + 1));
    if (lo > hi) {
      throw CliError(kExitUsage, "--range needs NAME=LO:HI with LO <= HI, got '" + option + "'");
    }
    ranges_[name] = {lo, hi};
  }
}

HostValue RandomInputs::make(const Port& input) const {
  if (input.kind != FOLIO_KIND_TENSOR || is_complex(input.type) ||
      (facts_of(input.type).bits == 0 && input.type != FOLIO_STRING)) {
    throw CliError(
        kExitCannotRun,
        "input '" + input.name + "' is of a kind that cannot be made up: give it with --input");
  }
  HostValue result;
  result.type = input.type;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const auto named = dims_.find(input.symbolic_dims[i]);
    const int64_t open = named == dims_.end() ? 1 : named->second;
    result.dims.push_back(input.dims[i] >= 0 ? input.dims[i] : open);
  }
  const size_t count = checked_count(result.dims, result.type);
  const bool whole = !is_float(input.type);
  Range range = {whole ? 1.0 : -1.0, 1.0};
  const auto given = ranges_.find(input.name);
  if (given != ranges_.end()) range = given->second;
  uint64_t state = seed_;
  for (const char c : input.name) state = state * 131 + static_cast<unsigned char>(c);
  result.bytes.resize(packed_bytes(input.type, input.type == FOLIO_STRING ? 0 : count));
  for (size_t i = 0; i < count; ++i) {
    const double u = uniform(&state);
    const double value = whole ? std::floor(range.lo + u * (range.hi - range.lo + 1))
                               : range.lo + u * (range.hi - range.lo);
    if (input.type == FOLIO_STRING) {
      result.strings.push_back(std::to_string(static_cast<int64_t>(value)));
    } else {
      store_double(input.type, value, result.bytes.data(), i);
    }
  }
  return result;
}

void RandomInputs::check_names(const std::vector<Port>& inputs) const {
  std::set<std::string> symbols;
  std::set<std::string> names;
  for (const Port& input : inputs) {
    for (const std::string& symbol : input.symbolic_dims) {
      if (!symbol.empty()) symbols.insert(symbol);
    }
    names.insert(input.name);
  }
  for (const auto& dim : dims_) {
    if (symbols.count(dim.first) != 0) continue;
    throw CliError(
        kExitUsage,
        "--dim " + dim.first + ": no input has a dim of that name; " +
            (symbols.empty() ? "none has a name"
                             : "there are: " + list_text({symbols.begin(), symbols.end()})));
  }
  for (const auto& range : ranges_) {
    if (names.count(range.first) != 0) continue;
    throw CliError(kExitUsage,
                   "--range " + range.first + ": no input has that name; " +
                       (names.empty() ? "there is none"
                                      : "there are: " + list_text({names.begin(), names.end()})));
  }
}

std::set<std::string> RandomInputs::free_dims(const std::vector<Port>& inputs) const {
  std::set<std::string> names;
  for (const Port& input : inputs) {
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const std::string& name = input.symbolic_dims[i];
      if (input.dims[i] < 0 && dims_.count(name) == 0) names.insert(name.empty() ? "?" : name);
    }
  }
  return names;
}

}  // namespace folio_cli
