/* SPDX-License-Identifier: Apache-2.0
 *
 * Status texts, the public view of the last failure, and the version.
 */
#include "base/compiler.h"
#include "base/fail.h"

#include <mtprof/status.h>
#include <mtprof/version.h>

#include <assert.h>
#include <stddef.h>

/* The public struct is the base layer's under another name: mtprof_last_error() hands it out. */
static_assert(sizeof(mtprof_error) == sizeof(mtb_failure), "mtprof_error mirrors mtb_failure");
static_assert(offsetof(mtprof_error, system_error) == offsetof(mtb_failure, system_error), "");
static_assert(offsetof(mtprof_error, offset) == offsetof(mtb_failure, offset), "");
static_assert(offsetof(mtprof_error, message) == offsetof(mtb_failure, message), "");

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char *mtprof_status_text(mtprof_status status)
{
    switch (status) {
#define X(name, value, text) \
    case MTPROF_##name:      \
        return text;
#include <mtprof/status.def>
#undef X
    }
    return "unknown status";
}

const char *mtprof_status_name(mtprof_status status)
{
    switch (status) {
#define X(name, value, text) \
    case MTPROF_##name:      \
        return #name;
#include <mtprof/status.def>
#undef X
    }
    return "UNKNOWN";
}

const mtprof_error *mtprof_last_error(void)
{
    return (const mtprof_error *)(const void *)mtb_last_failure();
}

const char *mtprof_version_string(void)
{
    return TEXT(MTPROF_VERSION_MAJOR) "." TEXT(MTPROF_VERSION_MINOR) "." TEXT(MTPROF_VERSION_PATCH);
}

uint32_t mtprof_version_number(void)
{
    return MTPROF_VERSION_MAJOR << 16 | MTPROF_VERSION_MINOR << 8 | MTPROF_VERSION_PATCH;
}
