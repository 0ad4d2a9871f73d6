# Packages of other versions would stay beside the new ones.
file(GLOB old ${CPACK_PACKAGE_DIRECTORY}/*.deb)
if(old)
  file(REMOVE ${old})
endif()
