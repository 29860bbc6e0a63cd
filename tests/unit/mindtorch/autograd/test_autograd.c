/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of small formulas, flags and errors: what a user of mt_backward() and mt_grad() meets.
 */
#include "autograd_support.h"

TEST(a_product_has_its_factors_as_gradients)
{
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *w = LEAF(4, 5, 6);
    mt_tensor *y = mul(x, w);
    mt_tensor *loss = sum_all(y);
    CHECK(mt_tensor_requires_grad(y));
    CHECK(!mt_tensor_is_leaf(y));
    CHECK(mt_tensor_is_leaf(x));
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 4, 5, 6);
    CHECK_VALUES(mt_tensor_grad(w), 1, 2, 3);
    CHECK(mt_tensor_grad(y) == NULL);
    CHECK(!mt_tensor_requires_grad(mt_tensor_grad(x)));
    RELEASE(x, w, y, loss);
    CHECK_NOTHING_LEFT();
}

TEST(gradients_add_up_in_the_same_tensor)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    mt_tensor *grad = mt_tensor_retain(mt_tensor_grad(x));
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_PTR(mt_tensor_grad(x), grad);
    CHECK_VALUES(grad, 2, 2);
    CHECK_OK(mt_tensor_set_grad(x, NULL));
    CHECK(mt_tensor_grad(x) == NULL);
    RELEASE(x, loss, grad);
    CHECK_NOTHING_LEFT();
}

TEST(a_tensor_used_twice_gets_both_gradients)
{
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = add(y, x);
    mt_tensor *u = mul(z, y);
    mt_tensor *loss = sum_all(u); /* (x^2 + x) x^2 */
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 7, 44, 135); /* 4 x^3 + 3 x^2 */
    RELEASE(x, y, z, u, loss);
    CHECK_NOTHING_LEFT();
}

TEST(a_broadcast_tensor_gets_the_sum)
{
    mt_tensor *x = LEAF(1, 2, 3);
    int64_t sizes[] = {2, 3};
    int64_t column[] = {2, 1};
    double numbers[] = {1, 2, 3, 4, 5, 6};
    double two[] = {10, 20};
    mt_tensor *m = NULL;
    mt_tensor *c = NULL;
    REQUIRE_OK(mt_tensor_from_data(numbers, MT_DTYPE_F64, sizes, 2, MT_CPU, &m));
    REQUIRE_OK(mt_tensor_from_data(two, MT_DTYPE_F64, column, 2, MT_CPU, &c));
    as_leaf(c);
    mt_tensor *s = scalar(2);
    as_leaf(s);
    mt_tensor *y = mul(x, m);
    mt_tensor *z = mul(y, c);
    mt_tensor *u = mul(z, s);
    mt_tensor *loss = sum_all(u);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 180, 240, 300);
    CHECK_VALUES(mt_tensor_grad(c), 28, 64);
    CHECK_VALUES(mt_tensor_grad(s), 780);
    CHECK_EQ_U64(mt_tensor_n_dims(mt_tensor_grad(c)), 2);
    CHECK_EQ_U64(mt_tensor_n_dims(mt_tensor_grad(s)), 0);
    RELEASE(x, m, c, s, y, z, u, loss);
    CHECK_NOTHING_LEFT();
}

TEST(a_mixed_type_gradient_has_the_inputs_type)
{
    mt_tensor *x = LEAF(1, 2);
    float half[] = {0.5F, 0.25F};
    int64_t two = 2;
    mt_tensor *f = NULL;
    REQUIRE_OK(mt_tensor_from_data(half, MT_DTYPE_F32, &two, 1, MT_CPU, &f));
    as_leaf(f);
    mt_tensor *y = mul(x, f);
    mt_tensor *loss = sum_all(y);
    CHECK_EQ_I64(mt_tensor_dtype(y), MT_DTYPE_F64);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 0.5, 0.25);
    CHECK_EQ_I64(mt_tensor_dtype(mt_tensor_grad(f)), MT_DTYPE_F32);
    RELEASE(x, f, y, loss);
    CHECK_NOTHING_LEFT();
}

TEST(a_given_gradient_is_the_start)
{
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *y = mul(x, x);
    mt_tensor *g = VECTOR(1, 10, 100);
    CHECK_OK(mt_backward(y, g, MT_RETAIN_GRAPH));
    CHECK_VALUES(mt_tensor_grad(x), 2, 40, 600);
    mt_tensor *short_one = VECTOR(1, 2);
    CHECK_FAILS(
        mt_backward(y, short_one, 0), MT_ERUNTIME,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has "
        "a shape of torch.Size([3]).");
    CHECK_FAILS(mt_backward(y, NULL, 0), MT_ERUNTIME,
                "grad can be implicitly created only for scalar outputs");
    /* The leaf itself: its gradient is what was given. */
    CHECK_OK(mt_tensor_set_grad(x, NULL));
    CHECK_OK(mt_backward(x, g, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1, 10, 100);
    CHECK(mt_tensor_grad(x) != g);
    RELEASE(x, y, g, short_one);
    CHECK_NOTHING_LEFT();
}

TEST(several_roots_are_one_backward)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = mul_number(y, 3);
    mt_tensor *g = VECTOR(1, 1);
    mt_tensor *roots[] = {z, y, z};
    mt_tensor *grads[] = {g, g, g};
    CHECK_OK(mt_backward_many(roots, grads, 3, 0)); /* 7 x^2 */
    CHECK_VALUES(mt_tensor_grad(x), 14, 28);
    RELEASE(x, y, z, g);
    CHECK_NOTHING_LEFT();
}

TEST(without_requires_grad_there_is_no_graph)
{
    mt_tensor *x = VECTOR(1, 2);
    mt_tensor *y = mul(x, x);
    CHECK(!mt_tensor_requires_grad(y));
    CHECK(mt_tensor_is_leaf(y));
    CHECK(mt_tensor_grad_fn(y) == NULL);
    CHECK_FAILS(mt_backward(y, NULL, 0), MT_ERUNTIME,
                "element 0 of tensors does not require grad and does not have a grad_fn");
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(no_grad_mode_records_nothing)
{
    mt_tensor *x = LEAF(1, 2);
    CHECK(mt_grad_enabled());
    CHECK(mt_set_grad_enabled(false));
    mt_tensor *y = mul(x, x);
    CHECK(!mt_tensor_requires_grad(y));
    CHECK_OK(mt_add_(x, y)); /* leaves may be written here: an optimizer does it */
    CHECK(!mt_set_grad_enabled(true));
    CHECK_VALUES(x, 2, 6);
    mt_tensor *z = mul(x, y);
    CHECK(mt_tensor_requires_grad(z));
    RELEASE(x, y, z);
    CHECK_NOTHING_LEFT();
}

TEST(integers_have_no_gradient)
{
    mt_tensor *x = LEAF(3, 1, 2);
    mt_tensor *values = NULL;
    mt_tensor *indices = NULL;
    REQUIRE_OK(mt_sort(x, 0, false, &values, &indices));
    CHECK(mt_tensor_requires_grad(values));
    CHECK(!mt_tensor_requires_grad(indices));
    CHECK_FAILS(mt_tensor_set_requires_grad(indices, true), MT_ERUNTIME,
                "only Tensors of floating point dtype can require gradients");
    CHECK_FAILS(mt_tensor_set_requires_grad(values, false), MT_ERUNTIME,
                "you can only change requires_grad flags of leaf variables");
    CHECK_OK(mt_tensor_set_requires_grad(values, true));
    RELEASE(x, values, indices);
    CHECK_NOTHING_LEFT();
}

TEST(a_second_backward_needs_retain_graph)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, MT_RETAIN_GRAPH));
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 4, 8);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME,
                "Trying to backward through the graph a second time");
    CHECK_VALUES(mt_tensor_grad(x), 4, 8);
    /* Nodes that saved nothing do not mind. */
    mt_tensor *z = add(x, x);
    mt_tensor *sum = sum_all(z);
    CHECK_OK(mt_backward(sum, NULL, 0));
    CHECK_OK(mt_backward(sum, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 8, 12);
    RELEASE(x, y, loss, z, sum);
    CHECK_NOTHING_LEFT();
}

TEST(saved_tensors_go_with_the_backward)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = mul(y, y);
    mt_tensor *loss = sum_all(z);
    mt_tensor_release(y);
    mt_tensor_release(z);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_EQ_U64(mt_tensors_alive(), 3); /* x, its gradient, loss */
    CHECK_VALUES(mt_tensor_grad(x), 4, 32);
    RELEASE(x, loss);
    CHECK_NOTHING_LEFT();
}

TEST(grad_gives_and_touches_no_leaf)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *w = LEAF(3, 4);
    mt_tensor *y = mul(x, w);
    mt_tensor *z = mul(y, y);
    mt_tensor *loss = sum_all(z);
    mt_tensor *inputs[] = {x, y, loss};
    mt_tensor *grads[3] = {NULL};
    CHECK_OK(mt_grad(&loss, NULL, 1, inputs, 3, MT_RETAIN_GRAPH, grads));
    CHECK_VALUES(grads[0], 18, 64); /* 2 y w */
    CHECK_VALUES(grads[1], 6, 16);
    CHECK_VALUES(grads[2], 1);
    CHECK(mt_tensor_grad(x) == NULL);
    CHECK(mt_tensor_grad(w) == NULL);
    mt_tensor *self = NULL;
    CHECK_OK(mt_grad(&y, &z, 1, &y, 1, 0, &self)); /* of itself: what was given */
    CHECK_VALUES(self, 9, 64);
    RELEASE(x, w, y, z, loss, grads[0], grads[1], grads[2], self);
    CHECK_NOTHING_LEFT();
}

TEST(grad_runs_only_what_lies_between)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *w = LEAF(3, 4);
    mt_tensor *y = mul(x, x);
    mt_tensor *u = mul(w, w);
    mt_tensor *z = add(y, u);
    mt_tensor *loss = sum_all(z);
    mt_tensor *g = NULL;
    CHECK_OK(mt_grad(&loss, NULL, 1, &y, 1, 0, &g));
    CHECK_VALUES(g, 1, 1);
    /* The products were not run, so they still have what they saved. */
    mt_tensor *again = sum_all(y);
    CHECK_OK(mt_backward(again, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 2, 4);
    RELEASE(x, w, y, u, z, loss, g, again);
    CHECK_NOTHING_LEFT();
}

TEST(grad_of_what_was_not_used)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *other = LEAF(1, 2);
    mt_tensor *constant = VECTOR(1, 2);
    mt_tensor *loss = sum_all(x);
    mt_tensor *inputs[] = {x, other};
    mt_tensor *grads[2] = {NULL};
    CHECK_FAILS(mt_grad(&loss, NULL, 1, inputs, 2, MT_RETAIN_GRAPH, grads), MT_ERUNTIME,
                "The differentiated Tensor at index 1 appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior.");
    CHECK(grads[0] == NULL);
    CHECK_OK(mt_grad(&loss, NULL, 1, inputs, 2, MT_ALLOW_UNUSED, grads));
    CHECK_VALUES(grads[0], 1, 1);
    CHECK(grads[1] == NULL);
    inputs[1] = constant;
    CHECK_FAILS(mt_grad(&loss, NULL, 1, &constant, 1, 0, grads + 1), MT_ERUNTIME,
                "One of the differentiated Tensors does not require grad");
    CHECK_FAILS(mt_grad(&loss, NULL, 1, inputs, 0, 0, grads), MT_EVALUE, "non-empty inputs");
    RELEASE(x, other, constant, loss, grads[0]);
    CHECK_NOTHING_LEFT();
}

TEST(a_derivative_of_a_derivative)
{
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = mul(y, x); /* x^3 */
    mt_tensor *loss = sum_all(z);
    mt_tensor *first = NULL;
    mt_tensor *second = NULL;
    mt_tensor *third = NULL;
    CHECK_OK(mt_grad(&loss, NULL, 1, &x, 1, MT_CREATE_GRAPH, &first));
    CHECK_VALUES(first, 3, 12, 27);
    CHECK(mt_tensor_requires_grad(first));
    mt_tensor *s1 = sum_all(first);
    CHECK_OK(mt_grad(&s1, NULL, 1, &x, 1, MT_CREATE_GRAPH, &second));
    CHECK_VALUES(second, 6, 12, 18);
    mt_tensor *s2 = sum_all(second);
    CHECK_OK(mt_grad(&s2, NULL, 1, &x, 1, 0, &third));
    CHECK_VALUES(third, 6, 6, 6);
    CHECK(!mt_tensor_requires_grad(third));
    RELEASE(x, y, z, loss, first, second, third, s1, s2);
    CHECK_NOTHING_LEFT();
}

TEST(saved_results_have_their_place_in_the_second_graph)
{
    mt_tensor *x = LEAF(0.5);
    mt_tensor *y = NULL;
    REQUIRE_OK(mt_exp(x, &y)); /* its derivative looks at the result */
    mt_tensor *z = mul(y, y);
    mt_tensor *first = NULL;
    mt_tensor *second = NULL;
    CHECK_OK(mt_grad(&z, NULL, 1, &x, 1, MT_CREATE_GRAPH, &first));
    CHECK_OK(mt_grad(&first, NULL, 1, &x, 1, 0, &second));
    CHECK_VALUES(first, 2 * 2.718281828459045);
    CHECK_VALUES(second, 4 * 2.718281828459045);
    RELEASE(x, y, z, first, second);
    CHECK_NOTHING_LEFT();
}

TEST(backward_with_create_graph_adds_out_of_place)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, MT_CREATE_GRAPH));
    mt_tensor *first = mt_tensor_retain(mt_tensor_grad(x));
    CHECK(mt_tensor_requires_grad(first));
    CHECK_OK(mt_backward(loss, NULL, MT_CREATE_GRAPH));
    CHECK_VALUES(first, 2, 4);
    CHECK_VALUES(mt_tensor_grad(x), 4, 8);
    mt_tensor *s = sum_all(first);
    mt_tensor *second = NULL;
    CHECK_OK(mt_grad(&s, NULL, 1, &x, 1, 0, &second));
    CHECK_VALUES(second, 2, 2);
    CHECK_OK(mt_tensor_set_grad(x, NULL)); /* x holds its gradient, whose graph holds x */
    RELEASE(x, y, loss, first, s, second);
    CHECK_NOTHING_LEFT();
}

TEST(changed_saved_tensors_are_refused)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *z = mul(y, y);
    mt_tensor *loss = sum_all(z);
    REQUIRE_OK(mt_add_scalar_(y, mt_real(1)));
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME,
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: [torch.DoubleTensor [2]], which is output 0 of Mul, is at "
                "version 1; expected version 0 instead");
    CHECK(mt_tensor_grad(x) == NULL);
    mt_tensor *e = NULL;
    REQUIRE_OK(mt_exp(x, &e));
    REQUIRE_OK(mt_add_scalar_(e, mt_real(1)));
    mt_tensor *loss_e = sum_all(e);
    CHECK_FAILS(mt_backward(loss_e, NULL, 0), MT_ERUNTIME, "which is output 0 of Exp");
    /* A leaf, written where that is allowed. */
    mt_tensor *w = LEAF(3, 4);
    mt_tensor *p = mul(x, w);
    mt_tensor *loss_p = sum_all(p);
    mt_set_grad_enabled(false);
    REQUIRE_OK(mt_add_scalar_(w, mt_real(1)));
    mt_set_grad_enabled(true);
    CHECK_FAILS(mt_backward(loss_p, NULL, 0), MT_ERUNTIME,
                "inplace operation: [torch.DoubleTensor [2]] is at version 1; expected version 0");
    RELEASE(x, y, z, loss, e, loss_e, w, p, loss_p);
    CHECK_NOTHING_LEFT();
}

TEST(what_the_formula_does_not_look_at_may_change)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *z = mul_number(y, 3); /* a number: y is not needed */
    mt_tensor *k = VECTOR(5, 6);
    mt_tensor *u = mul(z, k); /* k wants no gradient: z is not needed */
    REQUIRE_OK(mt_add_scalar_(y, mt_real(1)));
    REQUIRE_OK(mt_add_scalar_(z, mt_real(1)));
    mt_tensor *loss = sum_all(u);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 30, 36);
    RELEASE(x, y, z, k, u, loss);
    CHECK_NOTHING_LEFT();
}

TEST(writing_through_an_alias_is_noticed)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul_number(x, 2);
    mt_tensor *z = mul(y, y);
    mt_tensor *alias = detach(y);
    CHECK(!mt_tensor_requires_grad(alias));
    CHECK(!mt_tensor_is_view(alias));
    REQUIRE_OK(mt_add_scalar_(alias, mt_real(1)));
    mt_tensor *loss = sum_all(z);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_ERUNTIME, "modified by an inplace operation");
    RELEASE(x, y, z, alias, loss);
    CHECK_NOTHING_LEFT();
}

TEST(a_saved_tensor_that_joins_the_graph_is_no_cycle)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *state = VECTOR(3, 4);
    mt_tensor *z = mul(x, state);  /* keeps state */
    REQUIRE_OK(mt_add_(state, z)); /* state's graph leads to what keeps it */
    CHECK(mt_tensor_requires_grad(state));
    RELEASE(x, state, z);
    CHECK_NOTHING_LEFT();
}

TEST(detach_in_place_cuts_the_graph)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    CHECK_OK(mt_tensor_detach_inplace(y));
    CHECK(!mt_tensor_requires_grad(y));
    CHECK(mt_tensor_is_leaf(y));
    int64_t two = 2;
    mt_tensor *v = NULL;
    REQUIRE_OK(mt_view(y, &two, 1, &v));
    CHECK(mt_tensor_is_view(v));
    CHECK_FAILS(mt_tensor_detach_inplace(v), MT_ERUNTIME, "Can't detach views in-place");
    RELEASE(x, y, v);
    CHECK_NOTHING_LEFT();
}

TEST(set_grad_wants_what_fits)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *three = VECTOR(1, 2, 3);
    mt_tensor *two = VECTOR(7, 8);
    mt_tensor *f = NULL;
    REQUIRE_OK(mt_to_with(two, MT_DTYPE_F32, MT_DEVICE_NONE, false, false, &f));
    CHECK_FAILS(mt_tensor_set_grad(x, three), MT_ERUNTIME,
                "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'");
    CHECK_FAILS(mt_tensor_set_grad(x, f), MT_ERUNTIME,
                "attempting to assign a gradient with dtype");
    CHECK_FAILS(mt_tensor_set_grad(x, x), MT_ERUNTIME, "can't assign Variable as its own grad");
    CHECK_OK(mt_tensor_set_grad(x, two));
    CHECK_EQ_PTR(mt_tensor_grad(x), two);
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(two, 8, 9); /* added where it was set */
    RELEASE(x, three, two, f, loss);
    CHECK_NOTHING_LEFT();
}

TEST(nodes_can_be_looked_at)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *y = mul(x, x);
    mt_tensor *z = add(y, x);
    mt_node *node = mt_node_retain(mt_tensor_grad_fn(z));
    mt_tensor_release(z);
    CHECK_EQ_STR(mt_node_name(node), "AddBackward0");
    CHECK_EQ_U64(mt_node_n_next(node), 2);
    CHECK_EQ_STR(mt_node_name(mt_node_next(node, 0)), "MulBackward0");
    CHECK_EQ_STR(mt_node_name(mt_node_next(node, 1)), "torch::autograd::AccumulateGrad");
    CHECK_EQ_PTR(mt_node_next(mt_node_next(node, 0), 0), mt_node_next(node, 1));
    CHECK(mt_node_next(node, 2) == NULL);
    CHECK(mt_node_sequence(node) > mt_node_sequence(mt_node_next(node, 0)));
    mt_node_release(node);
    mt_node_release(NULL);
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(the_first_gradient_is_taken_over_only_if_nobody_has_it)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *w = LEAF(3, 4);
    mt_tensor *y = add(x, w); /* both get the very same gradient */
    mt_tensor *g = VECTOR(1, 1);
    CHECK_OK(mt_backward(y, g, 0));
    CHECK(mt_tensor_storage_address(mt_tensor_grad(x)) !=
          mt_tensor_storage_address(mt_tensor_grad(w)));
    CHECK(mt_tensor_storage_address(mt_tensor_grad(x)) != mt_tensor_storage_address(g));
    CHECK(mt_tensor_storage_address(mt_tensor_grad(w)) != mt_tensor_storage_address(g));
    REQUIRE_OK(mt_zero_(mt_tensor_grad(x)));
    CHECK_VALUES(mt_tensor_grad(w), 1, 1);
    CHECK_VALUES(g, 1, 1);
    RELEASE(x, w, y, g);
    CHECK_NOTHING_LEFT();
}

TEST(edges_tell_where_they_lead)
{
    mt_tensor *x = LEAF(1, 2, 3, 4);
    mt_tensor *parts[2] = {NULL, NULL};
    mt_value halves;
    mt_op split;
    REQUIRE(mt_op_find("split", &split));
    const mt_value args[] = {{.kind = MT_KIND_TENSOR, .of.tensor = x}, mt_int(2), mt_int(0)};
    REQUIRE_OK(mt_call(split, args, 3, &halves, 1));
    parts[0] = halves.of.tensors[0];
    parts[1] = halves.of.tensors[1];
    mt_tensor *y = mul(parts[1], parts[0]);
    mt_node *node = mt_tensor_grad_fn(y);
    CHECK_EQ_U64(mt_node_next_output(node, 0), 1);
    CHECK_EQ_U64(mt_node_next_output(node, 1), 0);
    CHECK_EQ_U64(mt_node_next_output(node, 2), 0); /* there is none */
    mt_node *leaf = mt_node_next(mt_node_next(node, 0), 0);
    CHECK_EQ_PTR(mt_node_variable(leaf), x);
    CHECK(mt_node_variable(node) == NULL);
    mt_value_clear(&halves);
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(data_is_exchanged_under_a_leaf)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *loss = sum_all(x);
    CHECK_OK(mt_backward(loss, NULL, 0));
    mt_tensor *other = VECTOR(5, 6, 7);
    CHECK_OK(mt_tensor_set_data(x, other));
    CHECK_VALUES(x, 5, 6, 7);
    CHECK_VALUES(mt_tensor_grad(x), 1, 1); /* as torch: it is the user's to know */
    CHECK(mt_tensor_requires_grad(x) && mt_tensor_is_leaf(x));
    CHECK_EQ_U64(mt_tensor_storage_address(x), mt_tensor_storage_address(other));
    REQUIRE_OK(mt_zero_(other));
    CHECK_VALUES(x, 0, 0, 0);
    CHECK_OK(mt_tensor_set_grad(x, NULL));
    mt_tensor *again = sum_all(x);
    CHECK_OK(mt_backward(again, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1, 1, 1);
    CHECK_OK(mt_tensor_set_data(x, x));
    int64_t two = 2;
    mt_tensor *whole = NULL;
    REQUIRE_OK(mt_tensor_from_data((const int64_t[]){1, 2}, MT_DTYPE_I64, &two, 1, MT_CPU, &whole));
    CHECK_EQ_I64(mt_tensor_set_data(x, whole), MT_ERUNTIME);
    CHECK_VALUES(x, 0, 0, 0);
    RELEASE(x, loss, other, again, whole);
    CHECK_NOTHING_LEFT();
}

TEST(a_view_that_takes_other_data_is_no_view)
{
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *view = NULL;
    REQUIRE_OK(mt_alias(x, &view));
    CHECK(mt_tensor_is_view(view));
    mt_tensor *other = VECTOR(4);
    CHECK_OK(mt_tensor_set_data(view, other));
    CHECK(!mt_tensor_is_view(view));
    CHECK(mt_tensor_requires_grad(view));
    CHECK_VALUES(view, 4);
    CHECK_VALUES(x, 1, 2, 3);
    RELEASE(x, view, other);
    CHECK_NOTHING_LEFT();
}

TEST(an_alias_is_a_view_whose_gradient_passes)
{
    mt_tensor *x = LEAF(1, 2);
    mt_tensor *view = NULL;
    REQUIRE_OK(mt_alias(x, &view));
    CHECK_EQ_STR(mt_node_name(mt_tensor_grad_fn(view)), "AliasBackward0");
    mt_tensor *y = mul(view, view);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 2, 4);
    RELEASE(x, view, y, loss);
    CHECK_NOTHING_LEFT();
}
