/* SPDX-License-Identifier: Apache-2.0
 *
 * A storage: bytes on a device, shared by the tensors that are views of it, with the count of its
 * changes. It comes from the device's caching allocator (memory.h) or is borrowed.
 */
#ifndef MINDTORCH_CORE_STORAGE_H
#define MINDTORCH_CORE_STORAGE_H

#include <mindtorch/tensor.h>

#include <stdatomic.h>

typedef struct mt__storage {
    _Atomic uint32_t refs;
    _Atomic uint32_t version; /* grows with each change in place */
    void *data;               /* on the device: never followed above the backends; NULL if empty */
    uint64_t bytes;
    mt_device device;
    uint32_t block_class;  /* the allocator's */
    mt_free_fn *free_data; /* borrowed memory; NULL and context NULL: the allocator's */
    void *free_context;
    bool borrowed;
} mt__storage;

/* One reference. bytes 0 allocates nothing. The bytes are not initialised. */
int mt__storage_new(mt_device device, uint64_t bytes, mt__storage **out);
int mt__storage_borrow(void *data, uint64_t bytes, mt_free_fn *free_data, void *context,
                       mt__storage **out);
mt__storage *mt__storage_retain(mt__storage *storage);
void mt__storage_release(mt__storage *storage);

#endif /* MINDTORCH_CORE_STORAGE_H */
