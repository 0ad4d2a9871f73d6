// BeamSearch and WhisperBeamSearch: text by keeping the best sequences so far.
//
// Source: com.microsoft BeamSearch and WhisperBeamSearch, version 1; GPT-2 (model_type 0), T5 (1)
//         and Whisper (2, the only one of WhisperBeamSearch) graphs: op_generation_*.cc.
// Inputs: input_ids int32 [batch, length], Whisper: features float or float16 [batch, features,
//         frames]; max_length, [min_length], num_beams, num_return_sequences, [length_penalty,
//         repetition_penalty, vocab_mask, prefix_vocab_mask, attention_mask; Whisper:
//         decoder_input_ids, logits_processor; WhisperBeamSearch: cross_qk_layer_head,
//         extra_decoding_ids, temperature].
// Output: sequences int32 [batch, returned, max_length], padded; their scores float
//         [batch, returned]; scores of all tokens at each step, float
//         [max_length - begun, batch, beams, vocabulary] (0 for steps that did not happen);
//         WhisperBeamSearch: cross_qk; non_speech_probs float [batch].
// Math:   a beam's score is the sum of the logarithms of its tokens' probabilities; of all beams'
//         tokens the best 2 x beams are looked at; one that ends among the best `beams` is kept
//         with sum / length^penalty; the text is done when as many are kept as there are beams and
//         (early_stopping or) none can become better. Equal scores: the lower beam and token.
//         Whisper: logits_processor 1 keeps timestamps in order (op_timestamps.h), others change
//         nothing; extra_decoding_ids are what a text goes on with, up to a negative one;
//         non_speech_probs is the probability of no_speech_token_id as the first token, before any
//         rule.
// Types:  tokens and masks int32; audio features and the decoder's logits float or float16.
// Notes:  the output cross_qk is refused; ONNX Runtime's CPU ignores extra_decoding_ids and gives
//         no numbers for non_speech_probs.
// Errors: cross_qk, and decoders that give it or take beam_width and cache_indirection, are not
//         implemented, as in ONNX Runtime.
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
    best_.clear();
    for (int64_t b = 0; b < request_.batch; ++b) {
      find_best(scores->row(b * request_.beams), request_.beams * scores->vocabulary,
                static_cast<size_t>(candidates()), &found_);
      best_.insert(best_.end(), found_.begin(), found_.end());
    }
    for (int64_t b = 0; b < request_.batch; ++b) {
      if (done_[static_cast<size_t>(b)]) {
        for (int64_t i = 0; i < request_.beams; ++i) {
          set(b * request_.beams + i, 0, static_cast<int32_t>(attrs_.pad), 0);
        }
      } else {
        choose_for(b, sequences, scores->vocabulary);
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
  int64_t candidates() const { return 2 * request_.beams; }  // of a text

  // The sum that the kept ones of text b are held against. ONNX Runtime takes the best of
  // candidates b x beams on, though each text has 2 x beams of them: later texts are held against
  // their neighbours, done ones too (which go on from the first row with padding). When a text
  // ends decides what it says, so ours end when ONNX Runtime's do.
  float best_sum(int64_t b) const {
    const auto first = best_.begin() + b * request_.beams;
    return std::max_element(
               first, first + candidates(),
               [](const Candidate& x, const Candidate& y) { return x.score < y.score; })
        ->score;
  }
  void choose_for(int64_t b, const Sequences& sequences, int64_t vocabulary) {
    const int64_t beams = request_.beams;
    Hypotheses& kept = kept_[static_cast<size_t>(b)];
    int64_t chosen = 0;
    for (int64_t j = 0; j < candidates() && chosen < beams; ++j) {
      const Candidate& candidate = best_[static_cast<size_t>(b * candidates() + j)];
      const int64_t row = b * beams + candidate.at / vocabulary;
      const int64_t token = candidate.at % vocabulary;
      if (token == attrs_.eos) {
        if (j < beams) kept.add(sequences.row(row), candidate.score);
      } else {
        set(b * beams + chosen++, row, static_cast<int32_t>(token), candidate.score);
      }
    }
    if (kept.full() && (early_stopping_ || !kept.can_improve(best_sum(b), sequences.length()))) {
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
  std::vector<Candidate> best_;  // candidates() of each text
  std::vector<Candidate> found_;
};

class BeamSearch : public OpKernel {
 public:
  GenerationAttributes attrs;
  bool early_stopping = false;
  std::unique_ptr<Decoder> decoder;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor prompt, decoder->prompt(run));
    FOLIO_TRY(const GenerationRequest request, read(run, prompt));
    FOLIO_TRY(const int64_t returned, scalar_input(run, 4, "num_return_sequences", 1));
    if (returned < 1 || returned > request.beams) {
      return invalid_argument("num_return_sequences is ", returned, ", expected 1 to num_beams, ",
                              request.beams);
    }
    FOLIO_TRY(const float length_penalty, scalar_input_float(run, 5, "length_penalty", 1.0f));
    FOLIO_TRY(const std::unique_ptr<TokenSource> source, decoder->start(run, 9, request));
    Sequences sequences(request.rows(), request.max_length, attrs.pad);
    sequences.begin(prompt.data<int32_t>(), request.prompt, request.beams);
    Beams beams(attrs, request, length_penalty, early_stopping);
    TokenScores scores;
    int64_t vocabulary = 0;
    float* all_scores = nullptr;
    for (bool is_first = true;; is_first = false) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_TRY(const Tensor logits, source->logits(run));
      FOLIO_RETURN_IF_ERROR(take_last_logits(logits, attrs, request, &scores));
      FOLIO_RETURN_IF_ERROR(check_vocabulary(scores, &vocabulary));
      to_log_probabilities(&scores, run.parallel());
      if (is_first) FOLIO_RETURN_IF_ERROR(see_first(run, request, &scores));
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

 protected:
  // The inputs that are of one form alone.
  virtual Status read_own(const OpRun& run, int64_t processor, GenerationRequest* request) const {
    (void)processor, (void)request;
    if (!run.has_input(10)) return Status::ok();
    return not_implemented("decoder_input_ids, which are of Whisper models (model_type 2)");
  }
  // The logarithms of the first step's probabilities, before any rule.
  virtual Status see_first(OpRun& run, const GenerationRequest& request,
                           TokenScores* scores) const {
    (void)run, (void)request, (void)scores;
    return Status::ok();
  }

 private:
  Result<GenerationRequest> read(const OpRun& run, const Tensor& prompt) const {
    FOLIO_TRY(GenerationRequest request, read_request(run, prompt));
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
    // 0 is none; what the others do is a form's own.
    FOLIO_TRY(const int64_t processor, scalar_input(run, 11, "logits_processor", 0));
    if (processor < 0) {
      return invalid_argument("logits_processor is ", processor, ", expected 0 or more");
    }
    FOLIO_RETURN_IF_ERROR(read_own(run, processor, &request));
    return request;
  }

  // Every step has the vocabulary of the first.
  static Status check_vocabulary(const TokenScores& scores, int64_t* first) {
    if (*first == 0) *first = scores.vocabulary;
    if (scores.vocabulary < 2) {
      return invalid_graph("the decoder's vocabulary is ", scores.vocabulary,
                           ", expected 2 tokens or more");
    }
    if (scores.vocabulary == *first) return Status::ok();
    return invalid_graph("the decoder's vocabulary is ", scores.vocabulary, ", expected ", *first,
                         " as in the first step");
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

class WhisperSearch final : public BeamSearch {
 public:
  TimestampTokens tokens;
  int64_t no_speech = -1;

  Status parse(const Attributes& from) {
    const std::pair<std::string_view, int64_t*> ids[] = {
        {"translate_token_id", &tokens.translate},
        {"transcribe_token_id", &tokens.transcribe},
        {"start_of_lm_token_id", &tokens.start_of_lm},
        {"no_timestamps_token_id", &tokens.none},
        {"beginning_timestamp_token_id", &tokens.first},
        {"no_speech_token_id", &no_speech}};
    for (const auto& [name, id] : ids) {
      FOLIO_TRY(*id, from.get_int(name, -1));
    }
    tokens.end = attrs.eos;
    tokens.start = attrs.start;
    return Status::ok();
  }

 protected:
  Status read_own(const OpRun& run, int64_t processor, GenerationRequest* request) const override {
    if (processor == kTimestamps) request->timestamps = tokens;
    FOLIO_TRY(request->temperature, scalar_input_float(run, 14, "temperature", 1.0f));
    if (!run.has_input(13)) return Status::ok();
    FOLIO_TRY(const Tensor* ids, run.tensor(13, DType::kInt32));
    if (ids->rank() != 2 || ids->dim(0) != request->batch) {
      return invalid_argument("extra_decoding_ids is ", ids->shape().to_string(), ", expected [",
                              request->batch, ", tokens]");
    }
    const Span<const int32_t> given = ids->span<int32_t>();
    request->forced.assign(given.begin(), given.end());
    return Status::ok();
  }

  Status see_first(OpRun& run, const GenerationRequest& request,
                   TokenScores* scores) const override {
    if (!run.has_output(4)) return Status::ok();
    if (no_speech < 0 || no_speech >= scores->vocabulary) {
      return invalid_argument("no_speech_token_id is ", no_speech, ", expected 0 to ",
                              scores->vocabulary - 1, ", of the vocabulary");
    }
    FOLIO_TRY(Tensor * out, run.output(4, DType::kFloat, {request.batch}));
    for (int64_t b = 0; b < request.batch; ++b) {
      out->data_mut<float>()[b] = std::exp(scores->row(b * request.beams)[no_speech]);
    }
    return Status::ok();
  }

 private:
  static constexpr int64_t kTimestamps = 1;  // logits_processor
};

// model_type; that of WhisperBeamSearch must be its default.
Result<int64_t> model_type_of(const Node& node) {
  const bool is_whisper = node.op_type == "WhisperBeamSearch";
  FOLIO_TRY(const int64_t type,
            node.attributes.get_int("model_type", is_whisper ? kWhisperModel : kGptModel));
  if (!is_whisper || type == kWhisperModel) return type;
  return invalid_graph("model_type is ", type, ", expected ", kWhisperModel);
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t model_type, model_type_of(infer.node()));
  if (infer.has_output(3)) {
    return not_implemented("output cross_qk, which ONNX Runtime computes on GPUs alone");
  }
  Dims dims = infer_sequence_dims(infer);
  if (infer.has_output(4)) infer.set_tensor(4, DType::kFloat, Dims{dims[0]});
  dims.insert(dims.begin() + 1, Dim::unknown());
  infer.set_tensor(0, DType::kInt32, std::move(dims));
  if (infer.has_output(1)) infer.set_output(1, unknown_dims(DType::kFloat, 2));
  if (infer.has_output(2)) infer.set_output(2, unknown_dims(DType::kFloat, 4));
  return infer_decoder(infer, model_type);
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(const int64_t model_type, model_type_of(build.node()));
  FOLIO_TRY(const GenerationAttributes attrs,
            GenerationAttributes::parse(build.attrs(), model_type));
  FOLIO_TRY(const int64_t early, build.attrs().get_int("early_stopping", 0));
  std::unique_ptr<BeamSearch> kernel;
  if (model_type == kWhisperModel) {
    auto whisper = std::make_unique<WhisperSearch>();
    whisper->attrs = attrs;
    FOLIO_RETURN_IF_ERROR(whisper->parse(build.attrs()));
    kernel = std::move(whisper);
  } else {
    kernel = std::make_unique<BeamSearch>();
    kernel->attrs = attrs;
  }
  kernel->early_stopping = early == 1;
  FOLIO_TRY(kernel->decoder, make_decoder(build.node(), attrs));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_beam_search(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "BeamSearch";
  def.min_inputs = 5;
  def.optional_inputs = 1U << 2;  // min_length
  def.max_inputs = 12;
  def.max_outputs = 3;
  def.infer = infer;
  def.make = make;
  def.foldable = false;  // not a thing to do while loading
  registry.add(def);
  def.type = "WhisperBeamSearch";
  def.max_inputs = 15;
  def.max_outputs = 5;
  registry.add(def);
}

}  // namespace folio
