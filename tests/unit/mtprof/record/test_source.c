/* SPDX-License-Identifier: Apache-2.0
 *
 * Event sources: registration, when their callbacks are made, and what they push
 * (include/mtprof/source.h).
 */
#include "harness/mt_test.h"
#include "support/devices/synthetic_device.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

/* ---- a source that does nothing but count ---------------------------------------------------- */

typedef struct plain_source {
    mtprof_source *source;
    int starts, stops;
    uint64_t wants;
    mtprof_status status;
    bool scopes_in_callbacks;
} plain_source;

static mtprof_status plain_start(void *context, mtprof_source *source, uint64_t wants)
{
    plain_source *p = context;
    p->source = source;
    p->starts++;
    p->wants = wants;
    if (p->scopes_in_callbacks) { /* no lock is held: everything may be called */
        CHECK(mtprof_intern("in a callback", 13) != 0);
        mtprof_end(mtprof_begin(&scope));
        mtprof_push_lost(source, 0);
    }
    return p->status;
}

static void plain_stop(void *context)
{
    plain_source *p = context;
    p->stops++;
}

static mtprof_source_ops plain_ops(plain_source *p)
{
    return (mtprof_source_ops){
        .struct_size = sizeof(mtprof_source_ops),
        .abi = MTPROF_SOURCE_ABI,
        .name = "plain",
        .context = p,
        .start = plain_start,
        .stop = plain_stop,
    };
}

static mtprof_source *add(plain_source *p)
{
    mtprof_source_ops ops = plain_ops(p);
    mtprof_source *source = NULL;
    REQUIRE_OK(mtprof_source_register(&ops, &source));
    return source;
}

/* ---- registration ---------------------------------------------------------------------------- */

static void check_refused(const mtprof_source_ops *ops, mtprof_status status, const char *names)
{
    mtprof_source *source = (mtprof_source *)(uintptr_t)1;
    CHECK_EQ_I64(mtprof_source_register(ops, &source), status);
    CHECK(source == NULL);
    CHECK_EQ_I64(mtprof_last_error()->status, status);
    if (strstr(mtprof_last_error()->message, names) == NULL) {
        FAIL("\"%s\" does not name %s", mtprof_last_error()->message, names);
    }
}

TEST(what_is_missing_is_named)
{
    plain_source p = {0};
    mtprof_source_ops ops = plain_ops(&p);
    check_refused(NULL, MTPROF_EINVAL, "struct_size");
    ops.struct_size = 8;
    check_refused(&ops, MTPROF_EINVAL, "struct_size is 8");
    ops = plain_ops(&p);
    ops.name = NULL;
    check_refused(&ops, MTPROF_EINVAL, "name");
    ops.name = "";
    check_refused(&ops, MTPROF_EINVAL, "name");
    ops = plain_ops(&p);
    ops.start = NULL;
    check_refused(&ops, MTPROF_EINVAL, "start of source plain");
    ops = plain_ops(&p);
    ops.stop = NULL;
    check_refused(&ops, MTPROF_EINVAL, "stop of source plain");
}

TEST(another_major_version_is_refused_and_another_minor_is_not)
{
    plain_source p = {0};
    mtprof_source_ops ops = plain_ops(&p);
    ops.abi = 0x00020003;
    check_refused(&ops, MTPROF_EVERSION, "2.3");
    ops.abi = 0;
    check_refused(&ops, MTPROF_EVERSION, "0.0");
    ops.abi = MTPROF_SOURCE_ABI + 7;
    mtprof_source *source = NULL;
    CHECK_OK(mtprof_source_register(&ops, &source));
    mtprof_source_unregister(source);
}

TEST(the_257th_source_is_refused_until_another_goes)
{
    plain_source p[257] = {{0}};
    mtprof_source *sources[256];
    for (int i = 0; i < 256; i++) {
        sources[i] = add(&p[i]);
    }
    mtprof_source_ops ops = plain_ops(&p[256]);
    check_refused(&ops, MTPROF_EBUSY, "256");
    mtprof_source_unregister(sources[100]);
    sources[100] = add(&p[256]);
    for (int i = 0; i < 256; i++) {
        mtprof_source_unregister(sources[i]);
    }
    mtprof_source_unregister(NULL);
}

TEST(only_sources_with_a_device_type_stand_for_a_device)
{
    plain_source p = {0};
    CHECK(!mtprof_has_device_source());
    mtprof_source *plain = add(&p);
    CHECK(!mtprof_has_device_source());
    synthetic_device *d = sd_new(NULL);
    CHECK(mtprof_has_device_source());
    sd_free(d);
    CHECK(!mtprof_has_device_source());
    mtprof_source_unregister(plain);
}

TEST(texts_are_copied_and_a_shorter_struct_is_enough)
{
    plain_source p = {0};
    char name[] = "short lived";
    mtprof_source_ops full = plain_ops(&p);
    full.name = name;
    size_t old = offsetof(mtprof_source_ops, flush);
    mtprof_source_ops *ops = malloc(old); /* exactly what an older program knows */
    REQUIRE(ops != NULL);
    full.struct_size = (uint32_t)old;
    memcpy(ops, &full, old);
    mtprof_source *source = NULL;
    REQUIRE_OK(mtprof_source_register(ops, &source));
    memset(name, 'x', sizeof name - 1);
    free(ops);
    mtprof_session *s = tv_start(0);
    trace_view *v = tv_finish(s, NULL);
    const tv_record *def = tv_nth(v, MTPROF_REC_DEF_SOURCE, 0);
    mtprof_text found, type;
    REQUIRE(def != NULL && mtprof_reader_source(v->reader, (uint16_t)def->r.arg, &found, &type));
    CHECK_EQ_STR(found.bytes, "short lived");
    CHECK_EQ_U64(type.length, 0);
    tv_free(v);
    mtprof_source_unregister(source);
}

/* ---- when callbacks come --------------------------------------------------------------------- */

TEST(a_source_runs_while_the_gate_is_open)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    CHECK_EQ_U64(sd_get_facts(d).starts, 1);
    CHECK_EQ_U64(sd_get_facts(d).wants, MTPROF_WANT_OPS);
    REQUIRE_OK(mtprof_session_pause(s));
    CHECK_EQ_U64(sd_get_facts(d).stops, 1);
    CHECK_EQ_U64(sd_get_facts(d).flushes, 1);
    REQUIRE_OK(mtprof_session_resume(s, MTPROF_WANT_SCOPES));
    CHECK_EQ_U64(sd_get_facts(d).starts, 2);
    CHECK_EQ_U64(sd_get_facts(d).wants, MTPROF_WANT_SCOPES);
    REQUIRE_OK(mtprof_session_close(s));
    CHECK_EQ_U64(sd_get_facts(d).stops, 2);
    CHECK(sd_get_facts(d).last_timeout_ns > 0);
    mtprof_config config = {.struct_size = sizeof config, .paused = 1};
    REQUIRE_OK(mtprof_session_start(&config, &s));
    CHECK_EQ_U64(sd_get_facts(d).starts, 2); /* nothing runs yet */
    REQUIRE_OK(mtprof_session_close(s));
    CHECK_EQ_U64(sd_get_facts(d).stops, 2);
    sd_free(d);
}

/* ---- what devices are ------------------------------------------------------------------------ */

static size_t describe_small(void *context, char *json, size_t room)
{
    (void)context;
    return (size_t)snprintf(json, room, "{\"id\": 0}");
}

static size_t describe_large(void *context, char *json, size_t room)
{
    (void)context;
    return (size_t)snprintf(json, room, "{\"id\": 1, \"name\": \"%03000d\"}", 7);
}

static size_t describe_growing(void *context, char *json, size_t room)
{
    (void)context;
    memset(json, ' ', room); /* as much as it may, and never enough */
    return room + 5;
}

static size_t describe_nothing(void *context, char *json, size_t room)
{
    (void)context;
    (void)json;
    (void)room;
    return 0;
}

static mtprof_source *add_described(plain_source *p, size_t (*describe)(void *, char *, size_t))
{
    mtprof_source_ops ops = plain_ops(p);
    mtprof_source *source = NULL;
    ops.describe = describe;
    REQUIRE_OK(mtprof_source_register(&ops, &source));
    return source;
}

TEST(sources_say_what_their_devices_are)
{
    plain_source p[4] = {{0}};
    mtprof_source *sources[4] = {
        add_described(&p[0], describe_nothing), add_described(&p[1], describe_small),
        add_described(&p[2], describe_growing), add_described(&p[3], describe_large)};
    trace_view *v = tv_finish(tv_start(0), NULL);
    const char *said = tv_metadata(v, "deviceProperties");
    REQUIRE(said != NULL);
    const char begin[] = "[{\"id\": 0}, {\"id\": 1, \"name\": \"000";
    CHECK(strncmp(said, begin, sizeof begin - 1) == 0);
    CHECK_EQ_STR(said + strlen(said) - 3, "\"}]");
    tv_free(v);
    for (int i = 0; i < 4; i++) {
        mtprof_source_unregister(sources[i]);
    }
    v = tv_finish(tv_start(0), NULL);
    CHECK(tv_metadata(v, "deviceProperties") == NULL);
    tv_free(v);
}

TEST(a_source_that_comes_late_is_described_and_a_program_knows_better)
{
    plain_source p = {0};
    mtprof_session *s = tv_start(0);
    mtprof_source *source = add_described(&p, describe_small);
    trace_view *v = tv_finish(s, NULL);
    const char *said = tv_metadata(v, "deviceProperties");
    REQUIRE(said != NULL);
    CHECK_EQ_STR(said, "[{\"id\": 0}]");
    tv_free(v);
    mtprof_config config = {.struct_size = sizeof config, .paused = 1};
    REQUIRE_OK(mtprof_session_start(&config, &s));
    REQUIRE_OK(mtprof_session_add_metadata(s, "deviceProperties", 16, "[]", 2, true));
    REQUIRE_OK(mtprof_session_resume(s, 0));
    v = tv_finish(s, NULL);
    CHECK_EQ_STR(tv_metadata(v, "deviceProperties"), "[]");
    tv_free(v);
    mtprof_source_unregister(source);
}

TEST(a_source_is_left_alone_when_nobody_wants_what_it_has)
{
    synthetic_device *d = sd_new(&(sd_config){.needs = MTPROF_WANT_ALLOCS | MTPROF_WANT_DEVICE});
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    trace_view *v = tv_finish(s, NULL);
    sd_facts facts = sd_get_facts(d);
    CHECK_EQ_U64(facts.starts + facts.stops + facts.flushes + facts.clocks, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_SOURCE), 0);
    tv_free(v);
    s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_ALLOCS);
    tv_free(tv_finish(s, NULL));
    CHECK_EQ_U64(sd_get_facts(d).starts, 1);
    sd_free(d);
}

TEST(callbacks_may_use_the_library)
{
    plain_source p = {.scopes_in_callbacks = true};
    mtprof_source *source = add(&p);
    for (int i = 0; i < 3; i++) {
        mtprof_session *s = tv_start(0);
        tv_free(tv_finish(s, NULL));
    }
    CHECK_EQ_I64(p.starts, 3);
    CHECK_EQ_I64(p.stops, 3);
    mtprof_source_unregister(source);
}

typedef struct warnings {
    int count;
    mtprof_status status;
    char message[256];
} warnings;

static void on_warning(void *user, mtprof_status status, const char *message)
{
    warnings *w = user;
    w->count++;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%s", message);
}

TEST(a_source_that_fails_to_start_is_left_out_with_a_warning)
{
    plain_source bad = {.status = MTPROF_ENOTSUP}, good = {0};
    mtprof_source *b = add(&bad), *g = add(&good);
    warnings w = {0};
    mtprof_config config = {.struct_size = sizeof config, .on_warning = on_warning, .user = &w};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &s));
    CHECK_EQ_I64(w.count, 1);
    CHECK_EQ_I64(w.status, MTPROF_ENOTSUP);
    CHECK(strstr(w.message, "plain") != NULL);
    CHECK(strstr(w.message, mtprof_status_text(MTPROF_ENOTSUP)) != NULL);
    mtprof_push_lost(b, 5);
    mtprof_push_lost(g, 3);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_I64(bad.stops, 0); /* it never ran */
    CHECK_EQ_I64(good.stops, 1);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_SOURCE], 3);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_LOST), 1);
    const tv_record *p = tv_nth(v, MTPROF_REC_WARNING, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.words[1], strlen(w.message));
    CHECK_EQ_MEM(p->r.words + 2, w.message, strlen(w.message));
    tv_free(v);
    bad.status = MTPROF_OK; /* the next recording asks again */
    s = tv_start(0);
    CHECK_EQ_I64(bad.starts, 2);
    tv_free(tv_finish(s, NULL));
    CHECK_EQ_I64(bad.stops, 1);
    mtprof_source_unregister(b);
    mtprof_source_unregister(g);
}

TEST(a_source_that_joins_late_and_fails_warns_too)
{
    plain_source bad = {.status = MTPROF_EIO};
    warnings w = {0};
    mtprof_config config = {.struct_size = sizeof config, .on_warning = on_warning, .user = &w};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &s));
    mtprof_source *b = add(&bad);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_I64(w.count, 1);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_WARNING), 1);
    tv_free(v);
    mtprof_source_unregister(b);
}

TEST(sources_may_come_and_go_while_recording)
{
    plain_source p[3] = {{0}};
    mtprof_session *s = tv_start(0);
    mtprof_source *a = add(&p[0]);
    CHECK_EQ_I64(p[0].starts, 1);
    mtprof_push_lost(a, 1);
    mtprof_source_unregister(a);
    CHECK_EQ_I64(p[0].stops, 1);
    mtprof_source *b = add(&p[1]); /* another stream than a's */
    mtprof_push_lost(b, 2);
    REQUIRE_OK(mtprof_session_pause(s));
    mtprof_source *c = add(&p[2]);
    CHECK_EQ_I64(p[2].starts, 0); /* nothing records now */
    REQUIRE_OK(mtprof_session_resume(s, 0));
    CHECK_EQ_I64(p[2].starts, 1);
    mtprof_push_lost(b, 3);
    mtprof_push_lost(c, 4);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_SOURCE], 10);
    REQUIRE_EQ_U64(tv_count(v, MTPROF_REC_LOST), 4);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_SOURCE), 3);
    uint16_t slots[4];
    for (size_t i = 0; i < 4; i++) {
        slots[i] = tv_nth(v, MTPROF_REC_LOST, i)->slot;
    }
    CHECK(slots[0] != slots[1] && slots[1] == slots[2] && slots[2] != slots[3]);
    tv_free(v);
    mtprof_source_unregister(b);
    mtprof_source_unregister(c);
    CHECK_EQ_I64(p[1].stops, 2);
    CHECK_EQ_I64(p[2].stops, 1);
}

TEST(a_source_that_misses_one_window_goes_on_in_its_stream)
{
    plain_source p = {0};
    mtprof_source *a = add(&p);
    mtprof_session *s = tv_start(0);
    mtprof_push_lost(a, 1);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(mtprof_session_pause(s));
        p.status = i == 0 ? MTPROF_EIO : MTPROF_OK;
        REQUIRE_OK(mtprof_session_resume(s, 0));
        mtprof_push_lost(a, 10); /* counts nothing while it is left out */
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h); /* no two chunks with one sequence number */
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_SOURCE], 11);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_LOST), 2);
    tv_free(v);
    mtprof_source_unregister(a);
}

TEST(any_number_of_sources_one_after_the_other)
{
    plain_source p = {0};
    for (int i = 0; i < 70000; i++) {
        mtprof_source_unregister(add(&p));
    }
    CHECK_EQ_I64(p.starts, 0);
}

static void *come_and_go(void *leave)
{
    for (int i = 0; i < 40000 && __atomic_load_n((uint32_t *)leave, __ATOMIC_ACQUIRE) == 0; i++) {
        plain_source p = {0};
        mtprof_source *source = add(&p);
        mtprof_push_lost(source, 1);
        mtprof_source_unregister(source);
        CHECK_EQ_I64(p.starts, p.stops);
    }
    return NULL;
}

TEST(sources_may_come_and_go_while_sessions_do)
{
    uint32_t leave = 0;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, come_and_go, &leave) == 0);
    for (int i = 0; i < (mt_test_long() ? 2000 : 100); i++) {
        mtprof_session *s = tv_start(0);
        mtprof_end(mtprof_begin(&scope));
        REQUIRE_OK(mtprof_session_stop(s));
        tv_free(tv_session(s));
        REQUIRE_OK(mtprof_session_close(s));
    }
    __atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}
