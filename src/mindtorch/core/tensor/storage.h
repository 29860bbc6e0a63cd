/* SPDX-License-Identifier: Apache-2.0
 *
 * A storage: bytes on a device, shared by the tensors that are views of it, with a version that
 * counts changes. It comes from the device's caching allocator (memory.h) or is borrowed.
 */
#ifndef MINDTORCH_CORE_TENSOR_STORAGE_H
#define MINDTORCH_CORE_TENSOR_STORAGE_H

#include <mindtorch/stream.h>
#include <mindtorch/tensor.h>

#include <stdatomic.h>

typedef struct mt__storage {
    _Atomic uint32_t refs;
    _Atomic uint32_t version; /* grows with each change in place */
    void *data;               /* on the device: never followed above the backends; NULL if empty */
    uint64_t bytes;
    mt_device device;
    uint32_t key;          /* the allocator's */
    mt_free_fn *free_data; /* BORROWED; may be NULL */
    void *free_context;    /* BORROWED: free_data's; USED: mt__uses, under the device memory's lock;
                              ALIAS: the storage whose bytes these are, retained */
    uint8_t unusual;       /* MT_STORAGE_*; changes to USED under that lock */
    bool inference;        /* made in inference mode: its tensors take no part in graphs */
} mt__storage;

/* Special kinds of storage; 0 for most: memory of the allocator, used only on its own stream. */
enum {
    MT_STORAGE_BORROWED = 1,
    MT_STORAGE_USED = 2, /* on other streams too */
    MT_STORAGE_ALIAS = 4 /* shares another storage's bytes, has its own version */
};

/* One reference. bytes 0 allocates nothing. The bytes are not initialised. */
int mt__storage_new(mt_device device, uint64_t bytes, mt__storage **out);
int mt__storage_borrow(void *data, uint64_t bytes, mt_free_fn *free_data, void *context,
                       mt__storage **out);

/* A storage with the same bytes and its own version, which starts at `version`: for x.data and
 * x.data = y. */
int mt__storage_alias(mt__storage *storage, uint32_t version, mt__storage **out);

/* The storage that the bytes belong to. */
static inline mt__storage *mt__storage_owner(mt__storage *storage)
{
    return storage->unusual == MT_STORAGE_ALIAS ? storage->free_context : storage;
}

/* Whether two storages have the same bytes, or would have them on the device meta. */
static inline bool mt__storage_same(mt__storage *a, mt__storage *b)
{
    return a->data == b->data && (a->data != NULL || mt__storage_owner(a) == mt__storage_owner(b));
}

/* Whether the bytes may be in use by something that holds no reference. Partner: the store in
 * mt__storage_used(). */
static inline bool mt__storage_is_borrowed(const mt__storage *storage)
{
    uint8_t unusual = __atomic_load_n(&storage->unusual, __ATOMIC_RELAXED);
    return unusual == MT_STORAGE_BORROWED || unusual == MT_STORAGE_ALIAS;
}

/* Records that a stream uses it; nothing to do for the stream of its memory. */
int mt__storage_used(mt__storage *storage, mt_stream *stream);
mt__storage *mt__storage_retain(mt__storage *storage);
void mt__storage_release(mt__storage *storage);

#endif /* MINDTORCH_CORE_TENSOR_STORAGE_H */
