/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling: order, parents, folding, ties and twins, first by hand, then random runs against an
 * oracle that follows the rules word for word and takes its time.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "mtprof/model/events/event.h"
#include "support/traces/run_maker.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOP = MTPROF_EVENT_FLAG_TOP,
    OP = MTPROF_EVENT_KIND_OP,
    SCOPE = MTPROF_EVENT_KIND_SCOPE,
    RUNTIME = MTPROF_EVENT_KIND_RUNTIME,
    KERNEL = MTPROF_EVENT_KIND_KERNEL,
    QUEUE = RM_THREADS /* the first queue's track */
};

static const uint32_t *link_of(const mtprof_model *model)
{
    return model->columns.extra[MTPROF_COLUMN_LINK];
}

static void check_u32(const char *what, const uint32_t *values, size_t n, const uint32_t *expected)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != expected[i]) {
            FAIL("%s of event %zu is %u, expected %u", what, i, values[i], expected[i]);
        }
    }
}

#define CHECK_U32(values, n, ...) check_u32(#values, (values), (n), (const uint32_t[]){__VA_ARGS__})

/* ---- order ----------------------------------------------------------------------------------- */

TEST(no_runs_make_empty_columns)
{
    mtprof_model *model = rm_model(true);
    mtprof__run empty = {.order = 1};
    REQUIRE_OK(mtprof__model_assemble(model, NULL, 0));
    CHECK_EQ_U64(model->columns.n, 0);
    CHECK(model->columns.start_ns != NULL);
    REQUIRE_OK(mtprof__model_assemble(model, &empty, 1));
    CHECK_EQ_U64(model->columns.n, 0);
    CHECK(model->columns.flags != NULL);
    rm_free(model);
}

TEST(a_sorted_run_keeps_its_arrays)
{
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    rm_add(&run, &(rm_event){.start = 1, .end = 9, .self = 4, .index = 0, .flags = TOP});
    rm_add(&run, &(rm_event){.start = 2, .end = 5, .self = 3, .parent = 1, .name = 1, .index = 1});
    rm_add(&run, &(rm_event){.start = 5, .end = 6, .self = 1, .parent = 1, .name = 1, .index = 2});
    void *flops;
    REQUIRE_OK(mtprof__columns_extra(&run.columns, MTPROF_COLUMN_FLOPS, &flops));
    REQUIRE_OK(mtprof__model_assemble(model, &run, 1));
    CHECK_EQ_U64(model->columns.n, 3);
    CHECK_EQ_PTR(model->columns.extra[MTPROF_COLUMN_FLOPS], flops);
    CHECK_EQ_PTR(run.columns.start_ns, NULL);
    CHECK_U32(model->columns.parent, 3, MTPROF_NO_EVENT, 0, 0);
    CHECK_EQ_PTR(model->columns.extra[MTPROF_COLUMN_LINK], NULL);
    CHECK_EQ_U64(model->findings.events, 3);
    rm_free(model);
}

TEST(ties_go_by_end_then_index_then_run_then_place)
{
    mtprof_model *model = rm_model(false);
    mtprof__run runs[3] = {{.order = 9}, {.order = 2}, {.order = 2}};
    /* One run that is not sorted: two events began in one tick, the shorter one first. */
    rm_add(&runs[0], &(rm_event){.start = 5, .end = 5, .track = 0, .index = 3, .step = 30});
    rm_add(&runs[0],
           &(rm_event){.start = 5, .end = 8, .self = 3, .index = 7, .step = 31, .flags = TOP});
    rm_add(&runs[1], &(rm_event){.start = 5, .end = 5, .track = 1, .index = 3, .step = 40});
    rm_add(&runs[1], &(rm_event){.start = 5, .end = 5, .track = 1, .index = 2, .step = 41});
    rm_add(&runs[1], &(rm_event){.start = 5, .end = 5, .track = 1, .index = 3, .step = 42});
    rm_add(&runs[2], &(rm_event){.start = 5, .end = 5, .track = 2, .index = 3, .step = 50});
    rm_add(&runs[2], &(rm_event){.start = -7, .end = -7, .track = 2, .index = 9, .step = 51});
    REQUIRE_OK(mtprof__model_assemble(model, runs, 3));
    REQUIRE_EQ_U64(model->columns.n, 7);
    CHECK_U32((const uint32_t *)model->columns.step, 7, 51, 31, 41, 40, 42, 50, 30);
    rm_free(model);
}

TEST(extra_columns_are_merged_with_none_where_they_were_absent)
{
    mtprof_model *model = rm_model(false);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    void *sequence;
    void *device;
    rm_add(&runs[0], &(rm_event){.start = 2, .end = 2});
    rm_add(&runs[0], &(rm_event){.start = 4, .end = 4, .index = 1});
    rm_add(&runs[1], &(rm_event){.start = 1, .end = 1, .index = 2});
    rm_add(&runs[1], &(rm_event){.start = 3, .end = 3, .index = 3});
    REQUIRE_OK(mtprof__columns_extra(&runs[0].columns, MTPROF_COLUMN_SEQUENCE, &sequence));
    REQUIRE_OK(mtprof__columns_extra(&runs[1].columns, MTPROF_COLUMN_MEMORY_DEVICE, &device));
    ((int64_t *)sequence)[1] = 77;
    ((uint8_t *)device)[0] = 3;
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2));
    const int64_t *sequences = model->columns.extra[MTPROF_COLUMN_SEQUENCE];
    const uint8_t *devices = model->columns.extra[MTPROF_COLUMN_MEMORY_DEVICE];
    REQUIRE(sequences != NULL && devices != NULL);
    CHECK_EQ_MEM(sequences, ((int64_t[]){-1, -1, -1, 77}), 32);
    CHECK_EQ_MEM(devices, ((uint8_t[]){3, 0, 0, 0}), 4);
    CHECK_EQ_PTR(model->columns.extra[MTPROF_COLUMN_FLOPS], NULL);
    rm_free(model);
}

TEST(owners_of_allocations_are_renumbered)
{
    mtprof_model *model = rm_model(false);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    rm_add(&runs[0], &(rm_event){.start = 5, .end = 9, .self = 2, .name = 1, .flags = TOP});
    rm_add(&runs[0],
           &(rm_event){.start = 6, .end = 8, .self = 2, .name = 1, .index = 1, .parent = 1});
    rm_add(&runs[1], &(rm_event){.start = 1, .end = 1, .index = 2});
    model->n_points = 4;
    model->points = calloc(4, sizeof *model->points);
    REQUIRE(model->points != NULL);
    for (uint32_t i = 0; i < 4; i++) {
        model->points[i].kind = MTPROF_EVENT_KIND_ALLOC;
        model->points[i].owner = i;
    }
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2));
    CHECK_EQ_U64(model->columns.n, 2);
    CHECK_EQ_U64(model->points[0].owner, 0);
    CHECK_EQ_U64(model->points[1].owner, 2);
    CHECK_EQ_U64(model->points[2].owner, 2); /* folded: its parent's */
    CHECK_EQ_U64(model->points[3].owner, 1);
    rm_free(model);
}

/* ---- folding --------------------------------------------------------------------------------- */

static void add_chain(mtprof__run *run)
{
    /* a > a > a > (b, c): the three are one. */
    rm_add(run,
           &(rm_event){.start = 0, .end = 100, .self = 10, .name = 1, .kind = OP, .flags = TOP});
    rm_add(run, &(rm_event){.start = 5,
                            .end = 95,
                            .self = 20,
                            .name = 1,
                            .kind = OP,
                            .index = 1,
                            .parent = 1,
                            .flags = MTPROF_EVENT_FLAG_LAUNCHES});
    rm_add(
        run,
        &(rm_event){
            .start = 10, .end = 80, .self = 50, .name = 1, .kind = SCOPE, .index = 2, .parent = 2});
    rm_add(run,
           &(rm_event){
               .start = 20, .end = 30, .self = 10, .name = 2, .kind = OP, .index = 3, .parent = 3});
    rm_add(run,
           &(rm_event){
               .start = 40, .end = 50, .self = 10, .name = 3, .kind = OP, .index = 4, .parent = 3});
}

TEST(only_children_of_the_same_name_fold_to_a_fixed_point)
{
    for (int keep = 0; keep < 2; keep++) {
        mtprof_model *model = rm_model(true);
        mtprof__run run = {.order = 1};
        void *memory;
        add_chain(&run);
        REQUIRE_OK(mtprof__columns_extra(&run.columns, MTPROF_COLUMN_ALLOCATED_SELF_CPU, &memory));
        for (int i = 0; i < 5; i++) {
            ((int64_t *)memory)[i] = 1 << i;
        }
        model->options.keep_duplicates = (uint32_t)keep;
        REQUIRE_OK(mtprof__model_assemble(model, &run, 1));
        const mtprof__columns *columns = &model->columns;
        REQUIRE_EQ_U64(columns->n, keep ? 5 : 3);
        CHECK_EQ_U64(model->findings.collapsed, keep ? 0 : 2);
        CHECK_EQ_U64(model->findings.unmatched, 1);
        if (!keep) {
            CHECK_EQ_I64(columns->self_ns[0], 80);
            CHECK_EQ_U64(columns->flags[0],
                         TOP | MTPROF_EVENT_FLAG_COLLAPSED | MTPROF_EVENT_FLAG_LAUNCHES);
            CHECK_U32(columns->parent, 3, MTPROF_NO_EVENT, 0, 0);
            CHECK_U32(columns->index, 3, 0, 3, 4);
            const int64_t *self = columns->extra[MTPROF_COLUMN_ALLOCATED_SELF_CPU];
            CHECK_EQ_MEM(self, ((int64_t[]){7, 8, 16}), 24);
        }
        rm_free(model);
    }
}

/* A parent and its only child of the same name, but for what `bend` changes. */
static uint64_t collapsed_after(void (*bend)(mtprof__run *run))
{
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    rm_add(&run, &(rm_event){.end = 100, .self = 90, .name = 1, .kind = OP, .flags = TOP});
    rm_add(&run,
           &(rm_event){
               .start = 20, .end = 30, .self = 10, .name = 1, .kind = OP, .parent = 1, .index = 1});
    bend(&run);
    REQUIRE_OK(mtprof__model_assemble(model, &run, 1));
    uint64_t collapsed = model->findings.collapsed;
    rm_free(model);
    return collapsed;
}

static void bend_nothing(mtprof__run *run)
{
    (void)run;
}

static void bend_sibling(mtprof__run *run)
{
    run->columns.self_ns[0] -= 5;
    rm_add(run,
           &(rm_event){
               .start = 40, .end = 45, .self = 5, .name = 2, .kind = OP, .parent = 1, .index = 2});
}

static void bend_launch(mtprof__run *run)
{
    rm_add(run, &(rm_event){.start = 40,
                            .end = 40,
                            .name = 2,
                            .kind = MTPROF_EVENT_KIND_LAUNCH,
                            .parent = 1,
                            .index = 2});
}

static void bend_function(mtprof__run *run)
{
    rm_add(run, &(rm_event){.start = 40,
                            .end = 40,
                            .name = 2,
                            .kind = MTPROF_EVENT_KIND_FUNCTION,
                            .parent = 1,
                            .index = 2});
}

static void bend_async_sibling(mtprof__run *run)
{
    rm_add(run, &(rm_event){.start = 40,
                            .end = 45,
                            .name = 2,
                            .kind = OP,
                            .parent = 1,
                            .index = 2,
                            .flags = MTPROF_EVENT_FLAG_ASYNC});
}

static void bend_async_child(mtprof__run *run)
{
    run->columns.self_ns[0] = 100;
    run->columns.self_ns[1] = 0;
    run->columns.flags[1] = MTPROF_EVENT_FLAG_ASYNC;
}

static void bend_async_parent(mtprof__run *run)
{
    run->columns.self_ns[0] = 0;
    run->columns.flags[0] = MTPROF_EVENT_FLAG_ASYNC;
    run->columns.flags[1] = TOP;
}

static void bend_later_child(mtprof__run *run) /* named as parent when it was over */
{
    run->columns.self_ns[0] = 100;
    run->columns.start_ns[1] = 200;
    run->columns.end_ns[1] = 210;
    run->columns.flags[1] = TOP;
}

static void bend_function_child(mtprof__run *run) /* takes no time from what it is in */
{
    run->columns.self_ns[0] = 100;
    run->columns.kind[1] = MTPROF_EVENT_KIND_FUNCTION;
}

TEST(what_folds_and_what_does_not)
{
    CHECK_EQ_U64(collapsed_after(bend_nothing), 1);
    CHECK_EQ_U64(collapsed_after(bend_sibling), 0);
    CHECK_EQ_U64(collapsed_after(bend_launch), 0);
    CHECK_EQ_U64(collapsed_after(bend_function), 1);
    CHECK_EQ_U64(collapsed_after(bend_async_sibling), 1);
    CHECK_EQ_U64(collapsed_after(bend_async_child), 0);
    CHECK_EQ_U64(collapsed_after(bend_async_parent), 0);
    CHECK_EQ_U64(collapsed_after(bend_later_child), 0);
    CHECK_EQ_U64(collapsed_after(bend_function_child), 0);
}

TEST(a_long_chain_folds_in_linear_time)
{
    enum {
        N = 300000
    };
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    for (uint32_t i = 0; i < N; i++) {
        rm_add(&run, &(rm_event){.start = i,
                                 .end = 2 * N - i,
                                 .self = i + 1 < N ? 2 : 2 * N - 2 * i,
                                 .name = 1,
                                 .kind = OP,
                                 .parent = i,
                                 .index = i,
                                 .flags = i == 0 ? TOP : 0});
    }
    REQUIRE_OK(mtprof__model_assemble(model, &run, 1));
    CHECK_EQ_U64(model->columns.n, 1);
    CHECK_EQ_I64(model->columns.self_ns[0], 2 * N);
    rm_free(model);
}

/* ---- ties and twins -------------------------------------------------------------------------- */

/* A thread: scope a { op b { runtime c }, op d }, and two queues of work. */
static void add_device_runs(mtprof__run runs[3])
{
    runs[0] = (mtprof__run){.order = 1};
    runs[1] = (mtprof__run){.order = 2};
    runs[2] = (mtprof__run){.order = 3};
    rm_add(
        &runs[0],
        &(rm_event){
            .start = 0, .end = 100, .self = 50, .name = 1, .kind = SCOPE, .step = 4, .flags = TOP});
    rm_add(&runs[0],
           &(rm_event){
               .start = 10, .end = 50, .self = 30, .name = 2, .kind = OP, .parent = 1, .index = 1});
    rm_add(&runs[0], &(rm_event){.start = 20,
                                 .end = 30,
                                 .self = 10,
                                 .name = 3,
                                 .kind = RUNTIME,
                                 .parent = 2,
                                 .index = 2,
                                 .flags = MTPROF_EVENT_FLAG_LAUNCHES});
    rm_add(&runs[0], &(rm_event){.start = 60,
                                 .end = 70,
                                 .self = 10,
                                 .name = 4,
                                 .kind = OP,
                                 .parent = 1,
                                 .index = 3,
                                 .flags = MTPROF_EVENT_FLAG_LAUNCHES});
    rm_add(&runs[0], &(rm_event){.start = 200,
                                 .end = 210,
                                 .self = 10,
                                 .name = 5,
                                 .kind = OP,
                                 .index = 4,
                                 .flags = MTPROF_EVENT_FLAG_LAUNCHES | TOP});
    mtprof__links_add(&runs[0].hosts, 102, 2);
    mtprof__links_add(&runs[0].hosts, 103, 3);
    mtprof__links_add(&runs[0].hosts, 104, 4);
    for (uint32_t q = 0; q < 2; q++) {
        rm_add(&runs[1 + q], &(rm_event){.start = 40,
                                         .end = 45,
                                         .name = 6,
                                         .kind = KERNEL,
                                         .device = 1,
                                         .track = QUEUE + q});
        rm_add(&runs[1 + q], &(rm_event){.start = 300,
                                         .end = 309,
                                         .name = 7,
                                         .device = 1,
                                         .kind = MTPROF_EVENT_KIND_COPY,
                                         .track = QUEUE + q});
        mtprof__links_add(&runs[1 + q].works, 102, 0);
        mtprof__links_add(&runs[1 + q].works, q == 0 ? 103 : 999, 1);
    }
    rm_add(&runs[2], &(rm_event){.start = 400,
                                 .end = 401,
                                 .name = 7,
                                 .device = 1,
                                 .kind = MTPROF_EVENT_KIND_SET,
                                 .track = QUEUE + 1});
    mtprof__links_add(&runs[2].works, 0, 2); /* no key: no launch is missed */
    rm_add(&runs[2], &(rm_event){.start = 500,
                                 .end = 501,
                                 .name = 7,
                                 .device = 1,
                                 .kind = MTPROF_EVENT_KIND_SYNC,
                                 .track = QUEUE + 1});
    mtprof__links_add(&runs[2].works, 104, 3); /* answers no launch */
}

static size_t find_event(const mtprof_model *model, uint8_t kind, int64_t start, uint32_t track)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < model->columns.n; i++) {
        if (model->columns.kind[i] == kind && model->columns.start_ns[i] == start &&
            model->columns.track[i] == track) {
            CHECK_EQ_U64(found, SIZE_MAX);
            found = i;
        }
    }
    REQUIRE(found != SIZE_MAX);
    return found;
}

TEST(device_work_of_our_traces_belongs_to_ops)
{
    mtprof_model *model = rm_model(true);
    mtprof__run runs[3];
    add_device_runs(runs);
    REQUIRE_OK(mtprof__model_assemble(model, runs, 3));
    const mtprof__columns *columns = &model->columns;
    const uint32_t *link = link_of(model);
    REQUIRE(link != NULL);
    CHECK_EQ_U64(columns->n, 5 + 2 + 4 + 2);
    size_t scope = find_event(model, SCOPE, 0, 0);
    size_t op = find_event(model, OP, 10, 0);
    size_t call = find_event(model, RUNTIME, 20, 0);
    size_t second = find_event(model, OP, 60, 0);
    size_t lonely = find_event(model, OP, 200, 0);
    size_t kernel = find_event(model, KERNEL, 40, QUEUE);
    size_t copy = find_event(model, MTPROF_EVENT_KIND_COPY, 300, QUEUE);
    size_t orphan = find_event(model, MTPROF_EVENT_KIND_COPY, 300, QUEUE + 1);
    CHECK_EQ_U64(link[kernel], op);
    CHECK_EQ_U64(link[call], op);
    CHECK_EQ_U64(link[copy], second);
    CHECK_EQ_U64(link[orphan], MTPROF_NO_EVENT);
    CHECK_EQ_U64(link[op], MTPROF_NO_EVENT);
    CHECK_EQ_U64(link[find_event(model, MTPROF_EVENT_KIND_SYNC, 500, QUEUE + 1)], lonely);
    CHECK((columns->flags[call] & MTPROF_EVENT_FLAG_MATCHED) != 0);
    CHECK((columns->flags[op] & MTPROF_EVENT_FLAG_MATCHED) == 0);
    CHECK((columns->flags[kernel] & MTPROF_EVENT_FLAG_MATCHED) != 0);
    CHECK((columns->flags[orphan] & MTPROF_EVENT_FLAG_MATCHED) == 0);
    CHECK((columns->flags[lonely] & MTPROF_EVENT_FLAG_MATCHED) == 0);
    CHECK_EQ_U64(model->findings.unmatched, 1);
    CHECK_EQ_U64(model->findings.orphans, 1);

    size_t twin = find_event(model, MTPROF_EVENT_KIND_ANNOTATION, 40, QUEUE);
    CHECK_EQ_I64(columns->end_ns[twin], 309);
    CHECK_EQ_U64(columns->name[twin], 1);
    CHECK_EQ_I64(columns->step[twin], 4);
    CHECK_EQ_U64(columns->device[twin], 1);
    CHECK_EQ_U64(columns->index[twin], MTPROF_NO_EVENT);
    CHECK_EQ_U64(link[twin], scope);
    twin = find_event(model, MTPROF_EVENT_KIND_ANNOTATION, 40, QUEUE + 1);
    CHECK_EQ_I64(columns->end_ns[twin], 45);
    CHECK(twin < find_event(model, KERNEL, 40, QUEUE + 1)); /* around it, so before it */
    REQUIRE_EQ_U64(model->n_launches, 4);
    rm_free(model);
}

TEST(device_work_of_foreign_traces_belongs_to_the_event_named)
{
    mtprof_model *model = rm_model(false);
    mtprof__run runs[3];
    add_device_runs(runs);
    REQUIRE_OK(mtprof__model_assemble(model, runs, 3));
    CHECK_EQ_U64(model->columns.n, 5 + 2 + 4);
    CHECK_EQ_U64(link_of(model)[find_event(model, KERNEL, 40, QUEUE)],
                 find_event(model, RUNTIME, 20, 0));
    CHECK_EQ_U64(link_of(model)[find_event(model, RUNTIME, 20, 0)], MTPROF_NO_EVENT);
    CHECK_EQ_U64(model->n_launches, 0);
    rm_free(model);
}

TEST(device_work_of_a_folded_event_moves_to_its_parent)
{
    mtprof_model *model = rm_model(true);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    add_chain(&runs[0]);
    mtprof__links_add(&runs[0].hosts, 51, 1);
    mtprof__links_add(&runs[0].hosts, 50, 0);
    for (uint32_t i = 0; i < 2; i++) {
        rm_add(
            &runs[1],
            &(rm_event){.start = 40 + i, .end = 45, .kind = KERNEL, .device = 1, .track = QUEUE});
        mtprof__links_add(&runs[1].works, 50 + i, i);
    }
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2));
    CHECK_EQ_U64(model->columns.n, 3 + 2);
    CHECK_EQ_U64(link_of(model)[find_event(model, KERNEL, 40, QUEUE)], 0);
    CHECK_EQ_U64(link_of(model)[find_event(model, KERNEL, 41, QUEUE)], 0);
    CHECK_EQ_U64(model->findings.unmatched, 0);
    CHECK_EQ_U64(model->launches[0].host, 0);
    CHECK_EQ_U64(model->launches[1].host, 0);
    rm_free(model);
}

TEST(scopes_nested_deep_around_many_queues_do_not_explode)
{
    enum {
        DEPTH = 3000,
        WORK = 3000
    };
    mtprof_model *model = rm_model(true);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    for (uint32_t i = 0; i < DEPTH; i++) {
        rm_add(&runs[0], &(rm_event){.start = i,
                                     .end = 2 * DEPTH - i,
                                     .self = i + 1 < DEPTH ? 2 : 2 * DEPTH - 2 * i,
                                     .name = 1 + i % 2,
                                     .parent = i,
                                     .index = i,
                                     .flags = i == 0 ? TOP : 0});
    }
    mtprof__links_add(&runs[0].hosts, 7, DEPTH - 1);
    for (uint32_t i = 0; i < WORK; i++) {
        uint32_t track;
        REQUIRE_OK(mtprof__dictionary_queue_track(&model->dictionary, 1, i, &track));
        rm_add(&runs[1],
               &(rm_event){.start = i, .end = i, .kind = KERNEL, .device = 1, .track = track});
        mtprof__links_add(&runs[1].works, 7, i);
    }
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2)); /* 9 million would be asked for */
    CHECK(model->columns.n > WORK + DEPTH);
    CHECK(model->columns.n < 1200000);
    CHECK(model->findings.left_out > 0);
    rm_free(model);
}

/* ---- parents in other runs ------------------------------------------------------------------- */

TEST(parents_in_other_runs)
{
    mtprof_model *model = rm_model(true);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    rm_add(&runs[0], &(rm_event){.start = 0, .end = 100, .self = 100, .name = 1, .flags = TOP});
    rm_add(
        &runs[1],
        &(rm_event){
            .start = 10, .end = 20, .self = 10, .name = 1, .track = 1, .flags = TOP, .index = 1});
    rm_add(
        &runs[1],
        &(rm_event){
            .start = 30, .end = 40, .self = 10, .name = 1, .track = 0, .flags = TOP, .index = 2});
    runs[0].columns.end_ns[0] = 25; /* so that MDL2 holds for the thread that went on elsewhere */
    runs[0].columns.self_ns[0] = 25;
    mtprof__links_add(&runs[0].hosts, 5, 0);
    mtprof__links_add(&runs[1].parents, 5, 0);
    mtprof__links_add(&runs[1].parents, 5, 1);
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2));
    CHECK_U32(model->columns.parent, 3, MTPROF_NO_EVENT, 0, 0);
    CHECK_EQ_U64(model->columns.flags[1], TOP | MTPROF_EVENT_FLAG_FOREIGN_PARENT);
    CHECK_EQ_U64(model->columns.flags[2], TOP);
    CHECK_EQ_U64(model->findings.collapsed, 0);
    rm_free(model);
}

static void check_no_circles(const mtprof_model *model)
{
    for (uint32_t i = 0; i < model->columns.n; i++) {
        uint32_t steps = 0;
        for (uint32_t at = i; at != MTPROF_NO_EVENT; at = model->columns.parent[at]) {
            REQUIRE(steps++ <= model->columns.n);
        }
    }
}

TEST(circles_of_parents_are_cut)
{
    uint64_t seed = mt_test_seed();
    for (int round = 0; round < 300; round++) {
        enum {
            RUNS = 3,
            EACH = 6
        };
        mtprof_model *model = rm_model(round % 2 == 0);
        mtprof__run runs[RUNS] = {{.order = 1}, {.order = 2}, {.order = 3}};
        for (uint32_t i = 0; i < RUNS * EACH; i++) {
            mtprof__run *run = &runs[i % RUNS];
            uint32_t place =
                rm_add(run, &(rm_event){.start = (int64_t)i,
                                        .end = (int64_t)i,
                                        .track = i % RUNS,
                                        .kind = mt_test_random(&seed) % 2 ? OP : RUNTIME,
                                        .index = i});
            mtprof__links_add(&run->hosts, i + 1, place);
            mtprof__links_add(&run->works, mt_test_random(&seed) % (RUNS * EACH + 1), place);
            if (mt_test_random(&seed) % 2) {
                mtprof__links_add(&run->parents, mt_test_random(&seed) % (RUNS * EACH) + 1, place);
            } else {
                run->columns.parent[place] = (uint32_t)(mt_test_random(&seed) % EACH);
            }
        }
        REQUIRE_OK(mtprof__model_assemble(model, runs, RUNS));
        check_no_circles(model);
        rm_free(model);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(every_refused_allocation_is_a_clean_failure)
{
    for (uint64_t nth = 1;; nth++) {
        mtprof_model *model = rm_model(true);
        mtprof__run runs[4];
        void *extra;
        add_device_runs(runs);
        runs[3] = (mtprof__run){.order = 4};
        add_chain(&runs[3]);
        for (uint32_t i = 0; i < 5; i++) {
            runs[3].columns.track[i] = 3;
            runs[3].columns.index[i] += 10;
        }
        rm_add(&runs[3], &(rm_event){.start = 40,
                                     .end = 90,
                                     .track = 3,
                                     .index = 20,
                                     .kind = OP,
                                     .flags = MTPROF_EVENT_FLAG_ASYNC}); /* out of order */
        mtprof__links_add(&runs[3].parents, 103, 5);
        REQUIRE_OK(mtprof__columns_extra(&runs[3].columns, MTPROF_COLUMN_FLOPS, &extra));
        mtb_fail_nth(nth, false);
        int status = mtprof__model_assemble(model, runs, 4);
        mtb_fail_nth(0, false);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        if (status != MTPROF_OK) {
            CHECK_EQ_U64(model->columns.n, 0);
            CHECK_EQ_PTR(model->columns.start_ns, NULL);
        }
        for (int i = 0; i < 4; i++) {
            CHECK_EQ_PTR(runs[i].columns.start_ns, NULL);
        }
        rm_free(model);
        if (status == MTPROF_OK) {
            CHECK(nth > 30);
            break;
        }
    }
}
