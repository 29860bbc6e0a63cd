/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and the detail of the last failure on this thread.
 *
 * Control calls return a status; recording calls return nothing and count what they could not
 * keep (health.h).
 */
#ifndef MTPROF_STATUS_H
#define MTPROF_STATUS_H

#include <mtprof/api.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef enum mtprof_status {
#define X(name, value, text) MTPROF_##name = (value),
#include <mtprof/status.def>
#undef X
} mtprof_status;

/** What went wrong in the last failing call on this thread. Owned by the library. */
typedef struct mtprof_error {
    mtprof_status status;
    int32_t system_error; /**< errno of the system call that failed, or 0 */
    int64_t offset;       /**< byte offset in the input, or -1 where there is no input */
    char message[496];
} mtprof_error;

/** Constant text for a status; never NULL, also for values this build does not know. */
MTPROF_API const char *mtprof_status_text(mtprof_status status);

/** "EINVAL" and so on; never NULL. */
MTPROF_API const char *mtprof_status_name(mtprof_status status);

/**
 * Detail of the last call on this thread that did not return MTPROF_OK.
 *
 * Valid until the next failing call on the same thread. A successful call leaves it alone, so
 * look at it only after a failure. Never NULL.
 */
MTPROF_API const mtprof_error *mtprof_last_error(void);

MTPROF_END_DECLS

#endif /* MTPROF_STATUS_H */
