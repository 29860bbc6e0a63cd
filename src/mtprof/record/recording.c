/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording's birth and death, and the streams that are written under a lock.
 */
#include "mtprof/record/recording.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/pages.h"

#include <errno.h>

mtprof__recording *mtprof__current;

static uint64_t serial;

bool mtprof__stream_append(mtprof__store *store, mtprof__stream *stream, const uint64_t *words,
                           uint64_t count, uint64_t ticks, uint32_t *cause)
{
    if (stream->chunk == NULL || (uint64_t)(stream->end - stream->cursor) < count) {
        mtprof__chunk_start start = {
            .stream = stream->kind,
            .slot = stream->slot,
            .sequence = stream->sequence,
            .base_ticks = ticks,
        };
        /* The first chunk of a stream is small, later ones as large as the threads'. */
        uint64_t usual = stream->chunk == NULL ? MTPROF__CHUNK_FIRST_BYTES : store->chunk_max;
        if (stream->chunk != NULL && stream->kind == MTPROF_STREAM_DEFINITIONS &&
            store->policy != MTPROF_POLICY_SPILL) { /* on top of the budget: not more than needed */
            usual = stream->chunk->size * 2;
            usual = usual > MTPROF__CHUNK_MAX_BYTES ? MTPROF__CHUNK_MAX_BYTES : usual;
        }
        uint64_t needed = MTPROF_CHUNK_HEADER + count * 8;
        mtprof__chunk_header *chunk = mtprof__store_take(
            store, stream->chunk, needed > usual ? needed : usual, &start, cause);
        if (chunk == NULL) {
            return false;
        }
        stream->chunk = chunk;
        stream->cursor = (uint64_t *)(void *)(chunk + 1);
        stream->end = (uint64_t *)(void *)((char *)chunk + chunk->size);
        stream->sequence++;
        if ((uint64_t)(stream->end - stream->cursor) < count) {
            *cause = MTPROF_LOST_TOO_LARGE; /* ring mode gave us a small one */
            return false;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        mtprof__put(stream->cursor + i, words[i]);
    }
    stream->cursor += count;
    uint64_t bytes = (uint64_t)((char *)stream->cursor - (char *)(stream->chunk + 1));
    __atomic_store_n(&stream->chunk->committed, bytes, __ATOMIC_RELEASE); /* RC1, WR4 */
    return true;
}

bool mtprof__control_append(mtprof__recording *recording, const uint64_t *words, uint64_t count,
                            uint64_t ticks)
{
    uint32_t cause;
    mtb_lock_acquire(&mtprof__names_lock);
    bool stored =
        mtprof__stream_append(recording->store, &recording->control, words, count, ticks, &cause);
    mtb_lock_release(&mtprof__names_lock);
    return stored;
}

bool mtprof__definition_append(mtprof__recording *recording, const uint64_t *words, uint64_t count,
                               uint32_t *cause)
{
    mtb_lock_acquire(&mtprof__names_lock);
    bool stored = mtprof__stream_append(recording->store, &recording->definitions, words, count,
                                        mtprof__ticks(), cause);
    mtb_lock_release(&mtprof__names_lock);
    return stored;
}

bool mtprof__definition_fits(const mtprof__recording *recording, uint64_t words)
{
    const mtprof__store *store = recording->store;
    return store->policy == MTPROF_POLICY_SPILL || store->budget == 0 ||
           recording->own_bytes + words * 8 <= store->budget / 2;
}

/*
 * Counting may happen anywhere, while the recording is being released: counts wait here for a
 * caller that holds it (mtprof__count_collect), at the latest the helper thread within a second.
 */
static uint64_t waiting[MTPROF_HEALTH_COUNT]; /* atomic */

void mtprof__count(uint32_t index, uint64_t amount)
{
    if (__atomic_load_n(&mtprof__current, __ATOMIC_RELAXED) != NULL) {
        __atomic_fetch_add(&waiting[index], amount, __ATOMIC_RELAXED);
    }
}

void mtprof__count_collect(mtprof__recording *recording)
{
    for (uint32_t i = 0; i < MTPROF_HEALTH_COUNT; i++) {
        uint64_t amount = MTPROF__GET(waiting[i]) != 0
                              ? __atomic_exchange_n(&waiting[i], 0, __ATOMIC_RELAXED)
                              : 0;
        if (amount != 0 && recording != NULL) {
            mtprof__store_count(recording->store, i, amount);
        }
    }
}

void mtprof__lose(uint32_t cause, uint64_t events)
{
    mtprof__count(cause, events);
}

mtprof_status mtprof__recording_new(mtprof__store *store, mtprof__recording **out)
{
    *out = NULL;
    mtprof__recording *recording = mtb_calloc(1, sizeof *recording);
    if (recording == NULL) {
        mtprof__store_release(store);
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory");
    }
    recording->references = 1;
    recording->store = store;
    recording->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    MTPROF__SET(mtprof__strings_tag, (uint32_t)recording->serial & MTPROF__TAG_MASK);
    recording->definitions.kind = MTPROF_STREAM_DEFINITIONS;
    recording->control.kind = MTPROF_STREAM_CONTROL;
    const mtprof__file_header *h = store->header;
    uint64_t anchor[4] = {mtprof__word0(MTPROF_REC_ANCHOR, 4, 0, 0), h->start_ticks,
                          h->start_mono_ns, h->start_real_ns};
    uint32_t cause = MTPROF_LOST_MEMORY;
    mtb_lock_acquire(&mtprof__names_lock);
    bool stored =
        mtprof__stream_append(store, &recording->control, anchor, 4, h->start_ticks, &cause) &&
        mtprof__names_define_all(recording, &cause);
    if (stored) {
        mtprof__count_collect(NULL); /* drops what belongs to no recording */
        /* From here on, registering a string also defines it in this recording. */
        __atomic_store_n(&mtprof__current, recording, __ATOMIC_RELEASE);
    }
    mtb_lock_release(&mtprof__names_lock);
    if (!stored) {
        mtprof__recording_release(recording);
        return mtb_fail(cause == MTPROF_LOST_DISK     ? MTPROF_ENOSPC
                        : cause == MTPROF_LOST_MEMORY ? MTPROF_ENOMEM
                                                      : MTPROF_EINVAL,
                        "session_start: no room for the names this program uses (%s)",
                        mtprof_lost_cause(cause));
    }
    *out = recording;
    return MTPROF_OK;
}

void mtprof__recording_retain(mtprof__recording *recording)
{
    __atomic_add_fetch(&recording->references, 1, __ATOMIC_RELAXED);
}

void mtprof__recording_release(mtprof__recording *recording)
{
    if (__atomic_sub_fetch(&recording->references, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    mtb_arena_reset(&recording->arena);
    mtb_idmap_reset(&recording->name_map);
    mtb_idmap_reset(&recording->inputs_map);
    mtb_idmap_reset(&recording->stack_map);
    mtb_pages_give(recording->names, recording->names_capacity * sizeof *recording->names);
    mtb_pages_give(recording->inputs, recording->inputs_capacity * sizeof *recording->inputs);
    mtb_pages_give(recording->stacks, recording->stacks_capacity * sizeof *recording->stacks);
    mtb_pages_give(recording->frame_known, recording->frame_known_bytes);
    mtprof__store_release(recording->store);
    mtb_free(recording);
}

const char *mtprof_lost_cause(uint32_t cause)
{
    static const char *const texts[] = {"memory",    "disk",   "budget", "nested", "threads",
                                        "too large", "source", "late",   "damage"};
    return cause < MT_COUNT(texts) ? texts[cause] : "unknown";
}
