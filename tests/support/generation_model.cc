#include "tests/support/generation_model.h"

#include <cmath>
#include <numeric>

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::Type;

constexpr ElementType kI32 = ElementType::kInt32;
constexpr ElementType kF16 = ElementType::kFloat16;

std::vector<float> random_floats(uint64_t* state, size_t count, float scale) {
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    out.push_back((static_cast<float>(*state >> 40) / 16777216.0f - 0.5f) * 2 * scale);
  }
  return out;
}

Type i32_type(const std::vector<model_writer::Dim>& dims) { return Type::tensor(kI32, dims); }

// logits = Gather(table, ids) + Sin(sum [b,1,1] * frequency) + extra [.,.,vocabulary]
void add_head(GraphWriter* graph, const std::string& ids, const std::string& sum,
              const std::string& extra) {
  graph->node("Gather", {"table", ids}, {"h.rows"});
  graph->node("Mul", {sum, "frequency"}, {"h.angle"});
  graph->node("Sin", {"h.angle"}, {"h.wave"});
  graph->node("Add", {"h.rows", "h.wave"}, {"h.both"});
  graph->node("Add", {"h.both", extra}, {"logits"});
}

// The tokens as floats [b,1,s,1].
void add_values(GraphWriter* graph, const std::string& ids, const std::string& out) {
  graph->node("Cast", {ids}, {out + ".f"}).attr_int("to", 1);
  graph->node("Unsqueeze", {out + ".f", "axes13"}, {out});
}

// The caches that a decoder behind an encoder takes.
void add_pasts(GraphWriter* graph, ElementType type) {
  for (const char* name : {"past_key_self_0", "past_value_self_0"}) {
    graph->input(name, Type::tensor(type, {"batch", 1, "past", 1}));
  }
  for (const char* name : {"past_key_cross_0", "past_value_cross_0"}) {
    graph->input(name, Type::tensor(type, {"batch", 1, "seen", 1}));
  }
}

// Before add_to_fixed_cache: where the rows of `added` go along this axis.
void add_fill(GraphWriter* graph, const std::string& added, int64_t axis) {
  graph->input("past_sequence_length", i32_type({1}));
  graph->initializer(i64_tensor("f.zero", {1}, {0}));
  graph->initializer(i64_tensor("f.all", {1}, {1 << 30}));
  graph->initializer(i64_tensor("f.axis", {1}, {axis}));
  graph->node("Cast", {"past_sequence_length"}, {"f.past"}).attr_int("to", 7);
  graph->node("Shape", {added}, {"f.rows"}).attr_int("start", axis).attr_int("end", axis + 1);
  graph->node("Add", {"f.past", "f.rows"}, {"f.total"});
}

// present is past with `added` behind its first past_sequence_length rows; filled: all up to it.
void add_to_fixed_cache(GraphWriter* graph, const std::string& past, const std::string& added,
                        const std::string& present, const std::string& filled, int64_t axis) {
  graph->node("Slice", {past, "f.zero", "f.past", "f.axis"}, {past + ".head"});
  graph->node("Slice", {past, "f.total", "f.all", "f.axis"}, {past + ".tail"});
  graph->node("Concat", {past + ".head", added, past + ".tail"}, {present}).attr_int("axis", axis);
  graph->node("Slice", {present, "f.zero", "f.total", "f.axis"}, {filled});
}

// 0.2 * mask sum * tilt, [b,1,vocabulary].
void add_mask_term(GraphWriter* graph, const std::string& mask) {
  graph->node("Cast", {mask}, {"m.f"}).attr_int("to", 1);
  graph->node("ReduceSum", {"m.f", "axes1"}, {"m.sum"});
  graph->node("Unsqueeze", {"m.sum", "axes1"}, {"m.cube"});
  graph->node("Mul", {"m.cube", "tilt02"}, {"m.term"});
}

}  // namespace

GenerationModel::GenerationModel(uint64_t seed) {
  uint64_t state = seed * 77 + 3;
  table = random_floats(&state, kWords * kWords, 2.0f);
  frequency = random_floats(&state, kWords, 0.4f);
  tilt = random_floats(&state, kWords, 1.0f);
}

void GenerationModel::add_weights(GraphWriter* graph) const {
  std::vector<float> tilt02;
  for (const float value : tilt) tilt02.push_back(0.2f * value);
  graph->initializer(f32_tensor("table", {kWords, kWords}, table));
  graph->initializer(f32_tensor("frequency", {kWords}, frequency));
  graph->initializer(f32_tensor("tilt02", {kWords}, tilt02));
  graph->initializer(f32_tensor("tenths3", {}, {0.3f}));
  graph->initializer(i64_tensor("axes1", {1}, {1}));
  graph->initializer(i64_tensor("axes2", {1}, {2}));
  graph->initializer(i64_tensor("axes0", {1}, {0}));
  graph->initializer(i64_tensor("axes13", {2}, {1, 3}));
  graph->initializer(i64_tensor("axes023", {3}, {0, 2, 3}));
  graph->initializer(i64_tensor("axes12", {2}, {1, 2}));
  graph->initializer(i64_tensor("cube", {3}, {-1, 1, 1}));
}

GraphWriter GenerationModel::gpt_decoder(bool fixed_cache) const {
  GraphWriter graph("decoder");
  graph.input("input_ids", i32_type({"batch", "length"}));
  graph.input("position_ids", i32_type({"batch", "length"}));
  graph.input("attention_mask", i32_type({"batch", "total"}));
  graph.input("past_0", f32_type({2, "batch", 1, "past", 1}));
  add_values(&graph, "input_ids", "new");
  graph.node("Unsqueeze", {"new", "axes0"}, {"new.one"});
  graph.node("Concat", {"new.one", "new.one"}, {"new.two"}).attr_int("axis", 0);
  if (fixed_cache) {
    add_fill(&graph, "new.two", 3);
    add_to_fixed_cache(&graph, "past_0", "new.two", "present_0", "filled", 3);
  } else {
    graph.node("Concat", {"past_0", "new.two"}, {"present_0"}).attr_int("axis", 3);
    graph.node("Identity", {"present_0"}, {"filled"});
  }
  // Half of keys and values each: what either of them loses shows.
  graph.node("ReduceMean", {"filled"}, {"mean"}).attr_ints("axes", {0});
  graph.node("ReduceSum", {"mean", "axes023"}, {"sum.rows"}).attr_int("keepdims", 0);
  graph.node("Reshape", {"sum.rows", "cube"}, {"sum"});
  graph.node("Cast", {"position_ids"}, {"p.f"}).attr_int("to", 1);
  graph.node("Unsqueeze", {"p.f", "axes2"}, {"p.cube"});
  graph.node("Mul", {"p.cube", "tenths3"}, {"p.scaled"});
  graph.node("Sin", {"p.scaled"}, {"p.wave"});
  graph.node("Mul", {"p.wave", "tilt02"}, {"p.term"});
  add_mask_term(&graph, "attention_mask");
  graph.node("Add", {"p.term", "m.term"}, {"extra"});
  add_head(&graph, "input_ids", "sum", "extra");
  graph.output("logits", f32_type({"batch", "length", kWords}));
  graph.output("present_0", f32_type({2, "batch", 1, "total", 1}));
  return graph;
}

GraphWriter GenerationModel::t5_encoder(bool whole) const {
  GraphWriter graph("encoder");
  graph.input("encoder_input_ids", i32_type({"batch", "source"}));
  graph.input("encoder_attention_mask", i32_type({"batch", "source"}));
  graph.node("Mul", {"encoder_input_ids", "encoder_attention_mask"}, {"seen"});
  add_values(&graph, "seen", "present_key_cross_0");
  graph.node("Neg", {"present_key_cross_0"}, {"present_value_cross_0"});
  if (whole) {
    graph.input("decoder_input_ids", i32_type({"batch", 1}));
    add_values(&graph, "decoder_input_ids", "present_key_self_0");
    graph.node("Neg", {"present_key_self_0"}, {"present_value_self_0"});
    graph.node("ReduceSum", {"present_key_self_0", "axes12"}, {"sum"}).attr_int("keepdims", 0);
    graph.node("Unsqueeze", {"sum", "axes1"}, {"sum.cube"});
    add_mask_term(&graph, "seen");
    add_head(&graph, "decoder_input_ids", "sum.cube", "m.term");
    graph.node("Unsqueeze", {"m.f", "axes2"}, {"encoder_hidden_states"});
    graph.output("logits", f32_type({"batch", 1, kWords}));
    graph.output("encoder_hidden_states", f32_type({"batch", "source", 1}));
    graph.output("present_key_self_0", f32_type({"batch", 1, 1, 1}));
    graph.output("present_value_self_0", f32_type({"batch", 1, 1, 1}));
  }
  graph.output("present_key_cross_0", f32_type({"batch", 1, "source", 1}));
  graph.output("present_value_cross_0", f32_type({"batch", 1, "source", 1}));
  return graph;
}

GraphWriter GenerationModel::t5_decoder(bool copies) const {
  GraphWriter graph("decoder");
  graph.input("input_ids", i32_type({"batch", 1}));
  if (copies) graph.input("encoder_input_ids", i32_type({"batch", "source"}));
  graph.input("encoder_attention_mask", i32_type({"batch", "source"}));
  add_pasts(&graph, kF32);
  add_values(&graph, "input_ids", "new");
  graph.node("Neg", {"new"}, {"new.negative"});
  graph.node("Concat", {"past_key_self_0", "new"}, {"present_key_self_0"}).attr_int("axis", 2);
  graph.node("Concat", {"past_value_self_0", "new.negative"}, {"present_value_self_0"})
      .attr_int("axis", 2);
  // (keys - values) / 2: what either of them loses shows.
  graph.initializer(f32_tensor("half", {}, {0.5f}));
  for (const std::string kind : {"self", "cross"}) {
    const std::string from = kind == "self" ? "present" : "past";
    graph.node("Sub", {from + "_key_" + kind + "_0", from + "_value_" + kind + "_0"},
               {kind + ".twice"});
    graph.node("Mul", {kind + ".twice", "half"}, {kind + ".all"});
    graph.node("ReduceSum", {kind + ".all", "axes12"}, {kind + ".sum"}).attr_int("keepdims", 0);
    graph.node("Unsqueeze", {kind + ".sum", "axes1"}, {kind + ".cube"});
  }
  if (copies) {
    graph.node("Mul", {"encoder_input_ids", "encoder_attention_mask"}, {"seen"});
    add_values(&graph, "seen", "text");
    graph.node("ReduceSum", {"text", "axes12"}, {"text.sum"}).attr_int("keepdims", 0);
    graph.node("Unsqueeze", {"text.sum", "axes1"}, {"text.cube"});
  }
  graph.node("Mul", {copies ? "text.cube" : "cross.cube", "tilt02"}, {"m.term"});
  add_head(&graph, "input_ids", "self.cube", "m.term");
  graph.output("logits", f32_type({"batch", 1, kWords}));
  graph.output("present_key_self_0", f32_type({"batch", 1, "total", 1}));
  graph.output("present_value_self_0", f32_type({"batch", 1, "total", 1}));
  return graph;
}

GraphWriter GenerationModel::whisper_encoder(const WhisperForm& form) const {
  GraphWriter graph("encoder");
  const auto type = [&](const std::vector<model_writer::Dim>& dims) {
    return Type::tensor(form.half ? kF16 : kF32, dims);
  };
  const int64_t to = form.half ? 10 : 1;
  graph.input("encoder_input_ids", type({"batch", 1, "frames"}));
  graph.input("decoder_input_ids", i32_type({"batch", "length"}));
  graph.node("Transpose", {"encoder_input_ids"}, {"encoder_hidden_states"})
      .attr_ints("perm", {0, 2, 1});
  graph.node("Unsqueeze", {"encoder_hidden_states", "axes1"}, {"present_key_cross_0"});
  graph.node("Neg", {"present_key_cross_0"}, {"present_value_cross_0"});
  add_values(&graph, "decoder_input_ids", "new");
  graph.node("Cast", {"new"}, {"present_key_self_0"}).attr_int("to", to);
  graph.node("Neg", {"present_key_self_0"}, {"present_value_self_0"});
  graph.node("ReduceSum", {"new", "axes12"}, {"sum"}).attr_int("keepdims", 0);
  graph.node("Unsqueeze", {"sum", "axes1"}, {"sum.cube"});
  graph.node("Cast", {"encoder_input_ids"}, {"audio"}).attr_int("to", 1);
  graph.node("ReduceSum", {"audio", "axes12"}, {"audio.cube"});
  graph.node("Mul", {"audio.cube", "tilt02"}, {"m.term"});
  add_head(&graph, "decoder_input_ids", "sum.cube", "m.term");
  graph.output("logits", f32_type({"batch", "length", kWords}));
  graph.output("encoder_hidden_states", type({"batch", "frames", 1}));
  for (const char* name : {"present_key_self_0", "present_value_self_0"}) {
    graph.output(name, type({"batch", 1, "length", 1}));
  }
  for (const char* name : {"present_key_cross_0", "present_value_cross_0"}) {
    graph.output(name, type({"batch", 1, "frames", 1}));
  }
  return graph;
}

GraphWriter GenerationModel::whisper_decoder(const WhisperForm& form) const {
  GraphWriter graph("decoder");
  const auto type = [&](const std::vector<model_writer::Dim>& dims) {
    return Type::tensor(form.half ? kF16 : kF32, dims);
  };
  const model_writer::Dim one = 1;
  graph.input("input_ids", i32_type({"batch", form.whole ? model_writer::Dim("length") : one}));
  if (form.hidden) graph.input("encoder_hidden_states", type({"batch", "frames", 1}));
  add_pasts(&graph, form.half ? kF16 : kF32);
  graph.initializer(i64_tensor("last", {1}, {-1}));
  graph.initializer(i64_tensor("behind", {1}, {1 << 30}));
  graph.node("Slice", {"input_ids", "last", "behind", "axes1"}, {"last.id"});
  add_values(&graph, "last.id", "new.float");
  graph.node("Cast", {"new.float"}, {"new.key"}).attr_int("to", form.half ? 10 : 1);
  graph.node("Neg", {"new.key"}, {"new.value"});
  if (form.fixed) add_fill(&graph, "new.key", 2);
  for (const std::string kind : {"key", "value"}) {
    const std::string past = "past_" + kind + "_self_0";
    const std::string present = "present_" + kind + "_self_0";
    if (form.fixed) {
      add_to_fixed_cache(&graph, past, "new." + kind, present, "self." + kind, 2);
    } else {
      graph.node("Concat", {past, "new." + kind}, {present}).attr_int("axis", 2);
      graph.node("Identity", {present}, {"self." + kind});
    }
    graph.node("Identity", {"past_" + kind + "_cross_0"}, {"cross." + kind});
  }
  // (keys - values) / 2: what either of them loses shows.
  graph.initializer(f32_tensor("half", {}, {0.5f}));
  for (const std::string kind : {"self", "cross"}) {
    graph.node("Sub", {kind + ".key", kind + ".value"}, {kind + ".difference"});
    graph.node("Cast", {kind + ".difference"}, {kind + ".twice"}).attr_int("to", 1);
    graph.node("Mul", {kind + ".twice", "half"}, {kind + ".all"});
    graph.node("ReduceSum", {kind + ".all", "axes12"}, {kind + ".sum"}).attr_int("keepdims", 0);
    graph.node("Unsqueeze", {kind + ".sum", "axes1"}, {kind + ".cube"});
  }
  if (form.hidden) {
    graph.node("Cast", {"encoder_hidden_states"}, {"audio"}).attr_int("to", 1);
    graph.node("ReduceSum", {"audio", "axes12"}, {"audio.cube"});
  }
  graph.node("Mul", {form.hidden ? "audio.cube" : "cross.cube", "tilt02"}, {"m.term"});
  add_head(&graph, "last.id", "self.cube", "m.term");
  graph.output("logits", f32_type({"batch", 1, kWords}));
  graph.output("present_key_self_0", type({"batch", 1, "total", 1}));
  graph.output("present_value_self_0", type({"batch", 1, "total", 1}));
  return graph;
}

std::vector<double> GenerationModel::logits(const std::vector<int32_t>& tokens, int64_t position,
                                            int64_t mask) const {
  const double sum = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  std::vector<double> out;
  for (size_t i = 0; i < kWords; ++i) {
    const double row = table[static_cast<size_t>(tokens.back()) * kWords + i];
    out.push_back(row + std::sin(sum * frequency[i]) +
                  0.2 * tilt[i] *
                      (std::sin(0.3 * static_cast<double>(position)) + static_cast<double>(mask)));
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<GenerationInput>& inputs) {
  std::vector<std::string> names;
  for (const GenerationInput& input : inputs) names.push_back(input.name);
  return names;
}

model_writer::ModelWriter write_generation(model_writer::NodeWriter node,
                                           const GenerationModel& model,
                                           const std::vector<GenerationInput>& inputs,
                                           const std::vector<std::string>& outputs) {
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  for (const GenerationInput& input : inputs) {
    if (input.name.empty()) continue;
    const DType dtype = input.value.tensor().dtype();
    const ElementType type = dtype == DType::kFloat ? kF32 : dtype == DType::kFloat16 ? kF16 : kI32;
    std::vector<model_writer::Dim> dims(static_cast<size_t>(input.value.tensor().rank()));
    graph.input(input.name, Type::tensor(type, dims));
  }
  model.add_weights(&graph);
  graph.node("", {}, {}) = std::move(node);
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    graph.output(output, Type::tensor(output == "sequences" ? kI32 : kF32, {}));
  }
  return writer;
}

std::vector<NamedValue> values_of(const std::vector<GenerationInput>& inputs) {
  std::vector<NamedValue> values;
  for (const GenerationInput& input : inputs) {
    if (!input.name.empty()) values.push_back({input.name, input.value});
  }
  return values;
}

Result<std::vector<Value>> run_generation(model_writer::NodeWriter node,
                                          const GenerationModel& model,
                                          const std::vector<GenerationInput>& inputs,
                                          const std::vector<std::string>& outputs) {
  FOLIO_TRY(const Ref<Session> session,
            open_session(write_generation(std::move(node), model, inputs, outputs)));
  return run_all(*session, values_of(inputs));
}

Value int32_value(const Shape& shape, const std::vector<int32_t>& values) {
  return Value(make_tensor<int32_t>(shape, values));
}
Value float_value(float value) { return Value(make_tensor<float>({1}, {value})); }
Value features_value(int64_t batch, const std::vector<float>& values, bool half) {
  const Shape shape = {batch, 1, static_cast<int64_t>(values.size()) / batch};
  return Value(make_float_tensor(half ? DType::kFloat16 : DType::kFloat, shape,
                                 std::vector<double>(values.begin(), values.end())));
}
std::vector<int32_t> int32s_of(const Value& value) {
  const Tensor& tensor = value.tensor();
  return std::vector<int32_t>(tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.count());
}

}  // namespace folio
