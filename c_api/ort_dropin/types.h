// Types of inputs, outputs and values, as the program's OrtTypeInfo.
//
// Flow:    session slots describe ports with type_of_info, value slots values with type_of_value.
// Owns:    nothing; fills what the caller has made.
// Threads: any.
// Errors:  Folio's, as OrtStatus.
#pragma once

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {

OrtStatus* type_of_info(const FolioValueInfo* info, OrtTypeInfo* out);
OrtStatus* type_of_value(const FolioValue* value, OrtTypeInfo* out);
OrtStatus* type_of_tensor(const FolioValue* value, OrtTensorTypeAndShapeInfo* out);

}  // namespace folio::ort
