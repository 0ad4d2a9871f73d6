# packages/FolioRuntime.VERSION.nupkg: lib/net472 (mono) and, where a .NET SDK is (FOLIO_DOTNET_SDK), lib/netstandard2.0
# and 2.1, all from the same sources; runtimes/linux-x64/native; a .targets that copies the native part for mono.
# Target folio_nuget.

set(FOLIO_DOTNET_SDK "$ENV{FOLIO_DOTNET_SDK}" CACHE PATH "A .NET SDK with reference assemblies: folder of `dotnet`")
set(nuget_dir ${CMAKE_CURRENT_BINARY_DIR}/nuget)
set(nuget_file ${PROJECT_BINARY_DIR}/packages/FolioRuntime.${PROJECT_VERSION}.nupkg)
set(nuget_frameworks net472)
set(nuget_commands COMMAND ${CMAKE_COMMAND} -E copy ${assembly} ${documentation} ${nuget_dir}/lib/net472)
set(nuget_assemblies "")

# mcs against the framework's reference assemblies: nothing of mono gets in.
function(folio_add_framework framework)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${framework}/FolioRuntime.dll)
  set(references "")
  foreach(reference IN LISTS ARGN)
    list(APPEND references -reference:${reference})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${framework})
  add_custom_command(OUTPUT ${out}
    COMMAND ${mcs} -nostdlib -noconfig ${references} -target:library -out:${out} ${sources} -recurse:${FOLIO_CSHARP_GENERATED}/*.cs
    DEPENDS ${sources} folio_csharp COMMENT "Building FolioRuntime.dll for ${framework}" VERBATIM)
  set(nuget_assemblies ${nuget_assemblies} ${out} PARENT_SCOPE)
  set(nuget_frameworks ${nuget_frameworks} ${framework} PARENT_SCOPE)
  set(nuget_commands ${nuget_commands}
    COMMAND ${CMAKE_COMMAND} -E copy ${out} ${documentation} ${nuget_dir}/lib/${framework} PARENT_SCOPE)
endfunction()

file(GLOB netstandard21 ${FOLIO_DOTNET_SDK}/packs/NETStandard.Library.Ref/2.1.*/ref/netstandard2.1/netstandard.dll)
file(GLOB netstandard20 ${FOLIO_DOTNET_SDK}/sdk/*/ref/netstandard.dll)
file(GLOB memory20 ${FOLIO_DOTNET_SDK}/sdk/*/Sdks/Microsoft.NET.Sdk.WindowsDesktop/tools/net472/System.Memory.dll)
if(FOLIO_DOTNET_SDK AND netstandard21)
  folio_add_framework(netstandard2.1 ${netstandard21})
endif()
if(FOLIO_DOTNET_SDK AND netstandard20 AND memory20)
  folio_add_framework(netstandard2.0 ${netstandard20} ${memory20})
endif()
list(LENGTH nuget_frameworks framework_count)
if(framework_count EQUAL 1)
  list(APPEND FOLIO_LEFT_OUT "netstandard in the NuGet package (FOLIO_DOTNET_SDK names no .NET SDK; see docs/csharp.md)")
  set(FOLIO_LEFT_OUT ${FOLIO_LEFT_OUT} PARENT_SCOPE)
endif()
foreach(framework IN LISTS nuget_frameworks)
  file(MAKE_DIRECTORY ${nuget_dir}/lib/${framework})
  set(dependencies "")
  if(framework STREQUAL "netstandard2.0")
    set(dependencies "<dependency id=\"System.Memory\" version=\"4.5.3\" />")
  endif()
  string(APPEND FOLIO_NUGET_GROUPS "      <group targetFramework=\"${framework}\">${dependencies}</group>\n")
endforeach()

set(native_dir ${nuget_dir}/runtimes/linux-x64/native)
configure_file(package/FolioRuntime.nuspec.in ${nuget_dir}/FolioRuntime.nuspec @ONLY)
configure_file(package/content_types.xml "${nuget_dir}/[Content_Types].xml" COPYONLY)
configure_file(package/rels.xml ${nuget_dir}/_rels/.rels COPYONLY)
configure_file(package/FolioRuntime.targets ${nuget_dir}/build/net472/FolioRuntime.targets COPYONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/csharp.md)
file(READ ${PROJECT_SOURCE_DIR}/docs/csharp.md page)
string(REGEX REPLACE "\\[([^]]*)\\]\\([a-z_]+\\.md[^)]*\\)" "\\1" page "${page}") # the package has no other pages to link to
folio_write(${nuget_dir}/README.md "${page}")
configure_file(${PROJECT_SOURCE_DIR}/LICENSE ${nuget_dir}/LICENSE COPYONLY)
configure_file(${PROJECT_SOURCE_DIR}/THIRD-PARTY-NOTICES ${nuget_dir}/THIRD-PARTY-NOTICES COPYONLY)
add_custom_command(OUTPUT ${nuget_file}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${native_dir} ${PROJECT_BINARY_DIR}/packages
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/bundle/libfolio.so.1 ${PROJECT_BINARY_DIR}/bundle/libfolio_csharp.so ${native_dir}
  ${nuget_commands}
  COMMAND ${CMAKE_COMMAND} -E tar cf ${nuget_file} --format=zip "[Content_Types].xml" _rels FolioRuntime.nuspec README.md LICENSE THIRD-PARTY-NOTICES lib runtimes build
  DEPENDS ${assembly} ${nuget_assemblies} folio_bundle folio_csharp_bundle ${nuget_dir}/FolioRuntime.nuspec ${nuget_dir}/README.md
  WORKING_DIRECTORY ${nuget_dir} COMMENT "Making the NuGet package" VERBATIM)
add_custom_target(folio_nuget ALL DEPENDS ${nuget_file})
