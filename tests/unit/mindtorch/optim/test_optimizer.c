/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers: five steps against numbers that PyTorch gave (optimizer_cases.def), state, options,
 * and what is refused.
 */
#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>

#include <math.h>
#include <string.h>

enum {
    N_NUMBERS = 7
};

static mt_tensor *tensor_of(const double *data, const int64_t *sizes, size_t n_dims)
{
    mt_tensor *tensor = NULL;
    REQUIRE_OK(mt_tensor_from_data(data, MT_DTYPE_F64, sizes, n_dims, MT_CPU, &tensor));
    return tensor;
}

static mt_tensor *parameter_of(const double *data, const int64_t *sizes, size_t n_dims)
{
    mt_tensor *tensor = tensor_of(data, sizes, n_dims);
    REQUIRE_OK(mt_tensor_set_requires_grad(tensor, true));
    return tensor;
}

static const int64_t sizes_of[2][2] = {{3, 0}, {2, 2}};
static const size_t dims_of[2] = {1, 2};

static void make_parameters(mt_tensor *parameters[2])
{
    parameters[0] = parameter_of((const double[]){0.5, -1.0, 2.0}, sizes_of[0], 1);
    parameters[1] = parameter_of((const double[]){0.25, 1.5, -0.75, 3.0}, sizes_of[1], 2);
}

/* As record_optimizers.py has it. */
static void set_grads(mt_tensor *parameters[2], int t)
{
    for (int p = 0; p < (t == 0 ? 1 : 2); p++) {
        double data[4];
        int64_t numel = mt_tensor_numel(parameters[p]);
        for (int i = 0; i < (int)numel; i++) {
            data[i] = sin(0.7 * (i + 1) + 1.3 * t + 0.5 * p) * (1 + 0.1 * i);
        }
        mt_tensor *grad = tensor_of(data, sizes_of[p], dims_of[p]);
        REQUIRE_OK(mt_tensor_set_grad(parameters[p], grad));
        mt_tensor_release(grad);
    }
}

static void release_both(mt_tensor *parameters[2])
{
    mt_tensor_release(parameters[0]);
    mt_tensor_release(parameters[1]);
}

static void check_case(const mt_optimizer_options *options, const double expected[N_NUMBERS])
{
    uint64_t alive = mt_tensors_alive();
    mt_tensor *parameters[2];
    mt_optimizer *optimizer = NULL;
    make_parameters(parameters);
    REQUIRE_OK(mt_optimizer_new(options, parameters, 2, &optimizer));
    for (int t = 0; t < 5; t++) {
        set_grads(parameters, t);
        REQUIRE_OK(mt_optimizer_step(optimizer));
    }
    double got[N_NUMBERS];
    REQUIRE_OK(mt_tensor_read(parameters[0], got, 3 * sizeof(double)));
    REQUIRE_OK(mt_tensor_read(parameters[1], got + 3, 4 * sizeof(double)));
    for (int i = 0; i < N_NUMBERS; i++) {
        CHECK_NEAR_F64(got[i], expected[i], 1e-12);
    }
    mt_optimizer_free(optimizer);
    release_both(parameters);
    CHECK_EQ_U64(mt_tensors_alive(), alive);
}

#define CASE(name, kind_, set, ...)                                            \
    TEST(optimizer_##name)                                                     \
    {                                                                          \
        mt_optimizer_options options = {.struct_size = sizeof options};        \
        REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_##kind_, &options)); \
        mt_optimizer_options *o = &options;                                    \
        set check_case(&options, (const double[N_NUMBERS]){__VA_ARGS__});      \
    }
#include "optimizer_cases.def"
#undef CASE

TEST(optimizer_state_has_torchs_names)
{
    static const struct {
        mt_optimizer_kind kind;
        const char *names[4];
    } rows[] = {
        {MT_OPTIMIZER_SGD, {"momentum_buffer"}},
        {MT_OPTIMIZER_ADAM, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
        {MT_OPTIMIZER_ADAMW, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
        {MT_OPTIMIZER_RMSPROP, {"square_avg", "momentum_buffer", "grad_avg"}},
        {MT_OPTIMIZER_ADAGRAD, {"sum"}},
        {MT_OPTIMIZER_ADADELTA, {"square_avg", "acc_delta"}},
        {MT_OPTIMIZER_ADAMAX, {"exp_avg", "exp_inf"}},
        {MT_OPTIMIZER_NADAM, {"exp_avg", "exp_avg_sq"}},
        {MT_OPTIMIZER_RADAM, {"exp_avg", "exp_avg_sq"}},
        {MT_OPTIMIZER_ASGD, {"ax"}},
        {MT_OPTIMIZER_RPROP, {"prev", "step_size"}},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        mt_tensor *parameters[2];
        mt_optimizer *optimizer = NULL;
        mt_optimizer_options options = {.struct_size = sizeof options};
        make_parameters(parameters);
        REQUIRE_OK(mt_optimizer_get_defaults(rows[r].kind, &options));
        options.momentum = 0.9;
        options.amsgrad = true;
        options.centered = true;
        REQUIRE_OK(mt_optimizer_new(&options, parameters, 2, &optimizer));
        set_grads(parameters, 0); /* the second parameter has none */
        REQUIRE_OK(mt_optimizer_step(optimizer));
        for (size_t i = 0; rows[r].names[i] != NULL; i++) {
            mt_tensor *state = mt_optimizer_state(optimizer, 0, rows[r].names[i]);
            if (CHECK(state != NULL)) {
                CHECK_EQ_I64(mt_tensor_numel(state), 3);
                CHECK_EQ_I64(mt_tensor_dtype(state), MT_DTYPE_F64);
            }
        }
        if (rows[r].kind != MT_OPTIMIZER_ADAGRAD) {
            CHECK(mt_optimizer_state(optimizer, 1, rows[r].names[0]) == NULL);
        }
        CHECK(mt_optimizer_state(optimizer, 0, "step") == NULL);
        CHECK(mt_optimizer_state(optimizer, 2, rows[r].names[0]) == NULL);
        mt_optimizer_free(optimizer);
        release_both(parameters);
    }
}

TEST(optimizer_step_bumps_versions_but_leaves_no_graph)
{
    mt_tensor *parameters[2];
    mt_optimizer *optimizer = NULL;
    mt_optimizer_options options = {.struct_size = sizeof options};
    make_parameters(parameters);
    REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAM, &options));
    REQUIRE_OK(mt_optimizer_new(&options, parameters, 2, &optimizer));
    set_grads(parameters, 1);
    uint32_t version = mt_tensor_version(parameters[0]);
    uint32_t grad_version = mt_tensor_version(mt_tensor_grad(parameters[0]));
    REQUIRE_OK(mt_optimizer_step(optimizer));
    CHECK_EQ_U64(mt_tensor_version(parameters[0]), version + 1);
    CHECK_EQ_U64(mt_tensor_version(mt_tensor_grad(parameters[0])), grad_version);
    CHECK(mt_tensor_is_leaf(parameters[0]));
    CHECK(mt_tensor_requires_grad(parameters[0]));
    CHECK(mt_grad_enabled());
    REQUIRE_OK(mt_optimizer_zero_grad(optimizer));
    CHECK(mt_tensor_grad(parameters[0]) == NULL);
    REQUIRE_OK(mt_optimizer_step(optimizer)); /* nothing to do */
    CHECK_EQ_U64(mt_tensor_version(parameters[0]), version + 1);
    mt_optimizer_free(optimizer);
    release_both(parameters);
}

/* A parameter and a gradient that are not contiguous give the same numbers. */
TEST(optimizer_takes_strided_tensors)
{
    mt_optimizer_options options = {.struct_size = sizeof options};
    REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAM, &options));
    options.lr = 0.05;
    double results[2][4];
    for (int strided = 0; strided < 2; strided++) {
        mt_tensor *base = tensor_of((const double[]){1, 2, 3, 4}, sizes_of[1], 2);
        mt_tensor *grad_base = tensor_of((const double[]){0.5, -1, 2, 0.25}, sizes_of[1], 2);
        mt_tensor *turned = NULL;
        mt_tensor *grad = NULL;
        mt_tensor *parameter = NULL;
        mt_optimizer *optimizer = NULL;
        REQUIRE_OK(mt_t(base, &turned));
        REQUIRE_OK(mt_t(grad_base, &grad));
        if (strided != 0) {
            REQUIRE_OK(mt_detach(turned, &parameter));
        } else {
            REQUIRE_OK(mt_contiguous(turned, &parameter));
        }
        REQUIRE_OK(mt_tensor_set_requires_grad(parameter, true));
        REQUIRE_OK(mt_tensor_set_grad(parameter, grad));
        REQUIRE_OK(mt_optimizer_new(&options, &parameter, 1, &optimizer));
        REQUIRE_OK(mt_optimizer_step(optimizer));
        REQUIRE_OK(mt_optimizer_step(optimizer));
        REQUIRE_OK(mt_tensor_read(parameter, results[strided], sizeof(results[0])));
        mt_optimizer_free(optimizer);
        mt_tensor_release(parameter);
        mt_tensor_release(turned);
        mt_tensor_release(grad);
        mt_tensor_release(base);
        mt_tensor_release(grad_base);
    }
    CHECK_EQ_MEM(results[0], results[1], sizeof(results[0]));
}

/* One refused option of a kind, with torch's words. */
typedef struct refusal {
    mt_optimizer_kind kind;
    size_t field;
    double value;
    const char *words;
} refusal;

TEST(optimizer_refuses_options_in_torchs_words)
{
#define FIELD(name) offsetof(mt_optimizer_options, name)
    static const refusal rows[] = {
        {MT_OPTIMIZER_SGD, FIELD(lr), -1.0, "Invalid learning rate: -1.0"},
        {MT_OPTIMIZER_SGD, FIELD(momentum), -0.5, "Invalid momentum value: -0.5"},
        {MT_OPTIMIZER_SGD, FIELD(weight_decay), -1e-9, "Invalid weight_decay value: -1e-09"},
        {MT_OPTIMIZER_ADAM, FIELD(lr), -0.1, "Invalid learning rate: -0.1"},
        {MT_OPTIMIZER_ADAM, FIELD(eps), -1.0, "Invalid epsilon value: -1.0"},
        {MT_OPTIMIZER_ADAM, FIELD(beta1), 1.0, "Invalid beta parameter at index 0: 1.0"},
        {MT_OPTIMIZER_ADAM, FIELD(beta2), -0.25, "Invalid beta parameter at index 1: -0.25"},
        {MT_OPTIMIZER_ADAMW, FIELD(weight_decay), -1.0, "Invalid weight_decay value: -1.0"},
        {MT_OPTIMIZER_RMSPROP, FIELD(alpha), -2.0, "Invalid alpha value: -2.0"},
        {MT_OPTIMIZER_RMSPROP, FIELD(momentum), -2.0, "Invalid momentum value: -2.0"},
        {MT_OPTIMIZER_RMSPROP, FIELD(eps), -2.0, "Invalid epsilon value: -2.0"},
        {MT_OPTIMIZER_RMSPROP, FIELD(weight_decay), -2.0, "Invalid weight_decay value: -2.0"},
        {MT_OPTIMIZER_ADAGRAD, FIELD(lr_decay), -1.0, "Invalid lr_decay value: -1.0"},
        {MT_OPTIMIZER_ADAGRAD, FIELD(weight_decay), -1.0, "Invalid weight_decay value: -1.0"},
        {MT_OPTIMIZER_ADAGRAD, FIELD(initial_accumulator), -1.0,
         "Invalid initial_accumulator_value value: -1.0"},
        {MT_OPTIMIZER_ADAGRAD, FIELD(eps), -1.0, "Invalid epsilon value: -1.0"},
        {MT_OPTIMIZER_ADADELTA, FIELD(rho), 1.5, "Invalid rho value: 1.5"},
        {MT_OPTIMIZER_ADADELTA, FIELD(eps), -1.0, "Invalid epsilon value: -1.0"},
        {MT_OPTIMIZER_ADADELTA, FIELD(weight_decay), -1.0, "Invalid weight_decay value: -1.0"},
        {MT_OPTIMIZER_ADAMAX, FIELD(beta1), 1.0, "Invalid beta parameter at index 0: 1.0"},
        {MT_OPTIMIZER_NADAM, FIELD(beta2), 1.0, "Invalid beta parameter at index 1: 1.0"},
        {MT_OPTIMIZER_NADAM, FIELD(momentum_decay), -1.0, "Invalid momentum_decay value: -1.0"},
        {MT_OPTIMIZER_RADAM, FIELD(lr), -1.0, "Invalid learning rate: -1.0"},
        {MT_OPTIMIZER_ASGD, FIELD(weight_decay), -1.0, "Invalid weight_decay value: -1.0"},
        {MT_OPTIMIZER_RPROP, FIELD(etaminus), 1.5, "Invalid eta values: 1.5, 1.2"},
    };
#undef FIELD
    mt_tensor *parameters[2];
    make_parameters(parameters);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mt_optimizer_options options = {.struct_size = sizeof options};
        mt_optimizer *optimizer = NULL;
        REQUIRE_OK(mt_optimizer_get_defaults(rows[i].kind, &options));
        memcpy((char *)&options + rows[i].field, &rows[i].value, sizeof(double));
        CHECK_EQ_I64(mt_optimizer_new(&options, parameters, 2, &optimizer), MT_EVALUE);
        CHECK_EQ_STR(mt_last_error()->message, rows[i].words);
        CHECK(optimizer == NULL);
    }
    release_both(parameters);
}

TEST(optimizer_refuses_what_cannot_be_optimized)
{
    mt_tensor *parameters[2];
    mt_tensor *result = NULL;
    mt_optimizer *optimizer = NULL;
    mt_optimizer_options options = {.struct_size = sizeof options};
    make_parameters(parameters);
    REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_SGD, &options));
    CHECK_EQ_I64(mt_optimizer_new(&options, parameters, 0, &optimizer), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "optimizer got an empty parameter list");
    REQUIRE_OK(mt_mul(parameters[0], parameters[0], &result));
    CHECK_EQ_I64(mt_optimizer_new(&options, &result, 1, &optimizer), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "can't optimize a non-leaf Tensor");
    options.nesterov = true;
    CHECK_EQ_I64(mt_optimizer_new(&options, parameters, 2, &optimizer), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message,
                 "Nesterov momentum requires a momentum and zero dampening");
    options.nesterov = false;
    mt_tensor *same[2] = {parameters[0], parameters[0]};
    CHECK_EQ_I64(mt_optimizer_new(&options, same, 2, &optimizer), MT_EVALUE);
    options.kind = 99;
    CHECK_EQ_I64(mt_optimizer_new(&options, parameters, 2, &optimizer), MT_EVALUE);
    CHECK_EQ_I64(mt_optimizer_new(NULL, parameters, 2, &optimizer), MT_EVALUE);
    CHECK_EQ_I64(mt_optimizer_step(NULL), MT_EVALUE);
    mt_optimizer_free(NULL);
    mt_tensor_release(result);
    release_both(parameters);
}

/* A program that was compiled when the struct was shorter. */
TEST(optimizer_defaults_keep_to_the_callers_size)
{
    mt_optimizer_options options = {.struct_size = offsetof(mt_optimizer_options, weight_decay),
                                    .weight_decay = 7};
    REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAMW, &options));
    CHECK_EQ_U64(options.struct_size, offsetof(mt_optimizer_options, weight_decay));
    CHECK_EQ_U64(options.kind, MT_OPTIMIZER_ADAMW);
    CHECK_EQ_F64(options.lr, 1e-3);
    CHECK_EQ_F64(options.weight_decay, 7);
    options.struct_size = 0;
    CHECK_EQ_I64(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAMW, &options), MT_EVALUE);
    CHECK_EQ_I64(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAMW, NULL), MT_EVALUE);
    options.struct_size = sizeof options;
    CHECK_EQ_I64(mt_optimizer_get_defaults((mt_optimizer_kind)99, &options), MT_EVALUE);
}

TEST(optimizer_learning_rate_can_be_changed)
{
    mt_tensor *parameters[2];
    mt_optimizer *optimizer = NULL;
    mt_optimizer_options options = {.struct_size = sizeof options};
    double before[3];
    double after[3];
    make_parameters(parameters);
    REQUIRE_OK(mt_optimizer_get_defaults(MT_OPTIMIZER_SGD, &options));
    REQUIRE_OK(mt_optimizer_new(&options, parameters, 2, &optimizer));
    CHECK_EQ_F64(mt_optimizer_lr(optimizer), 1e-3);
    CHECK_EQ_I64(mt_optimizer_set_lr(optimizer, -3.0), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "Invalid learning rate: -3.0");
    REQUIRE_OK(mt_optimizer_set_lr(optimizer, 0.0));
    set_grads(parameters, 1);
    REQUIRE_OK(mt_tensor_read(parameters[0], before, sizeof(before)));
    REQUIRE_OK(mt_optimizer_step(optimizer));
    REQUIRE_OK(mt_tensor_read(parameters[0], after, sizeof(after)));
    CHECK_EQ_MEM(before, after, sizeof(before));
    mt_optimizer_free(optimizer);
    release_both(parameters);
}

static void check_clipped(double max_norm, double norm_type, double norm, double factor)
{
    mt_tensor *parameters[2];
    double total = -1.0;
    double grad[3];
    make_parameters(parameters);
    mt_tensor *first = tensor_of((const double[]){3.0, 0.0, -4.0}, sizes_of[0], 1);
    mt_tensor *second = tensor_of((const double[]){0.0, 12.0, 0.0, 0.0}, sizes_of[1], 2);
    REQUIRE_OK(mt_tensor_set_grad(parameters[0], first));
    REQUIRE_OK(mt_tensor_set_grad(parameters[1], second));
    REQUIRE_OK(mt_clip_grad_norm(parameters, 2, max_norm, norm_type, &total));
    CHECK_NEAR_F64(total, norm, 1e-12);
    REQUIRE_OK(mt_tensor_read(mt_tensor_grad(parameters[0]), grad, sizeof(grad)));
    CHECK_NEAR_F64(grad[0], 3.0 * factor, 1e-12);
    CHECK_NEAR_F64(grad[2], -4.0 * factor, 1e-12);
    mt_tensor_release(first);
    mt_tensor_release(second);
    release_both(parameters);
}

TEST(clip_grad_norm_scales_down_only)
{
    check_clipped(1.0, 2.0, 13.0, 1.0 / (13.0 + 1e-6));
    check_clipped(100.0, 2.0, 13.0, 1.0);
    check_clipped(1.0, 1.0, 19.0, 1.0 / (19.0 + 1e-6));
    check_clipped(6.0, INFINITY, 12.0, 6.0 / (12.0 + 1e-6));
    double total = -1.0;
    CHECK_OK(mt_clip_grad_norm(NULL, 0, 1.0, 2.0, &total));
    CHECK_EQ_F64(total, 0.0);
    mt_tensor *parameters[2];
    make_parameters(parameters); /* without gradients */
    CHECK_OK(mt_clip_grad_norm(parameters, 2, 1.0, 2.0, &total));
    CHECK_EQ_F64(total, 0.0);
    CHECK_OK(mt_clip_grad_norm(parameters, 2, 1.0, 2.0, NULL));
    release_both(parameters);
}
