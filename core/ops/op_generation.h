// What the operators that generate text share: parameters, token sequences, rules for scores, and
// the decoders that give scores for the next token.
//
// Flow:    while loading, a node's subgraphs become a Decoder of one of three forms (files
//          op_generation_gpt.cc and op_generation_encoder.cc). A run reads a GenerationRequest,
//          has the Decoder start a TokenSource and asks that in turns: scores of the next token ->
//          rules (apply_rules) -> the operator's choice -> advance.
// Owns:    a TokenSource owns the caches of one run; subgraphs see the outer graph's weights as
//          the bodies of If and Loop do.
// Threads: one run each.
// Errors:  kInvalidGraph for subgraphs of another form, kInvalidArgument for inputs; both name what
//          was found and what was expected.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/op_timestamps.h"

namespace folio {

inline constexpr int64_t kGptModel = 0;      // one decoder, as GPT-2's
inline constexpr int64_t kT5Model = 1;       // encoder and decoder, text to text
inline constexpr int64_t kWhisperModel = 2;  // encoder and decoder, audio features to text

// Attributes that all of them have.
struct GenerationAttributes {
  int64_t eos = -1;
  int64_t pad = 0;
  int64_t start = -1;       // of sequences of an encoder and decoder; -1: not given
  int64_t ngram = 0;        // no n tokens in a row may come twice; 0: they may
  int64_t vocabulary = -1;  // -1: that of the logits
  int64_t model_type = kGptModel;

  static Result<GenerationAttributes> parse(const Attributes& attrs,
                                            int64_t default_model_type = kGptModel);
};

// What a run asks for; masks are empty when not given.
struct GenerationRequest {
  int64_t batch = 0;
  int64_t prompt = 0;  // tokens that each sequence begins with
  int64_t max_length = 0;
  int64_t min_length = 0;
  int64_t beams = 1;
  float repetition_penalty = 1;
  float temperature = 1;
  float presence_penalty = 0;
  Span<const int32_t> vocab_mask;
  Span<const int32_t> prefix_mask;    // [batch, vocabulary], for the first token alone
  Span<const int32_t> presence_mask;  // [batch, vocabulary]
  // [batch, n]: what texts go on with, up to a negative token. Copied, as these are indices, and
  // the input may stand in a file that changes.
  std::vector<int32_t> forced;
  std::optional<TimestampTokens> timestamps;

  int64_t rows() const { return batch * beams; }
};

// One number of input i (rank 0 or one element), or the fallback when it is absent.
Result<int64_t> scalar_input(const OpRun& run, int i, std::string_view name, int64_t fallback);
Result<float> scalar_input_float(const OpRun& run, int i, std::string_view name, float fallback);

// Input 0 as the tokens that sequences begin with: int32 [batch, length], one token or more.
Result<Tensor> prompt_input(const OpRun& run);

// The lengths, for sequences that begin with `prompt`, [batch, length].
Result<GenerationRequest> read_request(const OpRun& run, const Tensor& prompt);

// The mask at input i, int32 of this many rows (0: a vector) and any width; empty when absent.
Result<Span<const int32_t>> mask_input(const OpRun& run, int i, std::string_view name,
                                       int64_t rows);

// repetition_penalty, vocab_mask and prefix_vocab_mask, inputs `first` and the two after it.
Status read_rules(const OpRun& run, int first, GenerationRequest* request);

// attention_mask, input i: int32 of the shape of input 0; null when absent.
Result<const Tensor*> attention_mask_input(const OpRun& run, int i, const Tensor& input);

// Tokens so far, `rows` sequences of the same length.
class Sequences {
 public:
  Sequences(int64_t rows, int64_t capacity, int64_t fill);

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  Span<const int32_t> row(int64_t i) const {
    return {tokens_.data() + i * capacity_, static_cast<size_t>(length_)};
  }
  // All `capacity` places of row i; those not yet reached hold the fill.
  const int32_t* whole_row(int64_t i) const { return tokens_.data() + i * capacity_; }
  // Row i begins with tokens[i / repeat].
  void begin(const int32_t* tokens, int64_t length, int64_t repeat);
  // One token more for each; `from` (when not empty) says which old row a row goes on from.
  void append(Span<const int32_t> next, Span<const int32_t> from);

 private:
  int64_t rows_;
  int64_t capacity_;
  int64_t length_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> spare_;
};

// Scores of the next token of each row, and what masks and penalties make of them.
struct TokenScores {
  int64_t rows = 0;
  int64_t vocabulary = 0;
  std::vector<float> values;

  float* row(int64_t i) { return values.data() + i * vocabulary; }
};

// The last position of logits [rows or batch, length, vocabulary or more].
Status take_last_logits(const Tensor& logits, const GenerationAttributes& attrs,
                        const GenerationRequest& request, TokenScores* scores);

// The rules in ONNX Runtime's order: repetition, n-grams, masks, length, temperature, presence,
// timestamps; and what is forced.
Status apply_rules(const GenerationAttributes& attrs, const GenerationRequest& request,
                   const Sequences& sequences, bool is_first, TokenScores* scores);

// Gives logits for the next token and takes what was chosen.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Result<Tensor> logits(OpRun& run) = 0;
  // `from`: as in Sequences::append, rows of this step; `sequences` holds `next` already.
  virtual Status advance(Span<const int32_t> next, Span<const int32_t> from,
                         const Sequences& sequences) = 0;
};

// What the subgraphs of a node are.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // The tokens that the sequences begin with: int32 [batch, one or more].
  virtual Result<Tensor> prompt(const OpRun& run) const = 0;
  // `mask_input`: which of the node's inputs attention_mask is.
  virtual Result<std::unique_ptr<TokenSource>> start(const OpRun& run, int mask_input,
                                                     const GenerationRequest& request) const = 0;
};

// By model_type: infers the subgraphs of a node; makes what they are.
Status infer_decoder(OpInfer& infer, int64_t model_type);
Result<std::unique_ptr<Decoder>> make_decoder(const Node& node, const GenerationAttributes& attrs);

Status infer_gpt(OpInfer& infer);
Result<std::unique_ptr<Decoder>> make_gpt(const Node& node, const GenerationAttributes& attrs);
Status infer_t5(OpInfer& infer);
Result<std::unique_ptr<Decoder>> make_t5(const Node& node, const GenerationAttributes& attrs);
Status infer_whisper(OpInfer& infer);
Result<std::unique_ptr<Decoder>> make_whisper(const Node& node, const GenerationAttributes& attrs);

// The dims of output 0 as far as inputs 0 and 1 say them: [batch, max_length].
Dims infer_sequence_dims(const OpInfer& infer);

// ---------------------------------------------------------------- tensors and types of decoders

TypeInfo unknown_dims(DType dtype, int rank);
const TypeInfo& declared_input(const Graph& graph, size_t i);

Result<Tensor> int32_tensor(const Shape& shape);
// The tokens as a column, [count, 1].
Result<Tensor> column_of(Span<const int32_t> tokens);
// Each row of `tensor` `times` times.
Result<Tensor> repeated_rows(const Tensor& tensor, int64_t times);
// The rows of `tensor` along `axis` that `from` names, in its order.
Result<Tensor> pick_rows(const Tensor& tensor, int axis, Span<const int32_t> from);

}  // namespace folio
