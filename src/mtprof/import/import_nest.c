/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees by time (torch-contract 3.3): which event of a thread is inside which.
 *
 *   time ──►
 *   A [──────────────────────]          parent of B, TOP; self time: its duration, less B's
 *   B    [────────]                     parent of C
 *   C         [─────────]               outlives B but not A: OVERLAP, no self time, takes none
 *   D                      [───────]    outlives A, which has no parent: a tree of its own, TOP
 *   E                       [──]        child of D, although A is still open
 *
 *   IN1  Events are visited in order of (start, longest first, index): a parent before its
 *        children.
 *   IN2  The innermost open event and its parents are the stack; there is no other. Ends do not
 *        decrease from it to the outermost one, so that the outermost shows whether any contains
 *        an event.
 *   IN3  Functions of a language (kind FUNCTION) are separate: torch's tables do not know
 *        them, so they take no time from ops and are parents of functions only. Their own self time
 *        is less everything inside them.
 *
 *   IN4  torch lets C take A's time too (torch-contract 3.3.2: partial overlap gives no link), so
 *        that the self time of A is negative where B and C together are longer. Here MDL1 and MDL2
 *        of model.h hold always: C has no self time. D is handled as in torch, because the sums
 *        hold with it. In our own traces what an event says of itself ("async", "parent_id") wins.
 *
 * Overheads come on a track of their own. Each goes to the thread that was running: the one whose
 * innermost event around it began last.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

enum {
    /* Threads times steps or overheads. Only hostile files have more: then they stay unassigned. */
    WORK_MOST = 200000000
};

/* ---- one track ------------------------------------------------------------------------------- */

static bool is_function(const mtprof__columns *columns, uint32_t i)
{
    return columns->kind[i] == MTPROF_EVENT_KIND_FUNCTION;
}

/* Parents and flags of all, and self times of all but functions. Whether there are some. */
static bool nest_trees(const mtprof__columns *columns)
{
    const int64_t *start = columns->start_ns;
    const int64_t *end = columns->end_ns;
    uint32_t *parent = columns->parent;
    uint32_t tops[2] = {MTPROF_NO_EVENT, MTPROF_NO_EVENT};
    int64_t root_end = INT64_MIN; /* of what is outermost and no function */
    bool functions = false;
    for (uint32_t i = 0; i < columns->n; i++) {
        bool function = is_function(columns, i);
        bool nests = (columns->flags[i] & MTPROF_EVENT_FLAG_ASYNC) == 0;
        uint32_t *top = &tops[function];
        uint16_t flags =
            columns->flags[i] & (uint16_t) ~(MTPROF_EVENT_FLAG_TOP | MTPROF_EVENT_FLAG_OVERLAP);
        int64_t duration = end[i] - start[i];
        functions |= function;
        while (*top != MTPROF_NO_EVENT && end[*top] <= start[i]) {
            *top = parent[*top];
        }
        if (nests && !function && end[i] > root_end) {
            *top = MTPROF_NO_EVENT;
            root_end = end[i];
        }
        parent[i] = *top;
        columns->self_ns[i] = 0;
        if (nests) {
            if (*top != MTPROF_NO_EVENT && end[i] > end[*top]) {
                flags |= MTPROF_EVENT_FLAG_OVERLAP;
            } else {
                columns->self_ns[i] = duration;
                if (*top != MTPROF_NO_EVENT) {
                    columns->self_ns[*top] -= function ? 0 : duration;
                } else {
                    flags |= function ? 0 : MTPROF_EVENT_FLAG_TOP;
                }
                *top = i;
            }
        }
        columns->flags[i] = flags;
    }
    return functions;
}

/* Self times of functions: one stack of all that nests, whatever it is. below[i] is the event below
 * i on the stack. What does not fit into the stack is inside nothing. */
static void nest_functions(const mtprof__columns *columns, uint32_t *below)
{
    const unsigned loose = MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP;
    uint32_t top = MTPROF_NO_EVENT;
    for (uint32_t i = 0; i < columns->n; i++) {
        while (top != MTPROF_NO_EVENT && columns->end_ns[top] <= columns->start_ns[i]) {
            top = below[top];
        }
        if ((columns->flags[i] & loose) != 0 ||
            (top != MTPROF_NO_EVENT && columns->end_ns[i] > columns->end_ns[top])) {
            continue;
        }
        if (top != MTPROF_NO_EVENT && is_function(columns, top)) {
            columns->self_ns[top] -= columns->end_ns[i] - columns->start_ns[i];
        }
        below[i] = top;
        top = i;
    }
}

int mtprof__import_nest(mtprof__import_track *track)
{
    const mtprof__columns *columns = &track->run.columns;
    if (nest_trees(columns)) {
        uint32_t *below = mtb_resize(NULL, columns->n, sizeof *below);
        if (below == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "open trace: nesting %zu events", columns->n);
        }
        nest_functions(columns, below);
        mtb_free(below);
    }
    track->nested = true;
    return MTPROF_OK;
}

void mtprof__import_innermost(const mtprof__import_track *track, const mtprof__sort_key *times,
                              size_t n, uint32_t *out)
{
    const mtprof__columns *columns = &track->run.columns;
    uint32_t top = MTPROF_NO_EVENT;
    uint32_t next = 0;
    for (size_t q = 0; q < n; q++) {
        int64_t at = times[q].start_ns;
        for (; next < columns->n && columns->start_ns[next] <= at; next++) {
            bool nests =
                !is_function(columns, next) &&
                (columns->flags[next] & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) == 0;
            top = nests ? next : top;
        }
        while (top != MTPROF_NO_EVENT && columns->end_ns[top] < at) {
            top = columns->parent[top];
        }
        out[q] = top;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int collect_steps(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        const mtprof__import_track *track = &import->tracks[t];
        const mtprof__columns *columns = &track->run.columns;
        for (size_t i = 0; track->space == MTPROF__TRACK_HOST && i < columns->n; i++) {
            if (columns->kind[i] != MTPROF_EVENT_KIND_STEP) {
                continue;
            }
            if (!mtb_append(import->steps, import->n_steps, import->steps_capacity,
                            &(mtprof__step_span){columns->start_ns[i], columns->end_ns[i],
                                                 track->pid, columns->step[i]})) {
                return mtb_fail(MTPROF_ENOMEM, "open trace: %zu steps", import->n_steps + 1);
            }
        }
    }
    return MTPROF_OK;
}

static void step_key(const void *item, mtprof__sort_key *key)
{
    const mtprof__step_span *step = item;
    key->start_ns = step->start_ns;
    key->end_ns = step->end_ns;
}

/* An event's step is the one of its process that had begun last, if that goes on. Where its process
 * has no steps, those of all. */
void mtprof__import_tell_steps(const mtprof__import *import, const mtprof__import_track *track)
{
    const mtprof__columns *columns = &track->run.columns;
    const mtprof__step_span *steps = import->steps;
    bool own = false;
    for (size_t s = 0; s < import->n_steps && !own; s++) {
        own = steps[s].pid == track->pid;
    }
    const mtprof__step_span *now = NULL;
    size_t next = 0;
    for (size_t i = 0; i < columns->n; i++) {
        int64_t at = columns->start_ns[i];
        for (; next < import->n_steps && steps[next].start_ns <= at; next++) {
            if (!own || steps[next].pid == track->pid) {
                now = &steps[next];
            }
        }
        if (columns->step[i] < 0 && now != NULL && at < now->end_ns) {
            columns->step[i] = now->step;
        }
    }
}

static int add_steps(mtprof__import *import)
{
    if (import->is_ours) {
        return MTPROF_OK; /* our exports say what has a step; the rest has none */
    }
    MT_TRY(collect_steps(import));
    if (import->n_steps == 0 || (uint64_t)import->n_steps * import->n_tracks > WORK_MOST) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__import_sort_items((void **)&import->steps, import->n_steps,
                                     sizeof *import->steps, step_key));
    import->steps_capacity = import->n_steps;
    for (size_t t = 0; t < import->n_tracks; t++) {
        if (!mtprof__import_is_queue(&import->tracks[t])) {
            mtprof__import_tell_steps(import, &import->tracks[t]);
        }
    }
    return MTPROF_OK;
}

/* ---- overheads ------------------------------------------------------------------------------- */

/* The overheads of a track, and where each goes. */
typedef struct overheads {
    mtprof__sort_key *spans;
    uint32_t *innermost; /* of the current thread */
    uint32_t *homes;     /* track, MTPROF_NO_EVENT: none was running */
    int64_t *began;      /* the start of what is around it there */
    size_t n;
} overheads;

static void overheads_fini(overheads *all)
{
    mtb_free(all->spans);
    mtb_free(all->innermost);
    mtb_free(all->homes);
    mtb_free(all->began);
}

static int overheads_init(overheads *all, const mtprof__columns *columns)
{
    size_t n = columns->n;
    all->n = n;
    all->spans = mtb_calloc(n, sizeof *all->spans);
    all->innermost = mtb_calloc(n, sizeof *all->innermost);
    all->homes = mtb_calloc(n, sizeof *all->homes);
    all->began = mtb_calloc(n, sizeof *all->began);
    if (all->spans == NULL || all->innermost == NULL || all->homes == NULL || all->began == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu overheads", n);
    }
    for (size_t i = 0; i < n; i++) {
        all->spans[i] =
            (mtprof__sort_key){columns->start_ns[i], columns->end_ns[i], 0, (uint32_t)i};
        all->homes[i] = MTPROF_NO_EVENT;
    }
    return MTPROF_OK;
}

static void look_for_homes(overheads *all, const mtprof__import_track *track, uint32_t number)
{
    const mtprof__columns *columns = &track->run.columns;
    mtprof__import_innermost(track, all->spans, all->n, all->innermost);
    for (size_t i = 0; i < all->n; i++) {
        uint32_t at = all->innermost[i];
        while (at != MTPROF_NO_EVENT && columns->end_ns[at] < all->spans[i].end_ns) {
            at = columns->parent[at];
        }
        if (at != MTPROF_NO_EVENT &&
            (all->homes[i] == MTPROF_NO_EVENT || columns->start_ns[at] > all->began[i])) {
            all->homes[i] = number;
            all->began[i] = columns->start_ns[at];
        }
    }
}

static int move_home(mtprof__import *import, const mtprof__columns *from, size_t i, uint32_t home)
{
    const mtprof__new_span span = {
        .start_ns = from->start_ns[i],
        .end_ns = from->end_ns[i],
        .name = from->name[i],
        .index = from->index[i],
        .step = from->step[i],
        .kind = from->kind[i],
    };
    const uint32_t *metadata = from->extra[MTPROF_COLUMN_METADATA];
    uint32_t place;
    MT_TRY(mtprof__import_append(import, home, &span, &place));
    if (metadata != NULL && metadata[i] != 0) {
        MT_TRY(mtprof__columns_set(&import->tracks[home].run.columns, MTPROF_COLUMN_METADATA, place,
                                   metadata[i]));
    }
    import->tracks[home].nested = false;
    return MTPROF_OK;
}

static int spread_overheads(mtprof__import *import, uint32_t from)
{
    overheads all = {NULL, NULL, NULL, NULL, 0};
    mtprof__run run = import->tracks[from].run;
    int status = overheads_init(&all, &run.columns);
    if (status == MTPROF_OK && (uint64_t)import->n_tracks * run.columns.n < WORK_MOST) {
        for (uint32_t t = 0; t < import->n_tracks; t++) {
            if (import->tracks[t].space == MTPROF__TRACK_HOST) {
                look_for_homes(&all, &import->tracks[t], t);
            }
        }
    }
    import->tracks[from].run = (mtprof__run){.order = 0};
    for (size_t i = 0; status == MTPROF_OK && i < all.n; i++) {
        status = move_home(import, &run.columns, i,
                           all.homes[i] != MTPROF_NO_EVENT ? all.homes[i] : from);
    }
    mtprof__run_fini(&run);
    overheads_fini(&all);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int nest_all(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        mtprof__import_track *track = &import->tracks[t];
        MT_TRY(mtprof__import_sort(track));
        if (!mtprof__import_is_queue(track) && !track->nested) {
            MT_TRY(mtprof__import_nest(track));
        }
    }
    return MTPROF_OK;
}

int mtprof__import_trees(mtprof__import *import)
{
    MT_TRY(nest_all(import));
    for (uint32_t t = 0; t < import->n_tracks; t++) {
        if (import->tracks[t].space == MTPROF__TRACK_OVERHEAD) {
            MT_TRY(spread_overheads(import, t));
        }
    }
    MT_TRY(nest_all(import));
    return add_steps(import);
}
