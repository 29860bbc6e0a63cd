/* SPDX-License-Identifier: Apache-2.0
 *
 * Version of the library. Both libraries are released together and have one version, with the rules
 * of <mtprof/version.h>; MTPROF_VERSION_MAJOR and so on are its numbers at compile time.
 */
#ifndef MINDTORCH_VERSION_H
#define MINDTORCH_VERSION_H

#include <mindtorch/api.h>

#include <stdint.h>

MT_BEGIN_DECLS

/** "0.2.0": of the library that runs, not of the header. Constant text. */
MT_API const char *mt_version_string(void);

/** major << 16 | minor << 8 | patch of the library that runs. */
MT_API uint32_t mt_version_number(void);

MT_END_DECLS

#endif /* MINDTORCH_VERSION_H */
