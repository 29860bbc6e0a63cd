/* SPDX-License-Identifier: Apache-2.0
 *
 * What has an id and may end on another thread: ITT's frames, regions, overlapped tasks, and its
 * events, which the same thread ends. All are asynchronous scopes. A range that begins again while
 * it is open ends there.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "sources/itt/itt_impl.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BUCKETS = 1024,
    MOST_OPEN = 65536,  /* beyond, ranges are left out and counted */
    MOST_EVENTS = 65536 /* kinds of events */
};

typedef struct open_range {
    uint64_t key[5]; /* what kind, of which domain or thread, the id */
    mtprof_token token;
    struct open_range *next;
} open_range;

enum {
    KIND_FRAME = 1,
    KIND_TASK, /* and regions: their ids are of one kind */
    KIND_EVENT
};

static struct {
    open_range *buckets[BUCKETS];
    uint32_t count;
    collect_name **events;
    size_t n_events, capacity;
} ranges; /* under collect_objects */

static open_range **find_place(const uint64_t key[5])
{
    open_range **place = &ranges.buckets[mtb_hash_words(key, 5) % BUCKETS];
    while (*place != NULL && memcmp((*place)->key, key, 5 * sizeof *key) != 0) {
        place = &(*place)->next;
    }
    return place;
}

static void begin(const uint64_t key[5], collect_name *name, const char *text, itt_domain *domain)
{
    if (itt__is_paused()) {
        return;
    }
    mtprof_token before = 0;
    mtprof_token token = collect_begin_ranged(name, text, name != NULL ? 0 : strlen(text));
    itt__add_domain(token, domain);
    if (token == 0) {
        return;
    }
    mtb_lock_acquire(&collect_objects);
    open_range **place = find_place(key);
    if (*place == NULL && ranges.count < MOST_OPEN) {
        *place = mtb_calloc(1, sizeof **place);
        if (*place != NULL) {
            memcpy((*place)->key, key, 5 * sizeof *key);
            ranges.count++;
        }
    }
    if (*place != NULL) {
        before = (*place)->token;
        (*place)->token = token;
    } else {
        before = token; /* nothing would ever end it */
    }
    mtb_lock_release(&collect_objects);
    mtprof_count_cut(before == token);
    mtprof_end(before);
}

static void end(const uint64_t key[5])
{
    mtprof_token token = 0;
    mtb_lock_acquire(&collect_objects);
    open_range **place = find_place(key);
    open_range *range = *place;
    if (range != NULL) {
        token = range->token;
        *place = range->next;
        ranges.count--;
        mtb_free(range);
    }
    mtb_lock_release(&collect_objects);
    mtprof_end(token);
}

#define KEY(kind, domain, id)                                                                \
    (uint64_t[5])                                                                            \
    {                                                                                        \
        (kind), (uint64_t)(uintptr_t)(domain), (uint64_t)(id).d1, (uint64_t)(id).d2, (id).d3 \
    }

/* ---- tasks and regions ---- */

mtprof_token itt__find_range(const itt_domain *domain, itt_id id)
{
    mtb_lock_acquire(&collect_objects);
    const open_range *range = *find_place(KEY(KIND_TASK, domain, id));
    mtprof_token token = range != NULL ? range->token : 0;
    mtb_lock_release(&collect_objects);
    return token;
}

static void begin_overlapped(itt_domain *domain, itt_id id, itt_id parent,
                             itt_string_handle *handle)
{
    (void)parent;
    begin(KEY(KIND_TASK, domain, id), itt__name(handle), itt__text(handle, "task"), domain);
}

static void end_overlapped(const itt_domain *domain, itt_id id)
{
    end(KEY(KIND_TASK, domain, id));
}

/* ---- frames: they have no names but their domain's ---- */

static const itt_id no_id;

static void begin_frame(const itt_domain *domain, const itt_id *id)
{
    const char *text = domain != NULL && domain->name != NULL ? domain->name : "frame";
    begin(KEY(KIND_FRAME, domain, id != NULL ? *id : no_id), itt__name(itt__create_string(text)),
          text, NULL);
}

static void end_frame(const itt_domain *domain, const itt_id *id)
{
    end(KEY(KIND_FRAME, domain, id != NULL ? *id : no_id));
}

static itt_timestamp read_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (itt_timestamp)now.tv_sec * 1000000000u + (itt_timestamp)now.tv_nsec;
}

/* A frame that is over: scopes have no times but the recorder's, so it is an instant that says how
 * long it took. */
static void submit_frame(const itt_domain *domain, const itt_id *id, itt_timestamp began,
                         itt_timestamp ended)
{
    (void)id;
    const char *text = domain != NULL && domain->name != NULL ? domain->name : "frame";
    if (itt__is_paused() || !collect_wants(MTPROF_WANT_MARKS)) {
        return;
    }
    ended = ended == ITT_NO_TIMESTAMP ? read_clock() : ended;
    mtprof_instant_named(text, strlen(text), 0);
    uint32_t key = mtprof_intern_here("frame_ns", strlen("frame_ns"));
    mtprof_meta_int(MTPROF_LATEST_INSTANT, key, ended > began ? (int64_t)(ended - began) : 0);
}

/* ---- events ---- */

static int create_event(const char *name, int length)
{
    int number = -1;
    size_t bytes = name != NULL && length > 0 ? strnlen(name, (size_t)length) : 0;
    collect_name *made = collect_name_of(bytes > 0 ? name : "event", bytes > 0 ? bytes : 5, NULL);
    mtb_lock_acquire(&collect_objects);
    for (size_t i = 0; i < ranges.n_events && number < 0; i++) {
        number = ranges.events[i] == made ? (int)i : -1;
    }
    if (number < 0 && made != NULL && ranges.n_events < MOST_EVENTS &&
        mtb_append(ranges.events, ranges.n_events, ranges.capacity, &made)) {
        number = (int)ranges.n_events - 1;
    }
    mtb_lock_release(&collect_objects);
    return number;
}

static collect_name *find_event(int number)
{
    mtb_lock_acquire(&collect_objects);
    collect_name *name =
        number >= 0 && (size_t)number < ranges.n_events ? ranges.events[number] : NULL;
    mtb_lock_release(&collect_objects);
    return name;
}

static itt_id event_id(int number)
{
    return (itt_id){.d1 = (unsigned long long)number, .d2 = (unsigned long long)gettid()};
}

static int start_event(int number)
{
    collect_name *name = find_event(number);
    if (name != NULL) {
        begin(KEY(KIND_EVENT, NULL, event_id(number)), name, name->text, NULL);
    }
    return name != NULL ? 0 : -1;
}

static int end_event(int number)
{
    end(KEY(KIND_EVENT, NULL, event_id(number)));
    return 0;
}

const itt_function itt__range_functions[] = {
    ITT_FUNCTION("task_begin_overlapped", begin_overlapped),
    ITT_FUNCTION("task_end_overlapped", end_overlapped),
    ITT_FUNCTION("region_begin", begin_overlapped),
    ITT_FUNCTION("region_end", end_overlapped),
    ITT_FUNCTION("frame_begin_v3", begin_frame),
    ITT_FUNCTION("frame_end_v3", end_frame),
    ITT_FUNCTION("frame_submit_v3", submit_frame),
    ITT_FUNCTION("get_timestamp", read_clock),
    ITT_FUNCTION("event_create", create_event),
    ITT_FUNCTION("event_start", start_event),
    ITT_FUNCTION("event_end", end_event),
    {NULL, NULL},
};
