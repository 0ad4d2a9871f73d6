// DynamicQuantizeLSTM: LSTM whose weights are bytes, and whose inputs become bytes at run.
//
// Source: com.microsoft DynamicQuantizeLSTM, version 1.
// Inputs: X, W, R, B, sequence_lens, initial_h, initial_c, P as LSTM's, but W [dirs, input, 4 H]
//         and R [dirs, H, 4 H] of int8 or uint8; then W_scale, W_zero_point, R_scale, R_zero_point,
//         each [dirs] or [dirs, 4 H].
// Math:   as LSTM (lstm.cc); each product is that of DynamicQuantizeMatMul: X as a whole, and the
//         states of the sequences of a step, are rounded to uint8 over their range; sums exact.
// Types:  X, states and scales float; W and R int8 or uint8.
// Packs:  S8P16K4 of constant W and R of one direction; others are packed in each run.
// Errors: kInvalidArgument for shapes and types that do not match.
#include <algorithm>

#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_lstm.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// W or R of a run: [dirs, k, n].
class ByteWeights {
 public:
  Status read(const OpRun& run, int input, int64_t dirs, int64_t k, int64_t n) {
    FOLIO_TRY(tensor_, byte_tensor(run, input));
    input_ = input;
    k_ = k;
    n_ = n;
    if (!(tensor_->shape() == Shape{dirs, k, n})) {
      return invalid_argument(input == 1 ? "W is " : "R is ", tensor_->shape().to_string(),
                              ", expected ", Shape{dirs, k, n}.to_string());
    }
    const int at = input == 1 ? 8 : 10;
    FOLIO_TRY(const Tensor* scale, run.tensor(at, DType::kFloat));
    FOLIO_TRY(scale_step_, step_of(*scale, dirs, at));
    scale_ = scale->data<float>();
    if (!run.has_input(at + 1)) return Status::ok();
    FOLIO_TRY(const Tensor* zero, run.tensor(at + 1, tensor_->dtype()));
    FOLIO_TRY(zero_step_, step_of(*zero, dirs, at + 1));
    zero_ = zero;
    return Status::ok();
  }

  // Memory for products of up to this many rows.
  Status reserve(OpRun& run, int64_t rows) {
    FOLIO_TRY(codes_, run.scratch(static_cast<size_t>(rows * k_)));
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(3 * n_ + rows) * 4));
    b_zero_ = reinterpret_cast<int32_t*>(memory);
    offset_ = b_zero_ + n_;
    factors_ = reinterpret_cast<float*>(offset_ + n_);
    row_sums_ = reinterpret_cast<int32_t*>(factors_ + n_);
    return Status::ok();
  }

  Status set_direction(OpRun& run, int dir) {
    dir_ = dir;
    if (const PackedBlob* blob = run.packed(input_)) {
      matrix_ = packed_matrix(blob->data(), k_, n_);
    } else {
      const PackRequest request = s8p16k4_request(k_, n_, n_, 1);
      const uint8_t* bytes = tensor_->raw() + dir * k_ * n_;
      FOLIO_TRY(matrix_, pack_bytes_now(run, request, bytes, tensor_->dtype()));
    }
    const int32_t flip = tensor_->dtype() == DType::kUint8 ? 128 : 0;
    has_zero_ = false;
    for (int64_t j = 0; j < n_; ++j) {
      const int64_t at = zero_step_ == 0 ? dir : dir * n_ + j;
      b_zero_[j] = (zero_ ? byte_at(*zero_, at) : 0) - flip;
      has_zero_ |= b_zero_[j] != 0;
    }
    return Status::ok();
  }

  // y [rows, n] = x [rows, k] * the direction's matrix.
  void multiply(OpRun& run, int64_t rows, const float* x, float* y) {
    const QuantScalar quant = dynamic_quant(run, rows * k_, x);
    quantize_bytes(run, rows * k_, x, quant, DType::kUint8, codes_);
    for (int64_t i = 0; has_zero_ && i < rows; ++i) {
      row_sums_[i] = run.kernels().sum_u8(k_, codes_ + i * k_);
    }
    const int32_t* b_zero = has_zero_ ? b_zero_ : nullptr;
    zero_point_offsets(n_, k_, quant.zero, matrix_.column_sums, b_zero, nullptr, 0, offset_);
    for (int64_t j = 0; j < n_; ++j) {
      factors_[j] = quant.scale * scale_[scale_step_ == 0 ? dir_ : dir_ * n_ + j];
    }
    FolioGemmU8 args{};
    args.m = rows;
    args.n = n_;
    args.k = k_;
    args.a = codes_;
    args.a_row_stride = k_;
    args.b = matrix_.panels;
    args.sums.to = kFolioToFloat;
    args.sums.offset = offset_;
    args.sums.row_sum = has_zero_ ? row_sums_ : nullptr;
    args.sums.b_zero = b_zero;
    args.sums.scale = factors_;
    args.c = y;
    args.c_row_stride = n_;
    gemm_u8(run, args);
  }

 private:
  // 0: one for each direction; 1: one for each column of a direction.
  Result<int> step_of(const Tensor& tensor, int64_t dirs, int input) const {
    if (tensor.shape() == Shape{dirs}) return 0;
    if (tensor.shape() == Shape{dirs, n_}) return 1;
    return invalid_argument("input ", input, " is ", tensor.shape().to_string(), ", expected [",
                            dirs, "] or [", dirs, ",", n_, "]");
  }

  const Tensor* tensor_ = nullptr;
  const Tensor* zero_ = nullptr;
  const float* scale_ = nullptr;
  int input_ = 0;
  int scale_step_ = 0;
  int zero_step_ = 0;
  int64_t k_ = 0;
  int64_t n_ = 0;
  int dir_ = 0;
  bool has_zero_ = false;
  ByteMatrix matrix_;
  uint8_t* codes_ = nullptr;
  int32_t* b_zero_ = nullptr;
  int32_t* offset_ = nullptr;
  float* factors_ = nullptr;
  int32_t* row_sums_ = nullptr;
};

class ByteProducts final : public LstmProducts {
 public:
  ByteProducts(OpRun& run, const RnnRun& r) : run_(run), r_(r) {}

  Status prepare(int64_t dirs) {
    const int64_t width = kLstmGates * r_.hidden;
    FOLIO_RETURN_IF_ERROR(w_.read(run_, 1, dirs, r_.input, width));
    FOLIO_RETURN_IF_ERROR(recurrent_.read(run_, 2, dirs, r_.hidden, width));
    FOLIO_RETURN_IF_ERROR(w_.reserve(run_, r_.seq * r_.batch));
    FOLIO_RETURN_IF_ERROR(recurrent_.reserve(run_, r_.batch));
    FOLIO_TRY(uint8_t * sums, run_.scratch(static_cast<size_t>(r_.batch * width) * sizeof(float)));
    sums_ = reinterpret_cast<float*>(sums);
    return Status::ok();
  }

  Status input(int dir, const float* bias, float* gates) override {
    FOLIO_RETURN_IF_ERROR(w_.set_direction(run_, dir));
    FOLIO_RETURN_IF_ERROR(recurrent_.set_direction(run_, dir));
    w_.multiply(run_, r_.seq * r_.batch, r_.x, gates);
    const int64_t width = kLstmGates * r_.hidden;
    for (int64_t i = 0; i < r_.seq * r_.batch; ++i) {
      rnn_add_bias(run_.kernels(), width, bias, gates + i * width);
    }
    return Status::ok();
  }
  Status recurrent(int, int64_t, int64_t rows, const float* h, float* gates) override {
    recurrent_.multiply(run_, rows, h, sums_);
    rnn_add_bias(run_.kernels(), rows * kLstmGates * r_.hidden, sums_, gates);
    return Status::ok();
  }

 private:
  OpRun& run_;
  const RnnRun& r_;
  ByteWeights w_;
  ByteWeights recurrent_;
  float* sums_ = nullptr;
};

class DynamicQuantizeLstm final : public OpKernel {
 public:
  LstmAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* r, byte_tensor(run, 2));
    if (r->rank() != 3) {
      return invalid_argument("R is ", r->shape().to_string(), ", expected 3 dims");
    }
    FOLIO_TRY(const RnnRun checked, check_rnn_sizes(attrs.rnn, run, r->dim(1)));
    ByteProducts products(run, checked);
    FOLIO_RETURN_IF_ERROR(products.prepare(attrs.rnn.directions));
    return run_lstm(attrs, run, checked, products);
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<DynamicQuantizeLstm>();
  FOLIO_TRY(kernel->attrs, LstmAttrs::parse(build.attrs()));
  if (kernel->attrs.rnn.batch_first)
    return invalid_graph("attribute 'layout' is not of this operator");
  for (const int input : {1, 2}) {
    const Initializer* weights = build.initializer(input);
    // Matrices of two directions lie apart: no layout holds both.
    if (!weights || weights->shape.rank() != 3 || weights->shape[0] != 1) continue;
    const int64_t k = weights->shape[1];
    const int64_t n = weights->shape[2];
    if (k < 1 || n < 1) continue;
    PackRequest request = s8p16k4_request(k, n, n, 1);
    request.replaces_source = true;
    request_s8p16k4(build, input, request);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_dynamic_quantize_lstm(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "DynamicQuantizeLSTM";
  def.min_inputs = 12;
  def.max_inputs = 12;
  def.optional_inputs = 0xF8;        // B, sequence_lens, initial_h, initial_c, P
  def.float_inputs = 0b10111101001;  // but for W, R, their zero points and sequence_lens
  def.min_outputs = 0;
  def.max_outputs = 3;
  def.infer = [](OpInfer& infer) { return infer_rnn(infer, kLstmGates, 1); };
  def.make = make;
  registry.add(def);
}

}  // namespace folio
