// TopK: the k largest or smallest elements along an axis, and where they stand.
//
// Source: ONNX operator spec, TopK, opsets 1 (k an attribute), 10 (k an input), 11 (largest,
//         sorted), 24 (bfloat16).
// Shapes: x [.., n, ..] -> values, indices int64 [.., k, ..].
// Math:   of equal elements the one with the lower index comes first; NaN counts as larger than
//         any number. The result is sorted even where `sorted` is 0.
// Types:  all numbers; indices int64.
// Errors: kInvalidArgument when k is negative or above n.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_order.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// A key and where it stands; comes before another if the key is larger, or the index lower.
class NarrowEntry {
 public:
  NarrowEntry() = default;
  NarrowEntry(int32_t key, int64_t index)
      : bits_(int64_t{key} * (int64_t{1} << 32) + (kMost - index)) {}
  int32_t key() const { return static_cast<int32_t>(bits_ >> 32); }
  int64_t index() const { return kMost - (bits_ & kMost); }
  bool operator<(const NarrowEntry& other) const { return bits_ > other.bits_; }
  static constexpr int64_t kMost = 0xffffffff;

 private:
  int64_t bits_;
};

class WideEntry {
 public:
  WideEntry() = default;
  WideEntry(int64_t key, int64_t index) : key_(key), index_(index) {}
  int64_t key() const { return key_; }
  int64_t index() const { return index_; }
  bool operator<(const WideEntry& other) const {
    return key_ != other.key_ ? key_ > other.key_ : index_ < other.index_;
  }

 private:
  int64_t key_;
  int64_t index_;
};

constexpr int64_t kBlock = 32;  // keys that are passed over together
constexpr int64_t kFew = 16;    // so many are kept in order all the time
constexpr int64_t kColumns = 16;

// At most so many entries are held at a time.
int64_t entries_held(int64_t n, int64_t k) {
  return k <= kFew ? k : std::min(n, 2 * k + kBlock) + kBlock;
}

// body(i) for each i whose key, one of kBlock, is above `bound`. In bytes, eight of which are
// looked at together: of most blocks of a long row no key is.
template <typename Key, typename Body>
void for_each_above(const Key* keys, Key bound, const Body& body) {
  constexpr int64_t kWords = kBlock / 8;
  uint8_t above[kBlock];
  for (int64_t i = 0; i < kBlock; ++i) above[i] = keys[i] > bound ? 1 : 0;
  uint64_t words[kWords];
  std::memcpy(words, above, sizeof words);
  for (int64_t w = 0; w < kWords; ++w) {
    for (uint64_t left = words[w]; left != 0; left &= left - 1) {
      body(w * 8 + std::countr_zero(left) / 8);
    }
  }
}

// The first k of n in best[0..k), in order.
template <typename Entry, typename Key>
void select_few(const Key* keys, int64_t n, int64_t k, Entry* best) {
  int64_t count = 0;
  const auto insert = [&](int64_t i) {
    const Entry entry(keys[i], i);
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && entry < best[at - 1]; --at) best[at] = best[at - 1];
    best[at] = entry;
  };
  const auto insert_above = [&](int64_t i) {
    if (keys[i] > best[k - 1].key()) insert(i);
  };
  int64_t i = 0;
  for (; i < k; ++i) insert(i);
  for (; i + kBlock <= n; i += kBlock) {
    for_each_above(keys + i, best[k - 1].key(), [&](int64_t u) { insert_above(i + u); });
  }
  for (; i < n; ++i) insert_above(i);
}

// Entries above the k-th of those before are gathered; when they are many, that is found anew.
template <typename Entry, typename Key>
void select_many(const Key* keys, int64_t n, int64_t k, Entry* held) {
  const int64_t most = entries_held(n, k) - kBlock;
  int64_t count = 0;
  int64_t i = 0;
  for (; i < std::min(n, most); ++i) held[count++] = Entry(keys[i], i);
  const auto keep_best = [&] {
    std::nth_element(held, held + k - 1, held + count);
    count = k;
    return held[k - 1].key();
  };
  Key bound = keep_best();
  const auto take = [&](int64_t at) { held[count++] = Entry(keys[at], at); };
  for (; i + kBlock <= n; i += kBlock) {
    for_each_above(keys + i, bound, [&](int64_t u) { take(i + u); });
    if (count >= most) bound = keep_best();
  }
  for (; i < n; ++i) {
    if (keys[i] > bound) take(i);
  }
  if (count > k) keep_best();
  std::sort(held, held + k);
}

struct Place {
  int64_t n = 0;
  int64_t k = 0;
  int64_t inner = 0;
  int64_t outer = 0;
  bool largest = true;
};

// Keys of `columns` neighbouring columns, one behind the other.
template <typename T, typename Key>
void fill_keys(const Place& place, int64_t columns, const void* data, Key* keys) {
  const T* const from = static_cast<const T*>(data);
  const Key flip = place.largest ? Key{0} : Key{-1};
  if (columns == 1) {
    int64_t i = 0;
    for (; i + kBlock <= place.n && place.inner == 1; i += kBlock) {
      for (int64_t u = 0; u < kBlock; ++u) keys[i + u] = Key{key_of(from[i + u])} ^ flip;
    }
    for (; i < place.n; ++i) keys[i] = Key{key_of(from[i * place.inner])} ^ flip;
    return;
  }
  Key line[kColumns];
  for (int64_t i = 0; i < place.n; ++i) {
    const T* row = from + i * place.inner;
    if (columns == kColumns) {
      for (int64_t c = 0; c < kColumns; ++c) line[c] = Key{key_of(row[c])} ^ flip;
    } else {
      for (int64_t c = 0; c < columns; ++c) line[c] = Key{key_of(row[c])} ^ flip;
    }
    for (int64_t c = 0; c < columns; ++c) keys[c * place.n + i] = line[c];
  }
}

// Elements to[i * inner] = from[entries[i].index() * inner], i < k, of a type of this size.
template <typename Bits, typename Entry>
void take_values(const Place& place, const Entry* entries, const void* data, void* out) {
  const Bits* const from = static_cast<const Bits*>(data);
  Bits* const to = static_cast<Bits*>(out);
  for (int64_t i = 0; i < place.k; ++i) {
    to[i * place.inner] = from[entries[i].index() * place.inner];
  }
}

// What is made for each type of element; the search is made for each type of entry.
template <typename Key, typename Entry>
struct Elements {
  int64_t size;
  void (*fill)(const Place& place, int64_t columns, const void* from, Key* keys);
  void (*take)(const Place& place, const Entry* entries, const void* from, void* to);
};

template <typename T, typename Key, typename Entry>
Elements<Key, Entry> elements_of() {
  return {static_cast<int64_t>(sizeof(T)), fill_keys<T, Key>, take_values<BitsOf<T>, Entry>};
}

// Some neighbouring columns at a time, so that a line of memory is read once.
template <typename Key, typename Entry>
Status find(OpRun& run, const Tensor& x, const Place& place, const Elements<Key, Entry>& elements,
            Tensor* values, Tensor* indices) {
  const int64_t n = place.n;
  const int64_t k = place.k;
  const int64_t inner = place.inner;
  const int64_t columns = std::min(inner, kColumns);
  const int64_t strips = (inner + columns - 1) / columns;
  const size_t key_bytes = align_up(static_cast<size_t>(columns * n) * sizeof(Key), 64);
  const auto entry_bytes = static_cast<size_t>(entries_held(n, k)) * sizeof(Entry);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, key_bytes + entry_bytes, &scratch));
  const uint8_t* from = x.raw();
  uint8_t* to = values->raw_mut();
  int64_t* where = indices->data_mut<int64_t>();
  const int64_t grain = rows_per_task(n * columns);
  run.parallel().for_range(place.outer * strips, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* keys = reinterpret_cast<Key*>(block.data());
    auto* best = reinterpret_cast<Entry*>(block.data() + key_bytes);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % strips * columns;
      const int64_t count = std::min(columns, inner - first);
      const uint8_t* strip = from + (task / strips * n * inner + first) * elements.size;
      elements.fill(place, count, strip, keys);
      for (int64_t c = 0; c < count; ++c) {
        if (k <= kFew) {
          select_few(keys + c * n, n, k, best);
        } else {
          select_many(keys + c * n, n, k, best);
        }
        const int64_t at = task / strips * k * inner + first + c;
        elements.take(place, best, strip + c * elements.size, to + at * elements.size);
        for (int64_t i = 0; i < k; ++i) where[at + i * inner] = best[i].index();
      }
    }
  });
  return Status::ok();
}

class TopK final : public OpKernel {
 public:
  int64_t axis = -1;
  int64_t attribute_k = -1;  // before opset 10
  bool largest = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    Place place;
    place.n = x->dim(at);
    place.k = attribute_k;
    if (attribute_k < 0) {
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(1));
      if (given.size() != 1) return invalid_argument("K has ", given.size(), " elements, not 1");
      place.k = given[0];
    }
    if (place.k < 0 || place.k > place.n) {
      return invalid_argument("k is ", place.k, ", expected 0 to ", place.n, ", dim ", at, " of ",
                              x->shape().to_string());
    }
    if (!contains(NumericTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    Shape shape = x->shape();
    place.inner = shape.product(at + 1, shape.rank());
    place.outer = shape.product(0, at);
    place.largest = largest;
    shape[at] = place.k;
    FOLIO_TRY(Tensor * values, run.output(0, x->dtype(), shape));
    FOLIO_TRY(Tensor * indices, run.output(1, DType::kInt64, shape));
    if (values->count() == 0) return Status::ok();
    return dispatch_input(NumericTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(KeyOf<T>) == 4) {
        if (place.n <= NarrowEntry::kMost) {
          const auto elements = elements_of<T, int32_t, NarrowEntry>();
          return find(run, *x, place, elements, values, indices);
        }
      }
      const auto elements = elements_of<T, int64_t, WideEntry>();
      return find(run, *x, place, elements, values, indices);
    });
  }
};

Status infer_top_k(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", -1));
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
    out = *x;
    Dim k = Dim::unknown();
    if (infer.version() < 10) {
      FOLIO_TRY(const int64_t given, infer.attrs().get_int("k"));
      k = Dim::of(given);
    } else if (const auto data = infer.data(1); data && data->size() == 1) {
      k = (*data)[0];
    }
    (*out)[static_cast<size_t>(at)] = k;
  }
  infer.set_tensor(0, infer.dtype(0), out);
  infer.set_tensor(1, DType::kInt64, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_top_k(OpBuild& build) {
  auto kernel = std::make_unique<TopK>();
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", -1));
  if (build.version() < 10) {
    FOLIO_TRY(kernel->attribute_k, build.attrs().get_int("k"));
    if (kernel->attribute_k < 0) {
      return invalid_graph("k is ", kernel->attribute_k, ", expected 0 or more");
    }
  }
  if (build.version() >= 11) {
    FOLIO_TRY(const int64_t largest, build.attrs().get_int("largest", 1));
    kernel->largest = largest != 0;
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_top_k(OpRegistry& registry) {
  OpDef def;
  def.type = "TopK";
  def.until = 9;
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer_top_k;
  def.make = make_top_k;
  registry.add(def);
  def.since = 10;
  def.until = kLatest;
  def.min_inputs = def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
