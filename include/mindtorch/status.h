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

MT_BEGIN_DECLS

typedef enum mt_status {
#define X(name, value, exception, text) MT_##name = (value),
#include <mindtorch/status.def>
#undef X
} mt_status;

/** "EVALUE" and so on; never NULL, also for values this build does not know. */
MT_API const char *mt_status_name(int status);

/** The Python exception that torch raises for it, "ValueError" and so on; "" for MT_OK. */
MT_API const char *mt_status_exception(int status);

/**
 * What went wrong in the last failing call on this thread: the operation, then the offending
 * values. Valid until the next failing call on the thread; a successful one leaves it alone.
 */
MT_API const char *mt_error_message(void);

/**
 * For backends, operators and hooks that users write: notes a message and returns `status`, so that
 * a function can end in `return mt_fail(MT_EVALUE, "...")`. The text is copied, at most 495 bytes.
 */
MT_API int mt_fail(int status, const char *message);

MT_END_DECLS

#endif /* MINDTORCH_STATUS_H */
