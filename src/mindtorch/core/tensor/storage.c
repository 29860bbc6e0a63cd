/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages, see storage.h.
 */
#include "mindtorch/core/tensor/storage.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/memory/memory.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/core/thread/thread_state.h"

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
    storage->key = 0;
    storage->free_data = NULL;
    storage->free_context = NULL;
    storage->unusual = 0;
    storage->inference = mt__thread.inference != 0;
    if (MT_LIKELY(bytes != 0)) {
        int status = mt__memory_take(device, bytes, &storage->data, &storage->key);
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
        .unusual = MT_STORAGE_BORROWED,
        .inference = mt__thread.inference != 0,
    };
    *out = storage;
    return MT_OK;
}

int mt__storage_alias(mt__storage *storage, uint32_t version, mt__storage **out)
{
    *out = NULL;
    mt__storage *alias = mt__pool_take_fast(MT_POOL_STORAGE, sizeof *alias);
    if (alias == NULL) {
        return refuse();
    }
    mt__storage *owner = mt__storage_owner(storage);
    *alias = (mt__storage){
        .refs = 1,
        .version = version,
        .data = owner->data,
        .bytes = owner->bytes,
        .device = owner->device,
        .key = owner->key,
        .free_context = mt__storage_retain(owner),
        .unusual = MT_STORAGE_ALIAS,
        .inference = storage->inference,
    };
    *out = alias;
    return MT_OK;
}

mt__storage *mt__storage_retain(mt__storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}

int mt__storage_used(mt__storage *storage, mt_stream *stream)
{
    storage = mt__storage_owner(storage);
    if (storage->data == NULL || mt__memory_is_of(storage->device, storage->key, stream)) {
        return MT_OK;
    }
    if (MT_UNLIKELY(mt__forked)) {
        return mtb_fail(MT_EDEVICE, "record_stream: a forked process cannot use the device");
    }
    mtb_lock_acquire(&mt__device_memory_lock);
    mt__uses *uses = storage->free_context;
    int status = mt__uses_add(&uses, stream);
    storage->free_context = uses;
    if (status == MT_OK) {
        /* Relaxed: the thread that frees the storage sees it, because the reference count orders
         * the two; other readers (mt__storage_is_borrowed) need no order. */
        __atomic_store_n(&storage->unusual, MT_STORAGE_USED, __ATOMIC_RELAXED);
    }
    mtb_lock_release(&mt__device_memory_lock);
    return status;
}

static MT_NOINLINE void release_unusual(mt__storage *storage)
{
    if (storage->unusual == MT_STORAGE_ALIAS) {
        mt__storage_release(storage->free_context);
    } else if (storage->unusual == MT_STORAGE_USED) {
        mt__memory_give_used(storage->device, storage->data, storage->bytes, storage->key,
                             storage->free_context);
    } else if (storage->free_data != NULL) {
        storage->free_data(storage->free_context, storage->data);
    }
}

void mt__storage_release(mt__storage *storage)
{
    if (storage == NULL) {
        return;
    }
    /* A thread that sees 1 holds the only reference: no other thread can add one, so no atomic
     * decrement is needed. The acquire pairs with the release below, so that writes of other
     * threads are seen before the storage is freed. */
    if (atomic_load_explicit(&storage->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (MT_UNLIKELY(storage->unusual != 0)) {
        release_unusual(storage);
    } else if (MT_LIKELY(storage->data != NULL)) {
        mt__memory_give(storage->device, storage->data, storage->bytes, storage->key);
    }
    mt__pool_give_fast(MT_POOL_STORAGE, storage);
}
