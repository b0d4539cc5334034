# Debian packages of the components: cpack -G DEB in the build tree makes libfagen1, libfagen-dev and fagen.
include(debian/Copyright)
fagen_debian_copyright(${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD-PARTY-LICENSES ${PROJECT_BINARY_DIR}/copyright)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS LICENSE THIRD-PARTY-LICENSES)

get_target_property(soversion fagen_shared SOVERSION)
set(runtime_package libfagen${soversion})
set(development_package libfagen-dev)
set(tools_package fagen)

set(CPACK_COMPONENTS_ALL runtime development)
if(TARGET fagen OR TARGET fagen-run)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/copyright COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${${component}_package})
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${${component}_package})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fagen)
set(CPACK_PACKAGE_VENDOR "The fagen authors")
set(CPACK_PACKAGE_CONTACT "The fagen authors <fagen@fagen.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "attention kernels by fagen: the library that programs load
It picks, prepares and launches kernels that fagen has compiled from
specs. It loads the CUDA driver, and NVRTC where it compiles, when it
first needs them.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "attention kernels by fagen: headers, static library, CMake and pkg-config
What builds programs with fagen's kernels.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "compiler from attention specs to readable CUDA
fagen compiles specs; fagen-run lists, checks, times and tunes kernels.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
foreach(file IN ITEMS triggers postinst postrm)
  list(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/${file})
endforeach()
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS libfagen-dev)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/Finish.cmake)
include(CPack)
