/* SPDX-License-Identifier: Apache-2.0
 */
#include "use_exports.h"

#include "fuzz_require.h"

#include <mtprof/export.h>

#include <string.h>

/* The last bit of `which` is an option of the format that the others pick. */
enum {
    OPTION_BITS = 1
};

typedef struct sink {
    bool is_text;
    uint64_t length;
} sink;

static int drop(void *context, const void *bytes, size_t length)
{
    sink *to = context;
    to->length += length;
    if (to->is_text && length > 0) {
        require(memchr(bytes, '\0', length) == NULL);
    }
    return 0;
}

static void use_export(mtprof_model *model, enum mtprof_export_format format, bool option)
{
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {
        .struct_size = sizeof options,
        .flavor = option ? MTPROF_FLAVOR_MINDTORCH : MTPROF_FLAVOR_TORCH,
        .metric = option ? "self_device_time_total" : NULL,
        .device = option && format >= MTPROF_EXPORT_MEMORY && format <= MTPROF_EXPORT_MEMORY_HTML
                      ? "cpu"
                      : NULL,
        .report = &report};
    sink to = {.is_text = format == MTPROF_EXPORT_CHROME || format == MTPROF_EXPORT_EXECUTION ||
                          format == MTPROF_EXPORT_SPEEDSCOPE || format == MTPROF_EXPORT_MEMORY};
    mtprof_output output = {.struct_size = sizeof output, .context = &to, .write = drop};
    mtprof_status status = mtprof_export_to(model, format, &output, &options);
    require(status == MTPROF_OK || status == MTPROF_ENOTSUP);
    require(status != MTPROF_OK || report.bytes == to.length);
}

void use_exports(mtprof_model *model, uint8_t which)
{
    if (which != 0) {
        which--;
        use_export(model, (enum mtprof_export_format)((which >> OPTION_BITS) % MTPROF_EXPORT_COUNT),
                   (which & 1) != 0);
        return;
    }
    for (int format = 0; format < MTPROF_EXPORT_COUNT; format++) {
        use_export(model, (enum mtprof_export_format)format, false);
        use_export(model, (enum mtprof_export_format)format, true);
    }
}
