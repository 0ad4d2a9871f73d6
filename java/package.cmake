# What a Maven repository holds, as such a repository: packages/maven/dev/foliort/folio/VERSION/folio-VERSION.jar (with
# the native libraries inside), -sources.jar, -javadoc.jar and .pom. Target folio_maven.

set(maven_dir ${PROJECT_BINARY_DIR}/packages/maven/dev/foliort/folio/${PROJECT_VERSION})
set(maven_jar ${maven_dir}/folio-${PROJECT_VERSION})
set(native_root ${CMAKE_CURRENT_BINARY_DIR}/native)
set(native_dir ${native_root}/dev/foliort/native/linux-x86_64) # as NativeResource.java looks for them
set(javadoc_dir ${CMAKE_CURRENT_BINARY_DIR}/javadoc)
configure_file(pom.xml.in pom.xml @ONLY)
file(GLOB meta_files CONFIGURE_DEPENDS meta/*.json)
add_custom_command(OUTPUT ${maven_jar}.jar
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${native_root} ${javadoc_dir}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${native_dir} ${maven_dir} ${native_root}/META-INF/native-image/dev.foliort/folio
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/bundle/libfolio.so.1 ${PROJECT_BINARY_DIR}/bundle/libfolio_jni.so ${native_dir}
  COMMAND ${CMAKE_COMMAND} -E copy ${meta_files} ${native_root}/META-INF/native-image/dev.foliort/folio
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD-PARTY-NOTICES ${native_root}/META-INF
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/pom.xml ${maven_jar}.pom
  COMMAND ${FOLIO_JAVA_BIN}/jar --create --file ${maven_jar}.jar --manifest ${CMAKE_CURRENT_BINARY_DIR}/manifest.txt -C ${classes} . -C ${native_root} .
  COMMAND ${FOLIO_JAVA_BIN}/jar --create --file ${maven_jar}-sources.jar -C ${CMAKE_CURRENT_SOURCE_DIR}/src .
  COMMAND ${FOLIO_JAVA_BIN}/javadoc -quiet -Xdoclint:all -Werror -encoding UTF-8 -notimestamp -windowtitle Folio
    -d ${javadoc_dir} -sourcepath ${CMAKE_CURRENT_SOURCE_DIR}/src:${FOLIO_GENERATED_DIR}/java dev.foliort
  COMMAND ${FOLIO_JAVA_BIN}/jar --create --file ${maven_jar}-javadoc.jar -C ${javadoc_dir} .
  DEPENDS ${java_jar} ${meta_files} folio_bundle folio_jni_bundle ${CMAKE_CURRENT_BINARY_DIR}/pom.xml
  COMMENT "Making the jars for Maven" VERBATIM)
add_custom_target(folio_maven ALL DEPENDS ${maven_jar}.jar)
