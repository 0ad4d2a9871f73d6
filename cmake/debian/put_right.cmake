# What CPack gets wrong in the packages:
# * Every package with a library in /usr/lib has a postinst and a postrm that call ldconfig. dpkg's trigger does that
#   (control file `triggers` of libfolio1), and the others have nothing in the search path: the scripts go.
# * libc6: dpkg-shlibdeps asks which glibc has the symbols that a file needs, and no symbol tells of relocations that are
#   packed (library.cmake), which an older glibc than 2.36 refuses when the program starts.
find_program(READELF readelf REQUIRED)
set(glibc_of_packed_relocations 2.36)

# Sets `result`: whether a file below `folder` has packed relocations.
function(folio_has_packed_relocations folder result)
  set(${result} OFF PARENT_SCOPE)
  file(GLOB_RECURSE files LIST_DIRECTORIES OFF ${folder}/*.so ${folder}/*.so.* ${folder}/usr/bin/*)
  foreach(file IN LISTS files)
    execute_process(COMMAND ${READELF} --version-info --wide ${file} OUTPUT_VARIABLE versions ERROR_QUIET)
    if(versions MATCHES "GLIBC_ABI_DT_RELR")
      set(${result} ON PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

foreach(package IN LISTS CPACK_PACKAGE_FILES)
  if(NOT package MATCHES "\\.deb$")
    continue()
  endif()
  set(folder ${package}.unpacked)
  file(REMOVE_RECURSE ${folder})
  execute_process(COMMAND dpkg-deb -R ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${folder}/DEBIAN/control control)
  set(changed OFF)
  if(EXISTS ${folder}/DEBIAN/postinst)
    file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
    set(changed ON)
  endif()
  folio_has_packed_relocations(${folder} is_packed)
  if(is_packed AND control MATCHES "libc6 \\(>= ([0-9.]+)\\)" AND CMAKE_MATCH_1 VERSION_LESS glibc_of_packed_relocations)
    string(REPLACE "${CMAKE_MATCH_0}" "libc6 (>= ${glibc_of_packed_relocations})" control "${control}")
    file(WRITE ${folder}/DEBIAN/control "${control}")
    set(changed ON)
  endif()
  if(changed)
    execute_process(COMMAND dpkg-deb --root-owner-group -b ${folder} ${package} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(REMOVE_RECURSE ${folder})
endforeach()
