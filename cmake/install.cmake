# What a user gets: libfolio.so.1, the headers, the command, the CMake package `folio` (folio::folio), folio.pc, and the
# pages of docs/, which headers and messages refer to.

if(NOT TARGET folio)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS folio EXPORT folio-targets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
install(DIRECTORY c_api/include/folio DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET folio_ort) # a package of its own: package.cmake
  install(TARGETS folio_ort LIBRARY
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/${FOLIO_ORT_DIR} COMPONENT onnxruntime NAMELINK_COMPONENT onnxruntime)
  install(FILES LICENSE THIRD-PARTY-NOTICES docs/dropin.md
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libfolio-onnxruntime COMPONENT onnxruntime)
endif()
if(TARGET folio_cli)
  install(TARGETS folio_cli COMPONENT tools)
endif()
install(FILES LICENSE THIRD-PARTY-NOTICES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
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
