/* SPDX-License-Identifier: Apache-2.0
 *
 * What each step took. Step numbers may be anything, so memory goes with the events, not with the
 * numbers: runs of events of one step are added up, then sorted and merged.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/model/model_impl.h"

#include <mtprof/averages.h>

#include <stdlib.h>

typedef struct sums {
    mtprof_step_sum *items;
    size_t n, capacity;
} sums;

typedef struct columns {
    uint64_t n;
    const int64_t *self_ns;
    const int32_t *step;
    const uint8_t *kind, *device;
} columns;

static int add_up(const columns *c, sums *s)
{
    for (uint64_t i = 0; i < c->n; i++) {
        int32_t step = c->step[i];
        if (c->device[i] != 0 || c->kind[i] == MTPROF_EVENT_KIND_FUNCTION || step < 0) {
            continue;
        }
        if (s->n == 0 || s->items[s->n - 1].step != step) {
            const mtprof_step_sum sum = {.struct_size = sizeof sum, .step = step};
            if (!mtb_append(s->items, s->n, s->capacity, &sum)) {
                return mtb_fail(MTPROF_ENOMEM, "visit_steps: no memory for %zu steps", s->n + 1);
            }
        }
        s->items[s->n - 1].events++;
        s->items[s->n - 1].self_ns += (double)c->self_ns[i];
    }
    return MTPROF_OK;
}

static int compare_steps(const void *a, const void *b)
{
    int32_t x = ((const mtprof_step_sum *)a)->step;
    int32_t y = ((const mtprof_step_sum *)b)->step;
    return (x > y) - (x < y);
}

static void merge(sums *s)
{
    size_t kept = 0;
    if (s->n == 0) {
        return;
    }
    qsort(s->items, s->n, sizeof *s->items, compare_steps);
    for (size_t i = 1; i < s->n; i++) {
        if (s->items[i].step == s->items[kept].step) {
            s->items[kept].events += s->items[i].events;
            s->items[kept].self_ns += s->items[i].self_ns;
        } else {
            s->items[++kept] = s->items[i];
        }
    }
    s->n = kept + 1;
}

static int visit(const sums *s, mtprof_step_visitor *visitor, void *user)
{
    for (size_t i = 0; i < s->n; i++) {
        int answer = visitor(user, &s->items[i]);
        if (answer != 0) {
            return mtb_fail(MTPROF_ECALLBACK, "visit_steps: the visitor returned %d", answer);
        }
    }
    return MTPROF_OK;
}

mtprof_status mtprof_model_visit_steps(mtprof_model *model, mtprof_step_visitor *visitor,
                                       void *user)
{
    if (model == NULL || visitor == NULL) {
        return mtb_fail(MTPROF_EINVAL, "visit_steps: %s is NULL",
                        model == NULL ? "model" : "visitor");
    }
    columns c = {0};
    sums s = {0};
    const mtprof__wanted_column wanted[] = {
        {MTPROF_COLUMN_SELF_NS, (const void **)&c.self_ns},
        {MTPROF_COLUMN_STEP, (const void **)&c.step},
        {MTPROF_COLUMN_KIND, (const void **)&c.kind},
        {MTPROF_COLUMN_DEVICE, (const void **)&c.device},
    };
    MT_TRY(mtprof__model_get_columns(model, wanted, MT_COUNT(wanted), &c.n));
    int status = add_up(&c, &s);
    if (status == MTPROF_OK) {
        merge(&s);
        status = visit(&s, visitor, user);
    }
    mtb_free(s.items);
    return status;
}
