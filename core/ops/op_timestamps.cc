#include "core/ops/op_timestamps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace folio {
namespace {

constexpr float kForbidden = std::numeric_limits<float>::lowest();
constexpr int64_t kFirstStepMax = 50;  // of 20 ms, where a text may begin

// The scores of a row, by token; what is outside the vocabulary is left alone.
class Row {
 public:
  Row(int64_t vocabulary, float* scores) : vocabulary_(vocabulary), scores_(scores) {}

  void forbid(int64_t token) {
    if (token >= 0 && token < vocabulary_) scores_[token] = kForbidden;
  }
  void forbid(int64_t begin, int64_t end) {
    for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(end, vocabulary_); ++i) {
      scores_[i] = kForbidden;
    }
  }
  float best(int64_t begin, int64_t end) const {
    return *std::max_element(scores_ + begin, scores_ + end);
  }
  // The logarithm of the sum of the probabilities; kForbidden when nothing is allowed.
  float sum(int64_t begin, int64_t end) const {
    const float top = best(begin, end);
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (scores_[i] > kForbidden) sum += std::exp(scores_[i] - top);
    }
    return sum > 0 ? std::log(sum) + top : kForbidden;
  }

 private:
  int64_t vocabulary_;
  float* scores_;
};

}  // namespace

Status TimestampTokens::check(int64_t vocabulary) const {
  if (first > 0 && first < vocabulary) return Status::ok();
  return invalid_argument("beginning_timestamp_token_id is ", first,
                          ", expected 1 or more and less than ", vocabulary, ", the vocabulary");
}

void TimestampTokens::apply(Span<const int32_t> tokens, int64_t vocabulary, float* scores) const {
  Row row(vocabulary, scores);
  const auto is_time = [this](int32_t token) { return token >= first; };
  const auto earliest = std::find_if(tokens.begin(), tokens.end(), is_time);
  const bool has_time = earliest != tokens.end();
  const bool ends_in_time = is_time(tokens[tokens.size() - 1]);
  // Nothing but, perhaps, the last token is a time.
  const bool begins = !has_time || earliest + 1 == tokens.end();
  const bool ends_in_pair = ends_in_time && (begins || is_time(tokens[tokens.size() - 2]));

  row.forbid(none);
  row.forbid(start_of_lm);
  if (!begins) {
    for (const int64_t token : {start, translate, transcribe}) row.forbid(token);
  }
  if (ends_in_pair) row.forbid(first, vocabulary);
  if (ends_in_time && !ends_in_pair) row.forbid(0, end);
  if (has_time) {
    int64_t latest = 0;
    for (const int32_t token : tokens) {
      if (is_time(token)) latest = token;
    }
    row.forbid(first, ends_in_time && !ends_in_pair ? latest : latest + 1);
  }
  if (begins) row.forbid(first + kFirstStepMax + 1, vocabulary);
  if (row.sum(first, vocabulary) > row.best(0, first)) row.forbid(0, first);
}

}  // namespace folio
