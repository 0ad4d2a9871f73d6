// Values of folio.hpp: tensors, sequences, maps and optionals, and how models declare them.
//
// Include folio.hpp, whose first comment holds for this file too.
#ifndef FOLIO_FOLIO_VALUE_HPP_
#define FOLIO_FOLIO_VALUE_HPP_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "folio/folio_base.hpp"

namespace folio {

namespace internal {

template <typename T>
struct TypeOf;  // undefined for what is no element type
template <>
struct TypeOf<float> : std::integral_constant<ElementType, FOLIO_FLOAT> {};
template <>
struct TypeOf<double> : std::integral_constant<ElementType, FOLIO_DOUBLE> {};
template <>
struct TypeOf<std::int8_t> : std::integral_constant<ElementType, FOLIO_INT8> {};
template <>
struct TypeOf<std::uint8_t> : std::integral_constant<ElementType, FOLIO_UINT8> {};
template <>
struct TypeOf<std::int16_t> : std::integral_constant<ElementType, FOLIO_INT16> {};
template <>
struct TypeOf<std::uint16_t> : std::integral_constant<ElementType, FOLIO_UINT16> {};
template <>
struct TypeOf<std::int32_t> : std::integral_constant<ElementType, FOLIO_INT32> {};
template <>
struct TypeOf<std::uint32_t> : std::integral_constant<ElementType, FOLIO_UINT32> {};
template <>
struct TypeOf<std::int64_t> : std::integral_constant<ElementType, FOLIO_INT64> {};
template <>
struct TypeOf<std::uint64_t> : std::integral_constant<ElementType, FOLIO_UINT64> {};
template <>
struct TypeOf<bool> : std::integral_constant<ElementType, FOLIO_BOOL> {};

}  // namespace internal

// ---- Values -----------------------------------------------------------------------------------

// A tensor, sequence, map or optional; or, default-constructed, nothing.
class Value {
 public:
  Value() = default;
  explicit Value(FolioValue* handle) : handle_(handle) {}  // takes it over

  // A tensor of zeros (or empty strings).
  static Value tensor(ElementType type, const Dims& dims) {
    return Value(
        internal::value_of<FolioValue*>(api().CreateTensor, type, dims.data(), dims.size()));
  }
  template <typename T>
  static Value tensor(const Dims& dims) {
    return tensor(internal::TypeOf<T>::value, dims);
  }

  // A tensor over memory of the caller's, which must live until `release` is called or, without
  // one, as long as the value and what uses it.
  static Value wrap(void* data, size_t bytes, const Dims& dims, ElementType type,
                    std::function<void()> release = nullptr) {
    FolioValue* value = nullptr;
    internal::with_release(std::move(release), [&](FolioReleaseFunction function, void* user) {
      return api().CreateTensorWithData(data, bytes, dims.data(), dims.size(), type, function, user,
                                        &value);
    });
    return Value(value);
  }
  static Value wrap_const(const void* data, size_t bytes, const Dims& dims, ElementType type,
                          std::function<void()> release = nullptr) {
    FolioValue* value = nullptr;
    internal::with_release(std::move(release), [&](FolioReleaseFunction function, void* user) {
      return api().CreateTensorWithConstData(data, bytes, dims.data(), dims.size(), type, function,
                                             user, &value);
    });
    return Value(value);
  }

  // The same for arrays and vectors, which give type and size themselves.
  template <typename T, size_t N>
  static Value wrap(T (&array)[N], const Dims& dims) {
    return wrap(array, sizeof array, dims, internal::TypeOf<T>::value);
  }
  template <typename T>
  static Value wrap(std::vector<T>& elements, const Dims& dims) {
    return wrap(elements.data(), elements.size() * sizeof(T), dims, internal::TypeOf<T>::value);
  }

  static Value strings(const std::vector<std::string>& strings, const Dims& dims) {
    std::vector<const char*> pointers;
    std::vector<size_t> bytes;
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    if (count != static_cast<std::int64_t>(strings.size())) {
      throw Error(FOLIO_INVALID_ARGUMENT,
                  std::to_string(strings.size()) + " strings for dims of " + std::to_string(count));
    }
    for (const std::string& s : strings) {
      pointers.push_back(s.c_str());
      bytes.push_back(s.size());
    }
    return Value(internal::value_of<FolioValue*>(api().CreateStringTensor, pointers.data(),
                                                 bytes.data(), dims.data(), dims.size()));
  }
  static Value sequence(ElementType type, const std::vector<const Value*>& elements) {
    std::vector<FolioValue*> handles;
    for (const Value* element : elements) handles.push_back(element->get());
    return Value(internal::value_of<FolioValue*>(api().CreateSequence, type, handles.data(),
                                                 handles.size()));
  }
  static Value map(const Value& keys, const Value& values) {
    return Value(internal::value_of<FolioValue*>(api().CreateMap, keys.get(), values.get()));
  }

  bool empty() const { return get() == nullptr; }
  ValueKind kind() const { return internal::value_of<FolioValueKind>(api().GetValueKind, get()); }
  ElementType type() const {
    return internal::value_of<FolioElementType>(api().GetElementType, get());
  }
  Dims dims() const {
    const std::int64_t* dims = nullptr;
    size_t count = 0;
    internal::check(api().GetTensorDims(get(), &dims, &count));
    return Dims(dims, dims + count);
  }
  size_t element_count() const {
    return internal::value_of<size_t>(api().GetTensorElementCount, get());
  }
  size_t bytes() const { return internal::value_of<size_t>(api().GetTensorBytes, get()); }
  const void* data() const { return internal::value_of<const void*>(api().GetTensorData, get()); }
  void* mutable_data() { return internal::value_of<void*>(api().GetTensorMutableData, get()); }

  // The elements as T; throws if they are of another type.
  template <typename T>
  const T* as() const {
    require_type(internal::TypeOf<T>::value);
    return static_cast<const T*>(data());
  }
  template <typename T>
  T* mutable_as() {
    require_type(internal::TypeOf<T>::value);
    return static_cast<T*>(mutable_data());
  }
  template <typename T>
  std::vector<T> to_vector() const {
    const T* first = as<T>();
    return std::vector<T>(first, first + element_count());
  }
  std::string string_at(size_t index) const {
    const char* text = nullptr;
    size_t bytes = 0;
    internal::check(api().GetStringTensorElement(get(), index, &text, &bytes));
    return std::string(text, bytes);
  }
  void set_string(size_t index, const std::string& text) {
    char* place = nullptr;
    internal::check(api().ResizeStringTensorElement(get(), index, text.size(), &place));
    text.copy(place, text.size());
  }

  // Parts: elements of a sequence; keys and values of a map; what is in an optional.
  size_t part_count() const { return internal::value_of<size_t>(api().GetValueCount, get()); }
  Value part(size_t index) const {
    return Value(internal::value_of<FolioValue*>(api().GetValue, get(), index));
  }
  FolioValue* get() const { return handle_.get(); }

 private:
  void require_type(ElementType wanted) const {
    const ElementType found = type();
    if (found != wanted) {
      throw Error(FOLIO_INVALID_ARGUMENT,
                  "the tensor is of " + type_name(found) + ", not of " + type_name(wanted));
    }
  }

  internal::Handle<FolioValue, &FolioApi::ReleaseValue> handle_;
};

// The declared type of an input or output: a copy.
struct ValueInfo {
  std::string name;
  ValueKind kind = FOLIO_KIND_UNKNOWN;
  ElementType type = FOLIO_UNDEFINED;  // of a tensor; of a map's keys
  bool has_shape = false;
  Dims dims;                               // -1: not fixed
  std::vector<std::string> symbolic_dims;  // as many; "": fixed, or without a name
  std::vector<ValueInfo> element;          // one, for sequences, optionals and values of maps

  explicit ValueInfo(const FolioValueInfo* info) {
    const FolioApi& f = api();
    name = internal::value_of<const char*>(f.ValueInfoGetName, info);
    kind = internal::value_of<FolioValueKind>(f.ValueInfoGetKind, info);
    type = internal::value_of<FolioElementType>(f.ValueInfoGetElementType, info);
    has_shape = internal::value_of<std::int32_t>(f.ValueInfoHasShape, info) != 0;
    const std::int64_t* first = nullptr;
    size_t count = 0;
    internal::check(f.ValueInfoGetDims(info, &first, &count));
    dims.assign(first, first + count);
    for (size_t i = 0; i < count; ++i) {
      symbolic_dims.emplace_back(
          internal::value_of<const char*>(f.ValueInfoGetSymbolicDim, info, i));
    }
    const auto* inner = internal::value_of<const FolioValueInfo*>(f.ValueInfoGetElement, info);
    if (inner != nullptr) element.emplace_back(inner);
  }
};

namespace internal {

template <typename CountEntry, typename ItemEntry, typename Owner>
std::vector<ValueInfo> value_infos(CountEntry count_entry, ItemEntry item_entry, Owner owner) {
  std::vector<ValueInfo> result;
  const auto count = value_of<size_t>(count_entry, owner);
  for (size_t i = 0; i < count; ++i) {
    result.emplace_back(value_of<const FolioValueInfo*>(item_entry, owner, i));
  }
  return result;
}

}  // namespace internal

}  // namespace folio

#endif  // FOLIO_FOLIO_VALUE_HPP_
