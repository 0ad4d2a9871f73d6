# folio_precompile(TARGET PRIVATE HEADER...): what most files of TARGET include, read once
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON does without); folio_precompile(TARGET REUSE_FROM OWNER): with the headers of
# another target, whose flags are the same.

set(FOLIO_STANDARD_HEADERS
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set>
  <span> <string> <string_view> <unordered_map> <utility> <vector>)
set(FOLIO_TEST_HEADERS ${FOLIO_STANDARD_HEADERS} <filesystem> <gtest/gtest.h>)

function(folio_precompile target)
  target_precompile_headers(${target} ${ARGN})
  # For ccache.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
