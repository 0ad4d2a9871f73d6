// WeightIds: names constants before anybody computes or reads them.
//
//   place     where the bytes stand in a mapping of this process: nothing is read
//   content   what they are: a hash that holds in every process; bytes of files are hashed at most
//             once (core/prepack/pack_library.h remembers)
//
// Both name a computed constant by its recipe: operator, attributes and the names of its inputs,
// and the arithmetic unless the operator is exact (OpDef::is_exact).
//
// Threads: one load.
#pragma once

#include <string>
#include <unordered_map>

#include "core/model/graph.h"
#include "core/prepack/pack_library.h"

namespace folio {

// The content of a constant whose bytes stand in a file. Any thread.
ContentId content_of_file_bytes(const Initializer& constant, PackLibrary& library);

class WeightIds {
 public:
  // `library` may be null: then nobody asks for contents.
  WeightIds(PackLibrary* library, std::string arithmetic)
      : library_(library), arithmetic_(std::move(arithmetic)) {}

  // Names every computed constant of a graph and its subgraphs by its recipe. Call it before the
  // first is computed: a recipe is gone then.
  void name_recipes(const Graph& graph);

  ContentId place(const Initializer& constant) { return id(constant, Tier::kPlace); }
  ContentId content(const Initializer& constant) { return id(constant, Tier::kContent); }

 private:
  enum class Tier { kPlace, kContent };
  using Known = std::unordered_map<const Initializer*, ContentId>;

  Known& known(Tier tier) { return tier == Tier::kPlace ? places_ : contents_; }
  ContentId id(const Initializer& constant, Tier tier);
  ContentId bytes_id(const Initializer& constant, Tier tier);
  ContentId recipe_id(const Initializer& constant, Tier tier);

  PackLibrary* library_;
  std::string arithmetic_;
  Known places_;
  Known contents_;
};

}  // namespace folio
