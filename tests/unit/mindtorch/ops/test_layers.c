/* SPDX-License-Identifier: Apache-2.0
 *
 * What the op-test harness cannot see of layers: running statistics between forward and backward
 * (op_batch_norm.c BN1, BN2), dropout's draws, arguments that have no derivative, nodes' names.
 */
#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>

static mt_tensor *randn(const int64_t *sizes, size_t n_dims, bool grad)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_randn_with(sizes, n_dims, NULL, MT_DTYPE_F64, MT_DEVICE_NONE, &made));
    REQUIRE_OK(mt_tensor_set_requires_grad(made, grad));
    return made;
}

static mt_tensor *filled(int64_t size, double value)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_full_with(&size, 1, mt_real(value), MT_DTYPE_F64, MT_DEVICE_NONE, &made));
    return made;
}

enum {
    ROWS = 6,
    CHANNELS = 3
};

/* Gradient of sum(w out) by x, where out = batch_norm(x). `between` forwards in training follow
 * before backward runs. */
static void batch_norm_grad(bool training, int between, double grad[ROWS * CHANNELS])
{
    mt_manual_seed(7);
    const int64_t sizes[2] = {ROWS, CHANNELS};
    mt_tensor *x = randn(sizes, 2, true);
    mt_tensor *w = randn(sizes, 2, false);
    mt_tensor *mean = filled(CHANNELS, 0.5);
    mt_tensor *var = filled(CHANNELS, 2.0);
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_batch_norm(x, NULL, NULL, mean, var, training, 0.1, 1e-5, &out));
    uint32_t version = mt_tensor_version(mean);
    for (int i = 0; i < between; i++) {
        mt_tensor *other = NULL;
        REQUIRE_OK(mt_batch_norm(w, NULL, NULL, mean, var, true, 0.1, 1e-5, &other));
        mt_tensor_release(other);
    }
    CHECK_EQ_U64(mt_tensor_version(mean), version + (uint32_t)between);
    REQUIRE_OK(mt_backward(out, w, 0));
    REQUIRE_OK(mt_tensor_read(mt_tensor_grad(x), grad, ROWS * CHANNELS * sizeof(double)));
    mt_tensor_release(x);
    mt_tensor_release(w);
    mt_tensor_release(mean);
    mt_tensor_release(var);
    mt_tensor_release(out);
}

TEST(batch_norms_gradient_does_not_depend_on_later_forwards)
{
    for (int training = 0; training < 2; training++) {
        double alone[ROWS * CHANNELS];
        double later[ROWS * CHANNELS];
        batch_norm_grad(training != 0, 0, alone);
        batch_norm_grad(training != 0, 2, later);
        CHECK_EQ_MEM(alone, later, sizeof(alone));
    }
}

TEST(batch_norm_leaves_statistics_alone_in_evaluation)
{
    const int64_t sizes[2] = {ROWS, CHANNELS};
    mt_tensor *x = randn(sizes, 2, false);
    mt_tensor *mean = filled(CHANNELS, 0.5);
    mt_tensor *var = filled(CHANNELS, 2.0);
    mt_tensor *out = NULL;
    double values[CHANNELS];
    REQUIRE_OK(mt_batch_norm(x, NULL, NULL, mean, var, false, 0.1, 1e-5, &out));
    CHECK_EQ_U64(mt_tensor_version(mean), 0);
    REQUIRE_OK(mt_tensor_read(mean, values, sizeof(values)));
    CHECK_EQ_F64(values[1], 0.5);
    mt_tensor_release(x);
    mt_tensor_release(mean);
    mt_tensor_release(var);
    mt_tensor_release(out);
}

/* Element n takes draw n, in whatever way the elements lie in memory. */
TEST(dropouts_draws_do_not_depend_on_the_layout)
{
    enum {
        N = 12
    };
    const int64_t sizes[2] = {N, N};
    double kept[3][N * N];
    mt_tensor *x = NULL;
    mt_tensor *turned = NULL;
    REQUIRE_OK(mt_full_with(sizes, 2, mt_real(1.0), MT_DTYPE_F64, MT_DEVICE_NONE, &x));
    REQUIRE_OK(mt_t(x, &turned));
    for (int i = 0; i < 3; i++) {
        mt_tensor *out = NULL;
        if (i < 2) {
            mt_manual_seed(99); /* the third continues after the second */
        }
        REQUIRE_OK(mt_dropout(i == 1 ? turned : x, 0.5, true, &out));
        REQUIRE_OK(mt_tensor_read(out, kept[i], sizeof(kept[i])));
        mt_tensor_release(out);
    }
    CHECK_EQ_MEM(kept[0], kept[1], sizeof(kept[0]));
    int different = 0;
    for (int i = 0; i < N * N; i++) {
        different += kept[0][i] != kept[2][i];
    }
    CHECK(different > 0);
    CHECK_EQ_U64(mt_generator_offset(NULL), 2 * N * N);
    mt_tensor_release(x);
    mt_tensor_release(turned);
}

TEST(dropout_that_does_nothing_gives_its_input)
{
    const int64_t size = 4;
    mt_tensor *x = randn(&size, 1, true);
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_dropout(x, 0.5, false, &out));
    CHECK(out == x);
    mt_tensor_release(out);
    REQUIRE_OK(mt_dropout(x, 0.0, true, &out));
    CHECK(out == x);
    mt_tensor_release(out);
    mt_tensor_release(x);
}

TEST(losses_refuse_gradients_of_their_weights)
{
    const int64_t sizes[2] = {2, 3};
    mt_tensor *x = randn(sizes, 2, true);
    mt_tensor *weight = randn(sizes + 1, 1, true);
    mt_tensor *share = NULL;
    mt_tensor *target = NULL;
    mt_tensor *out = NULL;
    const int64_t classes[2] = {0, 2};
    REQUIRE_OK(mt_sigmoid(x, &share));
    REQUIRE_OK(mt_tensor_from_data(classes, MT_DTYPE_I64, sizes, 1, MT_CPU, &target));
    CHECK_EQ_I64(mt_nll_loss(x, target, weight, 1, -100, &out), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "The function 'nll_loss_forward' is not differentiable with respect to argument "
                 "'weight'. This input cannot have requires_grad True.");
    CHECK_EQ_I64(mt_binary_cross_entropy(share, share, weight, 1, &out), MT_ERUNTIME);
    CHECK_EQ_I64(mt_binary_cross_entropy_with_logits(x, share, NULL, weight, 1, &out), MT_ERUNTIME);
    bool was = mt_set_grad_enabled(false);
    CHECK_OK(mt_nll_loss(x, target, weight, 1, -100, &out));
    mt_set_grad_enabled(was);
    mt_tensor_release(out);
    mt_tensor_release(x);
    mt_tensor_release(weight);
    mt_tensor_release(share);
    mt_tensor_release(target);
}

static void check_node(mt_tensor **out, const char *name)
{
    mt_node *node = mt_tensor_grad_fn(*out);
    if (CHECK(node != NULL)) {
        CHECK_EQ_STR(mt_node_name(node), name);
    }
    mt_tensor_release(*out);
    *out = NULL;
}

TEST(layers_have_torchs_nodes)
{
    const int64_t sizes[2] = {3, 3};
    const int64_t width = 3;
    const int64_t classes[3] = {0, 2, 1};
    mt_tensor *x = randn(sizes, 2, true);
    mt_tensor *y = randn(sizes, 2, false);
    mt_tensor *share = NULL;
    mt_tensor *target = NULL;
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_tensor_from_data(classes, MT_DTYPE_I64, sizes, 1, MT_CPU, &target));
    REQUIRE_OK(mt_sigmoid(x, &share));
    REQUIRE_OK(mt_softmax(x, 1, MT_DTYPE_NONE, &out));
    check_node(&out, "SoftmaxBackward0");
    REQUIRE_OK(mt_log_softmax(x, 1, MT_DTYPE_NONE, &out));
    check_node(&out, "LogSoftmaxBackward0");
    REQUIRE_OK(mt_layer_norm(x, &width, 1, NULL, NULL, 1e-5, &out));
    check_node(&out, "NativeLayerNormBackward0");
    REQUIRE_OK(mt_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5, &out));
    check_node(&out, "NativeBatchNormBackward0");
    REQUIRE_OK(mt_embedding(x, target, -1, &out));
    check_node(&out, "EmbeddingBackward0");
    REQUIRE_OK(mt_dropout(x, 0.5, true, &out));
    check_node(&out, "NativeDropoutBackward0");
    REQUIRE_OK(mt_cross_entropy_loss(x, target, NULL, MT_REDUCTION_MEAN, -100, 0.0, &out));
    check_node(&out, "NllLossBackward0");
    REQUIRE_OK(mt_mse_loss(x, y, 1, &out));
    check_node(&out, "MseLossBackward0");
    REQUIRE_OK(mt_smooth_l1_loss(x, y, 1, 1.0, &out));
    check_node(&out, "SmoothL1LossBackward0");
    REQUIRE_OK(mt_binary_cross_entropy(share, share, NULL, 1, &out));
    check_node(&out, "BinaryCrossEntropyBackward0");
    REQUIRE_OK(mt_binary_cross_entropy_with_logits(x, share, NULL, NULL, 1, &out));
    check_node(&out, "BinaryCrossEntropyWithLogitsBackward0");
    mt_tensor_release(x);
    mt_tensor_release(y);
    mt_tensor_release(share);
    mt_tensor_release(target);
}
