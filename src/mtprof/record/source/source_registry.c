/* SPDX-License-Identifier: Apache-2.0
 *
 * Event sources: registration, their part in a recording, and what they push.
 */
#include "mtprof/record/source/source_registry.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/record/store/helper.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    SOURCES = 256,
    META_MAX = 64,
    PAIR_TRIES = 5,
    DESCRIPTION_FIRST = 1000 /* bytes that a source's devices mostly fit into */
};

struct mtprof_source {
    mtprof_source_ops ops;   /* texts are copies of ours */
    uint16_t index;          /* in traces; unique now, and within a trace */
    uint32_t place;          /* in the list */
    int references;          /* atomic: the owner's, and one for each walk that looks at it */
    pthread_mutex_t calling; /* one callback at a time */
    bool started, gone;      /* guarded by `calling`; gone: unregistered */
    mtb_lock lock;           /* guards what follows */
    mtprof__recording *recording;
    mtprof__stream stream;
    uint64_t stream_serial; /* of the recording that the stream belongs to */
    uint64_t reports;       /* activities pushed, and reported as lost, since it was registered */
};

static mtb_lock list_lock = MTB_LOCK_INIT(MTB_RANK_SOURCES);
static mtprof_source *sources[SOURCES];

/* Indices that the recording `used_serial` has met: no other source may get them in it. */
static uint8_t used_indices[(UINT16_MAX + 1) / 8];
static uint64_t used_serial;

/* The recording that sources take part in, and the callback for those that refuse. */
struct joining {
    mtprof__recording *recording; /* NULL: none */
    uint64_t wants;
    void (*warn)(void *user, mtprof_status status, const char *message);
    void *user;
};
static struct joining joining; /* guarded by the list's lock */

/* ---- registration ---- */

static mtprof_status check_ops(const mtprof_source_ops *ops)
{
    if (ops == NULL || ops->struct_size < offsetof(mtprof_source_ops, flush)) {
        return mtb_fail(MTPROF_EINVAL, "source_register: struct_size is %u, at least %zu is needed",
                        ops != NULL ? ops->struct_size : 0, offsetof(mtprof_source_ops, flush));
    }
    if (ops->abi >> 16 != MTPROF_SOURCE_ABI >> 16) {
        return mtb_fail(
            MTPROF_EVERSION, "source_register: ABI version %u.%u, this library has %u.%u",
            ops->abi >> 16, ops->abi & 0xFFFF, MTPROF_SOURCE_ABI >> 16, MTPROF_SOURCE_ABI & 0xFFFF);
    }
    if (ops->name == NULL || ops->name[0] == '\0') {
        return mtb_fail(MTPROF_EINVAL, "source_register: name is missing");
    }
    if (ops->start == NULL || ops->stop == NULL) {
        return mtb_fail(MTPROF_EINVAL, "source_register: %s of source %s is missing",
                        ops->start == NULL ? "start" : "stop", ops->name);
    }
    return MTPROF_OK;
}

static void release_source(mtprof_source *source)
{
    if (__atomic_sub_fetch(&source->references, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    mtb_free((char *)(uintptr_t)source->ops.name);
    mtb_free((char *)(uintptr_t)source->ops.device_type);
    pthread_mutex_destroy(&source->calling);
    mtb_lock_fini(&source->lock);
    mtb_free(source);
}

static void join_recording(mtprof_source *source, const struct joining *to);

/* An index that is free and not used in the current recording; 0: none. The list is locked. */
static uint16_t free_index(void)
{
    for (uint32_t index = 1; index <= UINT16_MAX; index++) {
        bool taken = (used_indices[index / 8] >> (index % 8) & 1) != 0;
        for (uint32_t i = 0; i < SOURCES && !taken; i++) {
            taken = sources[i] != NULL && sources[i]->index == index;
        }
        if (!taken) {
            return (uint16_t)index;
        }
    }
    return 0;
}

/* The recording meets the index. The list is locked. */
static void use_index(const mtprof__recording *recording, uint16_t index)
{
    if (used_serial != recording->serial) {
        memset(used_indices, 0, sizeof used_indices);
        used_serial = recording->serial;
    }
    used_indices[index / 8] = (uint8_t)(used_indices[index / 8] | 1u << (index % 8));
}

mtprof_status mtprof_source_register(const mtprof_source_ops *ops, mtprof_source **out)
{
    *out = NULL;
    MT_TRY(check_ops(ops));
    mtprof_source *source = mtb_calloc(1, sizeof *source);
    if (source == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "source_register: no memory");
    }
    source->references = 1;
    pthread_mutex_init(&source->calling, NULL);
    mtb_lock_init(&source->lock, MTB_RANK_SOURCE);
    mtb_read_struct(&source->ops, ops);
    source->ops.name = mtb_copy_text(ops->name, strlen(ops->name));
    source->ops.device_type =
        ops->device_type != NULL ? mtb_copy_text(ops->device_type, strlen(ops->device_type)) : NULL;
    bool complete =
        source->ops.name != NULL && (ops->device_type == NULL || source->ops.device_type != NULL);
    uint32_t place = 0;
    mtb_lock_acquire(&list_lock);
    while (place < SOURCES && sources[place] != NULL) {
        place++;
    }
    source->index = free_index();
    bool room = place < SOURCES && source->index != 0;
    if (complete && room) {
        source->place = place;
        sources[place] = source;
    }
    struct joining to = joining;
    mtb_lock_release(&list_lock);
    if (!complete || !room) {
        mtprof_status status =
            complete ? mtb_fail(MTPROF_EBUSY, "source_register: %d sources are registered already",
                                SOURCES)
                     : mtb_fail(MTPROF_ENOMEM, "source_register: no memory for the names");
        release_source(source);
        return status;
    }
    if (to.recording != NULL) {
        join_recording(source, &to);
    }
    *out = source;
    return MTPROF_OK;
}

/* Reads the source's clock between two readings of ours, and keeps the closest of some tries: the
 * first one may find cold caches, or be interrupted, and its midpoint would be wrong. */
static void push_pair(mtprof_source *source)
{
    if (source->ops.clock == NULL) {
        return;
    }
    uint64_t best_time = 0;
    uint64_t best_ticks = 0;
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < PAIR_TRIES; i++) {
        uint64_t before = mtprof__ticks();
        uint64_t time = source->ops.clock(source->ops.context);
        uint64_t after = mtprof__ticks();
        if (after - before < best_width) {
            best_width = after - before;
            best_time = time;
            best_ticks = before + best_width / 2;
        }
    }
    mtprof_push_clock_pair(source, best_time, best_ticks);
}

static uint64_t reports_of(mtprof_source *source)
{
    mtb_lock_acquire(&source->lock);
    uint64_t reports = source->reports;
    mtb_lock_release(&source->lock);
    return reports;
}

/*
 * Waits for pending work without limit, as long as the source reports some of it within each
 * `quiet_ns`. A flush that returns before its timeout has nothing left to wait for. False: the
 * timeout passed without a report, so the device is stuck or lost and its work stays unmatched.
 */
static bool wait_for_work(mtprof_source *source, uint64_t quiet_ns)
{
    for (;;) {
        uint64_t reports = reports_of(source);
        uint64_t began = mtprof__mono_ns();
        source->ops.flush(source->ops.context, quiet_ns);
        push_pair(source);
        if (quiet_ns == 0 || mtprof__mono_ns() - began < quiet_ns) {
            return true;
        }
        if (reports_of(source) == reports) {
            return false;
        }
    }
}

/* False: it did not hand over everything in time. */
static bool stop_source(mtprof_source *source, uint64_t quiet_ns, bool forever)
{
    bool complete = true;
    pthread_mutex_lock(&source->calling);
    source->gone = source->gone || forever;
    if (source->started) {
        source->started = false;
        source->ops.stop(source->ops.context);
        if (source->ops.flush != NULL) {
            complete = wait_for_work(source, quiet_ns);
        } else {
            push_pair(source);
        }
    }
    pthread_mutex_unlock(&source->calling);
    return complete;
}

void mtprof_source_unregister(mtprof_source *source)
{
    if (source == NULL) {
        return;
    }
    mtb_lock_acquire(&list_lock);
    sources[source->place] = NULL;
    mtb_lock_release(&list_lock);
    (void)stop_source(source, 0, true);
    release_source(source);
}

bool mtprof_has_device_source(void)
{
    int count = 0;
    mtb_lock_acquire(&list_lock);
    for (uint32_t i = 0; i < SOURCES; i++) {
        count += sources[i] != NULL && sources[i]->ops.device_type != NULL;
    }
    mtb_lock_release(&list_lock);
    return count;
}

/* ---- taking part in a recording ---- */

/* Calls a function for every registered source, without the list's lock. */
static void each_source(void (*visit)(mtprof_source *source, void *context), void *context)
{
    uint32_t next = 0;
    for (;;) {
        mtb_lock_acquire(&list_lock);
        while (next < SOURCES && sources[next] == NULL) {
            next++;
        }
        mtprof_source *source = next < SOURCES ? sources[next++] : NULL;
        if (source != NULL) {
            __atomic_add_fetch(&source->references, 1, __ATOMIC_RELAXED);
        }
        mtb_lock_release(&list_lock);
        if (source == NULL) {
            return;
        }
        visit(source, context);
        release_source(source);
    }
}

static void define_source(mtprof_source *source, mtprof__recording *recording)
{
    uint32_t name = mtprof_intern(source->ops.name, strlen(source->ops.name));
    const char *type = source->ops.device_type;
    uint64_t type_id = type != NULL ? mtprof_intern(type, strlen(type)) : 0;
    uint64_t record[2] = {mtprof__word0(MTPROF_REC_DEF_SOURCE, 2, 0, source->index),
                          name | type_id << 32};
    uint32_t cause;
    mtprof__definition_append(recording, record, 2, &cause);
}

static void detach_source(mtprof_source *source, const mtprof__recording *recording)
{
    mtb_lock_acquire(&source->lock);
    if (source->recording == recording) {
        source->recording = NULL;
    }
    mtb_lock_release(&source->lock);
}

static void join_recording(mtprof_source *source, const struct joining *to)
{
    if (source->ops.needs != 0 && (source->ops.needs & to->wants) == 0) {
        return;
    }
    /* Held to the end: a close waits for it before it lets the recording go. */
    pthread_mutex_lock(&source->calling);
    mtb_lock_acquire(&list_lock);
    bool current = joining.recording == to->recording && !source->gone;
    if (current) {
        use_index(to->recording, source->index);
    }
    mtb_lock_release(&list_lock);
    if (!current) {
        pthread_mutex_unlock(&source->calling);
        return;
    }
    mtb_lock_acquire(&source->lock);
    bool fresh = source->stream_serial != to->recording->serial;
    if (fresh) {
        memset(&source->stream, 0, sizeof source->stream);
        source->stream.kind = MTPROF_STREAM_SOURCE;
        source->stream.slot = source->index;
        source->stream_serial = to->recording->serial;
    }
    source->recording = to->recording;
    mtb_lock_release(&source->lock);
    if (fresh) {
        define_source(source, to->recording);
    }
    mtprof_status status = MTPROF_OK;
    if (!source->started) {
        status = source->ops.start(source->ops.context, source, to->wants);
        source->started = status == MTPROF_OK;
        if (source->started) {
            push_pair(source);
        }
    }
    char message[512] = "";
    if (status != MTPROF_OK) {
        detach_source(source, to->recording); /* left out: what it pushes comes too late */
        const char *why =
            source->ops.trouble != NULL ? source->ops.trouble(source->ops.context) : NULL;
        snprintf(message, sizeof message, "source %.100s does not take part: %.380s",
                 source->ops.name, why != NULL ? why : mtprof_status_text(status));
        mtprof__put_warning(to->recording, message);
    }
    pthread_mutex_unlock(&source->calling);
    if (status != MTPROF_OK && to->warn != NULL) {
        to->warn(to->user, status, message);
    }
}

static void visit_start(mtprof_source *source, void *context)
{
    join_recording(source, context);
}

void mtprof__sources_start(mtprof__recording *recording, uint64_t wants,
                           void (*warn)(void *user, mtprof_status status, const char *message),
                           void *user)
{
    struct joining to = {recording, wants, warn, user};
    mtb_lock_acquire(&list_lock);
    joining = to;
    mtb_lock_release(&list_lock);
    each_source(visit_start, &to);
}

struct stopping {
    uint64_t quiet_ns;
    mtprof__recording *recording;
    void (*warn)(void *user, mtprof_status status, const char *message);
    void *user;
};

static void visit_stop(mtprof_source *source, void *context)
{
    const struct stopping *how = context;
    if (stop_source(source, how->quiet_ns, false)) {
        return;
    }
    char message[256];
    snprintf(
        message, sizeof message,
        "source %.100s reported nothing for %.1f s: work it was given is missing from the trace",
        source->ops.name, (double)how->quiet_ns / 1e9);
    mtprof__put_warning(how->recording, message);
    if (how->warn != NULL) {
        how->warn(how->user, MTPROF_EIO, message);
    }
}

void mtprof__sources_stop(mtprof__recording *recording, uint64_t quiet_ns,
                          void (*warn)(void *user, mtprof_status status, const char *message),
                          void *user)
{
    struct stopping how = {quiet_ns, recording, warn, user};
    mtb_lock_acquire(&list_lock);
    joining.recording = NULL;
    mtb_lock_release(&list_lock);
    each_source(visit_stop, &how);
}

/* ---- what devices are ---- */

struct description {
    char *text; /* "[{...}, {...}"; NULL: nothing so far */
    size_t length, capacity;
};

static bool reserve(struct description *d, size_t more)
{
    return mtb_grow((void **)&d->text, &d->capacity, d->length + more, 1);
}

/* Asks twice at most: what does not fit the second time is left out. */
static void append_items(mtprof_source *source, struct description *d)
{
    size_t need = DESCRIPTION_FIRST;
    for (int turn = 0; turn < 2; turn++) {
        if (!reserve(d, need + 4)) {
            return;
        }
        const char *before = d->length == 0 ? "[" : ", ";
        size_t room = need;
        char *at = d->text + d->length + strlen(before);
        need = source->ops.describe(source->ops.context, at, room + 1);
        if (need == 0) {
            return;
        }
        if (need <= room) {
            memcpy(d->text + d->length, before, strlen(before));
            d->length += strlen(before) + need;
            return;
        }
    }
}

static void visit_describe(mtprof_source *source, void *context)
{
    pthread_mutex_lock(&source->calling);
    if (source->started && source->ops.describe != NULL) {
        append_items(source, context);
    }
    pthread_mutex_unlock(&source->calling);
}

char *mtprof__sources_describe(void)
{
    struct description d = {NULL, 0, 0};
    each_source(visit_describe, &d);
    if (d.length == 0 || !reserve(&d, 2)) {
        mtb_free(d.text);
        return NULL;
    }
    memcpy(d.text + d.length, "]", 2);
    return d.text;
}

static void visit_detach(mtprof_source *source, void *context)
{
    pthread_mutex_lock(&source->calling);
    detach_source(source, context);
    pthread_mutex_unlock(&source->calling);
}

void mtprof__sources_detach(mtprof__recording *recording)
{
    each_source(visit_detach, recording);
}

static void visit_sync(mtprof_source *source, void *context)
{
    (void)context;
    /* A running callback may take long (flush), and the helper has other work. */
    if (pthread_mutex_trylock(&source->calling) != 0) {
        return;
    }
    if (source->started) {
        push_pair(source);
    }
    pthread_mutex_unlock(&source->calling);
}

void mtprof__sources_sync(void)
{
    each_source(visit_sync, NULL);
}

void mtprof__sources_after_fork(void)
{
    mtb_lock_reset(&list_lock);
    joining.recording = NULL;
    for (uint32_t i = 0; i < SOURCES; i++) {
        if (sources[i] != NULL) {
            mtb_lock_reset(&sources[i]->lock);
            pthread_mutex_init(&sources[i]->calling, NULL);
            sources[i]->started = false;
            sources[i]->recording = NULL;
        }
    }
}

/* ---- pushing ---- */

/* Takes the source's lock for a push; NULL: there is nothing to push into, and it is counted. */
static mtprof__recording *begin_push(mtprof_source *source, uint32_t events)
{
    if (mtb_locks_held()) {
        mtprof__lose(MTPROF_LOST_NESTED, events);
        return NULL;
    }
    mtb_lock_acquire(&source->lock);
    if (source->recording == NULL) {
        mtb_lock_release(&source->lock);
        mtprof__lose(MTPROF_LOST_LATE, events);
        return NULL;
    }
    return source->recording;
}

/* Appends to the source's stream, or counts `events` as lost, and gives the lock back. */
static bool end_push(mtprof_source *source, const uint64_t *words, uint32_t count, uint32_t events)
{
    uint32_t cause;
    mtprof__store *store = source->recording->store;
    bool stored =
        mtprof__stream_append(store, &source->stream, words, count, mtprof__ticks(), &cause);
    if (!stored) {
        mtprof__store_count(store, cause, events);
    }
    mtb_lock_release(&source->lock);
    return stored;
}

static void push(mtprof_source *source, const uint64_t *words, uint32_t count, uint32_t events)
{
    if (begin_push(source, events) != NULL) {
        end_push(source, words, count, events);
    }
}

/* Whether a launch is answered by it: one piece of device work per launch. */
static bool answers_launch(const mtprof_activity *a)
{
    return a->launch_key != 0 &&
           (a->kind == MTPROF_ACTIVITY_KERNEL || a->kind == MTPROF_ACTIVITY_COPY ||
            a->kind == MTPROF_ACTIVITY_SET);
}

/* Whether the key belongs to another recording: work that a window did not wait for, and that
 * finished after the next one was opened. Its launch was counted as unmatched there, and is not in
 * this trace. Ordinals of a slot only grow (WR6), nested ones have their own. A relaxed load is
 * enough: a key of this recording comes from a thread that was attached before. */
static bool is_of_another(const mtprof__recording *recording, uint64_t key)
{
    uint64_t slot = key >> MTPROF_ORDINAL_BITS;
    if (slot == 0 || slot > mtprof__slot_count()) {
        return false; /* no key of ours */
    }
    const mtprof__writer *w = mtprof__slot_at((uint32_t)slot);
    return MTPROF__GET(w->home_serial) != recording->serial ||
           ((key & MTPROF__EXPLICIT_BIT) == 0 &&
            (key & MTPROF__ORDINAL_MASK) < MTPROF__GET(w->home_ordinal));
}

/* A name past the bound of interned ones, in full. Returns the words it took. */
static uint32_t put_name(mtprof__recording *recording, uint64_t *at, const char *name,
                         size_t length)
{
    if (length > MTPROF__INLINE_MAX) {
        length = MTPROF__INLINE_MAX;
        mtprof__store_count(recording->store, MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    return mtprof__put_text_record(at, MTPROF_REC_NAME, 0, 0, name, length);
}

void mtprof_push_activity(mtprof_source *source, const mtprof_activity *activity)
{
    mtprof_activity a;
    mtb_read_struct(&a, activity);
    a.launch_key &= MTPROF__KEY_MASK; /* of a token its key */
    mtprof__recording *recording = begin_push(source, 1);
    if (recording == NULL) {
        return;
    }
    if (is_of_another(recording, a.launch_key)) {
        source->reports++; /* the device is alive */
        mtb_lock_release(&source->lock);
        return;
    }
    uint32_t name = a.name != NULL ? mtprof__recording_name(recording, a.name, a.name_length) : 0;
    uint32_t kind = a.kind <= MTPROF_ACTIVITY_OVERHEAD ? a.kind : MTPROF_ACTIVITY_OTHER;
    uint64_t record[7 + 2 + MTPROF__INLINE_MAX / 8 + 2 * META_MAX] = {
        mtprof__word0(MTPROF_REC_ACTIVITY, 7, kind, name),
        a.start,
        a.end,
        a.launch_key,
        a.device | (uint64_t)a.queue << 32,
        a.correlation,
        a.bytes,
    };
    uint32_t n_words = 7;
    if (name == 0 && a.name != NULL) {
        n_words += put_name(recording, record + 7, a.name, a.name_length);
    }
    for (uint32_t i = 0; a.meta != NULL && i < a.n_meta; i++) {
        uint32_t type = a.meta[i].type;
        bool odd = type > MTPROF_META_BOOL || (type == MTPROF_META_BOOL && a.meta[i].value > 1);
        if (odd || n_words + 2 > MT_COUNT(record)) {
            mtprof__store_count(recording->store, MTPROF_HEALTH_TEXTS_CUT, 1);
            continue;
        }
        record[n_words++] = mtprof__word0(MTPROF_REC_META, 2, type, a.meta[i].key);
        record[n_words++] = a.meta[i].value;
    }
    source->reports++;
    if (answers_launch(&a)) {
        mtprof__store_count(recording->store, MTPROF_HEALTH_ACTIVITIES, 1);
    }
    end_push(source, record, n_words, 1);
}

void mtprof_push_clock_pair(mtprof_source *source, uint64_t source_time, uint64_t ticks)
{
    uint64_t record[3] = {mtprof__word0(MTPROF_REC_CLOCK_PAIR, 3, 0, 0), source_time, ticks};
    push(source, record, 3, 0);
}

void mtprof_push_counter(mtprof_source *source, uint32_t name, uint64_t source_time, double value)
{
    uint64_t record[3] = {mtprof__word0(MTPROF_REC_COUNTER, 3, 1, name), source_time, 0};
    memcpy(&record[2], &value, sizeof value);
    push(source, record, 3, 1);
}

void mtprof_push_lost(mtprof_source *source, uint64_t count)
{
    uint64_t record[2] = {mtprof__word0(MTPROF_REC_LOST, 2, MTPROF_LOST_SOURCE, 0), count};
    mtprof__recording *recording = begin_push(source, 0);
    if (recording != NULL) {
        source->reports += count;
        mtprof__store_count(recording->store, MTPROF_LOST_SOURCE, count);
        end_push(source, record, 2, 0);
    }
}
