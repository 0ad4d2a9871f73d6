// What the classifiers and regressors of ai.onnx.ml share: inputs as numbers, transforms of scores,
// class labels.
//
// Source: ONNX operator spec, ai.onnx.ml; where it is vague about one score (two classes, or a
//         regressor's only target) the rules are ONNX Runtime's.
// Owns:   plain values.
// Errors: kInvalidGraph for attributes, kInvalidArgument for inputs.
#pragma once

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace folio {

enum class PostTransform : uint8_t { kRaw, kLogistic, kSoftmax, kSoftmaxZero, kProbit };

Result<PostTransform> parse_post_transform(const Attributes& attrs);

// In place over one row. A single score only knows kProbit.
void apply_post_transform(PostTransform transform, int64_t n, double* scores);

// How the only score of two classes was made: from probabilities or from signed margins.
enum class BinaryScore : uint8_t { kProbability, kMargin };

bool second_wins(BinaryScore kind, double score);

// Two scores from one, transformed; true when the second class wins.
bool expand_binary(PostTransform transform, BinaryScore kind, double score, double out[2]);

// Rows and columns of X: [n, c...] is n rows; [c] is one row.
struct MlRows {
  int64_t rows = 0;
  int64_t columns = 0;
};
Result<MlRows> ml_rows(const Tensor& x);

// float, double, float16, int32 or int64 elements as another type: their own bytes, or scratch.
Result<const double*> ml_doubles(OpRun& run, int input);
Result<const float*> ml_floats(OpRun& run, int input);

// Labels of a classifier's output Y.
class ClassLabels {
 public:
  // `ints` and `strings` name the attributes; exactly one of them must hold labels.
  static Result<ClassLabels> parse(const Attributes& attrs, std::string_view ints,
                                   std::string_view strings);

  int64_t count() const {
    return static_cast<int64_t>(strings_.empty() ? ints_.size() : strings_.size());
  }
  DType dtype() const { return strings_.empty() ? DType::kInt64 : DType::kString; }
  void write(int64_t label, int64_t row, Tensor* y) const;
  // For one class: its string, or as a number 1 or 0, whatever the label, as ONNX Runtime has it.
  void write_sign(bool positive, int64_t row, Tensor* y) const;

 private:
  std::vector<int64_t> ints_;
  std::vector<std::string> strings_;
};

// Outputs of a classifier: 0 labels [n], 1 scores [n, scores].
Status infer_classifier(OpInfer& infer, std::string_view strings_attribute, Dim scores);
// Output 0 float [n, columns].
Status infer_ml_rows(OpInfer& infer, Dim columns);

}  // namespace folio
