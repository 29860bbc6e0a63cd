/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace: the model makes its columns, streams and files of them without fault. Debug
 * builds check the promises of model.h after each assembly.
 */
#include "trace_input.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/trace_export.h>

#include <stdbool.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* What must hold whatever the input is. */
static void require(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

static int drop(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)context += length;
    return 0;
}

static void use_columns(mtprof_model *model)
{
    mtprof_column column;
    for (int id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        mtprof_status status = mtprof_model_column(model, (enum mtprof_column_id)id, &column);
        require(status == MTPROF_OK || status == MTPROF_ENOTSUP);
        require(status != MTPROF_OK || column.data != NULL);
    }
}

static void use_averages(mtprof_model *model, const mtprof_output *output)
{
    mtprof_averages_options options = {.struct_size = sizeof options,
                                       .group = MTPROF_GROUP_SHAPES | MTPROF_GROUP_STEP,
                                       .stack_n = 3};
    mtprof_averages *averages = NULL;
    if (mtprof_averages_new(model, &options, &averages) == MTPROF_OK) {
        require(mtprof_averages_table(averages, NULL, output) == MTPROF_OK);
    }
    mtprof_averages_free(averages);
}

static void use_exports(mtprof_model *model, const mtprof_output *output)
{
    for (int format = 0; format < MTPROF_EXPORT_COUNT; format++) {
        mtprof_status status =
            mtprof_export_to(model, (enum mtprof_export_format)format, output, NULL);
        require(status == MTPROF_OK || status == MTPROF_ENOTSUP);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    trace_input trace;
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    uint64_t written = 0;
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = drop};
    mtprof_model_options options = {.struct_size = sizeof options, .workers = 1, .discarded = 1};
    if (!trace_input_make(&trace, data, size_bytes)) {
        return 0;
    }
    mtprof_bytes bytes = trace_input_bytes(&trace);
    if (mtprof_reader_open_bytes(&bytes, &reader) == MTPROF_OK) {
        require(mtprof_model_take_reader(reader, &options, &model) == MTPROF_OK);
        use_exports(model, &output); /* before the columns, as a user may */
        use_columns(model);
        use_averages(model, &output);
        use_exports(model, &output);
    }
    mtprof_model_free(model);
    trace_input_free(&trace);
    return 0;
}
