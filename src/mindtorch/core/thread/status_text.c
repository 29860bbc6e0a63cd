/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the status codes, and the detail of the last failure.
 */
#include "base/fail.h"

#include <mindtorch/status.h>

const char *mt_status_name(int status)
{
    switch (status) {
#define X(name, value, exception, text) \
    case (value):                       \
        return #name;
#include <mindtorch/status.def>
#undef X
    default: return "EUNKNOWN";
    }
}

const char *mt_status_exception(int status)
{
    switch (status) {
#define X(name, value, exception, text) \
    case (value):                       \
        return (exception);
#include <mindtorch/status.def>
#undef X
    default: return "RuntimeError";
    }
}

const char *mt_error_message(void)
{
    return mtb_last_failure()->message;
}

int mt_fail(int status, const char *message)
{
    return mtb_fail(status, "%s", message != NULL ? message : "");
}
