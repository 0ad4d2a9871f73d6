// BeamSearch: text by keeping the best sequences so far.
//
// Source: com.microsoft BeamSearch, version 1; GPT-2 (model_type 0) and T5 (1) graphs.
// Inputs: input_ids int32 [batch, length], max_length, [min_length], num_beams,
//         num_return_sequences, [length_penalty, repetition_penalty, vocab_mask,
//         prefix_vocab_mask, attention_mask, decoder_input_ids, logits_processor].
// Output: sequences int32 [batch, returned, max_length], padded; their scores float
//         [batch, returned]; scores of all tokens at each step, float
//         [max_length - begun, batch, beams, vocabulary] (0 for steps that did not happen).
// Math:   a beam's score is the sum of the logarithms of its tokens' probabilities; of all beams'
//         tokens the best 2 x beams are looked at; one that ends among the best `beams` is kept
//         with sum / length^penalty; the text is done when as many are kept as there are beams and
//         (early_stopping or) none can become better. Equal scores: the lower beam and token.
// Types:  tokens and masks int32; the decoder's logits float or float16.
// Notes:  Whisper's form (model_type 2) is refused.
// Errors: decoder_input_ids and logits_processor belong to Whisper's form (model_type 2), which
//         is not implemented: any but the default is refused.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_generation.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kMaxBeams = 128;  // as ONNX Runtime's

struct Hypothesis {
  float score = 0;
  std::vector<int32_t> tokens;
};

// The ended sequences of one text, best first, at most `beams` of them.
class Hypotheses {
 public:
  Hypotheses(int64_t beams, float length_penalty) : beams_(beams), penalty_(length_penalty) {}

  bool full() const { return static_cast<int64_t>(kept_.size()) == beams_; }
  const Hypothesis& at(int64_t i) const { return kept_[static_cast<size_t>(i)]; }

  void add(Span<const int32_t> tokens, float sum) {
    const float score = scaled(sum, static_cast<int64_t>(tokens.size()));
    if (full() && !(score > kept_.back().score)) return;
    if (full()) kept_.pop_back();
    const auto place = std::find_if(kept_.begin(), kept_.end(),
                                    [score](const Hypothesis& h) { return score > h.score; });
    kept_.insert(place, {score, std::vector<int32_t>(tokens.begin(), tokens.end())});
  }
  bool can_improve(float best_sum, int64_t length) const {
    return scaled(best_sum, length) > kept_.back().score;
  }

 private:
  float scaled(float sum, int64_t length) const {
    return sum / std::pow(static_cast<float>(length), penalty_);
  }

  int64_t beams_;
  float penalty_;
  std::vector<Hypothesis> kept_;
};

struct Candidate {
  float score = 0;
  int64_t at = 0;  // beam x vocabulary + token
};

// The best `count` of `size` scores, best first; NaN counts as the worst.
void find_best(const float* scores, int64_t size, size_t count, std::vector<Candidate>* best) {
  best->clear();
  for (int64_t i = 0; i < size; ++i) {
    const float score = std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
    if (best->size() == count && !(score > best->back().score)) continue;
    if (best->size() == count) best->pop_back();
    const auto place = std::find_if(best->begin(), best->end(),
                                    [score](const Candidate& c) { return score > c.score; });
    best->insert(place, {score, i});
  }
}

void to_log_probabilities(TokenScores* scores, Parallel& parallel) {
  const int64_t vocabulary = scores->vocabulary;
  parallel.for_range(scores->rows, std::max<int64_t>(1, 20000 / vocabulary),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         float* row = scores->row(i);
                         const float best = *std::max_element(row, row + vocabulary);
                         double sum = 0;
                         for (int64_t j = 0; j < vocabulary; ++j) sum += std::exp(row[j] - best);
                         const float shift = static_cast<float>(std::log(sum));
                         for (int64_t j = 0; j < vocabulary; ++j) row[j] = row[j] - best - shift;
                       }
                     });
}

// What the beams of all texts are in the middle of a search.
class Beams {
 public:
  Beams(const GenerationAttributes& attrs, const GenerationRequest& request, float length_penalty,
        bool early_stopping)
      : attrs_(attrs),
        request_(request),
        early_stopping_(early_stopping),
        sums_(static_cast<size_t>(request.rows()), 0.0f),
        next_(sums_.size()),
        from_(sums_.size()),
        done_(static_cast<size_t>(request.batch), 0),
        kept_(done_.size(), Hypotheses(request.beams, length_penalty)) {
    // All beams of a text begin alike: only the first may be gone on from.
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (static_cast<int64_t>(i) % request.beams != 0) sums_[i] = -1e9f;
    }
  }

  const std::vector<int32_t>& next() const { return next_; }
  const std::vector<int32_t>& from() const { return from_; }
  float sum(int64_t row) const { return sums_[static_cast<size_t>(row)]; }
  bool all_done() const { return std::find(done_.begin(), done_.end(), 0) == done_.end(); }
  const Hypotheses& kept(int64_t b) const { return kept_[static_cast<size_t>(b)]; }

  // Chooses the next token of each beam; scores hold the sums already.
  void choose(const Sequences& sequences, TokenScores* scores) {
    for (int64_t b = 0; b < request_.batch; ++b) {
      if (done_[static_cast<size_t>(b)]) {
        for (int64_t i = 0; i < request_.beams; ++i) {
          set(b * request_.beams + i, b * request_.beams, static_cast<int32_t>(attrs_.pad), 0);
        }
      } else {
        choose_for(b, sequences, scores);
      }
    }
  }
  // The limit is reached: what has not ended counts as it is.
  void finish(const Sequences& sequences) {
    for (int64_t b = 0; b < request_.batch; ++b) {
      if (done_[static_cast<size_t>(b)]) continue;
      for (int64_t i = b * request_.beams; i < (b + 1) * request_.beams; ++i) {
        kept_[static_cast<size_t>(b)].add(sequences.row(i), sum(i));
      }
    }
  }

 private:
  void set(int64_t row, int64_t from, int32_t token, float sum) {
    const auto at = static_cast<size_t>(row);
    from_[at] = static_cast<int32_t>(from);
    next_[at] = token;
    sums_[at] = sum;
  }
  void choose_for(int64_t b, const Sequences& sequences, TokenScores* scores) {
    const int64_t beams = request_.beams;
    const int64_t vocabulary = scores->vocabulary;
    Hypotheses& kept = kept_[static_cast<size_t>(b)];
    find_best(scores->row(b * beams), beams * vocabulary, static_cast<size_t>(2 * beams), &best_);
    int64_t chosen = 0;
    for (size_t j = 0; j < best_.size() && chosen < beams; ++j) {
      const int64_t row = b * beams + best_[j].at / vocabulary;
      const int64_t token = best_[j].at % vocabulary;
      if (token == attrs_.eos) {
        if (static_cast<int64_t>(j) < beams) kept.add(sequences.row(row), best_[j].score);
      } else {
        set(b * beams + chosen++, row, static_cast<int32_t>(token), best_[j].score);
      }
    }
    if (kept.full() && (early_stopping_ || !kept.can_improve(best_[0].score, sequences.length()))) {
      done_[static_cast<size_t>(b)] = 1;
    }
  }

  const GenerationAttributes& attrs_;
  const GenerationRequest& request_;
  const bool early_stopping_;
  std::vector<float> sums_;
  std::vector<int32_t> next_;
  std::vector<int32_t> from_;
  std::vector<uint8_t> done_;
  std::vector<Hypotheses> kept_;
  std::vector<Candidate> best_;
};

class BeamSearch final : public OpKernel {
 public:
  GenerationAttributes attrs;
  bool early_stopping = false;
  bool is_t5 = false;
  GptDecoder gpt;
  T5Decoder t5;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const GenerationRequest request, read(run));
    FOLIO_TRY(const int64_t returned, scalar_input(run, 4, "num_return_sequences", 1));
    if (returned < 1 || returned > request.beams) {
      return invalid_argument("num_return_sequences is ", returned, ", expected 1 to num_beams, ",
                              request.beams);
    }
    FOLIO_TRY(const float length_penalty, scalar_input_float(run, 5, "length_penalty", 1.0f));
    FOLIO_TRY(const std::unique_ptr<TokenSource> source, start(run, request));
    Sequences sequences(request.rows(), request.max_length, attrs.pad);
    const std::vector<int32_t> begin(static_cast<size_t>(request.batch),
                                     static_cast<int32_t>(attrs.start));
    const int32_t* tokens = is_t5 ? begin.data() : run.value(0).tensor().data<int32_t>();
    sequences.begin(tokens, request.prompt, request.beams);
    Beams beams(attrs, request, length_penalty, early_stopping);
    TokenScores scores;
    float* all_scores = nullptr;
    for (bool is_first = true;; is_first = false) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_TRY(const Tensor logits, source->logits(run));
      FOLIO_RETURN_IF_ERROR(take_last_logits(logits, attrs, request, &scores));
      if (scores.vocabulary < 2) {
        return invalid_graph("the decoder's vocabulary is ", scores.vocabulary,
                             ", expected 2 tokens or more");
      }
      to_log_probabilities(&scores, run.parallel());
      FOLIO_RETURN_IF_ERROR(apply_rules(attrs, request, sequences, is_first, &scores));
      for (int64_t i = 0; i < scores.rows; ++i) {
        for (int64_t j = 0; j < scores.vocabulary; ++j) scores.row(i)[j] += beams.sum(i);
      }
      FOLIO_RETURN_IF_ERROR(keep_scores(run, request, scores, &all_scores));
      beams.choose(sequences, &scores);
      if (beams.all_done()) break;
      sequences.append(beams.next(), beams.from());
      if (sequences.length() == request.max_length) break;
      FOLIO_RETURN_IF_ERROR(source->advance(beams.next(), beams.from(), sequences));
    }
    beams.finish(sequences);
    return write(run, request, returned, beams);
  }

 private:
  Result<GenerationRequest> read(const OpRun& run) const {
    FOLIO_TRY(GenerationRequest request, read_request(run, is_t5));
    FOLIO_TRY(request.beams, scalar_input(run, 3, "num_beams", 1));
    if (request.beams < 1 || request.beams > kMaxBeams) {
      return invalid_argument("num_beams is ", request.beams, ", expected 1 to ", kMaxBeams);
    }
    if (request.batch > INT32_MAX / request.beams / request.max_length) {
      return invalid_argument("a batch of ", request.batch, " texts of ", request.beams,
                              " beams is too large");
    }
    if (request.min_length >= request.max_length) {
      return invalid_argument("min_length is ", request.min_length,
                              ", expected less than max_length, ", request.max_length);
    }
    FOLIO_RETURN_IF_ERROR(read_rules(run, 6, &request));
    FOLIO_TRY(const int64_t processor, scalar_input(run, 11, "logits_processor", 0));
    if (processor != 0) {
      return not_implemented("logits_processor ", processor, ", expected 0 (none)");
    }
    if (run.has_input(10)) {
      return not_implemented("decoder_input_ids, which are of Whisper models (model_type 2)");
    }
    return request;
  }

  Result<std::unique_ptr<TokenSource>> start(OpRun& run, const GenerationRequest& request) const {
    const Tensor& ids = run.value(0).tensor();
    FOLIO_TRY(const Tensor* mask, attention_mask_input(run, 9, ids));
    if (is_t5) return t5.start(ids, mask, attrs, request);
    return gpt.start(ids, mask, attrs.pad, request);
  }

  // Appends a step to output 2, which begins with zeros.
  static Status keep_scores(OpRun& run, const GenerationRequest& request, const TokenScores& scores,
                            float** at) {
    if (!run.has_output(2)) return Status::ok();
    if (!*at) {
      FOLIO_TRY(Tensor * out, run.output(2, DType::kFloat,
                                         {request.max_length - request.prompt, request.batch,
                                          request.beams, scores.vocabulary}));
      *at = out->data_mut<float>();
      std::fill_n(*at, out->count(), 0.0f);
    }
    *at = std::copy(scores.values.begin(), scores.values.end(), *at);
    return Status::ok();
  }

  Status write(OpRun& run, const GenerationRequest& request, int64_t returned,
               const Beams& beams) const {
    const int64_t length = request.max_length;
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt32, {request.batch, returned, length}));
    std::fill_n(out->data_mut<int32_t>(), out->count(), static_cast<int32_t>(attrs.pad));
    float* sums = nullptr;
    if (run.has_output(1)) {
      FOLIO_TRY(Tensor * scores, run.output(1, DType::kFloat, {request.batch, returned}));
      sums = scores->data_mut<float>();
    }
    for (int64_t b = 0; b < request.batch; ++b) {
      for (int64_t i = 0; i < returned; ++i) {
        const Hypothesis& best = beams.kept(b).at(i);
        std::copy(best.tokens.begin(), best.tokens.end(),
                  out->data_mut<int32_t>() + (b * returned + i) * length);
        if (sums) sums[b * returned + i] = best.score;
      }
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t model_type, infer.attrs().get_int("model_type", 0));
  return model_type == 1 ? T5Decoder::infer(infer) : GptDecoder::infer(infer);
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<BeamSearch>();
  FOLIO_TRY(kernel->attrs, GenerationAttributes::parse(build.attrs()));
  FOLIO_TRY(const int64_t early, build.attrs().get_int("early_stopping", 0));
  kernel->early_stopping = early == 1;
  kernel->is_t5 = kernel->attrs.model_type == 1;
  if (kernel->is_t5) {
    FOLIO_TRY(kernel->t5, T5Decoder::parse(build.node()));
    if (kernel->attrs.start < 0) {
      return invalid_graph("attribute 'decoder_start_token_id' is required for model_type 1");
    }
  } else {
    FOLIO_TRY(kernel->gpt, GptDecoder::parse(build.node()));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_beam_search(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "BeamSearch";
  def.min_inputs = 5;
  def.max_inputs = 12;
  def.max_outputs = 3;
  def.infer = infer;
  def.make = make;
  def.foldable = false;  // not a thing to do while loading
  registry.add(def);
}

}  // namespace folio
