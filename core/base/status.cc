#include "core/base/status.h"

namespace folio::internal {

void Part::append_to(std::string* out) const {
  switch (kind_) {
    case kText:
      out->append(text_);
      return;
    case kChar:
      out->push_back(char_);
      return;
    case kSigned:
      out->append(std::to_string(signed_));
      return;
    case kUnsigned:
      out->append(std::to_string(unsigned_));
      return;
    case kDouble:
      out->append(std::to_string(double_));
      return;
  }
}

std::string join(std::initializer_list<Part> parts) {
  std::string out;
  for (const Part& part : parts) part.append_to(&out);
  return out;
}

Status make_error(Code code, std::initializer_list<Part> parts) { return {code, join(parts)}; }

}  // namespace folio::internal
