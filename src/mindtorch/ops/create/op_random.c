/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers. An op reserves one draw of the generator for each element and passes the offset
 * to the kernel; its numbers depend only on seed and offset.
 */
#include "base/fail.h"
#include "mindtorch/core/device/random.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Fills `out`, one draw per element. */
static int draw(mt__call *call, mt_tensor *out, mt_generator *generator, mt_random code,
                const mt_scalar scalars[2])
{
    if (out->numel == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {.kernel = MT_KERNEL_RANDOM,
                            .code = (uint16_t)code,
                            MT_TENSORS(out),
                            .n_ints = 2,
                            MT_SCALARS(scalars[0], scalars[1])};
    mt__generator_reserve(generator, out->numel, args.ints);
    return mt__kernel(call, &args);
}

static const mt_scalar unit[2] = {{.kind = MT_KIND_REAL, .of.real = 0},
                                  {.kind = MT_KIND_REAL, .of.real = 1}};

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_floating(const char *kernel, mt_dtype dtype)
{
    bool floating = mt_dtype_category(dtype) == MT_CATEGORY_REAL;
    return floating ? MT_OK : mt__refuse_type(kernel, dtype);
}

static int check_uniform(double from, double to, mt_dtype dtype)
{
    MT_TRY(check_floating("check_uniform_bounds", dtype));
    double largest = mt__type_largest(dtype);
    const char *name = mt__type_in_c(dtype);
    if (!(from >= -largest && from <= largest)) {
        return mtb_fail(MT_ERUNTIME, "from is out of bounds for %s", name);
    }
    if (!(to >= -largest && to <= largest)) {
        return mtb_fail(MT_ERUNTIME, "to is out of bounds for %s", name);
    }
    if (from > to) {
        return mtb_fail(MT_ERUNTIME,
                        "uniform_ expects to return a [from, to) range, but found from=%.6g > "
                        "to=%.6g",
                        from, to);
    }
    if (to - from > largest) {
        return mtb_fail(MT_ERUNTIME,
                        "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found "
                        "to=%.6g and from=%.6g which result in to-from to exceed the limit",
                        mt__type_title(dtype), to, from);
    }
    return MT_OK;
}

/* What a type can hold: [low, high]; floating point holds every int64, rounded. */
static void integer_range(mt_dtype dtype, int64_t *low, int64_t *high)
{
    static const int64_t ends[MT_DTYPE_COUNT][2] = {
        [MT_DTYPE_BOOL] = {0, 1},
        [MT_DTYPE_U8] = {0, UINT8_MAX},
        [MT_DTYPE_I8] = {INT8_MIN, INT8_MAX},
        [MT_DTYPE_I16] = {INT16_MIN, INT16_MAX},
        [MT_DTYPE_U16] = {0, UINT16_MAX},
        [MT_DTYPE_I32] = {INT32_MIN, INT32_MAX},
        [MT_DTYPE_U32] = {0, UINT32_MAX},
        [MT_DTYPE_U64] = {0, INT64_MAX}, /* of the numbers that an argument can be */
    };
    bool listed = ends[dtype][1] != 0;
    *low = listed ? ends[dtype][0] : INT64_MIN;
    *high = listed ? ends[dtype][1] : INT64_MAX;
}

static int check_integers(int64_t from, int64_t to, mt_dtype dtype)
{
    int64_t low = 0;
    int64_t high = 0;
    integer_range(dtype, &low, &high);
    if (from >= to) {
        return mtb_fail(MT_ERUNTIME,
                        "random_ expects 'from' to be less than 'to', but got from=%" PRId64
                        " >= to=%" PRId64,
                        from, to);
    }
    if (from < low || from > high) {
        return mtb_fail(MT_ERUNTIME, "from is out of bounds for %s", mt__type_in_c(dtype));
    }
    if (to - 1 > high) {
        return mtb_fail(MT_ERUNTIME, "to - 1 is out of bounds for %s", mt__type_in_c(dtype));
    }
    return MT_OK;
}

/* ---- creation: parameters size, then generator, dtype, device -------------------------------- */

static int new_of_size(mt__call *call, uint32_t size, mt_dtype dtype, mt_tensor **out)
{
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), call->args[size].of.ints, call->args[size].count,
                          &shape));
    return mt__result_new(call, 0, dtype, &shape, out);
}

static mt_dtype dtype_or(const mt__call *call, uint32_t i, mt_dtype otherwise)
{
    mt_dtype dtype = mt__arg_dtype(call, i);
    return dtype == MT_DTYPE_NONE ? otherwise : dtype;
}

int mt__run_rand(mt__call *call)
{
    mt_dtype dtype = dtype_or(call, 2, mt_default_dtype());
    mt_tensor *out = NULL;
    MT_TRY(check_floating("check_uniform_bounds", dtype));
    MT_TRY(new_of_size(call, 0, dtype, &out));
    return draw(call, out, mt__arg_generator(call, 1), MT_RANDOM_UNIFORM, unit);
}

int mt__run_randn(mt__call *call)
{
    mt_dtype dtype = dtype_or(call, 2, mt_default_dtype());
    mt_tensor *out = NULL;
    MT_TRY(check_floating("normal_kernel_cpu", dtype));
    MT_TRY(new_of_size(call, 0, dtype, &out));
    return draw(call, out, mt__arg_generator(call, 1), MT_RANDOM_NORMAL, unit);
}

int mt__run_randint(mt__call *call)
{
    mt_dtype dtype = dtype_or(call, 4, MT_DTYPE_I64);
    mt_tensor *out = NULL;
    MT_TRY(check_integers(mt__arg_int(call, 0), mt__arg_int(call, 1), dtype));
    MT_TRY(new_of_size(call, 2, dtype, &out));
    return draw(call, out, mt__arg_generator(call, 3), MT_RANDOM_INTEGER, call->args);
}

int mt__run_randperm(mt__call *call)
{
    int64_t n = mt__arg_int(call, 0);
    mt_dtype dtype = dtype_or(call, 2, MT_DTYPE_I64);
    if (n < 0) {
        return mtb_fail(
            MT_ERUNTIME,
            "Trying to create tensor with negative dimension %" PRId64 ": [%" PRId64 "]", n, n);
    }
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("randperm", dtype);
    }
    const mt_scalar last = mt_int(n > 0 ? n - 1 : 0);
    MT_TRY(mt__number_fits(&last, dtype));
    if ((dtype == MT_DTYPE_F32 && n > (1 << 24) + 1) || (dtype == MT_DTYPE_F16 && n > 2049) ||
        (dtype == MT_DTYPE_BF16 && n > 257)) {
        return mtb_fail(MT_ERUNTIME, "n cannot be greater than 2^%d+1 for %s type.",
                        dtype == MT_DTYPE_F32   ? 24
                        : dtype == MT_DTYPE_F16 ? 11
                                                : 8,
                        mt__type_title(dtype));
    }
    mt__shape shape = {.n_dims = 1, .sizes = {n}};
    mt_tensor *out = NULL;
    mt_tensor *order = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    order = out;
    if (dtype != MT_DTYPE_I64) {
        MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &shape, &order));
    }
    if (n == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {.kernel = MT_KERNEL_RANDPERM, MT_TENSORS(order), .n_ints = 2};
    mt__generator_reserve(mt__arg_generator(call, 1), n, args.ints);
    MT_TRY(mt__kernel(call, &args));
    return order == out ? MT_OK : mt__copy_elements(out, order);
}

/* rand_like, randn_like: self, generator, dtype, device. */
static int draw_like(mt__call *call, const char *kernel, mt_random code)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = dtype_or(call, 2, (mt_dtype)self->dtype);
    MT_TRY(check_floating(kernel, dtype));
    if (call->args[3].kind == MT_KIND_DEVICE) {
        MT_TRY(mt__place_check(mt__op_name(call), (mt_device)mt__arg_int(call, 3)));
        call->device = (mt_device)mt__arg_int(call, 3);
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_laid_out(call, 0, dtype, &shape, self));
    return draw(call, call->results[0].of.tensor, mt__arg_generator(call, 1), code, unit);
}

MT_RUN(rand_like, draw_like, "check_uniform_bounds", MT_RANDOM_UNIFORM)
MT_RUN(randn_like, draw_like, "normal_kernel_cpu", MT_RANDOM_NORMAL)

/* ---- in place -------------------------------------------------------------------------------- */

/* Parameters 1 and 2, or 1 alone, are the kernel's; the generator is the last one. */
static int draw_self(mt__call *call, mt_random code, uint32_t n_scalars)
{
    mt_tensor *self = call->args[0].of.tensor;
    MT_TRY(mt__check_writable(self));
    const mt_scalar scalars[2] = {call->args[1], n_scalars > 1 ? call->args[2] : unit[1]};
    MT_TRY(draw(call, self, mt__arg_generator(call, 1 + n_scalars), code, scalars));
    mt__result_same(call, 0, self);
    return MT_OK;
}

static mt_dtype self_dtype(const mt__call *call)
{
    return (mt_dtype)call->args[0].of.tensor->dtype;
}

int mt__run_uniform_(mt__call *call)
{
    MT_TRY(check_uniform(mt__arg_real(call, 1), mt__arg_real(call, 2), self_dtype(call)));
    return draw_self(call, MT_RANDOM_UNIFORM, 2);
}

int mt__run_normal_(mt__call *call)
{
    double deviation = mt__arg_real(call, 2);
    if (!(deviation >= 0)) {
        return mtb_fail(MT_ERUNTIME, "normal expects std >= 0.0, but found std %.6g", deviation);
    }
    MT_TRY(check_floating("normal_kernel_cpu", self_dtype(call)));
    return draw_self(call, MT_RANDOM_NORMAL, 2);
}

int mt__run_bernoulli_(mt__call *call)
{
    double p = mt__arg_real(call, 1);
    if (!(p >= 0 && p <= 1)) {
        return mtb_fail(MT_ERUNTIME, "bernoulli_ expects p to be in [0, 1], but got p=%.6g", p);
    }
    return draw_self(call, MT_RANDOM_BERNOULLI, 1);
}

int mt__run_exponential_(mt__call *call)
{
    double rate = mt__arg_real(call, 1);
    if (mt_dtype_category(self_dtype(call)) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "Exponential distribution is a continuous probability distribution. dtype "
                        "must be a floating point but you specified %s",
                        mt__type_title(self_dtype(call)));
    }
    if (!(rate > 0)) {
        return mtb_fail(MT_ERUNTIME, "exponential_ expects lambda > 0.0, but found lambda=%.6g",
                        rate);
    }
    return draw_self(call, MT_RANDOM_EXPONENTIAL, 1);
}

int mt__run_random_(mt__call *call)
{
    MT_TRY(check_integers(mt__arg_int(call, 1), mt__arg_int(call, 2), self_dtype(call)));
    return draw_self(call, MT_RANDOM_INTEGER, 2);
}

/* ---- parameters in tensors ------------------------------------------------------------------- */

/* SAMPLE of the first `n` arguments, which have one shape and type; one draw per element. */
static int sample(mt__call *call, uint16_t code, mt_tensor *const *parameters, uint32_t n,
                  mt_generator *generator)
{
    mt_tensor *out = NULL;
    mt__shape shape = mt__tensor_shape(parameters[0]);
    MT_TRY(mt__result_new(call, 0, (mt_dtype)parameters[0]->dtype, &shape, &out));
    if (out->numel == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {.kernel = MT_KERNEL_SAMPLE, .code = code, .n_ints = 2};
    args.n_tensors = n + 1;
    args.tensors[0] = out;
    for (uint32_t i = 0; i < n; i++) {
        args.tensors[i + 1] = parameters[i];
    }
    mt__generator_reserve(generator, out->numel, args.ints);
    return mt__kernel(call, &args);
}

int mt__run__standard_gamma(mt__call *call)
{
    MT_TRY(check_floating("gamma", self_dtype(call)));
    return sample(call, 0, &call->args[0].of.tensor, 1, mt__arg_generator(call, 1));
}

int mt__run_poisson(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    MT_TRY(check_floating("poisson", self_dtype(call)));
    if (call->device == MT_META) {
        return sample(call, 1, &self, 1, mt__arg_generator(call, 1)); /* no elements to check */
    }
    mt_tensor **valid = mt__temp(call);
    mt_tensor **all = mt__temp(call);
    mt_scalar answer;
    MT_TRY(mt_ge_scalar(self, mt_real(0), valid));
    MT_TRY(mt_all(*valid, NULL, 0, false, all));
    MT_TRY(mt_item(*all, &answer));
    if (answer.of.integer == 0) {
        return mtb_fail(MT_ERUNTIME, "invalid Poisson rate, expected rate to be non-negative");
    }
    return sample(call, 1, &self, 1, mt__arg_generator(call, 1));
}

int mt__run_binomial(mt__call *call)
{
    mt_dtype dtype = self_dtype(call);
    MT_TRY(check_floating("binomial_cpu", dtype));
    if (call->args[1].of.tensor->dtype != dtype) {
        return mtb_fail(MT_EVALUE,
                        "binomial only supports floating-point dtypes for prob of the "
                        "type of count, got: %s and %s",
                        mt__type_title(dtype),
                        mt__type_title((mt_dtype)call->args[1].of.tensor->dtype));
    }
    mt_tensor *const both[2] = {call->args[0].of.tensor, call->args[1].of.tensor};
    mt_tensor **same = mt__temp(call);
    mt_tensor **wide[2] = {mt__temp(call), mt__temp(call)};
    MT_TRY(mt_add(both[0], both[1], same)); /* their common shape */
    for (uint32_t i = 0; i < 2; i++) {
        MT_TRY(mt_expand(both[i], (*same)->sizes, (*same)->n_dims, wide[i]));
    }
    mt_tensor *const parameters[2] = {*wide[0], *wide[1]};
    return sample(call, 2, parameters, 2, mt__arg_generator(call, 2));
}
