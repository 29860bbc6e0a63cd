/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the status codes, the detail of the last failure, and the version.
 */
#include "base/compiler.h"
#include "base/fail.h"

#include <mindtorch/status.h>
#include <mindtorch/version.h>

#include <assert.h>
#include <stddef.h>

/* The public struct is the base layer's under another name: mt_last_error() hands it out. */
static_assert(sizeof(mt_error) == sizeof(mtb_failure), "mt_error mirrors mtb_failure");
static_assert(offsetof(mt_error, system_error) == offsetof(mtb_failure, system_error), "");
static_assert(offsetof(mt_error, offset) == offsetof(mtb_failure, offset), "");
static_assert(offsetof(mt_error, message) == offsetof(mtb_failure, message), "");

typedef struct status_row {
    int status;
    const char *name, *exception, *text;
} status_row;

static const status_row *row_of(int status)
{
    static const status_row rows[] = {
#define X(name, value, exception, text) {(value), #name, (exception), (text)},
#include <mindtorch/status.def>
#undef X
    };
    static const status_row unknown = {0, "EUNKNOWN", "RuntimeError", "unknown status"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].status == status) {
            return &rows[i];
        }
    }
    return &unknown;
}

const char *mt_status_text(mt_status status)
{
    return row_of(status)->text;
}

const char *mt_status_name(mt_status status)
{
    return row_of(status)->name;
}

const char *mt_status_exception(mt_status status)
{
    return row_of(status)->exception;
}

const mt_error *mt_last_error(void)
{
    return (const mt_error *)(const void *)mtb_last_failure();
}

const char *mt_version_string(void)
{
    return MT_VERSION; /* cmake/mindtorch.cmake sets it and the numbers */
}

uint32_t mt_version_number(void)
{
    return MT_VERSION_MAJOR << 16 | MT_VERSION_MINOR << 8 | MT_VERSION_PATCH;
}

mt_status mt_fail(mt_status status, const char *message)
{
    return mtb_fail(status, "%s", message != NULL ? message : "");
}
