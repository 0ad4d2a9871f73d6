# folio_ort: libonnxruntime.so.1 for programs made for ONNX Runtime (docs/dropin.md). It lies in a folder of its own, in
# the build tree as installed: no program may find it unless somebody says so.

file(GLOB ort_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/c_api/ort_dropin/*.cc)
set(ort_exports ${PROJECT_SOURCE_DIR}/cmake/ort_exports.map)
set(FOLIO_ORT_DIR folio/onnxruntime) # below the library folder
add_library(folio_ort SHARED ${ort_sources} $<TARGET_OBJECTS:folio>)
set_target_properties(folio_ort PROPERTIES
  OUTPUT_NAME onnxruntime SOVERSION 1 LINK_DEPENDS ${ort_exports}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${FOLIO_ORT_DIR})
target_include_directories(folio_ort PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/c_api/include)
target_compile_definitions(folio_ort PRIVATE FOLIO_VERSION="${PROJECT_VERSION}")
target_link_libraries(folio_ort PRIVATE folio_core)
target_link_options(folio_ort PRIVATE
  -Wl,--version-script=${ort_exports} # of no version: programs ask for those of many releases
  -Wl,-z,nodelete ${FOLIO_LINK_OPTIONS} -Wl,--gc-sections -Wl,--as-needed) # as libfolio.so
if(NOT FOLIO_SANITIZE)
  target_link_options(folio_ort PRIVATE -Wl,--no-undefined)
endif()
