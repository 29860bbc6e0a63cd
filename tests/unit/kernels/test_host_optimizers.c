/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer steps: four steps of each form against torch 2.13's torch.optim in float64, whose
 * results are here, at every instruction set and for float.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "support/strided_array.h"

#include <math.h>

enum {
    STEPS = 4,
    VALUES = 4,
    COUNT = 71 /* the four values again and again: vectors and what is left over */
};

static const double start[VALUES] = {0.5, -1.25, 2.0, 0.0};
static const double gradients[STEPS][VALUES] = {
    {0.1, -0.2, 0.3, 0.4},
    {-0.5, 0.25, 0.125, 0.0},
    {0.01, 0.02, -3.0, 0.7},
    {1.0, -1.0, 0.5, -0.25},
};

typedef struct known_case {
    mt_kernel kernel;
    uint16_t code;
    bool nesterov, maximize;
    double scalars[5]; /* as kernels.def has them */
    uint32_t states;   /* which are there: bits */
    double answer[VALUES];
} known_case;

static const known_case cases[] = {
    {MT_KERNEL_SGD,
     0,
     false,
     false,
     {0.1, 0, 0, 0.01},
     0,
     {0.43693401801049986, -1.15201546002125, 2.1993268895319997, -0.08481011996}},
    {MT_KERNEL_SGD,
     0,
     false,
     true,
     {0.1, 0.9, 0.1, 0.01},
     1,
     {0.49998383454007445, -1.3337061161688313, 1.6486663819100882, 0.23437840465084003}},
    {MT_KERNEL_SGD,
     0,
     true,
     false,
     {0.1, 0.9, 0, 0.02},
     1,
     {0.4255992607416248, -1.039589481718778, 2.5031694097459316, -0.30387030771772805}},
    {MT_KERNEL_ADAM,
     0,
     false,
     false,
     {0.05, 0.9, 0.99, 1e-08, 0.1},
     3,
     {0.46900894055784714, -1.1282250833578185, 1.9370294162729058, -0.14582967128403881}},
    {MT_KERNEL_ADAM,
     0,
     false,
     true,
     {0.05, 0.9, 0.99, 1e-08, 0.1},
     7,
     {0.5005895088505702, -1.2516655372846188, 1.9980234114387159, 0.14566709044207826}},
    {MT_KERNEL_ADAM,
     1,
     false,
     false,
     {0.05, 0.9, 0.99, 1e-06, 0.1},
     3,
     {0.47532639855440273, -1.166771340965632, 1.9117433634792254, -0.1459001566702872}},
    {MT_KERNEL_ADAM,
     1,
     false,
     false,
     {0.05, 0.8, 0.9, 1e-06, 0.1},
     7,
     {0.4724974022651113, -1.1686448470385917, 1.9140508297149732, -0.1408778238043295}},
    {MT_KERNEL_RMSPROP,
     0,
     false,
     false,
     {0.01, 0.9, 1e-08, 0.05, 0},
     1,
     {0.46767411629737227, -1.2025325284048904, 1.9769748273443488, -0.04943673106557407}},
    {MT_KERNEL_RMSPROP,
     0,
     false,
     true,
     {0.01, 0.9, 1e-08, 0.05, 0.8},
     3,
     {0.543431431735736, -1.2877300247032868, 2.0502015292086306, 0.13334728992093348}},
    {MT_KERNEL_RMSPROP,
     0,
     false,
     false,
     {0.01, 0.9, 1e-08, 0, 0.8},
     7,
     {0.4494713745276473, -1.1853362664773033, 1.9211138961079792, -0.14351071445702687}},
    {MT_KERNEL_RMSPROP,
     0,
     false,
     false,
     {0.01, 0.9, 1e-08, 0, 0},
     5,
     {0.4688118058481038, -1.2123371727253418, 1.9799723185203804, -0.05376133209404791}},
    {MT_KERNEL_ADAGRAD,
     0,
     false,
     false,
     {0.1, 0.05, 0.01, 1e-10},
     1,
     {0.4128683226106339, -1.1404006636975215, 1.9363754888048554, -0.15271787743489235}},
    {MT_KERNEL_ADAGRAD,
     0,
     false,
     true,
     {0.1, 0, 0, 1e-10},
     1,
     {0.5929862623018209, -1.360899145344939, 2.0553900609466895, 0.15720687029223085}},
};

static mt_kernel_fn *function_of(mt_kernel kernel)
{
    switch (kernel) {
    case MT_KERNEL_SGD: return mt__host_SGD;
    case MT_KERNEL_ADAM: return mt__host_ADAM;
    case MT_KERNEL_RMSPROP: return mt__host_RMSPROP;
    default: return mt__host_ADAGRAD;
    }
}

static uint32_t state_count(mt_kernel kernel)
{
    return kernel == MT_KERNEL_ADAM || kernel == MT_KERNEL_RMSPROP ? 3 : 1;
}

static void set_ints(const known_case *one, int64_t step, int64_t ints[3])
{
    ints[0] = step;
    ints[1] = one->maximize;
    ints[2] = 0;
    if (one->kernel == MT_KERNEL_SGD) {
        ints[0] = one->nesterov;
        ints[2] = step == 1;
    } else if (one->kernel == MT_KERNEL_RMSPROP) {
        ints[0] = one->maximize;
    }
}

static void run_case(const known_case *one, mt_dtype dtype)
{
    const int64_t size = COUNT;
    strided_array arrays[5]; /* parameter, gradient, states */
    mt_array tensors[5];
    for (uint32_t i = 0; i < 5; i++) {
        strided_array_init(&arrays[i], dtype, &size, 1, LAYOUT_CONTIGUOUS);
        tensors[i] = arrays[i].array;
        for (int64_t k = 0; k < COUNT; k++) { /* SGD's first step must not read its buffer */
            double first = one->kernel == MT_KERNEL_SGD ? (double)NAN : 0;
            strided_set(&tensors[i], k, i == 0 ? start[k % VALUES] : first);
        }
        if (i >= 2 && (one->states >> (i - 2) & 1) == 0) {
            tensors[i] = (mt_array){.n_dims = -1};
        }
    }
    mt_scalar scalars[5];
    for (int i = 0; i < 5; i++) {
        scalars[i] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = one->scalars[i]};
    }
    for (int64_t step = 1; step <= STEPS; step++) {
        int64_t ints[3];
        set_ints(one, step, ints);
        for (int64_t k = 0; k < COUNT; k++) {
            strided_set(&tensors[1], k, gradients[step - 1][k % VALUES]);
        }
        mt_kernel_call call = {.struct_size = sizeof call,
                               .kernel = (uint16_t)one->kernel,
                               .code = one->code,
                               .n_tensors = 2 + state_count(one->kernel),
                               .n_ints = 3,
                               .n_scalars = 5,
                               .tensors = tensors,
                               .ints = ints,
                               .scalars = scalars};
        CHECK_OK(function_of(one->kernel)(NULL, NULL, &call));
    }
    double tolerance = dtype == MT_DTYPE_F64 ? 1e-14 : 2e-6;
    for (int64_t k = 0; k < COUNT; k++) {
        CHECK_NEAR_F64(strided_get(&tensors[0], k), one->answer[k % VALUES], tolerance);
    }
    for (uint32_t i = 0; i < 5; i++) {
        strided_array_fini(&arrays[i]);
    }
}

TEST(steps_are_torchs)
{
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            run_case(&cases[i], MT_DTYPE_F64);
            run_case(&cases[i], MT_DTYPE_F32);
        }
    }
}

TEST(integers_are_refused)
{
    const int64_t size = 3;
    strided_array array;
    strided_array_init(&array, MT_DTYPE_I64, &size, 1, LAYOUT_CONTIGUOUS);
    mt_array tensors[3] = {array.array, array.array, {.n_dims = -1}};
    mt_scalar scalars[5] = {{.kind = MT_KIND_INT}};
    int64_t ints[3] = {0};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = 3,
                           .tensors = tensors,
                           .ints = ints,
                           .scalars = scalars};
    CHECK_EQ_I64(mt__host_SGD(NULL, NULL, &call), MT_ENOTSUP);
    strided_array_fini(&array);
}
