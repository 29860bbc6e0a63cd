# SPDX-License-Identifier: Apache-2.0
#
# One warning set for gcc and clang. -Wpedantic is left to the header probes: inside the library GNU C
# (cleanup attributes, __atomic builtins, statement expressions) is allowed.
set(MT_WARNINGS
    -Wall -Wextra -Wshadow -Wundef -Wvla
    -Wconversion -Wno-sign-conversion
    -Wpointer-arith -Wwrite-strings -Wcast-qual
    -Wimplicit-fallthrough
    -Wformat=2 -Wno-format-nonliteral -Wdouble-promotion -Wnull-dereference)
set(MT_WARNINGS_C
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND MT_WARNINGS -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
  list(APPEND MT_WARNINGS_C -Wjump-misses-init)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Clang's -Wdouble-promotion also refuses INFINITY and NAN, which are floats, where a double is meant.
  list(REMOVE_ITEM MT_WARNINGS -Wdouble-promotion)
  # gcc's "noclone" in benchmarks; `&` between booleans where both sides are to be evaluated.
  list(APPEND MT_WARNINGS -Wno-unknown-attributes -Wno-bitwise-instead-of-logical)
endif()
if(MT_WERROR)
  list(APPEND MT_WARNINGS -Werror)
endif()

function(mt_warnings target)
  target_compile_options(${target} PRIVATE ${MT_WARNINGS}
                                           $<$<COMPILE_LANGUAGE:C>:${MT_WARNINGS_C}>)
endfunction()
