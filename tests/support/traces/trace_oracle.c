/* SPDX-License-Identifier: Apache-2.0
 *
 * The second opinion, see trace_oracle.h. Everything is quadratic or worse, on purpose.
 */
#include "support/traces/trace_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t oracle_ns(const rt_trace *trace, uint64_t ticks)
{
    __int128 since = (__int128)ticks - TB_START_TICKS;
    return TB_START_MONO + (int64_t)((since * (__int128)trace->period) >> 56);
}

static oracle_event *add(oracle *o)
{
    if (o->n == o->capacity) {
        o->capacity = o->capacity * 2 + 64;
        o->events = realloc(o->events, o->capacity * sizeof *o->events);
        if (o->events == NULL) {
            fprintf(stderr, "trace_oracle: no memory\n");
            abort();
        }
    }
    oracle_event *e = &o->events[o->n++];
    memset(e, 0, sizeof *e);
    e->parent = e->link = e->full_parent = e->nest_parent = -1;
    e->index = MTPROF_NO_EVENT;
    e->end_at = SIZE_MAX;
    return e;
}

static void set_name(const oracle *o, oracle_event *e, uint32_t name, bool full)
{
    if (full) {
        e->name_length = rt_full_name(o->trace, name, e->name);
    } else {
        e->name_length = o->trace->name_lengths[name];
        memcpy(e->name, o->trace->names[name], e->name_length);
    }
}

/* ---- windows --------------------------------------------------------------------------------- */

/* A window is discarded where one of its closes says so; nothing of it is shown. */
static bool is_shown(const rt_trace *trace, uint32_t epoch)
{
    uint32_t window = 0;
    for (size_t i = 0; i < trace->n_epochs; i++) {
        window = trace->epochs[i].epoch == epoch ? trace->epochs[i].window : window;
    }
    for (size_t i = 0; i < trace->n_epochs; i++) {
        if (trace->epochs[i].window == window && trace->epochs[i].close_kind == 1) {
            return false;
        }
    }
    return true;
}

static const rt_epoch *epoch_of(const rt_trace *trace, uint32_t epoch)
{
    for (size_t i = 0; i < trace->n_epochs; i++) {
        if (trace->epochs[i].epoch == epoch) {
            return &trace->epochs[i];
        }
    }
    return NULL;
}

/* The last step or window that began at or before a time. */
static int32_t step_at(const oracle *o, int64_t ns)
{
    const rt_trace *trace = o->trace;
    int64_t best_ns = INT64_MIN;
    int32_t best = -1;
    for (size_t i = 0; i < trace->n_steps + trace->n_epochs; i++) {
        bool mark = i < trace->n_steps;
        const rt_epoch *epoch = mark ? NULL : &trace->epochs[i - trace->n_steps];
        uint64_t ticks = mark ? trace->step_marks[i].ticks : epoch->open_ticks;
        int32_t step = (int32_t)(mark ? trace->step_marks[i].step : epoch->step);
        int64_t at = oracle_ns(trace, ticks);
        if ((!mark && !is_shown(trace, epoch->epoch)) || at > ns) {
            continue;
        }
        if (at > best_ns || (at == best_ns && step > best)) {
            best_ns = at;
            best = step;
        }
    }
    return best;
}

/* ---- host events ----------------------------------------------------------------------------- */

/* A window without a close ends with the last time seen in the trace. */
static int64_t close_of(const oracle *o, uint32_t epoch)
{
    const rt_epoch *e = epoch_of(o->trace, epoch);
    if (e->close_kind != 3) {
        return oracle_ns(o->trace, e->close_ticks);
    }
    int64_t last = o->end_ns;
    for (size_t i = 0; i < o->trace->n_actions; i++) {
        int64_t ns = oracle_ns(o->trace, o->trace->actions[i].ticks);
        last = ns > last ? ns : last;
    }
    return last;
}

/* When it ends, and whether that is by another slot, or by the close of its window. */
static void find_end(oracle *o, oracle_event *e)
{
    const rt_trace *trace = o->trace;
    for (size_t i = e->begin_at; i < trace->n_actions; i++) {
        const rt_action *action = &trace->actions[i];
        if (action->act != RT_END || action->key != e->key) {
            continue;
        }
        e->end_ns = oracle_ns(trace, action->ticks);
        if (action->slot == e->slot) {
            e->end_at = i;
        } else {
            e->flags |= MTPROF_EVENT_FLAG_ASYNC;
            e->end_slot = action->slot;
        }
        return;
    }
    e->end_ns = close_of(o, e->epoch);
    e->flags |= MTPROF_EVENT_FLAG_TRUNCATED;
    o->truncated++;
}

static void add_begin(oracle *o, size_t i)
{
    const rt_action *action = &o->trace->actions[i];
    oracle_event *e = add(o);
    bool launch = action->act == RT_LAUNCH;
    e->kind = launch ? MTPROF_EVENT_KIND_LAUNCH : (uint32_t)(action->flags & MTPROF_KIND_MASK);
    e->payload = &action->payload;
    set_name(o, e, action->name, (action->payload.fields & RT_HAS_FULL_NAME) != 0);
    e->start_ns = e->end_ns = oracle_ns(o->trace, action->ticks);
    e->thread = action->thread;
    e->epoch = action->epoch;
    e->slot = action->slot;
    e->key = action->key;
    e->begin_at = i;
    e->step = step_at(o, e->start_ns);
    e->flags =
        (uint16_t)(((action->flags & MTPROF_FLAG_ASYNC) != 0 ? MTPROF_EVENT_FLAG_ASYNC : 0) |
                   ((action->flags & MTPROF_FLAG_DEVICE) != 0 ? MTPROF_EVENT_FLAG_DISPATCHED : 0));
    if (launch || (action->flags & MTPROF_FLAG_LAUNCH) != 0) {
        e->flags |= MTPROF_EVENT_FLAG_LAUNCHES;
    }
    if (launch) {
        e->end_at = i;
    } else {
        find_end(o, e);
    }
}

/* Whether scope e is open when action i, of the same slot, happens. */
static bool is_open(const oracle *o, const oracle_event *e, size_t i)
{
    const rt_action *action = &o->trace->actions[i];
    if (e->kind == MTPROF_EVENT_KIND_LAUNCH || e->slot != action->slot || e->begin_at >= i ||
        e->thread != action->thread || e->epoch != action->epoch) {
        return false;
    }
    if (e->end_at != SIZE_MAX) {
        return e->end_at > i;
    }
    bool foreign = (e->flags & MTPROF_EVENT_FLAG_TRUNCATED) == 0;
    int64_t ns = oracle_ns(o->trace, action->ticks);
    return !foreign || e->end_ns > ns || (e->end_ns == ns && e->end_slot > e->slot);
}

/* The innermost open scope at an action: the one that began last. Wants -1: any. */
static int32_t innermost(const oracle *o, size_t i, bool functions, bool only_nesting)
{
    int32_t best = -1;
    for (size_t k = 0; k < o->n; k++) {
        const oracle_event *e = &o->events[k];
        bool fits =
            (functions || e->kind != MTPROF_EVENT_KIND_FUNCTION) && (!only_nesting || e->nests);
        if (fits && is_open(o, e, i) && (best < 0 || e->begin_at > o->events[best].begin_at)) {
            best = (int32_t)k;
        }
    }
    return best;
}

static int32_t by_key(const oracle *o, uint64_t key)
{
    for (size_t k = 0; k < o->n; k++) {
        if (o->events[k].key == key && o->events[k].slot != 0) {
            return (int32_t)k;
        }
    }
    return -1;
}

static void find_parents(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        const rt_action *action = &o->trace->actions[e->begin_at];
        e->full_parent = innermost(o, e->begin_at, true, false);
        e->parent = e->kind == MTPROF_EVENT_KIND_FUNCTION ? e->full_parent
                                                          : innermost(o, e->begin_at, false, false);
        if (action->act == RT_BEGIN && action->parent != MTPROF_KEY_STRUCTURE) {
            e->parent = e->full_parent = action->parent == 0 ? -1 : by_key(o, action->parent);
            if (e->parent >= 0 && o->events[e->parent].thread != e->thread) {
                e->flags |= MTPROF_EVENT_FLAG_FOREIGN_PARENT;
            }
        }
    }
}

/*
 * Which scopes nest: in the order in which they end, a scope that nests ends the nesting of all
 * that began inside it on its thread and are still open.
 */
static void find_nesting(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        e->nests = (e->flags & MTPROF_EVENT_FLAG_ASYNC) == 0 &&
                   e->kind != MTPROF_EVENT_KIND_FUNCTION && e->kind != MTPROF_EVENT_KIND_LAUNCH;
    }
    for (size_t i = 0; i < o->trace->n_actions; i++) {
        const rt_action *action = &o->trace->actions[i];
        for (size_t k = 0; action->act == RT_END && k < o->n; k++) {
            const oracle_event *ending = &o->events[k];
            if (ending->end_at != i || !ending->nests) {
                continue;
            }
            for (size_t m = 0; m < o->n; m++) {
                oracle_event *inner = &o->events[m];
                if (inner->nests && inner->begin_at > ending->begin_at &&
                    inner->thread == ending->thread && is_open(o, inner, i)) {
                    inner->nests = false;
                    inner->overlap_at = i;
                    inner->flags |= MTPROF_EVENT_FLAG_OVERLAP;
                    o->overlaps++;
                }
            }
        }
    }
}

static void find_self(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        bool launch = e->kind == MTPROF_EVENT_KIND_LAUNCH;
        e->self_ns =
            e->nests || e->kind == MTPROF_EVENT_KIND_FUNCTION ? e->end_ns - e->start_ns : 0;
        if (e->nests || launch) {
            e->nest_parent = innermost(o, e->begin_at, false, true);
            e->flags |= e->nest_parent < 0 ? MTPROF_EVENT_FLAG_TOP : 0;
        }
    }
    for (size_t k = 0; k < o->n; k++) {
        const oracle_event *e = &o->events[k];
        if (e->nest_parent >= 0) {
            o->events[e->nest_parent].self_ns -= e->end_ns - e->start_ns;
        }
        if (e->full_parent >= 0 && o->events[e->full_parent].kind == MTPROF_EVENT_KIND_FUNCTION) {
            o->events[e->full_parent].self_ns -= e->end_ns - e->start_ns;
        }
    }
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        if (e->kind == MTPROF_EVENT_KIND_FUNCTION && e->self_ns < 0) {
            e->self_ns = 0; /* what is asynchronous may outlive it */
        }
    }
}

/* Order of beginning: window after window, then time, slot, order in the slot. */
static bool began_before(const oracle *o, const oracle_event *a, const oracle_event *b)
{
    const rt_epoch *left = epoch_of(o->trace, a->epoch);
    const rt_epoch *right = epoch_of(o->trace, b->epoch);
    if (left != right) {
        return left < right;
    }
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns;
    }
    return a->slot != b->slot ? a->slot < b->slot : a->begin_at < b->begin_at;
}

static void find_numbers(oracle *o)
{
    uint64_t next_id = 1;
    for (size_t i = 0; i < o->trace->n_epochs; i++) {
        const rt_epoch *epoch = &o->trace->epochs[i];
        uint64_t after = epoch->first_id + epoch->n_ids;
        next_id = epoch->close_kind != 3 && after > next_id ? after : next_id;
    }
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        const rt_epoch *epoch = epoch_of(o->trace, e->epoch);
        uint32_t before = 0;
        uint32_t before_in_epoch = 0;
        for (size_t m = 0; m < o->n; m++) {
            bool earlier = began_before(o, &o->events[m], e);
            before += earlier;
            before_in_epoch += earlier && o->events[m].epoch == e->epoch;
        }
        e->index = before;
        e->correlation = (epoch->close_kind == 3 ? next_id : epoch->first_id) + before_in_epoch;
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void find_memory(oracle *o)
{
    size_t n_host = o->n;
    for (size_t i = 0; i < o->trace->n_actions; i++) {
        const rt_action *action = &o->trace->actions[i];
        if (action->act != RT_ALLOC || !is_shown(o->trace, action->epoch)) {
            continue;
        }
        int32_t owner = -1;
        for (size_t k = 0; k < n_host; k++) {
            oracle_event *e = &o->events[k];
            /* Nesting or not: that an end comes from elsewhere is not known yet. */
            if (e->kind != MTPROF_EVENT_KIND_FUNCTION && is_open(o, e, i) &&
                (owner < 0 || e->begin_at > o->events[owner].begin_at)) {
                owner = (int32_t)k;
            }
        }
        size_t side = action->device != 0;
        if (owner >= 0) {
            o->events[owner].memory_self[side] += action->bytes;
            continue;
        }
        oracle_event *e = add(o);
        e->kind = MTPROF_EVENT_KIND_MEMORY;
        memcpy(e->name, "[memory]", 8);
        e->name_length = 8;
        e->start_ns = e->end_ns = oracle_ns(o->trace, action->ticks);
        e->thread = action->thread;
        e->step = step_at(o, e->start_ns);
        e->flags = MTPROF_EVENT_FLAG_TOP;
        e->memory_self[side] = action->bytes;
        e->bytes = (uint64_t)action->bytes;
    }
}

/* ---- the device ------------------------------------------------------------------------------ */

static int64_t source_ns(const rt_trace *trace, uint64_t time)
{
    /* Pairs have slope 1: ticks are the source's time. */
    return oracle_ns(trace, time - trace->pairs[0][0] + trace->pairs[0][1]);
}

static bool is_work(uint32_t kind)
{
    return kind == MTPROF_EVENT_KIND_KERNEL || kind == MTPROF_EVENT_KIND_COPY ||
           kind == MTPROF_EVENT_KIND_SET;
}

/* Work belongs to the window that was open, or had been last, when it started. */
static bool work_is_shown(const rt_trace *trace, int64_t ns)
{
    const rt_epoch *best = &trace->epochs[0];
    for (size_t i = 0; i < trace->n_epochs; i++) {
        if (oracle_ns(trace, trace->epochs[i].open_ticks) <= ns) {
            best = &trace->epochs[i];
        }
    }
    return is_shown(trace, best->epoch);
}

static void add_works(oracle *o)
{
    for (size_t i = 0; i < o->trace->n_works; i++) {
        const rt_work *work = &o->trace->works[i];
        int64_t start = source_ns(o->trace, work->start);
        if (!work_is_shown(o->trace, start)) {
            continue;
        }
        int32_t launch = work->key != 0 ? by_key(o, work->key) : -1;
        oracle_event *e = add(o);
        e->kind = MTPROF_EVENT_KIND_KERNEL + work->kind;
        set_name(o, e, work->name, false);
        e->start_ns = start;
        e->end_ns = source_ns(o->trace, work->end);
        e->device = work->device;
        e->queue = work->queue;
        e->bytes = work->bytes;
        e->step = step_at(o, start);
        bool host = e->kind == MTPROF_EVENT_KIND_CALL || e->kind == MTPROF_EVENT_KIND_OVERHEAD;
        e->flags = host ? MTPROF_EVENT_FLAG_ASYNC : 0;
        if (launch < 0) {
            o->orphans += work->key != 0 && is_work(e->kind);
            continue;
        }
        e->flags |= MTPROF_EVENT_FLAG_MATCHED;
        o->events[launch].flags |= MTPROF_EVENT_FLAG_MATCHED;
        e->correlation = o->events[launch].correlation;
        e->step = o->events[launch].step;
        int32_t owner = launch;
        while (owner >= 0 && o->events[owner].kind != MTPROF_EVENT_KIND_OP &&
               o->events[owner].kind != MTPROF_EVENT_KIND_SCOPE &&
               o->events[owner].kind != MTPROF_EVENT_KIND_STEP) {
            owner = o->events[owner].parent;
        }
        e->link = owner;
    }
}

static void link_calls(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        o->unmatched += (e->flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0 &&
                        (e->flags & MTPROF_EVENT_FLAG_MATCHED) == 0;
        if (e->kind != MTPROF_EVENT_KIND_RUNTIME && e->kind != MTPROF_EVENT_KIND_LAUNCH) {
            continue;
        }
        int32_t owner = e->parent;
        while (owner >= 0 && o->events[owner].kind != MTPROF_EVENT_KIND_OP &&
               o->events[owner].kind != MTPROF_EVENT_KIND_SCOPE &&
               o->events[owner].kind != MTPROF_EVENT_KIND_STEP) {
            owner = o->events[owner].parent;
        }
        e->link = owner;
    }
}

/* ---- folding --------------------------------------------------------------------------------- */

static bool is_tree_kind(uint32_t kind)
{
    return kind <= MTPROF_EVENT_KIND_LAUNCH && kind != MTPROF_EVENT_KIND_FUNCTION;
}

/* Whether e counts as a child of its parent. */
static bool is_child(const oracle *o, const oracle_event *e)
{
    const uint16_t no_child =
        MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP | MTPROF_EVENT_FLAG_FOREIGN_PARENT;
    (void)o;
    return !e->gone && e->parent >= 0 && is_tree_kind(e->kind) && (e->flags & no_child) == 0;
}

static size_t count_children(const oracle *o, int32_t parent)
{
    size_t n = 0;
    for (size_t k = 0; k < o->n; k++) {
        n += is_child(o, &o->events[k]) && o->events[k].parent == parent;
    }
    return n;
}

static bool same_name(const oracle_event *a, const oracle_event *b)
{
    return a->name_length == b->name_length && memcmp(a->name, b->name, a->name_length) == 0;
}

static void fold_into(oracle *o, int32_t child, int32_t parent)
{
    oracle_event *from = &o->events[child];
    oracle_event *to = &o->events[parent];
    from->gone = true;
    to->self_ns += from->self_ns;
    to->memory_self[0] += from->memory_self[0];
    to->memory_self[1] += from->memory_self[1];
    to->flags |=
        (uint16_t)(MTPROF_EVENT_FLAG_COLLAPSED |
                   (from->flags & (MTPROF_EVENT_FLAG_LAUNCHES | MTPROF_EVENT_FLAG_MATCHED)));
    o->collapsed++;
    for (size_t k = 0; k < o->n; k++) {
        if (o->events[k].parent == child) {
            o->events[k].parent = parent;
        }
        if (o->events[k].link == child) {
            o->events[k].link = parent;
        }
        if (o->events[k].thread == 0 && o->events[k].correlation == from->correlation) {
            o->events[k].correlation = to->correlation; /* work that it launched */
        }
    }
}

static void fold_duplicates(oracle *o)
{
    bool again = true;
    while (again) {
        again = false;
        for (size_t k = 0; k < o->n && !again; k++) {
            const oracle_event *e = &o->events[k];
            if (!is_child(o, e) || !is_tree_kind(o->events[e->parent].kind) ||
                (o->events[e->parent].flags &
                 (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) != 0 ||
                !same_name(e, &o->events[e->parent]) || count_children(o, e->parent) != 1) {
                continue;
            }
            fold_into(o, (int32_t)k, e->parent);
            again = true;
        }
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static bool goes_up(const oracle_event *e)
{
    return e->parent >= 0 && (e->flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP |
                                          MTPROF_EVENT_FLAG_FOREIGN_PARENT)) == 0;
}

static void find_sums(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        int64_t duration = e->end_ns - e->start_ns;
        bool device = e->kind >= MTPROF_EVENT_KIND_KERNEL && e->kind <= MTPROF_EVENT_KIND_OTHER &&
                      e->kind != MTPROF_EVENT_KIND_CALL;
        if (device) {
            e->device_ns = e->self_device_ns = duration;
        }
        for (size_t m = 0; m < o->n; m++) {
            const oracle_event *work = &o->events[m];
            if (is_work(work->kind) && work->link == (int32_t)k) {
                e->self_device_ns += work->end_ns - work->start_ns;
            }
        }
    }
    for (size_t k = 0; k < o->n; k++) {
        const oracle_event *e = &o->events[k];
        bool device = e->thread == 0;
        if (e->gone) {
            continue;
        }
        /* An event's own goes to itself and to all around it. */
        for (int32_t at = (int32_t)k; at >= 0;
             at = goes_up(&o->events[at]) ? o->events[at].parent : -1) {
            if (!device) {
                o->events[at].device_ns += e->self_device_ns;
            }
            o->events[at].memory[0] += e->memory_self[0];
            o->events[at].memory[1] += e->memory_self[1];
        }
    }
}

/* The device's view of a scope: on each queue, from the first to the last of its work. */
static void add_twins(oracle *o)
{
    size_t n = o->n;
    for (size_t k = 0; k < n; k++) {
        uint32_t kind = o->events[k].kind;
        if (o->events[k].gone ||
            (kind != MTPROF_EVENT_KIND_SCOPE && kind != MTPROF_EVENT_KIND_STEP)) {
            continue;
        }
        for (uint32_t place = 0; place < RT_DEVICES * RT_QUEUES; place++) {
            int64_t first = INT64_MAX;
            int64_t last = INT64_MIN;
            for (size_t m = 0; m < n; m++) {
                const oracle_event *work = &o->events[m];
                int32_t at = is_work(work->kind) ? work->link : -1;
                while (at >= 0 && at != (int32_t)k) {
                    at = o->events[at].parent;
                }
                if (at >= 0 && work->device * RT_QUEUES + work->queue == place) {
                    first = work->start_ns < first ? work->start_ns : first;
                    last = work->end_ns > last ? work->end_ns : last;
                }
            }
            if (last == INT64_MIN) {
                continue;
            }
            oracle_event *twin = add(o);
            const oracle_event *scope = &o->events[k];
            twin->kind = MTPROF_EVENT_KIND_ANNOTATION;
            memcpy(twin->name, scope->name, sizeof twin->name);
            twin->name_length = scope->name_length;
            twin->start_ns = first;
            twin->end_ns = last;
            twin->device = place / RT_QUEUES;
            twin->queue = place % RT_QUEUES;
            twin->step = scope->step;
            twin->link = (int32_t)k;
            twin->correlation = scope->correlation;
            twin->flags = MTPROF_EVENT_FLAG_MATCHED;
        }
    }
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool has(const oracle_event *e, uint32_t field)
{
    return e->payload != NULL && (e->payload->fields & field) != 0;
}

/* The backward node that an event is, or is in; -1: none. */
static int32_t node_of(const oracle *o, int32_t at)
{
    while (at >= 0 && !(o->events[at].kind == MTPROF_EVENT_KIND_OP &&
                        has(&o->events[at], RT_HAS_RECORD_SCOPE) &&
                        o->events[at].payload->record_scope == 1)) {
        at = o->events[at].parent;
    }
    return at;
}

static bool stands_before(const oracle_event *a, const oracle_event *b)
{
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns;
    }
    return a->end_ns != b->end_ns ? a->end_ns > b->end_ns : a->index < b->index;
}

/* The first forward event with the node's sequence number, on the thread that it names. */
static const oracle_event *forward_of(const oracle *o, const oracle_event *node)
{
    const oracle_event *best = NULL;
    if (!has(node, RT_HAS_SEQUENCE) || node->payload->sequence < 0) {
        return NULL;
    }
    uint32_t thread = has(node, RT_HAS_FORWARD) ? node->payload->forward_thread : 0;
    for (size_t k = 0; k < o->n; k++) {
        const oracle_event *e = &o->events[k];
        if (!e->gone && has(e, RT_HAS_SEQUENCE) &&
            e->payload->sequence == node->payload->sequence && e->thread == thread &&
            node_of(o, (int32_t)k) < 0 && (best == NULL || stands_before(e, best))) {
            best = e;
        }
    }
    return best;
}

static void find_stacks_and_modules(oracle *o)
{
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        e->stack = has(e, RT_HAS_STACK) ? e->payload->stack : 0;
        e->module = has(e, RT_HAS_MODULE) ? e->payload->module : 0;
    }
    for (size_t k = 0; k < o->n; k++) {
        oracle_event *e = &o->events[k];
        int32_t node =
            e->gone || e->kind == MTPROF_EVENT_KIND_FUNCTION ? -1 : node_of(o, (int32_t)k);
        if (node < 0) {
            continue;
        }
        const oracle_event *forward = forward_of(o, &o->events[node]);
        e->stack = forward != NULL ? forward->stack : 0;
        if (forward != NULL && forward->module != 0 && e->kind == MTPROF_EVENT_KIND_OP) {
            e->module = forward->module;
        }
    }
}

void oracle_make(oracle *o, const rt_trace *trace, int64_t end_ns, bool fold)
{
    memset(o, 0, sizeof *o);
    o->trace = trace;
    o->end_ns = end_ns;
    for (size_t i = 0; i < trace->n_actions; i++) {
        const rt_action *action = &trace->actions[i];
        if ((action->act == RT_BEGIN || action->act == RT_LAUNCH) &&
            is_shown(trace, action->epoch)) {
            add_begin(o, i);
        }
    }
    find_nesting(o);
    find_parents(o);
    find_self(o);
    find_numbers(o);
    find_memory(o);
    add_works(o);
    link_calls(o);
    add_twins(o); /* of every scope: folding is the host's affair */
    if (fold) {
        fold_duplicates(o);
    }
    find_sums(o);
    find_stacks_and_modules(o);
}

void oracle_free(oracle *o)
{
    free(o->events);
    memset(o, 0, sizeof *o);
}
