# Debian packages: `cmake --build DIR --target folio_deb` writes DIR/packages/*.deb, one for each component.
# Jars and the NuGet package are made by the rooms java and csharp: targets folio_maven and folio_nuget.

if(NOT TARGET folio OR FOLIO_SANITIZE OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(FOLIO_PACKAGES_DIR ${PROJECT_BINARY_DIR}/packages)
set(CPACK_GENERATOR DEB)
set(CPACK_OUTPUT_CONFIG_FILE ${PROJECT_BINARY_DIR}/CPackConfig.cmake)
set(CPACK_PACKAGE_DIRECTORY ${FOLIO_PACKAGES_DIR})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "Folio <folio@foliort.dev>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1) # of Debian's packaging: cmake/debian/changelog
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libfolio${FOLIO_SOVERSION})
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libfolio-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DEPENDS runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The library, with the C interface.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers for C and C++, and what CMake and pkg-config need to find the library.")
if(TARGET folio_cli)
  list(APPEND CPACK_COMPONENTS_ALL tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME folio-tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
  set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command folio: runs, tests, measures, inspects and converts models.")
  set(CPACK_COMPONENT_TOOLS_DEPENDS runtime) # the command opens the library by dlopen
endif()
set(ship_targets folio)
if(TARGET folio_cli)
  list(APPEND ship_targets folio_cli)
endif()
if(TARGET folio_ort) # complete in itself: depends on no other package of Folio's
  list(APPEND CPACK_COMPONENTS_ALL onnxruntime)
  list(APPEND ship_targets folio_ort)
  set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_NAME libfolio-onnxruntime)
  set(CPACK_COMPONENT_ONNXRUNTIME_DESCRIPTION "Drop-in libonnxruntime.so.1 that computes with Folio
 Programs made for ONNX Runtime use Folio when they find this library first.
 It lies in a folder of its own, outside of the search path.")
endif()
if(TARGET folio_java)
  list(APPEND CPACK_COMPONENTS_ALL java)
  list(APPEND ship_targets folio_java)
  set(CPACK_DEBIAN_JAVA_PACKAGE_NAME libfolio-java)
  set(CPACK_DEBIAN_JAVA_PACKAGE_SECTION java)
  set(CPACK_DEBIAN_JAVA_PACKAGE_RECOMMENDS "default-jre-headless (>= 2:1.17) | java17-runtime-headless")
  set(CPACK_COMPONENT_JAVA_DESCRIPTION "Java 17: folio.jar and its native half.")
  set(CPACK_COMPONENT_JAVA_DEPENDS runtime)
endif()
if(TARGET folio_csharp_assembly)
  list(APPEND CPACK_COMPONENTS_ALL csharp)
  list(APPEND ship_targets folio_csharp_assembly)
  set(CPACK_DEBIAN_CSHARP_PACKAGE_NAME libfolio-cil)
  set(CPACK_DEBIAN_CSHARP_PACKAGE_SECTION cli-mono)
  set(CPACK_DEBIAN_CSHARP_PACKAGE_RECOMMENDS "mono-runtime")
  set(CPACK_COMPONENT_CSHARP_DESCRIPTION "C#: FolioRuntime.dll and its native half.")
  set(CPACK_COMPONENT_CSHARP_DEPENDS runtime)
endif()
include(cmake/debian.cmake)
include(CPack)

find_program(FOLIO_DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FOLIO_FILE file) # CPack tells by it which files are libraries
if(NOT FOLIO_DPKG_SHLIBDEPS OR NOT FOLIO_FILE)
  list(APPEND FOLIO_LEFT_OUT "Debian packages (packages dpkg-dev, file)")
  return()
endif()
set(stamp ${PROJECT_BINARY_DIR}/folio_deb.stamp)
add_custom_command(OUTPUT ${stamp}
  COMMAND ${CMAKE_CPACK_COMMAND} --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake > ${PROJECT_BINARY_DIR}/folio_deb.log
  COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
  DEPENDS ${ship_targets} ${pages} ${pages_dir}/CHANGELOG.md ${PROJECT_BINARY_DIR}/CPackConfig.cmake
          ${PROJECT_SOURCE_DIR}/cmake/debian/put_right.cmake
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "Making the Debian packages" VERBATIM)
add_custom_target(folio_deb ALL DEPENDS ${stamp})
