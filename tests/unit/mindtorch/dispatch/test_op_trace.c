/* SPDX-License-Identifier: Apache-2.0
 *
 * What the profiler sees: names, nesting, shapes, FLOPs, memory, and the numbers that tie a
 * backward node to its forward op.
 */
#include "harness/mt_test.h"
#include "support/traces/model_events.h"

#include <mindtorch/mindtorch.h>
#include <mtprof/export.h>
#include <mtprof/mtprof.h>

static mtprof_session *start(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = wants};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

static mtprof_model *finish(mtprof_session *session)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    return model;
}

static mt_tensor *randn(int64_t rows, int64_t columns, bool grad)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_randn((int64_t[]){rows, columns}, 2, &made));
    REQUIRE_OK(mt_tensor_set_requires_grad(made, grad));
    return made;
}

/* The nth event of a name; UINT64_MAX: none. */
static uint64_t find(mtprof_model *model, const char *name, int nth)
{
    uint64_t count;
    const uint32_t *names = model_column(model, MTPROF_COLUMN_NAME, &count);
    for (uint64_t i = 0; i < count; i++) {
        if (model_name_is(model, names[i], name) && nth-- == 0) {
            return i;
        }
    }
    return UINT64_MAX;
}

TEST(a_composite_has_its_parts_inside)
{
    mt_tensor *x = randn(4, 3, false), *w = randn(5, 3, false), *y = NULL;
    mtprof_session *session = start(MTPROF_WANT_DEFAULT | MTPROF_WANT_FLOPS | MTPROF_WANT_INPUTS);
    REQUIRE_OK(mt_linear(x, w, NULL, &y));
    mtprof_model *model = finish(session);
    uint64_t count;
    uint64_t linear = find(model, "aten::linear", 0), mm = find(model, "aten::mm", 0);
    REQUIRE(linear != UINT64_MAX);
    REQUIRE(mm != UINT64_MAX);
    const uint32_t *parent = model_column(model, MTPROF_COLUMN_PARENT, &count);
    bool inside = false;
    for (uint32_t up = parent[mm]; up != MTPROF_NO_EVENT; up = parent[up]) {
        inside |= up == linear;
    }
    CHECK(inside);
    const uint64_t *flops = model_column(model, MTPROF_COLUMN_FLOPS, &count);
    CHECK_EQ_U64(flops[mm], 2 * 4 * 3 * 5);
    CHECK_EQ_U64(flops[linear], 0);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    mt_tensor_release(x);
    mt_tensor_release(w);
    mt_tensor_release(y);
}

TEST(backward_nodes_have_torchs_names_and_the_forwards_numbers)
{
    mt_tensor *a = randn(2, 2, true), *b = randn(2, 2, true), *y = NULL, *loss = NULL;
    mtprof_session *session = start(MTPROF_WANT_DEFAULT | MTPROF_WANT_DETAILS);
    REQUIRE_OK(mt_mul(a, b, &y));
    REQUIRE_OK(mt_sum(y, NULL, 0, false, &loss));
    REQUIRE_OK(mt_backward(loss, NULL, 0));
    mtprof_model *model = finish(session);
    uint64_t count;
    uint64_t forward = find(model, "aten::mul", 0);
    uint64_t around = find(model, "autograd::engine::evaluate_function: MulBackward0", 0);
    uint64_t node = find(model, "MulBackward0", 0);
    REQUIRE(forward != UINT64_MAX && around != UINT64_MAX && node != UINT64_MAX);
    CHECK(find(model, "torch::autograd::AccumulateGrad", 1) != UINT64_MAX); /* two leaves */
    CHECK(find(model, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1) !=
          UINT64_MAX);
    const int64_t *sequence = model_column(model, MTPROF_COLUMN_SEQUENCE, &count);
    CHECK(sequence[forward] >= 0);
    CHECK_EQ_I64(sequence[node], sequence[forward]);
    CHECK_EQ_I64(sequence[around], sequence[forward]);
    CHECK_EQ_I64(sequence[find(model, "torch::autograd::AccumulateGrad", 0)], -1);
    const uint32_t *parent = model_column(model, MTPROF_COLUMN_PARENT, &count);
    CHECK_EQ_U64(parent[node], around);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    mt_tensor *all[] = {a, b, y, loss};
    for (int i = 0; i < 4; i++) {
        mt_tensor_release(all[i]);
    }
}

static int twice(void *context, const mt_value *args, mt_value *results)
{
    (void)context;
    results[0].kind = MT_KIND_TENSOR;
    return mt_add(args[0].of.tensor, args[0].of.tensor, &results[0].of.tensor);
}

TEST(a_users_op_is_profiled_under_its_name)
{
    mt_op op;
    REQUIRE_OK(mt_op_register("mylib::twice(Tensor x) -> Tensor", twice, NULL, NULL, &op));
    mt_tensor *x = randn(2, 2, false);
    mtprof_session *session = start(0);
    mt_value arg = {.kind = MT_KIND_TENSOR, .of.tensor = x}, result;
    REQUIRE_OK(mt_call(op, &arg, 1, &result, 1));
    mtprof_model *model = finish(session);
    CHECK(find(model, "mylib::twice", 0) != UINT64_MAX);
    CHECK(find(model, "aten::add", 0) != UINT64_MAX);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    mt_value_clear(&result);
    mt_tensor_release(x);
}

TEST(allocations_are_told_with_exact_counters)
{
    mt_memory_stats before = {.struct_size = sizeof before}, after = before;
    mtprof_session *session = start(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS | MTPROF_WANT_MEMORY);
    REQUIRE_OK(mt_device_get_memory_stats(MT_CPU, &before));
    mt_tensor *x = randn(64, 64, false);
    REQUIRE_OK(mt_device_get_memory_stats(MT_CPU, &after));
    CHECK_EQ_U64(after.allocations - before.allocations, 1);
    CHECK_EQ_U64(after.allocated_bytes - before.allocated_bytes, 64 * 64 * 4);
    mt_tensor_release(x);
    REQUIRE_OK(mt_device_get_memory_stats(MT_CPU, &after));
    CHECK_EQ_U64(after.allocated_bytes, before.allocated_bytes);
    mtprof_model *model = finish(session);
    uint64_t op = find(model, "aten::randn", 0);
    REQUIRE(op != UINT64_MAX);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
}

TEST(a_marked_tensor_is_a_parameter_of_the_memory_timeline)
{
    mt_tensor *x = randn(8, 8, false), *w = randn(8, 4, true), *y = NULL, *loss = NULL;
    CHECK(!mt_tensor_is_parameter(w));
    mt_tensor_set_parameter(w, true);
    CHECK(mt_tensor_is_parameter(w));
    mtprof_session *session = start(MTPROF_WANT_DEFAULT | MTPROF_WANT_DETAILS | MTPROF_WANT_INPUTS |
                                    MTPROF_WANT_TENSORS | MTPROF_WANT_ALLOCS | MTPROF_WANT_STACKS);
    REQUIRE_OK(mt_mm(x, w, &y));
    REQUIRE_OK(mt_sum(y, NULL, 0, false, &loss));
    REQUIRE_OK(mt_backward(loss, NULL, 0));
    mtprof_model *model = finish(session);
    mtprof_export_options options = {.struct_size = sizeof options, .device = "cpu"};
    mtprof_memory_peak peak = {.struct_size = sizeof peak};
    REQUIRE_OK(mtprof_model_get_memory_peak(model, &options, &peak));
    CHECK_EQ_I64(peak.most[0], 8 * 4 * 4); /* parameter */
    CHECK_EQ_I64(peak.most[2], 8 * 8 * 4); /* input */
    CHECK_EQ_I64(peak.most[5], 8 * 4 * 4); /* gradient */
    CHECK_EQ_I64(peak.most[7], 0);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    mt_tensor *all[] = {x, w, y, loss};
    for (int i = 0; i < 4; i++) {
        mt_tensor_release(all[i]);
    }
}
