/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of spans: torch's, ours, and the rest, which is kept as metadata so that an export has
 * it again.
 */
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

#define BIT(arg) ((uint64_t)1 << (MTPROF__ARG_##arg))

/* Arguments that a host span has a column for, or that say nothing new. */
static const uint64_t host_args =
    BIT(EXTERNAL_ID) | BIT(EXTERNAL_ID_OLD) | BIT(CORRELATION) | BIT(INDEX) | BIT(SEQUENCE) |
    BIT(FORWARD_THREAD) | BIT(DIMS) | BIT(STRIDES) | BIT(TYPES) | BIT(CONCRETE) | BIT(CALL_STACK) |
    BIT(HIERARCHY) | BIT(CORRELATION_ID) | BIT(PARENT_ID) | BIT(ASYNC) | BIT(STEP) |
    BIT(DEVICE_KIND) | BIT(RUNTIME_NAME) | BIT(RUNTIME_TID) | BIT(SHAPES) | BIT(STACK) |
    BIT(FLOPS) | BIT(OVERLOAD) | BIT(MODULE) | BIT(CPU_BEFORE) | BIT(CPU_AFTER) | BIT(CPU_DELTA) |
    BIT(NPU_BEFORE) | BIT(NPU_AFTER) | BIT(NPU_DELTA) | BIT(RECORDED_TS) | BIT(RECORDED_DUR) |
    BIT(RECORD_SCOPE);

static const uint64_t device_args = BIT(EXTERNAL_ID) | BIT(EXTERNAL_ID_OLD) | BIT(CORRELATION) |
                                    BIT(DEVICE) | BIT(STREAM) | BIT(BYTES) | BIT(CORRELATION_ID) |
                                    BIT(STEP) | BIT(DEVICE_KIND) | BIT(INDEX) | BIT(RECORDED_TS) |
                                    BIT(RECORDED_DUR);

static const uint64_t input_args =
    BIT(DIMS) | BIT(STRIDES) | BIT(TYPES) | BIT(CONCRETE) | BIT(SHAPES);

static uint64_t external_id(const mtprof__import *import)
{
    int64_t id = 0;
    return mtprof__raw_integer(&import->raw, MTPROF__ARG_EXTERNAL_ID, &id) ||
                   mtprof__raw_integer(&import->raw, MTPROF__ARG_EXTERNAL_ID_OLD, &id)
               ? (uint64_t)id
               : 0;
}

static int add_metadata(mtprof__import *import, mtprof__columns *columns, uint32_t place,
                        uint64_t understood)
{
    uint32_t metadata;
    import->found.skipped += import->raw.others_dropped;
    MT_TRY(mtprof__import_metadata(import, understood, &metadata));
    return metadata == 0 ? MTPROF_OK
                         : mtprof__columns_set(columns, MTPROF_COLUMN_METADATA, place, metadata);
}

/* ---- host ------------------------------------------------------------------------------------ */

/* Own id of the event, and the id of the op that a runtime call belongs to. */
static int add_ids(mtprof__import *import, mtprof__run *run, uint32_t place)
{
    mtprof__columns *columns = &run->columns;
    bool is_call = columns->kind[place] == MTPROF_EVENT_KIND_RUNTIME;
    uint64_t external = external_id(import);
    int64_t id = 0;
    bool ours = mtprof__raw_integer(&import->raw, MTPROF__ARG_CORRELATION_ID, &id);
    if (ours) {
        import->is_ours = true;
    } else if (is_call) {
        mtprof__raw_integer(&import->raw, MTPROF__ARG_CORRELATION, &id);
    } else {
        id = (int64_t)external;
    }
    if (id != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_CORRELATION, place, (uint64_t)id));
    }
    /* Ours is its own owner where it has none; ids of other tools' calls are of another kind. */
    if (is_call && external != 0 && !(ours && external == (uint64_t)id)) {
        MT_TRY(mtprof__links_add(&run->works, external, place));
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_PARENT_ID,
                            &id)) { /* 0: none, whatever the times say */
        MT_TRY(mtprof__links_add(&run->parents, (uint64_t)id, place));
    }
    return MTPROF_OK;
}

static int add_name(mtprof__import *import, mtprof__columns *columns, uint32_t place, unsigned arg,
                    uint32_t column)
{
    const mtb_slice *slice = mtprof__raw_arg(&import->raw, arg);
    if (slice == NULL || slice->type != MTB_SLICE_STRING || slice->length == 0) {
        return MTPROF_OK;
    }
    uint32_t name;
    MT_TRY(mtprof__import_name(import, slice, &name));
    return mtprof__columns_set(columns, column, place, name + 1);
}

static int add_memory(mtprof__import *import, mtprof__columns *columns, uint32_t place)
{
    int64_t before = 0;
    int64_t after = 0;
    bool on_device = (import->raw.known & (BIT(NPU_BEFORE) | BIT(NPU_AFTER))) != 0;
    unsigned arg = on_device ? MTPROF__ARG_NPU_BEFORE : MTPROF__ARG_CPU_BEFORE;
    if (mtprof__raw_integer(&import->raw, arg, &before)) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_MEMORY_BEFORE, place, (uint64_t)before));
    }
    arg = on_device ? MTPROF__ARG_NPU_AFTER : MTPROF__ARG_CPU_AFTER;
    if (mtprof__raw_integer(&import->raw, arg, &after)) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_MEMORY_AFTER, place, (uint64_t)after));
    }
    /* 1 + the device's number, until import_finish.c knows the model's. */
    return mtprof__columns_set(columns, MTPROF_COLUMN_MEMORY_DEVICE, place, on_device);
}

/* "device_type": what the op works for. */
static int add_device_kind(mtprof__import *import, mtprof__columns *columns, uint32_t place)
{
    const mtb_slice *slice = mtprof__raw_arg(&import->raw, MTPROF__ARG_DEVICE_KIND);
    if (slice == NULL || slice->type != MTB_SLICE_STRING || slice->length == 0 ||
        mtb_slice_is_literal(slice, "CPU")) {
        return MTPROF_OK;
    }
    if (import->device_name.bytes == NULL) {
        MT_TRY(mtprof__import_keep(import, slice, &import->device_name));
    }
    columns->flags[place] |= MTPROF_EVENT_FLAG_DISPATCHED;
    return MTPROF_OK;
}

/* What only a few spans have. */
static int add_rare(mtprof__import *import, mtprof__columns *columns, uint32_t place)
{
    uint64_t known = import->raw.known;
    int64_t value = 0;
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_FLOPS, &value)) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_FLOPS, place, (uint64_t)value));
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_RECORD_SCOPE, &value) && value > 0 &&
        value < UINT32_MAX) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_RECORD_SCOPE, place, (uint32_t)value));
    }
    if ((known & (BIT(CPU_BEFORE) | BIT(CPU_AFTER) | BIT(NPU_BEFORE) | BIT(NPU_AFTER))) != 0) {
        MT_TRY(add_memory(import, columns, place));
    }
    MT_TRY(add_name(import, columns, place, MTPROF__ARG_OVERLOAD, MTPROF_COLUMN_OVERLOAD));
    MT_TRY(add_name(import, columns, place, MTPROF__ARG_HIERARCHY, MTPROF_COLUMN_MODULE));
    MT_TRY(add_name(import, columns, place, MTPROF__ARG_MODULE, MTPROF_COLUMN_MODULE));
    return add_device_kind(import, columns, place);
}

static int add_inputs(mtprof__import *import, mtprof__columns *columns, uint32_t place)
{
    uint32_t inputs;
    uint32_t scalars;
    MT_TRY(mtprof__import_inputs(import, &inputs, &scalars));
    if (inputs != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_INPUTS, place, inputs));
    }
    if (scalars != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_SCALARS, place, scalars));
    }
    return MTPROF_OK;
}

static int add_sequence(mtprof__import *import, mtprof__columns *columns, uint32_t place)
{
    int64_t value = 0;
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_SEQUENCE, &value) && value >= 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_SEQUENCE, place, (uint64_t)value));
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_FORWARD_THREAD, &value) && value > 0 &&
        value < UINT32_MAX) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_FORWARD_THREAD, place, (uint32_t)value));
    }
    return MTPROF_OK;
}

int mtprof__import_host_args(mtprof__import *import, uint32_t track, uint32_t place)
{
    mtprof__run *run = &import->tracks[track].run;
    mtprof__columns *columns = &run->columns;
    uint64_t known = import->raw.known;
    uint64_t understood = host_args;
    if (known == 0 && import->raw.n_others == 0) {
        return MTPROF_OK;
    }
    MT_TRY(add_ids(import, run, place));
    if ((known & (BIT(SEQUENCE) | BIT(FORWARD_THREAD))) != 0) {
        MT_TRY(add_sequence(import, columns, place));
    }
    if ((known & input_args) != 0) {
        MT_TRY(add_inputs(import, columns, place));
    }
    if ((known & (BIT(CALL_STACK) | BIT(STACK))) != 0) {
        uint32_t stack;
        MT_TRY(mtprof__import_stack(import, &stack));
        if (stack != 0) {
            MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_STACK, place, stack));
        }
    }
    if ((known & (BIT(FLOPS) | BIT(CPU_BEFORE) | BIT(CPU_AFTER) | BIT(NPU_BEFORE) | BIT(NPU_AFTER) |
                  BIT(OVERLOAD) | BIT(RECORD_SCOPE) | BIT(HIERARCHY) | BIT(MODULE) |
                  BIT(DEVICE_KIND))) != 0) {
        MT_TRY(add_rare(import, columns, place));
    }
    int64_t function = 0;
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_RECORD_FUNCTION, &function) &&
        function == 0) {
        understood |= BIT(RECORD_FUNCTION); /* 0 says that there is none */
    }
    return add_metadata(import, columns, place, understood);
}

/* ---- device ---------------------------------------------------------------------------------- */

int mtprof__import_device_args(mtprof__import *import, uint32_t track, uint32_t place)
{
    mtprof__run *run = &import->tracks[track].run;
    mtprof__columns *columns = &run->columns;
    uint64_t external = external_id(import);
    int64_t value = 0;
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_CORRELATION, &value) && value != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_CORRELATION, place, (uint64_t)value));
    }
    if (external != 0) {
        MT_TRY(mtprof__links_add(&run->works, external, place));
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_BYTES, &value) && value != 0) {
        MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_BYTES, place, (uint64_t)value));
    }
    const mtb_slice *type = mtprof__raw_arg(&import->raw, MTPROF__ARG_DEVICE_KIND);
    if (type != NULL && type->type == MTB_SLICE_STRING && type->length > 0 &&
        import->device_name.bytes == NULL) {
        MT_TRY(mtprof__import_keep(import, type, &import->device_name));
    }
    return add_metadata(import, columns, place, device_args);
}
