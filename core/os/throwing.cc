#include "core/os/throwing.h"

#include <pthread.h>

#include <cstdlib>
#include <exception>

namespace folio {
namespace {

// More than the C library allocates for the thread: 32 bytes, and a longer list of libraries.
constexpr size_t kEnough = 4096;

// A key, since a thread-local variable of ours would be allocated in the same way.
struct ReadyKey {
  pthread_key_t key = 0;
  bool exists = false;
  ReadyKey() noexcept : exists(pthread_key_create(&key, nullptr) == 0) {}
};

}  // namespace

bool is_ready_to_throw() noexcept {
  static const ReadyKey ready;
  if (ready.exists && pthread_getspecific(ready.key)) return true;
  void* volatile const probe = std::malloc(kEnough);  // volatile: or it would be left out
  if (!probe) return false;
  std::free(probe);
  // Allocates, or ends the process. volatile: the compiler knows it as pure.
  [[maybe_unused]] const volatile int count = std::uncaught_exceptions();
  if (ready.exists) (void)pthread_setspecific(ready.key, &ready);
  return true;
}

}  // namespace folio
