// export_model: a Model as the names and structure that files hold.
//
// Flow:    save_model gives the optimized Model; onnx_writer and ort_writer read what comes out.
// Does:    ids become names again: inputs and outputs keep theirs, every other value gets one that
//          no enclosing graph has. What nothing reads is left out. Operator sets are imported as
//          the nodes need them.
// Owns:    copies of the structure. Payloads are shared with the Model, not copied, and recipes not
//          computed: an InitializerDef's tensor has its type and shape, its bytes come from the
//          payload of the same place.
// Threads: one, while saving.
// Errors:  kFail for a node that only Folio has (a pass left it there: a programming error);
//          kNotImplemented for operators of versions that one file cannot hold together.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/graph.h"

namespace folio {

// The bytes of one or more initializers: equal ones (one recipe, or one place in memory) are one.
struct Payload {
  Ref<Initializer> initializer;
  uint64_t bytes = 0;  // in a file; 0 for strings
  bool is_string = false;
};

struct ExportedModel {
  ModelDef def;
  std::vector<Payload> payloads;
  // Index into `payloads` of each initializer of a graph of `def`.
  std::unordered_map<const GraphDef*, std::vector<size_t>> initializer_payloads;
  // What each node with subgraphs takes from the graphs around it, for formats that list it.
  std::unordered_map<const NodeDef*, std::vector<std::string>> implicit_inputs;
};

enum class VersionsOf {
  kImports,  // a node has the version that its domain is imported at (.onnx)
  kNodes,    // each node has its own (.ort)
};

[[gnu::cold]] Result<std::unique_ptr<ExportedModel>> export_model(const Model& model,
                                                                  VersionsOf versions);

// Metadata entries of Folio's own (folio.content_id, folio.data_file, folio.pack_file): about a
// file, not a model. They are not carried over; a writer adds those of its file.
inline constexpr std::string_view kOwnMetadataPrefix = "folio.";

// The value of an attribute of one: protobuf's default where a pass left none.
template <typename T>
T first_of(const std::vector<T>& values) {
  return values.empty() ? T() : values[0];
}

// True for domains whose operators only Folio has.
bool is_private_domain(std::string_view domain);

}  // namespace folio
