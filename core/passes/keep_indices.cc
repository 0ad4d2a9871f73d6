// ScatterElements reads its indices before an Expand repeats them:
//   Expand to the dims of the updates, ScatterElements (`y.scatter_add(0, i.expand_as(x), x)`)
// becomes folio's ScatterElements, whose indices broadcast. All types.
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

void keep(Pattern& p, NodeId id) {
  const NodeId made = p.made_by(p.input(id, 1), "Expand");
  if (made == kNone || !p.same_dims(p.input(id, 1), p.input(id, 2))) return;
  const ValueId indices = p.input(made, 0);
  const Dims* before = p.dims(indices);
  if (!before || before->size() != p.dims(p.input(id, 2))->size()) return;
  const Node& old = p.node(id);
  Node direct = make_node(old.name, "folio", old.op_type, old.version, old.inputs);
  direct.attributes = old.attributes;
  direct.inputs[1] = indices;
  p.replace(id, std::move(direct));
}

}  // namespace

void keep_indices(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed,
      [](Pattern& p) {
        for (NodeId id = 0; id < p.count(); ++id) {
          if (p.is(id, "ScatterElements")) keep(p, id);
        }
      },
      "ScatterElements");
}

}  // namespace folio
