# SPDX-License-Identifier: Apache-2.0
#
# Headers, both libraries, a pkg-config file and a CMake package; the command with its man page and
# completions. All of it can be moved after it was
# installed: nothing written here holds an absolute path.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mtprof)

foreach(header IN LISTS MTPROF_PUBLIC_HEADERS MTPROF_TORCH_PUBLIC_HEADERS MTPROF_CUPTI_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY include)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

install(TARGETS mtprof mtprof_static mtprof_torch mtprof_cupti EXPORT mtprofTargets)
install(TARGETS mtprof_cuda mtprof_itt mtprof_nvtx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}) # opened at run time, by its path
if(TARGET mtprof_command)
  install(TARGETS mtprof_command)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/mtprof.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/mtprof.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME mtprof)
  install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/_mtprof
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(EXPORT mtprofTargets NAMESPACE mtprof:: DESTINATION ${package_dir})

configure_package_config_file(cmake/mtprofConfig.cmake.in ${PROJECT_BINARY_DIR}/mtprofConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mtprofConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mtprofConfig.cmake
              ${PROJECT_BINARY_DIR}/mtprofConfigVersion.cmake
        DESTINATION ${package_dir})

# From the folder of the .pc file back to the prefix, so that the tree can be moved.
file(RELATIVE_PATH MTPROF_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
set(MTPROF_PC_LIBS_PRIVATE ${CMAKE_THREAD_LIBS_INIT})
list(TRANSFORM CMAKE_DL_LIBS PREPEND "-l" OUTPUT_VARIABLE dl_flags)
list(APPEND MTPROF_PC_LIBS_PRIVATE -pthread ${dl_flags} -lm)
list(JOIN MTPROF_PC_LIBS_PRIVATE " " MTPROF_PC_LIBS_PRIVATE)
configure_file(cmake/mtprof.pc.in ${PROJECT_BINARY_DIR}/mtprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mtprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- libmindtorch, a package of its own that needs mtprof ----------------------------------------
if(MT_BUILD_RUNTIME)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mindtorch)
  foreach(header IN LISTS MINDTORCH_PUBLIC_HEADERS)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mindtorch)
  endforeach()
  install(FILES ${MT_GENERATED}/mindtorch/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mindtorch)
  install(TARGETS mindtorch mindtorch_static EXPORT mindtorchTargets)
  # Opened at run time, next to libmindtorch.
  install(TARGETS mindtorch_sim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT mindtorchTargets NAMESPACE mindtorch:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/mindtorchConfig.cmake.in
                                ${PROJECT_BINARY_DIR}/mindtorchConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/mindtorchConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/mindtorchConfig.cmake
                ${PROJECT_BINARY_DIR}/mindtorchConfigVersion.cmake
          DESTINATION ${package_dir})
  configure_file(cmake/mindtorch.pc.in ${PROJECT_BINARY_DIR}/mindtorch.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/mindtorch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
