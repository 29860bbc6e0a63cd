/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads into columns. A column comes into being with the first event that has something for it.
 */
#include "base/fail.h"
#include "mtprof/model/columns/build_slot.h"
#include "mtprof/model/prepare.h"

/* Where a column has the value of an event; the column is made where it is missing. */
static int cell(mtprof__columns *columns, enum mtprof_column_id id, uint32_t event, void **out)
{
    void *data = NULL;
    MT_TRY(mtprof__columns_extra(columns, id, &data));
    *out = (char *)data + (size_t)event * mtprof__column_item_bytes(id);
    return MTPROF_OK;
}

static int put_u32(mtprof__columns *columns, enum mtprof_column_id id, uint32_t event,
                   uint32_t value)
{
    void *at = NULL;
    MT_TRY(cell(columns, id, event, &at));
    *(uint32_t *)at = value;
    return MTPROF_OK;
}

static int put_u64(mtprof__columns *columns, enum mtprof_column_id id, uint32_t event,
                   uint64_t value)
{
    void *at = NULL;
    MT_TRY(cell(columns, id, event, &at));
    *(uint64_t *)at = value;
    return MTPROF_OK;
}

static int put_name(mtprof_model *model, mtprof__columns *columns, enum mtprof_column_id id,
                    uint32_t event, mtprof_text text)
{
    uint32_t name = 0;
    MT_TRY(mtprof__dictionary_name(&model->dictionary, text, &name));
    return put_u32(columns, id, event, name + 1);
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
    return put_u32(columns, MTPROF_COLUMN_INPUTS, event, inputs);
}

static int put_memory(mtprof_model *model, const mtprof__payload_store *store,
                      mtprof__columns *columns, uint32_t event)
{
    const mtprof__payload *p = &store->payload;
    uint32_t device = 0;
    void *at = NULL;
    MT_TRY(mtprof__model_device(model, store->memory_device, &device));
    MT_TRY(cell(columns, MTPROF_COLUMN_MEMORY_DEVICE, event, &at));
    *(uint8_t *)at = (uint8_t)device;
    if ((p->fields & MTPROF__HAS_MEMORY_BEFORE) != 0) {
        MT_TRY(put_u64(columns, MTPROF_COLUMN_MEMORY_BEFORE, event, (uint64_t)p->memory_before));
    }
    if ((p->fields & MTPROF__HAS_MEMORY_AFTER) != 0) {
        MT_TRY(put_u64(columns, MTPROF_COLUMN_MEMORY_AFTER, event, (uint64_t)p->memory_after));
    }
    return MTPROF_OK;
}

static int put_details(mtprof_model *model, const mtprof__payload *p, mtprof__columns *columns,
                       uint32_t event)
{
    if ((p->fields & MTPROF__HAS_SEQUENCE) != 0) {
        MT_TRY(put_u64(columns, MTPROF_COLUMN_SEQUENCE, event, (uint64_t)p->sequence));
    }
    if ((p->fields & MTPROF__HAS_FORWARD_THREAD) != 0) {
        MT_TRY(put_u32(columns, MTPROF_COLUMN_FORWARD_THREAD, event, p->forward_thread));
    }
    if ((p->fields & MTPROF__HAS_OVERLOAD) != 0) {
        MT_TRY(put_name(model, columns, MTPROF_COLUMN_OVERLOAD, event, p->overload));
    }
    if ((p->fields & MTPROF__HAS_RECORD_SCOPE) != 0) {
        MT_TRY(put_u32(columns, MTPROF_COLUMN_RECORD_SCOPE, event, p->record_scope));
    }
    if ((p->fields & MTPROF__HAS_FLOPS) != 0) {
        MT_TRY(put_u64(columns, MTPROF_COLUMN_FLOPS, event, p->flops));
    }
    if ((p->fields & MTPROF__HAS_MODULE) != 0) {
        MT_TRY(put_name(model, columns, MTPROF_COLUMN_MODULE, event, p->module));
    }
    if ((p->fields & MTPROF__HAS_FOREIGN_ID) != 0) {
        MT_TRY(put_u64(columns, MTPROF_COLUMN_FOREIGN_ID, event, p->foreign_id));
    }
    return MTPROF_OK;
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
        MT_TRY(put_u32(columns, MTPROF_COLUMN_SCALARS, event, scalars));
    }
    if ((p->fields & MTPROF__HAS_STACK) != 0) {
        MT_TRY(put_u32(columns, MTPROF_COLUMN_STACK, event, p->stack));
    }
    if ((p->fields & memory) != 0) {
        MT_TRY(put_memory(model, store, columns, event));
    }
    if ((p->fields & MTPROF__HAS_METADATA) != 0) {
        uint32_t metadata = 0;
        MT_TRY(
            mtprof__dictionary_metadata(&model->dictionary, p->metadata, p->n_metadata, &metadata));
        MT_TRY(put_u32(columns, MTPROF_COLUMN_METADATA, event, metadata));
    }
    return put_details(model, p, columns, event);
}
