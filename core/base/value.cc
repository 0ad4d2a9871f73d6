#include "core/base/value.h"

namespace folio {

SequenceData::SequenceData() = default;
SequenceData::~SequenceData() = default;

}  // namespace folio
