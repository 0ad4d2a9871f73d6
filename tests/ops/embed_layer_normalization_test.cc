#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

void add_inputs(OpTester& t, int32_t second_id) {
  t.attr("epsilon", 0.0f);
  t.input<int32_t>({1, 2}, {1, second_id});
  t.input<int32_t>({1, 2}, {0, 1});
  t.input<float>({2, 2}, {1, 3, 2, 6});
  t.input<float>({3, 2}, {0, 0, 1, 1, 9, 9});
  t.input<float>({2, 2}, {0, 0, 0, 2});
  t.input<float>({2}, {1, 1});
  t.input<float>({2}, {0, 10});
}

TEST(EmbedLayerNormalization, SumsEmbeddingsAndCountsTheMask) {
  OpTester t("EmbedLayerNormalization", 1, "com.microsoft");
  add_inputs(t, 0);
  t.input<int32_t>({1, 2}, {1, 0});
  t.expect<float>(0, {1, 2, 2}, {-1, 11, -1, 11}, 1e-5);
  t.expect<int32_t>(1, {1}, {1});
  t.expect<float>(2, {1, 2, 2}, {2, 6, 2, 6});
  t.run();
}

TEST(EmbedLayerNormalization, PositionsMayBeGiven) {
  OpTester t("EmbedLayerNormalization", 1, "com.microsoft");
  add_inputs(t, 0);
  t.input_absent();
  t.input<int32_t>({1, 2}, {2, 0});
  t.outputs(3);
  t.expect<int32_t>(1, {1}, {0});
  t.expect<float>(2, {1, 2, 2}, {11, 15, 1, 5});
  t.run();
}

TEST(EmbedLayerNormalization, IdsOutsideTheirTableAreRefused) {
  for (const int32_t id : {2, -1, INT32_MAX}) {
    OpTester t("EmbedLayerNormalization", 1, "com.microsoft");
    add_inputs(t, id);
    t.outputs(1).fails("outside a table");
  }
}

TEST(QEmbedLayerNormalization, WidensItsTables) {
  OpTester t("QEmbedLayerNormalization", 1, "com.microsoft");
  t.attr("epsilon", 0.0f);
  t.input<int32_t>({1, 1}, {1});
  t.input_absent();
  t.input<uint8_t>({2, 2}, {0, 0, 5, 13});  // less 1, halved: 2, 6
  t.input<uint8_t>({1, 2}, {1, 1});
  t.input_absent();
  t.input<uint8_t>({2}, {2, 2});
  t.input<uint8_t>({2}, {3, 4});
  t.input_absent();
  t.input<float>({}, {0.5f});
  t.input<float>({}, {1});
  t.input_absent();
  t.input<float>({}, {1});
  t.input<float>({}, {10});
  for (const uint8_t zero : {1, 1}) t.input<uint8_t>({}, {zero});
  t.input_absent();
  for (const uint8_t zero : {0, 3}) t.input<uint8_t>({}, {zero});
  t.outputs(2);
  t.expect<float>(0, {1, 1, 2}, {-2, 12}, 1e-5);
  t.run();
}

}  // namespace
}  // namespace folio
