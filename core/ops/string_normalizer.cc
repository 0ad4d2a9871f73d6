// StringNormalizer: words in one case, without stop words.
//
// Source: ONNX operator spec, StringNormalizer, opset 10.
// Shapes: x [c] or [1, c] -> y [kept] or [1, kept]; one empty string when nothing is kept.
// Math:   without is_case_sensitive words are compared in lower case. Case is that of the letters
//         below U+0180 and of plain Greek and Cyrillic, in any locale.
// Types:  strings.
#include <unordered_set>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class Case : uint8_t { kKeep, kLower, kUpper };

uint32_t lower(uint32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c < 0xc0) return c;
  if (c <= 0xde) return c == 0xd7 ? c : c + 32;
  if ((c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) || (c >= 0x14a && c <= 0x177)) {
    return c | 1;
  }
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return c + (c & 1);
  if (c == 0x178) return 0xff;
  if ((c >= 0x391 && c <= 0x3a9 && c != 0x3a2) || (c >= 0x410 && c <= 0x42f)) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}

uint32_t upper(uint32_t c) {
  if (c >= 'a' && c <= 'z') return c - 32;
  if (c < 0xe0) return c;
  if (c <= 0xfe) return c == 0xf7 ? c : c - 32;
  if (c == 0xff) return 0x178;
  if (c == 0x3c2) return 0x3a3;  // the sigma at the end of a word
  // What lower() maps to c stands right before it, or 32 or 80 lower.
  for (const uint32_t back : {1u, 32u, 80u}) {
    if (c >= 0x101 && lower(c - back) == c) return c - back;
  }
  return c;
}

// Letters of two bytes stay letters of two bytes, so only these and ASCII are looked at.
std::string with_case(const std::string& text, Case to) {
  std::string out = text;
  const auto map = [&](uint32_t c) { return to == Case::kLower ? lower(c) : upper(c); };
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<uint8_t>(out[i]);
    if (byte < 0x80) {
      out[i] = static_cast<char>(map(byte));
      continue;
    }
    if (byte < 0xc2 || byte > 0xdf || i + 1 == out.size()) continue;
    const auto next = static_cast<uint8_t>(out[i + 1]);
    if ((next & 0xc0) != 0x80) continue;
    const uint32_t c = map((byte & 0x1fu) << 6 | (next & 0x3fu));
    out[i] = static_cast<char>(0xc0 | c >> 6);
    out[++i] = static_cast<char>(0x80 | (c & 0x3f));
  }
  return out;
}

class StringNormalizer final : public OpKernel {
 public:
  Case change = Case::kKeep;
  bool sensitive = false;
  std::unordered_set<std::string> stop_words;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kString));
    if (x->rank() != 1 && !(x->rank() == 2 && x->dim(0) == 1)) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", expected [c] or [1,c]");
    }
    std::vector<std::string> kept;
    for (const std::string& word : x->span<std::string>()) {
      if (stop_words.contains(sensitive ? word : with_case(word, Case::kLower))) continue;
      kept.push_back(change == Case::kKeep ? word : with_case(word, change));
    }
    if (kept.empty()) kept.emplace_back();
    const auto count = static_cast<int64_t>(kept.size());
    FOLIO_TRY(Tensor * y,
              run.output(0, DType::kString, x->rank() == 1 ? Shape{count} : Shape{1, count}));
    std::move(kept.begin(), kept.end(), y->data_mut<std::string>());
    return Status::ok();
  }
};

Status infer_normalizer(OpInfer& infer) {
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    if (x->size() < 1 || x->size() > 2) {
      return invalid_graph("input 0 has rank ", x->size(), ", expected 1 or 2");
    }
    out = Dims{Dim::unknown()};
    if (x->size() == 2) out->insert(out->begin(), Dim::of(1));
  }
  infer.set_tensor(0, DType::kString, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_normalizer(OpBuild& build) {
  auto kernel = std::make_unique<StringNormalizer>();
  FOLIO_TRY(const std::string change, build.attrs().get_string("case_change_action", "NONE"));
  if (change != "NONE" && change != "LOWER" && change != "UPPER") {
    return invalid_graph("case_change_action is '", change, "', expected NONE, LOWER or UPPER");
  }
  kernel->change = change == "NONE" ? Case::kKeep : change == "LOWER" ? Case::kLower : Case::kUpper;
  FOLIO_TRY(const int64_t sensitive, build.attrs().get_int("is_case_sensitive", 0));
  kernel->sensitive = sensitive != 0;
  FOLIO_TRY(const std::vector<std::string> words, build.attrs().get_strings("stopwords"));
  for (const std::string& word : words) {
    kernel->stop_words.insert(kernel->sensitive ? word : with_case(word, Case::kLower));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_string_normalizer(OpRegistry& registry) {
  OpDef def;
  def.type = "StringNormalizer";
  def.since = 10;
  def.infer = infer_normalizer;
  def.make = make_normalizer;
  registry.add(def);
}

}  // namespace folio
