/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps, see steps.h. Step numbers may be anything, so memory goes with the events, not with the
 * numbers: runs of events of one step are added up, then sorted and merged.
 */
#include "cli/steps.h"

#include <mtprof/model.h>

#include <stdlib.h>
#include <string.h>

/* Where the next event of a step is counted; NULL: no memory. */
static cli_step *find_place(cli_steps *s, size_t *room, int32_t step)
{
    if (s->n > 0 && s->steps[s->n - 1].step == step) {
        return &s->steps[s->n - 1];
    }
    if (s->steps == NULL || s->n == *room) {
        size_t larger = 2 * *room + 16;
        cli_step *moved = realloc(s->steps, larger * sizeof *moved);
        if (moved == NULL) {
            return NULL;
        }
        s->steps = moved;
        *room = larger;
    }
    s->steps[s->n] = (cli_step){.step = step};
    return &s->steps[s->n++];
}

static int compare_steps(const void *a, const void *b)
{
    int32_t x = ((const cli_step *)a)->step, y = ((const cli_step *)b)->step;
    return (x > y) - (x < y);
}

static void merge(cli_steps *s)
{
    size_t kept = 0;
    if (s->n == 0) {
        return;
    }
    qsort(s->steps, s->n, sizeof *s->steps, compare_steps);
    for (size_t i = 1; i < s->n; i++) {
        if (s->steps[i].step == s->steps[kept].step) {
            s->steps[kept].events += s->steps[i].events;
            s->steps[kept].self_ns += s->steps[i].self_ns;
        } else {
            s->steps[++kept] = s->steps[i];
        }
    }
    s->n = kept + 1;
}

bool cli_sum_steps(const cli_columns *columns, int32_t first, int32_t last, cli_steps *out)
{
    size_t room = 0;
    memset(out, 0, sizeof *out);
    for (uint64_t i = 0; i < columns->count; i++) {
        int32_t step = columns->step[i];
        bool host = columns->device[i] == 0 && columns->kind[i] != MTPROF_EVENT_KIND_FUNCTION;
        if (!host || step < 0 || step < first || step > last) {
            continue;
        }
        cli_step *place = find_place(out, &room, step);
        if (place == NULL) {
            free(out->steps);
            memset(out, 0, sizeof *out);
            return false;
        }
        place->events++;
        place->self_ns += (double)columns->self_ns[i];
    }
    merge(out);
    return true;
}
