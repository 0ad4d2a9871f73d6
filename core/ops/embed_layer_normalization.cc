// EmbedLayerNormalization and QEmbedLayerNormalization: the embedding layer of BERT.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.
// Shapes: input_ids, segment_ids, mask [B, S] int32; embeddings [rows, H]; gamma, beta [H];
//         position_ids [B, S] or [1, S]. output and embedding_sum [B, S, H]; mask_index [B].
// Math:   sum = word[id] + position[p] + segment[s], p = 0.. S - 1 without position_ids;
//         output = layer normalization of each row; mask_index = ones in each row of mask, 0
//         without mask. Quantized tables, gamma and beta are (q - zero) * scale each.
// Types:  EmbedLayerNormalization: float; float16 and bfloat16 in float. QEmbedLayerNormalization:
//         tables, gamma and beta int8 or uint8; scales and output float.
// Errors: kInvalidArgument when an id is outside its table.
#include "core/ops/op_copied_input.h"
#include "core/ops/op_half.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Rows of floats, or of bytes with a scale.
struct Table {
  const Tensor* tensor = nullptr;
  float scale = 1.0F;
  int32_t zero = 0;

  float at(int64_t i) const {
    switch (tensor->dtype()) {
      case DType::kFloat:
        return tensor->data<float>()[i];
      case DType::kFloat16:
        return half_to_float(tensor->data<uint16_t>()[i]);
      case DType::kBfloat16:
        return bfloat16_to_float(tensor->data<uint16_t>()[i]);
      case DType::kInt8:
        return static_cast<float>(tensor->data<int8_t>()[i] - zero) * scale;
      default:
        return static_cast<float>(tensor->data<uint8_t>()[i] - zero) * scale;
    }
  }
  void add_row(const FolioKernels& kernels, int64_t row, int64_t n, float* sum) const {
    if (tensor->dtype() == DType::kFloat) {
      kernels.binary_f32[kFolioAdd](n, sum, 1, tensor->data<float>() + row * n, 1, sum);
      return;
    }
    for (int64_t i = 0; i < n; ++i) sum[i] += at(row * n + i);
  }
};

// Where the inputs of the two operators stand; -1: there is none.
struct Layout {
  int mask = 7;
  int positions = 8;
  int first_scale = -1;  // of word, position, segment, gamma, beta; zero points 5 further
};

struct Lookup {
  int64_t width = 0;
  int64_t length = 0;
  Table tables[3];                                      // word, position, segment
  const Tensor* rows[3] = {nullptr, nullptr, nullptr};  // ids; null: positions count up, or none
  const int32_t* ids[3] = {nullptr, nullptr, nullptr};  // their numbers, checked: copies

  // The sum of token `at`'s embeddings.
  void add(const FolioKernels& kernels, int64_t at, float* sum) const {
    std::fill_n(sum, width, 0.0F);
    for (int i = 0; i < 3; ++i) {
      int64_t row = at % length;
      if (ids[i]) {
        row = ids[i][i == 1 && rows[1]->dim(0) == 1 ? row : at];
      } else if (i == 2) {
        continue;
      }
      tables[i].add_row(kernels, row, width, sum);
    }
  }
};

class EmbedNormalization final : public OpKernel {
 public:
  Layout layout;
  float epsilon = 1e-12F;

  Status run(OpRun& run) const override;

 private:
  Result<Table> table(const OpRun& run, int input, int64_t width) const;
  Result<const float*> vector(OpRun& run, int input, int64_t width) const;
  static Result<const int32_t*> checked_ids(OpRun& run, const Tensor& ids, int64_t rows);
  Status bind(OpRun& run, Lookup* lookup) const;
  Status write_mask_index(OpRun& run, const Shape& ids) const;
};

// `width` 0: as the table says.
Result<Table> EmbedNormalization::table(const OpRun& run, int input, int64_t width) const {
  Table t;
  FOLIO_TRY(t.tensor, run.tensor(input));
  const bool quantized = layout.first_scale >= 0;
  const DType dtype = t.tensor->dtype();
  const bool known = quantized ? dtype == DType::kUint8 || dtype == DType::kInt8
                               : dtype == DType::kFloat || is_half(dtype);
  if (!known) {
    return invalid_argument("input ", input, " is ", dtype_name(dtype),
                            quantized ? ", expected uint8 or int8" : ", expected float");
  }
  if (width > 0 && (t.tensor->rank() != 2 || t.tensor->dim(1) != width)) {
    return invalid_argument("input ", input, " has shape ", t.tensor->shape().to_string(),
                            ", expected [*,", width, "]");
  }
  if (!quantized) return t;
  const int scale_input = layout.first_scale + input - 2;
  FOLIO_TRY(const Tensor* scale, run.tensor(scale_input, DType::kFloat));
  FOLIO_TRY(const Tensor* zero, run.tensor(scale_input + 5, dtype));
  if (scale->count() != 1 || zero->count() != 1) {
    return invalid_argument("scale and zero point of input ", input, " must be one number each");
  }
  t.scale = scale->data<float>()[0];
  t.zero = dtype == DType::kInt8 ? zero->data<int8_t>()[0] : zero->data<uint8_t>()[0];
  return t;
}

Result<const float*> EmbedNormalization::vector(OpRun& run, int input, int64_t width) const {
  FOLIO_TRY(const Table t, table(run, input, 0));
  if (t.tensor->count() != width) {
    return invalid_argument("input ", input, " has ", t.tensor->count(), " elements, expected ",
                            width);
  }
  FOLIO_TRY(float* out, scratch_floats(run, width));
  for (int64_t i = 0; i < width; ++i) out[i] = t.at(i);
  return static_cast<const float*>(out);
}

Result<const int32_t*> EmbedNormalization::checked_ids(OpRun& run, const Tensor& ids,
                                                       int64_t rows) {
  FOLIO_TRY(const int32_t* copy, copied_input<int32_t>(run, ids, ids.count()));
  for (int64_t i = 0; i < ids.count(); ++i) {
    if (copy[i] < 0 || copy[i] >= rows) {
      return invalid_argument("id ", copy[i], " is outside a table of ", rows, " rows");
    }
  }
  return copy;
}

Status EmbedNormalization::write_mask_index(OpRun& run, const Shape& ids) const {
  if (!run.has_output(1)) return Status::ok();
  FOLIO_TRY(Tensor * index, run.output(1, DType::kInt32, Shape{ids[0]}));
  int32_t* to = index->data_mut<int32_t>();
  std::fill_n(to, ids[0], 0);
  if (!run.has_input(layout.mask)) return Status::ok();
  FOLIO_TRY(const Tensor* mask, run.tensor(layout.mask, DType::kInt32));
  if (!(mask->shape() == ids)) {
    return invalid_argument("mask has shape ", mask->shape().to_string(), ", expected ",
                            ids.to_string());
  }
  if (mask->count() == 0) return Status::ok();
  const int32_t* flags = mask->data<int32_t>();
  for (int64_t b = 0; b < ids[0]; ++b) {
    const int32_t* row = flags + b * ids[1];
    to[b] = static_cast<int32_t>(std::count(row, row + ids[1], 1));
  }
  return Status::ok();
}

Status EmbedNormalization::bind(OpRun& run, Lookup* l) const {
  FOLIO_TRY(const Tensor* ids, run.tensor(0, DType::kInt32));
  if (ids->rank() != 2) {
    return invalid_argument("input_ids has shape ", ids->shape().to_string(), ", expected 2 dims");
  }
  FOLIO_TRY(const Tensor* words, run.tensor(2));
  l->width = words->rank() == 2 ? words->dim(1) : 0;
  l->length = ids->dim(1);
  if (l->width < 1) return invalid_argument("word_embedding has no width");
  l->rows[0] = ids;
  FOLIO_TRY(l->tables[0], table(run, 2, l->width));
  FOLIO_TRY(l->tables[1], table(run, 3, l->width));
  if (run.has_input(1) && run.has_input(4)) {
    FOLIO_TRY(l->tables[2], table(run, 4, l->width));
    FOLIO_TRY(l->rows[2], run.tensor(1, DType::kInt32));
  }
  const Tensor& positions = *l->tables[1].tensor;
  if (layout.positions >= 0 && run.has_input(layout.positions)) {
    FOLIO_TRY(l->rows[1], run.tensor(layout.positions, DType::kInt32));
  } else if (l->length > positions.dim(0)) {
    return invalid_argument("a sequence of ", l->length, " exceeds the ", positions.dim(0),
                            " rows of position_embedding");
  }
  const Shape& shape = ids->shape();
  const bool fits =
      (!l->rows[2] || l->rows[2]->shape() == shape) &&
      (!l->rows[1] || l->rows[1]->shape() == shape || l->rows[1]->shape() == Shape{1, l->length});
  if (!fits) return invalid_argument("segment_ids or position_ids do not have input_ids' shape");
  for (int i = 0; i < 3; ++i) {
    if (!l->rows[i]) continue;
    FOLIO_TRY(l->ids[i], checked_ids(run, *l->rows[i], l->tables[i].tensor->dim(0)));
  }
  return Status::ok();
}

Status EmbedNormalization::run(OpRun& run) const {
  Lookup lookup;
  FOLIO_RETURN_IF_ERROR(bind(run, &lookup));
  const Tensor& ids = *lookup.rows[0];
  NormRows<float> norm;
  norm.n = lookup.width;
  norm.epsilon = epsilon;
  FOLIO_TRY(norm.scale, vector(run, 5, lookup.width));
  FOLIO_TRY(norm.bias, vector(run, 6, lookup.width));
  FOLIO_RETURN_IF_ERROR(write_mask_index(run, ids.shape()));
  const bool quantized = layout.first_scale >= 0;
  const DType dtype = quantized ? DType::kFloat : lookup.tables[0].tensor->dtype();
  const Shape shape{ids.dim(0), lookup.length, lookup.width};
  FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, dtype, shape));
  FOLIO_TRY(const FloatOutput kept, FloatOutput::make_if_wanted(run, 2, dtype, shape));
  float* sum = kept.data() ? kept.data() : y.data();
  run.parallel().for_range(ids.count(), 1 + 8192 / lookup.width, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      lookup.add(run.kernels(), at, sum + at * lookup.width);
    }
  });
  norm.run(run, ids.count(), sum, y.data());
  y.finish(run);
  kept.finish(run);
  return Status::ok();
}

Status infer(OpInfer& infer) {
  const Dims* ids = infer.dims_of(0);
  const Dims* words = infer.dims_of(2);
  const bool quantized = infer.node().op_type == "QEmbedLayerNormalization";
  const DType dtype = quantized ? DType::kFloat : infer.dtype(2);
  std::optional<Dims> out;
  std::optional<Dims> index;
  if (ids && ids->size() == 2) {
    index = Dims{(*ids)[0]};
    if (words && words->size() == 2) out = Dims{(*ids)[0], (*ids)[1], (*words)[1]};
  }
  for (int i = 0; i < infer.output_count(); ++i) {
    infer.set_tensor(i, i == 1 ? DType::kInt32 : dtype, i == 1 ? index : out);
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<EmbedNormalization>();
  FOLIO_TRY(kernel->epsilon, build.attrs().get_float("epsilon", 1e-12F));
  if (build.node().op_type == "QEmbedLayerNormalization") {
    kernel->layout.positions = -1;
    kernel->layout.first_scale = 8;
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_embed_layer_normalization(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "EmbedLayerNormalization";
  def.min_inputs = 7;
  def.optional_inputs = 1U << 1 | 1U << 4;  // of segments
  def.max_inputs = 9;
  def.max_outputs = 3;
  def.picked_inputs = 1U << 2 | 1U << 3 | 1U << 4;  // the embeddings
  def.infer = infer;
  def.make = make;
  registry.add(def);
  def.type = "QEmbedLayerNormalization";
  def.min_inputs = def.max_inputs = 18;
  def.optional_inputs |= 1U << 7 | 1U << 10 | 1U << 15;  // mask, and of segments
  def.max_outputs = 2;
  registry.add(def);
}

}  // namespace folio
