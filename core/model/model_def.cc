#include "core/model/model_def.h"

namespace folio {

AttributeDef::AttributeDef() = default;
AttributeDef::AttributeDef(const AttributeDef& other) = default;
AttributeDef::AttributeDef(AttributeDef&& other) noexcept = default;
AttributeDef& AttributeDef::operator=(const AttributeDef& other) = default;
AttributeDef& AttributeDef::operator=(AttributeDef&& other) noexcept = default;
AttributeDef::~AttributeDef() = default;

NodeDef::NodeDef() = default;
NodeDef::NodeDef(const NodeDef& other) = default;
NodeDef::NodeDef(NodeDef&& other) noexcept = default;
NodeDef& NodeDef::operator=(const NodeDef& other) = default;
NodeDef& NodeDef::operator=(NodeDef&& other) noexcept = default;
NodeDef::~NodeDef() = default;

}  // namespace folio
