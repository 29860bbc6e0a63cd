/* SPDX-License-Identifier: Apache-2.0
 *
 * What the allocations of a device add up to.
 */
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/model/events/event.h"

#include <string.h>

static void add(mtprof_memory *memory, const mtprof__event *event)
{
    if (event->bytes < 0) {
        memory->frees++;
        memory->freed_bytes = mtb_sub_sat(memory->freed_bytes, event->bytes);
    } else {
        memory->allocations++;
        memory->allocated_bytes = mtb_add_sat(memory->allocated_bytes, event->bytes);
    }
    if (event->allocated > memory->peak_bytes || memory->allocations + memory->frees == 1) {
        memory->peak_bytes = event->allocated;
        memory->peak_ns = event->start_ns;
        memory->peak_owner = event->owner;
    }
    memory->end_bytes = event->allocated;
}

static int read_all(mtprof_model *model, uint32_t device, mtprof_memory *memory)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    MT_TRY(mtprof__events_open(model, &events));
    int status = mtprof__events_next(events, &event);
    while (status == MTPROF_OK) {
        if (event->kind == MTPROF_EVENT_KIND_ALLOC && event->device == device) {
            add(memory, event);
        }
        status = mtprof__events_next(events, &event);
    }
    mtprof__events_close(events);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

mtprof_status mtprof_model_get_memory(mtprof_model *model, uint32_t device, mtprof_memory *memory)
{
    mtprof_memory own = {0};
    if (memory->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "model memory: struct_size is 0");
    }
    MT_TRY(read_all(model, device, &own));
    mtprof_device known; /* after reading: allocations make devices known, too */
    if (!mtprof_model_device(model, device, &known)) {
        return mtb_fail(MTPROF_EINVAL, "model memory: there is no device %u", device);
    }
    mtb_write_struct(memory, &own);
    return MTPROF_OK;
}
