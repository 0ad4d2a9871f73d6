#include "core/ops/op_nhwc_join.h"

namespace folio {

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
  if (place.channels > 0) dims->back() = Dim::of(place.channels);
  return Status::ok();
}

Status place_output(OpRun& run, const JoinPlace& place, int into, const Shape& y,
                    NhwcConvArgs* args) {
  if (place.channels == 0) {
    FOLIO_TRY(Tensor * out, run.output(0, DType::kFloat, y));
    args->y = out->data_mut<float>();
    return Status::ok();
  }
  Shape joined = y;
  joined[y.rank() - 1] = place.channels;
  if (y[y.rank() - 1] > place.channels - place.at || args->z) {
    return invalid_argument("Y ", y.to_string(), " at channel ", place.at, " of ",
                            joined.to_string());
  }
  args->y_step = place.channels;
  if (run.has_input(into)) {
    FOLIO_TRY(const Tensor* begun, run.tensor(into, DType::kFloat));
    if (!(begun->shape() == joined)) {
      return invalid_argument("what is joined is ", begun->shape().to_string(), ", expected ",
                              joined.to_string());
    }
    Tensor image = *begun;
    args->y = image.data_mut<float>() + place.at;
    run.set_output(0, Value(std::move(image)));
  } else {
    FOLIO_TRY(Tensor * image, run.output(0, DType::kFloat, joined));
    args->y = image->data_mut<float>() + place.at;
  }
  return Status::ok();
}

}  // namespace folio
