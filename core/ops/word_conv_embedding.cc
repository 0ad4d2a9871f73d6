// WordConvEmbedding: a vector for each word, from its characters by a convolution.
//
// Source: com.microsoft WordConvEmbedding 1 (ONNX Runtime's contrib operators).
// Shapes: words int32 [n, length], w [filters, 1, width, size], b [filters], characters
//         [all, size] -> y [n, filters].
// Math:   y[i, f] = max over p of tanh(b[f] + sum over t < width of w[f, t] . characters[word[p +
// t]])
//         A word has as many characters as entries above 0, or none if its first is not; a shorter
//         one than the filter is as long as that. The vector of no character is 0; ONNX Runtime
//         leaves it as the memory was.
// Types:  words int32; others float.
// Errors: kInvalidArgument for shapes that do not fit and characters that are not in the table.
#include <algorithm>
#include <cmath>

#include "core/ops/op_copied_input.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class WordConvEmbedding final : public OpKernel {
 public:
  // What the attributes say of w and the table; -1: nothing.
  int64_t filters = -1;
  int64_t width = -1;
  int64_t size = -1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* words, run.tensor(0, DType::kInt32));
    FOLIO_TRY(const Tensor* w, run.tensor(1, DType::kFloat));
    FOLIO_TRY(const Tensor* b, run.tensor(2, DType::kFloat));
    FOLIO_TRY(const Tensor* table, run.tensor(3, DType::kFloat));
    FOLIO_RETURN_IF_ERROR(check(*words, *w, *b, *table));
    const int64_t count = words->dim(0);
    FOLIO_TRY(const int32_t* characters, copied_input<int32_t>(run, *words, words->count()));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, Shape{count, w->dim(0)}));
    if (y->count() == 0) return Status::ok();
    const int64_t length = words->dim(1);
    FOLIO_TRY(float* letters, scratch_floats(run, length * table->dim(1)));
    FOLIO_TRY(float* sums, scratch_floats(run, length * w->dim(0)));
    for (int64_t i = 0; i < count; ++i) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      const int32_t* word = characters + i * length;
      float* to = y->data_mut<float>() + i * w->dim(0);
      FOLIO_RETURN_IF_ERROR(embed(run, word, length, *w, *b, *table, letters, sums, to));
    }
    return Status::ok();
  }

 private:
  Status check(const Tensor& words, const Tensor& w, const Tensor& b, const Tensor& table) const {
    const bool fits = words.rank() == 2 && w.rank() == 4 && w.dim(1) == 1 && b.rank() == 1 &&
                      b.dim(0) == w.dim(0) && table.rank() == 2 && table.dim(1) == w.dim(3);
    const auto is = [](int64_t said, int64_t found) { return said == -1 || said == found; };
    if (!fits || !is(filters, w.dim(0)) || !is(width, w.dim(2)) || !is(size, w.dim(3))) {
      return invalid_argument("words ", words.shape().to_string(), ", W ", w.shape().to_string(),
                              ", B ", b.shape().to_string(), " and C ", table.shape().to_string(),
                              " do not fit each other or the attributes");
    }
    if (words.dim(1) < w.dim(2) || w.dim(2) < 1) {
      return invalid_argument("words have ", words.dim(1), " characters, expected ", w.dim(2),
                              " or more");
    }
    return Status::ok();
  }

  static Status embed(OpRun& run, const int32_t* word, int64_t length, const Tensor& w,
                      const Tensor& b, const Tensor& table, float* letters, float* sums,
                      float* to) {
    const int64_t filters = w.dim(0);
    const int64_t width = w.dim(2);
    const int64_t size = w.dim(3);
    const int64_t found =
        word[0] > 0 ? std::count_if(word, word + length, [](int32_t c) { return c > 0; }) : 0;
    std::fill(to, to + filters, 0.0F);
    if (found == 0) return Status::ok();
    const int64_t used = std::max(found, width);
    for (int64_t i = 0; i < used; ++i) {
      if (word[i] < 0 || word[i] >= table.dim(0)) {
        return invalid_argument("character ", word[i], " is not in a table of ", table.dim(0));
      }
      std::copy_n(table.data<float>() + word[i] * size, size, letters + i * size);
    }
    // What a filter sees at one place is the row of what it sees at the next, but a character on.
    FolioGemmF32 args{};
    args.m = used - width + 1;
    args.n = args.c_row_stride = filters;
    args.k = width * size;
    args.a = letters;
    args.a_row_stride = size;
    args.a_col_stride = 1;
    args.c = sums;
    args.col_bias = b.data<float>();
    args.alpha = 1.0F;
    GemmB transposed;
    transposed.data = w.data<float>();
    transposed.row_stride = 1;
    transposed.col_stride = args.k;
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, transposed));
    for (int64_t f = 0; f < filters; ++f) {
      float most = sums[f];
      for (int64_t p = 1; p < args.m; ++p) most = std::max(most, sums[p * filters + f]);
      to[f] = std::tanh(most);  // which grows with it
    }
    return Status::ok();
  }
};

Status infer_embedding(OpInfer& infer) {
  const Dims* words = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  Dims out(2);
  if (words && words->size() == 2) out[0] = (*words)[0];
  if (w && w->size() == 4) out[1] = (*w)[0];
  infer.set_tensor(0, DType::kFloat, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_embedding(OpBuild& build) {
  auto kernel = std::make_unique<WordConvEmbedding>();
  FOLIO_TRY(kernel->filters, build.attrs().get_int("embedding_size", -1));
  FOLIO_TRY(kernel->width, build.attrs().get_int("conv_window_size", -1));
  FOLIO_TRY(kernel->size, build.attrs().get_int("char_embedding_size", -1));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_word_conv_embedding(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "WordConvEmbedding";
  def.min_inputs = def.max_inputs = 4;
  def.infer = infer_embedding;
  def.make = make_embedding;
  registry.add(def);
}

}  // namespace folio
