/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the caching allocator (memory.h): its state for a device, and the common lists of
 * blocks.
 *
 * A key says which list a block belongs to: its size class, and above that the number of the stream
 * that was current when it was taken (0 on the host, which has no streams).
 */
#ifndef MINDTORCH_CORE_MEMORY_MEMORY_LISTS_H
#define MINDTORCH_CORE_MEMORY_MEMORY_LISTS_H

#include "base/compiler.h"
#include "base/lock.h"
#include "mindtorch/core/device/streams.h"
#include "mindtorch/core/memory/memory_classes.h"
#include "mindtorch/core/memory/stream_uses.h"

#include <stdatomic.h>

/* ---- AddressSanitizer: memory in lists must not be touched, nor memory after a tensor ---- */

#if defined(__SANITIZE_ADDRESS__)
#    define MEMORY_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define MEMORY_ASAN 1
#    endif
#endif
#ifdef MEMORY_ASAN
#    include <sanitizer/asan_interface.h>
enum {
    RED_ZONE = 64
};
#    define POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION((memory), (bytes))
#    define UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION((memory), (bytes))
#else
enum {
    RED_ZONE = 0
};
#    define POISON(memory, bytes)   ((void)(memory))
#    define UNPOISON(memory, bytes) ((void)(memory))
#endif

/* ---- lists ---- */

typedef struct mt__segment {
    char *memory;
} mt__segment;

/* Blocks of one key on one device that no thread's list holds, and where they came from. */
typedef struct mt__common_list {
    void **blocks;
    size_t count, capacity;
    size_t n_blocks;       /* that exist */
    mt__segment *segments; /* of classes that share them; else NULL */
    size_t n_segments, segment_capacity;
    mt__uses *waiting; /* blocks that other streams may still use; linked */
} mt__common_list;

typedef struct mt__device_memory {
    mtb_lock *lock;
    _Atomic uint64_t allocated, peak_allocated;
    _Atomic uint64_t reserved_bytes, peak_reserved; /* changed under the lock */
    _Atomic uint64_t allocations, releases;         /* other devices than the host */
    /* By stream, then by class; their contents are guarded by the lock. Created when first used,
     * never freed. */
    _Atomic(mt__common_list *) streams[MT_STREAMS];
} mt__device_memory;

MT_INLINE uint32_t mt__key_of(uint32_t block_class, uint32_t stream)
{
    return block_class | stream << 16;
}

MT_INLINE uint32_t mt__key_class(uint32_t key)
{
    return key & 0xFFFF;
}

MT_INLINE uint32_t mt__key_stream(uint32_t key)
{
    return key >> 16;
}

MT_INLINE void mt__raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t old = atomic_load_explicit(peak, memory_order_relaxed);
    while (MT_UNLIKELY(value > old) &&
           !atomic_compare_exchange_weak_explicit(peak, &old, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* Moves up to `wanted` blocks out of the common list; makes a segment if there is none. *taken is
 * at least 1 on success. MT_EOOM, without a message: the backend refused, caches are empty.
 * MT_ENOMEM, without a message: there is no memory for our own tables. Other failures are the
 * backend's. */
int mt__lists_take(mt_device device, mt__device_memory *memory, uint32_t key, uint32_t wanted,
                   void **blocks, uint32_t *taken);

/* Cannot fail: ML1. */
void mt__lists_give(mt__device_memory *memory, uint32_t key, void *const *blocks, uint32_t count);

/* The same for a block that other streams still use; takes `uses`. */
void mt__lists_give_used(mt__device_memory *memory, uint32_t key, void *block, mt__uses *uses);

/* Waits for the device and releases whole segments; returns how many bytes. A failure that waiting
 * reported is kept (device_failure.h). MT_EDEVICE: the device is lost, nothing was released. */
int mt__lists_empty(mt_device device, mt__device_memory *memory, uint64_t *given_back);

#endif /* MINDTORCH_CORE_MEMORY_MEMORY_LISTS_H */
