/* SPDX-License-Identifier: Apache-2.0
 *
 * The detail of the last failure, one per thread.
 *
 * Why a plain (not initial-exec) thread variable: it is half a KiB, and static TLS is scarce in a
 * library that is opened at run time. Only failing paths touch it.
 */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread mtb_failure last = {.offset = -1};

mtb_failure *mtb_last_failure(void)
{
    return &last;
}

static void note(int status, int system_error, int64_t offset, const char *format, va_list args)
{
    last.status = status;
    last.system_error = system_error;
    last.offset = offset;
    vsnprintf(last.message, sizeof last.message, format, args);
}

int mtb_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, 0, -1, format, args);
    va_end(args);
    return status;
}

int mtb_fail_at(int status, int64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, 0, offset, format, args);
    va_end(args);
    return status;
}

int mtb_fail_errno(int status, int system_error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, system_error, -1, format, args);
    va_end(args);
    size_t used = strlen(last.message);
    char text[128];
    const char *reason = strerror_r(system_error, text, sizeof text);
    snprintf(last.message + used, sizeof last.message - used, ": %s", reason);
    return status;
}
