// folio StridedAttention (passes/fuse_attention only): MatMul, scale, mask, Softmax and MatMul of
// the attention that exporters write by parts, with the Transposes around them.
//
// Source: Folio's own; the meaning is that of the separate ai.onnx nodes.
// Shapes: Q, K and V of rank 3 or 4, read where they lie: dim i of the logical [B, H, S, D] (rank
//         3: [H, S, D]) is dim perm_q[i] of Q; perm_k and perm_v alike. D is last, in K at least
//         one of D and S. Dims of 1 broadcast as in MatMul and Add. mask (float, optional) and
//         condition (bool, optional) broadcast with [B, H, S, T]. Dim i of Y is logical dim
//         perm_y[i], whose last is D. With repeats > 1 K and V have H / repeats heads, each for so
//         many consecutive ones of Q.
// Math:   s = scale * q k^T + mask; s = fill where condition == fill_where; y = softmax(s) v. A
//         query whose keys are all at -inf gives NaN, as Softmax does.
// Types:  float.
// Errors: kInvalidArgument when shapes do not broadcast or agree.
#include <algorithm>

#include "core/ops/op_attention.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int kRank = 4;
constexpr int kBatch = 0, kHead = 1, kSeq = 2, kSize = 3;
constexpr const char* kNames[] = {"Q", "K", "V", "mask", "condition"};

// A tensor as four logical dims; missing leading ones are 1.
struct View {
  int64_t dim[kRank] = {1, 1, 1, 1};
  int64_t stride[kRank] = {0, 0, 0, 0};

  static View of(const Shape& shape, const std::vector<int64_t>& perm) {
    View view;
    const int rank = shape.rank();
    int64_t strides[kRank] = {};
    uint64_t stride = 1;  // wraps only in tensors without elements
    for (int i = rank - 1; i >= 0; --i) {
      strides[i] = static_cast<int64_t>(stride);
      stride *= static_cast<uint64_t>(shape[i]);
    }
    for (int i = 0; i < rank; ++i) {
      const auto from = perm.empty() ? i : static_cast<int>(perm[static_cast<size_t>(i)]);
      view.dim[kRank - rank + i] = shape[from];
      view.stride[kRank - rank + i] = strides[from];
    }
    return view;
  }

  int64_t offset(int64_t b, int64_t h, int64_t i) const {
    return b * stride[kBatch] + h * stride[kHead] + i * stride[kSeq];
  }
};

class PartsRule final : public ScoreRule {
 public:
  const FolioKernels* kernels = nullptr;
  int64_t total = 0;
  const float* mask = nullptr;
  View mask_at;
  const uint8_t* condition = nullptr;
  View condition_at;
  float fill = 0.0F;
  bool fill_where = true;

  KeyRange visible(int64_t, int64_t) const override { return {0, total}; }

  void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const override {
    if (mask) {
      const float* from = mask + mask_at.offset(b, h, i);
      kernels->binary_f32[kFolioAdd](keys.end, row, 1, from, mask_at.stride[kSize], row);
    }
    if (condition) {
      const uint8_t* from = condition + condition_at.offset(b, h, i);
      const int64_t step = condition_at.stride[kSize];
      for (int64_t j = 0; j < keys.end; ++j) {
        if ((from[j * step] != 0) == fill_where) row[j] = fill;
      }
    }
  }
};

class StridedAttention final : public OpKernel {
 public:
  std::vector<int64_t> perms[kRank];  // of Q, K, V and Y
  float scale = 1.0F;
  float fill = 0.0F;
  bool fill_where = true;
  int64_t repeats = 1;  // of each head of K and V

  Status run(OpRun& run) const override;

 private:
  struct Bound {
    View q, k, v;
    AttendArgs args;
    PartsRule rule;
  };
  Status bind(OpRun& run, Bound* to) const;
  Status bind_masks(OpRun& run, Bound* to, View* mask, View* condition) const;
  Result<Shape> place_output(AttendArgs* args) const;
};

// What all views have along `axis`, those of size 1 aside, so far in `size`.
Status broadcast(int64_t* size, View* view, int axis, std::string_view what) {
  if (view->dim[axis] == *size || view->dim[axis] == 1 || *size == 1) {
    if (*size == 1) *size = view->dim[axis];
    return Status::ok();
  }
  return invalid_argument(what, " has size ", view->dim[axis], " where others of the attention ",
                          "have ", *size);
}

void expand(View* view, int axis, int64_t size) {
  if (view->dim[axis] == size) return;
  view->dim[axis] = size;
  view->stride[axis] = 0;
}

Heads as_heads(const float* data, const View& v) {
  Heads heads;
  heads.data = data;
  heads.batch = v.dim[kBatch];
  heads.heads = v.dim[kHead];
  heads.seq = v.dim[kSeq];
  heads.size = v.dim[kSize];
  heads.batch_stride = v.stride[kBatch];
  heads.head_stride = v.stride[kHead];
  heads.seq_stride = v.stride[kSeq];
  heads.size_stride = v.stride[kSize];
  return heads;
}

Status StridedAttention::bind_masks(OpRun& run, Bound* to, View* mask, View* condition) const {
  const auto rank = perms[0].size();
  for (int i = 3; i < 5; ++i) {
    if (!run.has_input(i)) continue;
    FOLIO_TRY(const Tensor* tensor, run.tensor(i, i == 3 ? DType::kFloat : DType::kBool));
    if (static_cast<size_t>(tensor->rank()) > rank) {
      return invalid_argument(kNames[i], " has shape ", tensor->shape().to_string(),
                              ", expected at most ", rank, " dims");
    }
    (i == 3 ? *mask : *condition) = View::of(tensor->shape(), {});
    if (i == 3) {
      to->rule.mask = tensor->data<float>();
    } else {
      to->rule.condition = tensor->raw();
    }
  }
  return Status::ok();
}

Status StridedAttention::bind(OpRun& run, Bound* to) const {
  View views[5];
  const float* data[3] = {};
  for (int i = 0; i < 3; ++i) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(i, DType::kFloat));
    if (static_cast<size_t>(tensor->rank()) != perms[i].size()) {
      return invalid_argument(kNames[i], " has shape ", tensor->shape().to_string(), ", expected ",
                              perms[i].size(), " dims");
    }
    views[i] = View::of(tensor->shape(), perms[i]);
    data[i] = tensor->data<float>();
  }
  FOLIO_RETURN_IF_ERROR(bind_masks(run, to, &views[3], &views[4]));
  View& q = views[0];
  View& k = views[1];
  View& v = views[2];
  int64_t batch = 1, heads = 1, queries = q.dim[kSeq], keys = k.dim[kSeq];
  for (int i = 0; i < 5; ++i) {
    FOLIO_RETURN_IF_ERROR(broadcast(&batch, &views[i], kBatch, kNames[i]));
    const bool repeated = repeats > 1 && (i == 1 || i == 2);
    if (!repeated) FOLIO_RETURN_IF_ERROR(broadcast(&heads, &views[i], kHead, kNames[i]));
    if (i < 3) continue;
    FOLIO_RETURN_IF_ERROR(broadcast(&queries, &views[i], kSeq, kNames[i]));
    FOLIO_RETURN_IF_ERROR(broadcast(&keys, &views[i], kSize, kNames[i]));
  }
  if (q.dim[kSize] != k.dim[kSize] || v.dim[kSeq] != keys) {
    return invalid_argument("Q has heads of ", q.dim[kSize], " and K of ", k.dim[kSize],
                            " elements; V has ", v.dim[kSeq], " positions for ", keys, " keys");
  }
  if (repeats > 1 && (heads % repeats != 0 || k.dim[kHead] != heads / repeats ||
                      v.dim[kHead] != heads / repeats)) {
    return invalid_argument("K has ", k.dim[kHead], " heads and V ", v.dim[kHead], ", expected ",
                            heads, " / ", repeats);
  }
  const bool shared = repeats > 1 || (k.dim[kHead] == 1 && v.dim[kHead] == 1);
  for (int i = 0; i < 5; ++i) {
    expand(&views[i], kBatch, batch);
    if (i == 0 || i > 2 || !shared) expand(&views[i], kHead, heads);
    if (i == 0 || i > 2) expand(&views[i], kSeq, queries);
    if (i > 2) expand(&views[i], kSize, keys);
  }
  expand(&k, kSeq, keys);
  FOLIO_RETURN_IF_ERROR(check_head_sizes(batch, heads, queries, q.dim[kSize], "Q"));
  FOLIO_RETURN_IF_ERROR(check_head_sizes(batch, heads, keys, v.dim[kSize], "V"));
  to->args.q = as_heads(data[0], q);
  to->args.k = as_heads(data[1], k);
  to->args.v = as_heads(data[2], v);
  to->rule.mask_at = views[3];
  to->rule.condition_at = views[4];
  return Status::ok();
}

// Y's shape, and its strides into `args`.
Result<Shape> StridedAttention::place_output(AttendArgs* args) const {
  const int64_t logical[kRank] = {args->q.batch, args->q.heads, args->q.seq, args->v.size};
  int64_t* strides[kRank] = {&args->y_batch, &args->y_head, &args->y_seq, nullptr};
  const std::vector<int64_t>& perm = perms[3];
  std::vector<int64_t> dims;
  for (const int64_t from : perm) {
    dims.push_back(logical[kRank - static_cast<int64_t>(perm.size()) + from]);
  }
  FOLIO_TRY(const Shape shape, shape_from(dims));
  if (shape.count() == 0) return shape;
  int64_t stride = 1;
  for (size_t i = perm.size(); i-- > 0;) {
    int64_t* to = strides[kRank - static_cast<int64_t>(perm.size()) + perm[i]];
    if (to) *to = stride;
    stride *= dims[i];
  }
  return shape;
}

Status StridedAttention::run(OpRun& run) const {
  Bound bound;
  FOLIO_RETURN_IF_ERROR(bind(run, &bound));
  AttendArgs& a = bound.args;
  bound.rule.kernels = &run.kernels();
  bound.rule.total = a.k.seq;
  bound.rule.fill = fill;
  bound.rule.fill_where = fill_where;
  FOLIO_TRY(const Shape shape, place_output(&a));
  FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, shape));
  if (y->count() == 0) return Status::ok();
  a.y = y->data_mut<float>();
  a.scale = scale;
  a.rule = &bound.rule;
  a.plain_softmax = true;
  return attend(run, a);
}

// Logical dims, aligned right to four; ones before them.
std::optional<Dims> logical_dims(const OpInfer& infer, int input,
                                 const std::vector<int64_t>& perm) {
  const Dims* dims = infer.dims_of(input);
  if (!dims || dims->size() > kRank || (!perm.empty() && dims->size() != perm.size())) {
    return std::nullopt;
  }
  Dims out(kRank, Dim::of(1));
  for (size_t i = 0; i < dims->size(); ++i) {
    const size_t from = perm.empty() ? i : static_cast<size_t>(perm[i]);
    out[kRank - dims->size() + i] = (*dims)[from];
  }
  return out;
}

Result<std::vector<int64_t>> parse_perm(const Attributes& attrs, int i) {
  constexpr const char* names[] = {"perm_q", "perm_k", "perm_v", "perm_y"};
  FOLIO_TRY(std::vector<int64_t> perm, attrs.get_ints(names[i]));
  const auto rank = static_cast<int64_t>(perm.size());
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool fits = rank == 3 || rank == 4;
  for (int64_t at = 0; at < rank; ++at) fits = fits && sorted[static_cast<size_t>(at)] == at;
  const bool is_k = i == 1;
  fits = fits && (perm.end()[-1] == rank - 1 || (is_k && perm.end()[-2] == rank - 1));
  if (fits) return perm;
  return invalid_graph("attribute '", names[i], "' is no order of 3 or 4 dims with rows last");
}

Status infer(OpInfer& infer) {
  infer.set_tensor(0, DType::kFloat);
  std::optional<Dims> dims[5];
  for (int i = 0; i < 3; ++i) {
    FOLIO_TRY(const std::vector<int64_t> perm, parse_perm(infer.attrs(), i));
    dims[i] = logical_dims(infer, i, perm);
    if (!dims[i]) return Status::ok();
  }
  DimTable& table = infer.table();
  Dim batch = table.broadcast((*dims[0])[kBatch], (*dims[1])[kBatch]);
  batch = table.broadcast(batch, (*dims[2])[kBatch]);
  Dim heads = (*dims[0])[kHead];
  FOLIO_TRY(const int64_t repeats, infer.attrs().get_int("repeats", 1));
  for (int i = 1; i < 3 && repeats == 1; ++i) {
    heads = table.broadcast(heads, (*dims[i])[kHead]);
  }
  Dim queries = (*dims[0])[kSeq];
  for (int i = 3; i < 5; ++i) {
    if (!infer.has_input(i)) continue;
    dims[i] = logical_dims(infer, i, {});
    if (!dims[i]) return Status::ok();
    batch = table.broadcast(batch, (*dims[i])[kBatch]);
    heads = table.broadcast(heads, (*dims[i])[kHead]);
    queries = table.broadcast(queries, (*dims[i])[kSeq]);
  }
  FOLIO_TRY(const std::vector<int64_t> perm, parse_perm(infer.attrs(), 3));
  const Dims logical{batch, heads, queries, (*dims[2])[kSize]};
  Dims out;
  for (const int64_t from : perm)
    out.push_back(logical[kRank - perm.size() + static_cast<size_t>(from)]);
  infer.set_tensor(0, DType::kFloat, out);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<StridedAttention>();
  for (int i = 0; i < kRank; ++i) {
    FOLIO_TRY(kernel->perms[i], parse_perm(attrs, i));
    if (kernel->perms[i].size() != kernel->perms[0].size()) {
      return invalid_graph("attributes 'perm_q', 'perm_k', 'perm_v' and 'perm_y' differ in length");
    }
  }
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 1.0F));
  FOLIO_TRY(kernel->fill, attrs.get_float("fill", 0.0F));
  FOLIO_TRY(kernel->repeats, attrs.get_int("repeats", 1));
  if (kernel->repeats < 1) {
    return invalid_graph("attribute 'repeats' is ", kernel->repeats, ", expected at least 1");
  }
  FOLIO_TRY(const int64_t where, attrs.get_int("fill_where", 1));
  kernel->fill_where = where != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_strided_attention(OpRegistry& registry) {
  OpDef def;
  def.domain = "folio";
  def.type = "StridedAttention";
  def.min_inputs = 3;
  def.max_inputs = 5;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
