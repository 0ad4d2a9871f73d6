// What the operators that generate text share: parameters, token sequences, rules for scores, and
// the decoders that give scores for the next token.
//
// Flow:    GreedySearch, Sampling and BeamSearch read a GenerationRequest, make a TokenSource and
//          ask it in turns: scores of the next token -> their choice -> advance.
// Owns:    a TokenSource owns the caches of one run; subgraphs see the outer graph's weights as
//          the bodies of If and Loop do.
// Threads: one run each.
// Errors:  kInvalidGraph for subgraphs of another form, kInvalidArgument for inputs; both name what
//          was found and what was expected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace folio {

// Attributes that all three have.
struct GenerationAttributes {
  int64_t eos = -1;
  int64_t pad = 0;
  int64_t start = -1;       // of sequences of an encoder and decoder; -1: not given
  int64_t ngram = 0;        // no n tokens in a row may come twice; 0: they may
  int64_t vocabulary = -1;  // -1: that of the logits
  int64_t model_type = 0;   // 0: one decoder; 1: encoder and decoder

  static Result<GenerationAttributes> parse(const Attributes& attrs);
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

  int64_t rows() const { return batch * beams; }
};

// One number of input i (rank 0 or one element), or the fallback when it is absent.
Result<int64_t> scalar_input(const OpRun& run, int i, std::string_view name, int64_t fallback);
Result<float> scalar_input_float(const OpRun& run, int i, std::string_view name, float fallback);

// input_ids [batch, length] and the lengths; encoder_decoder: sequences begin with one token.
Result<GenerationRequest> read_request(const OpRun& run, bool encoder_decoder);

// The mask at input i, int32 of this many rows (0: a vector) and any width; empty when absent.
Result<Span<const int32_t>> mask_input(const OpRun& run, int i, std::string_view name,
                                       int64_t rows);

// repetition_penalty, vocab_mask and prefix_vocab_mask, inputs `first` and the two after it.
Status read_rules(const OpRun& run, int first, GenerationRequest* request);

// attention_mask, input i: int32 of the shape of `ids`; null when absent.
Result<const Tensor*> attention_mask_input(const OpRun& run, int i, const Tensor& ids);

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

// The rules in ONNX Runtime's order: repetition, n-grams, masks, length, temperature, presence.
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

// A decoder as GPT-2's: (input_ids, position_ids, attention_mask, past...) -> (logits, present...),
// past and present [2, rows, heads, length, size]; with one input more, caches of max_length
// positions and how many of them are filled.
struct GptDecoder {
  int decoder = -1;
  int first = -1;  // init_decoder, for the first step; -1: as the others
  int layers = 0;
  int64_t heads = 0;
  int64_t size = 0;
  DType dtype = DType::kFloat;
  bool shared_buffer = false;

  static Status infer(OpInfer& infer);
  static Result<GptDecoder> parse(const Node& node);
  // `mask`: null, or the attention mask of the prompt, of the shape of `ids`.
  Result<std::unique_ptr<TokenSource>> start(const Tensor& ids, const Tensor* mask, int64_t pad,
                                             const GenerationRequest& request) const;
};

// An encoder and a decoder as T5's. The encoder takes (ids, mask[, decoder ids]) and gives cross
// keys and values, or, with decoder ids, also first (logits, hidden states, self keys and values).
// The decoder: (ids[, encoder's ids], mask[, hidden states], self..., cross...) -> (logits,
// self...); the encoder's ids are there when input 2 is of int32 and so must be the mask.
struct T5Decoder {
  int encoder = -1;
  int decoder = -1;
  int layers = 0;
  bool starts_in_encoder = false;
  bool takes_prompt = false;  // the encoder's ids: models that copy from their text read them
  bool takes_hidden = false;
  bool takes_sequence = false;  // all tokens so far each time, not the last alone

  static Status infer(OpInfer& infer);
  static Result<T5Decoder> parse(const Node& node);
  Result<std::unique_ptr<TokenSource>> start(const Tensor& ids, const Tensor* mask,
                                             const GenerationAttributes& attrs,
                                             const GenerationRequest& request) const;
};

// The rows of `tensor` along `axis` that `from` names, in its order.
Result<Tensor> pick_rows(const Tensor& tensor, int axis, Span<const int32_t> from);

}  // namespace folio
