#include "core/ops/op_rnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace folio {
namespace {

constexpr int64_t kNearFloats = 256 << 10;  // of R: 1 MiB, what L2 holds

// What is multiplied at once, and begins with a panel: all gates' rows of R, or each gate's of a
// GRU.
int64_t pieces_of_r(int gates) { return gates == 3 ? 3 : 1; }

// alphas and betas are listed in the order of the functions that take one.
Result<std::vector<Activation>> parse_activations(const std::vector<std::string>& names,
                                                  const std::vector<float>& alphas,
                                                  const std::vector<float>& betas) {
  std::vector<Activation> out;
  size_t alpha = 0;
  size_t beta = 0;
  for (const std::string& name : names) {
    FOLIO_TRY(Activation activation, find_activation(name));
    if (activation.takes_alpha() && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (activation.takes_beta() && beta < betas.size()) activation.beta = betas[beta++];
    out.push_back(activation);
  }
  return out;
}

Status expect_shape(const Tensor& tensor, const Shape& expected, std::string_view what) {
  if (tensor.shape() == expected) return Status::ok();
  return invalid_argument(what, " has shape ", tensor.shape().to_string(), ", expected ",
                          expected.to_string());
}

}  // namespace

Result<RnnAttrs> parse_rnn(const Attributes& attrs, int gates,
                           const std::vector<std::string>& defaults) {
  RnnAttrs out;
  out.gates = gates;
  FOLIO_TRY(const std::string direction, attrs.get_string("direction", "forward"));
  FOLIO_TRY(const int64_t layout, attrs.get_int("layout", 0));
  FOLIO_TRY(out.hidden, attrs.get_int("hidden_size", 0));
  FOLIO_TRY(out.clip, attrs.get_float("clip", 0.0F));
  FOLIO_TRY(std::vector<std::string> names, attrs.get_strings("activations"));
  FOLIO_TRY(const std::vector<float> alphas, attrs.get_floats("activation_alpha"));
  FOLIO_TRY(const std::vector<float> betas, attrs.get_floats("activation_beta"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return invalid_graph("attribute 'direction' is '", direction, "'");
  }
  if (out.hidden < 0) return invalid_graph("attribute 'hidden_size' is ", out.hidden);
  out.has_half_w = has_half_weights(attrs);
  out.directions = direction == "bidirectional" ? 2 : 1;
  out.first_is_reverse = direction == "reverse";
  out.batch_first = layout != 0;
  if (names.empty()) {
    for (int d = 0; d < out.directions; ++d) {
      names.insert(names.end(), defaults.begin(), defaults.end());
    }
  }
  if (names.size() != defaults.size() * static_cast<size_t>(out.directions)) {
    return invalid_graph("attribute 'activations' has ", names.size(), " entries, expected ",
                         defaults.size() * static_cast<size_t>(out.directions));
  }
  FOLIO_TRY(out.activations, parse_activations(names, alphas, betas));
  return out;
}

Result<RnnRun> check_rnn_sizes(const RnnAttrs& attrs, const OpRun& run, int64_t hidden,
                               DType dtype) {
  FOLIO_TRY(const Tensor* x, run.tensor(0, dtype));
  if (x->rank() != 3) {
    return invalid_argument("X is ", x->shape().to_string(), ", expected 3 dims");
  }
  RnnRun out;
  out.seq = x->dim(attrs.batch_first ? 1 : 0);
  out.batch = x->dim(attrs.batch_first ? 0 : 1);
  out.input = x->dim(2);
  out.hidden = hidden;
  if (attrs.hidden != 0 && attrs.hidden != hidden) {
    return invalid_argument("hidden_size is ", attrs.hidden, ", R has ", hidden);
  }
  if (hidden < 1 || hidden > int64_t{1} << 40) {
    return invalid_argument("R has a hidden size of ", hidden);
  }
  // X may hold no element and still claim huge dims: what is allocated from them must not wrap.
  uint64_t gate_count = 0;
  const int64_t work_dims[] = {out.seq, out.batch, out.hidden, 64};
  if (!checked_count(work_dims, &gate_count) || gate_count > (uint64_t{1} << 48)) {
    return invalid_argument("X ", x->shape().to_string(), " and a hidden size of ", hidden,
                            " need too much memory");
  }
  out.x = x->data<float>();
  if (run.has_input(3)) {
    FOLIO_TRY(const Tensor* b, run.tensor(3, dtype));
    const Shape expected{attrs.directions, 2 * attrs.gates * hidden};
    FOLIO_RETURN_IF_ERROR(expect_shape(*b, expected, "B"));
    out.b = b->data<float>();
  }
  out.lengths.assign(static_cast<size_t>(out.batch), out.seq);
  if (run.has_input(4)) {
    FOLIO_TRY(out.lengths, run.ints(4));
    const auto bad = [&](int64_t length) { return length < 0 || length > out.seq; };
    if (static_cast<int64_t>(out.lengths.size()) != out.batch ||
        std::any_of(out.lengths.begin(), out.lengths.end(), bad)) {
      return invalid_argument("sequence_lens must hold ", out.batch, " numbers from 0 to ",
                              out.seq);
    }
  }
  FOLIO_TRY(out.initial_h, rnn_state(attrs, out, run, 5, dtype));
  return out;
}

Result<RnnRun> check_rnn(const RnnAttrs& attrs, const OpRun& run, DType dtype) {
  FOLIO_TRY(const Tensor* w, weights_input(run, 1, dtype, attrs.has_half_w));
  FOLIO_TRY(const Tensor* r, run.tensor(2, dtype));
  if (r->rank() != 3) return invalid_argument("R is ", r->shape().to_string(), ", expected 3 dims");
  FOLIO_TRY(RnnRun out, check_rnn_sizes(attrs, run, r->dim(2), dtype));
  const int64_t rows = attrs.gates * out.hidden;
  FOLIO_RETURN_IF_ERROR(expect_shape(*w, Shape{attrs.directions, rows, out.input}, "W"));
  FOLIO_RETURN_IF_ERROR(expect_shape(*r, Shape{attrs.directions, rows, out.hidden}, "R"));
  out.w.dtype = w->dtype();
  out.w.data = w->raw();
  out.w.row_stride = 1;
  out.w.col_stride = out.input;
  out.w.set_packed(run.packed(1));
  out.r = r->data<float>();
  if (const PackedBlob* blob = run.packed(2))
    out.r_packed = reinterpret_cast<const float*>(blob->data());
  return out;
}

Result<const float*> rnn_state(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run, int input,
                               DType dtype) {
  if (!run.has_input(input)) return static_cast<const float*>(nullptr);
  FOLIO_TRY(const Tensor* state, run.tensor(input, dtype));
  FOLIO_RETURN_IF_ERROR(expect_shape(*state, rnn_state_shape(attrs, r), cat("input ", input)));
  return state->data<float>();
}

Result<const Tensor*> rnn_peepholes(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run,
                                    DType dtype) {
  FOLIO_TRY(const Tensor* p, run.optional_tensor(7, dtype));
  if (p) FOLIO_RETURN_IF_ERROR(expect_shape(*p, Shape{attrs.directions, 3 * r.hidden}, "P"));
  return p;
}

Shape rnn_y_shape(const RnnAttrs& attrs, const RnnRun& r) {
  return attrs.batch_first ? Shape{r.batch, r.seq, attrs.directions, r.hidden}
                           : Shape{r.seq, attrs.directions, r.batch, r.hidden};
}

Shape rnn_state_shape(const RnnAttrs& attrs, const RnnRun& r) {
  return attrs.batch_first ? Shape{r.batch, attrs.directions, r.hidden}
                           : Shape{attrs.directions, r.batch, r.hidden};
}

int64_t rnn_state_at(const RnnAttrs& attrs, const RnnRun& r, int dir, int64_t item) {
  return (attrs.batch_first ? item * attrs.directions + dir : dir * r.batch + item) * r.hidden;
}

int64_t rnn_y_at(const RnnAttrs& attrs, const RnnRun& r, int64_t time, int dir, int64_t item) {
  const int64_t row = attrs.batch_first ? (item * r.seq + time) * attrs.directions + dir
                                        : (time * attrs.directions + dir) * r.batch + item;
  return row * r.hidden;
}

RnnParts rnn_parts(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run) {
  // A larger R is read by parts, each of which a thread keeps.
  RnnParts parts;
  const int64_t threads = run.parallel().thread_count();
  const int64_t rows = attrs.gates * r.hidden;
  const int32_t precision = product_precision(run.kernels(), r.batch, rows, r.hidden);
  if (threads == 1 || !r.r_packed || folio_multiplies_parts(&run.kernels(), precision)) {
    return parts;
  }
  parts.directions = attrs.directions;
  if (rows <= kNearFloats / r.hidden) {
    const int64_t wanted = (threads + attrs.directions - 1) / attrs.directions;
    parts.items = std::clamp<int64_t>(r.batch, 1, wanted);
  }
  return parts;
}

Status rnn_input_gates(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, int dir,
                       const float* bias, float* gates) {
  const int64_t rows = attrs.gates * r.hidden;
  FolioGemmF32 args{};
  args.n = rows;
  args.k = r.input;
  args.a_col_stride = 1;
  args.alpha = 1.0F;
  args.col_bias = bias;
  const GemmB b = r.w.from_column(dir * (r.w.packed ? panel_columns(rows) : rows), r.input);
  if (!attrs.batch_first) {
    args.m = r.seq * r.batch;
    args.a = r.x;
    args.a_row_stride = r.input;
    args.c = gates;
    args.c_row_stride = rows;
    return gemm_f32(run, args, b);
  }
  for (int64_t item = 0; item < r.batch; ++item) {
    args.m = r.seq;
    args.a = r.x + item * r.seq * r.input;
    args.a_row_stride = r.input;
    args.c = gates + item * rows;
    args.c_row_stride = r.batch * rows;
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  }
  return Status::ok();
}

Status rnn_recurrent(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, const RnnRows& rows,
                     int64_t items, const float* h, float* out, int64_t out_stride) {
  const int64_t row = rows.dir * attrs.gates * r.hidden + rows.first;
  FolioGemmF32 args{};
  args.m = items;
  args.k = r.hidden;
  args.a = h;
  args.a_row_stride = r.hidden;
  args.a_col_stride = 1;
  args.c_row_stride = out_stride;
  args.alpha = 1.0F;
  args.accumulate = 1;
  GemmB b;
  b.row_stride = 1;
  b.col_stride = r.hidden;
  // Pieces that are no whole panels are multiplied one by one.
  const int64_t whole = attrs.gates * r.hidden / pieces_of_r(attrs.gates);
  const bool is_whole = !r.r_packed || whole % FOLIO_F32P16_COLUMNS == 0;
  int64_t piece = is_whole ? rows.count : whole;
  // Of a GRU what is read last is not what the next step begins with.
  const bool turns = is_whole && r.r_packed && pieces_of_r(attrs.gates) == 1 &&
                     run.parallel().thread_count() == 1 &&
                     attrs.gates * r.hidden > kNearFloats / r.hidden;
  if (turns) piece = std::min(piece, panel_columns(kNearFloats / 4 / r.hidden));
  const int64_t pieces = (rows.count + piece - 1) / piece;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t j = (turns && rows.backwards ? pieces - 1 - i : i) * piece;
    args.n = std::min(piece, rows.count - j);
    args.c = out + j;
    if (!r.r_packed) {
      b.data = r.r + (row + j) * r.hidden;
    } else if (is_whole) {
      b.packed = r.r_packed + (row + j) * r.hidden;
    } else {
      b.packed = r.r_packed + (row + j) / whole * panel_columns(whole) * r.hidden;
    }
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  }
  return Status::ok();
}

Result<float*> rnn_y_output(const RnnAttrs& attrs, const RnnRun& r, OpRun& run) {
  if (!run.has_output(0)) return static_cast<float*>(nullptr);
  FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, rnn_y_shape(attrs, r)));
  const auto short_one = [&](int64_t length) { return length != r.seq; };
  if (std::any_of(r.lengths.begin(), r.lengths.end(), short_one) && y->bytes() > 0) {
    std::memset(y->raw_mut(), 0, y->bytes());
  }
  return y->data_mut<float>();
}

Result<float*> rnn_state_output(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, int output) {
  if (!run.has_output(output)) return static_cast<float*>(nullptr);
  FOLIO_TRY(Tensor * state, run.output(output, DType::kFloat, rnn_state_shape(attrs, r)));
  return state->data_mut<float>();
}

const float* rnn_sum_biases(const RnnAttrs& attrs, const RnnRun& r, const FolioKernels& kernels,
                            int dir, int64_t of_r, float* sum) {
  if (!r.b) return nullptr;
  const int64_t rows = attrs.gates * r.hidden;
  const float* of_w = r.b + dir * 2 * rows;
  std::copy_n(of_w, rows, sum);
  rnn_add_bias(kernels, of_r, of_w + rows, sum);
  return sum;
}

void rnn_add_bias(const FolioKernels& kernels, int64_t n, const float* bias, float* row) {
  if (bias) kernels.binary_f32[kFolioAdd](n, row, 1, bias, 1, row);
}

Status infer_rnn(OpInfer& infer, int gates, size_t hidden_axis) {
  FOLIO_TRY(const RnnAttrs attrs, parse_rnn(infer.attrs(), gates,
                                            std::vector<std::string>(gates == 4   ? 3
                                                                     : gates == 3 ? 2
                                                                                  : 1,
                                                                     "Tanh")));
  const Dims* x = infer.dims_of(0);
  const Dims* r = infer.dims_of(2);
  Dim hidden = Dim::unknown();
  if (attrs.hidden > 0) hidden = Dim::of(attrs.hidden);
  if (r && r->size() == 3) hidden = (*r)[hidden_axis];
  Dim seq = Dim::unknown();
  Dim batch = Dim::unknown();
  if (x && x->size() == 3) {
    seq = (*x)[attrs.batch_first ? 1 : 0];
    batch = (*x)[attrs.batch_first ? 0 : 1];
  }
  const Dim dirs = Dim::of(attrs.directions);
  const DType dtype = infer.dtype(0);
  infer.set_tensor(
      0, dtype,
      attrs.batch_first ? Dims{batch, seq, dirs, hidden} : Dims{seq, dirs, batch, hidden});
  for (int output = 1; output < infer.output_count(); ++output) {
    infer.set_tensor(output, dtype,
                     attrs.batch_first ? Dims{batch, dirs, hidden} : Dims{dirs, batch, hidden});
  }
  return Status::ok();
}

void request_rnn_packs(OpBuild& build, int gates) {
  for (const int input : {1, 2}) {
    const Initializer* weights = build.initializer(input);
    const bool has_form =
        weights && (weights->dtype == DType::kFloat ||
                    (input == 1 && is_half(weights->dtype) && has_half_weights(build.attrs())));
    if (!has_form || weights->shape.rank() != 3) continue;
    const Shape& shape = weights->shape;
    const bool is_even = shape[1] % FOLIO_F32P16_COLUMNS == 0;
    if (is_half(weights->dtype) && !is_even) continue;
    const int64_t pieces = input == 2 ? pieces_of_r(gates) : 1;
    if (shape[0] < 1 || shape[1] < 1 || shape[1] % pieces != 0) continue;
    request_panels(build, input, shape[2], shape[0] * shape[1], 1, shape[2],
                   /*replaces_source=*/true, is_even ? 1 : shape[0] * pieces);
  }
}

bool takes_half_rnn(const Attributes&, int input, const Shape& shape) {
  return input == 1 && shape.rank() == 3 && shape[1] % FOLIO_F32P16_COLUMNS == 0;
}

}  // namespace folio
