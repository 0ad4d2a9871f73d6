# The flatbuffers schemas of core/ become <build>/generated/<folder>/<stem>_generated.h while building.
#
# Targets: folio_schemas (an INTERFACE library): whoever includes a generated header links it and gets the include folder
#          and the order of the build. Calling the function twice is allowed.
# Needs:   flatc (Debian: flatbuffers-compiler).

function(folio_generate_schemas)
  if(TARGET folio_schemas)
    return()
  endif()
  find_program(FOLIO_FLATC flatc)
  if(NOT FOLIO_FLATC)
    message(FATAL_ERROR "Folio needs flatc: install the Debian package flatbuffers-compiler")
  endif()
  foreach(stem core/formats/ort/ort_schema core/prepack/fpack_schema)
    set(schema ${PROJECT_SOURCE_DIR}/${stem}.fbs)
    set(header ${PROJECT_BINARY_DIR}/generated/${stem}_generated.h)
    get_filename_component(folder ${header} DIRECTORY)
    add_custom_command(OUTPUT ${header}
      COMMAND ${FOLIO_FLATC} --cpp --scoped-enums -o ${folder} ${schema}
      DEPENDS ${schema}
      COMMENT "Generating ${stem}_generated.h"
      VERBATIM)
    list(APPEND headers ${header})
  endforeach()
  add_custom_target(folio_schema_headers DEPENDS ${headers})
  add_library(folio_schemas INTERFACE)
  add_dependencies(folio_schemas folio_schema_headers)
  # SYSTEM: the code is not ours, and its warnings neither.
  target_include_directories(folio_schemas SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/generated)
endfunction()
folio_generate_schemas()
