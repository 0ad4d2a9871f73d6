// TestSource: a ByteSource over bytes a test made, with siblings out of a map.
//
// Owns:    its bytes, in a block of exactly their size so that sanitizers see reads past the end.
// Errors:  open_sibling: kNoSuchFile for names that are not in the map. It does not judge paths;
//          that is the business of os/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/byte_source.h"

namespace folio {

class TestSource final : public ByteSource {
 public:
  using Siblings = std::map<std::string, std::string>;  // location -> bytes

  explicit TestSource(std::string_view bytes, std::string name = "<bytes>", Siblings siblings = {});

  Bytes bytes() const override { return {data_.get(), size_}; }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override;

  // How many siblings were opened, for tests of sharing.
  int opened() const { return opened_; }

  // True when `data` points into these bytes.
  bool contains(const uint8_t* data) const {
    return data >= data_.get() && data < data_.get() + size_;
  }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
  std::string name_;
  Siblings siblings_;
  mutable int opened_ = 0;
};

}  // namespace folio
