/* SPDX-License-Identifier: Apache-2.0
 *
 * Annotations of scopes on device queues (annotation.h AN1 to AN4).
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/facts/annotation.h"

#include <mtprof/status.h>

#include <string.h>

static const mtprof_text NAME = {"a", 1};

/* A table without limits. */
static mtprof__annotations no_limits(void)
{
    return (mtprof__annotations){.wait_most = UINT32_MAX, .spans_most = SIZE_MAX};
}

static mtprof__annotation *new_inside(mtprof__annotation *around)
{
    mtprof__annotation *annotation = mtprof__annotation_new(NAME, false);
    mtprof__annotation_chain chain = {NULL, NULL};
    if (annotation != NULL) {
        mtprof__annotation_chain_add(&chain, annotation);
        mtprof__annotation_chain_add(&chain, around);
    }
    return annotation;
}

static mtprof__queue_span work_at(uint32_t track, int64_t start, int64_t end)
{
    return (mtprof__queue_span){.track = track,
                                .start_ns = start,
                                .end_ns = end,
                                .shown_start_ns = start,
                                .shown_end_ns = end};
}

static int count(mtprof__annotations *all, mtprof__annotation *annotation, uint32_t track,
                 int64_t start, int64_t end)
{
    mtprof__queue_span work = work_at(track, start, end);
    return mtprof__annotation_count(all, annotation, &work);
}

static size_t count_done(const mtprof__annotations *all)
{
    size_t n = 0;
    for (const mtprof__annotation *a = all->done; a != NULL; a = a->next) {
        n++;
    }
    return n;
}

static void free_done(mtprof__annotations *all)
{
    while (all->done != NULL) {
        mtprof__annotation_free(all, mtprof__annotation_take(all));
    }
    CHECK_EQ_U64(all->n_spans, 0);
}

TEST(annotations_hold_those_around_them)
{
    mtprof__annotations all = no_limits();
    mtprof__annotation *outer = mtprof__annotation_new((mtprof_text){"outer", 5}, true);
    REQUIRE(outer != NULL);
    mtprof__annotation *inner = new_inside(outer);
    REQUIRE(inner != NULL);
    CHECK_EQ_U64(outer->refs, 2);
    inner->refs++;                        /* a launch's */
    mtprof__annotation_drop(&all, outer); /* its scope has ended */
    mtprof__annotation_drop(&all, inner); /* and so has the inner one's */
    CHECK_EQ_U64(count_done(&all), 0);

    REQUIRE_OK(count(&all, inner, 3, 10, 20));
    REQUIRE_OK(count(&all, inner, 3, 5, 12));
    REQUIRE_OK(count(&all, inner, 3, 11, 30));
    REQUIRE_OK(count(&all, outer, 4, 1, 2));
    CHECK_EQ_U64(inner->n_spans, 1);
    CHECK_EQ_U64(outer->n_spans, 2);
    CHECK_EQ_I64(outer->spans[0].start_ns, 5); /* AN2: at once */

    mtprof__annotation_drop(&all, inner); /* the launch is answered */
    CHECK_EQ_U64(count_done(&all), 2);
    CHECK_EQ_I64(outer->spans[0].end_ns, 30);
    CHECK_EQ_I64(outer->spans[0].shown_end_ns, 30);
    CHECK_EQ_U64(outer->text.length, 5);
    CHECK(memcmp(outer->text.bytes, "outer", 5) == 0);
    mtprof__annotation_drop(&all, NULL);
    REQUIRE_OK(count(&all, NULL, 1, 1, 2));
    free_done(&all);
    CHECK(mtprof__annotation_take(&all) == NULL);
}

/* AN3: of equal spans the first is drawn outside, so an inner one waits for the one it began with.
 */
TEST(an_annotation_waits_for_the_one_it_begins_with)
{
    mtprof__annotations all = no_limits();
    mtprof__annotation *outer = mtprof__annotation_new(NAME, false);
    REQUIRE(outer != NULL);
    mtprof__annotation *inner = new_inside(outer);
    mtprof__annotation *later = new_inside(outer);
    REQUIRE(inner != NULL && later != NULL);
    REQUIRE_OK(count(&all, inner, 1, 10, 20));
    REQUIRE_OK(count(&all, later, 1, 30, 40));
    mtprof__annotation_drop(&all, inner);
    CHECK(all.done == NULL);
    mtprof__annotation_drop(&all, later); /* it began later: nothing to wait for */
    CHECK(all.done == later);
    mtprof__annotation_drop(&all, outer);
    CHECK(all.done == outer && outer->next == inner && inner->next == later);
    free_done(&all);
}

TEST(no_more_wait_than_may)
{
    mtprof__annotations all = {.wait_most = 2, .spans_most = SIZE_MAX};
    mtprof__annotation *outer = mtprof__annotation_new(NAME, false);
    REQUIRE(outer != NULL);
    mtprof__annotation *inner[3];
    for (size_t i = 0; i < 3; i++) {
        inner[i] = new_inside(outer);
        REQUIRE(inner[i] != NULL);
        REQUIRE_OK(count(&all, inner[i], 1, 10, 20));
    }
    for (size_t i = 0; i < 3; i++) {
        mtprof__annotation_drop(&all, inner[i]);
    }
    CHECK(all.done == inner[2]);
    mtprof__annotation_drop(&all, outer);
    CHECK(all.done == outer);
    CHECK_EQ_U64(count_done(&all), 4);
    free_done(&all);
}

TEST(spans_are_limited_from_the_outside_and_counted)
{
    mtprof__annotations all = {.wait_most = 1024, .spans_most = 2};
    mtprof__annotation *outer = mtprof__annotation_new(NAME, false);
    mtprof__annotation *middle = new_inside(outer);
    mtprof__annotation *inner = new_inside(middle);
    REQUIRE(outer != NULL && middle != NULL && inner != NULL);
    REQUIRE_OK(count(&all, inner, 1, 10, 20));
    CHECK_EQ_U64(inner->n_spans + middle->n_spans, 2);
    CHECK_EQ_U64(outer->n_spans, 0);
    CHECK_EQ_U64(all.left_out, 1);
    REQUIRE_OK(count(&all, inner, 2, 10, 20)); /* the innermost always has room */
    CHECK_EQ_U64(inner->n_spans, 2);
    CHECK_EQ_U64(middle->n_spans, 1);
    CHECK_EQ_U64(all.left_out, 2);
    mtprof__annotation_drop(&all, inner);
    mtprof__annotation_drop(&all, middle);
    mtprof__annotation_drop(&all, outer);
    CHECK_EQ_U64(count_done(&all), 3);
    free_done(&all);
}

/* AN2: with 10,000 pieces of work under 20,000 scopes, work that cost the depth of its chain would
 * take minutes. */
TEST(work_does_not_cost_the_depth_of_its_chain)
{
    enum {
        DEPTH = 20000,
        WORKS = 10000
    };
    mtprof__annotations all = no_limits();
    mtprof__annotation **chain = mtb_calloc(DEPTH, sizeof(mtprof__annotation *));
    REQUIRE(chain != NULL);
    for (size_t i = 0; i < DEPTH; i++) {
        chain[i] = new_inside(i > 0 ? chain[i - 1] : NULL);
        REQUIRE(chain[i] != NULL);
    }
    for (int64_t i = 0; i < WORKS; i++) {
        REQUIRE_OK(count(&all, chain[DEPTH - 1], 1, i, i + 1));
    }
    for (size_t i = 0; i < DEPTH; i++) {
        mtprof__annotation_drop(&all, chain[i]);
    }
    CHECK_EQ_U64(count_done(&all), DEPTH);
    CHECK(all.done == chain[0]);
    CHECK_EQ_I64(chain[0]->spans[0].start_ns, 0);
    CHECK_EQ_I64(chain[0]->spans[0].end_ns, WORKS);
    mtb_free(chain);
    free_done(&all);
}

/* Random trees and work, against spans that are widened for every scope around a piece of work. */
TEST(spans_are_those_of_all_work_inside)
{
    enum {
        ROUNDS = 200,
        SCOPES = 24,
        TRACKS = 3,
        WORKS = 60
    };
    uint64_t random = 11;
    for (int round = 0; round < ROUNDS; round++) {
        mtprof__annotations all = no_limits();
        mtprof__annotation *made[SCOPES];
        size_t around[SCOPES];
        int64_t first[SCOPES][TRACKS];
        int64_t last[SCOPES][TRACKS];
        for (size_t i = 0; i < SCOPES; i++) {
            around[i] = i > 0 ? (size_t)(mt_test_random(&random) % (i + 1)) : 0; /* itself: none */
            made[i] = new_inside(around[i] < i ? made[around[i]] : NULL);
            REQUIRE(made[i] != NULL);
            for (size_t k = 0; k < TRACKS; k++) {
                first[i][k] = INT64_MAX;
                last[i][k] = INT64_MIN;
            }
        }
        for (size_t n = 0; n < WORKS; n++) {
            size_t at = (size_t)(mt_test_random(&random) % (SCOPES));
            uint32_t track = (uint32_t)(mt_test_random(&random) % (TRACKS));
            int64_t start = (int64_t)(mt_test_random(&random) % (1000));
            int64_t end = start + (int64_t)(mt_test_random(&random) % (50));
            REQUIRE_OK(count(&all, made[at], track, start, end));
            for (bool more = true; more; at = around[at]) {
                first[at][track] = start < first[at][track] ? start : first[at][track];
                last[at][track] = end > last[at][track] ? end : last[at][track];
                more = around[at] < at;
            }
        }
        for (size_t i = 0; i < SCOPES; i++) {
            mtprof__annotation_drop(&all, made[i]);
        }
        CHECK_EQ_U64(count_done(&all), SCOPES);
        for (size_t i = 0; i < SCOPES; i++) {
            size_t spans = 0;
            for (size_t k = 0; k < TRACKS; k++) {
                spans += first[i][k] != INT64_MAX;
            }
            REQUIRE_EQ_U64(made[i]->n_spans, spans);
            for (size_t k = 0; k < spans; k++) {
                const mtprof__queue_span *span = &made[i]->spans[k];
                CHECK_EQ_I64(span->start_ns, first[i][span->track]);
                CHECK_EQ_I64(span->end_ns, last[i][span->track]);
            }
        }
        free_done(&all);
    }
}

TEST(refused_memory_is_an_error)
{
    mtprof__annotations all = no_limits();
    (void)mtb_fail_nth(1, false);
    CHECK(mtprof__annotation_new(NAME, true) == NULL);
    (void)mtb_fail_nth(2, false);
    CHECK(mtprof__annotation_new(NAME, true) == NULL);
    (void)mtb_fail_nth(0, false);
    mtprof__annotation *annotation = mtprof__annotation_new(NAME, true);
    REQUIRE(annotation != NULL);
    (void)mtb_fail_nth(1, false);
    CHECK_EQ_I64(count(&all, annotation, 1, 2, 3), MTPROF_ENOMEM);
    (void)mtb_fail_nth(0, false);
    CHECK_EQ_U64(annotation->n_spans, 0);
    mtprof__annotation_drop(&all, annotation);
    free_done(&all);
}
