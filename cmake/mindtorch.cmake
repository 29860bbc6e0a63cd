# SPDX-License-Identifier: Apache-2.0
#
# libmindtorch: what opgen makes from the op table, the runtime, its kernels and the CPU's backend.
include(src/mindtorch/sources.cmake)
include(cmake/kernels.cmake)

# ---- from the op table: ops.h, the typed functions, the dispatcher's rows, the profiler's sites ----
set(MT_GENERATED ${PROJECT_BINARY_DIR}/generated)
add_executable(opgen tools/opgen/opgen.c tools/opgen/opgen_formulas.c tools/opgen/opgen_rows.c
                     tools/opgen/opgen_table.c tools/opgen/opgen_typed.c
                     src/mindtorch/dispatch/schema.c src/base/fail.c)
mt_settings(opgen)
target_include_directories(opgen PRIVATE include src)
function(mt_opgen what file)
  add_custom_command(
    OUTPUT ${MT_GENERATED}/${file}
    COMMAND ${CMAKE_COMMAND} -DOPGEN=$<TARGET_FILE:opgen> -DWHAT=${what} -DFILE=${MT_GENERATED}/${file}
            -P ${PROJECT_SOURCE_DIR}/cmake/opgen_run.cmake
    DEPENDS opgen
    VERBATIM)
endfunction()
mt_opgen(header mindtorch/ops.h)
mt_opgen(private private_ops.h)
mt_opgen(calls ops_call.c)
mt_opgen(numbers op_numbers.h)
mt_opgen(formulas op_formulas.c)
mt_opgen(rows op_rows.c)
mt_opgen(sites op_sites.inc)
add_custom_target(mt_generated DEPENDS ${MT_GENERATED}/mindtorch/ops.h ${MT_GENERATED}/private_ops.h
                                       ${MT_GENERATED}/op_numbers.h ${MT_GENERATED}/ops_call.c
                                       ${MT_GENERATED}/op_formulas.c ${MT_GENERATED}/op_rows.c
                                       ${MT_GENERATED}/op_sites.inc)

# ---- compiled once, linked twice -----------------------------------------------------------------
list(TRANSFORM MINDTORCH_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE mindtorch_sources)
add_library(mindtorch_objects OBJECT ${mindtorch_sources} ${MT_GENERATED}/ops_call.c
                                     ${MT_GENERATED}/op_formulas.c ${MT_GENERATED}/op_rows.c)
set(version MT_VERSION="${PROJECT_VERSION}" MT_VERSION_MAJOR=${PROJECT_VERSION_MAJOR}
            MT_VERSION_MINOR=${PROJECT_VERSION_MINOR} MT_VERSION_PATCH=${PROJECT_VERSION_PATCH})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/mindtorch/core/thread/status_text.c
                            PROPERTIES COMPILE_DEFINITIONS "${version}")
add_library(mt_kernel_objects OBJECT)
list(TRANSFORM MT_KERNEL_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE kernel_sources)
target_sources(mt_kernel_objects PRIVATE ${kernel_sources})
foreach(lib IN ITEMS mindtorch_objects mt_kernel_objects)
  mt_settings(${lib})
  add_dependencies(${lib} mt_generated)
  target_include_directories(${lib} PRIVATE include src ${MT_GENERATED})
  set_target_properties(${lib} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${lib} PRIVATE -fno-semantic-interposition)
endforeach()
target_compile_options(mt_kernel_objects PRIVATE ${MT_KERNEL_FLAGS})
# mt__arg_tensor() is NULL where an optional argument is absent; gcc cannot know which are optional and,
# depending on what it inlines, warns about the others.
target_compile_options(mindtorch_objects PRIVATE -Wno-null-dereference)
target_compile_definitions(mt_kernel_objects PRIVATE MT_HAVE_ONEDNN=$<BOOL:${MT_HAVE_ONEDNN}>)
# base is hidden in libmtprof.so; the shared runtime has its own copy of what it uses.
set(base_sources ${MTPROF_SOURCES})
list(FILTER base_sources INCLUDE REGEX "^src/base/")
list(FILTER base_sources EXCLUDE REGEX "^src/base/(gzip|text_writer|json/)")
list(TRANSFORM base_sources PREPEND "${PROJECT_SOURCE_DIR}/")
add_library(mindtorch_base OBJECT ${base_sources})
mt_settings(mindtorch_base)
target_include_directories(mindtorch_base PRIVATE include src)
set_target_properties(mindtorch_base PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(mindtorch_parts $<TARGET_OBJECTS:mindtorch_objects> $<TARGET_OBJECTS:mt_kernel_objects>
                    ${MT_ISA_OBJECTS})
add_library(mindtorch SHARED ${mindtorch_parts} $<TARGET_OBJECTS:mindtorch_base>)
add_library(mindtorch_static STATIC ${mindtorch_parts})
add_library(mindtorch::mindtorch ALIAS mindtorch)
add_library(mindtorch::mindtorch_static ALIAS mindtorch_static)
foreach(lib IN ITEMS mindtorch mindtorch_static)
  add_dependencies(${lib} mt_generated)
  target_include_directories(${lib} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                           $<BUILD_INTERFACE:${MT_GENERATED}>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${lib} PROPERTIES OUTPUT_NAME mindtorch LINKER_LANGUAGE C)
endforeach()
target_link_libraries(mindtorch PUBLIC mtprof PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_libraries(mindtorch_static PUBLIC mtprof_static Threads::Threads
                                              ${CMAKE_DL_LIBS} m)
set_target_properties(mindtorch PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
mt_find_beside(mindtorch) # libmtprof
target_link_options(mindtorch PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})

# ---- the simulated accelerator: opened at run time, links nothing of libmindtorch --------------------
list(TRANSFORM MT_SIM_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE sim_sources)
add_library(mindtorch_sim MODULE ${sim_sources} ${PROJECT_SOURCE_DIR}/src/base/alloc.c)
mt_settings(mindtorch_sim)
target_include_directories(mindtorch_sim PRIVATE include src)
target_link_libraries(mindtorch_sim PRIVATE Threads::Threads)
# nodelete: its workers, and its handlers of fork and exit, stay until the end.
target_link_options(mindtorch_sim PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})
