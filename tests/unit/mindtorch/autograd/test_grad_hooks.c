/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks: on gradients, after accumulation, retained gradients; removed and failing ones.
 */
#include "autograd_support.h"

typedef struct noted {
    int calls;
    int freed;
    double first; /* first element of the latest gradient */
    double factor;
    int status;
    mt_tensor *tensor; /* to act on */
    mt_hook_handle handle;
} noted;

static double first_of(mt_tensor *tensor)
{
    double values[MAX_NUMBERS];
    CHECK_OK(mt_tensor_read(tensor, values, (size_t)mt_tensor_numel(tensor) * sizeof(double)));
    return values[0];
}

static int note(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    noted *n = context;
    n->calls++;
    n->first = first_of(grad);
    CHECK(*replacement == NULL);
    return n->factor != 0 ? mt_mul_scalar(grad, mt_real(n->factor), replacement) : MT_OK;
}

static void forget(void *context)
{
    ((noted *)context)->freed++;
}

static int note_leaf(void *context, mt_tensor *leaf)
{
    noted *n = context;
    n->calls++;
    n->first = first_of(mt_tensor_grad(leaf));
    return n->status;
}

static int refuse(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    noted *n = context;
    n->calls++;
    (void)grad;
    (void)replacement;
    return n->status < 0 ? mt_fail(n->status, "the hook's own words") : n->status;
}

TEST(a_hook_sees_and_replaces_the_gradient)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *loss = sum_all(y);
    noted on_y = {.factor = 10};
    noted on_x = {.factor = 0.5};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_hook(y, note, &on_y, forget, &h));
    CHECK(h != 0);
    CHECK_OK(mt_tensor_add_hook(x, note, &on_x, forget, &h));
    mt_tensor_release(y); /* its hook stays with the node */
    CHECK_EQ_I64(on_y.freed, 0);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_F64(on_y.first, 1);
    CHECK_EQ_F64(on_x.first, 20);
    CHECK_VALUES(mt_tensor_grad(x), 10, 20);
    mt_tensor_release(loss);
    CHECK_EQ_I64(on_y.freed, 1);
    CHECK_EQ_I64(on_x.freed, 0);
    mt_tensor_release(x);
    CHECK_EQ_I64(on_x.freed, 1);
    CHECK_NOTHING_LEFT();
}

TEST(hooks_run_in_order_and_can_be_removed)
{
    mt_tensor *x = LEAF(1, 2);
    noted a = {.factor = 2};
    noted b = {.factor = 3};
    mt_hook_handle ha = 0;
    mt_hook_handle hb = 0;
    CHECK_OK(mt_tensor_add_hook(x, note, &a, forget, &ha));
    CHECK_OK(mt_tensor_add_hook(x, note, &b, forget, &hb));
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_F64(b.first, 2);
    CHECK_VALUES(mt_tensor_grad(x), 6, 6);
    mt_tensor_remove_hook(x, ha);
    CHECK_EQ_I64(a.freed, 1);
    mt_tensor_remove_hook(x, ha);
    mt_tensor_remove_hook(x, 12345);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_I64(a.calls, 1);
    CHECK_VALUES(mt_tensor_grad(x), 9, 9);
    RELEASE(x, loss);
    CHECK_EQ_I64(b.freed, 1);
    CHECK_NOTHING_LEFT();
}

static int remove_self(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    noted *n = context;
    n->calls++;
    mt_tensor_remove_hook(n->tensor, n->handle);
    CHECK_EQ_I64(n->freed, 0); /* the context lives until we return */
    (void)grad;
    (void)replacement;
    return MT_OK;
}

TEST(a_hook_may_remove_itself_while_it_runs)
{
    mt_tensor *x = LEAF(1, 2);
    noted a = {.tensor = x};
    noted b = {.factor = 3};
    mt_hook_handle hb = 0;
    CHECK_OK(mt_tensor_add_hook(x, remove_self, &a, forget, &a.handle));
    CHECK_OK(mt_tensor_add_hook(x, note, &b, NULL, &hb));
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_I64(a.freed, 1);
    CHECK_EQ_I64(b.calls, 1);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_I64(a.calls, 1);
    CHECK_VALUES(mt_tensor_grad(x), 6, 6);
    RELEASE(x, loss);
    CHECK_NOTHING_LEFT();
}

TEST(retained_gradients)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *z = mul_number(y, 3);
    mt_tensor *loss = sum_all(z);
    noted on_y = {.factor = 10};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_retain_grad(y));
    CHECK_OK(mt_tensor_retain_grad(x)); /* nothing to do for a leaf */
    CHECK_OK(mt_tensor_retain_grad(z));
    mt_tensor_release(z); /* gone before the backward: nothing is kept for it */
    CHECK_OK(mt_tensor_add_hook(y, note, &on_y, NULL, &h));
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_VALUES(mt_tensor_grad(y), 30, 30); /* after the hook */
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(y), 60, 60);
    mt_tensor *constant = VECTOR(1);
    CHECK_FAILS(mt_tensor_retain_grad(constant), MT_ERUNTIME,
                "can't retain_grad on Tensor that has requires_grad=False");
    RELEASE(x, y, loss, constant);
    CHECK_NOTHING_LEFT();
}

TEST(hooks_and_writes_in_place)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    noted before = {0};
    noted after = {0};
    mt_hook_handle hb = 0;
    mt_hook_handle ha = 0;
    CHECK_OK(mt_tensor_add_hook(y, note, &before, forget, &hb));
    CHECK_OK(mt_tensor_retain_grad(y));
    REQUIRE_OK(mt_mul_scalar_(y, mt_real(5)));
    CHECK_OK(mt_tensor_add_hook(y, note, &after, forget, &ha));
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_F64(before.first, 5); /* of the value before the write */
    CHECK_EQ_F64(after.first, 1);
    CHECK_VALUES(mt_tensor_grad(y), 1, 1); /* of the value now */
    mt_tensor_remove_hook(y, hb);
    CHECK_EQ_I64(before.freed, 1);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_I64(before.calls, 1);
    CHECK_EQ_I64(after.calls, 2);
    /* The same on a view: the old node is out of the graph. */
    mt_tensor *base = mul_number(x, 2);
    int64_t two = 2;
    mt_tensor *view = NULL;
    REQUIRE_OK(mt_view(base, &two, 1, &view));
    noted old_view = {0};
    noted new_view = {0};
    CHECK_OK(mt_tensor_add_hook(view, note, &old_view, forget, &hb));
    CHECK_OK(mt_tensor_retain_grad(view));
    REQUIRE_OK(mt_mul_scalar_(view, mt_real(5)));
    CHECK_OK(mt_tensor_add_hook(view, note, &new_view, forget, &ha));
    mt_tensor *loss_view = sum_all(view);
    CHECK_OK(mt_backward(loss_view, NULL, 0));
    CHECK_EQ_I64(old_view.calls, 0);
    CHECK_EQ_F64(new_view.first, 1);
    CHECK_VALUES(mt_tensor_grad(view), 1, 1);
    RELEASE(x, y, loss, base, view, loss_view);
    CHECK_EQ_I64(after.freed + old_view.freed + new_view.freed, 3);
    CHECK_NOTHING_LEFT();
}

TEST(hooks_behind_accumulation)
{
    mt_tensor *x = LEAF(1, 2);
    noted a = {0};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_accumulate_hook(x, note_leaf, &a, forget, &h));
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_I64(a.calls, 2);
    CHECK_EQ_F64(a.first, 2);
    mt_tensor *g = NULL;
    CHECK_OK(mt_grad(&loss, NULL, 1, &x, 1, MT_RETAIN_GRAPH, &g)); /* accumulates nothing */
    CHECK_EQ_I64(a.calls, 2);
    mt_tensor_remove_hook(x, h);
    CHECK_EQ_I64(a.freed, 1);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *constant = VECTOR(1);
    CHECK_FAILS(mt_tensor_add_accumulate_hook(y, note_leaf, &a, NULL, &h), MT_ERUNTIME,
                "post accumulate grad hooks cannot be registered on non-leaf tensors");
    CHECK_FAILS(mt_tensor_add_accumulate_hook(constant, note_leaf, &a, NULL, &h), MT_ERUNTIME,
                "cannot register a hook on a tensor that doesn't require gradient");
    CHECK_FAILS(mt_tensor_add_hook(constant, note, &a, NULL, &h), MT_ERUNTIME,
                "cannot register a hook on a tensor that doesn't require gradient");
    RELEASE(x, loss, g, y, constant);
    CHECK_NOTHING_LEFT();
}

TEST(grad_sees_the_hooks_of_its_inputs)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *z = mul_number(y, 3);
    noted on_y = {.factor = 100};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_hook(y, note, &on_y, NULL, &h));
    CHECK_OK(mt_tensor_retain_grad(y));
    mt_tensor *loss = sum_all(z);
    mt_tensor *g = NULL;
    CHECK_OK(mt_grad(&loss, NULL, 1, &y, 1, 0, &g));
    CHECK_VALUES(g, 300, 300);
    CHECK_VALUES(mt_tensor_grad(y), 300, 300);
    RELEASE(x, y, z, loss, g);
    CHECK_NOTHING_LEFT();
}

TEST(a_failing_hook_ends_the_backward_and_nothing_else)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *w = LEAF(3, 4);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = mul(y, w); /* w's gradient is there before y's hook runs */
    mt_tensor *loss = sum_all(z);
    noted bad = {.status = MT_EINDEX};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_hook(y, refuse, &bad, forget, &h));
    CHECK_FAILS(mt_backward(loss, NULL, MT_RETAIN_GRAPH), MT_EINDEX, "the hook's own words");
    CHECK(mt_grad_enabled());
    CHECK_VALUES(mt_tensor_grad(w), 1, 4);
    CHECK(mt_tensor_grad(x) == NULL);
    bad.status = 7; /* no status of ours */
    CHECK_FAILS(mt_backward(loss, NULL, MT_RETAIN_GRAPH), MT_ECALLBACK, "a hook returned 7");
    mt_tensor_remove_hook(y, h);
    CHECK_OK(mt_tensor_set_grad(w, NULL));
    CHECK_OK(mt_backward(loss, NULL, 0)); /* the graph is as it was */
    CHECK_VALUES(mt_tensor_grad(w), 1, 4);
    CHECK_VALUES(mt_tensor_grad(x), 6, 16);
    RELEASE(x, w, y, z, loss);
    CHECK_EQ_I64(bad.freed, 1);
    CHECK_NOTHING_LEFT();
}

TEST(a_failing_hook_behind_accumulation_leaves_the_gradient)
{
    mt_tensor *x = LEAF(1, 2);
    noted bad = {.status = MT_EVALUE};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_accumulate_hook(x, note_leaf, &bad, NULL, &h));
    mt_tensor *loss = sum_all(x);
    CHECK_EQ_I64(mt_backward(loss, NULL, 0), MT_EVALUE);
    CHECK_VALUES(mt_tensor_grad(x), 1, 1);
    RELEASE(x, loss);
    CHECK_NOTHING_LEFT();
}

static int other_shape(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    (void)context;
    int64_t sizes[] = {2, 1};
    return mt_reshape(grad, sizes, 2, replacement);
}

static int other_type(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    (void)context;
    return mt_to_with(grad, MT_DTYPE_F32, MT_DEVICE_NONE, false, false, replacement);
}

TEST(a_replacement_must_fit)
{
    mt_tensor *x = LEAF(1, 2);
    mt_hook_handle h = 0;
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_tensor_add_hook(x, other_shape, NULL, NULL, &h));
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME, "has changed the size of value");
    mt_tensor_remove_hook(x, h);
    CHECK_OK(mt_tensor_add_hook(x, other_type, NULL, NULL, &h));
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME,
                "has changed the type of value (was torch.DoubleTensor got torch.FloatTensor)");
    CHECK(mt_tensor_grad(x) == NULL);
    RELEASE(x, loss);
    CHECK_NOTHING_LEFT();
}

/* ---- backward inside backward ---------------------------------------------------------------- */

static int backward_inside(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    noted *n = context;
    n->calls++;
    (void)grad;
    (void)replacement;
    bool was = mt_set_grad_enabled(true);
    CHECK(!was);
    mt_tensor *y = NULL;
    mt_tensor *loss = NULL;
    int status = mt_mul(n->tensor, n->tensor, &y);
    if (status == MT_OK) {
        status = mt_sum(y, NULL, 0, false, &loss);
    }
    if (status == MT_OK) {
        status = mt_backward(loss, NULL, 0);
    }
    mt_set_grad_enabled(was);
    RELEASE(y, loss);
    return status;
}

TEST(a_hook_may_run_backward_over_the_same_leaf)
{
    mt_tensor *x = LEAF(1, 2);
    noted a = {.tensor = x};
    mt_hook_handle h = 0;
    mt_tensor *y = mul_number(x, 3);
    CHECK_OK(mt_tensor_add_hook(y, backward_inside, &a, NULL, &h));
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_I64(a.calls, 1);
    CHECK_VALUES(mt_tensor_grad(x), 5, 7); /* 3, and 2 x from inside */
    RELEASE(x, y, loss);
    CHECK_NOTHING_LEFT();
}

typedef struct nested {
    mt_tensor *loss;
    int depth;
} nested;

static int backward_again(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    nested *n = context;
    (void)grad;
    (void)replacement;
    if (n->depth == 0) {
        return MT_OK;
    }
    n->depth--;
    return mt_backward(n->loss, NULL, MT_RETAIN_GRAPH);
}

TEST(a_hook_may_run_backward_over_its_own_graph)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *loss = sum_all(y);
    nested n = {.loss = loss, .depth = 100};
    mt_hook_handle h = 0;
    CHECK_OK(mt_tensor_add_hook(y, backward_again, &n, NULL, &h));
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_EQ_I64(n.depth, 0);
    CHECK_VALUES(mt_tensor_grad(x), 202, 404);
    RELEASE(x, y, loss);
    CHECK_NOTHING_LEFT();
}
