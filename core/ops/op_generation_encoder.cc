// The forms of op_generation.h that have an encoder and a decoder: T5's and Whisper's.
//
// T5:      the encoder takes (ids, mask[, decoder ids]) and gives cross keys and values, or, with
//          decoder ids, also first (logits, hidden states, self keys and values). The decoder:
//          (ids[, encoder's ids], mask[, hidden states], self..., cross...) -> (logits, self...);
//          the encoder's ids are there when input 2 is of int32 and so must be the mask.
// Whisper: the encoder takes (audio features, decoder ids) and gives (logits, hidden states, self
//          keys and values, cross keys and values). The decoder: (ids[, hidden states], self...,
//          cross...[, past_sequence_length]) -> (logits, self...); with the last input, self
//          caches have max_length positions, of which so many are filled.
// Caches:  [rows, heads, length, size], key and value of a layer side by side.
#include <algorithm>
#include <cstring>

#include "core/ops/op_generation.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

struct EncoderDecoder {
  int encoder = -1;
  int decoder = -1;
  size_t caches = 0;               // self keys and values; as many cross ones
  bool starts_in_encoder = false;  // it gives the first logits, hidden states and self caches
  bool takes_prompt = false;       // the encoder's ids: models that copy from their text read them
  bool takes_mask = false;
  bool takes_hidden = false;
  bool takes_sequence = false;  // all tokens so far each time, not the last alone
  bool fixed_caches = false;    // self caches of max_length positions
  DType cache_dtype = DType::kFloat;
  DType hidden_dtype = DType::kFloat;

  // The number of the decoder's first input that is a cache.
  size_t first_cache() const {
    return 1 + (takes_prompt ? 1 : 0) + (takes_mask ? 1 : 0) + (takes_hidden ? 1 : 0);
  }
};

// What a run gives the subgraphs, beside tokens, caches and hidden states.
struct EncoderFeeds {
  std::vector<Value> encoder;
  std::vector<Tensor> decoder;  // rows of the batch
  Tensor prompt;
};

// A tensor of `rows` (0: any) and this rank, of the type that the decoder declares.
Status check_rows(const Value& value, int64_t rows, int rank, DType dtype, std::string_view name) {
  if (!value.is_tensor()) return invalid_graph(name, " is no tensor");
  const Tensor& tensor = value.tensor();
  if (tensor.rank() == rank && tensor.dtype() == dtype && (rows == 0 || tensor.dim(0) == rows)) {
    return Status::ok();
  }
  return invalid_graph(name, " is ", dtype_name(tensor.dtype()), " ", tensor.shape().to_string(),
                       ", expected ", dtype_name(dtype), " of rank ", rank,
                       rows == 0 ? std::string() : cat(" and ", rows, " rows"));
}

// The cache [rows, heads, length, size] with room for `length` positions, zeros behind its own.
Result<Tensor> with_room(const Tensor& cache, int64_t length) {
  Shape shape = cache.shape();
  if (shape[2] > length) {
    return invalid_graph("the encoder's cache has ", shape[2], " positions, max_length is ",
                         length);
  }
  shape[2] = length;
  FOLIO_TRY(Tensor out, allocate_tensor(cache.dtype(), shape));
  if (out.bytes() == 0) return out;
  std::memset(out.raw_mut(), 0, out.bytes());
  const int64_t blocks = shape.product(0, 2);
  const size_t from = cache.bytes() / static_cast<size_t>(blocks);
  const size_t to = out.bytes() / static_cast<size_t>(blocks);
  for (size_t i = 0; from != 0 && i < static_cast<size_t>(blocks); ++i) {
    std::memcpy(out.raw_mut() + i * to, cache.raw() + i * from, from);
  }
  return out;
}

class EncoderDecoderSource final : public TokenSource {
 public:
  EncoderDecoderSource(const EncoderDecoder& graphs, EncoderFeeds feeds,
                       const GenerationRequest& request)
      : graphs_(graphs),
        encoder_feeds_(std::move(feeds.encoder)),
        decoder_feeds_(std::move(feeds.decoder)),
        ids_(std::move(feeds.prompt)),
        batch_(request.batch),
        beams_(request.beams),
        max_length_(request.max_length) {}

  Result<Tensor> logits(OpRun& run) override {
    if (is_first_) {
      is_first_ = false;
      FOLIO_TRY(Tensor first, encode(run));
      if (graphs_.starts_in_encoder) return first;
    }
    std::vector<Value> feeds = {ids_};
    for (const Tensor& tensor : decoder_feeds_) feeds.emplace_back(tensor);
    for (Tensor& cache : self_) feeds.emplace_back(std::move(cache));
    for (const Tensor& cache : cross_) feeds.emplace_back(cache);
    if (graphs_.fixed_caches) {
      FOLIO_TRY(Tensor filled, int32_tensor({1}));
      *filled.data_mut<int32_t>() = static_cast<int32_t>(filled_);
      feeds.emplace_back(std::move(filled));
    }
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(graphs_.decoder, feeds, &outputs));
    FOLIO_RETURN_IF_ERROR(check_count(outputs, 1 + graphs_.caches, "decoder"));
    for (size_t i = 0; i < self_.size(); ++i) {
      FOLIO_RETURN_IF_ERROR(check_rows(outputs[i + 1], batch_ * beams_, 4, graphs_.cache_dtype,
                                       "a decoder's present"));
      self_[i] = std::move(outputs[i + 1].tensor());
    }
    return std::move(outputs[0].tensor());
  }

  Status advance(Span<const int32_t> next, Span<const int32_t> from,
                 const Sequences& sequences) override {
    filled_ = sequences.length() - 1;
    if (graphs_.takes_sequence) {
      FOLIO_TRY(ids_, int32_tensor({sequences.rows(), sequences.length()}));
      for (int64_t i = 0; i < sequences.rows(); ++i) {
        std::copy_n(sequences.whole_row(i), sequences.length(),
                    ids_.data_mut<int32_t>() + i * sequences.length());
      }
    } else {
      FOLIO_TRY(ids_, column_of(next));
    }
    if (from.empty()) return Status::ok();
    for (Tensor& cache : self_) {
      FOLIO_TRY(cache, pick_rows(cache, 0, from));
    }
    return Status::ok();
  }

 private:
  static Status check_count(const std::vector<Value>& outputs, size_t expected,
                            std::string_view name) {
    if (outputs.size() != expected) {
      return invalid_graph("the ", name, " gave ", outputs.size(), " outputs, expected ", expected);
    }
    if (outputs[0].is_tensor()) return Status::ok();
    return invalid_graph("output 0 of the ", name, " is no tensor");
  }

  // Runs the encoder, repeats what it gives for each beam, and gives its logits, if it has any.
  Result<Tensor> encode(OpRun& run) {
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(graphs_.encoder, encoder_feeds_, &outputs));
    encoder_feeds_.clear();
    const size_t own = graphs_.starts_in_encoder ? 2 + graphs_.caches : 0;
    FOLIO_RETURN_IF_ERROR(check_count(outputs, own + graphs_.caches, "encoder"));
    for (Tensor& tensor : decoder_feeds_) {
      FOLIO_TRY(tensor, repeated_rows(tensor, beams_));
    }
    FOLIO_TRY(ids_, repeated_rows(ids_, beams_));
    if (graphs_.takes_hidden) {
      FOLIO_RETURN_IF_ERROR(
          check_rows(outputs[1], batch_, 3, graphs_.hidden_dtype, "output 1 of the encoder"));
      FOLIO_TRY(Tensor hidden, repeated_rows(outputs[1].tensor(), beams_));
      decoder_feeds_.push_back(std::move(hidden));
    }
    for (size_t i = graphs_.starts_in_encoder ? 2 : 0; i < outputs.size(); ++i) {
      FOLIO_RETURN_IF_ERROR(check_rows(outputs[i], batch_, 4, graphs_.cache_dtype,
                                       cat("output ", i, " of the encoder")));
      FOLIO_TRY(Tensor rows, repeated_rows(outputs[i].tensor(), beams_));
      (i < own ? self_ : cross_).push_back(std::move(rows));
    }
    if (!graphs_.starts_in_encoder) return begin_empty();
    for (Tensor& cache : self_) {
      if (!graphs_.fixed_caches) break;
      FOLIO_TRY(cache, with_room(cache, max_length_));
    }
    return std::move(outputs[0].tensor());
  }

  // Self caches of no positions; there are no logits yet.
  Result<Tensor> begin_empty() {
    for (const Tensor& cross : cross_) {
      Shape shape = cross.shape();
      shape[2] = 0;
      FOLIO_TRY(Tensor empty, allocate_tensor(cross.dtype(), shape));
      self_.push_back(std::move(empty));
    }
    return Tensor();
  }

  const EncoderDecoder graphs_;
  std::vector<Value> encoder_feeds_;
  std::vector<Tensor> decoder_feeds_;  // what the decoder reads between tokens and caches
  Tensor ids_;
  const int64_t batch_;
  const int64_t beams_;
  const int64_t max_length_;
  std::vector<Tensor> self_;
  std::vector<Tensor> cross_;
  bool is_first_ = true;
  int64_t filled_ = 0;  // positions of fixed caches
};

const Graph& subgraph_of(const Node& node, int k) {
  return *node.subgraphs[static_cast<size_t>(k)];
}

Status find_graphs(const Node& node, EncoderDecoder* out) {
  FOLIO_TRY(out->encoder, find_subgraph(node, "encoder"));
  FOLIO_TRY(out->decoder, find_subgraph(node, "decoder"));
  return Status::ok();
}

// Reads of the decoder's declared inputs what their number does not say.
void read_declared(const Graph& decoder, EncoderDecoder* out) {
  const TypeInfo& ids = declared_input(decoder, 0);
  const bool one = ids.is_tensor() && ids.has_rank() && ids.rank() == 2 &&
                   (*ids.dims)[1].is_value() && (*ids.dims)[1].value == 1;
  out->takes_sequence = !one;
  const size_t cache = out->first_cache();
  out->cache_dtype = declared_input(decoder, cache).dtype;
  if (out->takes_hidden) out->hidden_dtype = declared_input(decoder, cache - 1).dtype;
}

// Infers a subgraph whose inputs have these types, and says which of them is another.
Status infer_inputs(OpInfer& infer, int k, const std::vector<TypeInfo>& inputs) {
  const Graph& graph = subgraph_of(infer.node(), k);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TypeInfo& declared = declared_input(graph, i);
    if (declared.is_tensor() && declared.dtype == inputs[i].dtype) continue;
    return invalid_graph(
        "input ", i, " of subgraph '", infer.node().subgraph_names[static_cast<size_t>(k)], "' is ",
        type_to_string(declared), ", expected a tensor of ", dtype_name(inputs[i].dtype));
  }
  FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(k, inputs));
  (void)outputs;
  return Status::ok();
}

// The same of the decoder: tokens and what is int32 of the batch, hidden states, caches.
Status infer_decoder_inputs(OpInfer& infer, const EncoderDecoder& graphs) {
  const DType dtype = graphs.cache_dtype;
  if (dtype != DType::kFloat && dtype != DType::kFloat16) {
    return invalid_graph("the decoder's caches are ", dtype_name(dtype),
                         ", expected float or float16");
  }
  const size_t first = graphs.first_cache();
  std::vector<TypeInfo> inputs(first, unknown_dims(DType::kInt32, 2));
  if (graphs.takes_hidden) inputs.back() = unknown_dims(graphs.hidden_dtype, 3);
  inputs.resize(first + 2 * graphs.caches, unknown_dims(dtype, 4));
  if (graphs.fixed_caches) inputs.push_back(TypeInfo::tensor(DType::kInt32, Dims{Dim::of(1)}));
  return infer_inputs(infer, graphs.decoder, inputs);
}

// The batch's first tokens where only one is known.
Result<Tensor> start_tokens(int64_t batch, int64_t token) {
  FOLIO_TRY(Tensor out, int32_tensor({batch, 1}));
  std::fill_n(out.data_mut<int32_t>(), batch, static_cast<int32_t>(token));
  return out;
}

// ---------------------------------------------------------------- T5

Result<EncoderDecoder> parse_t5(const Node& node) {
  EncoderDecoder out;
  FOLIO_RETURN_IF_ERROR(find_graphs(node, &out));
  const Graph& encoder = subgraph_of(node, out.encoder);
  const Graph& decoder = subgraph_of(node, out.decoder);
  const size_t outputs = decoder.outputs.size();
  const size_t inputs = decoder.inputs.size();
  out.caches = outputs < 3 ? 0 : outputs - 1;
  out.takes_mask = true;
  out.takes_prompt = inputs > 2 && declared_input(decoder, 2).dtype == DType::kInt32;
  const size_t fixed = out.first_cache();
  out.takes_hidden = inputs == fixed + 1 + 2 * out.caches;
  if (out.caches % 2 != 0 || out.caches == 0 ||
      (inputs != fixed + 2 * out.caches && !out.takes_hidden)) {
    return invalid_graph(
        "subgraph 'decoder' has ", inputs, " inputs and ", outputs,
        " outputs, expected (input_ids[, encoder_input_ids], encoder_attention_mask[, "
        "encoder_hidden_states], self and cross keys and values of each layer) and "
        "(logits, self keys and values of each layer)");
  }
  out.starts_in_encoder = encoder.inputs.size() == 3;
  const size_t wanted = out.starts_in_encoder ? 2 + 2 * out.caches : out.caches;
  if ((encoder.inputs.size() != 2 && !out.starts_in_encoder) || encoder.outputs.size() != wanted) {
    return invalid_graph("subgraph 'encoder' has ", encoder.inputs.size(), " inputs and ",
                         encoder.outputs.size(), " outputs, expected 2 and ", out.caches,
                         ", or 3 and ", 2 + 2 * out.caches);
  }
  if (out.takes_hidden && !out.starts_in_encoder) {
    return invalid_graph("the decoder reads hidden states, the encoder gives none");
  }
  read_declared(decoder, &out);
  return out;
}

class T5Decoder final : public Decoder {
 public:
  T5Decoder(const EncoderDecoder& graphs, const GenerationAttributes& attrs)
      : graphs_(graphs), pad_(attrs.pad), start_(attrs.start) {}

  Result<Tensor> prompt(const OpRun& run) const override {
    FOLIO_TRY(const Tensor ids, prompt_input(run));
    return start_tokens(ids.dim(0), start_);
  }

  Result<std::unique_ptr<TokenSource>> start(const OpRun& run, int mask_input,
                                             const GenerationRequest& request) const override {
    FOLIO_TRY(const Tensor ids, prompt_input(run));
    FOLIO_TRY(const Tensor* mask, attention_mask_input(run, mask_input, ids));
    EncoderFeeds feeds;
    FOLIO_TRY(feeds.prompt, start_tokens(request.batch, start_));
    if (graphs_.takes_prompt) feeds.decoder.push_back(ids);
    FOLIO_TRY(Tensor own_mask, mask ? Result<Tensor>(*mask) : mask_of(ids));
    feeds.encoder = {ids, own_mask};
    if (graphs_.starts_in_encoder) feeds.encoder.emplace_back(feeds.prompt);
    feeds.decoder.push_back(std::move(own_mask));
    return std::unique_ptr<TokenSource>(
        std::make_unique<EncoderDecoderSource>(graphs_, std::move(feeds), request));
  }

 private:
  // 1 from the first token that is no padding: padding within and after the text counts, since it
  // may be the end token.
  Result<Tensor> mask_of(const Tensor& ids) const {
    FOLIO_TRY(Tensor mask, int32_tensor(ids.shape()));
    const int64_t length = ids.dim(1);
    for (int64_t b = 0; b < ids.dim(0); ++b) {
      bool begun = false;
      for (int64_t i = b * length; i < (b + 1) * length; ++i) {
        begun = begun || ids.data<int32_t>()[i] != pad_;
        mask.data_mut<int32_t>()[i] = begun;
      }
    }
    return mask;
  }

  const EncoderDecoder graphs_;
  const int64_t pad_;
  const int64_t start_;
};

// ---------------------------------------------------------------- Whisper

// What the decoder has beside tokens and caches, by how many inputs there are and what the last is.
Status read_whisper_inputs(const Graph& decoder, EncoderDecoder* out) {
  const size_t inputs = decoder.inputs.size();
  const size_t plain = 1 + 2 * out->caches;
  const bool ends_in_int32 =
      inputs > plain && declared_input(decoder, inputs - 1).dtype == DType::kInt32;
  if (ends_in_int32 && (inputs == plain + 3 || inputs == plain + 4)) {
    return not_implemented(
        "subgraph 'decoder' takes beam_width and cache_indirection, which ONNX Runtime gives on "
        "GPUs alone");
  }
  out->fixed_caches = ends_in_int32;
  out->takes_hidden = inputs == plain + 1 + (ends_in_int32 ? 1 : 0);
  if (out->caches != 0 && out->caches % 2 == 0 && inputs >= plain && inputs <= plain + 2 &&
      out->first_cache() + 2 * out->caches + (ends_in_int32 ? 1 : 0) == inputs) {
    return Status::ok();
  }
  return invalid_graph(
      "subgraph 'decoder' has ", inputs, " inputs and ", decoder.outputs.size(),
      " outputs, expected (input_ids[, encoder_hidden_states], self and cross keys and values of "
      "each layer[, past_sequence_length]) and (logits, self keys and values of each layer)");
}

Result<EncoderDecoder> parse_whisper(const Node& node) {
  EncoderDecoder out;
  FOLIO_RETURN_IF_ERROR(find_graphs(node, &out));
  FOLIO_TRY(const int64_t gives_cross_qk, node.attributes.get_int("decoder_output_cross_qk", 0));
  if (gives_cross_qk != 0) {
    return not_implemented("decoder_output_cross_qk, which ONNX Runtime takes on GPUs alone");
  }
  const Graph& encoder = subgraph_of(node, out.encoder);
  const Graph& decoder = subgraph_of(node, out.decoder);
  out.starts_in_encoder = true;
  out.caches = decoder.outputs.size() < 3 ? 0 : decoder.outputs.size() - 1;
  FOLIO_RETURN_IF_ERROR(read_whisper_inputs(decoder, &out));
  if (encoder.inputs.size() != 2 || encoder.outputs.size() != 2 + 2 * out.caches) {
    return invalid_graph(
        "subgraph 'encoder' has ", encoder.inputs.size(), " inputs and ", encoder.outputs.size(),
        " outputs, expected (encoder_input_ids, decoder_input_ids) and ", 2 + 2 * out.caches);
  }
  read_declared(decoder, &out);
  return out;
}

class WhisperDecoder final : public Decoder {
 public:
  WhisperDecoder(const EncoderDecoder& graphs, DType features, int64_t start)
      : graphs_(graphs), features_(features), start_(start) {}

  Result<Tensor> prompt(const OpRun& run) const override {
    FOLIO_TRY(const Tensor* features, run.tensor(0, features_));
    if (features->rank() != 3 || features->dim(0) < 1) {
      return invalid_argument("input_ids is ", features->shape().to_string(),
                              ", expected [batch, features, frames] of one text or more");
    }
    const int64_t batch = features->dim(0);
    if (run.has_input(10)) {
      FOLIO_TRY(const Tensor* ids, run.tensor(10, DType::kInt32));
      if (ids->rank() == 2 && ids->dim(0) == batch && ids->dim(1) >= 1) return *ids;
      return invalid_argument("decoder_input_ids is ", ids->shape().to_string(), ", expected [",
                              batch, ", one token or more]");
    }
    if (start_ >= 0) return start_tokens(batch, start_);
    return invalid_argument(
        "attribute 'decoder_start_token_id' or input decoder_input_ids is required");
  }

  Result<std::unique_ptr<TokenSource>> start(const OpRun& run, int mask_input,
                                             const GenerationRequest& request) const override {
    FOLIO_TRY(const Tensor* features, run.tensor(0, features_));
    // No graph reads the mask; ONNX Runtime checks it too.
    FOLIO_RETURN_IF_ERROR(attention_mask_input(run, mask_input, *features).status());
    EncoderFeeds feeds;
    FOLIO_TRY(feeds.prompt, prompt(run));
    feeds.encoder = {*features, feeds.prompt};
    return std::unique_ptr<TokenSource>(
        std::make_unique<EncoderDecoderSource>(graphs_, std::move(feeds), request));
  }

 private:
  const EncoderDecoder graphs_;
  const DType features_;
  const int64_t start_;
};

}  // namespace

Status infer_t5(OpInfer& infer) {
  FOLIO_TRY(const EncoderDecoder graphs, parse_t5(infer.node()));
  const size_t ids = graphs.starts_in_encoder ? 3 : 2;
  FOLIO_RETURN_IF_ERROR(infer_inputs(infer, graphs.encoder,
                                     std::vector<TypeInfo>(ids, unknown_dims(DType::kInt32, 2))));
  return infer_decoder_inputs(infer, graphs);
}

Result<std::unique_ptr<Decoder>> make_t5(const Node& node, const GenerationAttributes& attrs) {
  FOLIO_TRY(const EncoderDecoder graphs, parse_t5(node));
  if (attrs.start < 0) {
    return invalid_graph("attribute 'decoder_start_token_id' is required for model_type 1");
  }
  return std::unique_ptr<Decoder>(std::make_unique<T5Decoder>(graphs, attrs));
}

Status infer_whisper(OpInfer& infer) {
  FOLIO_TRY(const EncoderDecoder graphs, parse_whisper(infer.node()));
  const DType features = declared_input(subgraph_of(infer.node(), graphs.encoder), 0).dtype;
  if (features != DType::kFloat && features != DType::kFloat16) {
    return invalid_graph("input 0 of subgraph 'encoder' is ", dtype_name(features),
                         ", expected float or float16");
  }
  FOLIO_RETURN_IF_ERROR(infer_inputs(infer, graphs.encoder,
                                     {unknown_dims(features, 3), unknown_dims(DType::kInt32, 2)}));
  return infer_decoder_inputs(infer, graphs);
}

Result<std::unique_ptr<Decoder>> make_whisper(const Node& node, const GenerationAttributes& attrs) {
  FOLIO_TRY(const EncoderDecoder graphs, parse_whisper(node));
  const DType features = declared_input(subgraph_of(node, graphs.encoder), 0).dtype;
  return std::unique_ptr<Decoder>(std::make_unique<WhisperDecoder>(graphs, features, attrs.start));
}

}  // namespace folio
