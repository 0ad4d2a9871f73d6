// GreedySearch and Sampling: text by the best, or a drawn, next token, again and again.
//
// Source: com.microsoft GreedySearch and Sampling, version 1.
// Inputs: input_ids int32 [batch, length], max_length, [min_length, repetition_penalty,
//         vocab_mask, prefix_vocab_mask, attention_mask; Sampling: presence_mask, seed].
// Output: sequences int32 [batch, max_length], `pad_token_id` from the end token on; Sampling:
//         also the filtered scores of the last step, float [batch, vocabulary].
// Graphs: decoder as GPT-2's (op_generation.h), init_decoder for the first step.
// Math:   Sampling keeps the most probable tokens up to top_p (`custom`: all tokens before the sum
//         passes top_p; otherwise all but the least probable that sum to 1 - top_p, and
//         min_tokens_to_keep always), gives the others `filter_value`, and draws by softmax.
//         Draws are of the generator of Park and Miller (factor 16807) begun with `seed`, two of
//         its numbers each: the same seed gives the same text in every run and process.
// Types:  tokens and masks int32; the decoder's logits float or float16.
// Notes:  models of encoder and decoder (model_type 1) are refused.
// Errors: encoder-decoder models (model_type 1) are not implemented, as in ONNX Runtime.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/ops/op_generation.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// In [0, 1), of two numbers of the engine, whose range is 1 to 2^31 - 2.
double draw(std::minstd_rand0* engine) {
  constexpr double kRange = 2147483646.0;
  const double low = static_cast<double>((*engine)()) - 1;
  const double high = static_cast<double>((*engine)()) - 1;
  return std::min((low + high * kRange) / (kRange * kRange), std::nextafter(1.0, 0.0));
}

class GreedySearch : public OpKernel {
 public:
  GenerationAttributes attrs;
  std::unique_ptr<Decoder> decoder;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor prompt, decoder->prompt(run));
    FOLIO_TRY(GenerationRequest request, read_request(run, prompt));
    FOLIO_RETURN_IF_ERROR(read_rules(run, 3, &request));
    return generate(run, request);
  }

 protected:
  virtual Status generate(OpRun& run, const GenerationRequest& request) const {
    return search(run, request, [](TokenScores* scores, std::vector<int32_t>* next) {
      for (int64_t i = 0; i < scores->rows; ++i) {
        const float* row = scores->row(i);
        const float* best = std::max_element(row, row + scores->vocabulary);
        (*next)[static_cast<size_t>(i)] = static_cast<int32_t>(best - row);
      }
      return Status::ok();
    });
  }

  // The loop; `choose(scores, next)` gives the next token of each row.
  template <typename Choose>
  Status search(OpRun& run, const GenerationRequest& request, Choose&& choose) const {
    FOLIO_TRY(const std::unique_ptr<TokenSource> source, decoder->start(run, 6, request));
    Sequences sequences(request.batch, request.max_length, attrs.pad);
    sequences.begin(run.value(0).tensor().data<int32_t>(), request.prompt, 1);
    std::vector<uint8_t> ended(static_cast<size_t>(request.batch), 0);
    std::vector<int32_t> next(static_cast<size_t>(request.batch));
    TokenScores scores;
    for (bool is_first = true;; is_first = false) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_TRY(const Tensor logits, source->logits(run));
      FOLIO_RETURN_IF_ERROR(take_last_logits(logits, attrs, request, &scores));
      FOLIO_RETURN_IF_ERROR(apply_rules(attrs, request, sequences, is_first, &scores));
      FOLIO_RETURN_IF_ERROR(choose(&scores, &next));
      for (size_t i = 0; i < next.size(); ++i) {
        ended[i] |= next[i] == attrs.eos;
        if (ended[i]) next[i] = static_cast<int32_t>(attrs.pad);
      }
      sequences.append(next, {});
      const bool all_ended = std::find(ended.begin(), ended.end(), 0) == ended.end();
      if (all_ended || sequences.length() == request.max_length) break;
      FOLIO_RETURN_IF_ERROR(source->advance(next, {}, sequences));
    }
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt32, {request.batch, request.max_length}));
    for (int64_t i = 0; i < request.batch; ++i) {
      std::copy_n(sequences.whole_row(i), request.max_length,
                  out->data_mut<int32_t>() + i * request.max_length);
    }
    return write_scores(run, request, scores);
  }

 private:
  static Status write_scores(OpRun& run, const GenerationRequest& request,
                             const TokenScores& scores) {
    if (!run.has_output(1)) return Status::ok();
    FOLIO_TRY(Tensor * out, run.output(1, DType::kFloat, {request.batch, scores.vocabulary}));
    std::copy(scores.values.begin(), scores.values.end(), out->data_mut<float>());
    return Status::ok();
  }
};

class Sampling final : public GreedySearch {
 public:
  float temperature = 1;
  float top_p = 0;
  float filter_value = 0;
  float presence_penalty = 0;
  int64_t keep = 0;
  bool custom = false;

 protected:
  Status generate(OpRun& run, const GenerationRequest& asked) const override {
    GenerationRequest request = asked;
    request.temperature = temperature;
    request.presence_penalty = presence_penalty;
    FOLIO_TRY(request.presence_mask, mask_input(run, 7, "presence_mask", request.batch));
    FOLIO_TRY(const int64_t seed, scalar_input(run, 8, "seed", 0));
    std::minstd_rand0 engine(static_cast<uint32_t>(seed));
    std::vector<int32_t> order;
    std::vector<double> sums;
    return search(run, request, [&](TokenScores* scores, std::vector<int32_t>* next) {
      for (int64_t i = 0; i < scores->rows; ++i) {
        filter(scores->row(i), scores->vocabulary, &order, &sums);
        (*next)[static_cast<size_t>(i)] =
            pick(scores->row(i), scores->vocabulary, draw(&engine), &sums);
      }
      return Status::ok();
    });
  }

 private:
  // Gives the improbable tokens of a row the filter value.
  void filter(float* row, int64_t vocabulary, std::vector<int32_t>* order,
              std::vector<double>* sums) const {
    order->resize(static_cast<size_t>(vocabulary));
    sums->resize(static_cast<size_t>(vocabulary));
    std::iota(order->begin(), order->end(), 0);
    // NaN has no place in an order: such tokens count as impossible.
    for (int64_t i = 0; i < vocabulary; ++i) {
      if (std::isnan(row[i])) row[i] = -std::numeric_limits<float>::infinity();
    }
    std::stable_sort(order->begin(), order->end(), [&](int32_t a, int32_t b) {
      return custom ? row[a] > row[b] : row[a] < row[b];
    });
    const float best = *std::max_element(row, row + vocabulary);
    double total = 0;
    for (int64_t i = 0; i < vocabulary; ++i) {
      total += std::exp(static_cast<double>(row[(*order)[static_cast<size_t>(i)]]) - best);
      (*sums)[static_cast<size_t>(i)] = total;
    }
    const int64_t fixed = custom ? 1 : std::max<int64_t>(keep, 0);
    for (int64_t i = 0; i < vocabulary - fixed; ++i) {
      const double share = (*sums)[static_cast<size_t>(i)] / total;
      if (custom && share > top_p) row[(*order)[static_cast<size_t>(i + 1)]] = filter_value;
      if (!custom && share <= 1.0 - top_p) row[(*order)[static_cast<size_t>(i)]] = filter_value;
    }
  }

  // The token at the place `at` of the row's distribution.
  static int32_t pick(const float* row, int64_t vocabulary, double at, std::vector<double>* sums) {
    float best = std::numeric_limits<float>::lowest();
    for (int64_t i = 0; i < vocabulary; ++i) {
      if (std::isfinite(row[i])) best = std::max(best, row[i]);
    }
    double total = 0;
    for (int64_t i = 0; i < vocabulary; ++i) {
      if (std::isfinite(row[i])) total += std::exp(static_cast<double>(row[i]) - best);
      (*sums)[static_cast<size_t>(i)] = total;
    }
    const auto found = std::upper_bound(sums->begin(), sums->end(), at * total);
    return static_cast<int32_t>(std::min<int64_t>(found - sums->begin(), vocabulary - 1));
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t model_type, infer.attrs().get_int("model_type", 0));
  if (model_type != 0) {
    return not_implemented("model_type ", model_type, ", expected 0 (a decoder alone)");
  }
  infer.set_tensor(0, DType::kInt32, infer_sequence_dims(infer));
  if (infer.has_output(1)) infer.set_output(1, unknown_dims(DType::kFloat, 2));
  return infer_decoder(infer, model_type);
}

Status parse_common(const Node& node, GreedySearch* kernel) {
  FOLIO_TRY(kernel->attrs, GenerationAttributes::parse(node.attributes));
  if (kernel->attrs.model_type != 0) {
    return not_implemented("model_type ", kernel->attrs.model_type,
                           ", expected 0 (a decoder alone)");
  }
  FOLIO_TRY(kernel->decoder, make_decoder(node, kernel->attrs));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_greedy(OpBuild& build) {
  auto kernel = std::make_unique<GreedySearch>();
  FOLIO_RETURN_IF_ERROR(parse_common(build.node(), kernel.get()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Result<std::unique_ptr<OpKernel>> make_sampling(OpBuild& build) {
  auto kernel = std::make_unique<Sampling>();
  FOLIO_RETURN_IF_ERROR(parse_common(build.node(), kernel.get()));
  const Attributes& attrs = build.attrs();
  FOLIO_TRY(kernel->temperature, attrs.get_float("temperature", 1.0f));
  FOLIO_TRY(kernel->top_p, attrs.get_float("top_p", 0.0f));
  FOLIO_TRY(kernel->filter_value, attrs.get_float("filter_value", -1e20f));
  FOLIO_TRY(kernel->presence_penalty, attrs.get_float("presence_penalty", 0.0f));
  FOLIO_TRY(kernel->keep, attrs.get_int("min_tokens_to_keep", 0));
  FOLIO_TRY(const int64_t custom, attrs.get_int("custom", 0));
  kernel->custom = custom != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_greedy_search(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "GreedySearch";
  def.min_inputs = 2;
  def.max_inputs = 7;
  def.infer = infer;
  def.make = make_greedy;
  def.foldable = false;  // not a thing to do while loading
  registry.add(def);
  def.type = "Sampling";
  def.max_inputs = 9;
  def.max_outputs = 2;
  def.make = make_sampling;
  registry.add(def);
}

}  // namespace folio
