/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace's records to columns.
 *
 *     thread slots ─► tasks, in parallel ─► runs ─┐
 *     sources      ─► runs                        ├─► numbered (INDEX) ─► sorted, joined
 *                                                 ┘                      (assemble.c)
 *
 * Ends that another slot recorded are known only when all slots have been read. They are rare, so
 * slots whose scopes they end are simply read again, with those ends known.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/model/columns/build_slot.h"
#include "mtprof/model/columns/build_source.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/prepare.h"
#include "mtprof/model/text/stack_text.h"
#include "mtprof/read/reader_impl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 64,
    PARALLEL_BYTES = 1 << 20, /* less is read faster than a thread is made */
    WAIT_NS = 20 * 1000 * 1000
};

typedef struct build {
    mtprof_model *model;
    mtprof__slot_task *tasks;
    size_t n_tasks;
    const bool *chosen;  /* tasks to run; NULL: all */
    size_t next_task;    /* atomic, relaxed: a ticket counter */
    uint64_t done_bytes; /* atomic */
    int failed;          /* atomic: first status that was not 0 */
    mtb_failure failure;
    mtb_lock lock; /* of failure */
    mtprof__run *source_runs;
    size_t n_source_runs;
    mtprof__foreign_end *ends;
    size_t n_ends;
} build;

/* ---- tasks in parallel ----------------------------------------------------------------------- */

/* The detail of a failure is the failing thread's; the caller wants it. */
static void note_failure(build *b, int status)
{
    mtb_lock_acquire(&b->lock);
    if (__atomic_load_n(&b->failed, __ATOMIC_SEQ_CST) == 0) {
        b->failure = *mtb_last_failure();
        __atomic_store_n(&b->failed, status, __ATOMIC_SEQ_CST);
    }
    mtb_lock_release(&b->lock);
}

static void run_tasks(build *b, bool reports)
{
    for (;;) {
        size_t i = __atomic_fetch_add(&b->next_task, 1, __ATOMIC_RELAXED);
        if (i >= b->n_tasks || __atomic_load_n(&b->failed, __ATOMIC_SEQ_CST) != 0) {
            return;
        }
        if (b->chosen != NULL && !b->chosen[i]) {
            continue;
        }
        b->tasks[i].reports = reports;
        int status = mtprof__slot_task_run(&b->tasks[i]);
        if (status != MTPROF_OK) {
            note_failure(b, status);
        }
    }
}

static void *worker(void *context)
{
    run_tasks(context, false);
    return NULL;
}

static size_t count_workers(const build *b)
{
    uint64_t bytes = 0;
    size_t wanted = b->model->options.workers;
    if (wanted == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        wanted = cores > 0 ? (size_t)cores : 1;
    }
    for (size_t i = 0; i < b->n_tasks; i++) {
        bytes += b->model->reader->index.streams[b->tasks[i].stream].bytes;
    }
    size_t worth = (size_t)(bytes / PARALLEL_BYTES) + 1;
    wanted = wanted < worth ? wanted : worth;
    wanted = wanted < b->n_tasks ? wanted : b->n_tasks;
    return wanted < WORKERS_MAX ? wanted : WORKERS_MAX;
}

/* Waits for a worker, and asks meanwhile whether the caller still wants the result. */
static void wait_for(build *b, pthread_t thread)
{
    const mtprof_model_options *options = &b->model->options;
    for (;;) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT) {
            return;
        }
        uint64_t done = __atomic_load_n(&b->done_bytes, __ATOMIC_RELAXED);
        uint64_t total = b->model->reader->index.end;
        if (options->progress != NULL && __atomic_load_n(&b->failed, __ATOMIC_SEQ_CST) == 0 &&
            options->progress(options->user, "reading", done < total ? done : total, total) != 0) {
            note_failure(b, mtb_fail(MTPROF_ECALLBACK, "make model: given up on request"));
        }
    }
}

/* A thread that cannot be made is not a failure: this one does the work. Workers block all signals,
 * which are for the program's threads. */
static int run_all(build *b)
{
    pthread_t threads[WORKERS_MAX];
    size_t n = 0;
    size_t wanted = count_workers(b);
    sigset_t all;
    sigset_t before;
    __atomic_store_n(&b->next_task, 0, __ATOMIC_SEQ_CST);
    (void)sigfillset(&all);
    bool masked = wanted > 1 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    while (masked && n + 1 < wanted && pthread_create(&threads[n], NULL, worker, b) == 0) {
        n++;
    }
    if (masked) {
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    run_tasks(b, true);
    while (n > 0) {
        wait_for(b, threads[--n]);
    }
    int status = __atomic_load_n(&b->failed, __ATOMIC_SEQ_CST);
    if (status != MTPROF_OK) {
        *mtb_last_failure() = b->failure;
    }
    return status;
}

/* ---- ends that other slots recorded ---------------------------------------------------------- */

static int compare_ends(const void *a, const void *b)
{
    const mtprof__foreign_end *left = a;
    const mtprof__foreign_end *right = b;
    int order = mtb_order(left->key, right->key);
    order = order != 0 ? order : mtb_order(left->ns, right->ns);
    return order != 0 ? order : mtb_order(left->slot, right->slot);
}

/* All of them by key, of each key the first. */
static int collect_ends(build *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        n += b->tasks[i].n_ends;
    }
    if (n == 0) {
        return MTPROF_OK;
    }
    b->ends = mtb_resize(NULL, n, sizeof *b->ends);
    if (b->ends == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    size_t at = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        if (b->tasks[i].n_ends > 0) {
            memcpy(b->ends + at, b->tasks[i].ends, b->tasks[i].n_ends * sizeof *b->ends);
            at += b->tasks[i].n_ends;
        }
    }
    qsort(b->ends, n, sizeof *b->ends, compare_ends);
    for (size_t i = 0; i < n; i++) {
        if (b->n_ends == 0 || b->ends[b->n_ends - 1].key != b->ends[i].key) {
            b->ends[b->n_ends++] = b->ends[i];
        }
    }
    return MTPROF_OK;
}

/* Gives each task the ends of its slot; true where it has any. */
static bool hand_out(const build *b, mtprof__slot_task *task)
{
    uint64_t slot = b->model->reader->index.streams[task->stream].slot;
    size_t first = 0;
    while (first < b->n_ends && b->ends[first].key >> MTPROF_ORDINAL_BITS < slot) {
        first++;
    }
    size_t behind = first;
    while (behind < b->n_ends && b->ends[behind].key >> MTPROF_ORDINAL_BITS == slot) {
        behind++;
    }
    task->foreign = b->ends + first;
    task->n_foreign = behind - first;
    return behind > first;
}

static int read_again(build *b)
{
    MT_TRY(collect_ends(b));
    if (b->n_ends == 0) {
        return MTPROF_OK;
    }
    bool *chosen = mtb_calloc(b->n_tasks, sizeof *chosen);
    if (chosen == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    for (size_t i = 0; i < b->n_tasks; i++) {
        chosen[i] = hand_out(b, &b->tasks[i]);
        if (chosen[i]) {
            mtprof__slot_task_reset(&b->tasks[i]);
        }
    }
    b->chosen = chosen;
    int status = run_all(b);
    b->chosen = NULL;
    mtb_free(chosen);
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The position in a run while the events of one block are numbered. */
typedef struct front {
    const int64_t *start_ns;
    uint32_t *index;
    uint32_t at, behind;
    uint32_t order; /* slot */
} front;

static bool comes_first(const front *a, const front *b)
{
    int64_t left = a->start_ns[a->at];
    int64_t right = b->start_ns[b->at];
    return left != right ? left < right : a->order < b->order;
}

static void sift(front *heap, size_t n, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
            least = comes_first(&heap[child], &heap[least]) ? child : least;
        }
        if (least == at) {
            return;
        }
        front moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

/* Numbers the events of the fronts from `next` on, in order of (start, slot, place). */
static uint32_t number_block(front *heap, size_t n, uint32_t next)
{
    for (size_t i = n; i-- > 0;) {
        sift(heap, n, i);
    }
    while (n > 1) {
        heap[0].index[heap[0].at++] = next++;
        if (heap[0].at == heap[0].behind) {
            heap[0] = heap[--n];
        }
        sift(heap, n, 0);
    }
    for (; n == 1 && heap[0].at < heap[0].behind; heap[0].at++) {
        heap[0].index[heap[0].at] = next++;
    }
    return next;
}

/* A segment of one of the runs. */
typedef struct piece {
    const mtprof__slot_task *task;
    mtprof__run_block segment;
} piece;

static int compare_pieces(const void *a, const void *b)
{
    const piece *left = a;
    const piece *right = b;
    int order = mtb_order(left->segment.block, right->segment.block);
    order = order != 0 ? order : mtb_order(left->task, right->task);
    return order != 0 ? order : mtb_order(left->segment.first, right->segment.first);
}

/* Numbers the pieces [first, behind), which are those of a block. */
static void number_pieces(build *b, const piece *pieces, size_t n, front *heap, uint32_t *next)
{
    mtprof__epoch_block *epoch = &b->model->epochs[pieces[0].segment.block];
    for (size_t i = 0; i < n; i++) {
        const mtprof__columns *c = &pieces[i].task->events.columns;
        heap[i] = (front){.start_ns = c->start_ns,
                          .index = c->index,
                          .at = pieces[i].segment.first,
                          .behind = pieces[i].segment.first + pieces[i].segment.count,
                          .order = pieces[i].task->events.order};
    }
    epoch->first_index = *next;
    *next = number_block(heap, n, *next);
    epoch->count = *next - epoch->first_index;
}

/* Blocks without events get their place in INDEX too, and ids where none were reserved: after all
 * others, in order. */
static void give_ids(mtprof_model *model)
{
    uint64_t free_id = mtprof__model_free_id(model);
    uint32_t next = 0;
    for (uint32_t i = 0; i < model->n_epochs; i++) {
        model->epochs[i].first_index = next;
        next += model->epochs[i].count;
        if (!model->epochs[i].id_known) {
            model->epochs[i].first_id = free_id;
            free_id += model->epochs[i].count;
        }
    }
}

static int number_events(build *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        n += b->tasks[i].n_segments;
    }
    front *heap = mtb_calloc(n + 1, sizeof *heap);
    piece *pieces = mtb_calloc(n + 1, sizeof *pieces);
    if (heap == NULL || pieces == NULL) {
        mtb_free(heap);
        mtb_free(pieces);
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    size_t at = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        for (size_t k = 0; k < b->tasks[i].n_segments; k++) {
            pieces[at++] = (piece){&b->tasks[i], b->tasks[i].segments[k]};
        }
    }
    if (n > 1) {
        qsort(pieces, n, sizeof *pieces, compare_pieces);
    }
    for (uint32_t i = 0; i < b->model->n_epochs; i++) {
        b->model->epochs[i].count = 0; /* of an earlier try */
    }
    uint32_t next = 0;
    for (size_t first = 0; first < n;) {
        size_t behind = first;
        while (behind < n && pieces[behind].segment.block == pieces[first].segment.block) {
            behind++;
        }
        number_pieces(b, pieces + first, behind - first, heap, &next);
        first = behind;
    }
    mtb_free(heap);
    mtb_free(pieces);
    give_ids(b->model);
    return MTPROF_OK;
}

/* ---- together -------------------------------------------------------------------------------- */

static bool is_of_lower_slot(const void *task, uint64_t slot)
{
    return ((const mtprof__slot_task *)task)->events.order < slot;
}

/* The task of a slot, or NULL. Tasks are in order of slots. */
static mtprof__slot_task *task_of_slot(const build *b, uint64_t slot)
{
    size_t at = mtb_search(b->tasks, b->n_tasks, sizeof *b->tasks, is_of_lower_slot, slot);
    return at < b->n_tasks && b->tasks[at].events.order == slot ? &b->tasks[at] : NULL;
}

/* Whether a hole had cut the event at `row` off before another began (slot_stream.h, SL5). */
static bool was_cut(const mtprof__slot_task *task, uint32_t row, int64_t ns)
{
    const mtprof__columns *c = &task->events.columns;
    return task->counts.truncated_in_gaps > 0 &&
           (c->flags[row] & MTPROF_EVENT_FLAG_TRUNCATED) != 0 && c->end_ns[row] < ns;
}

/* The key of a parent that was named across slots goes to the hosts of the run it is in. */
static int find_named_parent(build *b, mtprof__link *link, int64_t child_ns)
{
    mtprof__slot_task *task = task_of_slot(b, link->key >> MTPROF_ORDINAL_BITS);
    uint32_t row = task != NULL ? mtprof__slot_task_row(task, link->key) : MTPROF_NO_EVENT;
    if (row != MTPROF_NO_EVENT && was_cut(task, row, child_ns)) {
        link->key = 0; /* no parent: no slot is 0 */
        return MTPROF_OK;
    }
    return row != MTPROF_NO_EVENT ? mtprof__links_add(&task->events.hosts, link->key, row)
                                  : MTPROF_OK;
}

static int find_named_parents(build *b)
{
    for (size_t i = 0; i < b->n_tasks; i++) {
        mtprof__run *run = &b->tasks[i].events;
        for (size_t k = 0; k < run->parents.n; k++) {
            mtprof__link *link = &run->parents.items[k];
            MT_TRY(find_named_parent(b, link, run->columns.start_ns[link->event]));
        }
    }
    return MTPROF_OK;
}

static int read_sources(build *b)
{
    const mtprof__chunk_index *index = &b->model->reader->index;
    b->source_runs = mtb_calloc(index->n_streams + 1, sizeof *b->source_runs);
    if (b->source_runs == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    for (uint32_t i = 0; i < index->n_streams; i++) {
        if (index->streams[i].kind == MTPROF_STREAM_SOURCE) {
            mtprof__run *run = &b->source_runs[b->n_source_runs++];
            MT_TRY(mtprof__source_to_run(b->model, i, run));
        }
    }
    return MTPROF_OK;
}

static int assemble(build *b)
{
    size_t n = 0;
    mtprof__run *runs = mtb_calloc(2 * b->n_tasks + b->n_source_runs + 1, sizeof *runs);
    if (runs == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    for (size_t i = 0; i < b->n_tasks;
         i++) { /* runs change hands: they are empty here afterwards */
        runs[n++] = b->tasks[i].events;
        runs[n++] = b->tasks[i].memory;
        memset(&b->tasks[i].events, 0, sizeof runs[0]);
        memset(&b->tasks[i].memory, 0, sizeof runs[0]);
    }
    for (size_t i = 0; i < b->n_source_runs; i++) {
        runs[n++] = b->source_runs[i];
        memset(&b->source_runs[i], 0, sizeof runs[0]);
    }
    int status = mtprof__model_assemble(b->model, runs, n);
    for (size_t i = 0; i < n; i++) {
        mtprof__run_fini(&runs[i]);
    }
    mtb_free(runs);
    return status;
}

static void add_counts(build *b)
{
    mtprof_model_findings *findings = &b->model->findings;
    mtprof__damage damage = mtprof__problems_damage(&b->model->reader->problems);
    for (size_t i = 0; i < b->n_tasks; i++) {
        const mtprof__slot_counts *counts = &b->tasks[i].counts;
        findings->ends_without_begin += counts->ends_without_begin;
        findings->truncated += counts->truncated;
        findings->overlaps += counts->overlaps;
        findings->clock_back += counts->clock_back;
        findings->truncated_in_gaps += counts->truncated_in_gaps;
        mtprof__damage_merge(&damage, &counts->damage);
        b->model->points_seen |= b->tasks[i].points;
    }
    b->model->points_seen |= b->n_source_runs > 0 ? (uint32_t)MTPROF__KINDS_MARK : 0;
    findings->problems = damage.problems;
    findings->problem_bytes = damage.bytes;
    findings->problem_offset = damage.first;
}

static int make_tasks(build *b)
{
    const mtprof__chunk_index *index = &b->model->reader->index;
    b->tasks = mtb_calloc(index->n_streams + 1, sizeof *b->tasks);
    if (b->tasks == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its parts");
    }
    for (uint32_t i = 0; i < index->n_streams; i++) {
        if (index->streams[i].kind == MTPROF_STREAM_THREAD) {
            mtprof__slot_task *task = &b->tasks[b->n_tasks++];
            task->model = b->model;
            task->stream = i;
            task->done_bytes = &b->done_bytes;
            task->failed = &b->failed;
        }
    }
    return MTPROF_OK;
}

static int build_columns(build *b)
{
    MT_TRY(make_tasks(b));
    MT_TRY(run_all(b));
    MT_TRY(read_again(b));
    MT_TRY(read_sources(b));
    MT_TRY(number_events(b));
    MT_TRY(find_named_parents(b));
    add_counts(b);
    if ((b->model->info.wants & MTPROF_WANT_STACKS) != 0) {
        MT_TRY(mtprof__stacks_too_deep(b->model, &b->model->findings.left_out));
    }
    return assemble(b);
}

int mtprof__model_build(mtprof_model *model)
{
    build b = {.model = model};
    memset(&model->findings, 0, sizeof model->findings);
    mtb_lock_init(&b.lock, MTB_RANK_BUILD);
    int status = build_columns(&b);
    for (size_t i = 0; i < b.n_tasks; i++) {
        mtprof__slot_task_reset(&b.tasks[i]);
    }
    for (size_t i = 0; i < b.n_source_runs; i++) {
        mtprof__run_fini(&b.source_runs[i]);
    }
    mtb_free(b.tasks);
    mtb_free(b.source_runs);
    mtb_free(b.ends);
    mtb_lock_fini(&b.lock);
    if (status != MTPROF_OK) {
        mtprof__columns_fini(&model->columns);
    }
    return status;
}
