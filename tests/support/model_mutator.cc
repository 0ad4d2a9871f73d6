#include "tests/support/model_mutator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "core/base/dtype.h"
#include "core/formats/onnx/onnx_fields.h"
#include "tests/support/wire_tree.h"

namespace folio::testing {
namespace {

using protozero::pbf_wire_type;

constexpr int64_t kNumbers[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                -3,
                                4,
                                5,
                                7,
                                8,
                                16,
                                63,
                                64,
                                127,
                                128,
                                255,
                                256,
                                1000,
                                INT32_MAX,
                                INT32_MIN,
                                int64_t{1} << 31,
                                int64_t{1} << 32,
                                int64_t{1} << 62,
                                INT64_MAX,
                                INT64_MIN};
constexpr float kReals[] = {0.0f,  -0.0f, 1.0f,    -1.0f,    0.5f,      2.0f,
                            1e-6f, 3e38f, -1e-40f, INFINITY, -INFINITY, NAN};
constexpr float kTameReals[] = {0.0f, 1.0f, -1.0f, 0.5f, 2.0f, -0.25f, 3.0f, 1e-3f};
constexpr int64_t kDims[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 127, 130};
constexpr int64_t kMostElements = 1 << 16;

struct Place {
  Fields* list;
  size_t index;
  MessageKind kind;  // of the message that the list is
  Field& field() const { return (*list)[index]; }
};

// The fields of a model, each with its place, grouped by what they are: a tensor of many numbers
// is not drawn more often than an attribute.
class Places {
 public:
  using Key = std::pair<MessageKind, uint32_t>;

  explicit Places(Fields* model) { add(model, MessageKind::kModel); }

  const std::vector<Place>& of(MessageKind kind, uint32_t tag) { return groups_[{kind, tag}]; }
  std::vector<const std::vector<Place>*> groups() const {
    std::vector<const std::vector<Place>*> list;
    for (const auto& [key, group] : groups_) list.push_back(&group);
    return list;
  }

 private:
  void add(Fields* list, MessageKind kind) {
    for (size_t i = 0; i < list->size(); ++i) {
      Field& field = (*list)[i];
      groups_[{kind, field.tag}].push_back({list, i, kind});
      if (field.inside != MessageKind::kNone) add(&field.fields, field.inside);
    }
  }

  std::map<Key, std::vector<Place>> groups_;
};

// The first of this tag, or null.
template <typename List>
auto* find(List& fields, uint32_t tag) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [tag](const Field& field) { return field.tag == tag; });
  return found == fields.end() ? nullptr : &*found;
}

Field number(uint32_t tag, int64_t value) {
  return number_field(tag, pbf_wire_type::varint, static_cast<uint64_t>(value));
}

Field text(uint32_t tag, std::string value) {
  Field field;
  field.tag = tag;
  field.wire = pbf_wire_type::length_delimited;
  field.bytes = std::move(value);
  return field;
}

Field message(uint32_t tag, MessageKind inside, Fields fields) {
  Field field = text(tag, "");
  field.inside = inside;
  field.fields = std::move(fields);
  return field;
}

// Bits of one element; 0 for what has no bytes in a file.
int64_t bits_of(int64_t data_type) {
  if (!dtype_known(data_type) || data_type == static_cast<int64_t>(DType::kString)) return 0;
  return dtype_bits(static_cast<DType>(data_type));
}

// Repeats or cuts the bytes of a tensor so that they are those of its dims again.
void fit_payload(Fields* tensor) {
  int64_t elements = 1;
  for (const Field& field : *tensor) {
    if (field.tag != TensorFields::kDims) continue;
    const int64_t dim = static_cast<int64_t>(field.number);
    if (dim < 0 || dim > kMostElements || elements > kMostElements) return;
    elements *= dim;
  }
  const Field* type = find(*tensor, TensorFields::kDataType);
  const int64_t bits = type == nullptr ? 0 : bits_of(static_cast<int64_t>(type->number));
  if (elements > kMostElements || bits == 0) return;
  for (const uint32_t tag :
       {TensorFields::kRawData, TensorFields::kFloatData, TensorFields::kDoubleData}) {
    Field* payload = find(*tensor, tag);
    if (payload == nullptr || payload->wire != pbf_wire_type::length_delimited) continue;
    const std::string old = payload->bytes.empty() ? std::string(16, '\0') : payload->bytes;
    std::string bytes(static_cast<size_t>((elements * bits + 7) / 8), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = old[i % old.size()];
    payload->bytes = std::move(bytes);
  }
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  template <typename List>
  auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 random_;
};

class Mutator : private Draw {
 public:
  Mutator(Fields* model, uint64_t seed, ChangeBytes change_bytes)
      : Draw(seed), model_(model), change_bytes_(change_bytes) {}

  void change() {
    switch (below(8)) {
      case 0:
        return change_everywhere({MessageKind::kDim, DimFields::kDimValue},
                                 {MessageKind::kTensor, TensorFields::kDims},
                                 static_cast<uint64_t>(of(kDims)));
      case 1:
        return make_an_input_constant();
      case 2:
        return change_everywhere({MessageKind::kTensorType, TensorTypeFields::kElemType},
                                 {MessageKind::kTensor, TensorFields::kDataType},
                                 below(kDTypeCount));
      case 3:
        return wire_a_node_anew();
      default:
        return change_a_field();
    }
  }

  // Puts a part of `other` where this model has such a part.
  void cross_with(Fields* other) {
    Places mine(model_);
    Places theirs(other);
    const auto groups = theirs.groups();
    if (groups.empty()) return;
    const Place& source = of(*of(groups));
    const std::vector<Place>& targets = mine.of(source.kind, source.field().tag);
    if (targets.empty()) return;
    const Place& target = of(targets);
    if (below(2) == 0) {
      target.field() = source.field();
    } else {
      target.list->insert(target.list->begin() + static_cast<ptrdiff_t>(target.index),
                          source.field());
    }
  }

 private:
  // Names and the model's frame seldom: hardly such a change loads.
  static bool is_frame(const Place& place) {
    switch (place.kind) {
      case MessageKind::kModel:
      case MessageKind::kOpset:
      case MessageKind::kGraph:
      case MessageKind::kFunction:
      case MessageKind::kValueInfo:
        return true;
      case MessageKind::kNode:
        return place.field().tag != NodeFields::kAttribute;
      case MessageKind::kTensor:
        return place.field().tag == TensorFields::kName;
      case MessageKind::kAttribute:
        return place.field().tag == AttributeFields::kName;
      default:
        return false;
    }
  }

  void change_a_field() {
    Places places(model_);
    const auto groups = places.groups();
    if (groups.empty()) return;
    const std::vector<Place>* drawn = of(groups);
    for (int i = 0; i < 4 && is_frame(drawn->front()); ++i) drawn = of(groups);
    const std::vector<Place>& group = *drawn;
    const Place& place = of(group);
    const size_t way = below(8);
    if (way == 0) {
      place.list->erase(place.list->begin() + static_cast<ptrdiff_t>(place.index));
    } else if (way == 1) {
      Field copy = of(group).field();
      place.list->insert(place.list->begin() + static_cast<ptrdiff_t>(place.index),
                         std::move(copy));
    } else if (way == 2 || place.field().inside != MessageKind::kNone) {
      Field copy = of(group).field();
      place.field() = std::move(copy);
    } else {
      change_value(place);
    }
    refit_tensors();
  }

  void change_value(const Place& place) {
    Field& field = place.field();
    const bool is_type =
        (place.kind == MessageKind::kTensor && field.tag == TensorFields::kDataType) ||
        (place.kind == MessageKind::kTensorType && field.tag == TensorTypeFields::kElemType);
    if (is_type) {
      field.number = below(kDTypeCount);
    } else if (field.wire == pbf_wire_type::varint) {
      field.number =
          below(2) == 0 ? static_cast<uint64_t>(of(kNumbers)) : field.number + below(7) - 3;
    } else if (field.wire == pbf_wire_type::fixed32) {
      uint32_t bits = 0;
      std::memcpy(&bits, &real(), sizeof bits);
      field.number = bits;
    } else if (field.wire == pbf_wire_type::length_delimited && change_bytes_) {
      std::string bytes = field.bytes;
      const size_t size = bytes.size();
      bytes.resize(size + 16);
      bytes.resize(change_bytes_(reinterpret_cast<uint8_t*>(bytes.data()), size, size + 16));
      field.bytes = std::move(bytes);
    }
  }

  // Dims of tensors follow; a tensor without them keeps its bytes.
  void refit_tensors() {
    if (below(8) == 0) return;
    Places places(model_);
    for (const Place& place : places.of(MessageKind::kGraph, GraphFields::kInitializer))
      fit_payload(&place.field().fields);
    for (const Place& place : places.of(MessageKind::kAttribute, AttributeFields::kT))
      fit_payload(&place.field().fields);
  }

  // A number that fields of these two kinds hold becomes another wherever it stands.
  void change_everywhere(Places::Key one, Places::Key other, uint64_t to) {
    Places places(model_);
    std::vector<Place> all = places.of(one.first, one.second);
    const auto& others = places.of(other.first, other.second);
    all.insert(all.end(), others.begin(), others.end());
    if (all.empty()) return;
    const uint64_t old = of(all).field().number;
    for (const Place& place : all) {
      if (place.field().number == old) place.field().number = to;
    }
    refit_tensors();
  }

  // Numbers of constants decide what shapes are and which path an operator takes.
  void make_an_input_constant() {
    Places places(model_);
    const auto& inputs = places.of(MessageKind::kGraph, GraphFields::kInput);
    if (inputs.empty()) return;
    const Place& input = of(inputs);
    const Field* name = find(input.field().fields, ValueInfoFields::kName);
    const Field* type = find(input.field().fields, ValueInfoFields::kType);
    const Field* tensor = type == nullptr ? nullptr : find(type->fields, TypeFields::kTensor);
    const Field* elem =
        tensor == nullptr ? nullptr : find(tensor->fields, TensorTypeFields::kElemType);
    if (name == nullptr || elem == nullptr) return;
    Fields fields{text(TensorFields::kName, name->bytes),
                  number(TensorFields::kDataType, static_cast<int64_t>(elem->number))};
    if (const Field* shape = find(tensor->fields, TensorTypeFields::kShape)) {
      for (const Field& dim : shape->fields) {
        const Field* value = find(dim.fields, DimFields::kDimValue);
        fields.push_back(number(TensorFields::kDims,
                                value == nullptr ? 2 : static_cast<int64_t>(value->number)));
      }
    }
    fields.push_back(text(TensorFields::kRawData, element_bytes(elem->number)));
    fit_payload(&fields);
    Field initializer = message(GraphFields::kInitializer, MessageKind::kTensor, std::move(fields));
    Fields* graph = input.list;
    if (below(2) == 0) graph->erase(graph->begin() + static_cast<ptrdiff_t>(input.index));
    graph->push_back(std::move(initializer));
  }

  // Some elements of a type, to be repeated: small integers, or floats of every kind.
  std::string element_bytes(uint64_t data_type) {
    const auto bytes =
        static_cast<size_t>(std::max<int64_t>(bits_of(static_cast<int64_t>(data_type)) / 8, 1));
    std::string all;
    for (size_t i = 0; i < 1 + below(9); ++i) {
      std::string element(bytes, '\0');
      if (data_type == static_cast<uint64_t>(DType::kFloat)) {
        std::memcpy(element.data(), &real(), sizeof(float));
      } else if (data_type == static_cast<uint64_t>(DType::kBool)) {
        element[0] = static_cast<char>(below(2));
      } else {
        const int64_t value = of(kNumbers);
        std::memcpy(element.data(), &value, std::min(bytes, sizeof value));
      }
      all += element;
    }
    return all;
  }

  // An input of a node becomes absent, or another value of the model.
  void wire_a_node_anew() {
    Places places(model_);
    const auto& inputs = places.of(MessageKind::kNode, NodeFields::kInput);
    if (inputs.empty()) return;
    std::string name;
    if (below(3) > 0) {
      const Places::Key sources[] = {{MessageKind::kNode, NodeFields::kInput},
                                     {MessageKind::kNode, NodeFields::kOutput},
                                     {MessageKind::kValueInfo, ValueInfoFields::kName},
                                     {MessageKind::kTensor, TensorFields::kName}};
      const auto& [kind, tag] = of(sources);
      const auto& named = places.of(kind, tag);
      if (!named.empty()) name = of(named).field().bytes;
    }
    of(inputs).field().bytes = std::move(name);
  }

  const float& real() { return change_bytes_ ? of(kReals) : of(kTameReals); }

  Fields* model_;
  ChangeBytes change_bytes_;  // null: tame
};

}  // namespace

std::string change_model(std::string_view model, uint64_t seed, ChangeBytes change_bytes) {
  Fields fields = read_fields(model, MessageKind::kModel);
  Mutator mutator(&fields, seed, change_bytes);
  for (uint64_t i = 0; i <= seed % 3; ++i) mutator.change();
  return write_fields(fields);
}

std::string change_model_tamely(std::string_view model, uint64_t seed) {
  return change_model(model, seed, nullptr);
}

std::string cross_models(std::string_view model, std::string_view other, uint64_t seed) {
  Fields fields = read_fields(model, MessageKind::kModel);
  Fields source = read_fields(other, MessageKind::kModel);
  Mutator(&fields, seed, nullptr).cross_with(&source);
  return write_fields(fields);
}

}  // namespace folio::testing
