/* SPDX-License-Identifier: Apache-2.0
 *
 * An accelerator whose memory the host cannot read, for tests. See unreadable_backend.c.
 */
#ifndef TESTS_SUPPORT_DEVICES_UNREADABLE_BACKEND_H
#define TESTS_SUPPORT_DEVICES_UNREADABLE_BACKEND_H

#include <mindtorch/backend.h>

#include <stdint.h>

/* Makes it serve npu:0 and npu:1. A status of libmindtorch. */
__attribute__((visibility("default"))) int mt_test_backend_register(void);

/* As a shared object, see mt_backend_load(). */
__attribute__((visibility("default"))) mt_backend_open_fn mt_backend_open;

/* Kernels launched so far. */
__attribute__((visibility("default"))) uint64_t mt_test_backend_launches(void);

#endif /* TESTS_SUPPORT_DEVICES_UNREADABLE_BACKEND_H */
