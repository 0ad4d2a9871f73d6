# folio_precompile(TARGET PRIVATE HEADER...): what most files of TARGET include, read once
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON does without); folio_precompile(TARGET REUSE_FROM OWNER): with the headers of
# another target, whose flags are the same. With g++ alone: clang, which the fuzz lane builds with, shows that every file
# includes what it uses.

set(FOLIO_STANDARD_HEADERS
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set>
  <span> <string> <string_view> <unordered_map> <utility> <vector>)
set(FOLIO_TEST_HEADERS ${FOLIO_STANDARD_HEADERS} <filesystem> <gtest/gtest.h>)

function(folio_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} ${ARGN})
    target_compile_options(${target} PRIVATE -fpch-preprocess) # for ccache
  endif()
endfunction()
