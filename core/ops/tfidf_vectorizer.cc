// TfIdfVectorizer: how often each n-gram of a pool occurs.
//
// Source: ONNX operator spec, TfIdfVectorizer, opset 9.
// Shapes: x int32, int64 or string, [c] or [b, c] -> y float [columns] or [b, columns], columns
// being
//         the largest of ngram_indexes and one.
// Math:   an n-gram may skip the same number of elements, up to max_skip_count, between each two of
//         its own. TF: the count; IDF: the n-gram's weight where the count is not 0; TFIDF: both
//         multiplied. Weights are of the pool's n-grams in its order, and 1 when absent; n-grams of
//         one column are added.
// Types:  strings, int32, int64; y float.
// Errors: kInvalidGraph for a pool that does not fit its counts and indexes.
#include <map>
#include <unordered_map>

#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class Mode : uint8_t { kTf, kIdf, kTfIdf };

// Elements as numbers: what is not in the pool is kNotThere, and part of no n-gram.
constexpr int64_t kNotThere = -1;

class TfIdf final : public OpKernel {
 public:
  Mode mode = Mode::kTf;
  int64_t min_length = 1;
  int64_t max_length = 1;
  int64_t max_skip = 0;
  int64_t columns = 0;
  std::vector<float> weights;
  bool of_strings = false;
  std::unordered_map<std::string, int64_t> words;
  std::unordered_map<int64_t, int64_t> numbers;
  std::vector<int64_t> column_of;                 // of each n-gram of the pool
  std::map<std::vector<int64_t>, int64_t> grams;  // n-gram -> its place in the pool

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() > 2) return invalid_argument("input 0 has rank ", x->rank(), ", expected 1 or 2");
    FOLIO_TRY(const std::vector<int64_t> items, items_of(run, *x));
    const int64_t rows = x->rank() == 2 ? x->dim(0) : 1;
    const int64_t length = x->rank() == 2 ? x->dim(1) : x->count();
    std::vector<int64_t> dims{columns};
    if (x->rank() == 2) dims.insert(dims.begin(), rows);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, shape));
    std::fill_n(y->data_mut<float>(), y->count(), 0.0F);
    if (y->count() == 0) return Status::ok();
    std::vector<float> counts(column_of.size());
    for (int64_t row = 0; row < rows; ++row) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      std::fill(counts.begin(), counts.end(), 0.0F);
      count_grams(items.data() + row * length, length, &counts);
      add_weighed(counts, y->data_mut<float>() + row * columns);
    }
    return Status::ok();
  }

 private:
  Result<std::vector<int64_t>> items_of(OpRun& run, const Tensor& x) const {
    std::vector<int64_t> items;
    if (x.is_string() != of_strings) {
      return invalid_argument("input 0 is ", dtype_name(x.dtype()), ", the pool holds ",
                              of_strings ? "strings" : "integers");
    }
    if (of_strings) {
      for (const std::string& text : x.span<std::string>()) {
        const auto found = words.find(text);
        items.push_back(found == words.end() ? kNotThere : found->second);
      }
      return items;
    }
    FOLIO_TRY(items, run.ints(0));
    for (int64_t& item : items) {
      const auto found = numbers.find(item);
      item = found == numbers.end() ? kNotThere : found->second;
    }
    return items;
  }

  void count_grams(const int64_t* items, int64_t length, std::vector<float>* counts) const {
    std::vector<int64_t> gram;
    for (int64_t n = min_length; n <= max_length && n <= length; ++n) {
      const int64_t skips = n == 1 ? 0 : max_skip;
      for (int64_t skip = 0; skip <= skips; ++skip) {
        // n > 1 here when skip > 0; skip stays below length, so nothing overflows.
        if (skip >= length || (n - 1) > (length - 1) / (skip + 1)) break;
        const int64_t reach = (n - 1) * (skip + 1);
        for (int64_t first = 0; first + reach < length; ++first) {
          gram.clear();
          for (int64_t i = 0; i < n; ++i) gram.push_back(items[first + i * (skip + 1)]);
          const auto found = grams.find(gram);
          if (found != grams.end()) (*counts)[static_cast<size_t>(found->second)] += 1;
        }
      }
    }
  }

  void add_weighed(const std::vector<float>& counts, float* y) const {
    for (size_t gram = 0; gram < counts.size(); ++gram) {
      if (counts[gram] == 0) continue;
      const float weight = mode == Mode::kTf || gram >= weights.size() ? 1 : weights[gram];
      y[column_of[gram]] += mode == Mode::kIdf ? weight : counts[gram] * weight;
    }
  }
};

// The pool's elements as numbers, by first occurrence.
template <typename T>
std::vector<int64_t> number_pool(const std::vector<T>& pool,
                                 std::unordered_map<T, int64_t>* numbers) {
  std::vector<int64_t> out;
  for (const T& item : pool) {
    const auto next = static_cast<int64_t>(numbers->size());
    out.push_back(numbers->try_emplace(item, next).first->second);
  }
  return out;
}

// The pool holds the 1-grams, then from counts[1] the 2-grams, and so on.
Status fill_grams(const std::vector<int64_t>& pool, const std::vector<int64_t>& counts,
                  const std::vector<int64_t>& indexes, TfIdf* kernel) {
  for (const int64_t index : indexes) {
    if (index < 0 || index >= INT64_MAX / 8) return invalid_graph("an ngram index is ", index);
    kernel->columns = std::max(kernel->columns, index + 1);
  }
  const auto size = static_cast<int64_t>(pool.size());
  size_t gram = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto n = static_cast<int64_t>(i) + 1;
    const int64_t begin = counts[i];
    const int64_t end = i + 1 < counts.size() ? counts[i + 1] : size;
    if (begin < 0 || begin > end || end > size || (end - begin) % n != 0) {
      return invalid_graph("ngram_counts has ", n, "-grams from ", begin, " to ", end,
                           " of a pool of ", size);
    }
    for (int64_t at = begin; at < end; at += n, ++gram) {
      if (gram >= indexes.size()) {
        return invalid_graph("ngram_indexes has no place for n-gram ", gram);
      }
      kernel->column_of.push_back(indexes[gram]);
      kernel->grams[std::vector<int64_t>(pool.begin() + at, pool.begin() + at + n)] =
          static_cast<int64_t>(gram);
    }
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_tfidf(OpBuild& build) {
  auto kernel = std::make_unique<TfIdf>();
  const Attributes& attrs = build.attrs();
  FOLIO_TRY(kernel->min_length, attrs.get_int("min_gram_length"));
  FOLIO_TRY(kernel->max_length, attrs.get_int("max_gram_length"));
  FOLIO_TRY(kernel->max_skip, attrs.get_int("max_skip_count"));
  FOLIO_TRY(const std::string mode, attrs.get_string("mode"));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return invalid_graph("mode is '", mode, "', expected TF, IDF or TFIDF");
  }
  kernel->mode = mode == "TF" ? Mode::kTf : mode == "IDF" ? Mode::kIdf : Mode::kTfIdf;
  FOLIO_TRY(kernel->weights, attrs.get_floats("weights"));
  FOLIO_TRY(const std::vector<int64_t> counts, attrs.get_ints("ngram_counts"));
  FOLIO_TRY(const std::vector<int64_t> indexes, attrs.get_ints("ngram_indexes"));
  FOLIO_TRY(const std::vector<std::string> strings, attrs.get_strings("pool_strings"));
  FOLIO_TRY(const std::vector<int64_t> integers, attrs.get_ints("pool_int64s"));
  if (strings.empty() == integers.empty()) {
    return invalid_graph("one of pool_strings and pool_int64s must be given");
  }
  if (kernel->min_length < 1 || kernel->max_length < kernel->min_length || kernel->max_skip < 0) {
    return invalid_graph("n-grams of ", kernel->min_length, " to ", kernel->max_length,
                         " elements with up to ", kernel->max_skip, " skipped");
  }
  // Longer ones than the pool has cannot be found.
  kernel->max_length = std::min(kernel->max_length, static_cast<int64_t>(counts.size()));
  kernel->of_strings = !strings.empty();
  const std::vector<int64_t> pool = kernel->of_strings ? number_pool(strings, &kernel->words)
                                                       : number_pool(integers, &kernel->numbers);
  FOLIO_RETURN_IF_ERROR(fill_grams(pool, counts, indexes, kernel.get()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_tfidf(OpInfer& infer) {
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    if (x->size() > 2) return invalid_graph("input 0 has rank ", x->size(), ", expected 1 or 2");
    out = Dims{Dim::unknown()};
    if (x->size() == 2) out->insert(out->begin(), (*x)[0]);
  }
  infer.set_tensor(0, DType::kFloat, std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_tfidf_vectorizer(OpRegistry& registry) {
  OpDef def;
  def.type = "TfIdfVectorizer";
  def.since = 9;
  def.infer = infer_tfidf;
  def.make = make_tfidf;
  registry.add(def);
}

}  // namespace folio
