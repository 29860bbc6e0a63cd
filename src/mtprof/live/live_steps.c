/* SPDX-License-Identifier: Apache-2.0
 *
 * Polls of one step each. A look finds how far the recording has come, and which steps have begun;
 * what it found is then read up to the end of one step after the other. After the last one the rest
 * is read as well: it is the running step's, and a ring may take its chunks back.
 *
 *   LST1  Streams are read completely before the next look: live_choose.c counts what is unread by
 *         chunks.
 *   LST2  `now` of rows and devices is about the running step, over as many looks as it takes.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/live/live_impl.h"

#include <string.h>

static void forget_begins(mtprof_live *live)
{
    size_t left = live->n_begins - live->first_begin;
    if (left > 0) {
        memmove(live->begins, live->begins + live->first_begin, left * sizeof *live->begins);
    }
    live->n_begins = left;
    live->first_begin = 0;
}

/* The place of the begin that ends the running step; n_begins: it is not there yet. */
static size_t find_end(const mtprof_live *live, uint64_t shortest_ns, bool last)
{
    int64_t shortest = shortest_ns > INT64_MAX ? INT64_MAX : (int64_t)shortest_ns;
    size_t at = live->first_begin;
    while (at < live->n_begins &&
           mtb_sub_sat(live->begins[at].ns, live->running.ns) < (shortest > 0 ? shortest : 0)) {
        at++;
    }
    bool too_short = at == live->n_begins && at > live->first_begin;
    return too_short && last ? at - 1 : at;
}

/* The first step begins; what was before is nobody's. */
static int enter_first(mtprof_live *live)
{
    live->running = live->begins[live->first_begin++];
    live->in_step = true;
    MT_TRY(mtprof__live_read(live, live->running.ns));
    live->now_ns = live->running.ns;
    MT_TRY(mtprof__live_settle(live));
    return mtprof__live_window_add(live, live->running.ns);
}

static int end_step(mtprof_live *live, size_t at, mtprof_live_step *step)
{
    const mtprof__live_begin next = live->begins[at];
    MT_TRY(mtprof__live_read(live, next.ns));
    live->now_ns = next.ns;
    MT_TRY(mtprof__live_settle(live));
    live->now.steps = (double)(at - live->first_begin + 1);
    MT_TRY(mtprof__live_window_add(live, live->running.ns));
    *step = (mtprof_live_step){
        .first = live->running.step,
        .steps = at - live->first_begin + 1,
        .start_ns = live->running.ns,
        .end_ns = next.ns,
        .allocated_most = live->allocated_most,
    };
    live->allocated_most = live->allocated;
    live->running = next;
    live->first_begin = at + 1;
    return MTPROF_OK;
}

/* LST1 */
static int end_look(mtprof_live *live)
{
    int status = mtprof__live_read(live, INT64_MAX);
    mtprof__live_chosen_end(live);
    mtprof__live_add_busy(live);
    live->looking = false;
    live->ended = live->state != MTPROF_LIVE_RUNNING;
    forget_begins(live);
    return status;
}

static int next_step(mtprof_live *live, int64_t now, uint64_t shortest_ns, bool last,
                     mtprof_live_step *step)
{
    live->by_step = true;
    if (!live->looking) {
        MT_TRY(mtprof__live_find(live, now));
        live->opened = live->looking = true;
    }
    if (!live->in_step && live->first_begin < live->n_begins) {
        MT_TRY(enter_first(live));
    }
    size_t at = live->in_step ? find_end(live, shortest_ns, last) : live->n_begins;
    if (at < live->n_begins) {
        return end_step(live, at, step);
    }
    MT_TRY(end_look(live));
    return MTPROF_EEND;
}

mtprof_status mtprof_live_poll_step(mtprof_live *live, int64_t now_ns, uint64_t shortest_ns,
                                    mtprof_live_step *step)
{
    if (step == NULL || step->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "follow trace: %s",
                        step == NULL ? "no place for the step" : "struct_size of the step is 0");
    }
    const mtb_failure before = *mtb_last_failure();
    mtprof_live_step full = {0}, asked = {0};
    mtb_read_struct(&asked, step);
    int64_t now = now_ns != 0 ? mtb_bound_time(now_ns) : mtprof__live_clock_ns();
    int status = next_step(live, now, shortest_ns, asked.last != 0, &full);
    if (status == MTPROF_OK || status == MTPROF_EEND) {
        *mtb_last_failure() = before; /* damage that is passed over is no failure of this call */
    } else if (live->looking) {
        mtprof__live_chosen_end(live);
        live->looking = false;
    }
    if (status == MTPROF_OK) {
        full.last = asked.last;
        mtb_write_struct(step, &full);
    }
    return status;
}
