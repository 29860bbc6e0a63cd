/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_dump.h for the order of things and the invariants.
 */
#include "mtprof/record/store/store_dump.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "mtprof/record/sys.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    HEADER_WORDS = MTPROF_CHUNK_HEADER / 8,
    FIXED_WORDS = 6, /* of a chunk's header: the rest changes while the chunk is filled */
    LIST_FIRST = 1024,
    EVENTS = 1 << MTPROF_STREAM_THREAD | 1 << MTPROF_STREAM_SOURCE
};

typedef struct mtprof__listed {
    mtprof__chunk_header *at;
    uint64_t last_ticks; /* no event begins in it later; UINT64_MAX: it may still grow */
    mtprof__chunk_header header;
} listed;

static mtprof_status no_memory(size_t bytes)
{
    return mtb_fail(MTPROF_ENOMEM, "session_dump: no memory for %zu bytes", bytes);
}

/* ---- the list ---- */

/* Lists chunks of these streams; false: the list is too short, and n_listed says what it needs. */
static bool fill_list(mtprof__dump *dump, uint32_t streams, uint32_t last, uint64_t used_of_last)
{
    mtprof__store *store = dump->store;
    dump->n_listed = 0;
    for (uint32_t i = 0; i <= last; i++) {
        mtprof__segment *s = store->segments[i];
        uint64_t used = i == last ? used_of_last : s->used;
        for (uint64_t at = i == 0 ? MTPROF_HEADER_BYTES : 0; at < used;) {
            mtprof__chunk_header *chunk = (mtprof__chunk_header *)(void *)(s->base + at);
            listed one = {.at = chunk};
            mtprof__copy_words((uint64_t *)(void *)&one.header,
                               (const uint64_t *)(const void *)chunk, HEADER_WORDS);
            at += one.header.size;
            if ((streams >> one.header.stream & 1) == 0) {
                continue;
            }
            if (dump->n_listed < dump->capacity) {
                dump->list[dump->n_listed] = one;
            }
            dump->n_listed++;
        }
    }
    return dump->n_listed <= dump->capacity;
}

/* Only a ring's chunks change their headers: there the lock is held throughout (DU1). */
static bool try_list(mtprof__dump *dump, uint32_t streams, uint64_t *when)
{
    mtprof__store *store = dump->store;
    bool ring = store->policy == MTPROF_POLICY_RING;
    mtb_lock_acquire(&store->lock);
    *when = mtprof__ticks(); /* with the lock: no chunk of the list begins later in a ring */
    uint32_t last = store->current;
    uint64_t used_of_last = store->segments[last]->used;
    if (!ring) {
        mtb_lock_release(&store->lock);
    }
    bool filled = fill_list(dump, streams, last, used_of_last);
    if (ring) {
        mtb_lock_release(&store->lock);
    }
    return filled;
}

static int by_sequence(const void *a, const void *b)
{
    const mtprof__chunk_header *x = &((const listed *)a)->header;
    const mtprof__chunk_header *y = &((const listed *)b)->header;
    int order = (x->stream > y->stream) - (x->stream < y->stream);
    order = order != 0 ? order : (x->slot > y->slot) - (x->slot < y->slot);
    return order != 0 ? order : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static int by_age(const void *a, const void *b)
{
    const listed *x = a;
    const listed *y = b;
    int order = (x->last_ticks > y->last_ticks) - (x->last_ticks < y->last_ticks);
    return order != 0 ? order : by_sequence(a, b);
}

static mtprof_status make_list(mtprof__dump *dump, uint32_t streams, uint64_t *when)
{
    while (dump->capacity == 0 || !try_list(dump, streams, when)) {
        size_t wanted = dump->n_listed + dump->n_listed / 4 + LIST_FIRST;
        listed *longer = mtb_resize(dump->list, wanted, sizeof *longer);
        if (longer == NULL) {
            return no_memory(wanted * sizeof *longer);
        }
        dump->list = longer;
        dump->capacity = wanted;
    }
    if (dump->n_listed > 0) {
        qsort(dump->list, dump->n_listed, sizeof *dump->list, by_sequence);
    }
    return MTPROF_OK;
}

/* ---- writing ---- */

static mtprof_status put(const mtprof__dump *dump, const void *bytes, size_t n, uint64_t offset)
{
    int error = mtprof__system.write(dump->fd, bytes, n, (off_t)offset);
    return error == 0 ? MTPROF_OK
                      : mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                                       "session_dump: writing %s", dump->name);
}

static mtprof_status need_room(mtprof__dump *dump, size_t bytes)
{
    if (dump->copy_bytes < bytes) {
        mtb_free(dump->copy);
        dump->copy = mtb_calloc(1, bytes);
        dump->copy_bytes = dump->copy != NULL ? bytes : 0;
    }
    return dump->copy != NULL ? MTPROF_OK : no_memory(bytes);
}

/* Writes the chunk in `copy`, whose `committed` is set, as short as it can be. */
static mtprof_status put_copy(mtprof__dump *dump)
{
    mtprof__chunk_header *copy = dump->copy;
    uint64_t used = MTPROF_CHUNK_HEADER + copy->committed;
    copy->size = (uint32_t)mtb_round_up(used, MTPROF_CHUNK_ALIGN);
    copy->header_crc = mtprof__chunk_header_crc(dump->uuid, copy);
    memset((char *)copy + used, 0, copy->size - used);
    mtprof__chunk_set_checksum(copy);
    MT_TRY(put(dump, copy, copy->size, dump->bytes));
    dump->bytes += copy->size;
    dump->chunks++;
    return MTPROF_OK;
}

/* DU2. false: the chunk has been recycled. */
static bool copy_chunk(mtprof__dump *dump, const listed *one)
{
    const uint64_t *from = (const uint64_t *)(const void *)one->at;
    uint64_t *to = (uint64_t *)(void *)dump->copy;
    uint64_t after[FIXED_WORDS];
    memcpy(to, &one->header, MTPROF_CHUNK_HEADER);
    mtprof__copy_words(to + HEADER_WORDS, from + HEADER_WORDS, one->header.committed / 8);
    mtprof__copy_words(after, from, FIXED_WORDS);
    return memcmp(after, &one->header, sizeof after) == 0;
}

/* ---- events ---- */

static bool same_slot(const listed *a, const listed *b)
{
    return a->header.stream == b->header.stream && a->header.slot == b->header.slot;
}

/*
 * When each chunk ended: where the next one of its slot begins. The list is in that order. The
 * window begins where no slot misses a chunk any more: a ring has let go of the first ones, and a
 * large definition may have taken one out of its turn.
 */
static void find_ends(mtprof__dump *dump)
{
    for (size_t i = 0; i < dump->n_listed; i++) {
        listed *one = &dump->list[i];
        bool follows = i > 0 && same_slot(one - 1, one);
        bool followed = i + 1 < dump->n_listed && same_slot(one, one + 1);
        uint64_t expected = follows ? one[-1].header.sequence + 1 : 0;
        one->last_ticks = followed ? one[1].header.base_ticks : UINT64_MAX;
        if (one->header.sequence != expected && one->header.base_ticks > dump->from) {
            dump->from = one->header.base_ticks;
        }
    }
}

/* The list is in order of age: the oldest are left out until the rest fits. */
static void fit_bytes(mtprof__dump *dump)
{
    uint64_t bytes = 0;
    for (size_t i = dump->n_listed; i > 0 && dump->bytes_max != 0; i--) {
        const listed *one = &dump->list[i - 1];
        if (one->last_ticks == UINT64_MAX) {
            continue;
        }
        bytes += MTPROF_CHUNK_HEADER + one->header.committed;
        if (bytes > dump->bytes_max && one->last_ticks >= dump->from) {
            dump->from = one->last_ticks + 1;
        }
    }
}

static uint64_t begins_of(const mtprof__dump *dump, const listed *one)
{
    /* In a ring a sealed chunk keeps the number of its begins there (store.c). */
    bool known = dump->store->policy == MTPROF_POLICY_RING &&
                 one->header.state == MTPROF_CHUNK_SEALED &&
                 one->header.stream == MTPROF_STREAM_THREAD;
    return known ? one->header.data_crc : 0;
}

static mtprof_status put_event_chunk(mtprof__dump *dump, const listed *one)
{
    if (one->last_ticks < dump->from) {
        dump->left_out++;
        dump->left_begins += begins_of(dump, one);
        return MTPROF_OK;
    }
    MT_TRY(need_room(dump, one->header.size));
    if (copy_chunk(dump, one)) {
        dump->first = one->header.base_ticks < dump->first ? one->header.base_ticks : dump->first;
        return put_copy(dump);
    }
    /* DU3 */
    dump->missed++;
    dump->from = one->last_ticks == UINT64_MAX ? dump->to : one->last_ticks + 1;
    dump->left_out += dump->chunks + 1;
    dump->bytes = MTPROF_HEADER_BYTES;
    dump->chunks = 0;
    dump->first = UINT64_MAX;
    return MTPROF_OK;
}

mtprof_status mtprof__dump_events(mtprof__dump *dump)
{
    if (getrandom(dump->uuid, sizeof dump->uuid, 0) != (ssize_t)sizeof dump->uuid) {
        mtprof__anchor now = mtprof__clock_anchor();
        memcpy(dump->uuid, &now, sizeof dump->uuid);
    }
    dump->bytes = MTPROF_HEADER_BYTES;
    dump->first = UINT64_MAX;
    MT_TRY(make_list(dump, EVENTS, &dump->to));
    dump->end_ticks = mtprof__ticks();
    find_ends(dump);
    if (dump->n_listed > 0) {
        qsort(dump->list, dump->n_listed, sizeof *dump->list, by_age);
    }
    fit_bytes(dump);
    for (size_t i = 0; i < dump->n_listed; i++) {
        MT_TRY(put_event_chunk(dump, &dump->list[i]));
    }
    return MTPROF_OK;
}

/* ---- definitions, control stream, header ---- */

typedef struct rebuilt {
    uint64_t *words;
    uint64_t n, capacity;
    mtprof__anchor start; /* the last one before the window */
    uint64_t step;        /* likewise; 0: none, or that one */
    uint64_t open_at;     /* the last WINDOW_OPEN in words, plus one; 0: none */
} rebuilt;

static mtprof_status add_words(rebuilt *control, const uint64_t *words, uint64_t n)
{
    if (n == 0) {
        return MTPROF_OK;
    }
    if (control->words == NULL || control->capacity - control->n < n) {
        uint64_t wanted = (control->n + n) * 2;
        uint64_t *larger = mtb_resize(control->words, wanted, sizeof *larger);
        if (larger == NULL) {
            return no_memory(wanted * sizeof *larger);
        }
        control->words = larger;
        control->capacity = wanted;
    }
    memcpy(control->words + control->n, words, n * sizeof *words);
    control->n += n;
    return MTPROF_OK;
}

static mtprof_status add_open(rebuilt *control, const uint64_t *record, uint64_t not_before)
{
    uint64_t open[4];
    memcpy(open, record, sizeof open);
    if (open[1] < not_before) {
        open[1] = not_before;
        open[3] = (uint32_t)open[3] | control->step << 32;
    }
    control->open_at = control->n + 1;
    return add_words(control, open, 4);
}

/* A step that began before the first event: the one of the epoch that is open there. */
static void note_step(rebuilt *control, uint64_t step)
{
    control->step = step <= INT32_MAX ? step : INT32_MAX;
    if (control->open_at != 0) {
        uint64_t *window = &control->words[control->open_at + 2];
        *window = (uint32_t)*window | control->step << 32;
    }
}

/* An epoch that closed before the first event is not part of the dump. */
static void drop_open(rebuilt *control, uint64_t epoch)
{
    uint64_t at = control->open_at - 1;
    if (control->open_at != 0 && control->words != NULL && control->words[at] >> 32 == epoch) {
        memmove(control->words + at, control->words + at + 4, (control->n - at - 4) * 8);
        control->n -= 4;
        control->open_at = 0;
    }
}

/* DU5; metadata comes from the caller. */
static mtprof_status keep_control(const mtprof__dump *dump, rebuilt *control,
                                  const uint64_t *record, uint64_t n)
{
    switch (record[0] & 0xFF) {
    case MTPROF_REC_ANCHOR:
        if (record[1] < dump->first) {
            control->start = (mtprof__anchor){record[1], record[2], record[3]};
            return MTPROF_OK;
        }
        break;
    case MTPROF_REC_STEP:
        if (record[1] < dump->first) {
            note_step(control, record[2]);
            return MTPROF_OK;
        }
        break;
    case MTPROF_REC_WINDOW_OPEN: return add_open(control, record, dump->first);
    case MTPROF_REC_WINDOW_CLOSE:
        if (record[1] < dump->first) {
            drop_open(control, record[0] >> 32);
            return MTPROF_OK;
        }
        break;
    case MTPROF_REC_TRACE_META: return MTPROF_OK;
    default: break;
    }
    return add_words(control, record, n);
}

/* The records of one control chunk, which is in `copy`. */
static mtprof_status keep_controls(const mtprof__dump *dump, rebuilt *control)
{
    const uint64_t *records = (const uint64_t *)(const void *)(dump->copy + 1);
    uint64_t n_words = dump->copy->committed / 8;
    for (uint64_t at = 0; at < n_words;) {
        uint64_t n = records[at] >> 8 & 0xFF;
        n = n == 255 ? records[at + 1] : n;
        MT_TRY(keep_control(dump, control, records + at, n));
        at += n;
    }
    return MTPROF_OK;
}

static mtprof_status put_control(mtprof__dump *dump, const rebuilt *control)
{
    size_t bytes = MTPROF_CHUNK_HEADER + control->n * 8;
    MT_TRY(need_room(dump, mtb_round_up(bytes, MTPROF_CHUNK_ALIGN)));
    *dump->copy = (mtprof__chunk_header){
        .magic = MTPROF_CHUNK_MAGIC,
        .stream = MTPROF_STREAM_CONTROL,
        .base_ticks = control->start.ticks,
        .committed = control->n * 8,
    };
    if (control->n > 0) {
        memcpy(dump->copy + 1, control->words, control->n * 8);
    }
    return put_copy(dump);
}

static mtprof_status put_header(mtprof__dump *dump, const rebuilt *control)
{
    mtprof__store *store = dump->store;
    MT_TRY(need_room(dump, MTPROF_HEADER_BYTES));
    memset(dump->copy, 0, MTPROF_HEADER_BYTES);
    mtprof__file_header *header = (mtprof__file_header *)(void *)dump->copy;
    mtprof__copy_words((uint64_t *)(void *)header, (const uint64_t *)(const void *)store->header,
                       MTPROF_HEADER_BYTES / 8);
    memcpy(header->uuid, dump->uuid, sizeof header->uuid);
    if (dump->left_out > 0) {
        header->policy = MTPROF_POLICY_RING; /* the beginnings of streams may be missing */
    }
    header->start_ticks = control->start.ticks;
    header->start_mono_ns = control->start.mono_ns;
    header->start_real_ns = control->start.real_ns;
    header->header_crc = mtb_crc32c(0, header, offsetof(mtprof__file_header, header_crc));
    header->health[MTPROF_HEALTH_BEGINS] = dump->begins;
    header->health[MTPROF_HEALTH_OTHERS] = dump->others;
    header->health[MTPROF_HEALTH_LAUNCHES] = dump->launches;
    header->health[MTPROF_HEALTH_TRUNCATED] = dump->truncated;
    header->health[MTPROF_HEALTH_RING_CHUNKS] += dump->left_out;
    header->health[MTPROF_HEALTH_RING_BEGINS] += dump->left_begins;
    mtprof__header_mark_closed(header, dump->end_ticks, dump->bytes, dump->chunks);
    return put(dump, header, MTPROF_HEADER_BYTES, 0);
}

/* Definition chunks as they are; of control chunks, what is kept. */
static mtprof_status put_rest(mtprof__dump *dump, rebuilt *control)
{
    for (size_t i = 0; i < dump->n_listed; i++) {
        const listed *one = &dump->list[i];
        MT_TRY(need_room(dump, one->header.size));
        (void)copy_chunk(dump, one); /* ST5: these are not recycled */
        if (one->header.stream == MTPROF_STREAM_DEFINITIONS) {
            MT_TRY(put_copy(dump));
        } else {
            MT_TRY(keep_controls(dump, control));
        }
    }
    return MTPROF_OK;
}

mtprof_status mtprof__dump_rest(mtprof__dump *dump, const uint64_t *words, uint64_t n_words)
{
    const mtprof__file_header *live = dump->store->header;
    rebuilt control = {.start = {live->start_ticks, live->start_mono_ns, live->start_real_ns}};
    uint64_t when;
    dump->first = dump->first < dump->to ? dump->first : dump->to;
    mtprof_status status = make_list(
        dump, 1 << MTPROF_STREAM_DEFINITIONS | 1 << MTPROF_STREAM_CONTROL, &when); /* DU4 */
    if (status == MTPROF_OK) {
        status = put_rest(dump, &control);
    }
    if (status == MTPROF_OK && n_words > 0) {
        status = add_words(&control, words, n_words);
    }
    if (status == MTPROF_OK) {
        status = put_control(dump, &control);
    }
    if (status == MTPROF_OK) {
        status = put_header(dump, &control);
    }
    mtb_free(control.words);
    /* What DU3 dropped may lie behind the end. */
    if (status == MTPROF_OK && dump->missed > 0 && ftruncate(dump->fd, (off_t)dump->bytes) != 0) {
        status = mtb_fail_errno(MTPROF_EIO, errno, "session_dump: cutting %s to size", dump->name);
    }
    return status;
}

void mtprof__dump_fini(mtprof__dump *dump)
{
    mtb_free(dump->list);
    mtb_free(dump->copy);
    dump->list = NULL;
    dump->copy = NULL;
    dump->n_listed = dump->capacity = dump->copy_bytes = 0;
}
