/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the user's own and users' ops in the graph.
 */
#include "autograd_support.h"

typedef struct notes {
    int freed;
    int forwards;
    int backwards;
    int status;
    bool null_grads;
} notes;

static void forget(void *context)
{
    ((notes *)context)->freed++;
}

/* x -> x^3, sum of x w: saves an input and an output. */
static int cube_forward(void *context, mt_function_call *call, mt_tensor *const *inputs,
                        size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    notes *n = context;
    n->forwards++;
    CHECK_EQ_U64(n_inputs, 1);
    CHECK_EQ_U64(n_outputs, 1);
    CHECK(!mt_grad_enabled());
    mt_tensor *square = NULL;
    int status = mt_mul(inputs[0], inputs[0], &square);
    if (status == MT_OK) {
        status = mt_mul(square, inputs[0], &outputs[0]);
    }
    if (status == MT_OK) {
        status = mt_function_save(call, inputs[0]);
    }
    if (status == MT_OK) {
        status = mt_function_save(call, outputs[0]);
    }
    mt_tensor_release(square);
    return status;
}

/* 3 x^2 = 3 y / x */
static int cube_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                         size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    notes *n = context;
    n->backwards++;
    (void)n_outputs;
    (void)n_inputs;
    mt_tensor *x = NULL;
    mt_tensor *y = NULL;
    mt_tensor *ratio = NULL;
    mt_tensor *slope = NULL;
    int status = mt_function_get_saved(call, 0, &x);
    if (status == MT_OK) {
        status = mt_function_get_saved(call, 1, &y);
    }
    if (status == MT_OK) {
        status = mt_div(y, x, &ratio);
    }
    if (status == MT_OK) {
        status = mt_mul_scalar(ratio, mt_real(3), &slope);
    }
    if (status == MT_OK) {
        status = mt_mul(slope, grads_out[0], &grads_in[0]);
    }
    RELEASE(x, y, ratio, slope);
    return status;
}

static mt_function function_of(const char *name)
{
    return (mt_function){.struct_size = sizeof(mt_function),
                         .name = name,
                         .forward = cube_forward,
                         .backward = cube_backward,
                         .free_context = forget};
}

TEST(a_function_has_its_own_derivative)
{
    mt_function cube = function_of("CubeBackward");
    notes n = {0};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&cube, &n, &x, 1, &y, 1));
    CHECK_VALUES(y, 1, 8);
    CHECK_EQ_STR(mt_node_name(mt_tensor_grad_fn(y)), "CubeBackward");
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 6, 24);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME,
                "Trying to backward through the graph a second time");
    CHECK_EQ_I64(n.freed, 0);
    RELEASE(x, y, loss);
    CHECK_EQ_I64(n.freed, 1);
    CHECK_NOTHING_LEFT();
}

TEST(a_function_is_differentiated_twice_through_what_it_saved)
{
    mt_function cube = function_of("CubeBackward");
    notes n = {0};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *twice = mul_number(x, 2); /* not a leaf: the saved input must keep its place */
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&cube, &n, &twice, 1, &y, 1)); /* 8 x^3 */
    mt_tensor *loss = sum_all(y);
    mt_tensor *first = NULL;
    mt_tensor *second = NULL;
    CHECK_OK(mt_grad(&loss, NULL, 1, &x, 1, MT_CREATE_GRAPH, &first));
    CHECK_VALUES(first, 24, 96);
    mt_tensor *sum = sum_all(first);
    CHECK_OK(mt_grad(&sum, NULL, 1, &x, 1, 0, &second));
    CHECK_VALUES(second, 48, 96); /* y' = 3 y / x has y'' = 3 y'/x - 3 y / x^2 = 6 x */
    RELEASE(x, twice, y, loss, first, sum, second);
    CHECK_EQ_I64(n.freed, 1);
    CHECK_NOTHING_LEFT();
}

TEST(without_a_graph_the_context_goes_at_once)
{
    mt_function cube = function_of("CubeBackward");
    notes n = {0};
    mt_tensor *x = VECTOR(1, 2);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&cube, &n, &x, 1, &y, 1));
    CHECK(!mt_tensor_requires_grad(y));
    CHECK_EQ_I64(n.freed, 1);
    mt_tensor_release(y);
    mt_set_grad_enabled(false);
    as_leaf(x);
    REQUIRE_OK(mt_function_apply(&cube, &n, &x, 1, &y, 1));
    mt_set_grad_enabled(true);
    CHECK(!mt_tensor_requires_grad(y));
    CHECK_EQ_I64(n.freed, 2);
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(saved_tensors_of_functions_are_checked)
{
    mt_function cube = function_of("CubeBackward");
    notes n = {0};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *twice = mul_number(x, 2);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&cube, &n, &twice, 1, &y, 1));
    REQUIRE_OK(mt_add_scalar_(twice, mt_real(1)));
    mt_tensor *loss = sum_all(y);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME, "modified by an inplace operation");
    RELEASE(x, twice, y, loss);
    CHECK_EQ_I64(n.freed, 1);
    CHECK_NOTHING_LEFT();
}

/* ---- outputs that are inputs, two outputs, wrong gradients ----------------------------------- */

static int same_forward(void *context, mt_function_call *call, mt_tensor *const *inputs,
                        size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    (void)context;
    (void)call;
    (void)n_inputs;
    for (size_t i = 0; i < n_outputs; i++) {
        outputs[i] = mt_tensor_retain(inputs[0]);
    }
    return MT_OK;
}

/* Ten times the first, a hundred times the second. */
static int weighed_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                            size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    notes *n = context;
    (void)call;
    (void)n_inputs;
    mt_tensor *parts[2] = {NULL, NULL};
    int status = MT_OK;
    for (size_t i = 0; i < n_outputs && status == MT_OK; i++) {
        n->null_grads = n->null_grads || grads_out[i] == NULL;
        if (grads_out[i] != NULL) {
            status = mt_mul_scalar(grads_out[i], mt_real(i == 0 ? 10 : 100), &parts[i]);
        }
    }
    if (status == MT_OK && parts[0] != NULL && parts[1] != NULL) {
        status = mt_add(parts[0], parts[1], &grads_in[0]);
    } else if (status == MT_OK) {
        grads_in[0] = mt_tensor_retain(parts[0] != NULL ? parts[0] : parts[1]);
    }
    RELEASE(parts[0], parts[1]);
    return status;
}

TEST(an_input_given_back_is_a_tensor_of_its_own)
{
    mt_function same = function_of("SameBackward");
    same.forward = same_forward;
    same.backward = weighed_backward;
    notes n = {0};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y[2] = {NULL, NULL};
    REQUIRE_OK(mt_function_apply(&same, &n, &x, 1, y, 2));
    CHECK(y[0] != x);
    CHECK(y[0] != y[1]);
    CHECK(mt_tensor_is_view(y[0]));
    CHECK_FAILS(mt_add_scalar_(y[0], mt_real(1)), MT_ERUNTIME,
                "Output 0 of Same is a view and is being modified inplace. This view was created "
                "inside a custom Function");
    mt_tensor *loss = sum_all(y[1]);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK(n.null_grads); /* nothing came for output 0 */
    CHECK_VALUES(mt_tensor_grad(x), 100, 100);
    mt_tensor *product = mul(y[0], y[1]);
    mt_tensor *loss_2 = sum_all(product);
    CHECK_OK(mt_tensor_set_grad(x, NULL));
    CHECK_OK(mt_backward(loss_2, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 110, 220);
    RELEASE(x, y[0], y[1], loss, product, loss_2);
    CHECK_EQ_I64(n.freed, 1);
    CHECK_NOTHING_LEFT();
}

static int wrong_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                          size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    notes *n = context;
    (void)call;
    (void)grads_out;
    (void)n_outputs;
    (void)n_inputs;
    int64_t sizes[] = {3, 2};
    if (n->status != 0) {
        return n->status < 0 ? mt_fail(n->status, "no derivative today") : n->status;
    }
    return n->null_grads ? mt_ones(sizes, 1, &grads_in[0]) : mt_ones(sizes, 2, &grads_in[0]);
}

TEST(gradients_of_functions_are_checked)
{
    mt_function wrong = function_of("WrongBackward");
    wrong.forward = same_forward;
    wrong.backward = wrong_backward;
    notes n = {0};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&wrong, &n, &x, 1, &y, 1));
    mt_tensor *loss = sum_all(y);
    /* float32 [3, 2] for float64 [2]: summed and converted, as torch does. */
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_VALUES(mt_tensor_grad(x), 3, 3);
    n.null_grads = true;
    CHECK_FAILS(mt_backward(loss, NULL, MT_RETAIN_GRAPH), MT_ERUNTIME,
                "Function WrongBackward returned an invalid gradient at index 0 - got [3] but "
                "expected shape compatible with [2]");
    n.status = MT_ENOTSUP;
    CHECK_FAILS(mt_backward(loss, NULL, MT_RETAIN_GRAPH), MT_ENOTSUP, "no derivative today");
    n.status = 5;
    CHECK_FAILS(mt_backward(loss, NULL, MT_RETAIN_GRAPH), MT_ECALLBACK,
                "WrongBackward: backward returned 5");
    CHECK_VALUES(mt_tensor_grad(x), 3, 3);
    RELEASE(x, y, loss);
    CHECK_NOTHING_LEFT();
}

static int failing_forward(void *context, mt_function_call *call, mt_tensor *const *inputs,
                           size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    notes *n = context;
    (void)n_inputs;
    (void)n_outputs;
    outputs[0] = mt_tensor_retain(inputs[0]);
    CHECK_OK(mt_function_save(call, inputs[0]));
    CHECK_FAILS(mt_function_save(call, NULL), MT_EVALUE, "save: the tensor must be given");
    mt_tensor *saved = NULL;
    CHECK_OK(mt_function_get_saved(call, 0, &saved));
    CHECK_EQ_PTR(saved, inputs[0]);
    mt_tensor_release(saved);
    CHECK_FAILS(mt_function_get_saved(call, 3, &saved), MT_EINDEX, "saved tensor 3 of 1");
    if (n->status == 0) {
        mt_tensor_release(outputs[0]);
        outputs[0] = NULL;
    }
    return n->status == 0 ? MT_OK : mt_fail(n->status, "no forward today");
}

TEST(a_failing_forward_leaves_nothing)
{
    mt_function bad = function_of("BadBackward");
    bad.forward = failing_forward;
    notes n = {.status = MT_EVALUE};
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = NULL;
    CHECK_FAILS(mt_function_apply(&bad, &n, &x, 1, &y, 1), MT_EVALUE, "no forward today");
    CHECK(y == NULL);
    CHECK(mt_grad_enabled());
    CHECK_EQ_I64(n.freed, 1);
    n.status = 0;
    CHECK_FAILS(mt_function_apply(&bad, &n, &x, 1, &y, 1), MT_EVALUE,
                "BadBackward: forward gave no output 0");
    CHECK_EQ_I64(n.freed, 2);
    bad.name = NULL;
    CHECK_FAILS(mt_function_apply(&bad, &n, &x, 1, &y, 1), MT_EVALUE, "function_apply()");
    CHECK_EQ_I64(n.freed, 3); /* once a call, whatever became of it */
    RELEASE(x);
    CHECK_NOTHING_LEFT();
}

static int inner_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                          size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    (void)context;
    (void)n_outputs;
    (void)n_inputs;
    mt_tensor *x = NULL;
    mt_tensor *again = NULL;
    mt_tensor *y = NULL;
    mt_tensor *slope = NULL;
    bool was = mt_set_grad_enabled(true);
    int status = mt_function_get_saved(call, 0, &x);
    if (status == MT_OK) {
        status = mt_detach(x, &again);
    }
    if (status == MT_OK) {
        status = mt_tensor_set_requires_grad(again, true);
    }
    if (status == MT_OK) {
        status = mt_exp(again, &y);
    }
    if (status == MT_OK) { /* as a checkpoint does: forward again, backward inside */
        status = mt_grad(&y, grads_out, 1, &again, 1, 0, &slope);
    }
    mt_set_grad_enabled(was);
    grads_in[0] = slope;
    RELEASE(x, again, y);
    return status;
}

static int exp_forward(void *context, mt_function_call *call, mt_tensor *const *inputs,
                       size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    (void)context;
    (void)n_inputs;
    (void)n_outputs;
    int status = mt_function_save(call, inputs[0]);
    return status == MT_OK ? mt_exp(inputs[0], &outputs[0]) : status;
}

TEST(a_functions_backward_may_run_backward)
{
    mt_function checkpoint = function_of("CheckpointBackward");
    checkpoint.forward = exp_forward;
    checkpoint.backward = inner_backward;
    notes n = {0};
    mt_tensor *x = LEAF(0, 1);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_function_apply(&checkpoint, &n, &x, 1, &y, 1));
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1, 2.718281828459045);
    RELEASE(x, y, loss);
    CHECK_NOTHING_LEFT();
}

/* ---- users' ops ------------------------------------------------------------------------------ */

/* a * factor + b, and a list that it ignores */
static int axpy_run(void *context, const mt_value *args, mt_value *results)
{
    (void)context;
    mt_tensor *scaled = NULL;
    mt_tensor *out = NULL;
    int status = mt_mul_scalar(args[0].of.tensor, args[3], &scaled);
    if (status == MT_OK) {
        status = mt_add(scaled, args[1].of.tensor, &out);
    }
    mt_tensor_release(scaled);
    if (status == MT_OK) {
        results[0] = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = out};
    }
    return status;
}

static int axpy_backward(void *context, const mt_value *args, const mt_value *results,
                         mt_tensor *const *grads_out, mt_tensor **grads_in)
{
    ++*(int *)context;
    CHECK_EQ_I64(results[0].kind, MT_KIND_TENSOR);
    CHECK_EQ_I64(args[0].kind, MT_KIND_TENSOR);
    grads_in[1] = mt_tensor_retain(grads_out[0]);
    return mt_mul_scalar(grads_out[0], args[3], &grads_in[0]);
}

TEST(a_users_op_is_a_node_like_any_other)
{
    static int calls;
    mt_op op = 0;
    REQUIRE_OK(mt_op_register("mytest::axpy(Tensor a, Tensor b, Tensor[] more, float factor=3) "
                              "-> Tensor",
                              axpy_run, axpy_backward, &calls, &op));
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *w = LEAF(5);
    mt_tensor *constant = VECTOR(9);
    mt_value args[] = {{.kind = MT_KIND_TENSOR, .of.tensor = x},
                       {.kind = MT_KIND_TENSOR, .of.tensor = w},
                       {.kind = MT_KIND_TENSORS, .count = 1, .of.tensors = &constant}};
    mt_value result;
    REQUIRE_OK(mt_call(op, args, 3, &result, 1));
    CHECK_VALUES(result.of.tensor, 8, 11);
    mt_tensor *loss = sum_all(result.of.tensor);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_I64(calls, 1);
    CHECK_VALUES(mt_tensor_grad(x), 3, 3);
    CHECK_VALUES(mt_tensor_grad(w), 2); /* summed to its shape */
    mt_value_clear(&result);
    mt_tensor_release(loss);
    /* There is no place for the gradient of a list: it is not lost in silence. */
    args[2].of.tensors = &x;
    REQUIRE_OK(mt_call(op, args, 3, &result, 1));
    loss = sum_all(result.of.tensor);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ENOTSUP, "gradients of a list of tensors");
    mt_value_clear(&result);
    RELEASE(x, w, loss, constant);
    CHECK_NOTHING_LEFT();
}
