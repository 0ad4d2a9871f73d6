# Target folio_flags: the compile flags of every object that is ours (core, c_api, tools, tests).

find_program(FOLIO_CCACHE ccache)
if(FOLIO_CCACHE AND PROJECT_IS_TOP_LEVEL)
  # Without these words it does not keep what was compiled with precompiled headers, and without the inode cache it
  # reads these, 66 to 104 MB, for each source.
  set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Its preprocessor reads the headers themselves, for half as long as compiling takes; the compiler's list of them
    # does as well.
    list(APPEND launcher CCACHE_DEPEND=1)
  endif()
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher} ${FOLIO_CCACHE})
    endif()
  endforeach()
endif()

add_library(folio_flags INTERFACE)
target_compile_options(folio_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  # A product is rounded before it is added unless the code says fma: results must not depend on what a compiler fuses.
  -ffp-contract=off
  -fvisibility=hidden
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  # Sections per function and datum let the link of libfolio drop what nothing reaches.
  -ffunction-sections -fdata-sections)
if(FOLIO_WERROR)
  target_compile_options(folio_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees an overlap in std::string's own operator+ (GCC bug 105651).
  target_compile_options(folio_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(folio_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

if(FOLIO_SANITIZE)
  target_compile_options(folio_flags INTERFACE
    -fsanitize=${FOLIO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(folio_flags INTERFACE -fsanitize=${FOLIO_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from gcc that a value was set.
    target_compile_options(folio_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
