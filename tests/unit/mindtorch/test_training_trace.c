/* SPDX-License-Identifier: Apache-2.0
 *
 * A profiled training step: what torch's users look for is there, under torch's names, in its
 * place.
 */
#include "harness/mt_test.h"
#include "support/small_models.h"
#include "support/traces/model_events.h"

#include <mindtorch/mindtorch.h>
#include <mtprof/mtprof.h>

static mtprof_model *profile_step(const sm_kind *kind, mt_optimizer_kind optimizer)
{
    mtprof_config config = {.struct_size = sizeof(config), .wants = MTPROF_WANT_DEFAULT};
    mtprof_session *session = NULL;
    mtprof_model *model = NULL;
    sm_model net;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&net, kind, optimizer, 0.01));
    REQUIRE_OK(mtprof_session_start(&config, &session));
    REQUIRE_OK(sm_step(&net, &loss));
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    REQUIRE_OK(mtprof_session_close(session));
    sm_close(&net);
    return model;
}

/* How many events are called `name` and have one called `outer` around them (NULL: anywhere). */
static uint32_t count_inside(mtprof_model *model, const char *name, const char *outer)
{
    uint64_t count = 0;
    const uint32_t *names = model_column(model, MTPROF_COLUMN_NAME, &count);
    const uint32_t *parents = model_column(model, MTPROF_COLUMN_PARENT, &count);
    uint32_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!model_name_is(model, names[i], name)) {
            continue;
        }
        bool inside = outer == NULL;
        for (uint32_t up = parents[i]; !inside && up != MTPROF_NO_EVENT; up = parents[up]) {
            inside = model_name_is(model, names[up], outer);
        }
        found += inside;
    }
    return found;
}

/* Each name, what it must be inside, and how often. */
typedef struct expectation {
    const char *name;
    const char *outer;
    uint32_t times;
} expectation;

static void check_all(mtprof_model *model, const expectation *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t times = count_inside(model, rows[i].name, rows[i].outer);
        if (times != rows[i].times) {
            FAIL("%s inside %s: %u times, expected %u", rows[i].name,
                 rows[i].outer == NULL ? "anything" : rows[i].outer, times, rows[i].times);
        }
    }
}

TEST(a_training_step_of_an_mlp_has_torchs_names)
{
    static const expectation rows[] = {
        {"aten::linear", NULL, 3},
        {"aten::addmm", "aten::linear", 3},
        {"aten::cross_entropy_loss", NULL, 1},
        {"aten::log_softmax", "aten::cross_entropy_loss", 1},
        {"aten::_log_softmax", "aten::log_softmax", 1},
        {"aten::nll_loss_nd", "aten::cross_entropy_loss", 1},
        {"aten::nll_loss_forward", "aten::nll_loss", 1},
        {"NllLossBackward0", "autograd::engine::evaluate_function: NllLossBackward0", 1},
        {"aten::nll_loss_backward", "NllLossBackward0", 1},
        {"aten::_log_softmax_backward_data", "LogSoftmaxBackward0", 1},
        {"AddmmBackward0", NULL, 3},
        {"torch::autograd::AccumulateGrad", NULL, 6},
        {"Optimizer.step#SGD.step", NULL, 1},
        {"aten::_fused_sgd_", "Optimizer.step#SGD.step", 1},
    };
    mtprof_model *model = profile_step(&sm_mlp, MT_OPTIMIZER_SGD);
    check_all(model, rows, sizeof(rows) / sizeof(rows[0]));
    mtprof_model_free(model);
}

TEST(a_training_step_of_a_gpt_has_torchs_names)
{
    static const expectation rows[] = {
        {"aten::embedding", NULL, 1},
        {"aten::embedding_dense_backward", "EmbeddingBackward0", 1},
        {"aten::native_layer_norm", "aten::layer_norm", 5},
        {"aten::native_layer_norm_backward", "NativeLayerNormBackward0", 5},
        {"aten::scaled_dot_product_attention", NULL, 2},
        {"aten::gelu_backward", "GeluBackward0", 2},
        {"Optimizer.step#AdamW.step", NULL, 1},
        {"aten::_fused_adamw_", "Optimizer.step#AdamW.step", 1},
    };
    mtprof_model *model = profile_step(&sm_gpt, MT_OPTIMIZER_ADAMW);
    check_all(model, rows, sizeof(rows) / sizeof(rows[0]));
    mtprof_model_free(model);
}

TEST(a_training_step_of_a_cnn_has_torchs_names)
{
    static const expectation rows[] = {
        {"aten::convolution", "aten::conv2d", 2},
        {"aten::convolution_backward", "ConvolutionBackward0", 2},
        {"aten::native_batch_norm", "aten::batch_norm", 1},
        {"aten::native_batch_norm_backward", "NativeBatchNormBackward0", 1},
        {"aten::max_pool2d_with_indices", "aten::max_pool2d", 1},
        {"aten::max_pool2d_with_indices_backward", "MaxPool2DWithIndicesBackward0", 1},
        {"Optimizer.step#RMSprop.step", NULL, 1},
    };
    mtprof_model *model = profile_step(&sm_cnn, MT_OPTIMIZER_RMSPROP);
    check_all(model, rows, sizeof(rows) / sizeof(rows[0]));
    mtprof_model_free(model);
}
