/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns: types, growth, "none", what stays when memory is refused.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/columns/columns.h"

TEST(base_columns_take_48_bytes)
{
    size_t bytes = 0;
    for (uint32_t id = 0; id <= MTPROF_COLUMN_FLAGS; id++) {
        bytes += mtprof__column_item_bytes(id);
    }
    CHECK_EQ_U64(bytes, 48);
    CHECK_EQ_U64(mtprof__column_type(MTPROF_COLUMN_STEP), MTPROF_TYPE_I32);
    CHECK_EQ_U64(mtprof__column_type(MTPROF_COLUMN_NEXT_SIBLING), MTPROF_TYPE_U32);
    CHECK_EQ_U64(mtprof__column_item_bytes(MTPROF_COLUMN_MEMORY_DEVICE), 1);
    CHECK_EQ_U64(mtprof__column_item_bytes(MTPROF_COLUMN_FLAGS), 2);
    CHECK_EQ_U64(mtprof__column_item_bytes(MTPROF_COLUMN_CORRELATION), 8);
}

TEST(every_column_has_a_slot_of_its_own)
{
    mtprof__columns columns = {.n = 0};
    for (uint32_t a = 0; a < MTPROF_COLUMN_COUNT; a++) {
        for (uint32_t b = 0; b < a; b++) {
            CHECK(mtprof__column_slot(&columns, a) != mtprof__column_slot(&columns, b));
        }
    }
}

TEST(growth_keeps_values_and_fills_extras)
{
    mtprof__columns columns = {.n = 0};
    void *sequence;
    void *flops;
    void *again;
    REQUIRE_OK(mtprof__columns_extra(&columns, MTPROF_COLUMN_FLOPS, &flops)); /* of no events yet */
    REQUIRE_OK(mtprof__columns_reserve(&columns, 3));
    CHECK_EQ_U64(columns.capacity, 3);
    columns.n = 3;
    for (int i = 0; i < 3; i++) {
        columns.start_ns[i] = i;
        columns.flags[i] = (uint16_t)(7 * i);
    }
    REQUIRE_OK(mtprof__columns_extra(&columns, MTPROF_COLUMN_SEQUENCE, &sequence));
    ((int64_t *)sequence)[1] = 42;
    REQUIRE_OK(mtprof__columns_extra(&columns, MTPROF_COLUMN_SEQUENCE, &again));
    CHECK_EQ_PTR(again, sequence);
    REQUIRE_OK(mtprof__columns_reserve(&columns, 2)); /* nothing to do */
    CHECK_EQ_U64(columns.capacity, 3);
    REQUIRE_OK(mtprof__columns_reserve(&columns, 1000));
    const int64_t *sequences = columns.extra[MTPROF_COLUMN_SEQUENCE];
    const uint64_t *all_flops = columns.extra[MTPROF_COLUMN_FLOPS];
    CHECK_EQ_I64(columns.start_ns[2], 2);
    CHECK_EQ_U64(columns.flags[2], 14);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ_I64(sequences[i], i == 1 ? 42 : -1);
        CHECK_EQ_U64(all_flops[i], 0);
    }
    REQUIRE_OK(mtprof__columns_reserve(&columns, 1001)); /* one by one is amortised */
    CHECK_EQ_U64(columns.capacity, 1500);
    mtprof__columns_trim(&columns);
    CHECK_EQ_U64(columns.capacity, 3);
    CHECK_EQ_I64(((int64_t *)columns.extra[MTPROF_COLUMN_SEQUENCE])[1], 42);
    mtprof__columns_fini(&columns);
    CHECK_EQ_PTR(columns.start_ns, NULL);
    CHECK_EQ_U64(columns.capacity, 0);
}

TEST(none_is_as_documented)
{
    mtprof__columns columns = {.n = 0};
    REQUIRE_OK(mtprof__columns_reserve(&columns, 2));
    for (uint32_t id = MTPROF_COLUMN_INPUTS; id < MTPROF_COLUMN_COUNT; id++) {
        void *column;
        bool ones = id == MTPROF_COLUMN_SEQUENCE || id == MTPROF_COLUMN_MEMORY_BEFORE ||
                    id == MTPROF_COLUMN_MEMORY_AFTER || id == MTPROF_COLUMN_LINK ||
                    id == MTPROF_COLUMN_FIRST_CHILD || id == MTPROF_COLUMN_NEXT_SIBLING ||
                    id == MTPROF_COLUMN_FORWARD;
        REQUIRE_OK(mtprof__columns_extra(&columns, id, &column));
        for (size_t i = 0; i < 2 * mtprof__column_item_bytes(id); i++) {
            CHECK_EQ_U64(((unsigned char *)column)[i], ones ? 0xFF : 0);
        }
    }
    mtprof__columns_fini(&columns);
}

/* A refusal of the nth request while columns grow to `events`. */
static void check_refusal(uint64_t nth, size_t events)
{
    mtprof__columns columns = {.n = 0};
    void *module;
    REQUIRE_OK(mtprof__columns_reserve(&columns, 4));
    REQUIRE_OK(mtprof__columns_extra(&columns, MTPROF_COLUMN_MODULE, &module));
    columns.n = 1;
    columns.parent[0] = 77;
    mtb_fail_nth(nth, false);
    CHECK_EQ_I64(mtprof__columns_reserve(&columns, events), MTPROF_ENOMEM);
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(columns.capacity, 4);
    CHECK_EQ_U64(columns.n, 1);
    CHECK_EQ_U64(columns.parent[0], 77);
    REQUIRE_OK(mtprof__columns_reserve(&columns, events)); /* some are larger already */
    columns.flags[events - 1] = 9;
    REQUIRE_OK(mtprof__columns_reserve(&columns, 2 * events));
    CHECK_EQ_U64(columns.flags[events - 1], 9);
    CHECK_EQ_U64(columns.parent[0], 77);
    mtb_fail_nth(1, false);
    CHECK_EQ_I64(mtprof__columns_extra(&columns, MTPROF_COLUMN_LINK, &module), MTPROF_ENOMEM);
    CHECK_EQ_PTR(columns.extra[MTPROF_COLUMN_LINK], NULL);
    mtb_fail_nth(1, true);
    mtprof__columns_trim(&columns); /* keeps what it has */
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(columns.parent[0], 77);
    mtprof__columns_fini(&columns);
}

TEST(refused_memory_changes_nothing)
{
    for (uint64_t nth = 1; nth <= 12; nth++) { /* eleven columns and one extra */
        check_refusal(nth, 1000);              /* all of the heap */
        check_refusal(nth, 200000);            /* some of huge pages */
        check_refusal(nth, 2000000);           /* all of huge pages */
    }
}

TEST(a_size_that_overflows_is_refused)
{
    mtprof__columns columns = {.n = 0};
    CHECK_EQ_I64(mtprof__columns_reserve(&columns, SIZE_MAX / 4), MTPROF_ENOMEM);
    CHECK_EQ_U64(columns.capacity, 0);
    mtprof__columns_fini(&columns);
}

TEST(links_of_a_run)
{
    mtprof__run run = {.order = 3};
    for (uint32_t i = 0; i < 100; i++) {
        REQUIRE_OK(mtprof__links_add(&run.hosts, i + 1000, i));
    }
    CHECK_EQ_U64(run.hosts.n, 100);
    CHECK_EQ_U64(run.hosts.items[99].key, 1099);
    CHECK_EQ_U64(run.hosts.items[99].event, 99);
    mtb_fail_nth(1, false);
    CHECK_EQ_I64(mtprof__links_add(&run.works, 1, 1), MTPROF_ENOMEM);
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(run.works.n, 0);
    mtprof__run_fini(&run);
    CHECK_EQ_U64(run.hosts.n, 0);
}
