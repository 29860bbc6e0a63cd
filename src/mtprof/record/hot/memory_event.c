/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: 32 bytes each, and inside a scope without reading the clock; and those that were
 * refused.
 */
#include "mtprof/record/hot/batch.h"

/* RESERVED is written only when it changes; the last value is kept for the first two devices. */
static void tell_reserved(mtprof__writer *w, uint32_t device, uint64_t bytes)
{
    if (device < 2 && w->reserved_seen[device] == bytes) {
        return;
    }
    uint64_t *at = mtprof__reserve(w, 2, 0, false);
    if (at != NULL) {
        mtprof__put(at, mtprof__word0(MTPROF_REC_RESERVED, 2, device, 0));
        mtprof__put(at + 1, bytes);
        mtprof__publish(w, at + 2);
        if (device < 2) {
            w->reserved_seen[device] = bytes;
        }
    }
}

enum {
    ALLOC_WORDS = 6 /* the record, and a full time in front should the short one not reach */
};

MT_INLINE bool is_inside(const mtprof__writer *w)
{
    return w->depth > (int64_t)__atomic_load_n(&w->foreign_ends, __ATOMIC_RELAXED);
}

/* A recording of the device alone has the ops that are dispatched to it and no others, so host
 * memory that is allocated outside them belongs to no recorded event. */
MT_INLINE bool is_left_out(uint32_t device, bool inside)
{
    const uint32_t host = (uint32_t)MTPROF_WANT_OPS | (uint32_t)MTPROF_WANT_SCOPES;
    return device == 0 && !inside &&
           (__atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED) &
            (host | (uint32_t)MTPROF_WANT_DEVICE)) == (uint32_t)MTPROF_WANT_DEVICE;
}

/* `now` is used only outside scopes. There is room for ALLOC_WORDS. */
MT_INLINE void put_alloc(mtprof__writer *w, uint64_t *at, bool inside, uint64_t now,
                         uint32_t device, const uint64_t facts[3])
{
    uint64_t last = w->end_ticks > w->time_ref ? w->end_ticks : w->time_ref;
    uint64_t elapsed = (inside ? last : now) - w->time_ref;
    if (MT_UNLIKELY(elapsed > UINT32_MAX)) {
        w->time_ref += elapsed;
        mtprof__put(at, mtprof__word0(MTPROF_REC_TIME, 2, 0, 0));
        mtprof__put(at + 1, w->time_ref);
        at += 2;
        elapsed = 0;
    }
    mtprof__put(
        at, mtprof__word0(MTPROF_REC_ALLOC, 4, device | (uint32_t)inside << 8, (uint32_t)elapsed));
    for (int i = 0; i < 3; i++) {
        mtprof__put(at + 1 + i, facts[i]);
    }
    MTPROF__SET(w->others, w->others + 1);
    w->payload_at = NULL;
    mtprof__publish(w, at + 4);
}

static MT_COLD void alloc_slow(uint32_t device, const uint64_t facts[3], uint64_t reserved_bytes)
{
    uint64_t state;
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return;
    }
    bool inside = is_inside(w);
    if (is_left_out(device, inside)) {
        mtprof__leave(w);
        return;
    }
    device = device < 256 ? device : 255;
    tell_reserved(w, device, reserved_bytes);
    uint64_t *at = mtprof__reserve(w, ALLOC_WORDS, 1, false);
    if (at != NULL) {
        put_alloc(w, at, inside, inside ? 0 : mtprof__ticks(), device, facts);
    }
    mtprof__leave(w);
}

void mtprof_i_alloc(uint32_t device, uint64_t address, int64_t bytes, uint64_t allocated,
                    uint64_t reserved_bytes)
{
    const uint64_t facts[3] = {address, (uint64_t)bytes, allocated};
    mtprof__writer *w = mtprof__mine;
    if (MT_LIKELY(w != NULL && mtprof__enter_fast(w))) {
        bool fast = mtprof__ready(w, mtprof__load_state(), ALLOC_WORDS) && device < 2 &&
                    w->reserved_seen[device] == reserved_bytes;
        if (MT_LIKELY(fast)) {
            bool inside = is_inside(w);
            if (!is_left_out(device, inside)) {
                put_alloc(w, w->cursor, inside, inside ? 0 : mtprof__ticks_fast(), device, facts);
            }
        }
        mtprof__leave(w);
        if (MT_LIKELY(fast)) {
            return;
        }
    }
    alloc_slow(device, facts, reserved_bytes);
}

enum {
    REFUSAL_WORDS = 4
};

void mtprof_i_out_of_memory(uint32_t device, uint64_t bytes, uint64_t allocated,
                            uint64_t reserved_bytes)
{
    uint64_t state;
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return;
    }
    device = device < 256 ? device : 255;
    tell_reserved(w, device, reserved_bytes);
    uint64_t *at = mtprof__reserve(w, REFUSAL_WORDS, 1, false);
    if (at != NULL) {
        w->time_ref = mtprof__ticks();
        mtprof__put(at, mtprof__word0(MTPROF_REC_OUT_OF_MEMORY, REFUSAL_WORDS, device, 0));
        mtprof__put(at + 1, w->time_ref);
        mtprof__put(at + 2, bytes);
        mtprof__put(at + 3, allocated);
        MTPROF__SET(w->others, w->others + 1);
        w->payload_at = NULL;
        mtprof__publish(w, at + REFUSAL_WORDS);
    }
    mtprof__leave(w);
}
