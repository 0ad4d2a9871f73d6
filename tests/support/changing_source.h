// A source without bytes whose file changes, or is gone, when a test says so.
#pragma once

#include <string>
#include <utility>

#include "core/base/byte_source.h"

namespace folio::testing {

class ChangingSource final : public ByteSource {
 public:
  explicit ChangingSource(std::string name) : name_(std::move(name)) {}

  Bytes bytes() const override { return {}; }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string&) const override {
    return error(Code::kNoSuchFile, "none");
  }
  Status check_unchanged() const override {
    ++times_asked;
    return has_changed ? error(Code::kModelChanged, "changed") : Status::ok();
  }
  bool is_damaged() const override { return is_gone; }

  mutable int times_asked = 0;
  bool has_changed = false;
  bool is_gone = false;

 private:
  std::string name_;
};

}  // namespace folio::testing
