/* SPDX-License-Identifier: Apache-2.0
 *
 * What event sources push: every value comes back, odd ones harm nothing.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/source.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static mtprof_status plain_start(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)source;
    (void)wants;
    return MTPROF_OK;
}

static void plain_stop(void *context)
{
    (void)context;
}

static mtprof_source *add(void)
{
    const mtprof_source_ops ops = {
        .struct_size = sizeof ops,
        .abi = MTPROF_SOURCE_ABI,
        .name = "plain",
        .start = plain_start,
        .stop = plain_stop,
    };
    mtprof_source *source = NULL;
    REQUIRE_OK(mtprof_source_register(&ops, &source));
    return source;
}

TEST(metadata_beyond_the_bound_is_counted)
{
    mtprof_source *source = add();
    mtprof_session *s = tv_start(0);
    mtprof_activity_meta meta[300];
    for (uint32_t i = 0; i < 300; i++) {
        meta[i] = (mtprof_activity_meta){mtprof_intern("k", 1), MTPROF_META_UINT, i};
    }
    mtprof_activity a = {
        .struct_size = sizeof a, .name = "k", .name_length = 1, .meta = meta, .n_meta = 300};
    mtprof_push_activity(source, &a);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META) + h.texts_cut, 300);
    CHECK(h.texts_cut > 0 && tv_count(v, MTPROF_REC_META) >= 64);
    tv_free(v);
    mtprof_source_unregister(source);
}

TEST(every_value_of_an_activity_comes_back)
{
    mtprof_source *source = add();
    mtprof_session *s = tv_start(0);
    double real = -1.5;
    mtprof_activity_meta meta[4] = {
        {mtprof_intern("int", 3), MTPROF_META_INT, (uint64_t)INT64_MIN},
        {mtprof_intern("uint", 4), MTPROF_META_UINT, UINT64_MAX},
        {mtprof_intern("real", 4), MTPROF_META_REAL, 0},
        {mtprof_intern("string", 6), MTPROF_META_STRING, mtprof_intern("value", 5)},
    };
    memcpy(&meta[2].value, &real, sizeof real);
    for (uint32_t kind = 0; kind <= MTPROF_ACTIVITY_OVERHEAD; kind++) {
        mtprof_activity a = {
            .struct_size = sizeof a,
            .kind = kind,
            .name = "k\0\xFFz",
            .name_length = 4,
            .start = UINT64_MAX - 1,
            .end = UINT64_MAX,
            .launch_key = 77,
            .device = UINT32_MAX,
            .queue = 5,
            .correlation = UINT64_MAX,
            .bytes = (uint64_t)1 << 50,
            .meta = meta,
            .n_meta = kind == 0 ? 4 : 0,
        };
        mtprof_push_activity(source, &a);
    }
    trace_view *v = tv_finish(s, NULL);
    for (uint32_t kind = 0; kind <= MTPROF_ACTIVITY_OVERHEAD; kind++) {
        const tv_record *r = tv_nth(v, MTPROF_REC_ACTIVITY, kind);
        REQUIRE(r != NULL);
        CHECK_EQ_U64(r->r.aux, kind);
        const uint64_t body[] = {
            UINT64_MAX - 1, UINT64_MAX,       77, UINT32_MAX | (uint64_t)5 << 32,
            UINT64_MAX,     (uint64_t)1 << 50};
        REQUIRE_EQ_U64(r->r.n_words, 6);
        CHECK_EQ_MEM(r->r.words, body, sizeof body);
        CHECK_EQ_U64(r->r.ticks, UINT64_MAX - 1);
        mtprof_text name;
        REQUIRE(mtprof_reader_string(v->reader, r->r.arg, &name));
        CHECK_EQ_U64(name.length, 4);
        CHECK_EQ_MEM(name.bytes, "k\0\xFFz", 4);
    }
    for (size_t i = 0; i < 4; i++) {
        const tv_record *m = tv_nth(v, MTPROF_REC_META, i);
        REQUIRE(m != NULL);
        CHECK_EQ_PTR(m->owner, tv_nth(v, MTPROF_REC_ACTIVITY, 0));
        CHECK_EQ_U64(m->r.arg, meta[i].key);
        CHECK_EQ_U64(m->r.aux, meta[i].type);
        CHECK_EQ_U64(m->r.words[0], meta[i].value);
    }
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 4);
    tv_free(v);
    mtprof_source_unregister(source);
}

TEST(counters_pairs_and_losses_of_a_source)
{
    mtprof_source *source = add();
    mtprof_session *s = tv_start(0);
    mtprof_push_counter(source, mtprof_intern("power", 5), 1000, 2.5);
    mtprof_push_clock_pair(source, 1000, 5000);
    mtprof_push_clock_pair(source, 3000, 6000);
    mtprof_push_lost(source, 7);
    mtprof_activity nameless = {.struct_size = offsetof(mtprof_activity, launch_key)};
    mtprof_push_activity(source, &nameless);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_record *c = tv_nth(v, MTPROF_REC_COUNTER, 0);
    const tv_record *a = tv_nth(v, MTPROF_REC_ACTIVITY, 0);
    REQUIRE(c != NULL && a != NULL);
    CHECK_EQ_STR(tv_name(v, c), "power");
    CHECK_EQ_U64(c->r.aux, 1);
    double value;
    memcpy(&value, &c->r.words[1], sizeof value);
    CHECK_EQ_F64(value, 2.5);
    CHECK_EQ_U64(c->r.ticks, 1000);
    CHECK_EQ_U64(a->r.arg, 0);
    uint64_t ticks;
    REQUIRE(mtprof_reader_source_ticks(v->reader, c->slot, 2000, &ticks));
    CHECK_EQ_U64(ticks, 5500);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_SOURCE], 7);
    CHECK_EQ_U64(h.activities, 0);
    tv_free(v);
    mtprof_source_unregister(source);
}

TEST(odd_values_of_a_source_do_not_damage_the_trace)
{
    mtprof_source *source = add();
    mtprof_session *s = tv_start(0);
    mtprof_activity_meta meta[100];
    for (uint32_t i = 0; i < 100; i++) {
        meta[i] =
            (mtprof_activity_meta){i % 3, i % 12, UINT64_MAX}; /* also TEXT, and none at all */
    }
    mtprof_activity a = {.struct_size = sizeof a, .kind = 8, .start = 5, .end = 4};
    mtprof_push_activity(source, &a);
    a.kind = UINT32_MAX;
    mtprof_push_activity(source, &a);
    a.kind = 0;
    a.meta = meta;
    a.n_meta = 100;
    mtprof_push_activity(source, &a);
    a.meta = NULL;
    a.name = "last";
    a.name_length = 4;
    mtprof_push_activity(source, &a);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 4);
    CHECK(tv_event(v, MTPROF_REC_ACTIVITY, "last", 0) != NULL);
    tv_free(v);
    mtprof_source_unregister(source);
}

TEST(without_a_recording_a_push_is_harmless)
{
    mtprof_source *source = add();
    mtprof_activity a = {.struct_size = sizeof a, .name = "x", .name_length = 1};
    mtprof_push_activity(source, &a);
    mtprof_push_counter(source, 0, 1, 1.0);
    mtprof_push_clock_pair(source, 1, 1);
    mtprof_push_lost(source, 1);
    mtprof_session *s = tv_start(0);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 0);
    tv_free(v);
    mtprof_source_unregister(source);
}

static void *push_many(void *argument)
{
    for (uint64_t i = 0; i < 5000; i++) {
        char name[16];
        int n = snprintf(name, sizeof name, "n%llu", (unsigned long long)i % 40);
        mtprof_activity a = {
            .struct_size = sizeof a, .name = name, .name_length = (size_t)n, .launch_key = i + 1};
        mtprof_push_activity(argument, &a);
    }
    return NULL;
}

TEST(threads_may_push_into_one_source_at_once)
{
    mtprof_source *source = add();
    mtprof_session *s = tv_start(0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, push_many, source) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 20000);
    CHECK_EQ_U64(h.activities, 20000);
    CHECK_EQ_U64(h.lost, 0);
    for (size_t i = 0; i < v->count; i++) {
        const mtprof_record *r = &v->records[i].r;
        if (r->kind == MTPROF_REC_ACTIVITY && r->arg == 0) {
            FAIL("an activity has lost its name");
            break;
        }
    }
    tv_free(v);
    mtprof_source_unregister(source);
}
