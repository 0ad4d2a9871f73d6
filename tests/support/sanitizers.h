// Which sanitizer this build has: for the few tests whose property one of them takes away.
#pragma once

#if defined(__has_feature)  // clang
#define FOLIO_HAS_FEATURE(name) __has_feature(name)
#else
#define FOLIO_HAS_FEATURE(name) 0
#endif

namespace folio {

#if defined(__SANITIZE_ADDRESS__) || FOLIO_HAS_FEATURE(address_sanitizer)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || FOLIO_HAS_FEATURE(thread_sanitizer)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

}  // namespace folio

#undef FOLIO_HAS_FEATURE
