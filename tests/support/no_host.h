// What OpRun needs of a program, for tests that have none: outputs on the heap, no subgraphs.
#pragma once

#include "core/ops/op.h"

namespace folio {

class NoHost final : public OpHost {
 public:
  Result<Tensor> allocate_output(int, DType dtype, const Shape& shape) override {
    return allocate_tensor(dtype, shape);
  }
  Status run_subgraph(int, Span<const Value>, std::vector<Value>*) override { return Status::ok(); }
  Status check_cancelled() override { return Status::ok(); }
};

}  // namespace folio
