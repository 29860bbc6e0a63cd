/* SPDX-License-Identifier: Apache-2.0
 *
 * Work of CUDA graphs by the op that captured it. A source tells it as metadata of the work
 * (docs/nvidia.md); the same node has the same metadata in each replay, so each is read once.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/model/model_impl.h"

#include <string.h>

/* The name of the op, plus 1; 1: none is told. */
static int read_capture(mtprof__grouper *grouper, uint32_t metadata, uint32_t *name_plus_1)
{
    mtprof_metadatum item;
    *name_plus_1 = 1;
    for (uint32_t i = 0; mtprof_model_event_metadata(grouper->model, metadata, i, &item); i++) {
        if (item.type == MTPROF_META_TEXT && strcmp(item.key.bytes, "captured op") == 0) {
            uint32_t name;
            MT_TRY(mtprof__dictionary_name(&grouper->model->dictionary, item.text, &name));
            *name_plus_1 = name + 1;
        }
    }
    return 0;
}

static int replace_names(mtprof__grouper *grouper, const uint32_t *metadata, uint32_t *known)
{
    const mtprof__source_columns *c = &grouper->columns;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t of = c->device[i] != 0 ? metadata[i] : 0;
        if (of != 0 && known[of] == 0) {
            MT_TRY(read_capture(grouper, of, &known[of]));
        }
        grouper->own_names[i] = of != 0 && known[of] > 1 ? known[of] - 1 : c->name[i];
    }
    return 0;
}

int mtprof__use_captured_names(mtprof__grouper *grouper)
{
    mtprof_column column;
    mtprof__source_columns *c = &grouper->columns;
    if ((grouper->options.group & MTPROF_GROUP_CAPTURE) == 0 || c->n == 0) {
        return 0;
    }
    MT_TRY(mtprof_model_get_column(grouper->model, MTPROF_COLUMN_METADATA, &column));
    if (column.data == NULL || column.count == 0) {
        return 0;
    }
    size_t n = (size_t)mtprof__largest(column.data, c->n) + 1;
    uint32_t *known = mtb_calloc(n, sizeof *known);
    grouper->own_names = mtb_calloc(c->n, sizeof *grouper->own_names);
    int status = known == NULL || grouper->own_names == NULL
                     ? mtb_fail(MTPROF_ENOMEM, "averages: no memory for names of captured work")
                     : replace_names(grouper, column.data, known);
    mtb_free(known);
    if (status == 0) {
        c->name = grouper->own_names;
    }
    return status;
}
