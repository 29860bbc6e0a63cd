/* SPDX-License-Identifier: Apache-2.0
 *
 * Random runs against an oracle: a list of events, on which the rules are applied as they are
 * written down, with loops over everything.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "support/traces/run_maker.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_EVENTS = 1024,
    MAX_STACK = 32,
    NONE = -1,
    QUEUE = RM_THREADS
};

typedef struct item {
    rm_event event;
    uint32_t run, place;
    int parent; /* item, NONE */
    int link;   /* item, NONE */
    int key_of; /* device work: the host item whose key it has; NONE: key 0; MAX_EVENTS: wrong */
    bool gone;  /* folded */
    int64_t memory; /* own */
} item;

typedef struct world {
    item items[MAX_EVENTS];
    int n;
    uint32_t n_runs, n_threads;
    bool native, memory;
    uint64_t random;
    uint64_t collapsed, unmatched, orphans;
} world;

static uint32_t roll(world *w, uint32_t sides)
{
    return (uint32_t)(mt_test_random(&w->random) % sides);
}

static bool kind_is(const item *it, uint32_t mask)
{
    return mtprof__kind_in(it->event.kind, mask);
}

/* ---- making a world -------------------------------------------------------------------------- */

static item *new_item(world *w, uint32_t run, uint32_t place)
{
    item *it = &w->items[w->n++];
    *it = (item){.run = run, .place = place, .parent = NONE, .link = NONE, .key_of = NONE};
    it->event.step = (int32_t)roll(w, 3) - 1;
    it->memory = (int64_t)roll(w, 100) - 50;
    return it;
}

static uint8_t host_kind(world *w)
{
    static const uint8_t kinds[] = {MTPROF_EVENT_KIND_OP,       MTPROF_EVENT_KIND_OP,
                                    MTPROF_EVENT_KIND_SCOPE,    MTPROF_EVENT_KIND_RUNTIME,
                                    MTPROF_EVENT_KIND_FUNCTION, MTPROF_EVENT_KIND_STEP};
    return kinds[roll(w, MT_COUNT(kinds))];
}

/* One thread: opens and closes at a clock that often does not advance, for many ties. */
static void make_thread(world *w, uint32_t run, uint32_t begins)
{
    int stack[MAX_STACK];
    int depth = 0;
    uint32_t place = 0;
    int first = w->n;
    int64_t now = roll(w, 20);
    while (place < begins || depth > 0) {
        now += roll(w, 3);
        if (depth > 0 && (place == begins || depth == MAX_STACK || roll(w, 5) < 2)) {
            item *top = &w->items[stack[--depth]];
            top->event.end = now;
            top->event.self += now - top->event.start;
            if (depth > 0) {
                w->items[stack[depth - 1]].event.self -= now - top->event.start;
            } else {
                top->event.flags |= MTPROF_EVENT_FLAG_TOP;
            }
            continue;
        }
        item *it = new_item(w, run, place++);
        it->event.start = now;
        it->event.track = run;
        it->event.kind = host_kind(w);
        it->event.name = 1 + roll(w, 2);
        it->event.flags = roll(w, 4) == 0 ? MTPROF_EVENT_FLAG_LAUNCHES : 0;
        it->parent = depth > 0 ? stack[depth - 1] : NONE;
        if (it->event.kind == MTPROF_EVENT_KIND_FUNCTION) { /* not part of the sums */
            it->event.end = now + roll(w, 30);
            it->event.self = it->event.end - now;
        } else if (roll(w, 8) == 0) { /* asynchronous: ends when it likes, takes no part */
            it->event.end = now + roll(w, 30);
            it->event.flags |= MTPROF_EVENT_FLAG_ASYNC;
        } else {
            stack[depth++] = w->n - 1;
        }
        if (roll(w, 12) == 0 &&
            w->n - 1 > first) { /* a parent the program named: any earlier one */
            it->parent = first + (int)roll(w, (uint32_t)(w->n - 1 - first));
            /* Not its parent's name, so that folding by steps and all at once agree. */
            it->event.name = w->items[it->parent].event.name == 3 ? 4 : 3;
        }
    }
}

static void make_queue(world *w, uint32_t run, int hosts)
{
    static const uint8_t kinds[] = {MTPROF_EVENT_KIND_KERNEL, MTPROF_EVENT_KIND_KERNEL,
                                    MTPROF_EVENT_KIND_COPY, MTPROF_EVENT_KIND_SET,
                                    MTPROF_EVENT_KIND_SYNC};
    uint32_t n = roll(w, 12);
    for (uint32_t i = 0; i < n; i++) {
        item *it = new_item(w, run, i);
        it->event.start = roll(w, 80); /* in order of arrival, not of time */
        it->event.end = it->event.start + roll(w, 20);
        it->event.track = QUEUE + roll(w, RM_QUEUES);
        it->event.device = 1;
        it->event.kind = kinds[roll(w, MT_COUNT(kinds))];
        it->event.name = 1 + roll(w, RM_NAMES);
        uint32_t dice = roll(w, 10);
        it->key_of = dice == 0 ? NONE : dice == 1 ? MAX_EVENTS : (int)roll(w, (uint32_t)hosts);
    }
}

static int by_beginning(const void *a, const void *b)
{
    const item *left = *(item *const *)a;
    const item *right = *(item *const *)b;
    if (left->event.start != right->event.start) {
        return left->event.start < right->event.start ? -1 : 1;
    }
    if (left->run != right->run) {
        return left->run < right->run ? -1 : 1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

static void number_hosts(world *w, int hosts)
{
    item *order[MAX_EVENTS];
    for (int i = 0; i < hosts; i++) {
        order[i] = &w->items[i];
    }
    qsort(order, (size_t)hosts, sizeof(item *), by_beginning);
    for (int i = 0; i < hosts; i++) {
        order[i]->event.index = (uint32_t)i;
    }
}

/* Some events have a parent on another thread, which began before them. */
static void name_foreign_parents(world *w, int hosts)
{
    for (int i = 0; i < hosts; i++) {
        item *it = &w->items[i];
        int other = (int)roll(w, (uint32_t)hosts);
        if (roll(w, 15) == 0 && w->items[other].run != it->run &&
            w->items[other].event.index < it->event.index) {
            it->parent = other;
            it->event.flags |= MTPROF_EVENT_FLAG_FOREIGN_PARENT;
        }
    }
}

static void make_world(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->native = roll(w, 3) != 0;
    w->memory = roll(w, 2) != 0;
    w->n_threads = 1 + roll(w, 4);
    for (uint32_t run = 0; run < w->n_threads; run++) {
        make_thread(w, run, 1 + roll(w, 60));
    }
    int hosts = w->n;
    number_hosts(w, hosts);
    name_foreign_parents(w, hosts);
    w->n_runs = w->n_threads;
    for (uint32_t queues = roll(w, 3); queues > 0; queues--) {
        make_queue(w, w->n_runs++, hosts);
    }
}

/* ---- as runs --------------------------------------------------------------------------------- */

static uint64_t key_of(int number)
{
    return (uint64_t)number + 1000;
}

static void fill_runs(const world *w, mtprof__run *runs)
{
    for (int i = 0; i < w->n; i++) {
        const item *it = &w->items[i];
        mtprof__run *run = &runs[it->run];
        rm_event event = it->event;
        bool foreign = (event.flags & MTPROF_EVENT_FLAG_FOREIGN_PARENT) != 0;
        event.flags &= (uint16_t)~MTPROF_EVENT_FLAG_FOREIGN_PARENT; /* assembling finds out */
        event.parent = it->parent != NONE && !foreign ? w->items[it->parent].place + 1 : 0;
        uint32_t place = rm_add(run, &event);
        if (place != it->place) {
            FAIL("item %d is at %u, not %u", i, place, it->place);
        }
        if (foreign) {
            REQUIRE_OK(mtprof__links_add(&run->parents, key_of(it->parent), place));
        }
        if (!kind_is(it, MTPROF__KINDS_DEVICE)) {
            REQUIRE_OK(mtprof__links_add(&run->hosts, key_of(i), place));
        } else {
            uint64_t key = it->key_of == NONE ? 0 : key_of(it->key_of);
            REQUIRE_OK(mtprof__links_add(&run->works, key, place));
        }
        if (w->memory && it->run == 0) {
            void *memory;
            REQUIRE_OK(
                mtprof__columns_extra(&run->columns, MTPROF_COLUMN_ALLOCATED_SELF_CPU, &memory));
            ((int64_t *)memory)[place] = it->memory;
        }
    }
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static void oracle_links(world *w)
{
    int hosts = w->n;
    for (int i = 0; i < hosts; i++) {
        item *it = &w->items[i];
        if (kind_is(it, MTPROF__KINDS_DEVICE) && it->key_of == MAX_EVENTS) {
            w->orphans += kind_is(it, MTPROF__KINDS_WORK);
        } else if (kind_is(it, MTPROF__KINDS_DEVICE) && it->key_of != NONE) {
            it->link = it->key_of;
            it->event.flags |= MTPROF_EVENT_FLAG_MATCHED;
            it->event.step = w->native ? w->items[it->key_of].event.step : it->event.step;
            if (kind_is(it, MTPROF__KINDS_WORK)) {
                w->items[it->link].event.flags |= MTPROF_EVENT_FLAG_MATCHED;
            }
        } else if (w->native && kind_is(it, MTPROF__KINDS_CALL)) {
            it->link = it->parent;
        }
        while (w->native && it->link != NONE &&
               !kind_is(&w->items[it->link], MTPROF__KINDS_OWNER)) {
            it->link = w->items[it->link].parent;
        }
    }
    for (int i = 0; i < hosts; i++) {
        uint16_t flags = w->items[i].event.flags;
        w->unmatched +=
            (flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0 && (flags & MTPROF_EVENT_FLAG_MATCHED) == 0;
    }
}

static bool counts_as_child(const world *w, int i, int parent)
{
    const item *it = &w->items[i];
    return !it->gone && it->parent == parent && kind_is(it, MTPROF__KINDS_TREE) &&
           (it->event.flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_FOREIGN_PARENT)) == 0;
}

static bool can_fold(const world *w, int i)
{
    const item *it = &w->items[i];
    if (it->parent == NONE || !counts_as_child(w, i, it->parent)) {
        return false;
    }
    const item *up = &w->items[it->parent];
    int children = 0;
    for (int k = 0; k < w->n; k++) {
        children += counts_as_child(w, k, it->parent);
    }
    return children == 1 && up->event.name == it->event.name && kind_is(up, MTPROF__KINDS_TREE) &&
           (up->event.flags & MTPROF_EVENT_FLAG_ASYNC) == 0 && up->event.track == it->event.track &&
           up->event.start <= it->event.start && it->event.end <= up->event.end;
}

static void fold_one(world *w, int i)
{
    item *it = &w->items[i];
    item *up = &w->items[it->parent];
    it->gone = true;
    w->collapsed++;
    up->event.self += it->event.self;
    up->memory += it->memory;
    up->event.flags |= MTPROF_EVENT_FLAG_COLLAPSED |
                       (it->event.flags & (MTPROF_EVENT_FLAG_MATCHED | MTPROF_EVENT_FLAG_LAUNCHES));
    for (int k = 0; k < w->n; k++) {
        w->items[k].parent = w->items[k].parent == i ? it->parent : w->items[k].parent;
        w->items[k].link = w->items[k].link == i ? it->parent : w->items[k].link;
    }
}

static void oracle_folds(world *w)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < w->n; i++) {
            if (can_fold(w, i)) {
                fold_one(w, i);
                again = true;
            }
        }
    }
}

static bool is_under(const world *w, int i, int scope)
{
    while (i != NONE && i != scope) {
        i = w->items[i].parent;
    }
    return i == scope;
}

static void add_twin(world *w, int scope, uint32_t track)
{
    item twin = {.event = w->items[scope].event, .parent = NONE, .link = scope, .memory = 0};
    bool any = false;
    for (int i = 0; i < w->n; i++) {
        const item *it = &w->items[i];
        if (kind_is(it, MTPROF__KINDS_WORK) && it->event.track == track && it->link != NONE &&
            is_under(w, it->link, scope)) {
            bool earlier = !any || it->event.start < twin.event.start;
            bool later = !any || it->event.end > twin.event.end;
            twin.event.start = earlier ? it->event.start : twin.event.start;
            twin.event.end = later ? it->event.end : twin.event.end;
            any = true;
        }
    }
    if (any && w->n < MAX_EVENTS) {
        twin.event.kind = MTPROF_EVENT_KIND_ANNOTATION;
        twin.event.device = 1;
        twin.event.flags = MTPROF_EVENT_FLAG_MATCHED;
        twin.event.self = 0;
        twin.event.track = track;
        w->items[w->n++] = twin;
    }
}

static void oracle_twins(world *w)
{
    int n = w->n;
    for (int i = 0; i < n; i++) {
        for (uint32_t queue = 0; queue < RM_QUEUES; queue++) {
            if (!w->items[i].gone && kind_is(&w->items[i], MTPROF__KINDS_SCOPE)) {
                add_twin(w, i, QUEUE + queue);
            }
        }
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* An event without places: others are named by their INDEX. */
typedef struct row {
    int64_t start, end, self, memory;
    uint32_t index, name, track, parent, link;
    int32_t step;
    uint32_t kind, device, flags, zero;
} row;

static int by_row(const void *a, const void *b)
{
    const row *left = a;
    const row *right = b;
    if (left->start != right->start) {
        return left->start < right->start ? -1 : 1;
    }
    if (left->end != right->end) {
        return left->end > right->end ? -1 : 1;
    }
    if (left->index != right->index) {
        return left->index < right->index ? -1 : 1;
    }
    return memcmp(left, right, sizeof *left);
}

static uint32_t index_of(const world *w, int i)
{
    return i != NONE ? w->items[i].event.index : MTPROF_NO_EVENT;
}

static size_t oracle_rows(const world *w, row *rows)
{
    size_t n = 0;
    for (int i = 0; i < w->n; i++) {
        const item *it = &w->items[i];
        const rm_event *e = &it->event;
        if (it->gone) {
            continue;
        }
        bool device = kind_is(it, MTPROF__KINDS_DEVICE);
        rows[n++] = (row){.start = e->start,
                          .end = e->end,
                          .self = e->self,
                          .memory = w->memory && it->run == 0 && !device ? it->memory : 0,
                          .index = device ? MTPROF_NO_EVENT : e->index,
                          .name = e->name,
                          .track = e->track,
                          .parent = index_of(w, it->parent),
                          .link = index_of(w, it->link),
                          .step = e->step,
                          .kind = e->kind,
                          .device = e->device,
                          .flags = e->flags};
    }
    qsort(rows, n, sizeof *rows, by_row);
    return n;
}

static size_t model_rows(const mtprof_model *model, row *rows)
{
    const mtprof__columns *c = &model->columns;
    const uint32_t *link = c->extra[MTPROF_COLUMN_LINK];
    const int64_t *memory = c->extra[MTPROF_COLUMN_ALLOCATED_SELF_CPU];
    for (size_t i = 0; i < c->n; i++) {
        uint32_t parent = c->parent[i];
        uint32_t tied = link != NULL ? link[i] : MTPROF_NO_EVENT;
        rows[i] = (row){.start = c->start_ns[i],
                        .end = c->end_ns[i],
                        .self = c->self_ns[i],
                        .memory = memory != NULL ? memory[i] : 0,
                        .index = c->index[i],
                        .name = c->name[i],
                        .track = c->track[i],
                        .parent = parent != MTPROF_NO_EVENT ? c->index[parent] : parent,
                        .link = tied != MTPROF_NO_EVENT ? c->index[tied] : tied,
                        .step = c->step[i],
                        .kind = c->kind[i],
                        .device = c->device[i],
                        .flags = c->flags[i]};
        if (i > 0 && (rows[i - 1].start > rows[i].start ||
                      (rows[i - 1].start == rows[i].start && rows[i - 1].end < rows[i].end))) {
            FAIL("event %zu is out of order", i);
        }
    }
    qsort(rows, c->n, sizeof *rows, by_row);
    return c->n;
}

static bool compare(const world *w, const mtprof_model *model)
{
    static row expected[MAX_EVENTS];
    static row rows[MAX_EVENTS];
    size_t n = oracle_rows(w, expected);
    if (!CHECK_EQ_U64(model->columns.n, n) || model_rows(model, rows) != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&rows[i], &expected[i], sizeof rows[i]) != 0) {
            return FAIL(
                "row %zu differs: start %lld, kind %u, name %u, index %u, parent %u and %u, "
                "link %u and %u, self %lld and %lld, flags %x and %x",
                i, (long long)rows[i].start, rows[i].kind, rows[i].name, rows[i].index,
                rows[i].parent, expected[i].parent, rows[i].link, expected[i].link,
                (long long)rows[i].self, (long long)expected[i].self, rows[i].flags,
                expected[i].flags);
        }
    }
    return CHECK_EQ_U64(model->findings.collapsed, w->collapsed) &
           CHECK_EQ_U64(model->findings.orphans, w->orphans) &
           CHECK_EQ_U64(model->findings.unmatched, w->unmatched);
}

TEST(random_runs_equal_the_oracle)
{
    static world w;
    uint64_t seed = mt_test_seed();
    uint64_t folded = 0;
    uint64_t twins = 0;
    int rounds = mt_test_long() ? 50000 : 1500;
    for (int round = 0; round < rounds; round++) {
        uint64_t world_seed = mt_test_random(&seed);
        make_world(&w, world_seed);
        mtprof__run runs[8] = {{.order = 0}};
        mtprof_model *model = rm_model(w.native);
        for (uint32_t i = 0; i < w.n_runs; i++) {
            runs[i].order = i;
        }
        fill_runs(&w, runs);
        REQUIRE_OK(mtprof__model_assemble(model, runs, w.n_runs));
        oracle_links(&w);
        int before = w.n;
        if (w.native) {
            oracle_twins(&w);
        }
        twins += (uint64_t)(w.n - before);
        oracle_folds(&w);
        folded += w.collapsed;
        if (w.n == MAX_EVENTS) {
            FAIL("round %d: the oracle has no room", round);
        }
        bool same = compare(&w, model);
        rm_free(model);
        if (!same) {
            FAIL("round %d, world %llu", round, (unsigned long long)world_seed);
            return;
        }
    }
    CHECK(folded > 1000); /* the rules have been tried */
    CHECK(twins > 1000);
}
