#include "core/base/status.h"

namespace folio {

struct Status::Rep {
  Code code;
  std::string message;
};

namespace {

// A message is one line, whatever names a model has.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

}  // namespace

Status::Status(Code code, std::string message)
    : rep_(new Rep{code, one_line(std::move(message))}) {}

Status::Status(const Status& other) : rep_(other.rep_ ? new Rep(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) { return *this = Status(other); }

std::string_view Status::message() const { return rep_ ? std::string_view(rep_->message) : ""; }

Status Status::with_context(std::string_view where) && {
  if (rep_) {
    const std::string prefix = one_line(std::string(where) + ": ");
    if (!rep_->message.starts_with(prefix)) rep_->message.insert(0, prefix);
  }
  return std::move(*this);
}

void Status::Free::operator()(Rep* rep) const noexcept { delete rep; }

Code Status::error_code() const { return rep_->code; }

}  // namespace folio

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
