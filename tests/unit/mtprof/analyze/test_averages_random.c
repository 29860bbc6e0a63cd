/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouping against an oracle that takes its time, over random events and random options; and the
 * same with memory that runs out.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "model_maker.h"
#include "mtprof/analyze/averages/averages_impl.h"

#include <mtprof/averages.h>
#include <mtprof/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_EVENTS = 3000,
    MOST_ROWS = 3000
};

/* ---- random models --------------------------------------------------------------------------- */

static const char *const names[] = {"aten::add",      "aten::mm",       "fwd",          "x", "",
                                    "ProfilerStep#1", "ProfilerStep#2", "aten::is_leaf"};

static uint64_t below(uint64_t *state, uint64_t n)
{
    return mt_test_random(state) % n;
}

static void add_random_event(mtprof_model *model, uint64_t *state, int64_t *clock,
                             const uint32_t *inputs, const uint32_t *nodes)
{
    static const uint8_t kinds[] = {
        MTPROF_EVENT_KIND_OP,     MTPROF_EVENT_KIND_OP,       MTPROF_EVENT_KIND_SCOPE,
        MTPROF_EVENT_KIND_STEP,   MTPROF_EVENT_KIND_KERNEL,   MTPROF_EVENT_KIND_CALL,
        MTPROF_EVENT_KIND_MEMORY, MTPROF_EVENT_KIND_FUNCTION, MTPROF_EVENT_KIND_COPY};
    *clock += (int64_t)below(state, 50);
    int64_t duration = (int64_t)(below(state, 4) == 0 ? below(state, 1u << 30) : below(state, 300));
    mm_event event = mm_add(model, names[below(state, 8)], *clock, *clock + duration);
    *event.self = (int64_t)below(state, (uint64_t)duration + 1);
    *event.kind = kinds[below(state, sizeof kinds)];
    *event.track = (uint32_t)below(state, MM_THREADS);
    *event.step = (int32_t)below(state, 4) - 1;
    if (event.number > 0 && below(state, 2) == 0) {
        *event.parent = (uint32_t)below(state, event.number);
    }
    if (*event.kind == MTPROF_EVENT_KIND_KERNEL || *event.kind == MTPROF_EVENT_KIND_COPY) {
        *event.device = (uint8_t)(1 + below(state, 3));
        *event.track = MM_QUEUE;
    }
    mm_set(model, MTPROF_COLUMN_INPUTS, inputs[below(state, 4)]);
    mm_set(model, MTPROF_COLUMN_STACK, nodes[below(state, 5)]);
    mm_set(model, MTPROF_COLUMN_OVERLOAD, below(state, 3));
    mm_set(model, MTPROF_COLUMN_MODULE, below(state, 3));
    mm_set(model, MTPROF_COLUMN_FLOPS, below(state, 100));
    mm_set(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, (uint64_t)((int64_t)below(state, 100) - 50));
}

static mtprof_model *random_model(uint64_t *state, size_t n)
{
    mtprof_model *model = mm_model();
    uint32_t inputs[4] = {0};
    uint32_t nodes[5] = {0};
    int64_t clock = 0;
    for (size_t i = 0; i < 8; i++) {
        mm_name(model, names[i]);
    }
    for (uint32_t i = 1; i < 4; i++) { /* 2 and 3 differ only in their types */
        uint64_t words[3] = {1 | 2 << 8 | (uint64_t)i << 32, i == 1 ? 7 : 8, 9};
        REQUIRE_OK(mtprof__dictionary_inputs(&model->dictionary, words, 3, &inputs[i]));
    }
    for (uint32_t i = 1; i < 5; i++) {
        mtprof_frame frame = {.function = {i % 2 != 0 ? "f" : "g", 1}, .file = {"a.py", 4}};
        uint32_t number;
        REQUIRE_OK(mtprof__dictionary_frame(&model->dictionary, &frame, &number));
        REQUIRE_OK(mtprof__dictionary_node(&model->dictionary, i > 2 ? nodes[i - 2] : 0, number,
                                           &nodes[i]));
    }
    for (size_t i = 0; i < n; i++) {
        add_random_event(model, state, &clock, inputs, nodes);
    }
    return model;
}

static mtprof_averages_options random_options(uint64_t *state)
{
    static const char *const patterns[] = {NULL, NULL, NULL, "aten*", "*1", "[!f]*"};
    static const char *const threads[] = {NULL, NULL, NULL, "102", "#1", "w*"};
    mtprof_averages_options options = {.struct_size = sizeof options};
    options.group = below(state, 2) == 0 ? 0 : (uint32_t)below(state, 32);
    options.stack_n = below(state, 3) == 0 ? (uint32_t)below(state, 4) : 0;
    options.functions = below(state, 4) == 0;
    options.name = patterns[below(state, 6)];
    options.thread = threads[below(state, 6)];
    options.steps_given = below(state, 5) == 0;
    options.first_step = (int32_t)below(state, 2);
    options.last_step = options.first_step + (int32_t)below(state, 3);
    options.top_level = below(state, 5) == 0;
    options.min_ns = below(state, 4) == 0 ? (int64_t)below(state, 200) : 0;
    return options;
}

/* ---- the oracle ------------------------------------------------------------------------------ */

typedef struct oracle_row {
    char key[512];
    mtprof_row sums;
    int64_t *times;
    size_t n_times;
} oracle_row;

static bool is_device(const mtprof__columns *c, size_t i)
{
    return c->kind[i] == MTPROF_EVENT_KIND_KERNEL || c->kind[i] == MTPROF_EVENT_KIND_COPY;
}

static mtprof_text shown_name(const mtprof_model *model, size_t i)
{
    const mtprof__columns *c = &model->columns;
    if (c->kind[i] == MTPROF_EVENT_KIND_MEMORY) {
        return (mtprof_text){"[memory]", 8};
    }
    mtprof_text text = mtprof_model_name(model, c->name[i]);
    return strncmp(text.bytes, "ProfilerStep#", 13) == 0 ? (mtprof_text){"ProfilerStep*", 13}
                                                         : text;
}

static bool oracle_passes(const mtprof_model *model, const mtprof_averages_options *o, size_t i)
{
    const mtprof__columns *c = &model->columns;
    const char *raw = c->kind[i] == MTPROF_EVENT_KIND_MEMORY
                          ? "[memory]"
                          : mtprof_model_name(model, c->name[i]).bytes;
    if ((c->kind[i] == MTPROF_EVENT_KIND_FUNCTION && o->functions == 0) ||
        strcmp(raw, "aten::is_leaf") == 0) {
        return false;
    }
    if (o->name != NULL) {
        const char *shown = shown_name(model, i).bytes;
        bool is_aten = strncmp(raw, "aten", 4) == 0;
        bool has_1 = raw[0] != '\0' && raw[strlen(raw) - 1] == '1';
        bool no_f = raw[0] != '\0' && raw[0] != 'f';
        bool passes = strcmp(o->name, "aten*") == 0 ? is_aten
                      : strcmp(o->name, "*1") == 0  ? has_1
                                                    : no_f || (shown[0] != '\0' && shown[0] != 'f');
        if (!passes) {
            return false;
        }
    }
    if (o->thread != NULL) {
        uint32_t wanted = strcmp(o->thread, "#1") == 0 ? 0 : 1; /* 102 and "worker" are thread 1 */
        if (c->track[i] != wanted) {
            return false;
        }
    }
    if (o->steps_given != 0 && (c->step[i] < o->first_step || c->step[i] > o->last_step)) {
        return false;
    }
    return (o->top_level == 0 || c->parent[i] == MTPROF_NO_EVENT) &&
           c->end_ns[i] - c->start_ns[i] >= o->min_ns;
}

/* Everything that distinguishes rows, as one text. */
static void oracle_key(const mtprof_model *model, const mtprof_averages_options *o, size_t i,
                       char *key, size_t size)
{
    static const char *const shapes[] = {"[]", "[[7, 9]]", "[[8, 9]]", "[[8, 9]]"};
    const mtprof__columns *c = &model->columns;
    bool annotation = c->kind[i] == MTPROF_EVENT_KIND_SCOPE || c->kind[i] == MTPROF_EVENT_KIND_STEP;
    const char *type = !is_device(c, i) ? "CPU" : c->device[i] == 3 ? "CUDA" : "NPU";
    uint32_t inputs = ((uint32_t *)c->extra[MTPROF_COLUMN_INPUTS])[i];
    uint32_t node = ((uint32_t *)c->extra[MTPROF_COLUMN_STACK])[i];
    uint32_t overload = ((uint32_t *)c->extra[MTPROF_COLUMN_OVERLOAD])[i];
    uint32_t module = ((uint32_t *)c->extra[MTPROF_COLUMN_MODULE])[i];
    int used = snprintf(key, size, "%s|%s|%d|%s|%u|%u|%d|%d|", shown_name(model, i).bytes, type,
                        annotation, (o->group & MTPROF_GROUP_SHAPES) != 0 ? shapes[inputs] : "",
                        (o->group & MTPROF_GROUP_OVERLOAD) != 0 ? overload : 0,
                        (o->group & MTPROF_GROUP_MODULE) != 0 ? module : 0,
                        (o->group & MTPROF_GROUP_STEP) != 0 ? c->step[i] : 0,
                        (o->group & MTPROF_GROUP_THREAD) != 0 ? (int)c->track[i] : 0);
    for (uint32_t n = 0; n < o->stack_n && node != 0; n++) {
        mtprof_frame frame;
        uint32_t parent;
        REQUIRE(mtprof_model_stack(model, node, &parent, &frame));
        used += snprintf(key + used, size - (size_t)used, "%s,", frame.function.bytes);
        node = parent;
    }
}

static oracle_row *oracle_find(oracle_row *rows, size_t *n, const char *key, size_t event,
                               size_t most)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(rows[i].key, key) == 0) {
            return &rows[i];
        }
    }
    oracle_row *row = &rows[(*n)++];
    *row = (oracle_row){.times = calloc(most, sizeof(int64_t))};
    REQUIRE(row->times != NULL);
    snprintf(row->key, sizeof row->key, "%s", key);
    row->sums.first_event = (uint32_t)event;
    return row;
}

static size_t oracle_group(const mtprof_model *model, const mtprof_averages_options *o,
                           oracle_row *rows)
{
    const mtprof__columns *c = &model->columns;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        char key[512];
        if (!oracle_passes(model, o, i)) {
            continue;
        }
        oracle_key(model, o, i, key, sizeof key);
        oracle_row *row = oracle_find(rows, &n, key, i, c->n);
        int64_t duration = c->end_ns[i] - c->start_ns[i];
        row->times[row->n_times++] = duration;
        row->sums.count++;
        row->sums.cpu_ns += is_device(c, i) ? 0 : duration;
        row->sums.self_cpu_ns += is_device(c, i) ? 0 : c->self_ns[i];
        row->sums.device_ns += is_device(c, i) ? duration : 0;
        row->sums.flops += ((uint64_t *)c->extra[MTPROF_COLUMN_FLOPS])[i];
        row->sums.self_cpu_memory += ((int64_t *)c->extra[MTPROF_COLUMN_ALLOCATED_SELF_CPU])[i];
    }
    return n;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void compare_row(mtprof_averages *averages, uint32_t index, oracle_row *expected)
{
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_row(averages, index, &row));
    qsort(expected->times, expected->n_times, sizeof(int64_t), compare_times);
    CHECK_EQ_U64(row.first_event, expected->sums.first_event);
    CHECK_EQ_U64(row.count, expected->sums.count);
    CHECK_EQ_I64(row.cpu_ns, expected->sums.cpu_ns);
    CHECK_EQ_I64(row.self_cpu_ns, expected->sums.self_cpu_ns);
    CHECK_EQ_I64(row.device_ns, expected->sums.device_ns);
    CHECK_EQ_U64(row.flops, expected->sums.flops);
    CHECK_EQ_I64(row.self_cpu_memory, expected->sums.self_cpu_memory);
    CHECK_EQ_I64(row.min_ns, expected->times[0]);
    CHECK_EQ_I64(row.max_ns, expected->times[expected->n_times - 1]);
    for (unsigned percent = 0; percent <= 100; percent += 10) {
        int64_t ns = -1;
        size_t rank = (percent * expected->n_times + 99) / 100;
        REQUIRE_OK(mtprof_averages_get_quantile(averages, index, percent / 100.0, &ns));
        CHECK_EQ_I64(ns, expected->times[rank > 0 ? rank - 1 : 0]);
    }
}

TEST(random_events_and_options)
{
    static oracle_row rows[MOST_ROWS];
    uint64_t state = mt_test_seed();
    for (unsigned round = 0; round < (mt_test_long() ? 2000u : 120u); round++) {
        size_t n = round % 40 == 0 ? MOST_EVENTS : below(&state, 200);
        mtprof_model *model = random_model(&state, n);
        mtprof_averages_options options = random_options(&state);
        mtprof_averages *averages = NULL;
        REQUIRE_OK(mtprof_averages_new(model, &options, &averages));
        size_t n_rows = oracle_group(model, &options, rows);
        REQUIRE_EQ_U64(mtprof_averages_count(averages), n_rows);
        for (uint32_t i = 0; i < n_rows; i++) {
            compare_row(averages, i, &rows[i]);
            free(rows[i].times);
        }
        mtprof_averages_free(averages);
        mtprof_model_free(model);
    }
}

/* More names than the table of slots takes are hashed; a small table is used for that here. */
TEST(without_a_table_of_slots)
{
    uint64_t state = mt_test_seed();
    mtprof_model *model = random_model(&state, 1500);
    mtprof_averages *averages = NULL;
    mtprof__grouper grouper;
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    REQUIRE_OK(mtprof__grouper_init(&grouper, model, NULL));
    mtb_free(grouper.slots);
    grouper.slots = NULL;
    REQUIRE_OK(mtprof__grouper_run(&grouper));
    REQUIRE_EQ_U64(grouper.n_groups - 1, mtprof_averages_count(averages));
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        mtprof_row row = {.struct_size = sizeof row};
        REQUIRE_OK(mtprof_averages_get_row(averages, i, &row));
        CHECK_EQ_U64(grouper.groups[i + 1].count, row.count);
        CHECK_EQ_U64(grouper.groups[i + 1].first_event, row.first_event);
    }
    mtprof__grouper_fini(&grouper);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}

TEST(times_are_sorted)
{
    uint64_t state = mt_test_seed();
    static int64_t times[5000], expected[5000];
    for (unsigned round = 0; round < 60; round++) {
        size_t n = below(&state, 5000);
        unsigned shift = (unsigned)below(&state, 64);
        for (size_t i = 0; i < n; i++) { /* of all sizes, negative ones too */
            times[i] = expected[i] = (int64_t)(mt_test_random(&state) >> shift);
        }
        mtprof__sort_times(times, n);
        qsort(expected, n, sizeof expected[0], compare_times);
        CHECK_EQ_MEM(times, expected, n * sizeof times[0]);
    }
}

/* ---- memory that runs out -------------------------------------------------------------------- */

static int drop_bytes(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(size_t *)context += length;
    return 0;
}

/* Everything a user may ask for, until something fails. */
static mtprof_status ask_all(mtprof_model *model, const mtprof_averages_options *options,
                             bool events)
{
    mtprof_averages *averages = NULL;
    size_t bytes = 0;
    const mtprof_output output = {
        .struct_size = sizeof output, .context = &bytes, .write = drop_bytes};
    mtprof_status status = events ? mtprof_averages_from_events(model, options, &averages)
                                  : mtprof_averages_new(model, options, &averages);
    CHECK((averages != NULL) == (status == 0));
    for (uint32_t format = 0; format <= MTPROF_TABLE_MARKDOWN && status == 0; format++) {
        const mtprof_table_options table = {
            .struct_size = sizeof table, .format = format, .quantiles = 1};
        status = mtprof_averages_table(averages, &table, &output);
    }
    status = status == 0 ? mtprof_averages_sort(averages, "p99") : status;
    mtprof_row_noise noise = {.struct_size = sizeof noise};
    mtprof_row total = {.struct_size = sizeof total};
    status = status == 0 ? mtprof_averages_get_noise(averages, 0, &noise) : status;
    status = status == 0 ? mtprof_averages_get_total(averages, &total) : status;
    mtprof_averages_free(averages);
    return status;
}

TEST(every_allocation_may_fail)
{
    uint64_t state = mt_test_seed();
    mtprof_model *model = random_model(&state, 60);
    mm_add(model, "bad \xFF name\n", 1 << 30, (1 << 30) + 5);
    const mtprof_averages_options cases[] = {
        {.struct_size = sizeof cases[0]},
        {.struct_size = sizeof cases[0],
         .group = 31,
         .stack_n = 2,
         .name = "*",
         .module_name = "*",
         .thread = "m*"},
    };
    REQUIRE_OK(ask_all(model, NULL, false)); /* derived columns are the model's to fail with */
    for (size_t i = 0; i < 4; i++) {
        unsigned failures = 0;
        for (uint64_t n = 1; n < 10000; n++) {
            mtb_fail_nth(n, false);
            mtprof_status status = ask_all(model, &cases[i % 2], i >= 2);
            mtb_fail_nth(0, false);
            if (status == 0) {
                break;
            }
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
            failures++;
        }
        CHECK(failures > 10);
    }
    mtprof_model_free(model);
}

static int refuse(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    (void)length;
    return *(int *)context;
}

TEST(an_output_may_refuse)
{
    uint64_t state = mt_test_seed();
    mtprof_model *model = random_model(&state, 60);
    mtprof_averages *averages = NULL;
    int error = EPIPE;
    mtprof_output output = {.struct_size = sizeof output, .context = &error, .write = refuse};
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    CHECK_EQ_I64(mtprof_averages_table(averages, NULL, &output), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_last_error()->system_error, EPIPE);
    error = ENOSPC;
    CHECK_EQ_I64(mtprof_averages_table(averages, NULL, &output), MTPROF_ENOSPC);
    output.write = NULL;
    CHECK_EQ_I64(mtprof_averages_table(averages, NULL, &output), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_table(averages, NULL, NULL), MTPROF_EINVAL);
    output.write = drop_bytes;
    size_t bytes = 0;
    output.context = &bytes;
    const mtprof_table_options wrong[] = {
        {.struct_size = sizeof wrong[0], .format = 9},
        {.struct_size = sizeof wrong[0], .row_limit = -3},
        {.struct_size = sizeof wrong[0], .max_name_column_width = -2},
        {.struct_size = 0},
    };
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ_I64(mtprof_averages_table(averages, &wrong[i], &output), MTPROF_EINVAL);
    }
    CHECK_EQ_U64(bytes, 0);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
}
