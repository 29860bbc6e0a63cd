/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads into columns. A column comes into being with the first event that has something for it.
 */
#include "base/fail.h"
#include "mtprof/model/columns/build_slot.h"
#include "mtprof/model/prepare.h"

/* Fields that a column has as they are, texts as name + 1. */
static const struct {
    uint32_t field, column;
} plain[] = {
    {MTPROF__HAS_SEQUENCE, MTPROF_COLUMN_SEQUENCE},
    {MTPROF__HAS_FORWARD_THREAD, MTPROF_COLUMN_FORWARD_THREAD},
    {MTPROF__HAS_OVERLOAD, MTPROF_COLUMN_OVERLOAD},
    {MTPROF__HAS_RECORD_SCOPE, MTPROF_COLUMN_RECORD_SCOPE},
    {MTPROF__HAS_FLOPS, MTPROF_COLUMN_FLOPS},
    {MTPROF__HAS_MODULE, MTPROF_COLUMN_MODULE},
    {MTPROF__HAS_FOREIGN_ID, MTPROF_COLUMN_FOREIGN_ID},
    {MTPROF__HAS_MEMORY_BEFORE, MTPROF_COLUMN_MEMORY_BEFORE},
    {MTPROF__HAS_MEMORY_AFTER, MTPROF_COLUMN_MEMORY_AFTER},
};

static int put_plain(mtprof_model *model, const mtprof__payload *p, mtprof__columns *columns,
                     uint32_t event)
{
    for (size_t i = 0; i < MT_COUNT(plain); i++) {
        if ((p->fields & plain[i].field) == 0) {
            continue;
        }
        const mtprof_metadatum item = mtprof__payload_value(p, plain[i].field);
        uint64_t value = item.value;
        if (item.type == MTPROF_META_TEXT) {
            uint32_t name = 0;
            MT_TRY(mtprof__dictionary_name(&model->dictionary, item.text, &name));
            value = (uint64_t)name + 1;
        }
        MT_TRY(mtprof__columns_set(columns, plain[i].column, event, value));
    }
    return MTPROF_OK;
}

static int put_inputs(mtprof_model *model, const mtprof__payload_store *store,
                      mtprof__columns *columns, uint32_t event)
{
    const mtprof__payload *p = &store->payload;
    uint32_t inputs = p->inputs;
    if (store->inputs_id == 0) {
        MT_TRY(mtprof__dictionary_inputs(&model->dictionary, p->input_words, p->n_input_words,
                                         &inputs));
    }
    return mtprof__columns_set(columns, MTPROF_COLUMN_INPUTS, event, inputs);
}

int mtprof__payload_to_columns(mtprof_model *model, mtprof__payload_store *store,
                               mtprof__inputs_cache *cache, mtprof__columns *columns,
                               uint32_t event)
{
    const mtprof__payload *p = mtprof__payload_get(store, &model->dictionary, cache);
    const uint32_t memory = MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER;
    if (p == NULL) {
        return MTPROF_OK;
    }
    if ((p->fields & MTPROF__HAS_INPUTS) != 0) {
        MT_TRY(put_inputs(model, store, columns, event));
    }
    if ((p->fields & MTPROF__HAS_SCALARS) != 0) {
        uint32_t scalars = 0;
        MT_TRY(mtprof__dictionary_scalars(&model->dictionary, p->scalars, p->n_scalars, &scalars));
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_SCALARS, event, scalars));
    }
    if ((p->fields & MTPROF__HAS_STACK) != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_STACK, event, p->stack));
    }
    if ((p->fields & memory) != 0) {
        uint32_t device = 0;
        MT_TRY(mtprof__model_device(model, store->memory_device, &device));
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_MEMORY_DEVICE, event, device));
    }
    if ((p->fields & MTPROF__HAS_METADATA) != 0) {
        uint32_t metadata = 0;
        MT_TRY(
            mtprof__dictionary_metadata(&model->dictionary, p->metadata, p->n_metadata, &metadata));
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_METADATA, event, metadata));
    }
    return put_plain(model, p, columns, event);
}
