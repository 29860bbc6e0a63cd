/* SPDX-License-Identifier: Apache-2.0
 *
 * Views and writes in place against torch's recorded answers: first and second derivatives, and the
 * words of refusals. record_views.py says what the programs mean.
 */
#include "autograd_support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N_NAMES = 26,
    N_GRADS = 9, /* x [2, 3], w [3] */
    MAX_WORDS = 8
};

typedef struct view_case {
    const char *program;
    const char *error;
    double first[N_GRADS];
    double second[N_GRADS];
} view_case;

static const view_case cases[] = {
#define V(program, error, ...) {program, error, __VA_ARGS__},
#include "view_cases.def"
#undef V
};

typedef struct world {
    mt_tensor *variables[N_NAMES];
    char order[N_NAMES + 1]; /* names in the order they came */
} world;

static mt_tensor **place(world *w, const char *name)
{
    return &w->variables[name[0] - 'a'];
}

static mt_tensor *get(world *w, const char *name)
{
    return *place(w, name);
}

static void set(world *w, const char *name, mt_tensor *take)
{
    if (get(w, name) == NULL) {
        size_t n = strlen(w->order);
        w->order[n] = name[0];
        w->order[n + 1] = '\0';
    }
    mt_tensor_release(get(w, name));
    *place(w, name) = take;
}

static mt_tensor *make(const double *values, const int64_t *sizes, size_t n_dims)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F64, sizes, n_dims, MT_CPU, &made));
    return made;
}

static void start(world *w)
{
    static const double x[] = {0.5, -0.25, 0.75, 1.0, -0.5, 0.25};
    static const double v[] = {0.8, -1.2, 0.4};
    static const double k[] = {0.5, 1.5, -0.75};
    static const double z[6] = {0};
    static const int64_t six[] = {2, 3};
    static const int64_t three[] = {3};
    memset(w, 0, sizeof(*w));
    set(w, "x", as_leaf(make(x, six, 2)));
    set(w, "w", as_leaf(make(v, three, 1)));
    set(w, "k", make(k, three, 1));
    set(w, "z", make(z, six, 2));
}

static void finish(world *w)
{
    mt_set_grad_enabled(true);
    for (size_t i = 0; i < N_NAMES; i++) {
        mt_tensor_release(w->variables[i]);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static int one_of_list(int status, mt_value *list, int64_t index, mt_tensor **out)
{
    if (status == MT_OK) {
        *out = mt_tensor_retain(list->of.tensors[index]);
        mt_value_clear(list);
    }
    return status;
}

static int run_view(const char *op, mt_tensor *a, const int64_t *n, size_t count, mt_tensor **out)
{
    mt_value list = {.kind = MT_KIND_NONE};
    if (strcmp(op, "view") == 0) {
        return mt_view(a, n, count, out);
    }
    if (strcmp(op, "sel") == 0) {
        return mt_select(a, n[0], n[1], out);
    }
    if (strcmp(op, "sl") == 0) {
        return mt_narrow(a, n[0], n[1], n[2], out);
    }
    if (strcmp(op, "t") == 0) {
        return mt_transpose(a, 0, 1, out);
    }
    if (strcmp(op, "unsq") == 0) {
        return mt_unsqueeze(a, n[0], out);
    }
    if (strcmp(op, "diag") == 0) {
        return mt_diagonal(a, 0, 0, 1, out);
    }
    if (strcmp(op, "ub") == 0) {
        return one_of_list(mt_unbind(a, 0, &list), &list, n[0], out);
    }
    if (strcmp(op, "sp") == 0) {
        return one_of_list(mt_split(a, 1, 0, &list), &list, n[0], out);
    }
    if (strcmp(op, "as") == 0) {
        static const int64_t sizes[] = {2, 2};
        static const int64_t strides[] = {1, 2};
        return mt_as_strided(a, sizes, 2, strides, 2, &n[0], out);
    }
    if (strcmp(op, "det") == 0) {
        return mt_detach(a, out);
    }
    return mt_fail(MT_EVALUE, op);
}

static int run_assignment(world *w, char *const *words, size_t n_words)
{
    const char *op = words[2];
    mt_tensor *a = get(w, words[3]);
    mt_tensor *out = NULL;
    int status = MT_OK;
    if (strcmp(op, "mul") == 0) {
        status = mt_mul(a, get(w, words[4]), &out);
    } else if (strcmp(op, "add") == 0) {
        status = mt_add(a, get(w, words[4]), &out);
    } else if (strcmp(op, "muls") == 0) {
        status = mt_mul_scalar(a, mt_real(strtod(words[4], NULL)), &out);
    } else if (strcmp(op, "exp") == 0) {
        status = mt_exp(a, &out);
    } else {
        int64_t n[MAX_WORDS] = {0};
        for (size_t i = 4; i < n_words; i++) {
            n[i - 4] = strtoll(words[i], NULL, 10);
        }
        status = run_view(op, a, n, n_words - 4, &out);
    }
    if (status == MT_OK) {
        set(w, words[0], out);
    }
    return status;
}

static int run_write(world *w, char *const *words, size_t n_words)
{
    static const struct {
        const char *name;
        int (*run)(mt_tensor *, mt_tensor *);
    } with_tensor[] = {{"mul_", mt_mul_}, {"add_", mt_add_}, {"div_", mt_div_}};
    static const struct {
        const char *name;
        int (*run)(mt_tensor *);
    } alone[] = {{"exp_", mt_exp_}, {"sig_", mt_sigmoid_}, {"zero_", mt_zero_}};
    mt_tensor *a = get(w, words[1]);
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(words[0], with_tensor[i].name) == 0) {
            return with_tensor[i].run(a, get(w, words[2]));
        }
        if (strcmp(words[0], alone[i].name) == 0) {
            return alone[i].run(a);
        }
    }
    if (strcmp(words[0], "copy_") == 0) {
        return mt_copy_(a, get(w, words[2]), false);
    }
    mt_scalar number = mt_real(n_words > 2 ? strtod(words[2], NULL) : 0);
    return strcmp(words[0], "muls_") == 0   ? mt_mul_scalar_(a, number)
           : strcmp(words[0], "adds_") == 0 ? mt_add_scalar_(a, number)
           : strcmp(words[0], "fill_") == 0 ? mt_fill_scalar_(a, number)
                                            : mt_fail(MT_EVALUE, words[0]);
}

static int run_statement(world *w, char *statement)
{
    static char nothing[] = "";
    char *words[MAX_WORDS];
    for (size_t i = 0; i < MAX_WORDS; i++) {
        words[i] = nothing;
    }
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(statement, " ", &rest); word != NULL && n < MAX_WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        words[n++] = word;
    }
    if (n == 1) {
        mt_set_grad_enabled(strcmp(words[0], "g") == 0);
        return MT_OK;
    }
    return strcmp(words[1], "=") == 0 ? run_assignment(w, words, n) : run_write(w, words, n);
}

static int run_program(world *w, const char *program)
{
    char text[512];
    REQUIRE(strlen(program) < sizeof(text));
    memcpy(text, program, strlen(program) + 1);
    char *rest = NULL;
    for (char *part = strtok_r(text, ";", &rest); part != NULL; part = strtok_r(NULL, ";", &rest)) {
        int status = run_statement(w, part);
        if (status != MT_OK) {
            return status;
        }
    }
    mt_set_grad_enabled(true);
    return MT_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Adds the sum of the squares to *total. */
static int add_squares(mt_tensor *t, mt_tensor **total)
{
    mt_tensor *square = NULL;
    mt_tensor *sum = NULL;
    mt_tensor *both = NULL;
    int status = mt_mul(t, t, &square);
    if (status == MT_OK) {
        status = mt_sum(square, NULL, 0, false, &sum);
    }
    if (status == MT_OK && *total != NULL) {
        status = mt_add(*total, sum, &both);
        mt_tensor_release(sum);
        sum = both;
    }
    if (status == MT_OK) {
        mt_tensor_release(*total);
        *total = sum;
    }
    mt_tensor_release(square);
    return status;
}

static int loss_of(world *w, mt_tensor **loss)
{
    *loss = NULL;
    for (const char *name = w->order; *name != '\0'; name++) {
        mt_tensor *t = w->variables[*name - 'a'];
        if (*name != 'x' && *name != 'w' && mt_tensor_requires_grad(t)) {
            int status = add_squares(t, loss);
            if (status != MT_OK) {
                return status;
            }
        }
    }
    return MT_OK;
}

/* NaN stands for a gradient that is not there. */
static void read_grads(mt_tensor *const *grads, double *numbers)
{
    static const size_t counts[] = {6, 3};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            numbers[k] = NAN;
        }
        if (grads[i] != NULL) {
            CHECK_OK(mt_tensor_read(grads[i], numbers, counts[i] * sizeof(double)));
        }
        numbers += counts[i];
    }
}

static int second_order(mt_tensor *const *leaves, mt_tensor *const *grads, double *numbers)
{
    mt_tensor *total = NULL;
    mt_tensor *second[2] = {NULL, NULL};
    int status = MT_OK;
    for (size_t i = 0; i < 2 && status == MT_OK; i++) {
        if (grads[i] != NULL && mt_tensor_requires_grad(grads[i])) {
            status = add_squares(grads[i], &total);
        }
    }
    if (status == MT_OK && total != NULL) {
        status = mt_grad(&total, NULL, 1, leaves, 2, MT_ALLOW_UNUSED, second);
    }
    if (status == MT_OK) {
        read_grads(second, numbers);
    }
    RELEASE(total, second[0], second[1]);
    return status;
}

static int derive(world *w, double *first, double *second)
{
    mt_tensor *loss = NULL;
    mt_tensor *leaves[] = {get(w, "x"), get(w, "w")};
    mt_tensor *grads[2] = {NULL, NULL};
    int status = loss_of(w, &loss);
    if (status == MT_OK) {
        status = mt_grad(&loss, NULL, 1, leaves, 2, MT_CREATE_GRAPH | MT_ALLOW_UNUSED, grads);
    }
    if (status == MT_OK) {
        read_grads(grads, first);
        status = second_order(leaves, grads, second);
    }
    RELEASE(loss, grads[0], grads[1]);
    return status;
}

static void compare(const view_case *c, const char *what, const double *got, const double *want)
{
    for (size_t i = 0; i < N_GRADS; i++) {
        if (isnan(got[i]) != isnan(want[i]) ||
            fabs(got[i] - want[i]) > 1e-9 * (1 + fabs(want[i]))) {
            FAIL("%s: %s derivative %zu is %.17g, torch has %.17g", c->program, what, i, got[i],
                 want[i]);
            return;
        }
    }
}

static void run_case(const view_case *c)
{
    world w;
    double first[N_GRADS] = {0};
    double second[N_GRADS] = {0};
    start(&w);
    int status = run_program(&w, c->program);
    if (status == MT_OK) {
        status = derive(&w, first, second);
    }
    if (c->error[0] == '\0' && status != MT_OK) {
        FAIL("%s: %s", c->program, mt_last_error()->message);
    } else if (c->error[0] != '\0' && status == MT_OK) {
        FAIL("%s: succeeded, torch says: %s", c->program, c->error);
    } else if (c->error[0] != '\0' && strstr(mt_last_error()->message, c->error) == NULL) {
        FAIL("%s: says \"%s\", torch: \"%s\"", c->program, mt_last_error()->message, c->error);
    } else if (c->error[0] == '\0') {
        compare(c, "first", first, c->first);
        compare(c, "second", second, c->second);
    }
    finish(&w);
    if (mt_tensors_alive() != 0) {
        FAIL("%s: %" PRIu64 " tensors left", c->program, mt_tensors_alive());
    }
}

TEST(writes_into_views_are_derived_as_torch_does)
{
    size_t count = sizeof(cases) / sizeof(cases[0]);
    CHECK(count > 100);
    for (size_t i = 0; i < count; i++) {
        run_case(&cases[i]);
    }
}
