/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensor is which, for memory timelines and execution traces.
 *
 * torch's tensors have no numbers, and their addresses are used again. Ours is made of the address
 * of the tensor, that of its memory, and of how often that memory was freed: tensors have equal
 * numbers only where one followed the other as a view of the same memory.
 *
 *   HX1  The table of freed addresses is written by several threads without a lock: an entry has
 *        its address from the first time on, and only its count changes.
 *   HX2  An address that finds no room shares the count of all such addresses: a tensor in
 *        memory that was not freed may get a new number then, but no number is used for two.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

enum {
    ENTRIES = 1 << 16,
    PROBES = 16,
    NUMBER_BITS = 52 /* a number in JSON stays exact */
};

typedef struct freed_entry {
    uint64_t address; /* atomic; 0: unused */
    uint64_t count;   /* atomic */
} freed_entry;

static freed_entry *entries; /* atomic; made once, kept */
static uint64_t others;      /* atomic: HX2 */

void th__tensors_begin(void)
{
    if (__atomic_load_n(&entries, __ATOMIC_ACQUIRE) == NULL) { /* stored below */
        __atomic_store_n(&entries, mtb_calloc(ENTRIES, sizeof *entries), __ATOMIC_RELEASE);
    }
}

/* The count of an address; NULL: it was never freed. */
static uint64_t *find_count(uint64_t address, bool add)
{
    freed_entry *table = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
    uint64_t hash = mtb_hash_words(&address, 1);
    for (uint32_t i = 0; table != NULL && i < PROBES; i++) {
        freed_entry *entry = &table[(hash + i) % ENTRIES];
        uint64_t there = __atomic_load_n(&entry->address, __ATOMIC_RELAXED);
        if (there == 0 && !add) {
            return NULL;
        }
        if (there == address ||
            (there == 0 && (__atomic_compare_exchange_n(&entry->address, &there, address, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                            there == address))) {
            return &entry->count;
        }
    }
    return &others;
}

void th__memory_freed(uint64_t address)
{
    __atomic_add_fetch(find_count(address, true), 1, __ATOMIC_RELAXED);
}

/* A field of the shared object that a word of the tensor points to; 0: there is none. */
MT_INLINE uint64_t shared_field(const unsigned char *object, uint32_t offset)
{
    const unsigned char *shared = NULL;
    uint64_t field = 0;
    memcpy(&shared, object + offset, sizeof shared);
    if (shared != NULL) {
        memcpy(&field, shared + th__fields.object_head, sizeof field);
    }
    return field;
}

/* Zeros for a tensor without memory of its own. */
static void fill(mtprof_tensor_ref *ref, const unsigned char *tensor)
{
    const unsigned char *object = NULL;
    int32_t type = -1;
    int32_t index = -1;
    *ref = (mtprof_tensor_ref){0};
    memcpy(&object, tensor, sizeof object);
    if (!th__fields.identified || object == th__torch.undefined ||
        th__kept_by(object) != TH_KEPT_ALL) {
        return;
    }
    uint64_t memory = shared_field(object, th__fields.tensor_storage);
    if (memory == 0 || th__torch.storage_offset(tensor, &ref->offset) != 0 ||
        th__torch.device_type(tensor, &type) != 0 ||
        (type != th__torch.cpu && th__torch.device_index(tensor, &index) != 0)) {
        return;
    }
    const uint64_t *freed = find_count(memory, false);
    uint64_t count = freed != NULL ? __atomic_load_n(freed, __ATOMIC_RELAXED) : 0;
    const uint64_t words[] = {(uintptr_t)object, memory, count};
    ref->tensor = mtb_hash_words(words, 3) >> (64 - NUMBER_BITS) | 1; /* 0 is no tensor */
    ref->storage = memory;
    ref->version = (uint32_t)shared_field(object, th__fields.tensor_version);
    ref->device = (uint16_t)th__device_number(type, index);
}

bool th__identify(th__thread *thread, const unsigned char *tensor)
{
    if (thread->n_tensors == thread->tensors_room) {
        uint32_t room = thread->tensors_room < 32 ? 32 : 2 * thread->tensors_room;
        mtprof_tensor_ref *tensors = mtb_resize(thread->tensors, room, sizeof *tensors);
        if (tensors == NULL) {
            return false;
        }
        thread->tensors = tensors;
        thread->tensors_room = room;
    }
    fill(&thread->tensors[thread->n_tensors++], tensor);
    return true;
}
