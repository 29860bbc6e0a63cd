/* SPDX-License-Identifier: Apache-2.0
 *
 * What memory is for where the host is stock torch: it declares no roles, and its fused optimizers
 * and normalizations hide what they change. Rules are those of memory_categories.h.
 */
#include "harness/mt_test.h"
#include "memory_script.h"

enum {
    X = 0x100,
    W = 0x200,
    B = 0x300,
    MEAN = 0x400,
    OUT = 0x500,
    GW = 0x700,
    GB = 0x800,
    STATE = 0x900,
    OLD = 0xA00
};

static const uint64_t tensor = MTPROF_INPUT_TENSOR; /* without dimensions */
static const uint64_t list = MTPROF_INPUT_LIST | (uint64_t)1 << 32;

/* MC4b: what a fused step has after its gradients is its state, also where both are older than the
 * trace. */
static void fused_state(memory_script *s)
{
    const uint64_t words[] = {list, tensor, list, tensor, list, tensor};
    ms_op(s, "aten::mm", ms_in(T(1, X, 0), T(2, W, 0)), ms_out(T(3, OUT, 0)));
    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    ms_begin_words(s, "aten::_fused_sgd_", ms_in(T(2, W, 0), T(7, OLD, 0), T(9, STATE, 0)), words,
                   sizeof words / sizeof words[0]);
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_free(s, STATE, 64);
    ms_free(s, OLD, 64);
    ms_free(s, W, 64);
}

TEST(a_fused_step_changes_its_state_and_not_its_gradients)
{
    ms_expect(fused_state, 0,
              "PRE 0 INPUT\nPRE 64 PARAMETER\nPRE 64 UNKNOWN\nPRE 64 OPTIMIZER_STATE\n"
              "CREATE 0 ACTIVATION\n"
              "DESTROY -64 OPTIMIZER_STATE\nDESTROY -64 UNKNOWN\nDESTROY -64 PARAMETER\n");
}

static void normalization(memory_script *s)
{
    ms_alloc(s, W, 24);
    ms_alloc(s, B, 24);
    ms_alloc(s, MEAN, 24);
    ms_begin_numbered(s, "aten::native_batch_norm", 4,
                      ms_in(T(1, X, 0), T(2, W, 0), T(3, B, 0), T(4, MEAN, 0)));
    ms_alloc(s, OUT, 96);
    ms_end(s, ms_out(T(5, OUT, 0)));
    ms_backward(s, "NativeBatchNormBackward0", 4, MS_NONE);
    ms_alloc(s, GW, 24);
    ms_alloc(s, GB, 24);
    ms_end(s, ms_out(T(6, GW, 0), T(7, GB, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(6, GW, 0)));
    ms_end(s, MS_NONE);
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(7, GB, 0)));
    ms_end(s, MS_NONE);
}

/* The same, and an optimizer tells which of the three are parameters. */
static void normalization_and_step(memory_script *s)
{
    normalization(s);
    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    ms_op(s, "aten::add_", ms_in(T(2, W, 0), T(6, GW, 0)), ms_out(T(2, W, 1)));
    ms_op(s, "aten::add_", ms_in(T(3, B, 0), T(7, GB, 0)), ms_out(T(3, B, 1)));
    ms_end(s, MS_NONE);
}

TEST(a_parameter_found_by_its_size_gives_way_to_those_that_are_changed)
{
    ms_expect(normalization, 0,
              "PRE 0 INPUT\nCREATE 24 INPUT\nCREATE 24 INPUT\nCREATE 24 PARAMETER\n"
              "CREATE 96 ACTIVATION\nCREATE 24 GRADIENT\nCREATE 24 GRADIENT\n");
    ms_expect(normalization_and_step, 0,
              "PRE 0 INPUT\nCREATE 24 PARAMETER\nCREATE 24 PARAMETER\nCREATE 24 INPUT\n"
              "CREATE 96 ACTIVATION\nCREATE 24 GRADIENT\nCREATE 24 GRADIENT\n"
              "INCREMENT -24 PARAMETER\nINCREMENT 24 PARAMETER\n"
              "INCREMENT -24 PARAMETER\nINCREMENT 24 PARAMETER\n");
}
