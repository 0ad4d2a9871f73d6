#include "core/ops/op_generation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "core/ops/op_half.h"

namespace folio {
namespace {

constexpr int64_t kMaxLength = 4096;  // as ONNX Runtime's
constexpr float kForbidden = std::numeric_limits<float>::lowest();

// Each token that a row holds counts once.
void punish_repetition(Span<const int32_t> tokens, float penalty, int64_t vocabulary,
                       float* scores) {
  const std::unordered_set<int32_t> seen(tokens.begin(), tokens.end());
  for (const int32_t token : seen) {
    if (token < 0 || token >= vocabulary) continue;
    float& score = scores[token];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

// Forbids each token that would make a run of `size` tokens come a second time.
void forbid_repeated(Span<const int32_t> tokens, int64_t size, int64_t vocabulary, float* scores) {
  const auto length = static_cast<int64_t>(tokens.size());
  if (size > length) return;
  const int32_t* prefix = tokens.data() + length - (size - 1);
  for (int64_t at = 0; at + size <= length; ++at) {
    if (!std::equal(prefix, prefix + size - 1, tokens.data() + at)) continue;
    const int32_t token = tokens[static_cast<size_t>(at + size - 1)];
    if (token >= 0 && token < vocabulary) scores[token] = kForbidden;
  }
}

void forbid_masked(const int32_t* mask, int64_t vocabulary, float* scores) {
  for (int64_t i = 0; i < vocabulary; ++i) {
    if (mask[i] == 0) scores[i] = kForbidden;
  }
}

Status check_mask(Span<const int32_t> mask, int64_t rows, int64_t vocabulary,
                  std::string_view name) {
  if (mask.empty() || static_cast<int64_t>(mask.size()) == rows * vocabulary) return Status::ok();
  return invalid_argument(name, " has ", mask.size(), " elements, expected ", rows, " x ",
                          vocabulary, " (of the logits)");
}

}  // namespace

Result<GenerationAttributes> GenerationAttributes::parse(const Attributes& attrs,
                                                         int64_t default_model_type) {
  GenerationAttributes out;
  FOLIO_TRY(out.eos, attrs.get_int("eos_token_id"));
  FOLIO_TRY(out.pad, attrs.get_int("pad_token_id"));
  FOLIO_TRY(out.start, attrs.get_int("decoder_start_token_id", -1));
  FOLIO_TRY(out.ngram, attrs.get_int("no_repeat_ngram_size", 0));
  FOLIO_TRY(out.vocabulary, attrs.get_int("vocab_size", -1));
  FOLIO_TRY(out.model_type, attrs.get_int("model_type", default_model_type));
  for (const int64_t token : {out.eos, out.pad, out.start}) {
    if (token < -1 || token > INT32_MAX) {
      return invalid_graph("a token id is ", token, ", expected -1 to ", INT32_MAX);
    }
  }
  if (out.ngram < 0) {
    return invalid_graph("no_repeat_ngram_size is ", out.ngram, ", expected 0 or more");
  }
  return out;
}

Result<int64_t> scalar_input(const OpRun& run, int i, std::string_view name, int64_t fallback) {
  if (!run.has_input(i)) return fallback;
  FOLIO_TRY(const std::vector<int64_t> values, run.ints(i));
  if (values.size() != 1) {
    return invalid_argument(name, " has ", values.size(), " elements, expected 1");
  }
  return values[0];
}

Result<float> scalar_input_float(const OpRun& run, int i, std::string_view name, float fallback) {
  if (!run.has_input(i)) return fallback;
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  if (tensor->count() != 1) {
    return invalid_argument(name, " has ", tensor->count(), " elements, expected 1");
  }
  if (tensor->dtype() == DType::kFloat) return *tensor->data<float>();
  if (tensor->dtype() == DType::kFloat16) return half_to_float(*tensor->data<uint16_t>());
  return invalid_argument(name, " is ", dtype_name(tensor->dtype()), ", expected float");
}

Result<Tensor> prompt_input(const OpRun& run) {
  FOLIO_TRY(const Tensor* ids, run.tensor(0, DType::kInt32));
  if (ids->rank() == 2 && ids->count() != 0) return *ids;
  return invalid_argument("input_ids is ", ids->shape().to_string(),
                          ", expected [batch, sequence] of one token or more");
}

Result<GenerationRequest> read_request(const OpRun& run, const Tensor& prompt) {
  GenerationRequest out;
  out.batch = prompt.dim(0);
  out.prompt = prompt.dim(1);
  FOLIO_TRY(out.max_length, scalar_input(run, 1, "max_length", kMaxLength));
  if (out.max_length <= out.prompt || out.max_length > kMaxLength) {
    return invalid_argument("max_length is ", out.max_length, ", expected more than the ",
                            out.prompt, " tokens that a sequence begins with, and at most ",
                            kMaxLength);
  }
  FOLIO_TRY(out.min_length, scalar_input(run, 2, "min_length", 0));
  return out;
}

Result<Span<const int32_t>> mask_input(const OpRun& run, int i, std::string_view name,
                                       int64_t rows) {
  if (!run.has_input(i)) return Span<const int32_t>();
  FOLIO_TRY(const Tensor* mask, run.tensor(i, DType::kInt32));
  const bool right = rows == 0 ? mask->rank() == 1 : mask->rank() == 2 && mask->dim(0) == rows;
  if (!right || mask->count() == 0) {
    return invalid_argument(
        name, " is ", mask->shape().to_string(), ", expected ",
        rows == 0 ? std::string("[vocabulary]") : cat("[", rows, ", vocabulary]"));
  }
  return mask->span<int32_t>();
}

Status read_rules(const OpRun& run, int first, GenerationRequest* request) {
  FOLIO_TRY(request->repetition_penalty,
            scalar_input_float(run, first, "repetition_penalty", 1.0f));
  if (!(request->repetition_penalty > 0)) {
    return invalid_argument("repetition_penalty is ", request->repetition_penalty,
                            ", expected more than 0");
  }
  FOLIO_TRY(request->vocab_mask, mask_input(run, first + 1, "vocab_mask", 0));
  FOLIO_TRY(request->prefix_mask, mask_input(run, first + 2, "prefix_vocab_mask", request->batch));
  return Status::ok();
}

Result<const Tensor*> attention_mask_input(const OpRun& run, int i, const Tensor& input) {
  if (!run.has_input(i)) return static_cast<const Tensor*>(nullptr);
  FOLIO_TRY(const Tensor* mask, run.tensor(i, DType::kInt32));
  if (mask->shape() == input.shape()) return mask;
  return invalid_argument("attention_mask is ", mask->shape().to_string(), ", expected ",
                          input.shape().to_string(), " as input_ids");
}

Sequences::Sequences(int64_t rows, int64_t capacity, int64_t fill)
    : rows_(rows),
      capacity_(capacity),
      tokens_(static_cast<size_t>(rows * capacity), static_cast<int32_t>(fill)),
      spare_(tokens_) {}

void Sequences::begin(const int32_t* tokens, int64_t length, int64_t repeat) {
  for (int64_t i = 0; i < rows_; ++i) {
    std::copy_n(tokens + i / repeat * length, length, tokens_.data() + i * capacity_);
  }
  length_ = length;
}

void Sequences::append(Span<const int32_t> next, Span<const int32_t> from) {
  if (!from.empty()) {
    for (int64_t i = 0; i < rows_; ++i) {
      std::copy_n(tokens_.data() + from[static_cast<size_t>(i)] * capacity_, length_,
                  spare_.data() + i * capacity_);
    }
    tokens_.swap(spare_);
  }
  for (int64_t i = 0; i < rows_; ++i) {
    tokens_[static_cast<size_t>(i * capacity_ + length_)] = next[static_cast<size_t>(i)];
  }
  ++length_;
}

Status take_last_logits(const Tensor& logits, const GenerationAttributes& attrs,
                        const GenerationRequest& request, TokenScores* scores) {
  const int64_t rows = request.rows();
  if (logits.rank() != 3 || logits.dim(1) < 1 || logits.dim(2) < 1 ||
      (logits.dim(0) != rows && logits.dim(0) != request.batch)) {
    return invalid_graph("the decoder's logits are ", logits.shape().to_string(), ", expected [",
                         rows, ", sequence, vocabulary]");
  }
  if (logits.dtype() != DType::kFloat && logits.dtype() != DType::kFloat16) {
    return invalid_graph("the decoder's logits are ", dtype_name(logits.dtype()),
                         ", expected float or float16");
  }
  const int64_t width = logits.dim(2);
  if (attrs.vocabulary > width) {
    return invalid_graph("vocab_size is ", attrs.vocabulary, ", the decoder's logits have ", width);
  }
  scores->rows = rows;
  scores->vocabulary = attrs.vocabulary > 0 ? attrs.vocabulary : width;
  scores->values.resize(static_cast<size_t>(rows * scores->vocabulary));
  const int64_t repeat = rows / logits.dim(0);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t from = (i / repeat * logits.dim(1) + logits.dim(1) - 1) * width;
    float* to = scores->row(i);
    for (int64_t j = 0; j < scores->vocabulary; ++j) {
      to[j] = logits.dtype() == DType::kFloat ? logits.data<float>()[from + j]
                                              : half_to_float(logits.data<uint16_t>()[from + j]);
    }
  }
  return Status::ok();
}

namespace {

Status check_rules(const GenerationRequest& request, int64_t vocabulary) {
  FOLIO_RETURN_IF_ERROR(check_mask(request.vocab_mask, 1, vocabulary, "vocab_mask"));
  FOLIO_RETURN_IF_ERROR(
      check_mask(request.prefix_mask, request.batch, vocabulary, "prefix_vocab_mask"));
  FOLIO_RETURN_IF_ERROR(
      check_mask(request.presence_mask, request.batch, vocabulary, "presence_mask"));
  if (request.timestamps) FOLIO_RETURN_IF_ERROR(request.timestamps->check(vocabulary));
  for (const int32_t token : request.forced) {
    if (token < vocabulary) continue;
    return invalid_argument("extra_decoding_ids holds ", token, ", expected less than ", vocabulary,
                            ", the vocabulary");
  }
  return Status::ok();
}

// The token that text b has to go on with at this step; negative: none.
int32_t forced_token(const GenerationRequest& request, int64_t b, int64_t step) {
  const int64_t width = static_cast<int64_t>(request.forced.size()) / request.batch;
  if (step >= width) return -1;
  const int32_t* row = request.forced.data() + b * width;
  const int32_t* stop = std::find_if(row, row + step, [](int32_t token) { return token < 0; });
  return *stop;
}

}  // namespace

Status apply_rules(const GenerationAttributes& attrs, const GenerationRequest& request,
                   const Sequences& sequences, bool is_first, TokenScores* scores) {
  const int64_t vocabulary = scores->vocabulary;
  FOLIO_RETURN_IF_ERROR(check_rules(request, vocabulary));
  const bool too_short = sequences.length() < request.min_length;
  for (int64_t i = 0; i < scores->rows; ++i) {
    float* row = scores->row(i);
    const int64_t b = i / request.beams;
    if (request.repetition_penalty != 1) {
      punish_repetition(sequences.row(i), request.repetition_penalty, vocabulary, row);
    }
    if (attrs.ngram > 0) forbid_repeated(sequences.row(i), attrs.ngram, vocabulary, row);
    if (!request.vocab_mask.empty()) forbid_masked(request.vocab_mask.data(), vocabulary, row);
    if (is_first && !request.prefix_mask.empty()) {
      forbid_masked(request.prefix_mask.data() + b * vocabulary, vocabulary, row);
    }
    if (too_short && attrs.eos >= 0 && attrs.eos < vocabulary) row[attrs.eos] = kForbidden;
    if (request.temperature > 0 && request.temperature != 1) {
      for (int64_t j = 0; j < vocabulary; ++j) row[j] /= request.temperature;
    }
    if (!request.presence_mask.empty() && request.presence_penalty != 0) {
      const int32_t* mask = request.presence_mask.data() + b * vocabulary;
      for (int64_t j = 0; j < vocabulary; ++j) {
        row[j] -= static_cast<float>(mask[j]) * request.presence_penalty;
      }
    }
    if (request.timestamps) request.timestamps->apply(sequences.row(i), vocabulary, row);
    const int32_t forced = forced_token(request, b, sequences.length() - request.prompt);
    if (forced >= 0) {
      std::fill_n(row, vocabulary, kForbidden);
      row[forced] = 0;
    }
  }
  return Status::ok();
}

namespace {

struct Form {
  Status (*infer)(OpInfer& infer);
  Result<std::unique_ptr<Decoder>> (*make)(const Node& node, const GenerationAttributes& attrs);
};

// By model_type.
constexpr Form kForms[] = {
    {infer_gpt, make_gpt}, {infer_t5, make_t5}, {infer_whisper, make_whisper}};

Result<const Form*> form_of(int64_t model_type) {
  if (model_type >= kGptModel && model_type <= kWhisperModel) return &kForms[model_type];
  return not_implemented("model_type ", model_type,
                         ", expected 0 (a decoder), 1 (encoder and decoder) or 2 (Whisper)");
}

}  // namespace

Status infer_decoder(OpInfer& infer, int64_t model_type) {
  FOLIO_TRY(const Form* form, form_of(model_type));
  return form->infer(infer);
}

Result<std::unique_ptr<Decoder>> make_decoder(const Node& node, const GenerationAttributes& attrs) {
  FOLIO_TRY(const Form* form, form_of(attrs.model_type));
  return form->make(node, attrs);
}

Dims infer_sequence_dims(const OpInfer& infer) {
  const Dims* ids = infer.dims_of(0);
  const auto max_length = infer.ints(1);
  const Dim length = max_length && max_length->size() == 1 && (*max_length)[0] > 0
                         ? Dim::of((*max_length)[0])
                         : Dim::unknown();
  return {ids && !ids->empty() ? (*ids)[0] : Dim::unknown(), length};
}

TypeInfo unknown_dims(DType dtype, int rank) {
  return TypeInfo::tensor(dtype, Dims(static_cast<size_t>(rank), Dim::unknown()));
}

const TypeInfo& declared_input(const Graph& graph, size_t i) {
  return graph.value(graph.inputs[i]).declared;
}

Result<Tensor> int32_tensor(const Shape& shape) { return allocate_tensor(DType::kInt32, shape); }

Result<Tensor> column_of(Span<const int32_t> tokens) {
  FOLIO_TRY(Tensor out, int32_tensor({static_cast<int64_t>(tokens.size()), 1}));
  std::copy(tokens.begin(), tokens.end(), out.data_mut<int32_t>());
  return out;
}

Result<Tensor> repeated_rows(const Tensor& tensor, int64_t times) {
  std::vector<int32_t> from;
  for (int64_t i = 0; i < tensor.dim(0) * times; ++i)
    from.push_back(static_cast<int32_t>(i / times));
  return pick_rows(tensor, 0, from);
}

Result<Tensor> pick_rows(const Tensor& tensor, int axis, Span<const int32_t> from) {
  if (tensor.rank() <= axis || dtype_is_subbyte(tensor.dtype()) || tensor.is_string()) {
    return invalid_graph("a decoder's cache is ", dtype_name(tensor.dtype()), " ",
                         tensor.shape().to_string());
  }
  Shape shape = tensor.shape();
  shape[axis] = static_cast<int64_t>(from.size());
  const int64_t outer = shape.product(0, axis);
  const auto row =
      static_cast<size_t>(shape.product(axis + 1, shape.rank()) * (dtype_bits(tensor.dtype()) / 8));
  const int64_t old_rows = tensor.dim(axis);
  FOLIO_TRY(Tensor out, allocate_tensor(tensor.dtype(), shape));
  uint8_t* to = out.raw_mut();
  for (int64_t o = 0; o < outer; ++o) {
    for (const int32_t index : from) {
      if (index < 0 || index >= old_rows) {
        return invalid_graph("a decoder's cache has ", old_rows, " rows, expected more than ",
                             index);
      }
      if (row != 0)
        std::memcpy(to, tensor.raw() + static_cast<size_t>(o * old_rows + index) * row, row);
      to += row;
    }
  }
  return out;
}

}  // namespace folio
