#include "tests/properties/random_graph.h"

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

void draw_inputs(GraphKind kind, bool of_tokens, GraphDraw& g) {
  if (of_tokens) {
    constexpr int64_t kWidths[] = {8, 16, 32, 12};
    g.input({g.between(1, 3), g.between(1, 20), g.draw().of(kWidths)});
    return;
  }
  constexpr int64_t kChannels[] = {1, 3, 3, 8, 16, 32};
  const int64_t side = g.between(3, 28);
  const int64_t other = g.draw().one_in(3) ? g.between(1, 30) : side;
  const Held x = g.input({g.between(1, 2), g.draw().of(kChannels), side, other});
  if (kind == GraphKind::kBytes) g.hold_coded(x.name, x.dims);
}

bool is_decoder(GraphKind kind) {
  return kind == GraphKind::kDecoders || kind == GraphKind::kDecoderHalves;
}

void draw_step(Span<const Step> steps, GraphDraw& g) {
  steps[static_cast<size_t>(g.draw().below(static_cast<int64_t>(steps.size())))](g);
}

RandomGraph random_decoder(GraphDraw& g) {
  constexpr int64_t kWidths[] = {16, 32, 32, 64};
  g.input({g.between(1, 3), g.between(1, 16), g.draw().of(kWidths)}, GraphDraw::Symbols::kMost);
  const Span<const Step> rooms[] = {
      decoder_steps(), decoder_steps(), attention_steps(), attention_steps(), shape_steps(),
      shape_steps(),   shape_steps(),   body_steps(),      token_steps(),     move_steps()};
  for (int64_t left = g.between(2, 12); left > 0; --left) draw_step(g.draw().of(rooms), g);
  return g.take();
}

}  // namespace

RandomGraph random_graph(GraphKind kind, uint64_t seed) {
  if (is_decoder(kind)) {
    GraphDraw g(seed, kind == GraphKind::kDecoderHalves, /*newest=*/24);
    return random_decoder(g);
  }
  GraphDraw g(seed, kind == GraphKind::kHalves);
  const bool of_tokens =
      kind == GraphKind::kTokens || (kind == GraphKind::kHalves && g.draw().one_in(2));
  draw_inputs(kind, of_tokens, g);
  const auto own = kind == GraphKind::kBytes ? byte_steps()
                   : of_tokens               ? token_steps()
                                             : image_steps();
  const auto other = of_tokens ? image_steps() : token_steps();
  for (int64_t left = g.between(3, 14); left > 0; --left) {
    const int64_t where = g.draw().below(12);
    draw_step(where < 8 ? own : where < 11 ? move_steps() : other, g);
  }
  return g.take();
}

}  // namespace folio::properties
