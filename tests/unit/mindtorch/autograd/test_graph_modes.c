/* SPDX-License-Identifier: Apache-2.0
 *
 * Modes of a thread: inference mode and the tensors made in it; calls on a thread that inherits
 * them.
 */
#include "autograd_support.h"

TEST(tensors_of_inference_mode_stay_out_of_graphs)
{
    mt_tensor *w = LEAF(1, 2);
    CHECK(!mt_set_inference_mode(true));
    CHECK(mt_inference_mode());
    CHECK(!mt_grad_enabled());
    mt_tensor *inside = VECTOR(3, 4);
    mt_tensor *silent = mul(w, inside);
    CHECK(!mt_tensor_requires_grad(silent));
    CHECK_OK(mt_add_scalar_(inside, mt_real(1)));
    CHECK(mt_set_inference_mode(false));
    CHECK(mt_grad_enabled());
    CHECK(mt_tensor_is_inference(inside));
    CHECK(mt_tensor_is_inference(silent));
    CHECK(!mt_tensor_is_inference(w));

    CHECK_FAILS(mt_add_scalar_(inside, mt_real(1)), MT_ERUNTIME,
                "Inplace update to inference tensor outside InferenceMode");
    mt_tensor *refused = NULL;
    CHECK_FAILS(mt_mul(w, inside, &refused), MT_ERUNTIME,
                "Inference tensors cannot be saved for backward");
    CHECK(refused == NULL);
    CHECK_FAILS(mt_tensor_set_requires_grad(inside, true), MT_ERUNTIME,
                "Setting requires_grad=True on inference tensor");
    mt_tensor *copy = NULL;
    REQUIRE_OK(mt_clone(inside, &copy));
    CHECK(!mt_tensor_is_inference(copy));
    mt_tensor *y = mul(w, copy);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(w), 4, 5);
    RELEASE(w, inside, silent, copy, y, loss);
    CHECK_NOTHING_LEFT();
}

TEST(grad_mode_inside_inference_mode_is_remembered_and_records_nothing)
{
    mt_tensor *w = LEAF(1);
    (void)mt_set_inference_mode(true);
    CHECK(!mt_set_grad_enabled(true));
    CHECK(mt_grad_enabled());
    mt_tensor *y = mul(w, w);
    CHECK(!mt_tensor_requires_grad(y));
    (void)mt_set_inference_mode(false);
    RELEASE(w, y);
    CHECK_NOTHING_LEFT();
}

TEST(a_version_is_raised_by_hand_and_once_by_each_op)
{
    mt_tensor *x = VECTOR(-1, 2);
    CHECK_OK(mt_relu_(x));
    CHECK_EQ_U64(mt_tensor_version(x), 1);
    CHECK_OK(mt_hardswish_(x)); /* made of other ops */
    CHECK_EQ_U64(mt_tensor_version(x), 2);
    mt_tensor_raise_version(x);
    CHECK_EQ_U64(mt_tensor_version(x), 3);
    RELEASE(x);
    CHECK_NOTHING_LEFT();
}

typedef struct seen {
    bool grad;
    bool inference;
    int status;
} seen;

static int look(void *argument)
{
    seen *s = argument;
    s->grad = mt_grad_enabled();
    s->inference = mt_inference_mode();
    (void)mt_set_grad_enabled(true);
    return s->status == MT_OK ? MT_OK : mt_fail(s->status, "said elsewhere");
}

TEST(a_call_on_a_thread_has_the_modes_of_the_caller)
{
    seen s = {.grad = true};
    (void)mt_set_grad_enabled(false);
    CHECK_OK(mt_call_on_thread(look, &s));
    CHECK(!s.grad);
    CHECK(!mt_grad_enabled()); /* its changes are its own */
    (void)mt_set_inference_mode(true);
    CHECK_OK(mt_call_on_thread(look, &s));
    CHECK(s.inference);
    (void)mt_set_inference_mode(false);
    s.status = MT_EVALUE;
    CHECK_FAILS(mt_call_on_thread(look, &s), MT_EVALUE, "said elsewhere");
}

static int ignore(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    (void)context;
    (void)grad;
    (void)replacement;
    return MT_OK;
}

static void forget(void *context)
{
    (void)context;
}

static void count(void *argument, void *context, void (*free_context)(void *))
{
    CHECK(free_context == forget);
    *(uint32_t *)argument += *(uint32_t *)context;
}

TEST(hooks_of_a_node_are_shown_when_no_tensor_holds_them)
{
    mt_tensor *x = LEAF(1);
    mt_tensor *y = mul(x, x);
    uint32_t number = 7;
    mt_hook_handle handle = 0;
    REQUIRE_OK(mt_tensor_add_hook(y, ignore, &number, forget, &handle));
    mt_node *node = mt_node_retain(mt_tensor_grad_fn(y));
    uint32_t sum = 0;
    mt_node_visit_hooks(node, count, &sum);
    CHECK_EQ_U64(sum, 0);
    mt_tensor_release(y);
    mt_node_visit_hooks(node, count, &sum);
    CHECK_EQ_U64(sum, 7);
    mt_node_release(node);
    RELEASE(x);
    CHECK_NOTHING_LEFT();
}
