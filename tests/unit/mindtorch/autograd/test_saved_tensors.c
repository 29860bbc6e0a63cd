/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes save: packed by the user, read by name; hooks of nodes; inputs that functions change;
 * derivatives that give NaN.
 */
#include "autograd_support.h"

#include <math.h>
#include <stdlib.h>

typedef struct pack {
    mt_packed base;
    mt_tensor *kept;
    double factor;
} pack;

static int made, freed, fails; /* a test's program is its own process */

static int unpack(mt_packed *packed, mt_tensor **out)
{
    pack *p = (pack *)packed;
    return fails == 2 ? mt_fail(MT_EVALUE, "cannot unpack")
                      : mt_mul_scalar(p->kept, mt_real(p->factor), out);
}

static void free_pack(mt_packed *packed)
{
    freed++;
    mt_tensor_release(((pack *)packed)->kept);
    free(packed);
}

static int pack_copy(void *context, mt_tensor *tensor, mt_packed **out)
{
    if (fails == 1) {
        return mt_fail(MT_EVALUE, "cannot pack");
    }
    CHECK(!mt_grad_enabled());
    pack *p = calloc(1, sizeof *p);
    REQUIRE(p != NULL);
    p->base = (mt_packed){.unpack = unpack, .free = free_pack};
    p->factor = *(const double *)context;
    REQUIRE_OK(mt_clone(tensor, &p->kept));
    made++;
    *out = &p->base;
    return MT_OK;
}

TEST(saved_tensors_are_packed_and_unpacked)
{
    double factor = 10;
    made = freed = fails = 0;
    mt_tensor *x = LEAF(2, 3);
    mt_set_pack(pack_copy, &factor);
    mt_tensor *y = mul(x, x);
    mt_set_pack(NULL, NULL);
    CHECK_EQ_I64(made, 2);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, MT_CREATE_GRAPH));
    CHECK_VALUES(mt_tensor_grad(x), 40, 60); /* ten times what it was */
    CHECK_EQ_I64(freed, 0);
    mt_tensor *again = sum_all(mt_tensor_grad(x));
    mt_tensor *second = NULL;
    CHECK_OK(mt_grad(&again, NULL, 1, &x, 1, 0, &second)); /* goes on to the leaf */
    CHECK_VALUES(second, 2, 2);
    CHECK_OK(mt_tensor_set_grad(x, NULL));
    RELEASE(x, y, loss, again, second);
    CHECK_EQ_I64(freed, 2);
    CHECK_NOTHING_LEFT();
}

TEST(a_pack_that_fails_is_the_ops_failure)
{
    double factor = 1;
    made = freed = 0;
    fails = 1;
    mt_tensor *x = LEAF(2);
    mt_tensor *y = NULL;
    mt_set_pack(pack_copy, &factor);
    CHECK_FAILS(mt_mul(x, x, &y), MT_EVALUE, "cannot pack");
    CHECK(y == NULL);
    fails = 2;
    y = mul(x, x);
    mt_set_pack(NULL, NULL);
    mt_tensor *loss = sum_all(y);
    CHECK_FAILS(mt_backward(loss, NULL, 0), MT_EVALUE, "cannot unpack");
    RELEASE(x, y, loss);
    CHECK_EQ_I64(freed, made);
    CHECK_NOTHING_LEFT();
}

TEST(saved_values_have_names)
{
    mt_tensor *x = LEAF(2, 3);
    mt_tensor *y = mul(x, x);
    char name[MT_SAVED_NAME];
    REQUIRE(mt_node_saved_name(mt_tensor_grad_fn(y), 0, name));
    CHECK_EQ_STR(name, "self");
    CHECK(!mt_node_saved_name(mt_tensor_grad_fn(y), 99, name));
    mt_value value;
    CHECK_OK(mt_node_get_saved(mt_tensor_grad_fn(y), "other", &value));
    CHECK(value.kind == MT_KIND_TENSOR && value.of.tensor == x);
    mt_value_clear(&value);
    CHECK_EQ_I64(mt_node_get_saved(mt_tensor_grad_fn(y), "nothing", &value), MT_EINDEX);
    mt_tensor *loss = sum_all(y);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_FAILS(mt_node_get_saved(mt_tensor_grad_fn(y), "self", &value), MT_ERUNTIME,
                "already been freed");
    RELEASE(x, y, loss);
    CHECK_NOTHING_LEFT();
}

static int times_ten(void *context, mt_tensor **grads, size_t n)
{
    CHECK_EQ_U64(n, 1);
    ++*(int *)context;
    mt_tensor *more = NULL;
    REQUIRE_OK(mt_mul_scalar(grads[0], mt_real(10), &more));
    mt_tensor_release(grads[0]);
    grads[0] = more;
    return MT_OK;
}

static int drop_second(void *context, mt_tensor **grads_in, size_t n_in, mt_tensor *const *grads,
                       size_t n)
{
    ++*(int *)context;
    CHECK_EQ_U64(n_in, 2);
    CHECK_EQ_U64(n, 1);
    CHECK_VALUES(grads[0], 10);
    mt_tensor_release(grads_in[1]);
    grads_in[1] = NULL;
    return MT_OK;
}

TEST(hooks_of_a_node_change_what_goes_in_and_out)
{
    int calls = 0;
    mt_hook_handle before = 0;
    mt_hook_handle after = 0;
    mt_tensor *a = LEAF(2);
    mt_tensor *b = LEAF(3);
    mt_tensor *y = mul(a, b);
    mt_node *node = mt_tensor_grad_fn(y);
    REQUIRE_OK(mt_node_add_prehook(node, times_ten, &calls, NULL, &before));
    REQUIRE_OK(mt_node_add_hook(node, drop_second, &calls, NULL, &after));
    CHECK_OK(mt_backward(y, NULL, MT_RETAIN_GRAPH));
    CHECK_VALUES(mt_tensor_grad(a), 30);
    CHECK(mt_tensor_grad(b) == NULL);
    mt_node_remove_hook(node, before);
    mt_node_remove_hook(node, after);
    CHECK_OK(mt_backward(y, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(b), 2);
    CHECK_EQ_I64(calls, 2);
    CHECK(mt_node_note(node) == NULL);
    REQUIRE_OK(mt_node_set_note(node, &calls, NULL));
    CHECK(mt_node_note(node) == &calls);
    RELEASE(a, b, y);
    CHECK_NOTHING_LEFT();
}

static int anomalies;

static void note_anomaly(mt_node *node)
{
    CHECK(mt_current_node() == NULL || mt_current_node() == node);
    anomalies++;
}

TEST(a_derivative_that_gives_nan_fails)
{
    mt_tensor *x = LEAF(0);
    anomalies = 0;
    mt_set_anomaly(true, true, note_anomaly, note_anomaly);
    mt_tensor *root = NULL;
    REQUIRE_OK(mt_sqrt(x, &root));
    mt_tensor *y = mul_number(root, 0);
    CHECK_EQ_I64(anomalies, 2);
    CHECK_FAILS(mt_backward(y, NULL, MT_RETAIN_GRAPH), MT_ERUNTIME,
                "Function 'SqrtBackward0' returned nan values in its 0th output.");
    CHECK_EQ_I64(anomalies, 3);
    mt_set_anomaly(false, true, NULL, NULL);
    CHECK(!mt_anomaly_enabled());
    CHECK_OK(mt_backward(y, NULL, 0));
    double number = 0;
    REQUIRE_OK(mt_tensor_read(mt_tensor_grad(x), &number, sizeof number));
    CHECK(isnan(number));
    RELEASE(x, root, y);
    CHECK_NOTHING_LEFT();
}
