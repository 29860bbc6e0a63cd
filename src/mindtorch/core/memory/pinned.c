/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory, see pinned.h.
 */
#include "mindtorch/core/memory/pinned.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mindtorch/core/device/streams.h"
#include "mindtorch/core/memory/memory_classes.h"
#include "mindtorch/core/memory/stream_uses.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/trace/device_trace.h"

#include <mindtorch/status.h>

#include <string.h>

enum {
    SMALLEST_EXPONENT = 9, /* blocks of 512 bytes */
    EXPONENTS = 62
};

struct mt__pinned {
    mt__pinned *next; /* in a list */
    void *memory;
    mt__uses *uses; /* under the lock */
    uint32_t exponent;
};

mtb_lock mt__pinned_lock = MTB_LOCK_INIT(MTB_RANK_PINNED);
static mt__pinned *lists[EXPONENTS]; /* blocks that no tensor has; under the lock */

/* TH4 of thread_cache.h: another thread may have been changing the lists, so the child starts with
 * empty ones. */
void mt__pinned_after_fork(void)
{
    memset(lists, 0, sizeof lists);
}

/* ---- the backend ---- */

static int ask_backend(size_t bytes, void **memory)
{
    const mt_backend *backend = mt__backend_of(MT_NPU);
    const mt_backend *cpu = mt__cpu_backend();
    *memory = NULL;
    return backend->host_allocate != NULL ? backend->host_allocate(backend->context, bytes, memory)
                                          : cpu->allocate(cpu->context, 0, bytes, memory);
}

static void give_to_backend(mt__pinned *block)
{
    const mt_backend *backend = mt__backend_of(MT_NPU);
    const mt_backend *cpu = mt__cpu_backend();
    size_t bytes = (size_t)1 << block->exponent;
    if (backend->host_allocate != NULL) {
        backend->host_release(backend->context, block->memory, bytes);
    } else {
        cpu->release(cpu->context, 0, block->memory, bytes);
    }
    mt__uses_free(block->uses);
    mtb_free(block);
}

/* Waits for all uses of the blocks in the lists, and releases the blocks. */
static void empty_lists(void)
{
    mtb_lock_acquire(&mt__pinned_lock);
    for (uint32_t i = 0; i < EXPONENTS; i++) {
        while (lists[i] != NULL) {
            mt__pinned *block = lists[i];
            lists[i] = block->next;
            mt__uses_wait(block->uses);
            give_to_backend(block);
        }
    }
    mtb_lock_release(&mt__pinned_lock);
}

static MT_COLD int refuse(uint64_t bytes)
{
    return mtb_fail(MT_ENOMEM,
                    "pin_memory: can't allocate memory: you tried to allocate %llu bytes",
                    (unsigned long long)bytes);
}

static int new_block(uint64_t bytes, uint32_t exponent, mt__pinned **out)
{
    mt__pinned *block = mtb_calloc(1, sizeof *block);
    int status = block != NULL ? ask_backend((size_t)1 << exponent, &block->memory) : MT_ENOMEM;
    if (block != NULL && status == MT_ENOMEM) {
        empty_lists();
        status = ask_backend((size_t)1 << exponent, &block->memory);
    }
    if (status != MT_OK) {
        mtb_free(block);
        return status == MT_ENOMEM ? refuse(bytes) : status;
    }
    block->exponent = exponent;
    *out = block;
    return MT_OK;
}

/* ---- blocks ---- */

/* The first block that is no longer in use; NULL: there is none. */
static mt__pinned *find_block(uint32_t exponent)
{
    mt__pinned *found = NULL;
    mtb_lock_acquire(&mt__pinned_lock);
    for (mt__pinned **link = &lists[exponent]; *link != NULL; link = &(*link)->next) {
        if (mt__uses_done((*link)->uses)) {
            found = *link;
            *link = found->next;
            break;
        }
    }
    mtb_lock_release(&mt__pinned_lock);
    return found;
}

int mt__pinned_take(uint64_t bytes, mt__pinned **out)
{
    *out = NULL;
    if (bytes > (uint64_t)1 << (EXPONENTS - 1)) {
        return refuse(bytes);
    }
    uint32_t exponent = SMALLEST_EXPONENT;
    while ((uint64_t)1 << exponent < bytes) {
        exponent++;
    }
    *out = find_block(exponent);
    return *out != NULL ? MT_OK : new_block(bytes, exponent, out);
}

void *mt__pinned_memory(const mt__pinned *block)
{
    return block->memory;
}

void mt__pinned_free(void *block, void *memory)
{
    (void)memory;
    mt__pinned *given = block;
    if (MT_UNLIKELY(mt__forked)) {
        return; /* its list of uses may be inconsistent (TH4) */
    }
    mtb_lock_acquire(&mt__pinned_lock);
    given->next = lists[given->exponent];
    lists[given->exponent] = given;
    mtb_lock_release(&mt__pinned_lock);
}

mt__pinned *mt__pinned_of(const mt__storage *storage)
{
    const mt__storage *owner =
        storage->unusual == MT_STORAGE_ALIAS ? storage->free_context : storage;
    return owner->free_data == mt__pinned_free ? owner->free_context : NULL;
}

bool mt__pinned_copies_alone(mt_device device)
{
    const mt_backend *backend = mt__backend_of(device);
    return backend != NULL && !mt__forked && backend->host_allocate != NULL &&
           backend->event_new != NULL;
}

void mt__pinned_used(mt__pinned *block, mt_stream *stream)
{
    mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_EVENT_RECORD);
    mtb_lock_acquire(&mt__pinned_lock);
    mt__uses_note(&block->uses, stream);
    mtb_lock_release(&mt__pinned_lock);
    mt__trace_end(token);
}
