// StringConcat and StringSplit.
//
// Source: ONNX operator spec, opset 20 of each.
// Shapes: StringConcat: broadcast. StringSplit: x [dims..] -> y [dims.., most pieces], filled up
// with
//         empty strings, and int64 [dims..], how many pieces each has.
// Math:   without a delimiter pieces are what stands between white space; with one, what stands
//         between two of it, which may be empty. After maxsplit cuts the rest is one piece.
// Types:  StringConcat: strings. StringSplit: strings; counts int64.
#include <string_view>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class StringConcat final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0, DType::kString));
    FOLIO_TRY(const Tensor* b, run.tensor(1, DType::kString));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kString, plan.out));
    const auto* first = a->data<std::string>();
    const auto* second = b->data<std::string>();
    auto* out = y->data_mut<std::string>();
    InlineParallel serial;  // strings allocate, which may throw
    for_broadcast_rows(serial, plan, [&](int64_t i, int64_t j, int64_t at, int64_t count) {
      for (int64_t k = 0; k < count; ++k) {
        out[at + k] = first[i + k * plan.a_step] + second[j + k * plan.b_step];
      }
    });
    return Status::ok();
  }
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

size_t skip_spaces(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// Appends the pieces of `text` and gives how many there are.
int64_t split_at_spaces(std::string_view text, int64_t cuts, std::vector<std::string_view>* out) {
  int64_t count = 0;
  for (size_t at = skip_spaces(text, 0); at < text.size(); at = skip_spaces(text, at)) {
    size_t end = at;
    if (count == cuts) {
      end = text.size();
    } else {
      while (end < text.size() && !is_space(text[end])) ++end;
    }
    out->push_back(text.substr(at, end - at));
    ++count;
    at = end;
  }
  return count;
}

int64_t split_at(std::string_view text, std::string_view delimiter, int64_t cuts,
                 std::vector<std::string_view>* out) {
  int64_t count = 1;
  size_t at = 0;
  for (; count <= cuts; ++count) {
    const size_t end = text.find(delimiter, at);
    if (end == std::string_view::npos) break;
    out->push_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  out->push_back(text.substr(at));
  return count;
}

class StringSplit final : public OpKernel {
 public:
  StringSplit(std::string delimiter, int64_t cuts)
      : delimiter_(std::move(delimiter)), cuts_(cuts) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kString));
    FOLIO_TRY(Tensor * counts, run.output(1, DType::kInt64, x->shape()));
    std::vector<std::string_view> pieces;
    int64_t most = 0;
    for (int64_t i = 0, end = x->count(); i < end; ++i) {
      const std::string& text = x->data<std::string>()[i];
      const int64_t count = delimiter_.empty() ? split_at_spaces(text, cuts_, &pieces)
                                               : split_at(text, delimiter_, cuts_, &pieces);
      counts->data_mut<int64_t>()[i] = count;
      most = std::max(most, count);
    }
    std::vector<int64_t> dims(x->shape().begin(), x->shape().end());
    dims.push_back(most);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kString, shape));
    auto piece = pieces.begin();
    for (int64_t i = 0, end = x->count(); i < end; ++i) {
      auto* row = y->data_mut<std::string>() + i * most;
      const int64_t count = counts->data<int64_t>()[i];
      for (int64_t k = 0; k < count; ++k) row[k] = *piece++;
    }
    return Status::ok();
  }

 private:
  std::string delimiter_;
  int64_t cuts_;
};

Status infer_concat(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  infer.set_tensor(0, DType::kString, std::move(dims));
  return Status::ok();
}

Status infer_split(OpInfer& infer) {
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    out = *x;
    infer.set_tensor(1, DType::kInt64, *x);
    if (out->size() < static_cast<size_t>(kMaxRank)) {
      out->push_back(Dim::unknown());
    } else {
      out.reset();
    }
  } else {
    infer.set_tensor(1, DType::kInt64);
  }
  infer.set_tensor(0, DType::kString, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_concat(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<StringConcat>());
}

Result<std::unique_ptr<OpKernel>> make_split(OpBuild& build) {
  FOLIO_TRY(std::string delimiter, build.attrs().get_string("delimiter", ""));
  FOLIO_TRY(int64_t cuts, build.attrs().get_int("maxsplit", -1));
  if (cuts < 0) cuts = INT64_MAX - 1;
  return std::unique_ptr<OpKernel>(std::make_unique<StringSplit>(std::move(delimiter), cuts));
}

}  // namespace

[[gnu::cold]] void register_string_concat(OpRegistry& registry) {
  OpDef def;
  def.type = "StringConcat";
  def.since = 20;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_concat;
  def.make = make_concat;
  registry.add(def);
  def.type = "StringSplit";
  def.min_inputs = def.max_inputs = 1;
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer_split;
  def.make = make_split;
  registry.add(def);
}

}  // namespace folio
