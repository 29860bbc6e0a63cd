/* SPDX-License-Identifier: Apache-2.0
 *
 * An op of one's own: a schema, a function and its derivative. From then on it is checked,
 * dispatched, profiled and differentiated as the library's ops are.
 */
#include <mindtorch/mindtorch.h>

#include <stdio.h>
#include <stdlib.h>

#define TRY(call) ((call) == MT_OK ? (void)0 : die(#call))
static void die(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, mt_last_error()->message);
    exit(1);
}

/* y = x * x * factor. Arguments are as the schema says, defaults filled in. */
static int square_run(void *context, const mt_value *args, mt_value *results)
{
    (void)context;
    mt_tensor *square = NULL, *out = NULL;
    int status = mt_mul(args[0].of.tensor, args[0].of.tensor, &square);
    if (status == MT_OK) {
        status = mt_mul_scalar(square, args[1], &out);
    }
    mt_tensor_release(square);
    results[0] = (mt_value){.kind = out != NULL ? MT_KIND_TENSOR : MT_KIND_NONE, .of.tensor = out};
    return status;
}

/* dx = dy * 2 * x * factor: one gradient for each argument; what stays NULL has none. */
static int square_backward(void *context, const mt_value *args, const mt_value *results,
                           mt_tensor *const *grads_out, mt_tensor **grads_in)
{
    (void)context;
    (void)results;
    mt_tensor *slope = NULL;
    int status = mt_mul_scalar(args[0].of.tensor, mt_real(2 * args[1].of.real), &slope);
    if (status == MT_OK) {
        status = mt_mul(grads_out[0], slope, &grads_in[0]);
    }
    mt_tensor_release(slope);
    return status;
}

int main(void)
{
    mt_op op;
    TRY(mt_op_register("mylib::square(Tensor x, float factor=1) -> Tensor", square_run,
                       square_backward, NULL, &op));
    mt_tensor *x, *loss;
    TRY(mt_tensor_from_data((float[]){1, 2, 3}, MT_DTYPE_F32, (int64_t[]){3}, 1, MT_CPU, &x));
    TRY(mt_tensor_set_requires_grad(x, true));
    mt_value args[] = {{.kind = MT_KIND_TENSOR, .of.tensor = x}, mt_real(0.5)}, result;
    TRY(mt_call(op, args, 2, &result, 1));
    TRY(mt_sum(result.of.tensor, NULL, 0, false, &loss));
    TRY(mt_backward(loss, NULL, 0));
    float y[3], dx[3];
    TRY(mt_tensor_read(result.of.tensor, y, sizeof y));
    TRY(mt_tensor_read(mt_tensor_grad(x), dx, sizeof dx));
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        printf("x %d: square %.1f, derivative %.1f\n", i + 1, (double)y[i], (double)dx[i]);
        wrong |= y[i] != 0.5F * (float)((i + 1) * (i + 1)) || dx[i] != (float)(i + 1);
    }
    mt_tensor_release(loss);
    mt_value_clear(&result);
    mt_tensor_release(x);
    return wrong;
}
