/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory timeline as torch's two JSON forms (torch-contract 6.2.4, 6.2.5).
 *
 *     memory      [[us, …], [[0, parameter, optimizer state, …, unknown], …]]
 *     memory_raw  [[ns or -1, action, bytes, category], …]
 *
 * In the first, allocations of the same microsecond are one row, releases another, and what is
 * PREEXISTING is a row of its own with the time of the next one: every peak is in some row. It has
 * all times before all sizes, so the timeline is replayed twice rather than kept.
 */
#include "mtprof/export/export_impl.h"
#include "mtprof/export/memory/memory_peak.h"

#include <string.h>

typedef struct plot {
    mtb_writer *writer;
    bool sizes_wanted; /* this round writes sizes, else times */
    bool any_row;      /* something was written */
    bool open;         /* a row waits for more actions at its time */
    bool older;        /* it is the row of what is PREEXISTING */
    int direction;     /* of the row's allocations: 1 up, -1 down, 0: neither yet */
    int64_t time_us;
    mtprof__memory_sum sum;
    mtprof__memory_action gone; /* the first half of a change */
} plot;

static int64_t to_us(int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

/* Closes the row that is open, if there is one: what `now` says. */
static void row_write(plot *p)
{
    if (!p->open) {
        return;
    }
    if (p->any_row) {
        mtb_write_literal(p->writer, ", ");
    }
    p->open = false;
    p->any_row = true;
    if (!p->sizes_wanted) {
        mtb_write_i64(p->writer, p->time_us);
        return;
    }
    mtb_write_literal(p->writer, "[0");
    for (int i = 0; i < MTPROF__MEMORY_CATEGORY_COUNT; i++) {
        char *at = mtb_writer_room(p->writer, 32);
        *at++ = ',';
        *at++ = ' ';
        mtb_writer_took(p->writer, mtb_put_i64(at, p->sum.now.sizes[i]));
    }
    mtb_write_literal(p->writer, "]");
}

/* Another row, unless the one at hand is of the same time and goes the same way: no category, and
 * not their sum, then has a peak between two rows. */
static void row_need(plot *p, bool older, int64_t time_us, int direction)
{
    bool same = p->open && p->older == older && p->time_us == time_us &&
                (direction == 0 || p->direction == 0 || direction == p->direction);
    if (p->open && p->older && !older) {
        p->time_us = time_us; /* the smallest there is */
    }
    if (!same) {
        row_write(p);
        p->direction = 0;
    }
    p->open = true;
    p->older = older;
    p->time_us = time_us;
    p->direction = direction != 0 ? direction : p->direction;
}

static int plot_take(void *context, const mtprof__memory_action *action)
{
    plot *p = context;
    bool older = action->verb == MTPROF__MEMORY_PREEXISTING;
    int64_t time_us = older ? 0 : to_us(action->time_ns);
    if (action->verb != MTPROF__MEMORY_INCREMENT_VERSION) {
        row_need(p, older, time_us, older ? 0 : action->bytes < 0 ? -1 : 1);
        (void)mtprof__memory_sum_add(&p->sum, action);
    } else if (action->bytes < 0) {
        p->gone = *action;
    } else {
        /* From one category to another: the one falls and the other grows, so neither joins. */
        bool moves = action->category != p->gone.category;
        row_need(p, false, time_us, moves ? 2 : 0);
        (void)mtprof__memory_sum_add(&p->sum, &p->gone);
        (void)mtprof__memory_sum_add(&p->sum, action);
    }
    return 0;
}

static int write_plot(mtprof__memory_timeline *timeline, bool sizes)
{
    plot p = {.writer = timeline->job->writer, .sizes_wanted = sizes};
    mtprof__memory_sum_init(&p.sum, timeline);
    mtb_write_literal(p.writer, "[");
    int status = mtprof__memory_run(timeline, plot_take, NULL, &p);
    p.time_us = p.older ? to_us(timeline->first_ns) : p.time_us;
    row_write(&p);
    mtb_write_literal(p.writer, "]");
    return status;
}

int mtprof__export_memory(mtprof__export_job *job)
{
    mtprof__memory_timeline timeline;
    int status = mtprof__memory_prepare(job, &timeline);
    if (status == 0) {
        mtb_write_literal(job->writer, "[");
        status = write_plot(&timeline, false);
        mtb_write_literal(job->writer, ", ");
    }
    if (status == 0) {
        status = write_plot(&timeline, true);
        mtb_write_literal(job->writer, "]");
    }
    mtprof__memory_timeline_fini(&timeline);
    return status;
}

typedef struct raw {
    mtb_writer *writer;
    bool any_row;
} raw;

static int raw_take(void *context, const mtprof__memory_action *action)
{
    raw *r = context;
    char *at = mtb_writer_room(r->writer, 128);
    if (r->any_row) {
        *at++ = ',';
        *at++ = ' ';
    }
    r->any_row = true;
    const int64_t values[] = {action->time_ns, action->verb, action->bytes, action->category};
    for (int i = 0; i < 4; i++) {
        *at++ = i == 0 ? '[' : ',';
        if (i > 0) {
            *at++ = ' ';
        }
        at = mtb_put_i64(at, values[i]);
    }
    *at++ = ']';
    mtb_writer_took(r->writer, at);
    return 0;
}

int mtprof__export_memory_raw(mtprof__export_job *job)
{
    mtprof__memory_timeline timeline;
    int status = mtprof__memory_prepare(job, &timeline);
    if (status == 0) {
        raw r = {.writer = job->writer};
        mtb_write_literal(job->writer, "[");
        status = mtprof__memory_run(&timeline, raw_take, NULL, &r);
        mtb_write_literal(job->writer, "]");
    }
    mtprof__memory_timeline_fini(&timeline);
    return status;
}
