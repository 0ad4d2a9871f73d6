#include "core/base/byte_source.h"

#include <atomic>

namespace folio {

Status ByteSource::check_damage() const {
  if (!is_damaged()) return Status::ok();
  return error(Code::kModelChanged, "'", name(),
               "' became shorter, or could not be read, while it was in use");
}

uint64_t next_source_serial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace folio
