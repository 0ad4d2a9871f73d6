# folio_cli:  the command `folio`, built from tools/folio on the public headers only. All of it but main.cc is also the
#             static library folio_command, for tests and for op_bench.
# make_model: writes small models for tests. All of it but main.cc is also the static library folio_make_model, for tests.

if(FOLIO_TOOLS OR FOLIO_TESTS)
  file(GLOB make_model_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/make_model/*.cc)
  set(make_model_main ${PROJECT_SOURCE_DIR}/tools/make_model/main.cc)
  list(REMOVE_ITEM make_model_sources ${make_model_main})
  if(make_model_sources)
    add_library(folio_make_model STATIC ${make_model_sources})
    target_include_directories(folio_make_model PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(folio_make_model PUBLIC folio_flags folio_third_party folio_tool_third_party)
    folio_precompile(folio_make_model PRIVATE ${FOLIO_STANDARD_HEADERS})
    if(FOLIO_TOOLS AND EXISTS ${make_model_main})
      add_executable(make_model ${make_model_main})
      target_link_libraries(make_model PRIVATE folio_make_model)
    endif()
  endif()
endif()

if(FOLIO_TOOLS)
  file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/folio/*.cc)
  set(cli_main ${PROJECT_SOURCE_DIR}/tools/folio/main.cc)
  list(REMOVE_ITEM cli_sources ${cli_main})
  if(cli_sources AND TARGET folio)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
               OUTPUT_VARIABLE bin_to_lib)
    add_library(folio_command STATIC ${cli_sources})
    target_include_directories(folio_command PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/c_api/include)
    target_link_libraries(folio_command PUBLIC
      folio_flags folio_third_party folio_tool_third_party Threads::Threads ${CMAKE_DL_LIBS})
    target_compile_definitions(folio_command PUBLIC
      FOLIO_NO_LINK FOLIO_VERSION="${PROJECT_VERSION}" FOLIO_BIN_TO_LIB="${bin_to_lib}")
    target_compile_definitions(folio_command PRIVATE $<$<BOOL:${FOLIO_SOFTWARE_AMX}>:FOLIO_SOFTWARE_AMX>)
    folio_precompile(folio_command PRIVATE ${FOLIO_STANDARD_HEADERS} <filesystem> <nlohmann/json.hpp>)
    add_executable(folio_cli ${cli_main})
    add_dependencies(folio_cli folio) # opened at run time, relative to the executable: see cli.cc
    target_link_libraries(folio_cli PRIVATE folio_command)
    set_target_properties(folio_cli PROPERTIES OUTPUT_NAME folio)
  else()
    list(APPEND FOLIO_LEFT_OUT "the folio command (tools/folio or libfolio has no sources)")
  endif()
else()
  list(APPEND FOLIO_LEFT_OUT "the folio command (FOLIO_TOOLS=OFF)")
endif()

# kernel_bench: timings of every kernel level, for commit messages. Not built unless named.
if(FOLIO_TOOLS AND TARGET folio_core)
  add_executable(kernel_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/kernel_bench/main.cc)
  target_link_libraries(kernel_bench PRIVATE folio_core Threads::Threads)
endif()

# op_bench: one-node models of each family of kernels by Folio and ONNX Runtime in turns. Not built unless named; needs
# Google Benchmark (Debian: libbenchmark-dev).
if(TARGET folio_command AND TARGET folio_make_model)
  find_package(benchmark QUIET CONFIG)
  if(benchmark_FOUND)
    file(GLOB op_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/op_bench/*.cc)
    add_executable(op_bench EXCLUDE_FROM_ALL ${op_bench_sources})
    add_dependencies(op_bench folio)
    target_link_libraries(op_bench PRIVATE folio_command folio_make_model benchmark::benchmark)
  else()
    list(APPEND FOLIO_LEFT_OUT "op_bench (no Google Benchmark: libbenchmark-dev)")
  endif()
endif()
