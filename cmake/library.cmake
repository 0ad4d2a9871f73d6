# folio_core: all rooms of core/ as one static library, for tests and for libfolio.
# folio:      the shared library with the C ABI. Its one exported symbol is in exports.map.
# folio_ort:  libonnxruntime.so.1, the drop-in: ONNX Runtime's interface over the same C ABI, complete in one file.

file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/*.cc)
foreach(isa IN LISTS FOLIO_ISA_FOLDERS) # those have flags of their own
  list(FILTER core_sources EXCLUDE REGEX "/core/kernels/${isa}/")
endforeach()

if(core_sources)
  add_library(folio_core STATIC ${core_sources})
  target_include_directories(folio_core PUBLIC ${PROJECT_SOURCE_DIR} ${FOLIO_GENERATED_DIR})
  target_link_libraries(folio_core PUBLIC folio_flags folio_third_party folio_schemas)
  target_compile_definitions(folio_core PUBLIC FOLIO_VERSION="${PROJECT_VERSION}")
  folio_precompile(folio_core PRIVATE ${FOLIO_STANDARD_HEADERS})
  if(FOLIO_FUZZ) # libFuzzer sees where an input leads; AddressSanitizer's library has what this calls in other programs
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT FOLIO_SANITIZE MATCHES address)
      message(FATAL_ERROR "FOLIO_FUZZ needs clang (Debian: clang-14 libclang-rt-14-dev) and FOLIO_SANITIZE=address")
    endif()
    target_compile_options(folio_core PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  # Loops over elements of any number: g++'s -O2 vectorizes those of a known number only.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Nobody reads errno or the flags of exceptions, which computing both sides of a choice sets otherwise.
    set(sources_of_loops
      core/ops/clip.cc core/ops/cum_sum.cc core/ops/einsum.cc core/ops/elementwise_binary.cc
      core/ops/elementwise_integer.cc core/ops/elementwise_unary.cc core/ops/is_nan.cc core/ops/logical.cc
      core/ops/op_convert.cc core/ops/op_product.cc core/ops/pow.cc core/ops/prelu.cc core/ops/where.cc)
    set_property(SOURCE ${sources_of_loops}
      APPEND PROPERTY COMPILE_OPTIONS -fvect-cost-model=dynamic -fno-math-errno -fno-trapping-math)
    # What runs seldom, waits for disks or leaves all loops to others is a third smaller.
    file(GLOB sources_of_space CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/save/*.cc)
    list(APPEND sources_of_space
      core/formats/onnx/sparse_reader.cc core/formats/sparse.cc core/model/inline_functions.cc
      core/ops/op_generation_encoder.cc core/ops/op_generation_gpt.cc core/ops/op_regex.cc
      core/ops/sparse_attention.cc core/ops/tokenizer.cc core/ops/unfold_tensor.cc
      core/ops/word_conv_embedding.cc core/os/memory_stats.cc core/passes/add_behind.cc
      core/passes/channel_readers.cc core/passes/channel_shuffle.cc core/passes/channels_last.cc core/passes/fold_focus.cc
      core/passes/fuse_qdq.cc core/passes/join_in_place.cc core/passes/read_channels.cc
      core/passes/simplify_moves.cc core/passes/take_nchwc.cc core/passes/untranspose_convs.cc
      core/prepack/fpack_index.cc core/prepack/fpack_writer.cc core/prepack/pack_store.cc core/session/pack_model.cc
      core/session/profile.cc core/session/replace_weights.cc)
    set_property(SOURCE ${sources_of_space} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
    set_property(SOURCE ${sources_of_loops} ${sources_of_space}
      PROPERTY SKIP_PRECOMPILE_HEADERS ON) # made with other flags
  endif()
  foreach(isa_target IN LISTS FOLIO_ISA_TARGETS)
    target_sources(folio_core PRIVATE $<TARGET_OBJECTS:${isa_target}>)
  endforeach()
else()
  list(APPEND FOLIO_LEFT_OUT "folio_core (core/ has no sources)")
endif()

# How every shared library of ours is linked.
set(FOLIO_LINK_OPTIONS -Wl,-z,now -Wl,-z,relro -Wl,-z,max-page-size=16384)
# The addresses that loading relocates as a bitmap instead of 24 bytes each: 107 KB less to map and read. glibc 2.36
# reads it, and an older one refuses what has it, by the name GLIBC_ABI_DT_RELR.
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main() {}" FOLIO_GLIBC_READS_RELR)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs FOLIO_LINKER_WRITES_RELR)
if(FOLIO_GLIBC_READS_RELR AND FOLIO_LINKER_WRITES_RELR)
  list(APPEND FOLIO_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
endif()

file(GLOB c_api_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/c_api/*.cc)
if(c_api_sources AND TARGET folio_core)
  set(exports_map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  add_library(folio SHARED ${c_api_sources})
  add_library(folio::folio ALIAS folio)
  set_target_properties(folio PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${FOLIO_SOVERSION} LINK_DEPENDS ${exports_map})
  target_include_directories(folio PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/c_api/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(folio PRIVATE folio_core)
  target_link_options(folio PRIVATE
    -Wl,--version-script=${exports_map}
    -Wl,-z,nodelete # threads and atfork handlers outlive a dlclose
    ${FOLIO_LINK_OPTIONS} -Wl,--gc-sections -Wl,--as-needed)
  if(NOT FOLIO_SANITIZE) # a sanitizer's symbols come with the executable
    target_link_options(folio PRIVATE -Wl,--no-undefined)
  endif()
  include(cmake/ort_dropin.cmake)
else()
  list(APPEND FOLIO_LEFT_OUT "libfolio (c_api/ or core/ has no sources)")
endif()
