// RegexFullMatch: whether the whole of each string matches a pattern.
//
// Source: ONNX operator spec, RegexFullMatch, opset 20.
// Shapes: x string [dims..] -> y bool [dims..].
// Math:   see op_regex.h for the syntax.
// Types:  strings; y bool.
// Notes:  \p, and (?i) of letters beyond ASCII, in patterns are refused.
#include "core/ops/op_regex.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class RegexFullMatch final : public OpKernel {
 public:
  explicit RegexFullMatch(Regex regex) : regex_(std::move(regex)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kString));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kBool, x->shape()));
    RegexSearch search(regex_);
    for (int64_t i = 0, end = x->count(); i < end; ++i) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      y->raw_mut()[i] = search.full_match(x->data<std::string>()[i]) ? 1 : 0;
    }
    return Status::ok();
  }

 private:
  Regex regex_;
};

Status infer_match(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, DType::kBool, x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_match(OpBuild& build) {
  FOLIO_TRY(const std::string pattern, build.attrs().get_string("pattern"));
  FOLIO_TRY(Regex regex, Regex::compile(pattern));
  return std::unique_ptr<OpKernel>(std::make_unique<RegexFullMatch>(std::move(regex)));
}

}  // namespace

[[gnu::cold]] void register_regex_full_match(OpRegistry& registry) {
  OpDef def;
  def.type = "RegexFullMatch";
  def.since = 20;
  def.infer = infer_match;
  def.make = make_match;
  registry.add(def);
}

}  // namespace folio
