#include "core/os/own_thread.h"

#include <link.h>

#include <cstddef>

#include "core/os/quiet_signals.h"

namespace folio {
namespace {

// Below 2 MiB, so that no huge page ever backs a stack.
constexpr size_t kStackBytes = size_t{1} << 20;

// The C library takes thread-local objects of what was loaded with the process from the stack that
// was asked for; a host may have more of them than kernels leave (ThreadSanitizer: 770 KiB). All
// that are loaded are counted: those of a library that came later stand elsewhere, and cost
// addresses only.
size_t thread_local_bytes() {
  size_t bytes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* sum) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = object->dlpi_phdr[i];
          if (part.p_type == PT_TLS) *static_cast<size_t*>(sum) += part.p_memsz + part.p_align;
        }
        return 0;
      },
      &bytes);
  return bytes;
}

}  // namespace

bool start_own_thread(const char* name, void* (*entry)(void*), void* argument,
                      pthread_t* thread) noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes + thread_local_bytes());
  if (!thread) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t made;
  const int failed = [&] {
    const QuietSignals quiet;  // a new thread inherits the mask
    return pthread_create(&made, &attributes, entry, argument);
  }();
  pthread_attr_destroy(&attributes);
  if (failed) return false;
  pthread_setname_np(made, name);
  if (thread) *thread = made;
  return true;
}

}  // namespace folio
