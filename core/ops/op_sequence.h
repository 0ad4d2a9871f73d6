// What operators on sequences share: reading an input sequence, making a new one, its type.
//
// Owns:    a sequence owns its tensors, so elements pass through OpRun::owned before they enter.
// Threads: sequences are immutable once they are an output.
// Errors:  kInvalidArgument when an input is no sequence, or elements do not fit it.
#pragma once

#include "core/ops/op.h"

namespace folio {

// Input i as a sequence.
Result<const SequenceData*> sequence_input(const OpRun& run, int i);

// Appends tensor `value` of `input`, which must be of the sequence's type, as an owned element.
Status append_tensor(const OpRun& run, int input, SequenceData* sequence);

// The element type of a sequence, unknown when it is not known to be one; kInvalidGraph when it is
// known to be something else.
Result<TypeInfo> sequence_element(const OpInfer& infer, int i);

}  // namespace folio
