# folio_precompile(TARGET HEADER...): what most files of TARGET include, read once (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# does without). With g++ alone: clang, which the fuzz lane builds with, shows that every file includes what it uses.

set(FOLIO_STANDARD_HEADERS
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set>
  <span> <string> <string_view> <unordered_map> <utility> <vector>)

function(folio_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    target_compile_options(${target} PRIVATE -fpch-preprocess) # for ccache
  endif()
endfunction()

# With the headers of `owner`, whose flags are the same.
function(folio_precompile_as target owner)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
