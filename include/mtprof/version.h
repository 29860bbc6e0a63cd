/* SPDX-License-Identifier: Apache-2.0
 *
 * Version of the library. The version is defined here and nowhere else: CMake, the wheel,
 * libmindtorch and the Python packages take it from here.
 *
 * Rules. 0.x: a minor version may change the API, a patch version never does. The shared library's
 * SONAME carries the ABI number, which changes whenever an existing program could break. Public
 * structs begin with struct_size, set by the caller; fields are only appended and zero means the
 * default, so a program built against an older header keeps working with a newer library.
 */
#ifndef MTPROF_VERSION_H
#define MTPROF_VERSION_H

#include <mtprof/api.h>

#include <stdint.h>

#define MTPROF_VERSION_MAJOR 0
#define MTPROF_VERSION_MINOR 2
#define MTPROF_VERSION_PATCH 0

MTPROF_BEGIN_DECLS

/** "0.2.0": of the library that runs, not of the header. Constant text. */
MTPROF_API const char *mtprof_version_string(void);

/** major << 16 | minor << 8 | patch of the library that runs. */
MTPROF_API uint32_t mtprof_version_number(void);

MTPROF_END_DECLS

#endif /* MTPROF_VERSION_H */
