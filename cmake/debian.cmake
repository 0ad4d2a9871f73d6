# What Debian's policy wants in each package beside what is installed elsewhere: copyright, changelog.Debian.gz; the command's
# manual page; lintian's overrides. Written when CMake runs, installed with the packages only.

find_program(FOLIO_GZIP gzip)
if(NOT FOLIO_GZIP)
  return()
endif()
set(debian_dir ${PROJECT_BINARY_DIR}/debian)

# gzip SOURCE TARGET: as policy wants it, of no name and no time.
function(folio_gzip source target)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  execute_process(COMMAND ${FOLIO_GZIP} -9nc ${source} OUTPUT_FILE ${target} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The notices without the text of the licence that every Debian system has.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS THIRD-PARTY-NOTICES)
file(READ THIRD-PARTY-NOTICES FOLIO_NOTICES)
string(FIND "${FOLIO_NOTICES}" "3.1  Apache License 2.0\n=" common)
if(common EQUAL -1)
  message(FATAL_ERROR "THIRD-PARTY-NOTICES has no heading '3.1  Apache License 2.0'")
endif()
string(SUBSTRING "${FOLIO_NOTICES}" 0 ${common} FOLIO_NOTICES)
configure_file(cmake/debian/copyright.in ${debian_dir}/copyright @ONLY)
folio_gzip(${PROJECT_SOURCE_DIR}/cmake/debian/changelog ${debian_dir}/changelog.Debian.gz)
folio_page(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${debian_dir}/CHANGELOG.md "docs/" "../folio/") # from share/doc/PACKAGE
folio_gzip(${debian_dir}/CHANGELOG.md ${debian_dir}/changelog.gz)
configure_file(cmake/debian/folio.1 ${debian_dir}/folio.1 @ONLY)
folio_gzip(${debian_dir}/folio.1 ${debian_dir}/folio.1.gz)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES ${debian_dir}/copyright ${debian_dir}/changelog.Debian.gz ${debian_dir}/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  if(EXISTS ${PROJECT_SOURCE_DIR}/cmake/debian/${package}.overrides)
    install(FILES cmake/debian/${package}.overrides DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides
      RENAME ${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endforeach()
if(TARGET folio_cli)
  install(FILES ${debian_dir}/folio.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
endif()

file(WRITE ${debian_dir}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${debian_dir}/triggers)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/no_old_packages.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/put_right.cmake)
