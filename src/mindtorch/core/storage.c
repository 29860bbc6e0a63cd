/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages, see storage.h.
 */
#include "mindtorch/core/storage.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/memory.h"
#include "mindtorch/core/thread_cache.h"

static MT_COLD int refuse(void)
{
    (void)mtb_fail(MT_ENOMEM, "storage: no memory for its record");
    return MT_ENOMEM;
}

int mt__storage_new(mt_device device, uint64_t bytes, mt__storage **out)
{
    *out = NULL;
    mt__storage *storage = mt__pool_take_fast(MT_POOL_STORAGE, sizeof *storage);
    if (MT_UNLIKELY(storage == NULL)) {
        return refuse();
    }
    atomic_init(&storage->refs, 1);
    atomic_init(&storage->version, 0);
    storage->data = NULL;
    storage->bytes = bytes;
    storage->device = device;
    storage->block_class = 0;
    storage->free_data = NULL;
    storage->free_context = NULL;
    storage->borrowed = false;
    if (MT_LIKELY(bytes != 0)) {
        int status = mt__memory_take(device, bytes, &storage->data, &storage->block_class);
        if (MT_UNLIKELY(status != MT_OK)) {
            mt__pool_give_fast(MT_POOL_STORAGE, storage);
            return status;
        }
    }
    *out = storage;
    return MT_OK;
}

int mt__storage_borrow(void *data, uint64_t bytes, mt_free_fn *free_data, void *context,
                       mt__storage **out)
{
    *out = NULL;
    mt__storage *storage = mt__pool_take_fast(MT_POOL_STORAGE, sizeof *storage);
    if (storage == NULL) {
        return refuse();
    }
    *storage = (mt__storage){
        .refs = 1,
        .data = data,
        .bytes = bytes,
        .device = MT_CPU,
        .free_data = free_data,
        .free_context = context,
        .borrowed = true,
    };
    *out = storage;
    return MT_OK;
}

mt__storage *mt__storage_retain(mt__storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}

void mt__storage_release(mt__storage *storage)
{
    if (storage == NULL) {
        return;
    }
    /* Who sees 1 holds the only reference: nobody can add one, and no atomic change is needed. The
     * acquire pairs with the release below, so that what others wrote is seen before the end. */
    if (atomic_load_explicit(&storage->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (MT_UNLIKELY(storage->borrowed)) {
        if (storage->free_data != NULL) {
            storage->free_data(storage->free_context, storage->data);
        }
    } else if (MT_LIKELY(storage->data != NULL)) {
        mt__memory_give(storage->device, storage->data, storage->bytes, storage->block_class);
    }
    mt__pool_give_fast(MT_POOL_STORAGE, storage);
}
