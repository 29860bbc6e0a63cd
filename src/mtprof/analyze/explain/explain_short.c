/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining: kernels, or in a trace without a device ops, that are so short that what each of them
 * costs whatever its size is most of their time. That cost is taken to be the time of the shortest
 * tenth of them.
 */
#include "mtprof/analyze/explain/explain_impl.h"

enum {
    BUCKETS = 100,
    SHORT_KERNEL_NS = 10 * 1000,
    SHORT_OP_NS = 5 * 1000
};

static bool counts(const mtprof_explain *e, size_t i, int64_t *ns)
{
    const mtprof__explain_columns *c = &e->columns;
    if (e->has_device) {
        *ns = c->end_ns[i] - c->start_ns[i];
        return c->kind[i] == MTPROF_EVENT_KIND_KERNEL;
    }
    *ns = c->self_ns[i];
    return c->kind[i] == MTPROF_EVENT_KIND_OP && (e->traits[i] & MTPROF__HAS_OP) == 0 &&
           c->track[i] < e->n_tracks && e->tracks[c->track[i]] != MTPROF__TRACK_OTHER;
}

void mtprof__explain_short(mtprof_explain *e)
{
    uint64_t buckets[BUCKETS] = {0};
    mtprof__short_work *s = &e->short_work;
    int64_t limit = e->has_device ? SHORT_KERNEL_NS : SHORT_OP_NS;
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < e->columns.n; i++) {
        int64_t ns;
        bool is_op = e->columns.kind[i] == MTPROF_EVENT_KIND_OP;
        bool is_counted = counts(e, i, &ns);
        if ((!is_op && !is_counted) ||
            mtprof__explain_step_at(e, e->columns.start_ns[i]) == e->n_steps) {
            continue;
        }
        e->n_ops_seen += is_op;
        if (!is_counted) {
            continue;
        }
        s->n++;
        if (ns < limit) {
            s->n_short++;
            s->short_ns += ns > 0 ? ns : 0;
            buckets[ns > 0 ? ns * BUCKETS / limit : 0]++;
            if (ns < shortest) {
                shortest = ns;
                s->example = (uint32_t)i;
            }
        }
    }
    uint64_t seen = 0;
    for (int64_t k = 0; k < BUCKETS && seen * 10 < s->n_short; k++) {
        seen += buckets[k];
        s->fixed_ns = k * limit / BUCKETS;
    }
}
