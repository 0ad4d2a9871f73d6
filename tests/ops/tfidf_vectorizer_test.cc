#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester tfidf(const char* mode) {
  OpTester t("TfIdfVectorizer", 9);
  t.attr("mode", mode).attr("min_gram_length", 1).attr("max_gram_length", 2);
  t.attr("max_skip_count", 1)
      .attr_ints("ngram_counts", {0, 2})
      .attr_ints("ngram_indexes", {0, 1, 2});
  t.attr_ints("pool_int64s", {7, 8, 7, 9});  // 7; 8; 7 9
  return t;
}

TEST(TfIdfVectorizer, CountsAndWeighsNGrams) {
  OpTester counts = tfidf("TF");
  counts.input<int64_t>({5}, {7, 9, 7, 5, 9}).expect<float>(0, {3}, {2, 0, 2}).run();
  OpTester weighed = tfidf("TFIDF");
  weighed.attr_floats("weights", {1, 2, 0.5F}).input<int32_t>({2, 2}, {7, 9, 8, 8});
  weighed.expect<float>(0, {2, 3}, {1, 0, 0.5F, 0, 4, 0}).run();
}

// The pool's n-grams 7, 8 and 7 9 stand in columns 2, 0 and 1.
TEST(TfIdfVectorizer, WeightsAreOfTheNGramsOfThePool) {
  OpTester product = tfidf("TFIDF");
  product.attr_ints("ngram_indexes", {2, 0, 1}).attr_floats("weights", {5, 7, 11});
  product.input<int64_t>({4}, {7, 7, 9, 8}).expect<float>(0, {3}, {7, 22, 10}).run();
  OpTester presence = tfidf("IDF");
  presence.attr_ints("ngram_indexes", {2, 0, 1}).attr_floats("weights", {5, 7, 11});
  presence.input<int64_t>({4}, {7, 7, 9, 8}).expect<float>(0, {3}, {7, 11, 5}).run();
}

TEST(TfIdfVectorizer, NGramsOfOneColumnAddWithTheirOwnWeights) {
  for (const auto& [mode, column] : {std::pair{"TF", 5.0F}, {"IDF", 23.0F}, {"TFIDF", 39.0F}}) {
    OpTester t = tfidf(mode);
    t.attr_ints("ngram_indexes", {1, 1, 1}).attr_floats("weights", {5, 7, 11});
    t.input<int64_t>({4}, {7, 7, 9, 8}).expect<float>(0, {2}, {0, column}).run();
  }
}

TEST(TfIdfVectorizer, RefusesPoolsThatDoNotFit) {
  OpTester index = tfidf("TF");
  index.attr_ints("ngram_indexes", {0, 1, INT64_MAX}).input<int64_t>({1}, {7}).outputs(1);
  index.fails("ngram index");
  OpTester counts = tfidf("TF");
  counts.attr_ints("ngram_counts", {0, 9}).input<int64_t>({1}, {7}).outputs(1).fails("pool of 4");
  OpTester strings = tfidf("TF");
  strings.input<std::string>({1}, {"7"}).outputs(1).fails("the pool holds integers");
}

}  // namespace
}  // namespace folio
