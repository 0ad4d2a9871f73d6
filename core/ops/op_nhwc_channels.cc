#include "core/ops/op_nhwc_channels.h"

#include "core/base/checked_math.h"

namespace folio {
namespace {

// Whether channels from `at` on of `image` are as `part`.
Status check_channels(const char* name, const Shape& image, int64_t at, const Shape& part) {
  Shape same = image;
  const int last = part.rank() - 1;
  if (image.rank() == part.rank()) same[last] = part[last];
  if (same == part && part[last] <= image[last] - at) return Status::ok();
  return invalid_argument(name, " ", image.to_string(), " has no ", part.to_string(),
                          " from channel ", at, " on");
}

// Of a Join's parts.
constexpr std::string_view kParts[] = {"at", "from", "channels"};
constexpr int64_t JoinPart::*kPartFields[] = {&JoinPart::at, &JoinPart::from, &JoinPart::count};

}  // namespace

Result<std::vector<JoinPart>> parse_join_parts(const Attributes& attrs, int images) {
  std::vector<JoinPart> parts(static_cast<size_t>(images));
  for (size_t k = 0; k < std::size(kParts); ++k) {
    FOLIO_TRY(const std::vector<int64_t> values, attrs.get_ints(kParts[k]));
    if (values.size() != parts.size() ||
        std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; })) {
      return invalid_graph("'", kParts[k], "' has ", values.size(), " numbers of channels for ",
                           images, " images");
    }
    for (size_t i = 0; i < parts.size(); ++i) parts[i].*kPartFields[k] = values[i];
  }
  return parts;
}

void set_join_parts(const std::vector<JoinPart>& parts, Attributes* attrs) {
  for (size_t k = 0; k < std::size(kParts); ++k) {
    std::vector<int64_t> values;
    for (const JoinPart& part : parts) values.push_back(part.*kPartFields[k]);
    attrs->set(ints_attribute(std::string(kParts[k]), std::move(values)));
  }
}

Result<JoinPlace> parse_join_place(const Attributes& attrs) {
  JoinPlace place;
  FOLIO_TRY(place.at, attrs.get_int(kJoinAtAttribute, 0));
  FOLIO_TRY(place.channels, attrs.get_int(kJoinedAttribute, 0));
  if (place.at < 0 || place.channels < 0 || place.at > place.channels) {
    return invalid_graph("channel ", place.at, " of ", place.channels, " joined ones");
  }
  return place;
}

void set_join_place(const JoinPlace& place, Attributes* attrs) {
  attrs->set(int_attribute(std::string(kJoinAtAttribute), place.at));
  attrs->set(int_attribute(std::string(kJoinedAttribute), place.channels));
}

Status infer_joined(const Attributes& attrs, Dims* dims) {
  FOLIO_TRY(const JoinPlace place, parse_join_place(attrs));
  if (place.channels > 0 && !dims->empty()) dims->back() = Dim::of(place.channels);
  return Status::ok();
}

Result<int64_t> parse_first_channel(const Attributes& attrs, std::string_view name) {
  FOLIO_TRY(const int64_t at, attrs.get_int(name, -1));
  if (at < -1 || (at < 0 && attrs.has(name))) {
    return invalid_graph("'", name, "' is ", at, ", expected a channel");
  }
  return at;
}

Result<Shape> channels_of(const Shape& x, int64_t at, const Shape& w, int64_t group) {
  Shape part = x;
  if (w.rank() < 2 || x.rank() == 0 || !checked_mul(w[1], group, &part[x.rank() - 1])) {
    return invalid_argument("W ", w.to_string(), " does not fit X ", x.to_string());
  }
  FOLIO_RETURN_IF_ERROR(check_channels("X", x, at, part));
  return part;
}

Status infer_x_channels(const Attributes& attrs, const Dims& w, Dims* x) {
  if (!attrs.has(kXAtAttribute)) return Status::ok();
  FOLIO_TRY(const int64_t group, attrs.get_int("group", 1));
  int64_t channels = 0;
  const bool is_known = w[1].is_value() && checked_mul(w[1].value, group, &channels);
  x->back() = is_known ? Dim::of(channels) : Dim::unknown();
  return Status::ok();
}

Result<AddendPlace> parse_addend_place(const Attributes& attrs) {
  AddendPlace place;
  FOLIO_TRY(place.at, parse_first_channel(attrs, kZAtAttribute));
  FOLIO_TRY(const int64_t is_last, attrs.get_int(kAddsLastAttribute, 0));
  place.is_last = is_last != 0;
  return place;
}

Status place_addend(const OpRun& run, int input, const AddendPlace& place, const Shape& y,
                    NhwcConvArgs* args) {
  const float*& addend = place.is_last ? args->behind : args->z;
  if (place.at < 0) {
    FOLIO_TRY(const Tensor* z, conv_addend(run, input, DType::kFloat, y));
    addend = z ? z->data<float>() : nullptr;
  } else {
    FOLIO_TRY(const Tensor* z, run.tensor(input, DType::kFloat));
    FOLIO_RETURN_IF_ERROR(check_channels("Z", z->shape(), place.at, y));
    addend = z->data<float>() + place.at;
    args->z_step = z->dim(z->rank() - 1);
  }
  if (args->is_planes && args->behind) return not_implemented("Z behind a function, of planes");
  return Status::ok();
}

Result<PlacedOutput> place_output(OpRun& run, const JoinPlace& place, int into, const Shape& y) {
  if (place.channels == 0) {
    FOLIO_TRY(Tensor * out, run.output(0, DType::kFloat, y));
    return PlacedOutput{out->data_mut<float>(), 0};
  }
  Shape joined = y;
  joined[y.rank() - 1] = place.channels;
  if (y[y.rank() - 1] > place.channels - place.at) {
    return invalid_argument("Y ", y.to_string(), " at channel ", place.at, " of ",
                            joined.to_string());
  }
  if (!run.has_input(into)) {
    FOLIO_TRY(Tensor * image, run.output(0, DType::kFloat, joined));
    return PlacedOutput{image->data_mut<float>() + place.at, place.channels};
  }
  FOLIO_TRY(const Tensor* begun, run.tensor(into, DType::kFloat));
  if (!(begun->shape() == joined)) {
    return invalid_argument("what is joined is ", begun->shape().to_string(), ", expected ",
                            joined.to_string());
  }
  Tensor image = *begun;
  float* const at = image.data_mut<float>() + place.at;
  run.set_output(0, Value(std::move(image)));
  return PlacedOutput{at, place.channels};
}

}  // namespace folio
