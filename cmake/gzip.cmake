# SPDX-License-Identifier: Apache-2.0
#
# Which libraries src/base/gzip.c knows: those whose headers are here. They are opened at run time
# (libisal.so.2, libz.so.1), so what we install depends on neither.
include(CheckIncludeFile)
check_include_file(isa-l/igzip_lib.h MT_HAVE_ISAL)
check_include_file(zlib.h MT_HAVE_ZLIB)
if(NOT MT_HAVE_ISAL AND NOT MT_HAVE_ZLIB)
  message(STATUS "neither ISA-L nor zlib is here: .gz files will be refused (ENOTSUP)")
elseif(NOT MT_HAVE_ISAL)
  message(STATUS "ISA-L is not here: zlib compresses .gz files, several times slower")
endif()
set_source_files_properties(
  src/base/gzip.c PROPERTIES COMPILE_DEFINITIONS
  "MTB_HAVE_ISAL=$<BOOL:${MT_HAVE_ISAL}>;MTB_HAVE_ZLIB=$<BOOL:${MT_HAVE_ZLIB}>")
