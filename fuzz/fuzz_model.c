/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace: the model makes its columns, streams and files of them without fault. Debug
 * builds check the promises of model.h after each assembly.
 */
#include "fuzz_require.h"
#include "mtprof/model/model_impl.h"
#include "trace_input.h"
#include "use_exports.h"
#include "use_file.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    OTHERS_EVERY = 8
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

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
        require(mtprof_model_get_column(model, (enum mtprof_column_id)id, &column) == MTPROF_OK);
        require(column.data != NULL || id > MTPROF_COLUMN_FLAGS);
    }
}

static void use_averages(mtprof_model *model)
{
    uint64_t written = 0;
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = drop};
    mtprof_averages_options options = {.struct_size = sizeof options,
                                       .group = MTPROF_GROUP_SHAPES | MTPROF_GROUP_STEP,
                                       .stack_n = 3};
    mtprof_averages *averages = NULL;
    if (mtprof_averages_new(model, &options, &averages) == MTPROF_OK) {
        require(mtprof_averages_table(averages, NULL, &output) == MTPROF_OK);
    }
    mtprof_averages_free(averages);
}

/* Everything, or only one use besides the columns, since tables and exports cost more than reading.
 * The upper bit: exports come after the columns, not first. */
static void use_model(mtprof_model *model, const trace_input *trace)
{
    bool late = (trace->which & 0x80) != 0;
    uint8_t which = trace->which & 0x7F;
    bool averages = which == 0 || which % OTHERS_EVERY == 0;
    bool files = which == 0 || which % OTHERS_EVERY == 1;
    bool exports = which == 0 || !(averages || files);
    if (!late && exports) {
        use_exports(model, which);
    }
    use_columns(model);
    require(mtprof__model_verify(model));
    if (averages) {
        use_averages(model);
    }
    if (files) {
        use_check(trace->bytes, trace->size);
        use_recover(trace->bytes, trace->size, model);
    }
    if (exports && (late || which == 0)) {
        use_exports(model, which);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    trace_input trace;
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    mtprof_model_options options = {.struct_size = sizeof options, .workers = 1, .discarded = 1};
    if (!trace_input_make(&trace, data, size_bytes)) {
        return 0;
    }
    mtprof_bytes bytes = trace_input_bytes(&trace);
    if (mtprof_reader_open_bytes(&bytes, &reader) == MTPROF_OK) {
        require(mtprof_model_take_reader(reader, &options, &model) == MTPROF_OK);
        use_model(model, &trace);
    }
    mtprof_model_free(model);
    trace_input_free(&trace);
    return 0;
}
