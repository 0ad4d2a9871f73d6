// The decoders of op_generation.h: GPT-2's and T5's.
#include <algorithm>
#include <cstring>

#include "core/ops/op_generation.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

Result<Tensor> int32_tensor(const Shape& shape) { return allocate_tensor(DType::kInt32, shape); }

// A copy of `rows` that repeats each of them; int32.
Result<Tensor> repeated(const Tensor& tensor, int64_t times) {
  std::vector<int32_t> from;
  for (int64_t i = 0; i < tensor.dim(0) * times; ++i)
    from.push_back(static_cast<int32_t>(i / times));
  return pick_rows(tensor, 0, from);
}

Result<Tensor> column_of(Span<const int32_t> tokens) {
  FOLIO_TRY(Tensor out, int32_tensor({static_cast<int64_t>(tokens.size()), 1}));
  std::copy(tokens.begin(), tokens.end(), out.data_mut<int32_t>());
  return out;
}

const TypeInfo& declared_input(const Graph& graph, size_t i) {
  return graph.value(graph.inputs[i]).declared;
}

TypeInfo unknown_dims(DType dtype, int rank) {
  return TypeInfo::tensor(dtype, Dims(static_cast<size_t>(rank), Dim::unknown()));
}

// The outputs of all three: token sequences of the batch.
void infer_sequences(OpInfer& infer) {
  const Dims* ids = infer.dims_of(0);
  const auto max_length = infer.ints(1);
  const Dim batch = ids && ids->size() == 2 ? (*ids)[0] : Dim::unknown();
  const Dim length = max_length && max_length->size() == 1 && (*max_length)[0] > 0
                         ? Dim::of((*max_length)[0])
                         : Dim::unknown();
  Dims dims = {batch, length};
  if (infer.node().op_type == "BeamSearch") {
    dims = {batch, Dim::unknown(), length};
    if (infer.has_output(1)) infer.set_output(1, unknown_dims(DType::kFloat, 2));
    if (infer.has_output(2)) infer.set_output(2, unknown_dims(DType::kFloat, 4));
  } else if (infer.has_output(1)) {
    infer.set_output(1, unknown_dims(DType::kFloat, 2));
  }
  infer.set_tensor(0, DType::kInt32, std::move(dims));
}

// ---------------------------------------------------------------- GPT-2

constexpr size_t kGptPast = 3;  // the first input that is a cache

Status check_gpt(const Graph& graph, std::string_view name) {
  const size_t outputs = graph.outputs.size();
  const size_t inputs = graph.inputs.size();
  if (outputs >= 2 && (inputs == outputs + 2 || inputs == outputs + 3)) return Status::ok();
  return invalid_graph(
      "subgraph '", name, "' has ", inputs, " inputs and ", outputs,
      " outputs, expected (input_ids, position_ids, attention_mask, a past for "
      "each layer[, past_sequence_length]) and (logits, a present for each layer)");
}

// Fixed numbers of a cache [2, rows, heads, length, size].
Status read_cache(const TypeInfo& type, GptDecoder* out) {
  const bool right = type.is_tensor() && type.has_rank() && type.rank() == 5 &&
                     (*type.dims)[2].is_value() && (*type.dims)[4].is_value() &&
                     (*type.dims)[2].value > 0 && (*type.dims)[4].value > 0;
  if (!right || (type.dtype != DType::kFloat && type.dtype != DType::kFloat16)) {
    return invalid_graph("the decoder's first cache is ", type_to_string(type),
                         ", expected float [2, rows, heads, length, size] of fixed heads and size");
  }
  out->heads = (*type.dims)[2].value;
  out->size = (*type.dims)[4].value;
  out->dtype = type.dtype;
  return Status::ok();
}

class GptSource final : public TokenSource {
 public:
  GptSource(const GptDecoder& decoder, Tensor ids, Tensor positions, Tensor mask,
            std::vector<int32_t> next_positions, std::vector<Tensor> past)
      : decoder_(decoder),
        ids_(std::move(ids)),
        positions_(std::move(positions)),
        mask_(std::move(mask)),
        next_positions_(std::move(next_positions)),
        past_(std::move(past)) {}

  Result<Tensor> logits(OpRun& run) override {
    std::vector<Value> feeds = {ids_, positions_, mask_};
    for (Tensor& past : past_) feeds.emplace_back(std::move(past));
    if (decoder_.shared_buffer) {
      FOLIO_TRY(Tensor filled, int32_tensor({1}));
      *filled.data_mut<int32_t>() = static_cast<int32_t>(filled_);
      feeds.emplace_back(std::move(filled));
    }
    const int graph = is_first_ && decoder_.first >= 0 ? decoder_.first : decoder_.decoder;
    is_first_ = false;
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(graph, feeds, &outputs));
    for (const Value& output : outputs) {
      if (!output.is_tensor()) return invalid_graph("a decoder's output is no tensor");
    }
    if (outputs.size() != past_.size() + 1) {
      return invalid_graph("a decoder gave ", outputs.size(), " outputs, expected ",
                           past_.size() + 1);
    }
    for (size_t i = 0; i < past_.size(); ++i) {
      past_[i] = std::move(outputs[i + 1].tensor());
      if (past_[i].rank() != 5 || past_[i].dtype() != decoder_.dtype) {
        return invalid_graph("a decoder's present is ", dtype_name(past_[i].dtype()), " ",
                             past_[i].shape().to_string(), ", expected ",
                             dtype_name(decoder_.dtype), " [2, rows, heads, length, size]");
      }
    }
    return std::move(outputs[0].tensor());
  }

  Status advance(Span<const int32_t> next, Span<const int32_t> from, const Sequences&) override {
    filled_ = mask_.dim(1);
    FOLIO_TRY(ids_, column_of(next));
    FOLIO_TRY(positions_, column_of(next_positions_));
    for (int32_t& position : next_positions_) ++position;
    const int64_t length = mask_.dim(1);
    FOLIO_TRY(Tensor mask, int32_tensor({mask_.dim(0), length + 1}));
    for (int64_t i = 0; i < mask.dim(0); ++i) {
      int32_t* row = mask.data_mut<int32_t>() + i * (length + 1);
      std::copy_n(mask_.data<int32_t>() + i * length, length, row);
      row[length] = 1;
    }
    mask_ = std::move(mask);
    if (from.empty()) return Status::ok();
    for (Tensor& past : past_) {
      FOLIO_TRY(past, pick_rows(past, 1, from));
    }
    return Status::ok();
  }

 private:
  const GptDecoder decoder_;
  Tensor ids_;
  Tensor positions_;
  Tensor mask_;
  std::vector<int32_t> next_positions_;
  std::vector<Tensor> past_;
  bool is_first_ = true;
  int64_t filled_ = 0;
};

}  // namespace

Status GptDecoder::infer(OpInfer& infer) {
  infer_sequences(infer);
  for (size_t k = 0; k < infer.node().subgraph_names.size(); ++k) {
    const std::string& name = infer.node().subgraph_names[k];
    if (name != "decoder" && name != "init_decoder") {
      return invalid_graph("subgraph '", name, "', expected decoder or init_decoder");
    }
    const Graph& graph = *infer.node().subgraphs[k];
    FOLIO_RETURN_IF_ERROR(check_gpt(graph, name));
    std::vector<TypeInfo> inputs(kGptPast, unknown_dims(DType::kInt32, 2));
    GptDecoder cache;
    FOLIO_RETURN_IF_ERROR(read_cache(declared_input(graph, kGptPast), &cache));
    for (size_t i = 1; i < graph.outputs.size(); ++i) {
      inputs.push_back(
          TypeInfo::tensor(cache.dtype, Dims{Dim::of(2), Dim::unknown(), Dim::of(cache.heads),
                                             Dim::unknown(), Dim::of(cache.size)}));
    }
    if (inputs.size() < graph.inputs.size()) {
      inputs.push_back(TypeInfo::tensor(DType::kInt32, Dims{Dim::of(1)}));
    }
    FOLIO_TRY(const std::vector<TypeInfo> outputs,
              infer.infer_subgraph(static_cast<int>(k), inputs));
    (void)outputs;
  }
  return Status::ok();
}

Result<GptDecoder> GptDecoder::parse(const Node& node) {
  GptDecoder out;
  FOLIO_TRY(out.decoder, find_subgraph(node, "decoder"));
  if (node.subgraph("init_decoder")) {
    FOLIO_TRY(out.first, find_subgraph(node, "init_decoder"));
  }
  const Graph& graph = *node.subgraphs[static_cast<size_t>(out.decoder)];
  FOLIO_RETURN_IF_ERROR(check_gpt(graph, "decoder"));
  FOLIO_RETURN_IF_ERROR(read_cache(declared_input(graph, kGptPast), &out));
  out.layers = static_cast<int>(graph.outputs.size()) - 1;
  out.shared_buffer = graph.inputs.size() == graph.outputs.size() + 3;
  if (out.first >= 0) {
    const Graph& first = *node.subgraphs[static_cast<size_t>(out.first)];
    if (first.inputs.size() != graph.inputs.size() ||
        first.outputs.size() != graph.outputs.size()) {
      return invalid_graph("init_decoder has ", first.inputs.size(), " inputs and ",
                           first.outputs.size(), " outputs, decoder ", graph.inputs.size(), " and ",
                           graph.outputs.size());
    }
  }
  return out;
}

Result<std::unique_ptr<TokenSource>> GptDecoder::start(const Tensor& ids, const Tensor* mask,
                                                       int64_t pad,
                                                       const GenerationRequest& request) const {
  const int64_t batch = ids.dim(0);
  const int64_t length = ids.dim(1);
  FOLIO_TRY(Tensor positions, int32_tensor(ids.shape()));
  FOLIO_TRY(Tensor own_mask, int32_tensor(ids.shape()));
  std::vector<int32_t> next;
  for (int64_t b = 0; b < batch; ++b) {
    int32_t position = 0;
    for (int64_t i = b * length; i < (b + 1) * length; ++i) {
      const bool is_pad = ids.data<int32_t>()[i] == pad;
      positions.data_mut<int32_t>()[i] = is_pad ? 0 : position++;
      own_mask.data_mut<int32_t>()[i] = mask ? mask->data<int32_t>()[i] : !is_pad;
    }
    next.insert(next.end(), static_cast<size_t>(request.beams), position);
  }
  Tensor rows[3];
  const Tensor* const sources[3] = {&ids, &positions, &own_mask};
  for (int i = 0; i < 3; ++i) {
    FOLIO_TRY(rows[i], repeated(*sources[i], request.beams));
  }
  std::vector<Tensor> past;
  const int64_t room = shared_buffer ? request.max_length : 0;
  for (int i = 0; i < layers; ++i) {
    const int64_t dims[] = {2, request.rows(), heads, room, size};
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor cache, allocate_tensor(dtype, shape));
    if (cache.bytes() != 0) std::memset(cache.raw_mut(), 0, cache.bytes());
    past.push_back(std::move(cache));
  }
  return std::unique_ptr<TokenSource>(
      std::make_unique<GptSource>(*this, std::move(rows[0]), std::move(rows[1]), std::move(rows[2]),
                                  std::move(next), std::move(past)));
}

// ---------------------------------------------------------------- T5

namespace {

class T5Source final : public TokenSource {
 public:
  T5Source(const T5Decoder& decoder, Tensor ids, Tensor mask, int64_t batch, int64_t beams,
           int64_t start)
      : decoder_(decoder),
        ids_(std::move(ids)),
        mask_(std::move(mask)),
        batch_(batch),
        beams_(beams),
        start_(static_cast<int32_t>(start)) {}

  Result<Tensor> logits(OpRun& run) override {
    if (is_first_) {
      is_first_ = false;
      FOLIO_TRY(Tensor first, encode(run));
      if (decoder_.starts_in_encoder) return first;
    }
    std::vector<Value> feeds = {ids_};
    if (decoder_.takes_prompt) feeds.emplace_back(prompt_);
    feeds.emplace_back(mask_);
    if (decoder_.takes_hidden) feeds.emplace_back(hidden_);
    for (Tensor& cache : self_) feeds.emplace_back(std::move(cache));
    for (const Tensor& cache : cross_) feeds.emplace_back(cache);
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(decoder_.decoder, feeds, &outputs));
    FOLIO_RETURN_IF_ERROR(check(outputs, self_.size() + 1, "decoder"));
    for (size_t i = 0; i < self_.size(); ++i) self_[i] = std::move(outputs[i + 1].tensor());
    return std::move(outputs[0].tensor());
  }

  Status advance(Span<const int32_t> next, Span<const int32_t> from,
                 const Sequences& sequences) override {
    if (decoder_.takes_sequence) {
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
  static Status check(const std::vector<Value>& outputs, size_t expected, std::string_view name) {
    if (outputs.size() != expected) {
      return invalid_graph("the ", name, " gave ", outputs.size(), " outputs, expected ", expected);
    }
    for (const Value& output : outputs) {
      if (!output.is_tensor() || output.tensor().rank() < 2) {
        return invalid_graph("an output of the ", name, " is no tensor of rows");
      }
    }
    return Status::ok();
  }

  // Runs the encoder, repeats what it gives for each beam, and gives its logits, if it has any.
  Result<Tensor> encode(OpRun& run) {
    std::vector<Value> feeds = {ids_, mask_};
    FOLIO_TRY(Tensor start, int32_tensor({batch_, 1}));
    std::fill_n(start.data_mut<int32_t>(), batch_, start_);
    if (decoder_.starts_in_encoder) feeds.emplace_back(start);
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(decoder_.encoder, feeds, &outputs));
    const auto caches = static_cast<size_t>(2 * decoder_.layers);
    const size_t own = decoder_.starts_in_encoder ? 2 + caches : 0;
    FOLIO_RETURN_IF_ERROR(check(outputs, own + caches, "encoder"));
    std::vector<Tensor> repeats;
    for (size_t i = decoder_.starts_in_encoder ? 1 : 0; i < outputs.size(); ++i) {
      const int rank = decoder_.starts_in_encoder && i == 1 ? 3 : 4;
      if (outputs[i].tensor().rank() != rank) {
        return invalid_graph("output ", i, " of the encoder is ",
                             outputs[i].tensor().shape().to_string(), ", expected rank ", rank);
      }
      FOLIO_TRY(Tensor rows, repeated(outputs[i].tensor(), beams_));
      repeats.push_back(std::move(rows));
    }
    cross_.assign(repeats.end() - static_cast<std::ptrdiff_t>(caches), repeats.end());
    FOLIO_TRY(mask_, repeated(mask_, beams_));
    if (decoder_.takes_prompt) {
      FOLIO_TRY(prompt_, repeated(ids_, beams_));
    }
    FOLIO_TRY(ids_, repeated(start, beams_));
    if (decoder_.starts_in_encoder) {
      hidden_ = repeats[0];
      self_.assign(repeats.begin() + 1, repeats.begin() + 1 + static_cast<std::ptrdiff_t>(caches));
      return std::move(outputs[0].tensor());
    }
    for (const Tensor& cross : cross_) {
      Shape shape = cross.shape();
      shape[2] = 0;
      FOLIO_TRY(Tensor empty, allocate_tensor(cross.dtype(), shape));
      self_.push_back(std::move(empty));
    }
    return Tensor();
  }

  const T5Decoder decoder_;
  Tensor ids_;
  Tensor prompt_;
  Tensor mask_;
  int64_t batch_;
  int64_t beams_;
  int32_t start_;
  Tensor hidden_;
  std::vector<Tensor> self_;
  std::vector<Tensor> cross_;
  bool is_first_ = true;
};

Result<Graph*> subgraph_of(const Node& node, std::string_view name) {
  FOLIO_TRY(const int k, find_subgraph(node, name));
  return node.subgraphs[static_cast<size_t>(k)].get();
}

}  // namespace

Result<T5Decoder> T5Decoder::parse(const Node& node) {
  T5Decoder out;
  FOLIO_TRY(out.encoder, find_subgraph(node, "encoder"));
  FOLIO_TRY(out.decoder, find_subgraph(node, "decoder"));
  FOLIO_TRY(const Graph* encoder, subgraph_of(node, "encoder"));
  FOLIO_TRY(const Graph* decoder, subgraph_of(node, "decoder"));
  const size_t outputs = decoder->outputs.size();
  const size_t inputs = decoder->inputs.size();
  const size_t caches = outputs < 3 ? 0 : outputs - 1;  // self keys and values
  out.takes_prompt = inputs > 2 && declared_input(*decoder, 2).dtype == DType::kInt32;
  const size_t fixed = out.takes_prompt ? 3 : 2;
  out.takes_hidden = inputs == fixed + 1 + 2 * caches;
  if (caches % 2 != 0 || caches == 0 || (inputs != fixed + 2 * caches && !out.takes_hidden)) {
    return invalid_graph(
        "subgraph 'decoder' has ", inputs, " inputs and ", outputs,
        " outputs, expected (input_ids[, encoder_input_ids], encoder_attention_mask[, "
        "encoder_hidden_states], self and cross keys and values of each layer) and "
        "(logits, self keys and values of each layer)");
  }
  out.layers = static_cast<int>(caches / 2);
  out.starts_in_encoder = encoder->inputs.size() == 3;
  const size_t wanted = out.starts_in_encoder ? 2 + 2 * caches : caches;
  if ((encoder->inputs.size() != 2 && !out.starts_in_encoder) ||
      encoder->outputs.size() != wanted) {
    return invalid_graph("subgraph 'encoder' has ", encoder->inputs.size(), " inputs and ",
                         encoder->outputs.size(), " outputs, expected 2 and ", caches,
                         ", or 3 and ", 2 + 2 * caches);
  }
  if (out.takes_hidden && !out.starts_in_encoder) {
    return invalid_graph("the decoder reads hidden states, the encoder gives none");
  }
  const TypeInfo& ids = declared_input(*decoder, 0);
  const bool one = ids.is_tensor() && ids.has_rank() && ids.rank() == 2 &&
                   (*ids.dims)[1].is_value() && (*ids.dims)[1].value == 1;
  out.takes_sequence = !one;
  return out;
}

Status T5Decoder::infer(OpInfer& infer) {
  infer_sequences(infer);
  FOLIO_TRY(const T5Decoder parsed, parse(infer.node()));
  for (const int k : {parsed.encoder, parsed.decoder}) {
    const Graph& graph = *infer.node().subgraphs[static_cast<size_t>(k)];
    const bool is_decoder = k == parsed.decoder;
    const size_t fixed = !is_decoder || parsed.takes_prompt ? 3 : 2;  // inputs of int32
    std::vector<TypeInfo> inputs;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const TypeInfo& declared = declared_input(graph, i);
      const bool ids = i < fixed;
      const bool hidden = is_decoder && parsed.takes_hidden && i == fixed;
      const DType dtype = ids ? DType::kInt32 : declared.dtype;
      if (!declared.is_tensor() || declared.dtype != dtype) {
        return invalid_graph(
            "input ", i, " of subgraph '", infer.node().subgraph_names[static_cast<size_t>(k)],
            "' is ", type_to_string(declared), ", expected a tensor of ", dtype_name(dtype));
      }
      inputs.push_back(unknown_dims(dtype, ids ? 2 : hidden ? 3 : 4));
    }
    FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(k, inputs));
    (void)outputs;
  }
  return Status::ok();
}

Result<std::unique_ptr<TokenSource>> T5Decoder::start(const Tensor& ids, const Tensor* mask,
                                                      const GenerationAttributes& attrs,
                                                      const GenerationRequest& request) const {
  FOLIO_TRY(Tensor own_mask, int32_tensor(ids.shape()));
  const int64_t length = ids.dim(1);
  for (int64_t b = 0; b < ids.dim(0); ++b) {
    bool begun = false;  // padding within and after the text counts: it may be the end token
    for (int64_t i = b * length; i < (b + 1) * length; ++i) {
      begun = begun || ids.data<int32_t>()[i] != attrs.pad;
      own_mask.data_mut<int32_t>()[i] = mask ? mask->data<int32_t>()[i] : begun;
    }
  }
  return std::unique_ptr<TokenSource>(std::make_unique<T5Source>(
      *this, ids, std::move(own_mask), request.batch, request.beams, attrs.start));
}

}  // namespace folio
