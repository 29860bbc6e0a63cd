/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward ops and their backward ops (forward.h, FW1 to FW4), and the column FORWARD.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "mtprof/model/facts/forward.h"
#include "support/traces/run_maker.h"

enum {
    OPS = 2000,
    FAR = 1 << 20 /* numbers so far apart want one place in any table of these tests */
};

/* ---- FW4 ------------------------------------------------------------------------------------- */

static int64_t number_of(uint32_t i)
{
    return i % 2 == 0 ? (int64_t)i / 6 : (int64_t)(i / 6) * FAR;
}

TEST(nothing_gives_way_in_a_table_for_columns)
{
    mtprof__forwards table;
    REQUIRE(mtprof__forwards_init(&table, sizeof(mtprof__forward), OPS));
    for (uint32_t i = 0; i < OPS; i++) {
        bool added;
        mtprof__forward *op = mtprof__forward_add(&table, i % 3, number_of(i), &added);
        REQUIRE(op != NULL);
        bool before = false;
        for (uint32_t k = 0; k < i && !before; k++) {
            before = k % 3 == i % 3 && number_of(k) == number_of(i);
        }
        CHECK_EQ_I64(added, !before);
        op->note = added ? i : op->note;
    }
    for (uint32_t i = 0; i < OPS; i++) {
        const mtprof__forward *op = mtprof__forward_find(&table, i % 3, number_of(i));
        REQUIRE(op != NULL);
        CHECK(op->note <= i && op->note % 3 == i % 3 && number_of(op->note) == number_of(i));
    }
    CHECK(mtprof__forward_find(&table, 3, 0) == NULL);
    CHECK(mtprof__forward_find(&table, 0, INT64_MAX) == NULL);
    CHECK_EQ_U64(table.left_out, 0);
    mtprof__forwards_fini(&table);
}

/* ---- FW3 ------------------------------------------------------------------------------------- */

TEST(later_ops_take_the_place_of_others_in_a_table_for_streams)
{
    mtprof__forwards table = {.entry_bytes = sizeof(mtprof__waiting), .limit = 4096};
    mtprof__waiting out;
    for (int64_t i = 0; i < 3; i++) {
        mtprof__forward_wait(&table, 1, i * FAR, 10 + i, (uint32_t)i);
    }
    CHECK(table.full);
    CHECK(!mtprof__forward_take(&table, 1, 0, &out));
    CHECK_EQ_U64(table.left_out, 1);
    REQUIRE(mtprof__forward_take(&table, 1, (int64_t)2 * FAR, &out));
    CHECK_EQ_I64(out.start_ns, 12);
    CHECK_EQ_U64(out.forward.note, 2);
    CHECK(!mtprof__forward_take(&table, 1, (int64_t)2 * FAR, &out)); /* once */
    CHECK_EQ_U64(table.left_out, 1);
    mtprof__forwards_fini(&table);
}

TEST(refused_memory_is_an_arrow_less)
{
    mtprof__forwards table = {.entry_bytes = sizeof(mtprof__waiting), .limit = 4096};
    mtprof__waiting out;
    mtb_fail_nth(1, false);
    mtprof__forward_wait(&table, 1, 5, 10, 0);
    mtb_fail_nth(0, false);
    CHECK(!mtprof__forward_take(&table, 1, 5, &out));
    mtprof__forward_wait(&table, 1, 5, 10, 0);
    CHECK(mtprof__forward_take(&table, 1, 5, &out));
    mtprof__forwards_fini(&table);
}

/* ---- the column ------------------------------------------------------------------------------ */

typedef struct op {
    int64_t start, end, sequence;
    uint32_t thread; /* from 1 */
    uint32_t forward_thread;
    uint32_t forward; /* wanted, + 1 */
} op;

static mtprof_model *model_of(const op *ops, uint32_t n)
{
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    void *sequences;
    void *threads;
    for (uint32_t i = 0; i < n; i++) {
        rm_add(&run, &(rm_event){.start = ops[i].start,
                                 .end = ops[i].end,
                                 .track = ops[i].thread - 1,
                                 .kind = MTPROF_EVENT_KIND_OP,
                                 .index = i});
    }
    REQUIRE_OK(mtprof__columns_extra(&run.columns, MTPROF_COLUMN_SEQUENCE, &sequences));
    REQUIRE_OK(mtprof__columns_extra(&run.columns, MTPROF_COLUMN_FORWARD_THREAD, &threads));
    for (uint32_t i = 0; i < n; i++) {
        ((int64_t *)sequences)[i] = ops[i].sequence;
        ((uint32_t *)threads)[i] = ops[i].forward_thread;
    }
    model->columns = run.columns;
    return model;
}

TEST(the_column_has_the_innermost_forward_op)
{
    static const op ops[] = {
        {0, 10, 3, 1, 0, 0},   /* linear */
        {2, 8, 3, 1, 0, 0},    /* addmm: began last */
        {11, 12, 4, 1, 0, 0},  /* its backward op is not there */
        {13, 19, 3, 2, 0, 0},  /* the same number on another thread */
        {20, 30, 3, 2, 1, 0},  /* the wrapper, which ends later */
        {21, 29, 3, 2, 1, 2},  /* the node */
        {31, 32, 3, 2, 1, 0},  /* once more: the forward op is forgotten */
        {33, 34, -1, 2, 1, 0}, /* no number */
        {35, 36, 7, 2, 1, 0},  /* no such number */
        {40, 50, 9, 1, 0, 0},  /* still open when its backward op ends */
        {41, 42, 9, 2, 1, 0},   {60, 70, 11, 1, 0, 0},
        {71, 90, 11, 2, 1, 0}, /* both end together: the inner one ends first */
        {72, 90, 11, 2, 1, 12},
    };
    const uint32_t n = sizeof ops / sizeof *ops;
    mtprof_model *model = model_of(ops, n);
    const void *column = NULL;
    REQUIRE_OK(mtprof__model_derive(model, MTPROF_COLUMN_FORWARD, &column));
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ_U64(((const uint32_t *)column)[i] + 1, ops[i].forward);
    }
    rm_free(model);
}

TEST(the_column_is_absent_where_no_forward_threads_are_recorded)
{
    mtprof_model *model = rm_model(true);
    const void *column = NULL;
    CHECK_OK(mtprof__model_derive(model, MTPROF_COLUMN_FORWARD, &column));
    CHECK(column == NULL);
    rm_free(model);
}

TEST(refused_memory_leaves_the_column_unmade)
{
    static const op ops[] = {{0, 1, 1, 1, 0, 0}, {2, 3, 1, 1, 1, 1}};
    mtprof_model *model = model_of(ops, 2);
    const void *column = NULL;
    uint64_t nth = 1;
    for (;; nth++) {
        mtb_fail_nth(nth, false);
        int status = mtprof__model_derive(model, MTPROF_COLUMN_FORWARD, &column);
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            break;
        }
        REQUIRE_EQ_I64(status, MTPROF_ENOMEM);
        CHECK(column == NULL);
    }
    CHECK(nth > 3);
    CHECK_EQ_U64(((const uint32_t *)column)[1], 0);
    rm_free(model);
}
