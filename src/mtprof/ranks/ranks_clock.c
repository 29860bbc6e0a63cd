/* SPDX-License-Identifier: Apache-2.0
 *
 * One clock for all ranks.
 *
 * Ranks leave a synchronising collective at nearly the same moment: the ends of the shared ones
 * give each clock a line (offset and drift) by least absolute deviations, first against the
 * reference, the first rank, then against the middle of all ranks' ends. A drift that the scatter
 * of the ends explains, or that is larger than clocks have, is taken for none.
 *
 * The bound does not rest on that. No rank leaves such a collective before another has come:
 *
 *     M(end of r) >= start of the reference,   M(start of r) <= end of the reference
 *
 * for the map M of rank r's clock, so every collective bounds the line from both sides; the bound
 * is the largest distance of a line that keeps all of these from the one that was chosen, over the
 * trace of the rank.
 */
#include "base/fail.h"
#include "mtprof/ranks/ranks_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SHARED = 4, /* collectives for a line with something left to check it by */
    ROUNDS = 3,       /* of fits against the middle */
    REWEIGHTS = 30,
    HALVINGS = 60,
    BUCKETS = 256 /* of time, for limits: of each the tightest two are kept */
};
#define MOST_CONTRADICTION_NS 1e6 /* more: these are not the same collectives, or no such clock */
#define SMALLEST_NS           1.0
/* Clocks of computers are within 100 ppm of each other, those of guests within some hundred. A
 * steeper line comes from ends that scatter over a short time. */
#define MOST_DRIFT 5e-4

typedef struct line {
    double offset, drift;
} line;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mtprof__median(double *values, size_t n)
{
    if (n == 0) {
        return 0;
    }
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* z = offset + drift * x by least squares, each point with weight 1 / max(|residual|, 1 ns) of the
 * line before; x is centred, so that the sums stay exact. */
static line fit_once(const double *x, const double *z, size_t n, const line *before)
{
    double sw = 0, sx = 0, sz = 0, sxx = 0, sxz = 0;
    for (size_t i = 0; i < n; i++) {
        double u = before != NULL ? fabs(z[i] - before->offset - before->drift * x[i]) : 1;
        double w = 1 / (u > SMALLEST_NS ? u : SMALLEST_NS);
        sw += w;
        sx += w * x[i];
        sz += w * z[i];
    }
    double mx = sx / sw, mz = sz / sw;
    for (size_t i = 0; i < n; i++) {
        double u = before != NULL ? fabs(z[i] - before->offset - before->drift * x[i]) : 1;
        double w = 1 / (u > SMALLEST_NS ? u : SMALLEST_NS);
        sxx += w * (x[i] - mx) * (x[i] - mx);
        sxz += w * (x[i] - mx) * (z[i] - mz);
    }
    double drift = sxx > 0 ? sxz / sxx : 0;
    return (line){mz - drift * mx, drift};
}

/* A start that outliers do not move: the middle slope between the halves of the points. */
static line fit_start(const double *x, const double *z, size_t n, double *room)
{
    size_t half = n / 2, used = 0;
    for (size_t i = 0; i + half < n; i++) {
        double dx = x[i + half] - x[i];
        if (dx > 0) {
            room[used++] = (z[i + half] - z[i]) / dx;
        }
    }
    double drift = mtprof__median(room, used);
    for (size_t i = 0; i < n; i++) {
        room[i] = z[i] - drift * x[i];
    }
    return (line){mtprof__median(room, n), drift};
}

/* How sure the slope is: the scatter over the time that the points span, with fewer points less. */
static bool has_drift(const double *x, const double *z, size_t n, const line *found, double *room)
{
    for (size_t i = 0; i < n; i++) {
        room[i] = fabs(z[i] - found->offset - found->drift * x[i]);
    }
    double scatter = 1.48 * mtprof__median(room, n); /* a standard deviation, where it is normal */
    double span = x[n - 1] - x[0];
    double error = scatter * sqrt(12.0 / (double)n) / (span > 1 ? span : 1);
    return fabs(found->drift) <= MOST_DRIFT && fabs(found->drift) > 3 * error;
}

/* Where the points cannot tell a drift, or none that a clock has, there is an offset alone. */
static line fit(const double *x, const double *z, size_t n, double *room)
{
    line found = fit_start(x, z, n, room);
    for (int i = 0; i < REWEIGHTS; i++) {
        found = fit_once(x, z, n, &found);
    }
    if (has_drift(x, z, n, &found, room)) {
        return found;
    }
    memcpy(room, z, n * sizeof *z);
    return (line){mtprof__median(room, n), 0};
}

/* ---- the bound ------------------------------------------------------------------------------- */

/* The line is at or above (or below) `value` at x. Values are relative to the line chosen. */
typedef struct limit {
    double x, value;
} limit;

typedef struct limits {
    limit low[BUCKETS], high[BUCKETS];
    bool has_low[BUCKETS], has_high[BUCKETS];
    double first, width;
} limits;

static size_t bucket_of(const limits *l, double x)
{
    double b = (x - l->first) / l->width * BUCKETS;
    return b < 0 ? 0 : b >= BUCKETS ? BUCKETS - 1 : (size_t)b;
}

static void add_low(limits *l, double x, double value)
{
    size_t b = bucket_of(l, x);
    if (!l->has_low[b] || value > l->low[b].value) {
        l->low[b] = (limit){x, value};
        l->has_low[b] = true;
    }
}

static void add_high(limits *l, double x, double value)
{
    size_t b = bucket_of(l, x);
    if (!l->has_high[b] || value < l->high[b].value) {
        l->high[b] = (limit){x, value};
        l->has_high[b] = true;
    }
}

/* Whether a line with `value` at x0 keeps all limits, each wider by `slack`. */
static bool is_possible(const limits *l, double x0, double value, double slack)
{
    double least = -INFINITY, most = INFINITY; /* of the slope */
    for (size_t b = 0; b < BUCKETS; b++) {
        for (int high = 0; high < 2; high++) {
            if (high != 0 ? !l->has_high[b] : !l->has_low[b]) {
                continue;
            }
            const limit *one = high != 0 ? &l->high[b] : &l->low[b];
            double dx = one->x - x0;
            double dv = one->value + (high != 0 ? slack : -slack) - value;
            if (dx == 0) {
                if (high != 0 ? dv < 0 : dv > 0) {
                    return false;
                }
            } else if ((high != 0) == (dx > 0)) {
                most = dv / dx < most ? dv / dx : most;
            } else {
                least = dv / dx > least ? dv / dx : least;
            }
        }
    }
    return least <= most;
}

/* The furthest that a possible line is from the chosen one at x0, on one side. */
static double furthest(const limits *l, double x0, double side, double slack)
{
    double near = 0, far = 1000;
    while (is_possible(l, x0, side * far, slack)) {
        near = far;
        far *= 2;
        if (far > 1e18) {
            return INFINITY;
        }
    }
    for (int i = 0; i < HALVINGS && far - near > 1; i++) {
        double middle = (near + far) / 2;
        if (is_possible(l, x0, side * middle, slack)) {
            near = middle;
        } else {
            far = middle;
        }
    }
    return far;
}

/* How far the clock of a rank may be off, given its line. *contradiction: by how much the line
 * misses a limit. */
static double bound_of(const mtprof_ranks *r, size_t index, double *contradiction)
{
    static const double sides[] = {-1, 1};
    const mtprof__rank *rank = &r->ranks[index];
    double last = (double)(rank->end_ns - rank->origin_ns), slack = 0, bound = 0;
    limits *l = mtb_calloc(1, sizeof *l);
    if (l == NULL) {
        return NAN;
    }
    l->width = last > 1 ? last : 1;
    for (size_t i = 0; i < r->n_matched; i++) {
        const mtprof__part *parts = mtprof__ranks_parts(r, &r->matched[i]);
        const mtprof__part *own = &parts[index], *other = &parts[r->facts.reference];
        if (!mtprof__part_is_there(own) || !mtprof__part_is_there(other)) {
            continue;
        }
        double low = other->start_ns - mtprof__rank_time(rank, own->end_ns);
        double high = other->end_ns - mtprof__rank_time(rank, own->start_ns);
        add_low(l, own->end_ns, low);
        add_high(l, own->start_ns, high);
        slack = low > slack ? low : slack;
        slack = -high > slack ? -high : slack;
    }
    for (size_t s = 0; s < MT_COUNT(sides); s++) {
        double at_start = furthest(l, 0, sides[s], slack);
        double at_end = furthest(l, last, sides[s], slack);
        bound = at_start > bound ? at_start : bound;
        bound = at_end > bound ? at_end : bound;
    }
    mtb_free(l);
    *contradiction = slack;
    return bound;
}

/* Ends scatter where a machine has too few processors, and a line through them may miss a limit:
 * it moves by the least that keeps all, if an offset alone can do that. */
static void keep_limits(mtprof_ranks *r, size_t index)
{
    mtprof__rank *rank = &r->ranks[index];
    double least = -INFINITY, most = INFINITY;
    for (size_t i = 0; i < r->n_matched; i++) {
        const mtprof__part *parts = mtprof__ranks_parts(r, &r->matched[i]);
        const mtprof__part *own = &parts[index], *other = &parts[r->facts.reference];
        if (mtprof__part_is_there(own) && mtprof__part_is_there(other)) {
            least = fmax(least, other->start_ns - mtprof__rank_time(rank, own->end_ns));
            most = fmin(most, other->end_ns - mtprof__rank_time(rank, own->start_ns));
        }
    }
    if (least <= most) {
        rank->offset += least > 0 ? least : most < 0 ? most : 0;
    }
}

/* ---- all ranks ------------------------------------------------------------------------------- */

typedef struct fitting {
    mtprof_ranks *r;
    double *x, *z, *room; /* of shared collectives */
    double *middle;       /* of their ends on the reference's clock */
    double *ends;         /* of one, a rank each */
    size_t n;
} fitting;

static size_t gather(fitting *f, size_t index, const double *target)
{
    size_t n = 0;
    for (size_t i = 0; i < f->r->n_matched; i++) {
        const mtprof__matched *m = &f->r->matched[i];
        if (m->n_ranks == f->r->n) {
            const mtprof__part *parts = mtprof__ranks_parts(f->r, m);
            f->x[n] = parts[index].end_ns;
            f->z[n] = (target != NULL ? target[n] : parts[f->r->facts.reference].end_ns) - f->x[n];
            n++;
        }
    }
    return n;
}

static void find_middles(fitting *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->r->n_matched; i++) {
        const mtprof__matched *m = &f->r->matched[i];
        if (m->n_ranks != f->r->n) {
            continue;
        }
        const mtprof__part *parts = mtprof__ranks_parts(f->r, m);
        for (size_t k = 0; k < f->r->n; k++) {
            f->ends[k] = mtprof__rank_time(&f->r->ranks[k], parts[k].end_ns);
        }
        f->middle[n++] = mtprof__median(f->ends, f->r->n);
    }
}

static int compare_matched_time(const void *a, const void *b)
{
    const mtprof__matched *x = a, *y = b;
    return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* The points of a fit are in order of time: by the end on the first rank that has one. */
static void sort_matched(mtprof_ranks *r)
{
    for (size_t i = 0; i < r->n_matched; i++) {
        const mtprof__part *parts = mtprof__ranks_parts(r, &r->matched[i]);
        size_t k = 0;
        while (k + 1 < r->n && !mtprof__part_is_there(&parts[k])) {
            k++;
        }
        r->matched[i].arrival = parts[k].end_ns;
    }
    if (r->n_matched > 1) {
        qsort(r->matched, r->n_matched, sizeof *r->matched, compare_matched_time);
    }
}

static void fit_all(fitting *f)
{
    mtprof_ranks *r = f->r;
    for (int round = 0; round <= ROUNDS; round++) {
        if (round > 0) {
            find_middles(f);
        }
        for (size_t i = 0; i < r->n; i++) {
            size_t n = gather(f, i, round > 0 ? f->middle : NULL);
            line found = fit(f->x, f->z, n, f->room);
            r->ranks[i].offset = found.offset;
            r->ranks[i].drift = found.drift;
        }
    }
    /* The middle's clock becomes the reference's: t -> (t - o) / (1 + d). */
    line own = {r->ranks[r->facts.reference].offset, r->ranks[r->facts.reference].drift};
    for (size_t i = 0; i < r->n; i++) {
        mtprof__rank *rank = &r->ranks[i];
        rank->drift = (rank->drift - own.drift) / (1 + own.drift);
        rank->offset = (rank->offset - own.offset) / (1 + own.drift);
    }
    find_middles(f);
}

/* The 95th of 100 of the distances from the middles. */
static void set_residuals(fitting *f)
{
    mtprof_ranks *r = f->r;
    r->facts.residual_ns = 0;
    for (size_t i = 0; i < r->n; i++) {
        mtprof__rank *rank = &r->ranks[i];
        size_t n = gather(f, i, f->middle);
        for (size_t k = 0; k < n; k++) {
            f->room[k] = fabs(f->middle[k] - mtprof__rank_time(rank, f->x[k]));
        }
        qsort(f->room, n, sizeof *f->room, compare_doubles);
        rank->residual_ns = f->room[(n - 1) * 95 / 100];
        if (rank->residual_ns > r->facts.residual_ns) {
            r->facts.residual_ns = rank->residual_ns;
        }
    }
}

static int align_by_collectives(mtprof_ranks *r)
{
    size_t n = r->facts.shared + 1;
    fitting f = {.r = r,
                 .x = mtb_calloc(n, sizeof(double)),
                 .z = mtb_calloc(n, sizeof(double)),
                 .room = mtb_calloc(n, sizeof(double)),
                 .middle = mtb_calloc(n, sizeof(double)),
                 .ends = mtb_calloc(r->n + 1, sizeof(double))};
    int status = MTPROF_OK;
    if (f.x == NULL || f.z == NULL || f.room == NULL || f.middle == NULL || f.ends == NULL) {
        status = mtprof__ranks_no_memory();
    } else {
        fit_all(&f);
        set_residuals(&f);
    }
    mtb_free(f.x);
    mtb_free(f.z);
    mtb_free(f.room);
    mtb_free(f.middle);
    mtb_free(f.ends);
    r->facts.bound_ns = 0;
    r->facts.contradiction_ns = 0;
    for (size_t i = 0; i < r->n && status == MTPROF_OK; i++) {
        double contradiction = 0;
        if (i != r->facts.reference) {
            keep_limits(r, i);
        }
        r->ranks[i].bound_ns = i == r->facts.reference ? 0 : bound_of(r, i, &contradiction);
        if (isnan(r->ranks[i].bound_ns)) {
            status = mtprof__ranks_no_memory();
        }
        r->facts.bound_ns = fmax(r->facts.bound_ns, r->ranks[i].bound_ns);
        r->facts.contradiction_ns = fmax(r->facts.contradiction_ns, contradiction);
    }
    return status;
}

static void align_by_wall_clock(mtprof_ranks *r)
{
    const mtprof__rank *reference = &r->ranks[r->facts.reference];
    for (size_t i = 0; i < r->n; i++) {
        mtprof__rank *rank = &r->ranks[i];
        rank->offset = (double)((rank->origin_ns + rank->real_offset_ns) -
                                (reference->origin_ns + reference->real_offset_ns));
        rank->drift = 0;
        rank->residual_ns = rank->bound_ns = NAN;
    }
    r->facts.residual_ns = r->facts.bound_ns = NAN;
}

int mtprof__ranks_align(mtprof_ranks *r)
{
    const char *why = "too few";
    bool wall = true;
    r->facts.residual_ns = r->facts.bound_ns = NAN;
    r->facts.contradiction_ns = NAN;
    for (size_t i = 0; i < r->n; i++) {
        wall = wall && r->ranks[i].has_wall_clock;
    }
    sort_matched(r);
    if (r->n == 1) {
        r->facts.method = MTPROF_CLOCK_COLLECTIVES;
        r->facts.residual_ns = r->facts.bound_ns = r->facts.contradiction_ns = 0;
        return MTPROF_OK;
    }
    if (r->facts.shared >= LEAST_SHARED) {
        MT_TRY(align_by_collectives(r));
        if (r->facts.contradiction_ns <= MOST_CONTRADICTION_NS) {
            r->facts.method = MTPROF_CLOCK_COLLECTIVES;
            return MTPROF_OK;
        }
        why = "contradictory";
    }
    double contradiction = r->facts.contradiction_ns;
    align_by_wall_clock(r);
    r->facts.contradiction_ns = contradiction;
    r->facts.method = wall ? MTPROF_CLOCK_WALL : MTPROF_CLOCK_NONE;
    if (!wall) {
        (void)snprintf(r->refusal, sizeof r->refusal,
                       "the clocks of the ranks cannot be put together: a trace has no wall-clock "
                       "anchor, and the collectives that all %zu ranks share are %s (%u, at least "
                       "%d are needed)",
                       r->n, why, r->facts.shared, LEAST_SHARED);
        r->facts.refusal = r->refusal;
        for (size_t i = 0; i < r->n; i++) {
            r->ranks[i].offset = r->ranks[i].drift = 0;
        }
    }
    return MTPROF_OK;
}
