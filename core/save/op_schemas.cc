#include "core/save/op_schemas.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/base/text.h"

namespace folio {
namespace {

struct Row {
  std::string_view domain;
  std::string_view type;
  std::string_view versions;  // ascending, "6,13,14"
  std::string_view inputs;    // "T,Tind", a variadic one with '*'
  std::string_view outputs;
};

constexpr Row kRows[] = {
#include "core/save/op_schemas.inc"
};

// The newest of the row's versions up to `version`; 0: none.
int newest(const Row& row, int version) {
  int best = 0;
  each_part(row.versions, ',', [&](std::string_view text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    if (number <= version) best = std::max(best, number);
  });
  return best;
}

std::vector<std::string_view> parameters(std::string_view list, bool* variadic) {
  std::vector<std::string_view> out;
  each_part(list, ',', [&](std::string_view name) {
    *variadic = name.back() == '*';
    if (*variadic) name.remove_suffix(1);
    out.push_back(name);
  });
  return out;
}

}  // namespace

bool find_op_schema(std::string_view domain, std::string_view type, int version, OpSchema* out) {
  const Row* found = nullptr;
  int since = 0;
  for (const Row& row : kRows) {
    if (row.type != type || row.domain != domain) continue;
    const int candidate = newest(row, version);
    if (candidate <= since) continue;
    since = candidate;
    found = &row;
  }
  if (!found) return false;
  *out = OpSchema();
  out->since = since;
  out->inputs = parameters(found->inputs, &out->variadic_input);
  out->outputs = parameters(found->outputs, &out->variadic_output);
  return true;
}

}  // namespace folio
