// DepthToSpace and SpaceToDepth: blocks of pixels to channels and back.
//
// Source: ONNX operator spec, DepthToSpace, opsets 1, 11 (mode), 13; SpaceToDepth, opsets 1, 13.
// Shapes: DepthToSpace: x [n, c, h, w] -> y [n, c / b^2, h * b, w * b]; SpaceToDepth: the inverse.
// Math:   the channel of DCR is (i * b + j) * c' + c, of CRD (c * b + i) * b + j, where (i, j) is
//         the place in a block of b x b. SpaceToDepth: as DCR.
// Types:  all types.
// Errors: kInvalidArgument when dims are not multiples, or blocksize is below 1.
#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

struct Options {
  int64_t block = 1;
  bool crd = false;
};

Result<Options> parse(const Attributes& attrs, bool to_space, int version) {
  Options options;
  FOLIO_TRY(options.block, attrs.get_int("blocksize"));
  if (options.block < 1 || options.block > (int64_t{1} << 30)) {
    return invalid_graph("blocksize is ", options.block, ", expected 1 or more");
  }
  if (to_space && version >= 11) {
    FOLIO_TRY(const std::string mode, attrs.get_string("mode", "DCR"));
    if (mode != "DCR" && mode != "CRD") {
      return invalid_graph("mode is '", mode, "', expected DCR or CRD");
    }
    options.crd = mode == "CRD";
  }
  return options;
}

class DepthToSpace final : public OpKernel {
 public:
  explicit DepthToSpace(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const int64_t b = options_.block;
    if (x->rank() != 4 || x->dim(1) % (b * b) != 0) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", expected 4 dims, dim 1 a ",
                              "multiple of ", b * b);
    }
    const int64_t channels = x->dim(1) / (b * b);
    int64_t height = 0;
    int64_t width = 0;
    if (!checked_mul(x->dim(2), b, &height) || !checked_mul(x->dim(3), b, &width)) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", too large for blocks of ",
                              b);
    }
    FOLIO_TRY(const Shape shape,
              shape_from(std::vector<int64_t>{x->dim(0), channels, height, width}));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    const int64_t step_c = options_.crd ? b * b * strides[1] : strides[1];
    const int64_t step_j = options_.crd ? strides[1] : channels * strides[1];
    StridedView view;
    view.add(x->dim(0), strides[0]);
    view.add(channels, step_c);
    view.add(x->dim(2), strides[2]);
    view.add(b, step_j * b);
    view.add(x->dim(3), strides[3]);
    view.add(b, step_j);
    return copy_strided(run, view, *x, y);
  }

 private:
  Options options_;
};

class SpaceToDepth final : public OpKernel {
 public:
  explicit SpaceToDepth(int64_t block) : block_(block) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() != 4 || x->dim(2) % block_ != 0 || x->dim(3) % block_ != 0) {
      return invalid_argument("input 0 is ", x->shape().to_string(),
                              ", expected 4 dims, dims 2 and 3 multiples of ", block_);
    }
    const int64_t height = x->dim(2) / block_;
    const int64_t width = x->dim(3) / block_;
    int64_t channels = 0;
    if (!checked_mul(x->dim(1), block_ * block_, &channels)) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", too large for blocks of ",
                              block_);
    }
    FOLIO_TRY(const Shape shape,
              shape_from(std::vector<int64_t>{x->dim(0), channels, height, width}));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    StridedView view;
    view.add(x->dim(0), strides[0]);
    view.add(block_, strides[2]);
    view.add(block_, strides[3]);
    view.add(x->dim(1), strides[1]);
    view.add(height, strides[2] * block_);
    view.add(width, strides[3] * block_);
    return copy_strided(run, view, *x, y);
  }

 private:
  int64_t block_;
};

Status infer_blocks(OpInfer& infer) {
  const bool to_space = infer.node().op_type == "DepthToSpace";
  FOLIO_TRY(const Options options, parse(infer.attrs(), to_space, infer.version()));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x) {
    if (x->size() != 4) return invalid_graph("input 0 has rank ", x->size(), ", expected 4");
    DimTable& table = infer.table();
    const Dim b = Dim::of(options.block);
    const Dim area = Dim::of(options.block * options.block);
    out = to_space ? Dims{(*x)[0], table.floor_div((*x)[1], area), table.mul((*x)[2], b),
                          table.mul((*x)[3], b)}
                   : Dims{(*x)[0], table.mul((*x)[1], area), table.floor_div((*x)[2], b),
                          table.floor_div((*x)[3], b)};
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_depth_to_space(OpBuild& build) {
  FOLIO_TRY(const Options options, parse(build.attrs(), true, build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<DepthToSpace>(options));
}

Result<std::unique_ptr<OpKernel>> make_space_to_depth(OpBuild& build) {
  FOLIO_TRY(const Options options, parse(build.attrs(), false, build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<SpaceToDepth>(options.block));
}

}  // namespace

[[gnu::cold]] void register_depth_to_space(OpRegistry& registry) {
  OpDef def;
  def.type = "DepthToSpace";
  def.infer = infer_blocks;
  def.make = make_depth_to_space;
  def.unaligned_inputs = 1;
  registry.add(def);
  def.type = "SpaceToDepth";
  def.make = make_space_to_depth;
  registry.add(def);
}

}  // namespace folio
