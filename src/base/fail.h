/* SPDX-License-Identifier: Apache-2.0
 *
 * How control code fails: a status, and a detail that is written on the failing path only.
 */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include "base/compiler.h"

#include <stdint.h>

/* Return the callee's status unchanged if it is a failure. Use only where nothing needs undoing. */
#define MT_TRY(expr)                 \
    do {                             \
        int mt_try_status_ = (expr); \
        if (mt_try_status_ != 0) {   \
            return mt_try_status_;   \
        }                            \
    } while (0)

enum {
    MTB_MESSAGE_BYTES = 496
};

/* The detail of the latest failure on this thread. */
typedef struct mtb_failure {
    int status;
    int system_error;
    int64_t offset;
    char message[MTB_MESSAGE_BYTES];
} mtb_failure;

/* Never NULL. */
mtb_failure *mtb_last_failure(void);

/*
 * Records a failure and returns its status, so that a function can end with `return mtb_fail(...)`.
 * Messages name the operation first, then the offending values: no full stop, no blame.
 */
int mtb_fail(int status, const char *format, ...) MT_PRINTF(2, 3);

/* The same with the byte offset of the input at which it happened. */
int mtb_fail_at(int status, int64_t offset, const char *format, ...) MT_PRINTF(3, 4);

/* The same with errno's text appended to the message. */
int mtb_fail_errno(int status, int system_error, const char *format, ...) MT_PRINTF(3, 4);

#ifdef __clang_analyzer__ /* it does not see that they return the status they are given */
#    define mtb_fail(status, ...) ((void)mtb_fail((status), __VA_ARGS__), (status))
#    define mtb_fail_at(status, offset, ...) \
        ((void)mtb_fail_at((status), (offset), __VA_ARGS__), (status))
#    define mtb_fail_errno(status, error, ...) \
        ((void)mtb_fail_errno((status), (error), __VA_ARGS__), (status))
#endif

#endif /* BASE_FAIL_H */
