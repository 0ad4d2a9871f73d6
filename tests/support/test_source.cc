#include "tests/support/test_source.h"

#include <cstring>
#include <utility>

namespace folio {

TestSource::TestSource(std::string_view bytes, std::string name, Siblings siblings)
    : data_(new uint8_t[bytes.size()]),
      size_(bytes.size()),
      name_(std::move(name)),
      siblings_(std::move(siblings)) {
  if (size_ > 0) std::memcpy(data_.get(), bytes.data(), size_);
}

Result<Ref<ByteSource>> TestSource::open_sibling(const std::string& location) const {
  const auto found = siblings_.find(location);
  if (found == siblings_.end()) {
    return error(Code::kNoSuchFile, "no file '", location, "'");
  }
  ++opened_;
  return Ref<ByteSource>(make_ref<TestSource>(found->second, location));
}

}  // namespace folio
