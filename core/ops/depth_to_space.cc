// DepthToSpace and SpaceToDepth: blocks of pixels to channels and back.
//
// Source: ONNX operator spec, DepthToSpace, opsets 1, 11 (mode), 13; SpaceToDepth, opsets 1, 13.
// Shapes: DepthToSpace: x [n, c, h, w] -> y [n, c / b^2, h * b, w * b]; SpaceToDepth: the inverse.
// Math:   the channel of DCR is (i * b + j) * c' + c, of CRD (c * b + i) * b + j, where (i, j) is
//         the place in a block of b x b. SpaceToDepth: as DCR.
// Types:  all types.
// Errors: kInvalidArgument when dims are not multiples, or blocksize is below 1.
#include <cstring>

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

// ---------------------------------------------------------------- blocks of 2 x 2

// Elements of 32 bits, the common case, four at a time; all may be unaligned. (A transpose of two
// columns, as which copy_strided() sees them, is called once a row and moves element by element.)
constexpr int64_t kBytes = 4;
typedef uint32_t FourElements __attribute__((vector_size(16)));

FourElements load_four(const uint8_t* from) {
  FourElements four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

void store_four(uint8_t* to, FourElements four) { std::memcpy(to, &four, sizeof(four)); }

// Two rows of n elements that take turns in one of 2 * n.
void join_rows(int64_t n, const uint8_t* a, const uint8_t* b, uint8_t* to) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const FourElements even = load_four(a + i * kBytes);
    const FourElements odd = load_four(b + i * kBytes);
    store_four(to + 2 * i * kBytes, __builtin_shufflevector(even, odd, 0, 4, 1, 5));
    store_four(to + (2 * i + 4) * kBytes, __builtin_shufflevector(even, odd, 2, 6, 3, 7));
  }
  for (; i < n; ++i) {
    std::memcpy(to + 2 * i * kBytes, a + i * kBytes, kBytes);
    std::memcpy(to + (2 * i + 1) * kBytes, b + i * kBytes, kBytes);
  }
}

// And back.
void part_row(int64_t n, const uint8_t* from, uint8_t* a, uint8_t* b) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const FourElements low = load_four(from + 2 * i * kBytes);
    const FourElements high = load_four(from + (2 * i + 4) * kBytes);
    store_four(a + i * kBytes, __builtin_shufflevector(low, high, 0, 2, 4, 6));
    store_four(b + i * kBytes, __builtin_shufflevector(low, high, 1, 3, 5, 7));
  }
  for (; i < n; ++i) {
    std::memcpy(a + i * kBytes, from + 2 * i * kBytes, kBytes);
    std::memcpy(b + i * kBytes, from + (2 * i + 1) * kBytes, kBytes);
  }
}

// Whether the blocks are what move_pairs() moves.
bool are_pairs(int64_t block, DType dtype) {
  return block == 2 && dtype != DType::kString && dtype_bits(dtype) == 8 * kBytes;
}

// Between `deep`, [batch, 4 * channels, height, width], and `wide`, [batch, channels, 2 * height,
// 2 * width]. Channel c of `deep` and those for the other places of a block are `next` apart; of
// the next channel of `wide` it is `step` further on. Calls move(n, deep, deep + next, wide).
struct Pairs {
  int64_t channels;
  int64_t step;
  int64_t next;
};
template <typename Move>
void move_pairs(OpRun& run, const Shape& deep, const Pairs& pairs, Move&& move) {
  const int64_t height = deep[2];
  const int64_t width = deep[3];
  const int64_t plane = height * width;
  const int64_t rows = deep[0] * pairs.channels * height;
  run.parallel().for_range(rows, rows_per_task(4 * width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / height / pairs.channels;
      const int64_t channel = image * deep[1] + row / height % pairs.channels * pairs.step;
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t a = (channel + 2 * i * pairs.next) * plane + row % height * width;
        move(width, a * kBytes, (a + pairs.next * plane) * kBytes,
             (2 * row + i) * 2 * width * kBytes);
      }
    }
  });
}

// ---------------------------------------------------------------- the operators

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
    if (y->count() == 0) return Status::ok();
    if (are_pairs(b, x->dtype())) {
      const Pairs pairs = options_.crd ? Pairs{channels, 4, 1} : Pairs{channels, 1, channels};
      const uint8_t* from = x->raw();
      uint8_t* to = y->raw_mut();
      move_pairs(run, x->shape(), pairs, [&](int64_t n, int64_t even, int64_t odd, int64_t out) {
        join_rows(n, from + even, from + odd, to + out);
      });
      return Status::ok();
    }
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
    if (y->count() == 0) return Status::ok();
    if (are_pairs(block_, x->dtype())) {
      const Pairs pairs{x->dim(1), 1, x->dim(1)};
      const uint8_t* from = x->raw();
      uint8_t* to = y->raw_mut();
      move_pairs(run, shape, pairs, [&](int64_t n, int64_t even, int64_t odd, int64_t in) {
        part_row(n, from + in, to + even, to + odd);
      });
      return Status::ok();
    }
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
