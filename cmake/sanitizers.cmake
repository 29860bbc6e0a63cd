# SPDX-License-Identifier: Apache-2.0
#
# MT_SANITIZE = "" | address (with undefined) | thread | fuzzer (clang only; with address, undefined)
#             | fuzzer_memory (clang only; with memory: reads of uninitialised memory)
#             | fuzzer_undefined (clang only; with undefined alone: several times as fast).
# Applies to every target of the build: a sanitizer that sees half of a program reports nonsense.
set(MT_SANITIZE "" CACHE STRING "address, thread, fuzzer, fuzzer_memory, fuzzer_undefined or empty")
set_property(CACHE MT_SANITIZE PROPERTY STRINGS "" address thread fuzzer fuzzer_memory
             fuzzer_undefined)

set(MT_NO_UNDEFINED -Wl,--no-undefined)
if(MT_SANITIZE STREQUAL "")
  set(sanitize_compile "")
  set(sanitize_link "")
elseif(MT_SANITIZE STREQUAL "address")
  set(sanitize_compile -fsanitize=address,undefined -fno-sanitize-recover=all)
  set(sanitize_link -fsanitize=address,undefined)
elseif(MT_SANITIZE STREQUAL "thread")
  set(sanitize_compile -fsanitize=thread)
  set(sanitize_link -fsanitize=thread)
elseif(MT_SANITIZE MATCHES "^fuzzer(_memory|_undefined)?$")
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MT_SANITIZE=${MT_SANITIZE} needs clang (presets fuzz and fuzz_*)")
  endif()
  set(MT_FUZZ ON) # smaller buffers: most of them are made for every input
  # mt_fuzz() adds libFuzzer's main; the library only gets the coverage counters, and no watch on
  # comparisons: the targets' own mutators know the values that matter, and it costs a quarter.
  if(MT_SANITIZE STREQUAL "fuzzer")
    set(sanitize_compile -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
        -fno-sanitize-coverage=trace-cmp)
    set(sanitize_link -fsanitize=address,undefined)
  elseif(MT_SANITIZE STREQUAL "fuzzer_undefined")
    set(sanitize_compile -fsanitize=fuzzer-no-link,undefined -fno-sanitize-recover=all
        -fno-sanitize-coverage=trace-cmp)
    set(sanitize_link -fsanitize=undefined)
  else()
    set(sanitize_compile -fsanitize=fuzzer-no-link,memory -fsanitize-memory-track-origins
        -fno-sanitize-coverage=trace-cmp)
    set(sanitize_link -fsanitize=memory)
  endif()
else()
  message(FATAL_ERROR "MT_SANITIZE is '${MT_SANITIZE}', expected address, thread, fuzzer, "
                      "fuzzer_memory, fuzzer_undefined or nothing")
endif()

if(MT_SANITIZE)
  add_compile_options(${sanitize_compile})
  add_link_options(${sanitize_link})
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    # clang links the run time into programs only, so a shared library has undefined symbols.
    set(MT_NO_UNDEFINED "")
  endif()
endif()
