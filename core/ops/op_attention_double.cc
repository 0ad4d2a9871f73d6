#include "core/ops/op_attention_double.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Scores to weights, 0 for all where no key counts.
void softmax(KeyRange keys, double* row) {
  double most = kMinusInf;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    // A NaN stays one.
    if (!(row[j] <= most)) most = row[j];
  }
  if (most == kMinusInf) {
    std::fill(row + keys.begin, row + keys.end, 0.0);
    return;
  }
  double sum = 0;
  for (int64_t j = keys.begin; j < keys.end; ++j) sum += row[j] = std::exp(row[j] - most);
  for (int64_t j = keys.begin; j < keys.end; ++j) row[j] /= sum;
}

class Query {
 public:
  Query(const AttendF64& args, int64_t b, int64_t h, int64_t i, double* row)
      : a_(args), b_(b), h_(h), i_(i), kv_(h / (args.q.form.heads / args.k.form.heads)), row_(row) {
    const int64_t total = args.k.form.seq;
    keys_ = args.rule->visible(b, i);
    keys_.begin = std::clamp<int64_t>(keys_.begin, 0, total);
    keys_.end = std::clamp<int64_t>(keys_.end, keys_.begin, total);
  }

  void run() {
    const int64_t total = a_.k.form.seq;
    products();
    show(ScoreStage::kRaw, {0, total});
    if (a_.softcap > 0) {
      for (int64_t j = 0; j < total; ++j) row_[j] = a_.softcap * std::tanh(row_[j] / a_.softcap);
    }
    show(ScoreStage::kCapped, {0, total});
    std::fill(row_, row_ + keys_.begin, kMinusInf);
    std::fill(row_ + keys_.end, row_ + total, kMinusInf);
    if (a_.bias) a_.bias->add(b_, h_, i_, keys_, row_);
    show(ScoreStage::kBiased, {0, total});
    softmax(keys_, row_);
    std::fill(row_, row_ + keys_.begin, 0.0);
    std::fill(row_ + keys_.end, row_ + total, 0.0);
    show(ScoreStage::kWeights, {0, total});
    weigh();
  }

 private:
  void products() {
    const double* q = a_.q.row(b_, h_, i_);
    for (int64_t j = 0; j < a_.k.form.seq; ++j) {
      const double* k = a_.k.row(b_, kv_, j);
      double sum = 0;
      for (int64_t d = 0; d < a_.q.form.size; ++d) sum += q[d] * k[d];
      row_[j] = sum * a_.scale;
    }
  }

  void show(ScoreStage stage, KeyRange keys) const {
    if (!a_.qk || a_.stage != stage) return;
    const Heads& q = a_.q.form;
    double* to = a_.qk + ((b_ * q.heads + h_) * q.seq + i_) * a_.k.form.seq;
    std::copy(row_ + keys.begin, row_ + keys.end, to + keys.begin);
  }

  void weigh() {
    double* y = a_.y + b_ * a_.y_batch + h_ * a_.y_head + i_ * a_.y_seq;
    std::fill_n(y, a_.v.form.size, 0.0);
    for (int64_t j = keys_.begin; j < keys_.end; ++j) {
      if (row_[j] == 0) continue;  // what is masked is not read: it may be infinite
      const double* v = a_.v.row(b_, kv_, j);
      for (int64_t d = 0; d < a_.v.form.size; ++d) y[d] += row_[j] * v[d];
    }
  }

  const AttendF64& a_;
  int64_t b_, h_, i_, kv_;
  double* row_;
  KeyRange keys_;
};

}  // namespace

Status attend(OpRun& run, const AttendF64& args) {
  const Heads& q = args.q.form;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(
      run, static_cast<size_t>(args.k.form.seq + 1) * sizeof(double), &scratch));
  run.parallel().for_range(q.batch * q.heads * q.seq, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* row = reinterpret_cast<double*>(block.data());
    for (int64_t at = begin; at < end; ++at) {
      Query(args, at / q.seq / q.heads, at / q.seq % q.heads, at % q.seq, row).run();
    }
  });
  return Status::ok();
}

}  // namespace folio
