/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of Fourier transforms, see fft_plan.h.
 */
#include "kernels/signal/fft_plan.h"

#include "base/alloc.h"
#include "kernels/signal/fft_run.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SHORTEST_DIVIDED = 256, /* elements of a line that is divided into rows and columns */
    KEPT_COUNT = 64,
    KEPT_WAYS = 4, /* places of a length; the first gives way */
    KEPT_BYTES = 64 * 1024 * 1024
};

typedef enum plan_kind {
    PLAN_LINE,  /* of complex lines */
    PLAN_PART,  /* of rows and columns: stages only */
    PLAN_PAIRED /* of real lines of even length */
} plan_kind;

static mt__fft_plan *plan_new(int64_t n, bool is_double, plan_kind kind);
static void plan_free(mt__fft_plan *plan);

static _Atomic(mt__fft_plan *) kept[KEPT_COUNT];
static _Atomic size_t kept_bytes;

/* exp(-2 pi i k / n), 0 <= k < n. Exact at the multiples of a quarter. */
static void root_of_unity(int64_t k, int64_t n, double root[2])
{
    static const long double quarter_turn = 1.57079632679489661923132169163975144L;
    int64_t quarter = 4 * k / n;
    int64_t rest = 4 * k - quarter * n; /* of n, of a quarter */
    bool past_middle = 2 * rest > n;
    long double angle = quarter_turn * (long double)(past_middle ? n - rest : rest) / n;
    double c = (double)(past_middle ? sinl(angle) : cosl(angle));
    double s = (double)(past_middle ? cosl(angle) : sinl(angle));
    static const int8_t turns[4][4] = {{1, 0, 0, 1}, {0, -1, 1, 0}, {-1, 0, 0, -1}, {0, 1, -1, 0}};
    const int8_t *t = turns[quarter & 3];
    root[0] = t[0] * c + t[1] * s;
    root[1] = -(t[2] * c + t[3] * s);
}

/* ---- parts of a plan ---- */

static void *take(mt__fft_plan *plan, int64_t count, size_t size)
{
    plan->bytes += (size_t)count * size;
    return mtb_calloc((size_t)count, size);
}

static void put(const mt__fft_plan *plan, void *table, int64_t at, const double root[2])
{
    if (plan->is_double) {
        memcpy((double *)table + 2 * at, root, 2 * sizeof(double));
    } else {
        ((float *)table)[2 * at] = (float)root[0];
        ((float *)table)[2 * at + 1] = (float)root[1];
    }
}

static size_t complex_bytes(const mt__fft_plan *plan)
{
    return plan->is_double ? 2 * sizeof(double) : 2 * sizeof(float);
}

/* The radices of n; false if it has a larger prime factor. */
static bool find_radices(mt__fft_stages *stages, int64_t n)
{
    static const uint8_t odd[] = {3, 5, 7, 11, MT_FFT_LARGEST_RADIX};
    stages->n = n;
    stages->count = 0;
    while (n % 2 == 0) { /* as few stages as possible: 8, and 4 where 8 would leave a 2 */
        uint8_t radix = n % 8 == 0 && n % 32 != 16 ? 8 : n % 4 == 0 ? 4 : 2;
        stages->radix[stages->count++] = radix;
        n /= radix;
    }
    for (size_t i = 0; i < sizeof(odd); i++) {
        for (; n % odd[i] == 0; n /= odd[i]) {
            stages->radix[stages->count++] = odd[i];
        }
    }
    return n == 1;
}

static bool make_stages(mt__fft_plan *plan)
{
    int64_t length = plan->n;
    for (int32_t i = 0; i < plan->stages.count; i++) {
        int64_t radix = plan->stages.radix[i];
        int64_t groups = length / radix;
        void *factors = take(plan, groups * (radix - 1), complex_bytes(plan));
        plan->factors[i] = factors;
        plan->stages.factors[i] = factors;
        if (factors == NULL) {
            return false;
        }
        for (int64_t p = 0; p < groups; p++) {
            for (int64_t k = 1; k < radix; k++) {
                double root[2];
                root_of_unity(p * k, length, root);
                put(plan, factors, p * (radix - 1) + k - 1, root);
            }
        }
        length = groups;
    }
    return true;
}

/* w_n^(i step) for i < count */
static double *make_powers(mt__fft_plan *plan, int64_t count, int64_t step)
{
    double *powers = take(plan, count, 2 * sizeof(double));
    for (int64_t i = 0; powers != NULL && i < count; i++) {
        root_of_unity(i * step % plan->n, plan->n, powers + 2 * i);
    }
    return powers;
}

static bool make_turns(mt__fft_plan *plan, int64_t lanes)
{
    int64_t blocks = (plan->columns + lanes - 1) / lanes;
    char *turns = take(plan, blocks * plan->rows * 2, MT_FFT_LANE_BYTES);
    plan->turns = turns;
    for (int64_t i = 0; turns != NULL && i < blocks * plan->rows; i++) {
        for (int64_t lane = 0; lane < lanes; lane++) {
            double root[2];
            int64_t column = i / plan->rows * lanes + lane;
            root_of_unity(column * (i % plan->rows) % plan->n, plan->n, root);
            for (int64_t part = 0; part < 2; part++) {
                int64_t at = (2 * i + part) * lanes + lane;
                if (plan->is_double) {
                    ((double *)plan->turns)[at] = root[part];
                } else {
                    ((float *)plan->turns)[at] = (float)root[part];
                }
            }
        }
    }
    return turns != NULL;
}

static bool make_ladder(mt__fft_plan *plan, int64_t lanes)
{
    plan->low_count = (int64_t)sqrt((double)plan->n) + 1;
    plan->low = make_powers(plan, plan->low_count, 1);
    plan->high = make_powers(plan, plan->n / plan->low_count + 1, plan->low_count);
    plan->ladder = take(plan, plan->rows * lanes, 2 * sizeof(double));
    if (plan->low == NULL || plan->high == NULL || plan->ladder == NULL) {
        return false;
    }
    for (int64_t k = 0; k < plan->rows; k++) {
        for (int64_t lane = 0; lane < lanes; lane++) {
            double root[2];
            root_of_unity(k * lane % plan->n, plan->n, root);
            plan->ladder[2 * k * lanes + lane] = root[0];
            plan->ladder[(2 * k + 1) * lanes + lane] = root[1];
        }
    }
    return true;
}

static bool divide(mt__fft_plan *plan)
{
    int64_t rows = (int64_t)sqrt((double)plan->n);
    while (plan->n % rows != 0) {
        rows--;
    }
    int64_t lanes = plan->is_double ? MT_FFT_LANES / 2 : MT_FFT_LANES;
    plan->rows = rows;
    plan->columns = plan->n / rows;
    plan->column_plan = plan_new(rows, plan->is_double, PLAN_PART);
    plan->row_plan = plan_new(plan->columns, plan->is_double, PLAN_PART);
    return plan->column_plan != NULL && plan->row_plan != NULL &&
           (plan->n <= MT_FFT_LONGEST_TABLE ? make_turns(plan, lanes) : make_ladder(plan, lanes));
}

/* The least 2^a, 3 2^a, 5 2^a or 9 2^a that is not below `least`. */
static int64_t convolution_length(int64_t least)
{
    static const int64_t odd[] = {1, 3, 5, 9};
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        int64_t length = odd[i];
        while (length < least) {
            length *= 2;
        }
        best = length < best ? length : best;
    }
    return best;
}

static bool make_convolution(mt__fft_plan *plan)
{
    int64_t n = plan->n;
    int64_t m = convolution_length(2 * n - 1);
    double *numbers = mtb_calloc((size_t)m, 2 * sizeof(double));
    plan->longer = plan_new(m, plan->is_double, PLAN_LINE);
    mt__fft_plan *exact = plan->is_double ? plan->longer : plan_new(m, true, PLAN_LINE);
    plan->chirp = take(plan, n, complex_bytes(plan));
    plan->kernel = take(plan, m, complex_bytes(plan));
    bool made = numbers != NULL && plan->longer != NULL && exact != NULL && plan->chirp != NULL &&
                plan->kernel != NULL;
    int64_t square = 0; /* k^2 modulo 2 n */
    for (int64_t k = 0; made && k < n; k++) {
        double root[2];
        root_of_unity(square, 2 * n, root);
        put(plan, plan->chirp, k, root);
        numbers[2 * k] = root[0];
        numbers[2 * k + 1] = -root[1];
        if (k > 0) {
            numbers[2 * (m - k)] = root[0];
            numbers[2 * (m - k) + 1] = -root[1];
        }
        square = (square + 2 * k + 1) % (2 * n);
    }
    if (made) {
        mt__fft_line line = {(char *)numbers, 2 * sizeof(double), sizeof(double)};
        made = mt__fft_run_line(exact, &line, &line, false, 1.0 / (double)m) == 0;
    }
    for (int64_t k = 0; made && k < m; k++) {
        put(plan, plan->kernel, k, numbers + 2 * k);
    }
    if (exact != plan->longer) {
        plan_free(exact);
    }
    mtb_free(numbers);
    return made;
}

static bool make_half(mt__fft_plan *plan)
{
    plan->half = plan_new(plan->n / 2, plan->is_double, PLAN_LINE);
    plan->half_factors = take(plan, plan->n / 4 + 1, complex_bytes(plan));
    for (int64_t k = 0; plan->half_factors != NULL && k <= plan->n / 4; k++) {
        double root[2];
        root_of_unity(k, plan->n, root);
        put(plan, plan->half_factors, k, root);
    }
    return plan->half != NULL && plan->half_factors != NULL;
}

/* ---- plans ---- */

/* Bytes of the plan and its parts. */
static size_t plan_bytes(const mt__fft_plan *plan)
{
    return plan == NULL ? 0
                        : plan->bytes + plan_bytes(plan->row_plan) + plan_bytes(plan->column_plan) +
                              plan_bytes(plan->longer) + plan_bytes(plan->half);
}

static void plan_free(mt__fft_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (int32_t i = 0; i < plan->stages.count; i++) {
        mtb_free(plan->factors[i]);
    }
    plan_free(plan->row_plan);
    plan_free(plan->column_plan);
    plan_free(plan->longer);
    plan_free(plan->half);
    mtb_free(plan->turns);
    mtb_free(plan->ladder);
    mtb_free(plan->low);
    mtb_free(plan->high);
    mtb_free(plan->chirp);
    mtb_free(plan->kernel);
    mtb_free(plan->half_factors);
    mtb_free(plan);
}

static mt__fft_plan *plan_new(int64_t n, bool is_double, plan_kind kind)
{
    mt__fft_plan *plan = mtb_calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return NULL;
    }
    plan->n = n;
    plan->is_double = is_double;
    plan->bytes = sizeof(*plan);
    bool made = true;
    if (kind == PLAN_PAIRED) {
        made = make_half(plan);
    } else if (!find_radices(&plan->stages, n)) {
        plan->stages.count = 0;
        made = make_convolution(plan);
    } else {
        bool divided = kind == PLAN_LINE && n >= SHORTEST_DIVIDED;
        made = !divided || divide(plan);
        if (divided && n > MT_FFT_LANE_ROWS) {
            plan->stages.count = 0; /* never used in lanes */
        }
        made = made && make_stages(plan);
    }
    if (!made) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

/* ---- plans that are kept ---- */

static uint64_t home_of(int64_t n)
{
    return (uint64_t)n * 0x9e3779b97f4a7c15U >> 40;
}

/* Whoever takes a plan out of its place is its only user (acquire: release in put_place). */
static mt__fft_plan *empty_place(uint64_t place)
{
    mt__fft_plan *plan =
        atomic_exchange_explicit(&kept[place % KEPT_COUNT], NULL, memory_order_acquire);
    if (plan != NULL) {
        atomic_fetch_sub_explicit(&kept_bytes, plan->bytes_in_all, memory_order_relaxed);
    }
    return plan;
}

static bool put_place(uint64_t place, mt__fft_plan *plan)
{
    mt__fft_plan *none = NULL;
    atomic_fetch_add_explicit(&kept_bytes, plan->bytes_in_all, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&kept[place % KEPT_COUNT], &none, plan,
                                                memory_order_release, memory_order_relaxed)) {
        return true;
    }
    atomic_fetch_sub_explicit(&kept_bytes, plan->bytes_in_all, memory_order_relaxed);
    return false;
}

mt__fft_plan *mt__fft_plan_take(int64_t n, bool is_double, bool real)
{
    real = real && n % 2 == 0; /* an odd line of real numbers is transformed as a complex one */
    uint64_t home = home_of(n);
    for (uint64_t i = 0; i < KEPT_WAYS; i++) {
        mt__fft_plan *plan = empty_place(home + i);
        if (plan != NULL && plan->n == n && plan->is_double == is_double &&
            (plan->half != NULL) == real) {
            return plan;
        }
        if (plan != NULL && !put_place(home + i, plan)) {
            plan_free(plan); /* another thread was faster */
        }
    }
    mt__fft_plan *plan = plan_new(n, is_double, real ? PLAN_PAIRED : PLAN_LINE);
    if (plan != NULL) {
        plan->bytes_in_all = plan_bytes(plan);
    }
    return plan;
}

void mt__fft_plan_give(mt__fft_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    uint64_t home = home_of(plan->n);
    size_t limit = KEPT_BYTES - (plan->bytes_in_all < KEPT_BYTES ? plan->bytes_in_all : KEPT_BYTES);
    for (uint64_t i = 0; i < KEPT_COUNT; i++) {
        if (atomic_load_explicit(&kept_bytes, memory_order_relaxed) <= limit) {
            break;
        }
        plan_free(empty_place(home + KEPT_WAYS + i)); /* its own places last */
    }
    bool kept_it = plan->bytes_in_all > KEPT_BYTES;
    if (kept_it) {
        plan_free(plan);
    }
    for (uint64_t i = 0; i < KEPT_WAYS && !kept_it; i++) {
        kept_it = put_place(home + i, plan);
    }
    if (!kept_it) {
        plan_free(empty_place(home));
        if (!put_place(home, plan)) {
            plan_free(plan);
        }
    }
}
