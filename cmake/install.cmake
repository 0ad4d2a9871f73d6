# What a user gets: libfolio.so.1, the headers, the command, the CMake package `folio` (folio::folio), folio.pc, and the
# pages of docs/, which headers and messages refer to.

if(NOT TARGET folio)
  return()
endif()
include(CMakePackageConfigHelpers)

# A file that is the same keeps its time.
function(folio_write target text)
  set(before "")
  if(EXISTS ${target})
    file(READ ${target} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${target} "${text}")
  endif()
endfunction()

# folio_page SOURCE TARGET FROM TO: a page for another folder than its own. FROM is a regular expression of what its links to
# pages begin with, TO what they begin with there; tests/c_api/package_test.py follows them.
function(folio_page source target from to)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REGEX REPLACE "\\]\\(${from}([a-z_]+\\.(md|svg))" "](${to}\\1" text "${text}")
  folio_write(${target} "${text}")
endfunction()

# All pages stand in one folder.
set(pages_dir ${PROJECT_BINARY_DIR}/pages)
folio_page(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${pages_dir}/CHANGELOG.md "docs/" "")

install(TARGETS folio EXPORT folio-targets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
install(DIRECTORY c_api/include/folio DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET folio_ort) # a package of its own: package.cmake
  install(TARGETS folio_ort LIBRARY
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/${FOLIO_ORT_DIR} COMPONENT onnxruntime NAMELINK_COMPONENT onnxruntime)
  set(dropin_doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/libfolio-onnxruntime)
  file(RELATIVE_PATH to_pages /prefix/${dropin_doc_dir} /prefix/${CMAKE_INSTALL_DOCDIR})
  folio_page(${PROJECT_SOURCE_DIR}/docs/dropin.md ${pages_dir}/onnxruntime/dropin.md "" "${to_pages}/")
  install(FILES LICENSE THIRD-PARTY-NOTICES ${pages_dir}/onnxruntime/dropin.md DESTINATION ${dropin_doc_dir} COMPONENT onnxruntime)
endif()
if(TARGET folio_cli)
  install(TARGETS folio_cli COMPONENT tools)
endif()
install(FILES LICENSE THIRD-PARTY-NOTICES ${pages_dir}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
file(GLOB pages CONFIGURE_DEPENDS docs/*.md docs/*.svg)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/folio)
install(EXPORT folio-targets NAMESPACE folio:: DESTINATION ${package_dir} FILE folio-config.cmake COMPONENT dev)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/folio-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/folio-config-version.cmake DESTINATION ${package_dir} COMPONENT dev)

# folio.pc finds its prefix from where it lies, so that an installed tree may be moved.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pc_dir} OUTPUT_VARIABLE FOLIO_PC_TO_PREFIX)
configure_file(cmake/folio.pc.in ${PROJECT_BINARY_DIR}/folio.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/folio.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
