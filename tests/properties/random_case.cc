#include "tests/properties/random_case.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/model/attributes.h"

namespace folio::properties {
namespace {

// ---------------------------------------------------------------- attributes that operators read

using Asked = std::map<std::string, AttributeDef::Type>;
Asked g_asked;  // by the operator that is tried

void note_attribute(std::string_view name, AttributeDef::Type type) {
  const auto [it, is_new] = g_asked.try_emplace(std::string(name), type);
  if (!is_new && it->second == AttributeDef::Type::kUndefined) it->second = type;
}

// ---------------------------------------------------------------- cases

// An operator's inputs often agree in type and shape; so do most of these.
void draw_inputs(Draw& draw, int count, Case* out) {
  const DType main = draw.dtype();
  const Shape base = draw.shape();
  for (int i = 0; i < count; ++i) {
    if (i > 0 && draw.one_in(12)) {
      out->inputs.emplace_back();
      continue;
    }
    const DType dtype = draw.one_in(3) ? draw.dtype() : main;
    Shape shape = base;
    if (draw.one_in(3)) shape = draw.shape();
    if (draw.one_in(4)) shape = draw.one_in(3) ? Shape{} : Shape{draw.below(5)};
    Value value(draw.tensor(dtype, shape));
    if (draw.one_in(16)) value = make_sequence(dtype, {value});
    out->inputs.push_back({std::move(value)});
  }
}

Case random_case(const OpDef& def, const Asked& attributes, Numbers numbers, Draw& draw) {
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(draw.below(std::min(most - least, 4) + 1));
  };
  Case out;
  const int newest = std::max(def.since, std::min(def.until, kNewestOpset));
  out.version = def.since + static_cast<int>(draw.below(newest - def.since + 1));
  out.domain = def.domain;
  out.type = def.type;
  draw_inputs(draw, between(def.min_inputs, def.max_inputs), &out);
  const int64_t rare = 1 + draw.below(4);  // one in so many is there
  for (const auto& [name, type] : attributes) {
    if (draw.one_in(rare)) out.attributes.push_back(draw.attribute(name, type));
  }
  out.outputs = between(def.min_outputs, def.max_outputs);
  if (numbers == Numbers::kTame) out.outputs = std::max(1, out.outputs);
  return out;
}

// One of the inputs' dims, and those of the same size, of which some are meant to be the same, are
// 0: a batch, a sequence, a cache without elements.
void empty_dim(Draw& draw, Case* out) {
  std::vector<int64_t> sizes;
  for (const Case::Input& input : out->inputs) {
    if (!input.value.is_tensor()) continue;
    const Shape& shape = input.value.tensor().shape();
    sizes.insert(sizes.end(), shape.begin(), shape.end());
  }
  if (sizes.empty()) return;
  const int64_t size = draw.of(sizes);
  for (Case::Input& input : out->inputs) {
    if (!input.value.is_tensor()) continue;
    Shape shape = input.value.tensor().shape();
    if (std::find(shape.begin(), shape.end(), size) == shape.end()) continue;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == size) shape[axis] = 0;
    }
    input.value = Value(draw.tensor(input.value.tensor().dtype(), shape));
  }
}

// Another tensor, attribute or number of things in one place, or a dim without elements.
void bend(const Asked& attributes, Draw& draw, Case* out) {
  if (draw.one_in(5)) return empty_dim(draw, out);
  const size_t places = out->inputs.size() + attributes.size() + 1;
  auto place = static_cast<size_t>(draw.below(static_cast<int64_t>(places)));
  if (place < out->inputs.size()) {
    Value& value = out->inputs[place].value;
    const bool is_tensor = value.is_tensor();
    const DType dtype = is_tensor && draw.one_in(2) ? value.tensor().dtype() : draw.dtype();
    const Shape shape = is_tensor && draw.one_in(2) ? value.tensor().shape() : draw.shape();
    value = draw.one_in(6) ? Value() : Value(draw.tensor(dtype, shape));
    return;
  }
  place -= out->inputs.size();
  if (place == attributes.size()) {
    if (draw.one_in(2)) {
      ++out->outputs;
    } else if (!out->inputs.empty()) {
      out->inputs.pop_back();
    }
    return;
  }
  const auto& [name, type] = *std::next(attributes.begin(), static_cast<int64_t>(place));
  AttributeDef made = draw.attribute(name, type);
  for (AttributeDef& attribute : out->attributes) {
    if (attribute.name == name) return std::swap(attribute, made);
  }
  out->attributes.push_back(std::move(made));
}

uint64_t seed_of(const OpDef& def, int round) {
  uint64_t seed = static_cast<uint64_t>(round) * 1000003 + static_cast<uint64_t>(def.since) +
                  static_cast<uint64_t>(env_number("FOLIO_RANDOM_SEED", 0)) * 0x9E3779B97F4A7C15;
  for (const char c : name_of(def.domain, def.type)) seed = seed * 131 + static_cast<uint8_t>(c);
  return seed;
}

}  // namespace

std::string name_of(std::string_view domain, std::string_view type) {
  return domain.empty() ? std::string(type) : cat(domain, ".", type);
}

int env_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

std::vector<Sample> samples_of(const OpDef& def) {
  std::vector<Sample> out;
  for (const Sample& sample : samples()) {
    if (sample.domain != def.domain || sample.type != def.type) continue;
    Sample part = sample;
    part.since = std::max(sample.since, def.since);
    part.until = std::min(sample.until, def.until);
    if (part.since <= part.until) out.push_back(part);
  }
  return out;
}

Attempts::Attempts(const OpDef& def, Numbers numbers)
    : def_(def), numbers_(numbers), samples_(samples_of(def)) {
  g_asked.clear();
  set_attribute_hook(note_attribute);
}

Attempts::~Attempts() { set_attribute_hook(nullptr); }

Attempt Attempts::next() {
  const Asked attributes = g_asked;
  const auto at = static_cast<size_t>(round_ / 2);
  const bool is_sample = round_ % 2 == 1 && !samples_.empty();
  const bool is_bent = is_sample && numbers_ == Numbers::kHostile && at / samples_.size() % 2 == 1;
  Draw draw(seed_of(def_, round_), is_sample && !is_bent ? Numbers::kTame : numbers_);
  ++round_;
  Case drawn = is_sample ? case_of(samples_[at % samples_.size()], draw)
                         : random_case(def_, attributes, numbers_, draw);
  if (is_bent) bend(attributes, draw, &drawn);
  return {std::move(drawn), is_sample && !is_bent, std::move(draw)};
}

}  // namespace folio::properties
