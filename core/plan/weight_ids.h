// WeightIds: names constants before anybody computes or reads them.
//
//   place     where the bytes stand in a mapping of this process: nothing is read
//   content   what they are: a hash that holds in every process; bytes of files are hashed at most
//             once (core/prepack/pack_library.h remembers)
//
//   twin      as place, but where the older model of a reload (weight_places.h) has the weights: a
//             guess by their names, until has_equal_twin compared the bytes
//
// All name a computed constant by its recipe: operator, attributes and the names of its inputs,
// and the arithmetic unless the operator is exact (OpDef::is_exact).
//
// Threads: one load.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/plan/weight_places.h"
#include "core/prepack/pack_library.h"

namespace folio {

// Whether the place of its bytes in a mapping names it; otherwise only what they are does.
bool stands_in_mapping(const Initializer& constant);

// The content of a constant whose bytes have this digest.
ContentId content_of_digest(const ContentId& digest, DType dtype, const Shape& shape);
// The content of a constant whose bytes stand in a file. Any thread.
PackLibrary::Digest content_of_file_bytes(const Initializer& constant, PackLibrary& library);

class WeightIds {
 public:
  // `library` may be null: then nobody asks for contents.
  WeightIds(PackLibrary* library, std::string arithmetic)
      : library_(library), arithmetic_(std::move(arithmetic)) {}

  // Null, as at first: there are no twins. Call it before a name is asked for.
  void set_older(const WeightPlaces* older) { older_ = older; }

  // Names every computed constant of a graph and its subgraphs by its recipe. Call it before the
  // first is computed: a recipe is gone then.
  void name_recipes(const Graph& graph);

  ContentId place(const Initializer& constant) { return id(constant, Tier::kPlace); }
  ContentId content(const Initializer& constant) { return id(constant, Tier::kContent); }
  // The model file's word alone stands for the content of `constant`, or of what it is made from.
  bool is_declared(const Initializer& constant) const { return declared_.count(&constant) != 0; }
  bool has_twins() const { return older_ != nullptr; }
  ContentId twin(const Initializer& constant) { return id(constant, Tier::kTwin); }
  // Whether everything that `constant` is made from is the older model's, byte by byte.
  bool has_equal_twin(const Initializer& constant);

 private:
  enum class Tier { kPlace, kContent, kTwin };
  using Known = std::unordered_map<const Initializer*, ContentId>;

  Known& known(Tier tier) {
    return tier == Tier::kPlace ? places_ : tier == Tier::kContent ? contents_ : twins_;
  }
  ContentId id(const Initializer& constant, Tier tier);
  ContentId bytes_id(const Initializer& constant, Tier tier);
  ContentId recipe_id(const Initializer& constant, Tier tier);

  bool is_equal_leaf(const Initializer& constant);
  bool compare_twin(const Initializer& constant);

  PackLibrary* library_;
  const WeightPlaces* older_ = nullptr;
  std::string arithmetic_;
  Known places_;
  Known contents_;
  Known twins_;
  std::unordered_set<const Initializer*> declared_;
  std::unordered_set<const Initializer*> computed_;     // had a recipe
  std::unordered_map<const Initializer*, bool> equal_;  // compared already
};

}  // namespace folio
