/* SPDX-License-Identifier: Apache-2.0
 *
 * From the recorder to the table: a program with steps, nested ops, shapes, allocations and a
 * device, recorded and summed up. What it took is not known, so sums are compared with each other.
 */
#include "harness/mt_test.h"
#include "support/devices/synthetic_device.h"

#include <mtprof/averages.h>
#include <mtprof/op.h>
#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEPS = 5,
    OPS = 4 /* in each step */
};

static mtprof_site scope = MTPROF_SITE_INIT("forward", MTPROF_KIND_SCOPE);
static mtprof_site outer = MTPROF_SITE_INIT("aten::linear", MTPROF_KIND_OP);
static mtprof_site inner = MTPROF_SITE_INIT("aten::addmm", MTPROF_KIND_OP);
static mtprof_site call =
    MTPROF_SITE_INIT("launchKernel", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);

static mtprof_token begin_op(mtprof_site *site, int64_t rows, uint64_t flops)
{
    int64_t sizes[2] = {rows, 8};
    const mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = sizes};
    const mtprof_op op = {.struct_size = sizeof op,
                          .fields = MTPROF_OP_FLOPS,
                          .inputs = &input,
                          .n_inputs = 1,
                          .flops = flops};
    return mtprof_op_begin(site, &op);
}

static void run_step(synthetic_device *device)
{
    mtprof_token around = mtprof_begin(&scope);
    for (int64_t i = 0; i < OPS; i++) {
        mtprof_token a = begin_op(&outer, 2 + i % 2, 0);
        mtprof_alloc(0, 4096, 100, 100, 0);
        mtprof_token b = begin_op(&inner, 2, 64);
        mtprof_alloc(0, 8192, 28, 128, 0);
        mtprof_token launch = mtprof_begin(&call);
        sd_launch(device, "gemm", mtprof_launch_key(launch), 1);
        mtprof_end(launch);
        mtprof_end(b);
        mtprof_end(a);
    }
    mtprof_end(around);
}

static mtprof_model *record(synthetic_device *device)
{
    mtprof_config config = {.struct_size = sizeof config};
    config.wants =
        MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS | MTPROF_WANT_FLOPS;
    mtprof_session *session = NULL;
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    for (uint64_t step = 0; step < STEPS; step++) {
        REQUIRE_OK(mtprof_session_step(session, step, 0));
        run_step(device);
    }
    sd_drain(device);
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    REQUIRE_OK(mtprof_session_close(session));
    return model;
}

static mtprof_row find_row(const mtprof_averages *averages, const char *key)
{
    mtprof_row row = {.struct_size = sizeof row};
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        REQUIRE_OK(mtprof_averages_get_row(averages, i, &row));
        if (strcmp(row.key.bytes, key) == 0 && (row.device == 0 || strcmp(key, "gemm") == 0)) {
            return row;
        }
    }
    FAIL("no row %s", key);
    mt_test_leave();
}

typedef struct text_sink {
    char bytes[16384];
    size_t length;
} text_sink;

static int take_bytes(void *context, const void *bytes, size_t length)
{
    text_sink *sink = context;
    if (sink->length + length >= sizeof sink->bytes) {
        return ENOSPC;
    }
    memcpy(sink->bytes + sink->length, bytes, length);
    sink->length += length;
    return 0;
}

TEST(a_session_reports_in_one_call)
{
    static mtprof_site op = MTPROF_SITE_INIT("reported", MTPROF_KIND_OP);
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session = NULL;
    int ends[2];
    char text[8192] = "";
    REQUIRE(pipe(ends) == 0);
    REQUIRE_OK(mtprof_session_start(&config, &session));
    mtprof_end(mtprof_begin(&op));
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_session_report(session, ends[1], NULL));
    REQUIRE(read(ends[0], text, sizeof text - 1) > 0);
    CHECK(strstr(text, "reported") != NULL);
    const mtprof_table_options csv = {.struct_size = sizeof csv, .format = MTPROF_TABLE_CSV};
    memset(text, 0, sizeof text);
    REQUIRE_OK(mtprof_session_report(session, ends[1], &csv));
    REQUIRE(read(ends[0], text, sizeof text - 1) > 0);
    CHECK(strstr(text, "reported,") != NULL);
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK_EQ_I64(mtprof_session_report(session, -1, NULL), MTPROF_EIO);
    REQUIRE_OK(mtprof_session_close(session));
}

TEST(a_recorded_program_as_a_table)
{
    synthetic_device *device = sd_new(NULL);
    mtprof_model *model = record(device);
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    mtprof_row forward = find_row(averages, "forward");
    mtprof_row linear = find_row(averages, "aten::linear");
    mtprof_row addmm = find_row(averages, "aten::addmm");
    mtprof_row launch = find_row(averages, "launchKernel");
    mtprof_row gemm = find_row(averages, "gemm");
    CHECK_EQ_U64(forward.count, STEPS);
    CHECK_EQ_U64(linear.count, STEPS * OPS);
    CHECK_EQ_U64(addmm.count, STEPS * OPS);
    CHECK_EQ_U64(gemm.count, STEPS * OPS);
    CHECK_EQ_U64(forward.is_user_annotation, 1);
    CHECK_EQ_U64(linear.has_parent, 1);
    CHECK(gemm.device != 0);
    /* Times: what is inside is not self. */
    CHECK_EQ_I64(linear.self_cpu_ns, linear.cpu_ns - addmm.cpu_ns);
    CHECK_EQ_I64(addmm.self_cpu_ns, addmm.cpu_ns - launch.cpu_ns);
    CHECK_EQ_I64(forward.cpu_ns,
                 forward.self_cpu_ns + linear.self_cpu_ns + addmm.self_cpu_ns + launch.self_cpu_ns);
    CHECK(forward.min_ns <= forward.max_ns && forward.max_ns <= forward.cpu_ns);
    /* Device time goes up the tree, and is not counted twice (MDL3). */
    CHECK_EQ_I64(gemm.self_device_ns, gemm.device_ns);
    CHECK(gemm.device_ns > 0);
    CHECK_EQ_I64(linear.device_ns, gemm.device_ns);
    CHECK_EQ_I64(forward.device_ns, gemm.device_ns);
    CHECK_EQ_I64(forward.self_device_ns + linear.self_device_ns + addmm.self_device_ns +
                     launch.self_device_ns,
                 gemm.device_ns);
    /* Memory and FLOPs. */
    CHECK_EQ_I64(linear.self_cpu_memory, 100 * STEPS * OPS);
    CHECK_EQ_I64(linear.cpu_memory, 128 * STEPS * OPS);
    CHECK_EQ_I64(addmm.cpu_memory, 28 * STEPS * OPS);
    CHECK_EQ_U64(addmm.flops, 64 * STEPS * OPS);

    static text_sink sink;
    const mtprof_output output = {
        .struct_size = sizeof output, .context = &sink, .write = take_bytes};
    REQUIRE_OK(mtprof_averages_sort(averages, "self_cpu_time_total"));
    REQUIRE_OK(mtprof_averages_table(averages, NULL, &output));
    CHECK(strstr(sink.bytes,
                 "  Self SYN %     SYN total  SYN time avg       CPU Mem  Self CPU Mem    "
                 "# of Calls  Total KFLOPs  \n") != NULL);
    CHECK(strstr(sink.bytes, "\nSelf SYN time total: ") != NULL);
    CHECK(strstr(sink.bytes, "      2.50 KB       1.95 KB            20            --  \n") !=
          NULL);
    CHECK(strstr(sink.bytes, "         560 B         560 B            20         1.280  \n") !=
          NULL);
    CHECK(strstr(sink.bytes, "Not complete") == NULL);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    sd_free(device);
}

TEST(a_recorded_program_by_shapes_and_steps)
{
    synthetic_device *device = sd_new(NULL);
    mtprof_model *model = record(device);
    mtprof_averages *averages = NULL;
    const mtprof_averages_options by_shapes = {
        .struct_size = sizeof by_shapes, .group = MTPROF_GROUP_SHAPES, .name = "aten::linear"};
    REQUIRE_OK(mtprof_averages_new(model, &by_shapes, &averages));
    REQUIRE_EQ_U64(mtprof_averages_count(averages), 2);
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_row(averages, 0, &row));
    CHECK_EQ_STR(row.input_shapes.bytes, "[[2, 8]]");
    CHECK_EQ_U64(row.count, STEPS * OPS / 2);
    REQUIRE_OK(mtprof_averages_get_row(averages, 1, &row));
    CHECK_EQ_STR(row.input_shapes.bytes, "[[3, 8]]");
    mtprof_averages_free(averages);
    const mtprof_averages_options by_step = {
        .struct_size = sizeof by_step, .group = MTPROF_GROUP_STEP, .name = "aten::addmm"};
    REQUIRE_OK(mtprof_averages_new(model, &by_step, &averages));
    REQUIRE_EQ_U64(mtprof_averages_count(averages), STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        REQUIRE_OK(mtprof_averages_get_row(averages, i, &row));
        CHECK_EQ_I64(row.step, i);
        CHECK_EQ_U64(row.count, OPS);
    }
    mtprof_averages_free(averages);
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    mtprof_row_noise noise = {.struct_size = sizeof noise};
    REQUIRE_OK(mtprof_averages_get_noise(averages, 0, &noise));
    CHECK_EQ_U64(noise.steps, STEPS);
    CHECK_EQ_F64(noise.mean_calls, 1);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    sd_free(device);
}
