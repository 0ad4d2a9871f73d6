#include "core/plan/weight_ids.h"

#include <cstring>
#include <vector>

#include "core/ops/op_registry.h"
#include "core/ops/op_unpack.h"

namespace folio {
namespace {

constexpr uint64_t kPlaceOfFile = 'a';
constexpr uint64_t kBytes = 'b';
constexpr uint64_t kRecipe = 'r';
constexpr uint64_t kAbsent = '-';

void add_type(DType dtype, const Shape& shape, IdHasher* hash) {
  hash->add(static_cast<uint64_t>(dtype));
  hash->add(static_cast<uint64_t>(shape.rank()));
  for (const int64_t dim : shape.dims()) hash->add(static_cast<uint64_t>(dim));
}

ContentId hash_strings(const Tensor& tensor) {
  IdHasher hash;
  for (int64_t i = 0; i < tensor.count(); ++i) hash.add(tensor.data<std::string>()[i]);
  return hash.id();
}

void add_tensor(const Tensor& tensor, IdHasher* hash) {
  add_type(tensor.dtype(), tensor.shape(), hash);
  hash->add(tensor.is_string() ? hash_strings(tensor) : hash_bytes({tensor.raw(), tensor.bytes()}));
}

void add_attributes(const Attributes& attributes, IdHasher* hash) {
  hash->add(attributes.all().size());
  for (const AttributeDef& attribute : attributes.all()) {
    hash->add(attribute.name);
    hash->add(static_cast<uint64_t>(attribute.type));
    hash->add(attribute.floats.size());
    for (const float number : attribute.floats) {
      uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof(bits));
      hash->add(uint64_t{bits});
    }
    hash->add(attribute.ints.size());
    for (const int64_t number : attribute.ints) hash->add(static_cast<uint64_t>(number));
    hash->add(attribute.strings.size());
    for (const std::string& text : attribute.strings) hash->add(text);
    hash->add(attribute.tensors.size());
    for (const Tensor& tensor : attribute.tensors) add_tensor(tensor, hash);
  }
}

}  // namespace

bool stands_in_mapping(const Initializer& constant) {
  return constant.source && constant.source->serial() != 0;
}

ContentId content_of_digest(const ContentId& digest, DType dtype, const Shape& shape) {
  IdHasher hash;
  hash.add(kBytes);
  hash.add(digest);
  add_type(dtype, shape, &hash);
  return hash.id();
}

PackLibrary::Digest content_of_file_bytes(const Initializer& constant, PackLibrary& library) {
  const Tensor& tensor = *constant.tensor;
  const PackLibrary::Digest digest =
      library.digest(*constant.source, constant.offset, {tensor.raw(), tensor.bytes()});
  return {content_of_digest(digest.id, constant.dtype, constant.shape), digest.is_declared};
}

void WeightIds::name_recipes(const Graph& graph) {
  for (const GraphValue& value : graph.values) {
    if (!value.initializer || value.initializer->tensor) continue;
    place(*value.initializer);
    // What the model has packed is not looked for: it need not be read for a name. Once unpacked,
    // its bytes tell one.
    if (library_ && !packed_blob_of(*value.initializer)) content(*value.initializer);
    if (older_) twin(*value.initializer);
  }
  for (const Node& node : graph.nodes) {
    for (const auto& subgraph : node.subgraphs) name_recipes(*subgraph);
  }
}

ContentId WeightIds::id(const Initializer& constant, Tier tier) {
  if (constant.tensor) {
    const auto it = known(tier).find(&constant);
    if (it != known(tier).end()) return it->second;
    return known(tier)[&constant] = bytes_id(constant, tier);
  }
  // Depth first with a stack of our own: chains of recipes may be long.
  std::vector<const Initializer*> stack{&constant};
  while (!stack.empty()) {
    const Initializer* top = stack.back();
    if (known(tier).count(top)) {
      stack.pop_back();
      continue;
    }
    const size_t depth = stack.size();
    if (!top->tensor) {
      for (const Ref<Initializer>& input : top->recipe->inputs) {
        if (input && !known(tier).count(input.get())) stack.push_back(input.get());
      }
    }
    if (stack.size() > depth) continue;
    known(tier)[top] = top->tensor ? bytes_id(*top, tier) : recipe_id(*top, tier);
    stack.pop_back();
  }
  return known(tier)[&constant];
}

ContentId WeightIds::bytes_id(const Initializer& constant, Tier tier) {
  const Tensor& tensor = *constant.tensor;
  const bool is_placed = tier != Tier::kContent && stands_in_mapping(constant);
  const auto older = tier == Tier::kTwin && constant.source ? older_->find(constant) : std::nullopt;
  if (constant.source && library_ && !is_placed && !older) {
    const PackLibrary::Digest content = content_of_file_bytes(constant, *library_);
    if (content.is_declared) declared_.insert(&constant);
    return content.id;
  }
  IdHasher hash;
  if (older) {
    hash.add(kPlaceOfFile);
    hash.add(older->source->serial());
    hash.add(older->offset);
    hash.add(older->bytes);
  } else if (is_placed) {
    hash.add(kPlaceOfFile);
    hash.add(constant.source->serial());
    hash.add(constant.offset);
    hash.add(tensor.bytes());
  } else {
    hash.add(kBytes);
    hash.add(tensor.is_string() ? hash_strings(tensor)
                                : hash_bytes({tensor.raw(), tensor.bytes()}));
  }
  add_type(constant.dtype, constant.shape, &hash);
  return hash.id();
}

bool WeightIds::is_equal_leaf(const Initializer& constant) {
  // Bytes that stand in no file were named by what they are; of computed ones nobody knows any more
  // what they were made from.
  if (!constant.source) return computed_.count(&constant) == 0;
  if (constant.source->serial() == 0) return true;
  const auto [it, fresh] = equal_.try_emplace(&constant, false);
  if (!fresh) return it->second;
  const auto older = older_->find(constant);
  return it->second = older && has_same_bytes(constant, *older);
}

bool WeightIds::has_equal_twin(const Initializer& constant) {
  const auto known = equal_.find(&constant);
  if (known != equal_.end()) return known->second;
  const bool is_equal = compare_twin(constant);
  equal_[&constant] = is_equal;  // asked again when the recipe may be gone
  return is_equal;
}

bool WeightIds::compare_twin(const Initializer& constant) {
  std::vector<const Initializer*> waiting{&constant};
  std::unordered_set<const Initializer*> seen;
  while (!waiting.empty()) {
    const Initializer* next = waiting.back();
    waiting.pop_back();
    if (!seen.insert(next).second) continue;
    if (!next->recipe) {
      if (!is_equal_leaf(*next)) return false;
      continue;
    }
    for (const Ref<Initializer>& input : next->recipe->inputs) {
      if (input) waiting.push_back(input.get());
    }
  }
  return true;
}

ContentId WeightIds::recipe_id(const Initializer& constant, Tier tier) {
  const Recipe& recipe = *constant.recipe;
  if (tier == Tier::kTwin) computed_.insert(&constant);
  IdHasher hash;
  hash.add(kRecipe);
  hash.add(recipe.domain);
  hash.add(recipe.op_type);
  hash.add(static_cast<uint64_t>(recipe.version));
  add_attributes(recipe.attributes, &hash);
  hash.add(static_cast<uint64_t>(recipe.output));
  hash.add(static_cast<uint64_t>(recipe.output_count));
  hash.add(recipe.inputs.size());
  for (const Ref<Initializer>& input : recipe.inputs) {
    if (input) {
      hash.add(known(tier)[input.get()]);
      if (tier == Tier::kContent && is_declared(*input)) declared_.insert(&constant);
    } else {
      hash.add(kAbsent);
    }
  }
  const OpDef* def = op_registry().find(recipe.domain, recipe.op_type, recipe.version);
  if (!def || !def->is_exact) hash.add(arithmetic_);
  add_type(constant.dtype, constant.shape, &hash);
  return hash.id();
}

}  // namespace folio
