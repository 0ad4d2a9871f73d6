// Operators over integers, doubles and halves, which no float kernel serves, and what only moves
// them.
#include "tools/op_bench/cases.h"

namespace op_bench {

namespace {

struct Type {
  const char* name;
  ElementType type;
  bool is_signed, is_float, is_byte;
};
constexpr Type kTypes[] = {
    {"f64", kF64, true, true, false},  {"i64", kI64, true, false, false},
    {"s32", kS32, true, false, false}, {"s8", kS8, true, false, true},
    {"u8", kU8, false, false, true},   {"f16", kF16, true, true, false},
};
const Dims kMatrix = {128, 768};
const Dims kImage = {1, 64, 56, 56};

void of_one(const Type& t, Cases* cases) {
  const auto add = [&](const char* op) {
    cases->add(t.name, op, "", [=](OneNode& node) {
      node.x(t.type, kMatrix, t.is_signed ? -9 : 0, 9).y(t.type, kMatrix);
    });
  };
  if (t.is_signed) {
    for (const char* op : {"Abs", "Neg", "Relu", "Sign"}) add(op);
  }
  if (t.is_float) {
    for (const char* op : {"Floor", "Exp", "Tanh", "Sigmoid"}) add(op);
    cases->add(t.name, "IsNaN", "",
               [=](OneNode& node) { node.x(t.type, kMatrix).y(kBool, kMatrix); });
  }
}

void of_two(const Type& t, Cases* cases) {
  const auto add = [&](const char* op, const char* shape, const Dims& a, const Dims& b,
                       const Dims& y, ElementType result) {
    cases->add(std::string(t.name) + shape, op, "",
               [=](OneNode& node) { node.x(t.type, a, 1, 9).x(t.type, b, 1, 9).y(result, y); });
  };
  for (const char* op : {"Add", "Mul", "Max", "Div"}) {
    if (t.is_byte && op == std::string("Div")) continue;
    add(op, "", kMatrix, kMatrix, kMatrix, t.type);
    add(op, "_row", kMatrix, {768}, kMatrix, t.type);
    add(op, "_first_one", {1}, kMatrix, kMatrix, t.type);
    add(op, "_channels", kImage, {1, 64, 1, 1}, kImage, t.type);
  }
  add("Equal", "", kMatrix, kMatrix, kMatrix, kBool);
  add("Less", "", kMatrix, kMatrix, kMatrix, kBool);
  cases->add(t.name, "Clip", "", [=](OneNode& node) {
    node.x(t.type, kMatrix, 0, 9).x(t.type, {}, 2, 2).x(t.type, {}, 6, 6).y(t.type, kMatrix);
  });
  if (t.is_byte) return;
  cases->add(std::string(t.name) + "_square", "Pow", "", [=](OneNode& node) {
    node.x(t.type, kMatrix, 1, 9).x(t.type, {}, 2, 2).y(t.type, kMatrix);
  });
}

void products(Cases* cases) {
  const Dims a = {128, 256};
  const Dims b = {256, 256};
  for (const Type& t : kTypes) {
    if (t.is_byte || t.type == kF16) continue;
    cases->add(std::string(t.name) + "_128x256x256", "MatMul", "", [=](OneNode& node) {
      node.x(t.type, a, -9, 9).x(t.type, b, -9, 9).y(t.type, {128, 256});
    });
    cases->add(std::string(t.name) + "_1x256x256", "MatMul", "", [=](OneNode& node) {
      node.x(t.type, {1, 256}, -9, 9).x(t.type, b, -9, 9).y(t.type, {1, 256});
    });
    cases->add(std::string(t.name) + "_mm", "Einsum", "", [=](OneNode& node) {
      node.x(t.type, {64, 128}, -9, 9).x(t.type, {128, 64}, -9, 9).y(t.type, {64, 64});
      node.attr("equation", "ij,jk->ik");
    });
  }
  for (const char* equation : {"ij->i", "ij->j"}) {
    cases->add(std::string("f32_") + equation, "Einsum", "", [=](OneNode& node) {
      node.x(kF32, {512, 512}).y(kF32, {512}).attr("equation", equation);
    });
  }
  cases->add("f32_i,j->ij", "Einsum", "", [](OneNode& node) {
    node.x(kF32, {512}).x(kF32, {64}).y(kF32, {512, 64}).attr("equation", "i,j->ij");
  });
  for (const int64_t k : {256, 768, 4096}) {
    cases->add("f32_1x" + text_of({k, k}) + "_no_constant", "MatMul", "", [=](OneNode& node) {
      node.x(kF32, {1, k}).x(kF32, {k, k}).y(kF32, {1, k});
    });
  }
}

void moves(const Type& t, Cases* cases) {
  const double low = t.is_signed ? -9 : 0;
  cases->add(std::string(t.name) + "_nhwc", "Transpose", "", [=](OneNode& node) {
    node.x(t.type, kImage, low, 9).y(t.type, {1, 56, 56, 64}).attr("perm", Dims{0, 2, 3, 1});
  });
  for (const int64_t c : {3, 4}) {  // images
    const std::string image = std::string(t.name) + "_224x224x" + std::to_string(c);
    cases->add(image + "_chw", "Transpose", "", [=](OneNode& node) {
      node.x(t.type, {1, 224, 224, c}, low, 9).y(t.type, {1, c, 224, 224});
      node.attr("perm", Dims{0, 3, 1, 2});
    });
    cases->add(image + "_hwc", "Transpose", "", [=](OneNode& node) {
      node.x(t.type, {1, c, 224, 224}, low, 9).y(t.type, {1, 224, 224, c});
      node.attr("perm", Dims{0, 2, 3, 1});
    });
  }
  cases->add(std::string(t.name) + "_2x2", "Tile", "", [=](OneNode& node) {
    node.x(t.type, {1, 64, 28, 28}, low, 9).w_ints({4}, {1, 1, 2, 2}).y(t.type, kImage);
  });
  if (t.is_byte || t.type == kF16) return;
  for (const int64_t axis : {0, 1}) {
    cases->add(std::string(t.name) + "_axis" + std::to_string(axis), "CumSum", "",
               [=](OneNode& node) {
                 node.x(t.type, kMatrix, low, 9).w_ints({}, {axis}).y(t.type, kMatrix);
               });
  }
}

void images(Cases* cases) {
  for (const ElementType type : {kU8, kS8}) {
    const std::string name = type == kU8 ? "u8" : "s8";
    for (const int64_t size : {128, 224, 512}) {
      cases->add(name + "_256_to_" + std::to_string(size), "Resize", "", [=](OneNode& node) {
        node.x_bytes(type, {1, 3, 256, 256}).none().none().w_ints({4}, {1, 3, size, size});
        node.y(type, {1, 3, size, size}).attr("mode", "linear");
      });
    }
  }
  for (const ElementType type : {kU8, kF32}) {  // channels last
    for (const char* mode : {"nearest", "linear"}) {
      const std::string name =
          std::string(type == kU8 ? "u8" : "f32") + "_480x640x3_to_224_" + mode;
      cases->add(name, "Resize", "", [=](OneNode& node) {
        node.x(type, {1, 480, 640, 3}, 0, 1).none().none().w_ints({4}, {1, 224, 224, 3});
        node.y(type, {1, 224, 224, 3}).attr("mode", mode);
      });
    }
  }
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    cases->add(std::string("f32_") + mode, "GridSample", "", [=](OneNode& node) {
      node.x(kF32, kImage).x(kF32, {1, 56, 56, 2}).y(kF32, kImage).attr("mode", mode);
    });
  }
  cases->add("f32_k3", "Col2Im", "", [](OneNode& node) {
    node.x(kF32, {1, 576, 3136}).w_ints({2}, {56, 56}).w_ints({2}, {3, 3}).y(kF32, kImage);
    node.attr("pads", Dims{1, 1, 1, 1});
  });
}

}  // namespace

std::vector<NamedCase> types() {
  Cases cases("types");
  for (const Type& t : kTypes) {
    of_one(t, &cases);
    of_two(t, &cases);
    moves(t, &cases);
  }
  products(&cases);
  images(&cases);
  return cases.take();
}

}  // namespace op_bench
