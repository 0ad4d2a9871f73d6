#include "tests/support/plain_beam_search.h"

#include <algorithm>
#include <cmath>

namespace folio {
namespace {

bool is_better(const PlainBeam& a, const PlainBeam& b) { return a.sum > b.sum; }

// One text in the middle of a search.
struct PlainText {
  std::vector<PlainBeam> open;
  std::vector<PlainBeam> ended;
  bool done = false;

  void end(const PlainSearch& search, PlainBeam beam) {
    beam.sum /= std::pow(static_cast<double>(beam.tokens.size()), search.length_penalty);
    ended.push_back(std::move(beam));
    std::stable_sort(ended.begin(), ended.end(), is_better);
    if (ended.size() > search.beams) ended.pop_back();
  }
};

// The best 2 x beams continuations of a text's open beams.
std::vector<PlainBeam> candidates_of(const PlainSearch& search, size_t text,
                                     const std::vector<PlainBeam>& open, const PlainLogits& logits,
                                     const PlainRules& rules) {
  std::vector<PlainBeam> all;
  for (const PlainBeam& beam : open) {
    std::vector<double> scores = logits(text, beam.tokens);
    double total = 0;
    for (const double score : scores) total += std::exp(score);
    for (double& score : scores) score -= std::log(total);
    if (rules) rules(text, beam.tokens, &scores);
    for (size_t i = 0; i < scores.size(); ++i) {
      // As a float: beams that began with -1e9 have equal sums then, as in the operator.
      all.push_back({beam.tokens, static_cast<float>(beam.sum + scores[i])});
      all.back().tokens.push_back(static_cast<int32_t>(i));
    }
  }
  std::stable_sort(all.begin(), all.end(), is_better);
  all.resize(2 * search.beams);
  return all;
}

// Takes what goes on of a text's candidates, and what ends.
void take(const PlainSearch& search, const PlainBeam* candidates, double best_sum,
          PlainText* text) {
  const auto length = static_cast<double>(text->open[0].tokens.size());
  std::vector<PlainBeam> next;
  for (size_t i = 0; i < 2 * search.beams && next.size() < search.beams; ++i) {
    PlainBeam beam = candidates[i];
    if (beam.tokens.back() != search.end) {
      next.push_back(std::move(beam));
    } else if (i < search.beams) {
      beam.tokens.pop_back();
      text->end(search, std::move(beam));
    }
  }
  const double best = best_sum / std::pow(length, search.length_penalty);
  text->done =
      text->ended.size() == search.beams && (search.early || text->ended.back().sum >= best);
  text->open = std::move(next);
}

}  // namespace

std::vector<std::vector<PlainBeam>> plain_search(const PlainSearch& search,
                                                 const std::vector<std::vector<int32_t>>& prompts,
                                                 const PlainLogits& logits,
                                                 const PlainRules& rules) {
  std::vector<PlainText> texts;
  for (const auto& prompt : prompts) {
    texts.emplace_back();
    // All beams begin alike: only the first may be gone on from.
    texts.back().open.assign(search.beams, {prompt, -1e9});
    texts.back().open[0].sum = 0;
  }
  for (size_t length = prompts[0].size(); length < search.length; ++length) {
    std::vector<PlainBeam> all;
    for (size_t b = 0; b < texts.size(); ++b) {
      const auto found = candidates_of(search, b, texts[b].open, logits, rules);
      all.insert(all.end(), found.begin(), found.end());
    }
    std::vector<int32_t> padded = texts[0].open[0].tokens;
    padded.push_back(search.pad);
    for (size_t b = 0; b < texts.size(); ++b) {
      if (texts[b].done) {
        texts[b].open.assign(search.beams, {padded, 0.0});
        continue;
      }
      double best = kPlainForbidden;
      for (size_t i = b * search.beams; i < (b + 2) * search.beams; ++i) {
        best = std::max(best, all[i].sum);
      }
      take(search, all.data() + b * 2 * search.beams, best, &texts[b]);
    }
    const auto is_done = [](const PlainText& text) { return text.done; };
    if (std::all_of(texts.begin(), texts.end(), is_done)) break;
  }
  std::vector<std::vector<PlainBeam>> out;
  for (PlainText& text : texts) {
    for (const PlainBeam& beam : text.open) {
      if (!text.done) text.end(search, beam);
    }
    out.push_back(std::move(text.ended));
  }
  return out;
}

}  // namespace folio
