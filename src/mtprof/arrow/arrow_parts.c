/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wall time of each step went to, as an explanation has it.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/arrow/arrow_table.h"

#include <mtprof/explain.h>

#include <string.h>

#define FIELD MTPROF__ARROW_FIELD

typedef struct part_row {
    int32_t step;
    uint32_t place;
    int64_t start_ns, end_ns, ns;
    mtprof_text state, part;
} part_row;

static const mtprof__arrow_field part_fields[] = {
    FIELD(part_row, place, "place", "I"),
    FIELD(part_row, step, "step", "i"),
    FIELD(part_row, start_ns, "start_ns", "l"),
    FIELD(part_row, end_ns, "end_ns", "l"),
    FIELD(part_row, state, "state", "U", .distinct = true),
    FIELD(part_row, part, "part", "U", .distinct = true),
    FIELD(part_row, ns, "ns", "l"),
};

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

/* Counts the rows, and adds them where there is a filler. False: out of memory. */
static bool read_parts(const mtprof_explain *explain, uint64_t *n, mtprof__arrow_filler *filler)
{
    static const char *const states[] = {"normal", "warm_up", "slow"};
    bool ok = true;
    *n = 0;
    for (uint32_t i = 0; ok && i < mtprof_explain_step_count(explain); i++) {
        mtprof_explain_step step = {.struct_size = sizeof step};
        (void)mtprof_explain_get_step(explain, i, &step);
        for (uint32_t part = 0; ok && part < MTPROF_PART_COUNT; part++) {
            part_row row = {
                .place = i,
                .step = step.step,
                .start_ns = step.start_ns,
                .end_ns = step.end_ns,
                .state = text_of(step.state < MT_COUNT(states) ? states[step.state] : "normal"),
                .part = text_of(mtprof_part_name(part)),
                .ns = mtprof_explain_part_ns(explain, i, part),
            };
            *n += row.ns != 0;
            ok = filler == NULL || row.ns == 0 || mtprof__arrow_fill_row(filler, &row);
        }
    }
    return ok;
}

mtprof_status mtprof_arrow_parts(mtprof_model *model, const mtprof_arrow_options *options,
                                 struct ArrowArrayStream *out)
{
    const mtprof_explain_options how = {.struct_size = sizeof how, .parts_only = 1};
    mtprof_explain *explain = NULL;
    mtprof__arrow_filler filler;
    uint64_t n = 0;
    *out = (struct ArrowArrayStream){.release = NULL};
    MT_TRY(mtprof_explain_new(model, &how, &explain));
    (void)read_parts(explain, &n, NULL);
    mtprof__arrow_table *table = mtprof__arrow_table_new(n);
    bool ok = table != NULL &&
              mtprof__arrow_fill_start(&filler, table, part_fields, MT_COUNT(part_fields)) &&
              read_parts(explain, &n, &filler);
    mtprof_explain_free(explain);
    return mtprof__arrow_give(table, ok, "parts", options, out);
}
