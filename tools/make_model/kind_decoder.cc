// The decoder kind: a language model as onnxruntime-genai's builder lays one out, small. Packed
// QKV, GroupQueryAttention with rotary positions and a key/value cache, int4 MatMulNBits, SwiGLU.
#include <cmath>

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr const char* kMicrosoft = "com.microsoft";
constexpr uint64_t kBlock = 32;
constexpr int64_t kVocabulary = 512;
constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadSize = 32;
constexpr int64_t kHidden = kHeads * kHeadSize;
constexpr int64_t kInner = 256;
constexpr int64_t kContext = 1024;
constexpr float kEpsilon = 1e-5F;

class DecoderBuilder {
 public:
  DecoderBuilder(GraphWriter& graph, const DecoderOptions& options)
      : graph_(graph), seeds_(options.seed), accuracy_level_(options.accuracy_level) {}

  void inputs() {
    graph_.input("input_ids", Type::tensor(ElementType::kInt64, {"batch_size", "sequence_length"}));
    graph_.input("attention_mask",
                 Type::tensor(ElementType::kInt64, {"batch_size", "total_sequence_length"}));
    graph_.initializer(i64_tensor("one", {1}, {1}));
    graph_.initializer(i64_tensor("axis", {}, {1}));
    // seqlens_k = the mask's sum - 1; total_sequence_length = its width.
    graph_.node("ReduceSum", {"attention_mask", "one"}, {"mask_sum"}).attr_int("keepdims", 0);
    graph_.node("Sub", {"mask_sum", "one"}, {"last"});
    graph_.node("Cast", {"last"}, {"seqlens_k"}).attr_int("to", 6);
    graph_.node("Shape", {"attention_mask"}, {"mask_shape"});
    graph_.node("Gather", {"mask_shape", "axis"}, {"width"}).attr_int("axis", 0);
    graph_.node("Cast", {"width"}, {"total"}).attr_int("to", 6);
    rotary_caches();
    uniform("embed", {kVocabulary, kHidden}, -1.0F, 1.0F);
    graph_.node("Gather", {"embed", "input_ids"}, {"h"}).named("/embed/Gather");
    root_ = "h";
  }

  void layer(uint64_t index) {
    const std::string n = std::to_string(index);
    const std::string at = "/layers." + n;
    const std::string normed = norm(at + "/input_layernorm");
    const std::string qkv =
        product(at + "/qkv_proj", normed, kHidden, kHidden + 2 * kKvHeads * kHeadSize);
    std::vector<std::string> past;
    std::vector<std::string> outputs = {at + "/attn"};
    for (const char* what : {".key", ".value"}) {
      past.push_back("past_key_values." + n + what);
      outputs.push_back("present." + n + what);
      graph_.input(past.back(),
                   Type::tensor(ElementType::kFloat,
                                {"batch_size", kKvHeads, "past_sequence_length", kHeadSize}));
      graph_.output(outputs.back(),
                    Type::tensor(ElementType::kFloat,
                                 {"batch_size", kKvHeads, "total_sequence_length", kHeadSize}));
    }
    graph_
        .node("GroupQueryAttention",
              {qkv, "", "", past[0], past[1], "seqlens_k", "total", "cos_cache", "sin_cache"},
              outputs)
        .named(at + "/GroupQueryAttention")
        .in_domain(kMicrosoft)
        .attr_int("num_heads", kHeads)
        .attr_int("kv_num_heads", kKvHeads)
        .attr_int("do_rotary", 1);
    skip_ = product(at + "/o_proj", outputs[0], kHidden, kHidden);
    const std::string middle = norm(at + "/post_attention_layernorm");
    const std::string gate = product(at + "/gate_proj", middle, kHidden, kInner);
    const std::string up = product(at + "/up_proj", middle, kHidden, kInner);
    graph_.node("Sigmoid", {gate}, {gate + ".sigmoid"});
    graph_.node("Mul", {gate, gate + ".sigmoid"}, {gate + ".silu"});
    graph_.node("Mul", {gate + ".silu", up}, {at + "/inner"});
    skip_ = product(at + "/down_proj", at + "/inner", kInner, kHidden);
  }

  void head() {
    const std::string normed = norm("/final_layernorm");
    graph_.output("logits", Type::tensor(ElementType::kFloat,
                                         {"batch_size", "sequence_length", kVocabulary}));
    product("/lm_head", normed, kHidden, kVocabulary, "logits");
  }

 private:
  void rotary_caches() {
    std::vector<float> cosines;
    std::vector<float> sines;
    for (int64_t at = 0; at < kContext; ++at) {
      for (int64_t i = 0; i < kHeadSize / 2; ++i) {
        const double turn = 2.0 * static_cast<double>(i) / static_cast<double>(kHeadSize);
        const double angle = static_cast<double>(at) / std::pow(10000.0, turn);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    graph_.initializer(f32_tensor("cos_cache", {kContext, kHeadSize / 2}, cosines));
    graph_.initializer(f32_tensor("sin_cache", {kContext, kHeadSize / 2}, sines));
  }

  // Adds what the layer before left over; gives the normed sum.
  std::string norm(const std::string& name) {
    uniform(name + ".weight", {kHidden}, 0.5F, 1.5F);
    const std::string y = name + ".out";
    if (skip_.empty()) {
      graph_.node("SimplifiedLayerNormalization", {root_, name + ".weight"}, {y})
          .named(name)
          .attr_float("epsilon", kEpsilon);
      return y;
    }
    graph_
        .node("SkipSimplifiedLayerNormalization", {root_, skip_, name + ".weight"},
              {y, "", "", name + ".sum"})
        .named(name)
        .in_domain(kMicrosoft)
        .attr_float("epsilon", kEpsilon);
    root_ = name + ".sum";
    return y;
  }

  std::string product(const std::string& name, const std::string& x, int64_t k, int64_t n,
                      const std::string& y = "") {
    const auto blocks = static_cast<uint64_t>(k) / kBlock;
    const uint64_t columns = static_cast<uint64_t>(n);
    const float scale = weight_scale(static_cast<uint64_t>(k)) / 8.0F;
    graph_.initializer(
        TensorWriter(name + ".weight_Q4", ElementType::kUint8,
                     {n, static_cast<int64_t>(blocks), kBlock / 2})
            .raw(random_bytes_payload(seeds_.next(), columns * blocks * kBlock / 2)));
    uniform(name + ".weight_scales", {n, static_cast<int64_t>(blocks)}, 0.5F * scale, 1.5F * scale);
    const std::string out = y.empty() ? name + ".out" : y;
    graph_.node("MatMulNBits", {x, name + ".weight_Q4", name + ".weight_scales"}, {out})
        .named(name + "/MatMulNBits")
        .in_domain(kMicrosoft)
        .attr_int("K", k)
        .attr_int("N", n)
        .attr_int("bits", 4)
        .attr_int("block_size", static_cast<int64_t>(kBlock))
        .attr_int("accuracy_level", accuracy_level_);
    return out;
  }

  void uniform(const std::string& name, const std::vector<int64_t>& dims, float low, float high) {
    uint64_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<uint64_t>(dim);
    graph_.initializer(TensorWriter(name, ElementType::kFloat, dims)
                           .raw(uniform_payload(seeds_.next(), count, low, high)));
  }

  GraphWriter& graph_;
  Seeds seeds_;
  int64_t accuracy_level_;
  std::string root_;  // the residual stream
  std::string skip_;  // to be added to it
};

// What onnxruntime-genai reads beside the model.
std::string genai_config(const std::string& model_name, uint64_t layers) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  return "{\n  \"model\": {\n    \"context_length\": " + number(kContext) +
         ",\n    \"eos_token_id\": 2,\n    \"vocab_size\": " + number(kVocabulary) +
         ",\n    \"decoder\": {\n      \"filename\": \"" + model_name +
         "\",\n      \"head_size\": " + number(kHeadSize) +
         ",\n      \"num_attention_heads\": " + number(kHeads) +
         ",\n      \"num_key_value_heads\": " + number(kKvHeads) +
         ",\n      \"num_hidden_layers\": " + number(static_cast<int64_t>(layers)) +
         ",\n      \"inputs\": {\n        \"input_ids\": \"input_ids\",\n"
         "        \"attention_mask\": \"attention_mask\",\n"
         "        \"past_key_names\": \"past_key_values.%d.key\",\n"
         "        \"past_value_names\": \"past_key_values.%d.value\"\n      },\n"
         "      \"outputs\": {\n        \"logits\": \"logits\",\n"
         "        \"present_key_names\": \"present.%d.key\",\n"
         "        \"present_value_names\": \"present.%d.value\"\n      }\n    }\n  },\n"
         "  \"search\": { \"max_length\": " +
         number(kContext) + ", \"past_present_share_buffer\": true }\n}\n";
}

}  // namespace

ModelFiles build_decoder(const DecoderOptions& options) {
  ModelFiles files{new_model("decoder", options.seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  files.model.opset(kMicrosoft, 1);
  DecoderBuilder builder(files.model.graph(), options);
  builder.inputs();
  for (uint64_t i = 0; i < options.layers; ++i) builder.layer(i);
  builder.head();
  files.genai_config = genai_config(options.model_name, options.layers);
  return files;
}

}  // namespace model_writer
