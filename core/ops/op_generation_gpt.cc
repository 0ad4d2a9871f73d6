// GPT-2's form of op_generation.h: one decoder, (input_ids, position_ids, attention_mask, past...)
// -> (logits, present...), past and present [2, rows, heads, length, size]; with one input more,
// caches of max_length positions and how many of them are filled. init_decoder, where there is one,
// runs the first step.
#include <algorithm>
#include <cstring>

#include "core/ops/op_generation.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

constexpr size_t kGptPast = 3;  // the first input that is a cache

struct GptGraphs {
  int decoder = -1;
  int first = -1;  // init_decoder, for the first step; -1: as the others
  int layers = 0;
  int64_t heads = 0;
  int64_t size = 0;
  DType dtype = DType::kFloat;
  bool shared_buffer = false;
};

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
Status read_cache(const TypeInfo& type, GptGraphs* out) {
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
  GptSource(const GptGraphs& graphs, Tensor ids, Tensor positions, Tensor mask,
            std::vector<int32_t> next_positions, std::vector<Tensor> past)
      : graphs_(graphs),
        ids_(std::move(ids)),
        positions_(std::move(positions)),
        mask_(std::move(mask)),
        next_positions_(std::move(next_positions)),
        past_(std::move(past)) {}

  Result<Tensor> logits(OpRun& run) override {
    std::vector<Value> feeds = {ids_, positions_, mask_};
    for (Tensor& past : past_) feeds.emplace_back(std::move(past));
    if (graphs_.shared_buffer) {
      FOLIO_TRY(Tensor filled, int32_tensor({1}));
      *filled.data_mut<int32_t>() = static_cast<int32_t>(filled_);
      feeds.emplace_back(std::move(filled));
    }
    const int graph = is_first_ && graphs_.first >= 0 ? graphs_.first : graphs_.decoder;
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
      if (past_[i].rank() != 5 || past_[i].dtype() != graphs_.dtype) {
        return invalid_graph("a decoder's present is ", dtype_name(past_[i].dtype()), " ",
                             past_[i].shape().to_string(), ", expected ", dtype_name(graphs_.dtype),
                             " [2, rows, heads, length, size]");
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
  const GptGraphs graphs_;
  Tensor ids_;
  Tensor positions_;
  Tensor mask_;
  std::vector<int32_t> next_positions_;
  std::vector<Tensor> past_;
  bool is_first_ = true;
  int64_t filled_ = 0;
};

Result<GptGraphs> parse_gpt(const Node& node) {
  GptGraphs out;
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

class GptDecoder final : public Decoder {
 public:
  GptDecoder(const GptGraphs& graphs, int64_t pad) : graphs_(graphs), pad_(pad) {}

  Result<Tensor> prompt(const OpRun& run) const override { return prompt_input(run); }

  Result<std::unique_ptr<TokenSource>> start(const OpRun& run, int mask_input,
                                             const GenerationRequest& request) const override {
    FOLIO_TRY(const Tensor ids, prompt_input(run));
    FOLIO_TRY(const Tensor* mask, attention_mask_input(run, mask_input, ids));
    const int64_t batch = ids.dim(0);
    const int64_t length = ids.dim(1);
    FOLIO_TRY(Tensor positions, int32_tensor(ids.shape()));
    FOLIO_TRY(Tensor own_mask, int32_tensor(ids.shape()));
    std::vector<int32_t> next;
    for (int64_t b = 0; b < batch; ++b) {
      int32_t position = 0;
      for (int64_t i = b * length; i < (b + 1) * length; ++i) {
        const bool is_pad = ids.data<int32_t>()[i] == pad_;
        positions.data_mut<int32_t>()[i] = is_pad ? 0 : position++;
        own_mask.data_mut<int32_t>()[i] = mask ? mask->data<int32_t>()[i] : !is_pad;
      }
      next.insert(next.end(), static_cast<size_t>(request.beams), position);
    }
    Tensor rows[3];
    const Tensor* const sources[3] = {&ids, &positions, &own_mask};
    for (int i = 0; i < 3; ++i) {
      FOLIO_TRY(rows[i], repeated_rows(*sources[i], request.beams));
    }
    FOLIO_TRY(std::vector<Tensor> past, empty_caches(request));
    return std::unique_ptr<TokenSource>(
        std::make_unique<GptSource>(graphs_, std::move(rows[0]), std::move(rows[1]),
                                    std::move(rows[2]), std::move(next), std::move(past)));
  }

 private:
  Result<std::vector<Tensor>> empty_caches(const GenerationRequest& request) const {
    std::vector<Tensor> past;
    const int64_t room = graphs_.shared_buffer ? request.max_length : 0;
    const int64_t dims[] = {2, request.rows(), graphs_.heads, room, graphs_.size};
    FOLIO_TRY(const Shape shape, shape_from(dims));
    for (int i = 0; i < graphs_.layers; ++i) {
      FOLIO_TRY(Tensor cache, allocate_tensor(graphs_.dtype, shape));
      if (cache.bytes() != 0) std::memset(cache.raw_mut(), 0, cache.bytes());
      past.push_back(std::move(cache));
    }
    return past;
  }

  const GptGraphs graphs_;
  const int64_t pad_;
};

}  // namespace

Status infer_gpt(OpInfer& infer) {
  for (size_t k = 0; k < infer.node().subgraph_names.size(); ++k) {
    const std::string& name = infer.node().subgraph_names[k];
    if (name != "decoder" && name != "init_decoder") {
      return invalid_graph("subgraph '", name, "', expected decoder or init_decoder");
    }
    const Graph& graph = *infer.node().subgraphs[k];
    FOLIO_RETURN_IF_ERROR(check_gpt(graph, name));
    std::vector<TypeInfo> inputs(kGptPast, unknown_dims(DType::kInt32, 2));
    GptGraphs cache;
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

Result<std::unique_ptr<Decoder>> make_gpt(const Node& node, const GenerationAttributes& attrs) {
  FOLIO_TRY(const GptGraphs graphs, parse_gpt(node));
  return std::unique_ptr<Decoder>(std::make_unique<GptDecoder>(graphs, attrs.pad));
}

}  // namespace folio
