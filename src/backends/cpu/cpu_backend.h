/* SPDX-License-Identifier: Apache-2.0
 *
 * The host as a backend.
 */
#ifndef BACKENDS_CPU_CPU_BACKEND_H
#define BACKENDS_CPU_CPU_BACKEND_H

#include <mindtorch/backend.h>

const mt_backend *mt__cpu_backend(void);

#endif /* BACKENDS_CPU_CPU_BACKEND_H */
