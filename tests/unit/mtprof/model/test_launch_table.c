/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches in flight and the annotations that hold each other (launch_table.h LT1, LT2).
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/launch_table.h"

#include <mtprof/status.h>

#include <string.h>

enum {
    MANY = 40000 /* more than are kept once answered */
};

static size_t count_done(mtprof__launch_table *table)
{
    size_t n = 0;
    for (const mtprof__annotation *a = table->done; a != NULL; a = a->next) {
        n++;
    }
    return n;
}

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
    mtprof__annotation *first = mtprof__annotation_new(NULL, (mtprof_text){"a", 1}, true);
    REQUIRE(first != NULL);
    mtprof__launch launch = {.key = 7, .correlation = 1, .annotation = first};
    REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    launch = (mtprof__launch){.key = 7, .correlation = 2};
    REQUIRE_EQ_I64(mtprof__launch_add(&table, &launch), MTPROF_OK);
    CHECK_EQ_U64(table.n, 1);
    CHECK_EQ_U64(mtprof__launch_find(&table, 7)->correlation, 2);
    CHECK(table.done == first);
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

TEST(annotations_hold_those_around_them)
{
    mtprof__launch_table table = {0};
    mtprof__annotation *outer = mtprof__annotation_new(NULL, (mtprof_text){"outer", 5}, true);
    REQUIRE(outer != NULL);
    outer->refs++; /* inner's */
    mtprof__annotation *inner = mtprof__annotation_new(outer, (mtprof_text){"inner", 5}, true);
    REQUIRE(inner != NULL);
    inner->refs++;                          /* a launch's */
    mtprof__annotation_drop(&table, outer); /* its scope has ended */
    mtprof__annotation_drop(&table, inner); /* and so has the inner one's */
    CHECK_EQ_U64(count_done(&table), 0);

    mtprof__queue_span work = {.track = 3, .start_ns = 10, .end_ns = 20};
    REQUIRE_EQ_I64(mtprof__annotation_count(inner, &work), MTPROF_OK);
    work = (mtprof__queue_span){.track = 3, .start_ns = 5, .end_ns = 12};
    REQUIRE_EQ_I64(mtprof__annotation_count(inner, &work), MTPROF_OK);
    work = (mtprof__queue_span){.track = 4, .start_ns = 1, .end_ns = 2};
    REQUIRE_EQ_I64(mtprof__annotation_count(outer, &work), MTPROF_OK);
    CHECK_EQ_U64(inner->n_spans, 1);
    CHECK_EQ_U64(outer->n_spans, 2);
    CHECK_EQ_I64(outer->spans[0].start_ns, 5);
    CHECK_EQ_I64(outer->spans[0].end_ns, 20);

    mtprof__annotation_drop(&table, inner); /* the launch is answered */
    CHECK_EQ_U64(count_done(&table), 2);
    CHECK_EQ_U64(outer->text.length, 5);
    CHECK(memcmp(outer->text.bytes, "outer", 5) == 0);
    mtprof__annotation_drop(&table, NULL);
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

/* LT2: of equal spans the first is drawn outside, so an inner one waits for the one it began with.
 */
TEST(an_annotation_waits_for_the_one_it_begins_with)
{
    mtprof__launch_table table = {0};
    const mtprof_text name = {"a", 1};
    const mtprof__queue_span first = {
        .track = 1, .start_ns = 10, .end_ns = 20, .shown_start_ns = 10, .shown_end_ns = 20};
    const mtprof__queue_span second = {
        .track = 1, .start_ns = 30, .end_ns = 40, .shown_start_ns = 30, .shown_end_ns = 40};
    mtprof__annotation *outer = mtprof__annotation_new(NULL, name, false);
    REQUIRE(outer != NULL);
    outer->refs += 2;
    mtprof__annotation *inner = mtprof__annotation_new(outer, name, false);
    mtprof__annotation *later = mtprof__annotation_new(outer, name, false);
    REQUIRE(inner != NULL && later != NULL);
    REQUIRE_OK(mtprof__annotation_count(inner, &first));
    REQUIRE_OK(mtprof__annotation_count(later, &second));
    mtprof__annotation_drop(&table, inner);
    CHECK(table.done == NULL);
    mtprof__annotation_drop(&table, later); /* it began later: nothing to wait for */
    CHECK(table.done == later);
    mtprof__annotation_drop(&table, outer);
    CHECK(table.done == outer && outer->next == inner && inner->next == later);
    mtprof__launch_table_fini(&table);
}
