/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of a job: opening and asking (ranks_impl.h has the drawing).
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/ranks/ranks_impl.h"

#include <assert.h>
#include <math.h>

const char *mtprof_clock_method_name(uint32_t method)
{
    static const char *const names[] = {"none", "collectives", "wall clock"};
    return names[method < MT_COUNT(names) ? method : 0];
}

const char *mtprof_wait_class_name(uint32_t wait_class)
{
    static const char *const names[] = {"inconclusive", "transfer", "arrival skew", "mixed"};
    static_assert(MT_COUNT(names) == MTPROF_WAIT_COUNT, "a name for each");
    return names[wait_class < MTPROF_WAIT_COUNT ? wait_class : 0];
}

/* Ranks of the job that have no trace here. */
static int find_missing(mtprof_ranks *r)
{
    uint32_t world = r->ranks[0].world_size, at = 0;
    r->facts.world_size = world;
    for (size_t i = 0; i < r->n; i++) {
        for (; at < r->ranks[i].number && at < world; at++) {
            if (!mtb_append(r->missing, r->n_missing, r->missing_capacity, &at)) {
                return mtprof__ranks_no_memory();
            }
        }
        at = r->ranks[i].number + 1;
    }
    for (; at < world; at++) {
        if (!mtb_append(r->missing, r->n_missing, r->missing_capacity, &at)) {
            return mtprof__ranks_no_memory();
        }
    }
    r->facts.missing = (uint32_t)r->n_missing;
    return MTPROF_OK;
}

static int fill(mtprof_ranks *r, const char *const *paths, size_t n_paths)
{
    for (size_t i = 0; i < n_paths; i++) {
        MT_TRY(mtprof__ranks_take(r, paths[i]));
    }
    MT_TRY(mtprof__ranks_choose(r));
    r->facts.ranks = (uint32_t)r->n;
    r->facts.left_out = (uint32_t)r->n_left_out;
    if (r->n == 0) {
        return mtb_fail(MTPROF_EINVAL, "ranks: no trace can be used; %.100s: %.200s",
                        r->left_out[0].path, r->left_out[0].why);
    }
    MT_TRY(find_missing(r));
    MT_TRY(mtprof__ranks_match(r));
    MT_TRY(mtprof__ranks_align(r));
    return mtprof__ranks_waits(r);
}

mtprof_status mtprof_ranks_open(const char *const *paths, size_t n_paths,
                                const mtprof_ranks_options *options, mtprof_ranks **out)
{
    if (out == NULL || paths == NULL || n_paths == 0) {
        return mtb_fail(MTPROF_EINVAL, "ranks: %s", out == NULL ? "out is NULL" : "no traces");
    }
    *out = NULL;
    if (options != NULL && options->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "ranks: options.struct_size is 0");
    }
    mtprof_ranks *r = mtb_calloc(1, sizeof *r);
    if (r == NULL) {
        return mtprof__ranks_no_memory();
    }
    if (options != NULL) {
        mtb_read_struct(&r->options, options);
    }
    int status = fill(r, paths, n_paths);
    if (status != MTPROF_OK) {
        mtprof_ranks_free(r);
        return status;
    }
    *out = r;
    return MTPROF_OK;
}

void mtprof_ranks_free(mtprof_ranks *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        mtb_free(r->ranks[i].path);
        mtb_free(r->ranks[i].calls);
    }
    for (size_t i = 0; i < r->n_left_out; i++) {
        mtb_free(r->left_out[i].path);
        mtb_free(r->left_out[i].why);
    }
    for (size_t i = 0; i < r->n_late; i++) {
        mtb_free(r->late[i].causes);
    }
    mtb_free(r->ranks);
    mtb_free(r->left_out);
    mtb_free(r->late);
    mtb_free(r->missing);
    mtb_free(r->kinds);
    mtb_free(r->matched);
    mtb_free(r->parts);
    mtb_idmap_reset(&r->kind_map);
    mtb_arena_reset(&r->texts);
    mtb_free(r);
}

/* ---- questions ------------------------------------------------------------------------------- */

static int check(const char *what, uint64_t index, uint64_t count, uint32_t struct_size)
{
    if (struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "ranks: struct_size is 0");
    }
    if (index >= count) {
        return mtb_fail(MTPROF_EINVAL, "ranks: no %s %llu, there are %llu", what,
                        (unsigned long long)index, (unsigned long long)count);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_ranks_get_facts(const mtprof_ranks *r, mtprof_ranks_facts *facts)
{
    MT_TRY(check("facts", 0, 1, facts->struct_size));
    mtb_write_struct(facts, &r->facts);
    return MTPROF_OK;
}

mtprof_status mtprof_ranks_get_rank(const mtprof_ranks *r, uint32_t index, mtprof_rank *rank)
{
    MT_TRY(check("rank", index, r->n, rank->struct_size));
    const mtprof__rank *own = &r->ranks[index], *reference = &r->ranks[r->facts.reference];
    double origins = (double)(reference->origin_ns - own->origin_ns);
    double wall = own->has_wall_clock && reference->has_wall_clock
                      ? (double)(own->real_offset_ns - reference->real_offset_ns)
                      : (double)NAN;
    mtprof_rank out = {.rank = own->number,
                       .path = own->path,
                       .start_ns = own->origin_ns,
                       .end_ns = own->end_ns,
                       .offset_ns = own->offset + origins,
                       .drift = own->drift,
                       .residual_ns = own->residual_ns,
                       .bound_ns = own->bound_ns,
                       .wall_error_ns = wall - (own->offset + origins),
                       .calls = own->n_calls_seen,
                       .missing = own->missing,
                       .lost = own->lost,
                       .wait_ns = own->wait_ns,
                       .transfer_ns = own->transfer_ns,
                       .last = own->last};
    mtb_write_struct(rank, &out);
    return MTPROF_OK;
}

bool mtprof_ranks_left_out(const mtprof_ranks *r, uint32_t index, const char **path,
                           const char **why)
{
    if (index >= r->n_left_out) {
        return false;
    }
    *path = r->left_out[index].path;
    *why = r->left_out[index].why;
    return true;
}

bool mtprof_ranks_missing(const mtprof_ranks *r, uint32_t index, uint32_t *rank)
{
    if (index >= r->n_missing) {
        return false;
    }
    *rank = r->missing[index];
    return true;
}

static int64_t convert(const mtprof_ranks *r, const mtprof__rank *rank, double ns)
{
    if (r->facts.method == MTPROF_CLOCK_NONE) {
        return rank->origin_ns + (int64_t)llround(ns);
    }
    return r->ranks[r->facts.reference].origin_ns + (int64_t)llround(mtprof__rank_time(rank, ns));
}

int64_t mtprof_ranks_convert(const mtprof_ranks *r, uint32_t index, int64_t ns)
{
    if (index >= r->n) {
        return ns;
    }
    return convert(r, &r->ranks[index], (double)(ns - r->ranks[index].origin_ns));
}

mtprof_status mtprof_ranks_get_collective(const mtprof_ranks *r, uint32_t index,
                                          mtprof_collective *collective)
{
    MT_TRY(check("collective", index, r->n_matched, collective->struct_size));
    const mtprof__matched *m = &r->matched[index];
    mtprof_collective out = {.wait_class = m->wait_class,
                             .name = r->kinds[m->kind].name,
                             .elements = r->kinds[m->kind].elements,
                             .step = m->step,
                             .ordinal = m->ordinal,
                             .ranks = m->n_ranks,
                             .last = m->last,
                             .arrival_ns = r->ranks[r->facts.reference].origin_ns +
                                           (int64_t)llround(m->arrival),
                             .wait_ns = m->wait,
                             .transfer_ns = m->transfer,
                             .skew_ns = m->skew};
    mtb_write_struct(collective, &out);
    return MTPROF_OK;
}

bool mtprof_ranks_part(const mtprof_ranks *r, uint32_t collective, uint32_t index,
                       mtprof_collective_part *part)
{
    if (collective >= r->n_matched || index >= r->n) {
        return false;
    }
    const mtprof__matched *m = &r->matched[collective];
    const mtprof__part *own = &mtprof__ranks_parts(r, m)[index];
    const mtprof__rank *rank = &r->ranks[index];
    if (!mtprof__part_is_there(own)) {
        return false;
    }
    *part = (mtprof_collective_part){
        .start_ns = convert(r, rank, own->start_ns),
        .end_ns = convert(r, rank, own->end_ns),
        .wait_ns = m->arrival - mtprof__rank_time(rank, own->start_ns),
        .transfer_ns = fmax(mtprof__rank_time(rank, own->end_ns) - m->arrival, 0)};
    return true;
}

mtprof_status mtprof_ranks_get_straggler(const mtprof_ranks *r, uint32_t index,
                                         mtprof_straggler *straggler)
{
    MT_TRY(check("straggler", index, r->n_late, straggler->struct_size));
    mtb_write_struct(straggler, &r->late[index].facts);
    return MTPROF_OK;
}

mtprof_status mtprof_ranks_get_cause(const mtprof_ranks *r, uint32_t straggler, uint32_t index,
                                     mtprof_straggler_cause *cause)
{
    MT_TRY(check("straggler", straggler, r->n_late, cause->struct_size));
    MT_TRY(check("cause", index, r->late[straggler].n_causes, cause->struct_size));
    mtb_write_struct(cause, &r->late[straggler].causes[index]);
    return MTPROF_OK;
}
