# The third parties, all Debian packages and all used as headers only (GTest apart): the library needs none at run time.
#   folio_third_party       core: FlatBuffers, xxHash
#   folio_tool_third_party  tools and tests: CLI11, nlohmann json, protozero

function(folio_need_header out header package)
  find_path(${out} ${header})
  if(NOT ${out})
    message(FATAL_ERROR "Folio needs the header ${header}: install the Debian package ${package}")
  endif()
endfunction()

function(folio_need_package name package)
  find_package(${name} QUIET CONFIG)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "Folio needs the CMake package ${name}: install the Debian package ${package}")
  endif()
endfunction()

add_library(folio_third_party INTERFACE)
folio_need_package(FlatBuffers "libflatbuffers-dev flatbuffers-compiler")
folio_need_header(FOLIO_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h libflatbuffers-dev)

find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "Folio needs pkg-config: install the Debian package pkg-config")
endif()
pkg_check_modules(FOLIO_XXHASH QUIET libxxhash>=0.8)
if(NOT FOLIO_XXHASH_FOUND)
  message(FATAL_ERROR "Folio needs xxHash 0.8 or later: install the Debian package libxxhash-dev")
endif()

target_include_directories(folio_third_party SYSTEM INTERFACE
  ${FOLIO_FLATBUFFERS_INCLUDE} ${FOLIO_XXHASH_INCLUDE_DIRS})
target_compile_definitions(folio_third_party INTERFACE XXH_INLINE_ALL) # no libxxhash.so at run time
find_package(Threads REQUIRED)
target_link_libraries(folio_third_party INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

if(FOLIO_TOOLS OR FOLIO_TESTS)
  add_library(folio_tool_third_party INTERFACE)
  folio_need_package(CLI11 libcli11-dev)
  folio_need_package(nlohmann_json nlohmann-json3-dev)
  folio_need_header(FOLIO_PROTOZERO_INCLUDE protozero/pbf_reader.hpp libprotozero-dev)
  target_include_directories(folio_tool_third_party SYSTEM INTERFACE ${FOLIO_PROTOZERO_INCLUDE})
  target_link_libraries(folio_tool_third_party INTERFACE CLI11::CLI11 nlohmann_json::nlohmann_json)
endif()
if(FOLIO_TESTS)
  folio_need_package(GTest "libgtest-dev (googletest)")
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    list(APPEND FOLIO_LEFT_OUT "tests written in Python (no python3)")
  endif()
endif()
