// Tokenizer: texts cut into tokens, for TfIdfVectorizer.
//
// Source: com.microsoft Tokenizer 1 (ONNX Runtime's contrib operators).
// Shapes: x [c] or [n, c] -> y [c, most tokens] or [n, c, most tokens]; without a text [0] or
//         [n, 0].
// Math:   by separators: what stands between the matches of the first pattern, each of these pieces
//         cut by the second, and so on; by tokenexp: its matches. Matches are the longest. Of one
//         separator without characters, or tokenexp ".", every character is a token. Tokens shorter
//         than mincharnum characters are left out: by tokenexp, the search goes on behind the first
//         character of what was too short. A separator that matches nothing at a place takes the
//         character there out, as in ONNX Runtime. mark puts U+0002 before a text's tokens and
//         U+0003 behind them; then comes pad_value. See op_regex.h for the patterns.
// Types:  strings.
// Notes:  \p, and (?i) of letters beyond ASCII, in patterns are refused.
// Errors: kInvalidArgument for texts that are not UTF-8.
#include <algorithm>
#include <string_view>

#include "core/base/utf8.h"
#include "core/ops/op_regex.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using Tokens = std::vector<std::string_view>;

// Bytes of the character at the front of `text`, which is UTF-8; 1 of nothing.
size_t first_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) ++bytes;
  return bytes;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

// Searches of one run. Each may read all of a text, so many of them ask whether to go on.
class Search {
 public:
  Search(OpRun& run, const Regex& regex) : run_(run), regex_(regex) {}

  Result<std::optional<RegexSearch::Match>> find(std::string_view text, size_t from) {
    constexpr int kUnasked = 64;
    if (++searches_ % kUnasked == 0) FOLIO_RETURN_IF_ERROR(run_.host().check_cancelled());
    return regex_.find(text, from);
  }

 private:
  OpRun& run_;
  RegexSearch regex_;
  int64_t searches_ = 0;
};

class Tokenizer final : public OpKernel {
 public:
  bool mark = false;
  std::string pad;
  int64_t least = 1;              // characters of a token
  std::vector<Regex> separators;  // none and no expression: every character is a token
  std::optional<Regex> expression;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kString));
    if (x->rank() != 1 && x->rank() != 2) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", expected [c] or [n,c]");
    }
    if (x->count() == 0) {
      return run.output(0, DType::kString, x->rank() == 1 ? Shape{0} : Shape{x->dim(0), 0})
          .status();
    }
    std::vector<Tokens> all;
    FOLIO_RETURN_IF_ERROR(tokenize(run, *x, &all));
    return write(run, x->shape(), all);
  }

 private:
  Status tokenize(OpRun& run, const Tensor& x, std::vector<Tokens>* all) const {
    std::vector<Search> searches;
    for (const Regex& each : separators) searches.emplace_back(run, each);
    if (expression) searches.emplace_back(run, *expression);
    for (const std::string& text : x.span<std::string>()) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      if (!utf8_valid(text)) {
        return invalid_argument("text ", all->size(), " of input 0 is not UTF-8: '",
                                utf8_shortened(utf8_repaired(text.substr(0, 40)), 40), "'");
      }
      Tokens tokens;
      if (expression) {
        FOLIO_RETURN_IF_ERROR(find_tokens(text, &searches[0], &tokens));
      } else if (searches.empty()) {
        for (size_t at = 0; at < text.size(); at += tokens.back().size()) {
          const std::string_view rest = std::string_view(text).substr(at);
          tokens.push_back(rest.substr(0, first_bytes(rest)));
        }
      } else {
        tokens.emplace_back(text);
        for (Search& search : searches) FOLIO_RETURN_IF_ERROR(cut(&search, &tokens));
      }
      all->push_back(std::move(tokens));
    }
    return Status::ok();
  }

  Status find_tokens(std::string_view text, Search* search, Tokens* out) const {
    for (size_t from = 0; from <= text.size();) {
      FOLIO_TRY(const auto found, search->find(text, from));
      if (!found) break;
      const std::string_view token = text.substr(found->begin, found->end - found->begin);
      const bool is_long = count_characters(token) >= least;
      if (is_long) out->push_back(token);
      from = is_long ? found->end : found->begin + first_bytes(text.substr(found->begin));
    }
    return Status::ok();
  }

  Status cut(Search* search, Tokens* pieces) const {
    Tokens out;
    for (const std::string_view piece : *pieces) {
      for (size_t from = 0; from <= piece.size();) {
        FOLIO_TRY(const auto found, search->find(piece, from));
        const size_t end = found ? found->begin : piece.size();
        const std::string_view token = piece.substr(from, end - from);
        if (count_characters(token) >= least) out.push_back(token);
        if (!found) break;
        from = found->end > found->begin ? found->end : end + first_bytes(piece.substr(end));
      }
    }
    *pieces = std::move(out);
    return Status::ok();
  }

  Status write(OpRun& run, const Shape& shape, const std::vector<Tokens>& all) const {
    size_t most = 0;
    for (const Tokens& tokens : all) most = std::max(most, tokens.size());
    const size_t columns = most == 0 ? 0 : most + (mark ? 2 : 0);
    std::vector<int64_t> dims(shape.begin(), shape.end());
    dims.push_back(static_cast<int64_t>(columns));
    FOLIO_TRY(const Shape out_shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kString, out_shape));
    if (columns == 0) return Status::ok();
    auto* out = y->data_mut<std::string>();
    for (const Tokens& tokens : all) {
      std::string* const end = out + columns;
      if (mark) *out++ = '\x02';
      for (const std::string_view token : tokens) *out++ = token;
      if (mark) *out++ = '\x03';
      while (out < end) *out++ = pad;
    }
    return Status::ok();
  }
};

Status infer_tokenizer(OpInfer& infer) {
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    if (x->size() < 1 || x->size() > 2) {
      return invalid_graph("input 0 has rank ", x->size(), ", expected 1 or 2");
    }
    // Without a text there is no dim of tokens: the rank is known when all dims are.
    const bool known = std::all_of(x->begin(), x->end(), [](const Dim& d) { return d.is_value(); });
    if (known) {
      const bool none =
          std::any_of(x->begin(), x->end(), [](const Dim& d) { return d.value == 0; });
      out = *x;
      if (none) out->pop_back();
      out->push_back(none ? Dim::of(0) : Dim::unknown());
    }
  }
  infer.set_tensor(0, DType::kString, std::move(out));
  return Status::ok();
}

Result<Regex> compile(std::string_view attribute, std::string_view pattern) {
  Result<Regex> regex = Regex::compile(pattern);
  if (regex.is_ok()) return regex;
  return std::move(regex).take_status().with_context(cat("attribute '", attribute, "'"));
}

// What is a token: separators, or else tokenexp.
Status read_patterns(const Attributes& attrs, Tokenizer* kernel) {
  if (attrs.has("separators")) {
    FOLIO_TRY(const std::vector<std::string> all, attrs.get_strings("separators"));
    if (all.empty()) return invalid_graph("separators is empty, expected a pattern or more");
    if (all.size() == 1 && all[0].empty()) return Status::ok();
    for (const std::string& pattern : all) {
      FOLIO_TRY(Regex regex, compile("separators", pattern));
      kernel->separators.push_back(std::move(regex));
    }
    return Status::ok();
  }
  if (!attrs.has("tokenexp")) return invalid_graph("neither separators nor tokenexp is there");
  FOLIO_TRY(const std::string pattern, attrs.get_string("tokenexp"));
  if (pattern.empty()) return invalid_graph("tokenexp is empty, expected a pattern");
  if (pattern == ".") return Status::ok();
  FOLIO_TRY(kernel->expression, compile("tokenexp", pattern));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_tokenizer(OpBuild& build) {
  auto kernel = std::make_unique<Tokenizer>();
  const Attributes& attrs = build.attrs();
  FOLIO_TRY(const int64_t mark, attrs.get_int("mark"));
  kernel->mark = mark != 0;
  FOLIO_TRY(kernel->pad, attrs.get_string("pad_value"));
  FOLIO_TRY(kernel->least, attrs.get_int("mincharnum"));
  if (kernel->least < 1) {
    return invalid_graph("mincharnum is ", kernel->least, ", expected 1 or more");
  }
  FOLIO_RETURN_IF_ERROR(read_patterns(attrs, kernel.get()));
  if (kernel->least > 1 && kernel->separators.empty() && !kernel->expression) {
    return invalid_graph("mincharnum is ", kernel->least, ", where every character is a token");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_tokenizer(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "Tokenizer";
  def.infer = infer_tokenizer;
  def.make = make_tokenizer;
  registry.add(def);
}

}  // namespace folio
