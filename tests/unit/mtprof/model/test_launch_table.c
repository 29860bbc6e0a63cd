/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches in flight (launch_table.h).
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/launch_table.h"

#include <mtprof/status.h>

enum {
    MANY = 40000 /* more than are kept once answered */
};

TEST(launches_are_found_until_they_go)
{
    mtprof__launch_table table = {0};
    for (uint64_t key = 1; key <= MANY; key++) {
        mtprof__launch launch = {.key = key * 3, .correlation = key};
        REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    }
    CHECK_EQ_U64(table.n, MANY);
    CHECK(mtprof__launch_find(&table, 0) == NULL);
    CHECK(mtprof__launch_find(&table, 4) == NULL);
    for (uint64_t key = 1; key <= MANY; key++) {
        const mtprof__launch *found = mtprof__launch_find(&table, key * 3);
        REQUIRE(found != NULL);
        CHECK_EQ_U64(found->correlation, key);
    }
    mtprof__launch any;
    size_t n = 0;
    while (mtprof__launch_take_any(&table, &any)) {
        n++;
    }
    CHECK_EQ_U64(n, MANY);
    mtprof__launch_table_fini(&table);
}

TEST(a_key_that_comes_again_replaces_the_launch)
{
    mtprof__launch_table table = {0};
    mtprof__annotation *first = mtprof__annotation_new((mtprof_text){"a", 1}, true);
    REQUIRE(first != NULL);
    mtprof__launch launch = {.key = 7, .correlation = 1, .annotation = first};
    REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    launch = (mtprof__launch){.key = 7, .correlation = 2};
    REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    CHECK_EQ_U64(table.n, 1);
    CHECK_EQ_U64(mtprof__launch_find(&table, 7)->correlation, 2);
    CHECK(table.annotations.done == first);
    mtprof__launch_table_fini(&table);
}

TEST(answered_launches_stay_for_a_while)
{
    mtprof__launch_table table = {0};
    for (uint64_t key = 1; key <= MANY; key++) {
        mtprof__launch launch = {.key = key};
        REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
        REQUIRE_EQ_I64(mtprof__launch_answer(&table, mtprof__launch_find(&table, key)), MTPROF_OK);
        CHECK(table.n <= MTPROF__ANSWERED_KEPT);
    }
    CHECK(mtprof__launch_find(&table, MANY) != NULL);
    CHECK(mtprof__launch_find(&table, MANY - MTPROF__ANSWERED_KEPT + 1) != NULL);
    CHECK(mtprof__launch_find(&table, MANY - MTPROF__ANSWERED_KEPT) == NULL);
    /* A graph answers one launch many times: that takes one place only. */
    mtprof__launch *last = mtprof__launch_find(&table, MANY);
    REQUIRE_EQ_I64(mtprof__launch_answer(&table, last), MTPROF_OK);
    CHECK(mtprof__launch_find(&table, MANY - MTPROF__ANSWERED_KEPT + 1) != NULL);
    mtprof__launch_table_fini(&table);
}

TEST(refused_memory_changes_nothing)
{
    mtprof__launch_table table = {0};
    mtprof__launch launch = {.key = 9};
    (void)mtb_fail_nth(1, false);
    CHECK_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_ENOMEM);
    (void)mtb_fail_nth(0, false);
    CHECK_EQ_U64(table.n, 0);
    REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    (void)mtb_fail_nth(1, false);
    CHECK_EQ_I64(mtprof__launch_answer(&table, mtprof__launch_find(&table, 9)), MTPROF_ENOMEM);
    (void)mtb_fail_nth(0, false);
    CHECK(!mtprof__launch_find(&table, 9)->answered);
    mtprof__launch_table_fini(&table);
}
