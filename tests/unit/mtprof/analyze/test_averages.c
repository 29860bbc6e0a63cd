/* SPDX-License-Identifier: Apache-2.0
 *
 * From events to rows: what is one row, what counts, sums, order. The invariants AV1 to AV3 are
 * those of averages_impl.h.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "model_maker.h"

#include <mtprof/averages.h>
#include <mtprof/status.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static mtprof_row row_at(const mtprof_averages *averages, uint32_t index)
{
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_row(averages, index, &row));
    return row;
}

static mtprof_averages *group(mtprof_model *model, const mtprof_averages_options *options)
{
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, options, &averages));
    REQUIRE(averages != NULL);
    return averages;
}

/* The keys of all rows, separated by blanks. */
static const char *keys_of(const mtprof_averages *averages)
{
    static char text[1024];
    size_t used = 0;
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        mtprof_row row = row_at(averages, i);
        REQUIRE(used + row.key.length + 2 < sizeof text);
        memcpy(text + used, row.key.bytes, row.key.length);
        used += row.key.length;
        text[used++] = ' ';
    }
    text[used > 0 ? used - 1 : 0] = '\0';
    return text;
}

/* ---- what is one row ------------------------------------------------------------------------- */

TEST(rows_are_name_device_type_and_annotation)
{
    mtprof_model *model = mm_model();
    model->info.device_type = "NPU";
    *mm_add(model, "fwd", 0, 100).kind = MTPROF_EVENT_KIND_SCOPE;
    mm_event op = mm_add(model, "fwd", 10, 40); /* an op of the same name is another row */
    *op.parent = 0;
    mm_event work = mm_add(model, "fwd", 50, 60);
    *work.kind = MTPROF_EVENT_KIND_ANNOTATION;
    *work.device = 1;
    work = mm_add(model, "gemm", 50, 57);
    *work.kind = MTPROF_EVENT_KIND_KERNEL;
    *work.device = 1;
    work = mm_add(model, "gemm", 58, 60); /* the other device of the type: the same row */
    *work.kind = MTPROF_EVENT_KIND_KERNEL;
    *work.device = 2;
    work = mm_add(model, "gemm", 60, 61);
    *work.kind = MTPROF_EVENT_KIND_KERNEL;
    *work.device = 3;
    *mm_add(model, "fwd", 200, 205).kind = MTPROF_EVENT_KIND_SCOPE;
    mtprof_averages *averages = group(model, NULL);
    CHECK_EQ_STR(keys_of(averages), "fwd fwd fwd gemm gemm");

    mtprof_row row = row_at(averages, 0);
    CHECK_EQ_U64(row.count, 2);
    CHECK_EQ_I64(row.cpu_ns, 105);
    CHECK_EQ_I64(row.min_ns, 5);
    CHECK_EQ_I64(row.max_ns, 100);
    CHECK_EQ_U64(row.is_user_annotation, 1);
    CHECK_EQ_U64(row.device, 0);
    CHECK_EQ_U64(row.has_parent, 0);
    CHECK_EQ_I64(row.node_id, -1);
    CHECK_EQ_U64(row.first_event, 0);
    CHECK_EQ_U64(row.name, mm_name(model, "fwd"));
    CHECK_EQ_U64(row.input_shapes.length + row.overload.length + row.module.length, 0);
    CHECK_EQ_I64(row.step, INT32_MIN);
    CHECK_EQ_U64(row.track, UINT32_MAX);
    row = row_at(averages, 1);
    CHECK_EQ_U64(row.is_user_annotation, 0);
    CHECK_EQ_U64(row.has_parent, 1);
    row = row_at(averages, 2);
    CHECK_EQ_U64(row.is_user_annotation, 1);
    CHECK_EQ_U64(row.device, 1);
    CHECK_EQ_I64(row.device_ns, 10);
    CHECK_EQ_I64(row.self_device_ns, 10);
    CHECK_EQ_I64(row.cpu_ns, 0);
    row = row_at(averages, 3);
    CHECK_EQ_U64(row.count, 2);
    CHECK_EQ_I64(row.device_ns, 9);
    CHECK_EQ_I64(row.self_cpu_ns, 0);
    row = row_at(averages, 4);
    CHECK_EQ_U64(row.device, 3);
    CHECK_EQ_U64(row.count, 1);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(calls_and_overhead_are_host_rows)
{
    mtprof_model *model = mm_model();
    mm_event call = mm_add(model, "cudaLaunchKernel", 0, 9);
    *call.kind = MTPROF_EVENT_KIND_CALL;
    *call.device = 1;
    call = mm_add(model, "Activity Buffer Request", 10, 19);
    *call.kind = MTPROF_EVENT_KIND_OVERHEAD;
    *call.device = 1;
    *mm_add(model, "launch", 20, 20).kind = MTPROF_EVENT_KIND_LAUNCH;
    mtprof_averages *averages = group(model, NULL);
    CHECK_EQ_STR(keys_of(averages), "cudaLaunchKernel Activity Buffer Request launch");
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ_U64(row_at(averages, i).device, 0);
        CHECK_EQ_I64(row_at(averages, i).cpu_ns, i < 2 ? 9 : 0);
    }
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(steps_and_allocations_have_one_name)
{
    mtprof_model *model = mm_model();
    *mm_add(model, "ProfilerStep#3", 0, 10).kind = MTPROF_EVENT_KIND_STEP;
    *mm_add(model, "", 3, 3).kind = MTPROF_EVENT_KIND_MEMORY;
    mm_set(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, (uint64_t)-12);
    *mm_add(model, "ProfilerStep#4", 10, 30).kind = MTPROF_EVENT_KIND_STEP;
    *mm_add(model, "whatever", 31, 31).kind = MTPROF_EVENT_KIND_MEMORY;
    mm_set(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, (uint64_t)-30);
    *mm_add(model, "x", 32, 32).kind = MTPROF_EVENT_KIND_OUT_OF_MEMORY;
    mtprof_averages *averages = group(model, NULL);
    CHECK_EQ_STR(keys_of(averages), "ProfilerStep* [memory] [OutOfMemory]");
    CHECK_EQ_U64(row_at(averages, 0).count, 2);
    CHECK_EQ_I64(row_at(averages, 0).cpu_ns, 30);
    CHECK_EQ_U64(row_at(averages, 1).count, 2);
    CHECK_EQ_I64(row_at(averages, 1).self_cpu_memory, -42);
    CHECK_EQ_I64(row_at(averages, 1).cpu_memory, -42);
    CHECK_EQ_U64(row_at(averages, 1).name, UINT32_MAX);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(what_torch_drops_is_dropped)
{
    static const char *const dropped[] = {"profiler::_record_function_enter",
                                          "profiler::_record_function_enter_new",
                                          "profiler::_record_function_exit",
                                          "aten::is_leaf",
                                          "aten::output_nr",
                                          "aten::_version"};
    mtprof_model *model = mm_model();
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
        mm_add(model, dropped[i], (int64_t)i, 20);
    }
    mm_add(model, "aten::_versions", 8, 20);
    *mm_add(model, "python", 9, 19).kind = MTPROF_EVENT_KIND_FUNCTION;
    mtprof_averages *averages = group(model, NULL);
    CHECK_EQ_STR(keys_of(averages), "aten::_versions");
    mtprof_averages_free(averages);
    averages =
        group(model, &(mtprof_averages_options){.struct_size = sizeof(mtprof_averages_options),
                                                .functions = MTPROF_FUNCTIONS_ALL});
    CHECK_EQ_STR(keys_of(averages), "aten::_versions python");
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(functions_are_rows_where_the_trace_has_no_ops)
{
    mtprof_averages_options options = {.struct_size = sizeof options,
                                       .functions = MTPROF_FUNCTIONS_WITHOUT_OPS};
    mtprof_model *model = mm_model();
    *mm_add(model, "scope", 0, 20).kind = MTPROF_EVENT_KIND_SCOPE;
    *mm_add(model, "python", 1, 19).kind = MTPROF_EVENT_KIND_FUNCTION;
    mtprof_averages *averages = group(model, &options);
    CHECK_EQ_STR(keys_of(averages), "scope python");
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    model = mm_model();
    *mm_add(model, "scope", 0, 20).kind = MTPROF_EVENT_KIND_SCOPE;
    *mm_add(model, "python", 1, 19).kind = MTPROF_EVENT_KIND_FUNCTION;
    *mm_add(model, "op", 2, 18).kind = MTPROF_EVENT_KIND_OP;
    averages = group(model, &options);
    CHECK_EQ_STR(keys_of(averages), "scope op");
    mtprof_averages_free(averages);
    options.functions = MTPROF_FUNCTIONS_WITHOUT_OPS + 1;
    CHECK_EQ_I64(mtprof_averages_new(model, &options, &averages), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "averages: functions 3, known are 0 to 2");
    mtprof_model_free(model);
}

TEST(an_empty_model_has_no_rows)
{
    mtprof_model *model = mm_model();
    mtprof_averages *averages = group(model, NULL);
    mtprof_row row = {.struct_size = sizeof row};
    CHECK_EQ_U64(mtprof_averages_count(averages), 0);
    CHECK_EQ_I64(mtprof_averages_get_row(averages, 0, &row), MTPROF_EINVAL);
    CHECK_OK(mtprof_averages_get_total(averages, &row));
    CHECK_EQ_STR(row.key.bytes, "Total");
    CHECK_EQ_U64(row.count, 0);
    CHECK_OK(mtprof_averages_sort(averages, "count"));
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

/* ---- options --------------------------------------------------------------------------------- */

static mtprof_averages *group_by(mtprof_model *model, uint32_t bits)
{
    return group(model, &(mtprof_averages_options){.struct_size = sizeof(mtprof_averages_options),
                                                   .group = bits});
}

TEST(grouped_by_shapes)
{
    /* float[2,3] and int[2,3]: other lists, the same sizes; then a scalar in addition. */
    static const uint64_t lists[3][4] = {{1 | 2 << 8 | UINT64_C(5) << 32, 2, 3},
                                         {1 | 2 << 8 | UINT64_C(6) << 32, 2, 3},
                                         {1 | 2 << 8 | UINT64_C(5) << 32, 2, 3, 3}};
    mtprof_model *model = mm_model();
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t inputs;
        mm_add(model, "aten::add", i, 10);
        REQUIRE_OK(mtprof__dictionary_inputs(&model->dictionary, lists[i], i < 2 ? 3 : 4, &inputs));
        mm_set(model, MTPROF_COLUMN_INPUTS, inputs);
    }
    mm_add(model, "aten::add", 5, 10);
    mtprof_averages *averages = group_by(model, MTPROF_GROUP_SHAPES);
    REQUIRE_EQ_U64(mtprof_averages_count(averages), 3);
    CHECK_EQ_STR(row_at(averages, 0).input_shapes.bytes, "[[2, 3]]");
    CHECK_EQ_U64(row_at(averages, 0).count, 2);
    CHECK_EQ_STR(row_at(averages, 1).input_shapes.bytes, "[[2, 3], []]");
    CHECK_EQ_STR(row_at(averages, 2).input_shapes.bytes, "[]");
    mtprof_averages_free(averages);
    averages = group_by(model, 0);
    CHECK_EQ_U64(mtprof_averages_count(averages), 1);
    CHECK_EQ_U64(row_at(averages, 0).input_shapes.length, 0);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

static uint32_t frame_of(mtprof_model *model, const char *function)
{
    mtprof_frame frame = {.function = {function, strlen(function)}, .file = {"a.py", 4}, .line = 3};
    uint32_t index;
    REQUIRE_OK(mtprof__dictionary_frame(&model->dictionary, &frame, &index));
    return index;
}

TEST(grouped_by_innermost_frames)
{
    mtprof_model *model = mm_model();
    uint32_t main_node, other_node, node[3];
    mtprof__dictionary *d = &model->dictionary;
    REQUIRE_OK(mtprof__dictionary_node(d, 0, frame_of(model, "main"), &main_node));
    REQUIRE_OK(mtprof__dictionary_node(d, 0, frame_of(model, "other"), &other_node));
    REQUIRE_OK(mtprof__dictionary_node(d, main_node, frame_of(model, "f"), &node[0]));
    REQUIRE_OK(mtprof__dictionary_node(d, other_node, frame_of(model, "f"), &node[1]));
    REQUIRE_OK(mtprof__dictionary_node(d, main_node, frame_of(model, "g"), &node[2]));
    for (uint32_t i = 0; i < 3; i++) {
        mm_add(model, "op", i, 10);
        mm_set(model, MTPROF_COLUMN_STACK, node[i]);
    }
    mm_add(model, "op", 4, 10);                       /* without a stack */
    static const uint32_t expected[4] = {1, 3, 4, 4}; /* rows for n = 0, 1, 2, 3 */
    for (uint32_t n = 0; n < 4; n++) {
        mtprof_averages *averages =
            group(model, &(mtprof_averages_options){.struct_size = sizeof(mtprof_averages_options),
                                                    .stack_n = n});
        CHECK_EQ_U64(mtprof_averages_count(averages), expected[n]);
        CHECK_EQ_U64(row_at(averages, 0).stack, n > 0 ? node[0] : 0);
        CHECK_EQ_U64(row_at(averages, 0).stack_n, n);
        mtprof_averages_free(averages);
    }
    mtprof_model_free(model);
}

TEST(grouped_by_overload_module_step_and_thread)
{
    mtprof_model *model = mm_model();
    mm_add(model, "op", 0, 1);
    mm_set(model, MTPROF_COLUMN_OVERLOAD, mm_name(model, "Tensor") + 1);
    mm_set(model, MTPROF_COLUMN_MODULE, mm_name(model, "net.fc1") + 1);
    *mm_add(model, "op", 1, 2).step = 4;
    *mm_add(model, "op", 2, 3).track = 1;
    const struct {
        uint32_t bits, rows;
    } cases[] = {{0, 1},
                 {MTPROF_GROUP_OVERLOAD, 2},
                 {MTPROF_GROUP_MODULE, 2},
                 {MTPROF_GROUP_STEP, 2},
                 {MTPROF_GROUP_THREAD, 2},
                 {MTPROF_GROUP_STEP | MTPROF_GROUP_THREAD | MTPROF_GROUP_MODULE, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_averages *averages = group_by(model, cases[i].bits);
        CHECK_EQ_U64(mtprof_averages_count(averages), cases[i].rows);
        mtprof_row row = row_at(averages, 0);
        bool by_overload = (cases[i].bits & MTPROF_GROUP_OVERLOAD) != 0;
        bool by_module = (cases[i].bits & MTPROF_GROUP_MODULE) != 0;
        CHECK_EQ_STR(row.overload.bytes, by_overload ? "Tensor" : "");
        CHECK_EQ_STR(row.module.bytes, by_module ? "net.fc1" : "");
        CHECK_EQ_I64(row.step, (cases[i].bits & MTPROF_GROUP_STEP) != 0 ? -1 : INT32_MIN);
        CHECK_EQ_U64(row.track, (cases[i].bits & MTPROF_GROUP_THREAD) != 0 ? 0 : UINT32_MAX);
        mtprof_averages_free(averages);
    }
    mtprof_model_free(model);
}

TEST(filters_choose_events)
{
    mtprof_model *model = mm_model();
    *mm_add(model, "ProfilerStep#7", 0, 100).kind = MTPROF_EVENT_KIND_STEP;
    mm_event event = mm_add(model, "aten::add", 1, 11);
    *event.parent = 0;
    *event.step = 7;
    event = mm_add(model, "aten::mul", 12, 15);
    *event.track = 1;
    *event.step = 8;
    event = mm_add(model, "aten::addmm", 20, 21);
    *event.track = 2;
    mm_set(model, MTPROF_COLUMN_MODULE, mm_name(model, "net.fc1") + 1);
    event = mm_add(model, "gemm", 30, 70);
    *event.kind = MTPROF_EVENT_KIND_KERNEL;
    *event.device = 1;
    *event.track = MM_QUEUE;
#define OPTIONS(...)                                                \
    {                                                               \
        .struct_size = sizeof(mtprof_averages_options), __VA_ARGS__ \
    }
    const struct {
        mtprof_averages_options options;
        const char *keys;
    } cases[] = {
        {OPTIONS(.name = "aten::add*"), "aten::add aten::addmm"},
        {OPTIONS(.name = "aten::???"), "aten::add aten::mul"},
        {OPTIONS(.name = "[!a]*"), "ProfilerStep* gemm"},
        {OPTIONS(.name = "ProfilerStep#[0-9]"), "ProfilerStep*"},
        {OPTIONS(.name = "nothing"), ""},
        {OPTIONS(.thread = "102"), "aten::mul"},
        {OPTIONS(.thread = "#3"), "aten::addmm"},
        {OPTIONS(.thread = "m*n"), "ProfilerStep* aten::add"},
        {OPTIONS(.module_name = "net.*"), "aten::addmm"},
        {OPTIONS(.steps_given = 1, .first_step = 7, .last_step = 8), "aten::add aten::mul"},
        {OPTIONS(.steps_given = 1, .first_step = -1, .last_step = -1),
         "ProfilerStep* aten::addmm gemm"},
        {OPTIONS(.top_level = 1), "ProfilerStep* aten::mul aten::addmm gemm"},
        {OPTIONS(.min_ns = 10), "ProfilerStep* aten::add gemm"},
        {OPTIONS(.min_ns = 11, .name = "aten*"), ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_averages *averages = group(model, &cases[i].options);
        if (strcmp(keys_of(averages), cases[i].keys) != 0) {
            FAIL("case %zu: '%s', expected '%s'", i, keys_of(averages), cases[i].keys);
        }
        mtprof_averages_free(averages);
        /* and the same events when each is a row */
        REQUIRE_OK(mtprof_averages_from_events(model, &cases[i].options, &averages));
        CHECK_EQ_STR(keys_of(averages), cases[i].keys);
        mtprof_averages_free(averages);
    }
    mtprof_model_free(model);
}

TEST(wrong_options_are_told)
{
    mtprof_model *model = mm_model();
    mtprof_averages *averages = (void *)model;
    const mtprof_averages_options cases[] = {
        OPTIONS(.group = 1 << 9),
        OPTIONS(.steps_given = 1, .first_step = 5, .last_step = 4),
        OPTIONS(.thread = "#x"),
        {.struct_size = 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ_I64(mtprof_averages_new(model, &cases[i], &averages), MTPROF_EINVAL);
        CHECK_EQ_PTR(averages, NULL);
    }
    CHECK_EQ_I64(mtprof_averages_new(NULL, NULL, &averages), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_new(model, NULL, NULL), MTPROF_EINVAL);
    mtprof_averages_free(NULL);
    mtprof_model_free(model);
}

/* ---- device time, memory, FLOPs -------------------------------------------------------------- */

TEST(further_columns_are_added_up)
{
    mtprof_model *model = mm_model();
    model->info.device_type = "NPU";
    for (uint32_t i = 0; i < 3; i++) {
        mm_add(model, "aten::mm", i * 10, i * 10 + 5);
        mm_set(model, MTPROF_COLUMN_FLOPS, 64);
        mm_set(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, 100);
        mm_set(model, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE, (uint64_t)-7);
        mm_set(model, MTPROF_COLUMN_RECORD_SCOPE, 7);
    }
    mm_event work = mm_add(model, "gemm", 50, 57);
    *work.kind = MTPROF_EVENT_KIND_KERNEL;
    *work.device = 1;
    *work.track = MM_QUEUE;
    mm_set(model, MTPROF_COLUMN_LINK, 1); /* launched by the second op */
    mtprof_averages *averages = group(model, NULL);
    CHECK_EQ_STR(keys_of(averages), "aten::mm gemm");
    mtprof_row row = row_at(averages, 0);
    CHECK_EQ_U64(row.flops, 192);
    CHECK_EQ_I64(row.self_cpu_memory, 300);
    CHECK_EQ_I64(row.cpu_memory, 300);
    CHECK_EQ_I64(row.self_device_memory, -21);
    CHECK_EQ_I64(row.device_memory, -21);
    CHECK_EQ_I64(row.device_ns, 7);
    CHECK_EQ_I64(row.self_device_ns, 7);
    CHECK_EQ_U64(row.record_scope, 7);
    CHECK_EQ_I64(row_at(averages, 1).device_ns, 7);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

/* ---- the list -------------------------------------------------------------------------------- */

static mtprof_model *three_ops(void)
{
    mtprof_model *model = mm_model();
    mm_add(model, "a", 0, 10);
    mm_add(model, "b", 10, 40);
    mm_add(model, "c", 40, 50);
    mm_add(model, "c", 50, 90);
    mm_add(model, "a", 90, 130);
    return model;
}

TEST(sorting_is_stable_and_can_be_undone)
{
    mtprof_model *model = three_ops(); /* a: 50 in 2, b: 30 in 1, c: 50 in 2 */
    mtprof_averages *averages = group(model, NULL);
    const struct {
        const char *key, *order;
    } cases[] = {
        {"cpu_time_total", "a c b"},
        {"cpu_time", "b a c"},
        {"cpu_time_avg", "b a c"},
        {"self_cpu_time", "a c b"},
        {"key", "c b a"},
        {NULL, "a b c"},
        {"self_cpu_time_total", "a c b"},
        {"count", "a c b"},
        {"min", "b a c"},
        {"p50", "b a c"},
        {"max", "a c b"},
        {NULL, "a b c"},
        {"cuda_time_total", "a b c"},
        {"npu_time", "a b c"},
        {"input_shapes", "a b c"},
        {"self_gpu_memory_usage", "a b c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        REQUIRE_OK(mtprof_averages_sort(averages, cases[i].key));
        if (strcmp(keys_of(averages), cases[i].order) != 0) {
            FAIL("case %zu: '%s', expected '%s'", i, keys_of(averages), cases[i].order);
        }
    }
    CHECK_EQ_I64(mtprof_averages_sort(averages, "foo"), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "'FunctionEventAvg' object has no attribute 'foo'");
    static const char *const fields[] = {"cpu_time_total_ns", "module", "stack", "step", "kind"};
    for (size_t i = 0; i < MT_COUNT(fields); i++) { /* of CSV and JSON, no attributes of torch */
        CHECK_EQ_I64(mtprof_averages_sort(averages, fields[i]), MTPROF_EINVAL);
    }
    CHECK_EQ_STR(keys_of(averages), "a b c");
    mtprof_averages_free(averages);
    REQUIRE_OK(mtprof_averages_from_events(model, NULL, &averages));
    CHECK_EQ_I64(mtprof_averages_sort(averages, "cuda_foo"), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message,
                 "'FunctionEvent' object has no attribute 'device_foo'");
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(the_total_has_the_last_rows_identity)
{
    mtprof_model *model = three_ops();
    *mm_add(model, "z", 200, 203).kind = MTPROF_EVENT_KIND_SCOPE;
    mtprof_averages *averages = group(model, NULL);
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_total(averages, &row));
    CHECK_EQ_STR(row.key.bytes, "Total");
    CHECK_EQ_U64(row.name, UINT32_MAX);
    CHECK_EQ_U64(row.count, 6);
    CHECK_EQ_I64(row.cpu_ns, 133);
    CHECK_EQ_I64(row.self_cpu_ns, 133);
    CHECK_EQ_I64(row.min_ns, 3);
    CHECK_EQ_I64(row.max_ns, 40);
    CHECK_EQ_U64(row.is_user_annotation, 1);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(events_as_rows)
{
    mtprof_model *model = three_ops();
    mm_set(model, MTPROF_COLUMN_FLOPS, 8);
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_from_events(model, NULL, &averages));
    CHECK_EQ_STR(keys_of(averages), "a b c c a");
    CHECK_EQ_U64(row_at(averages, 4).flops, 8);
    CHECK_EQ_U64(row_at(averages, 3).flops, 0);
    CHECK_EQ_I64(row_at(averages, 3).cpu_ns, 40);
    CHECK_EQ_U64(row_at(averages, 3).first_event, 3);
    int64_t ns = 0;
    CHECK_OK(mtprof_averages_get_quantile(averages, 3, 0.5, &ns));
    CHECK_EQ_I64(ns, 40);
    CHECK_EQ_PTR(mtprof_averages_model(averages), model);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

/* A caller with a shorter struct gets as much as it has room for. */
TEST(no_byte_past_struct_size_is_written)
{
    mtprof_model *model = three_ops();
    mtprof_averages *averages = group(model, NULL);
    mtprof_row row;
    memset(&row, 0x5A, sizeof row);
    row.struct_size = offsetof(mtprof_row, count);
    CHECK_OK(mtprof_averages_get_row(averages, 1, &row));
    CHECK_EQ_STR(row.key.bytes, "b");
    CHECK_EQ_U64(row.count, 0x5A5A5A5A5A5A5A5A);
    CHECK_EQ_U64(row.struct_size, offsetof(mtprof_row, count));
    row.struct_size = 0;
    CHECK_EQ_I64(mtprof_averages_get_row(averages, 1, &row), MTPROF_EINVAL);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

/* ---- quantiles and noise --------------------------------------------------------------------- */

TEST(quantiles_are_nearest_ranks)
{
    mtprof_model *model = mm_model();
    for (int64_t i = 0; i < 100; i++) { /* durations 1 to 100 in a mixed order */
        mm_add(model, "op", i * 1000, i * 1000 + 1 + i * 37 % 100);
    }
    mm_add(model, "one", 0, 5);
    mtprof_averages *averages = group(model, NULL);
    const struct {
        double q;
        int64_t ns;
    } cases[] = {{0, 1},    {0.001, 1}, {0.01, 1},   {0.011, 2}, {0.07, 7}, {0.29, 29},
                 {0.5, 50}, {0.58, 58}, {0.505, 51}, {0.99, 99}, {1, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ns = -1;
        CHECK_OK(mtprof_averages_get_quantile(averages, 0, cases[i].q, &ns));
        CHECK_EQ_I64(ns, cases[i].ns);
        CHECK_OK(mtprof_averages_get_quantile(averages, 1, cases[i].q, &ns));
        CHECK_EQ_I64(ns, 5);
    }
    int64_t ns = 0;
    CHECK_EQ_I64(mtprof_averages_get_quantile(averages, 0, 1.01, &ns), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_get_quantile(averages, 0, -0.01, &ns), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_get_quantile(averages, 2, 0.5, &ns), MTPROF_EINVAL);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(noise_is_over_steps)
{
    mtprof_model *model = mm_model();
    /* Self times 10 + 20, 50, 30 in steps 1, 2, 4; one event outside every step; step 1 comes again
     * late, from another thread. */
    static const struct {
        int64_t ns;
        int32_t step;
    } events[] = {{10, 1}, {50, 2}, {30, 4}, {20, 1}, {999, -1}};
    for (size_t i = 0; i < 5; i++) {
        *mm_add(model, "op", (int64_t)i * 1000, (int64_t)i * 1000 + events[i].ns).step =
            events[i].step;
    }
    mm_event work = mm_add(model, "gemm", 9000, 9040);
    *work.kind = MTPROF_EVENT_KIND_KERNEL;
    *work.device = 1;
    *work.self = 0;
    *work.step = 2;
    mtprof_averages *averages = group(model, NULL);
    mtprof_row_noise noise = {.struct_size = sizeof noise};
    REQUIRE_OK(mtprof_averages_get_noise(averages, 0, &noise));
    CHECK_EQ_U64(noise.steps, 3);
    CHECK_NEAR_F64(noise.mean_ns, 110.0 / 3, 1e-9);
    CHECK_NEAR_F64(noise.deviation_ns, 11.547005383792516, 1e-9);
    CHECK_NEAR_F64(noise.mean_calls, 4.0 / 3, 1e-12);
    CHECK_NEAR_F64(noise.deviation_calls, 0.5773502691896258, 1e-12);
    REQUIRE_OK(mtprof_averages_get_noise(averages, 1, &noise));
    CHECK_EQ_U64(noise.steps, 1);
    CHECK_NEAR_F64(noise.mean_ns, 40, 1e-12);
    CHECK_NEAR_F64(noise.deviation_ns, 0, 0);
    CHECK_EQ_I64(mtprof_averages_get_noise(averages, 2, &noise), MTPROF_EINVAL);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

/* ---- many readers ---------------------------------------------------------------------------- */

static void *read_quantiles(void *argument)
{
    mtprof_averages *averages = argument;
    for (uint32_t round = 0; round < 200; round++) {
        int64_t ns = 0;
        uint32_t index = round % mtprof_averages_count(averages);
        CHECK_OK(mtprof_averages_get_quantile(averages, index, 1, &ns));
        CHECK_EQ_I64(ns, row_at(averages, index).max_ns);
    }
    return NULL;
}

TEST(quantiles_from_several_threads)
{
    mtprof_model *model = mm_model();
    for (int64_t i = 0; i < 3000; i++) {
        char name[2] = {(char)('a' + i % 7), '\0'};
        mm_add(model, name, i, i + 1 + i * 31 % 500);
    }
    mtprof_averages *averages = group(model, NULL);
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, read_quantiles, averages) == 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}
