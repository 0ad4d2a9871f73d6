# folio_generate_ort_schema(): core/formats/ort/ort_schema.fbs becomes
# <build>/generated/core/formats/ort/ort_schema_generated.h while building.
#
# Targets: folio_ort_schema (an INTERFACE library): whoever includes the generated header links it and gets the
#          include folder and the order of the build. Calling the function twice is allowed.
# Needs:   flatc (Debian: flatbuffers-compiler).

function(folio_generate_ort_schema)
  if(TARGET folio_ort_schema)
    return()
  endif()
  find_program(FOLIO_FLATC flatc)
  if(NOT FOLIO_FLATC)
    message(FATAL_ERROR "Folio needs flatc: install the Debian package flatbuffers-compiler")
  endif()
  set(schema ${PROJECT_SOURCE_DIR}/core/formats/ort/ort_schema.fbs)
  set(folder ${PROJECT_BINARY_DIR}/generated/core/formats/ort)
  set(header ${folder}/ort_schema_generated.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${FOLIO_FLATC} --cpp --scoped-enums -o ${folder} ${schema}
    DEPENDS ${schema}
    COMMENT "Generating ort_schema_generated.h"
    VERBATIM)
  add_custom_target(folio_ort_schema_header DEPENDS ${header})
  add_library(folio_ort_schema INTERFACE)
  add_dependencies(folio_ort_schema folio_ort_schema_header)
  # SYSTEM: the code is not ours, and its warnings neither.
  target_include_directories(folio_ort_schema SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/generated)
endfunction()
folio_generate_ort_schema()
