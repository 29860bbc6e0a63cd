/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: allocations and releases, what is reserved, and what was allocated before and after an
 * op.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/op.h>

#include <pthread.h>
#include <time.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site op_site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);

#define ALLOC_WANTS (MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS)

static uint32_t device_of(const tv_record *p)
{
    return (uint32_t)(p->r.word >> 16 & 0xFF);
}

static bool takes_time_of_last_record(const tv_record *p)
{
    return (p->r.word >> 24 & 1) != 0;
}

TEST(allocations_keep_their_values)
{
    static const struct {
        uint32_t device;
        uint64_t address;
        int64_t bytes;
        uint64_t allocated;
    } cases[] = {
        {0, 0xFFFFFFFFFFFFFFF0u, 1, 1},
        {1, 16, INT64_MAX, UINT64_MAX},
        {255, 16, INT64_MIN, 0},
        {7, 0, -64, 5},
    };
    mtprof_session *s = tv_start(ALLOC_WANTS);
    for (size_t i = 0; i < 4; i++) {
        mtprof_alloc(cases[i].device, cases[i].address, cases[i].bytes, cases[i].allocated, 0);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, 4);
    for (size_t i = 0; i < 4; i++) {
        const tv_record *p = tv_nth(v, MTPROF_REC_ALLOC, i);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(device_of(p), cases[i].device);
        CHECK_EQ_U64(p->r.words[0], cases[i].address);
        CHECK_EQ_I64((int64_t)p->r.words[1], cases[i].bytes);
        CHECK_EQ_U64(p->r.words[2], cases[i].allocated);
        CHECK_EQ_U64(p->r.n_words, 3); /* 32 bytes */
    }
    tv_free(v);
}

TEST(outside_of_scopes_an_allocation_reads_the_clock)
{
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_end(mtprof_begin(&scope));
    uint64_t before = mtprof_ticks();
    mtprof_alloc(0, 1, 8, 8, 0);
    uint64_t after = mtprof_ticks();
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_ALLOC, 0);
    REQUIRE(p != NULL);
    CHECK(!takes_time_of_last_record(p));
    CHECK(before <= p->r.ticks && p->r.ticks <= after);
    tv_free(v);
}

TEST(inside_a_scope_an_allocation_takes_the_time_of_the_last_record)
{
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_alloc(0, 1, 8, 8, 0);
    mtprof_end(mtprof_begin(&op_site));
    mtprof_alloc(0, 1, -8, 0, 0); /* after an end, not before it (F1) */
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    const tv_record *first = tv_nth(v, MTPROF_REC_ALLOC, 0);
    const tv_record *second = tv_nth(v, MTPROF_REC_ALLOC, 1);
    const tv_span *outer = tv_span_named(v, "scope"), *inner = tv_span_named(v, "op");
    REQUIRE(first != NULL && second != NULL && outer != NULL && inner != NULL);
    CHECK(takes_time_of_last_record(first));
    CHECK_EQ_U64(first->r.ticks, outer->start);
    CHECK(takes_time_of_last_record(second));
    CHECK_EQ_U64(second->r.ticks, inner->stop);
    tv_free(v);
}

static void *end_it(void *token)
{
    mtprof_end((mtprof_token)(uintptr_t)token);
    return NULL;
}

TEST(a_scope_that_another_thread_ended_is_not_open)
{
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_token a = mtprof_begin(&scope);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, end_it, (void *)(uintptr_t)a) == 0);
    pthread_join(thread, NULL);
    uint64_t before = mtprof_ticks();
    mtprof_alloc(0, 1, 8, 8, 0);
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_ALLOC, 0);
    REQUIRE(p != NULL);
    CHECK(!takes_time_of_last_record(p));
    CHECK(p->r.ticks >= before);
    tv_free(v);
}

TEST(an_allocation_long_after_the_last_record_has_its_right_time)
{
    /* More than 32 bits of ticks: some seconds, so only where there is time. */
    if (!mt_test_long()) {
        MT_SKIP("needs MT_LONG=1");
    }
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_end(mtprof_begin(&scope));
    uint64_t start = mtprof_ticks();
    while (mtprof_ticks() - start <= (uint64_t)UINT32_MAX + 1000) {
        struct timespec rest = {0, 50 * 1000 * 1000};
        nanosleep(&rest, NULL);
    }
    uint64_t before = mtprof_ticks();
    mtprof_alloc(0, 1, 8, 8, 0);
    uint64_t after = mtprof_ticks();
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_ALLOC, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_TIME), 1);
    CHECK(before <= p->r.ticks && p->r.ticks <= after);
    tv_free(v);
}

TEST(what_is_reserved_is_reported_when_it_changes)
{
    static const uint64_t reserved[] = {0, 100, 100, 100, 300, 300, 0};
    mtprof_session *s = tv_start(ALLOC_WANTS);
    for (size_t i = 0; i < 7; i++) {
        mtprof_alloc(1, 16, 8, 8, reserved[i]);
        mtprof_alloc(0, 16, 8, 8, 5);
    }
    trace_view *v = tv_finish(s, NULL);
    /* At each allocation the latest RESERVED of its device says what the host said. */
    uint64_t known[2] = {0, 0};
    size_t reported = 0, turn = 0;
    for (size_t i = 0; i < v->count; i++) {
        const tv_record *p = &v->records[i];
        if (p->r.kind == MTPROF_REC_RESERVED) {
            REQUIRE(device_of(p) < 2);
            known[device_of(p)] = p->r.words[0];
            reported++;
        } else if (p->r.kind == MTPROF_REC_ALLOC) {
            CHECK_EQ_U64(known[device_of(p)], device_of(p) == 1 ? reserved[turn / 2] : 5);
            turn++;
        }
    }
    CHECK_EQ_U64(turn, 14);
    CHECK_EQ_U64(reported, 4); /* 100, 300, 0 and once 5 */
    tv_free(v);
}

TEST(a_device_past_255_is_the_last_one)
{
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_alloc(256, 16, 8, 8, 0);
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_ALLOC, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(device_of(p), 255);
    tv_free(v);
}

TEST(memory_after_belongs_to_the_op_that_ended)
{
    mtprof_op op = {.struct_size = sizeof op, .fields = MTPROF_OP_MEMORY, .memory_before = 10};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_MEMORY);
    mtprof_token a = mtprof_op_begin(&op_site, &op);
    op.memory_before = 20;
    op.memory_device = 3;
    mtprof_token b = mtprof_op_begin(&op_site, &op);
    mtprof_op_end(b, 3, 30);
    mtprof_op_end(a, 0, 40);
    mtprof_op_end(0, 0, 50);
    mtprof_token plain = mtprof_begin(&op_site);
    mtprof_end(plain);
    trace_view *v = tv_finish(s, NULL);
    static const uint64_t before[] = {10, 20}, after[] = {40, 30}, device[] = {0, 3};
    REQUIRE_EQ_U64(v->n_spans, 3);
    for (size_t i = 0; i < 2; i++) {
        const tv_record *x = tv_payload(v, v->spans[i].begin, MTPROF_REC_MEM_BEFORE, 0);
        const tv_record *y = tv_payload(v, v->spans[i].begin, MTPROF_REC_MEM_AFTER, 0);
        REQUIRE(x != NULL && y != NULL);
        CHECK_EQ_U64(x->r.word >> 16, before[i]);
        CHECK_EQ_U64(x->r.word >> 8 & 0xFF, device[i]);
        CHECK_EQ_U64(y->r.word >> 16, after[i]);
        CHECK_EQ_U64(y->r.word >> 8 & 0xFF, device[i]);
    }
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_MEM_AFTER), 2);
    tv_free(v);
}

static void *op_end_elsewhere(void *token)
{
    mtprof_op_end((mtprof_token)(uintptr_t)token, 1, 99);
    return NULL;
}

TEST(memory_after_from_another_thread_finds_its_op)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_MEMORY);
    mtprof_token a = mtprof_begin(&op_site);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, op_end_elsewhere, (void *)(uintptr_t)a) == 0);
    pthread_join(thread, NULL);
    trace_view *v = tv_finish(s, NULL);
    REQUIRE_EQ_U64(v->n_spans, 1);
    CHECK(v->spans[0].end != NULL);
    const tv_record *p = tv_payload(v, v->spans[0].begin, MTPROF_REC_MEM_AFTER, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.word >> 16, 99);
    tv_free(v);
}

TEST(ends_with_memory_fill_many_chunks_and_stay_together)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_MEMORY);
    for (uint64_t i = 0; i < 50000; i++) {
        mtprof_op_end(mtprof_begin(&op_site), 0, i);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(v->n_spans, 50000);
    size_t found = 0;
    for (size_t i = 0; i < v->count && found < v->n_spans; i++) {
        const tv_record *p = &v->records[i];
        if (p->r.kind == MTPROF_REC_MEM_AFTER) {
            CHECK_EQ_U64(p->owner_key, v->spans[found].key);
            CHECK_EQ_U64(p->r.word >> 16, found);
            found++;
        }
    }
    CHECK_EQ_U64(found, 50000);
    tv_free(v);
}

TEST(a_recording_of_the_device_alone_leaves_out_memory_of_the_host_between_its_ops)
{
    static mtprof_site far_op = MTPROF_SITE_INIT("far op", MTPROF_KIND_OP | MTPROF_FLAG_DEVICE);
    for (int turn = 0; turn < 2; turn++) { /* 1: with scopes, so the host takes part */
        mtprof_session *s = tv_start((uint64_t)MTPROF_WANT_DEVICE | (uint64_t)MTPROF_WANT_ALLOCS |
                                     (turn == 1 ? (uint64_t)MTPROF_WANT_SCOPES : 0));
        mtprof_alloc(0, 0x10, 16, 16, 0); /* the slow way: the thread's first record */
        mtprof_alloc(1, 0x20, 32, 32, 0);
        mtprof_token token = mtprof_begin(&far_op);
        mtprof_alloc(0, 0x30, 48, 64, 0);
        mtprof_end(token);
        mtprof_alloc(0, 0x10, -16, 48, 0);
        mtprof_alloc(1, 0x20, -32, 0, 0);
        mtprof_health h;
        trace_view *v = tv_finish(s, &h);
        CHECK_EQ_U64(h.lost, 0);
        REQUIRE_EQ_U64(tv_count(v, MTPROF_REC_ALLOC), turn == 0 ? 3 : 5);
        for (size_t i = 0; turn == 0 && i < 3; i++) {
            static const uint64_t addresses[] = {0x20, 0x30, 0x20};
            CHECK_EQ_U64(tv_nth(v, MTPROF_REC_ALLOC, i)->r.words[0], addresses[i]);
        }
        tv_free(v);
    }
}

TEST(refusals_keep_their_values_and_read_the_clock)
{
    mtprof_session *s = tv_start(ALLOC_WANTS);
    mtprof_token a = mtprof_begin(&scope);
    uint64_t before = mtprof_ticks();
    mtprof_out_of_memory(3, UINT64_C(1) << 40, 4096, 8192);
    uint64_t after = mtprof_ticks();
    mtprof_end(a);
    mtprof_out_of_memory(999, 1, 2, 3); /* as allocations: the last one there is a number for */
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, 2);
    const tv_record *p = tv_nth(v, MTPROF_REC_OUT_OF_MEMORY, 0);
    const tv_record *reserved = tv_nth(v, MTPROF_REC_RESERVED, 0);
    REQUIRE(p != NULL && reserved != NULL);
    CHECK_EQ_U64(device_of(p), 3);
    CHECK_EQ_U64(p->r.n_words, 3);
    CHECK(before <= p->r.ticks && p->r.ticks <= after);
    CHECK_EQ_U64(p->r.words[1], UINT64_C(1) << 40);
    CHECK_EQ_U64(p->r.words[2], 4096);
    CHECK_EQ_U64(device_of(reserved), 3);
    CHECK_EQ_U64(reserved->r.words[0], 8192);
    p = tv_nth(v, MTPROF_REC_OUT_OF_MEMORY, 1);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(device_of(p), 255);
    tv_free(v);
    s = tv_start(MTPROF_WANT_DEFAULT);
    mtprof_out_of_memory(1, 1, 2, 3); /* not wanted */
    v = tv_finish(s, NULL);
    CHECK(tv_nth(v, MTPROF_REC_OUT_OF_MEMORY, 0) == NULL);
    tv_free(v);
}
