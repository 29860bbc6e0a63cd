/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and the detail of the last failure on this thread.
 *
 * Every call that can fail returns a status: 0, or a negative code of status.def. Bad input never
 * ends the process. Results come through the last parameters and are NULL or zero on failure.
 */
#ifndef MINDTORCH_STATUS_H
#define MINDTORCH_STATUS_H

#include <mindtorch/api.h>

#include <stdint.h>

MT_BEGIN_DECLS

typedef enum mt_status {
#define X(name, value, exception, text) MT_##name = (value),
#include <mindtorch/status.def>
#undef X
} mt_status;

/** The last failure on this thread. Owned by the library. Has the same fields as mtprof_error of
 * libmtprof. */
typedef struct mt_error {
    mt_status status;
    int32_t system_error; /**< errno of the system call that failed, or 0 */
    int64_t offset;       /**< byte offset in the input, or -1 where there is no input */
    char message[496];    /**< the operation, then the offending values */
} mt_error;

/** Constant text for a status; never NULL, also for values this build does not know. */
MT_API const char *mt_status_text(mt_status status);

/** "EVALUE" and so on; never NULL. */
MT_API const char *mt_status_name(mt_status status);

/** The Python exception that torch raises for it, "ValueError" and so on; "" for MT_OK. */
MT_API const char *mt_status_exception(mt_status status);

/**
 * Detail of the last call on this thread that did not return MT_OK.
 *
 * Valid until the next failing call on the same thread. A successful call does not change it, so
 * read it only after a failure. Never NULL.
 */
MT_API const mt_error *mt_last_error(void);

/**
 * For backends, operators and hooks that users write: sets the message and returns `status`, so
 * that a function can end with `return mt_fail(MT_EVALUE, "...")`. The text is copied, at most 495
 * bytes.
 */
MT_API mt_status mt_fail(mt_status status, const char *message);

MT_END_DECLS

#endif /* MINDTORCH_STATUS_H */
