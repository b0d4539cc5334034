# What is installed, by component:
#   runtime      libfagen.so.1, for programs that are linked already
#   development  headers (the device headers too, for nvcc), both libraries, fagen_add_kernels, find_package, pkg-config
#   tools        the compiler if it was built, fagen-run, their manual pages and completions, what measures
include(CMakePackageConfigHelpers)
include(FagenManuals)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fagen)
install(TARGETS fagen_runtime fagen_shared EXPORT fagenTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT fagenTargets NAMESPACE fagen:: DESTINATION ${package_dir} COMPONENT development)
install(DIRECTORY runtime/include/fagen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES cmake/FagenKernels.cmake cmake/EmbedCode.cmake cmake/ready.h.in DESTINATION ${package_dir} COMPONENT development)

if(TARGET fagen)
  install(TARGETS fagen EXPORT fagenCompilerTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(EXPORT fagenCompilerTargets NAMESPACE fagen:: DESTINATION ${package_dir} COMPONENT tools)
  fagen_manuals(fagen)
  # What fagen_add_ready_kernels compiles.
  _fagen_ready(${PROJECT_BINARY_DIR}/specs ready)
  set(files ${PROJECT_BINARY_DIR}/specs/ready.txt ${ready_attention})
  foreach(set IN LISTS ready_programs)
    list(APPEND files ${ready_${set}})
  endforeach()
  install(FILES ${files} DESTINATION ${CMAKE_INSTALL_DATADIR}/fagen/specs COMPONENT tools)
endif()
if(TARGET fagen-run)
  install(TARGETS fagen-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  fagen_manuals(fagen-run)
  # What `fagen-run time --baseline sdpa` starts, and the library that it loads.
  install(TARGETS fagen_capi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fagen/measure COMPONENT tools)
  install(FILES measure/compare_sdpa.py measure/contestant.h measure/contestants.py measure/energy.py measure/fagen_ctypes.py measure/inputs.py
                measure/notes.py measure/samples.py python/fagen/_structs.py
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fagen/measure COMPONENT tools)
endif()

configure_package_config_file(cmake/fagenConfig.cmake.in ${PROJECT_BINARY_DIR}/fagenConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fagenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fagenConfig.cmake ${PROJECT_BINARY_DIR}/fagenConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# The prefix is where the file lies: an installed tree may be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FAGEN_PC_UP "${up}")
configure_file(cmake/fagen.pc.in ${PROJECT_BINARY_DIR}/fagen.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fagen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
