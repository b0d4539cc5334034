# What find_package(fagen) finds: the runtime library, its headers (the device headers too, for nvcc), the compiler if it
# was built, and fagen_add_kernels.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fagen)
install(TARGETS fagen_runtime EXPORT fagenTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET fagen)
  install(TARGETS fagen EXPORT fagenTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET fagen-run)
  install(TARGETS fagen-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What `fagen-run time --baseline sdpa` starts, and the library that it loads.
  install(TARGETS fagen_capi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES measure/compare_sdpa.py measure/contestant.h measure/contestants.py measure/fagen_ctypes.py
                measure/notes.py measure/samples.py
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fagen/measure)
endif()
install(DIRECTORY runtime/include/fagen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT fagenTargets NAMESPACE fagen:: DESTINATION ${package_dir})
install(FILES cmake/FagenKernels.cmake cmake/EmbedCode.cmake DESTINATION ${package_dir})

configure_package_config_file(cmake/fagenConfig.cmake.in ${PROJECT_BINARY_DIR}/fagenConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fagenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fagenConfig.cmake ${PROJECT_BINARY_DIR}/fagenConfigVersion.cmake
        DESTINATION ${package_dir})
