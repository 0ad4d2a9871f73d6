// NGramRepeatBlock and BifurcationDetector: runs of tokens that come again, in texts being written.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.
// Shapes: NGramRepeatBlock input_ids [b, s], scores [b, v] -> scores_out as scores.
//         BifurcationDetector src_tokens [s], cur_tokens [c], prev_suffix_match_idx of 1 element,
//         pred_tokens [s + 1 - prev] or absent -> tokens [t], suffix_match_idx as prev.
// Math:   NGramRepeatBlock: -inf for each token that would end a run of ngram_size tokens which
//         the row has already. BifurcationDetector: tokens are cur_tokens and pred_tokens up to
//         the first that is not the source's, that one included. suffix_match_idx is where the
//         only copy in the source ends of the last n of tokens, for some n of min_ngram_size to
//         max_ngram_size; -1 where there is none, or no single one.
// Types:  scores float; tokens int64.
// Errors: kInvalidArgument for shapes that do not agree, tokens outside the scores.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// ---------------------------------------------------------------- NGramRepeatBlock

class NGramRepeatBlock final : public OpKernel {
 public:
  explicit NGramRepeatBlock(int64_t size) : size_(size) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* ids, run.tensor(0, DType::kInt64));
    FOLIO_TRY(const Tensor* scores, run.tensor(1, DType::kFloat));
    if (ids->rank() != 2 || scores->rank() != 2 || ids->dim(0) != scores->dim(0)) {
      return invalid_argument("input_ids ", ids->shape().to_string(), " and scores ",
                              scores->shape().to_string(), " must be [B,S] and [B,V]");
    }
    FOLIO_TRY(Tensor * out, run.output(0, DType::kFloat, scores->shape()));
    if (out->count() > 0) std::memcpy(out->raw_mut(), scores->raw(), scores->bytes());
    const int64_t length = ids->dim(1);
    for (int64_t row = 0; row < ids->dim(0); ++row) {
      FOLIO_RETURN_IF_ERROR(block(length, ids->data<int64_t>() + row * length, scores->dim(1),
                                  out->data_mut<float>() + row * scores->dim(1)));
    }
    return Status::ok();
  }

 private:
  Status block(int64_t length, const int64_t* ids, int64_t vocabulary, float* scores) const {
    if (length < size_) return Status::ok();
    const int64_t context = size_ - 1;
    const int64_t* tail = ids + length - context;
    for (int64_t i = 0; i + context < length; ++i) {
      if (!std::equal(tail, tail + context, ids + i)) continue;
      const int64_t token = ids[i + context];
      if (token < 0 || token >= vocabulary) {
        return invalid_argument("token ", token, " is outside the ", vocabulary, " scores");
      }
      scores[token] = -std::numeric_limits<float>::infinity();
    }
    return Status::ok();
  }

  int64_t size_;
};

Result<std::unique_ptr<OpKernel>> make_block(OpBuild& build) {
  FOLIO_TRY(const int64_t size, build.attrs().get_int("ngram_size"));
  if (size < 1) return invalid_graph("ngram_size is ", size, ", expected 1 or more");
  return std::unique_ptr<OpKernel>(std::make_unique<NGramRepeatBlock>(size));
}

Status infer_block(OpInfer& infer) {
  infer.set_output(0, infer.input(1));
  return Status::ok();
}

// ---------------------------------------------------------------- BifurcationDetector

// How many of the last of `tokens` stand before source[end], up to `most`.
int64_t match_length(Span<const int64_t> source, int64_t end, Span<const int64_t> tokens,
                     int64_t most) {
  const int64_t* a = source.data() + end;
  const int64_t* b = tokens.data() + tokens.size();
  int64_t length = 0;
  while (length < std::min(most, end) && a[-1 - length] == b[-1 - length]) ++length;
  return length;
}

// A run of n is there once if its match is of n or more, and every other one shorter: so the
// longest match decides for all n.
int64_t only_match(Span<const int64_t> source, Span<const int64_t> tokens, int64_t fewest,
                   int64_t most) {
  int64_t longest = 0;
  int64_t second = 0;
  int64_t at = -1;
  for (int64_t end = 1; end <= static_cast<int64_t>(source.size()); ++end) {
    const int64_t length = match_length(source, end, tokens, most);
    if (length > longest) {
      second = longest;
      longest = length;
      at = end;
    } else {
      second = std::max(second, length);
    }
  }
  return longest >= fewest && longest > second ? at : -1;
}

Result<Span<const int64_t>> row_of(const OpRun& run, int input) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, DType::kInt64));
  if (tensor->rank() != 1) {
    return invalid_argument("input ", input, " is ", tensor->shape().to_string(),
                            ", expected 1 dim");
  }
  return tensor->span<int64_t>();
}

class BifurcationDetector final : public OpKernel {
 public:
  BifurcationDetector(int64_t fewest, int64_t most) : fewest_(fewest), most_(most) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Span<const int64_t> source, row_of(run, 0));
    FOLIO_TRY(const Span<const int64_t> current, row_of(run, 1));
    FOLIO_TRY(const Tensor* previous, run.tensor(2, DType::kInt64));
    if (previous->count() != 1) {
      return invalid_argument("prev_suffix_match_idx ", previous->shape().to_string(),
                              " must be one number");
    }
    FOLIO_TRY(const Span<const int64_t> taken, taken_of(run, source, previous->data<int64_t>()[0]));
    const auto count = static_cast<int64_t>(current.size() + taken.size());
    FOLIO_TRY(Tensor * tokens, run.output(0, DType::kInt64, Shape{count}));
    auto* to = tokens->data_mut<int64_t>();
    std::copy(taken.begin(), taken.end(), std::copy(current.begin(), current.end(), to));
    FOLIO_TRY(Tensor * match, run.output(1, DType::kInt64, previous->shape()));
    match->data_mut<int64_t>()[0] =
        only_match(source, tokens->span<int64_t>(), fewest_, std::min(most_, count));
    return Status::ok();
  }

 private:
  // What of pred_tokens goes behind the current ones.
  static Result<Span<const int64_t>> taken_of(const OpRun& run, Span<const int64_t> source,
                                              int64_t previous) {
    if (!run.has_input(3)) return Span<const int64_t>();
    FOLIO_TRY(const Span<const int64_t> predicted, row_of(run, 3));
    const auto length = static_cast<int64_t>(source.size());
    if (previous < 0 || previous > length) {
      return invalid_argument("prev_suffix_match_idx is ", previous, ", expected 0 to ", length);
    }
    const Span<const int64_t> rest = source.subspan(static_cast<size_t>(previous));
    if (predicted.size() != rest.size() + 1) {
      return invalid_argument("pred_tokens has ", predicted.size(), " elements, expected ",
                              rest.size() + 1);
    }
    size_t same = 0;
    while (same < rest.size() && predicted[same] == rest[same]) ++same;
    return predicted.subspan(0, same + 1);
  }

  int64_t fewest_;
  int64_t most_;
};

Result<std::unique_ptr<OpKernel>> make_detector(OpBuild& build) {
  FOLIO_TRY(const int64_t fewest, build.attrs().get_int("min_ngram_size", 1));
  FOLIO_TRY(const int64_t most, build.attrs().get_int("max_ngram_size", 3));
  if (fewest < 1 || most < fewest) {
    return invalid_graph("min_ngram_size is ", fewest, ", max_ngram_size ", most,
                         "; expected 1 or more, and no less than that");
  }
  return std::unique_ptr<OpKernel>(std::make_unique<BifurcationDetector>(fewest, most));
}

Status infer_detector(OpInfer& infer) {
  Dims tokens = {Dim::unknown()};
  const Dims* current = infer.dims_of(1);
  if (current && current->size() == 1 && !infer.has_input(3)) tokens = *current;
  infer.set_tensor(0, DType::kInt64, std::move(tokens));
  infer.set_output(1, infer.input(2));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_ngram_blocking(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "NGramRepeatBlock";
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_block;
  def.make = make_block;
  def.is_exact = true;
  registry.add(def);
  def.type = "BifurcationDetector";
  def.min_inputs = 3;
  def.max_inputs = 4;
  def.min_outputs = 2;
  def.max_outputs = 2;
  def.infer = infer_detector;
  def.make = make_detector;
  registry.add(def);
}

}  // namespace folio
