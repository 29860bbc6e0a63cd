/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything at once: threads record all kinds of events while others pause, resume, read, ask and
 * annotate; scopes that end elsewhere, later, or never.
 */
#include "stress/stress.h"

enum {
    THREADS = 4,
    CHANGES = 200,
    EXCHANGE = 64
};

static uint64_t leave_now;

typedef struct tally {
    uint64_t begins, tokens, marks;
} tally;

/* Tokens handed from thread to thread. */
static mtprof_token exchange[EXCHANGE];

static mtprof_token swap_token(uint64_t place, mtprof_token token)
{
    return __atomic_exchange_n(&exchange[place % EXCHANGE], token, __ATOMIC_ACQ_REL);
}

static void record_round(uint64_t number, uint32_t key, tally *t)
{
    static mtprof_site site = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    char name[32];
    int n = snprintf(name, sizeof name, "name %llu", (unsigned long long)(number % 3000));
    int64_t shape[] = {(int64_t)(number % 100), 3};
    mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = shape};
    mtprof_op details = {.struct_size = sizeof details,
                         .inputs = &input,
                         .n_inputs = 1,
                         .fields = MTPROF_OP_FLOPS | MTPROF_OP_MEMORY,
                         .flops = number};
    mtprof_token a = mtprof_begin(&site);
    mtprof_token b = mtprof_op_begin(&op, &details);
    mtprof_token c = mtprof_begin_named(name, (size_t)n, 0);
    mtprof_meta_int(c, key, (int64_t)number);
    mtprof_meta_text(a, key, name, (size_t)n);
    MTPROF_INSTANT("instant");
    MTPROF_COUNTER("counter", (int64_t)number);
    MTPROF_FLOW("flow", MTPROF_FLOW_START, number);
    mtprof_alloc(1, number, 16, 32, 4096);
    mtprof_token d = mtprof_begin_under(&site, b);
    mtprof_end(swap_token(number, d)); /* d ends on some thread, some time */
    mtprof_end(c);
    mtprof_op_end(b, 0, number);
    mtprof_end(a);
    t->begins += 4;
    t->tokens += (a != 0) + (b != 0) + (c != 0) + (d != 0);
    t->marks += 4;
}

typedef struct recorder {
    tally counts;
    uint32_t key;
} recorder;

static void *record_until_told(void *argument)
{
    recorder *r = argument;
    for (uint64_t i = 0; stress_get(&leave_now) == 0; i++) {
        record_round(i, r->key, &r->counts);
        if (i % 16 == 0) {
            stress_rest_us(50); /* keeps the trace small */
        }
    }
    return NULL;
}

static mtprof_session *start_all(void)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS |
                                     MTPROF_WANT_FLOPS | MTPROF_WANT_MEMORY};
    mtprof_session *session = NULL;
    CHECK_OK(mtprof_session_start(&config, &session));
    return session;
}

/* ---- while other threads read and ask ---- */

static void ask(mtprof_session *session, int i)
{
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_LATE]); /* caught by a gate that shut */
    CHECK_OK(mtprof_session_add_metadata(session, "key", 3, "value", 5, false));
    mtprof_status status = mtprof_session_step(session, (uint64_t)i, 0);
    CHECK(status == MTPROF_OK || status == MTPROF_EBUSY || status == MTPROF_ESTATE);
    if (i % 25 == 0) {
        rb_trace t;
        if (rb_open_session(&t, session, NULL, NULL)) {
            rb_check_clean(&t, "live");
            rb_close(&t);
        }
    }
}

static void *ask_until_told(void *argument)
{
    for (int i = 0; stress_get(&leave_now) == 0; i++) {
        ask(argument, i);
        stress_rest_us(1000);
    }
    return NULL;
}

/* The gate stays open: every event must be there. */
TEST(record_while_others_ask)
{
    mtprof_session *session = start_all();
    REQUIRE(session != NULL);
    recorder recorders[THREADS];
    pthread_t threads[THREADS + 1];
    memset(recorders, 0, sizeof recorders);
    for (int i = 0; i < THREADS; i++) {
        recorders[i].key = mtprof_intern("key", 3);
        threads[i] = stress_thread(record_until_told, &recorders[i]);
    }
    threads[THREADS] = stress_thread(ask_until_told, session);
    for (int i = 0; i < 50; i++) {
        ask(session, i);
        stress_rest_us(2000);
    }
    stress_add(&leave_now, 1);
    tally all = {0};
    for (int i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (i < THREADS) {
            all.begins += recorders[i].counts.begins;
            all.tokens += recorders[i].counts.tokens;
            all.marks += recorders[i].counts.marks;
        }
    }
    for (uint64_t i = 0; i < EXCHANGE / 2; i++) {
        mtprof_end(swap_token(i, 0));
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins + h.others + h.lost, all.begins + all.marks);
    CHECK_EQ_U64(all.tokens, h.begins);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "all kinds");
        CHECK_EQ_U64(t.begins, h.begins);
        CHECK_EQ_U64(t.others, h.others);
        CHECK_EQ_U64(t.open_spans, h.truncated);
        CHECK_EQ_U64(t.ignored_ends, 0);
        CHECK(t.open_spans <= EXCHANGE);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

/* ---- while the gate opens and shuts ---- */

static void *change_some(void *argument)
{
    mtprof_session *session = argument;
    for (int i = 0; i < CHANGES; i++) {
        mtprof_status status =
            i % 2 == 0 ? mtprof_session_pause(session) : mtprof_session_resume(session, 0);
        CHECK(status == MTPROF_OK || status == MTPROF_EBUSY);
        stress_rest_us(200);
    }
    return NULL;
}

/* What gave a token is in the trace; scopes open at a pause are truncated, and counted. */
TEST(record_while_the_gate_moves)
{
    mtprof_session *session = start_all();
    REQUIRE(session != NULL);
    recorder recorders[THREADS];
    pthread_t threads[THREADS + 2];
    memset(recorders, 0, sizeof recorders);
    for (int i = 0; i < THREADS; i++) {
        recorders[i].key = mtprof_intern("key", 3);
        threads[i] = stress_thread(record_until_told, &recorders[i]);
    }
    threads[THREADS] = stress_thread(change_some, session);
    threads[THREADS + 1] = stress_thread(ask_until_told, session);
    change_some(session);
    pthread_join(threads[THREADS], NULL);
    mtprof_status status = mtprof_session_resume(session, 0);
    CHECK_OK(status);
    stress_rest_us(2000);
    CHECK_OK(mtprof_session_stop(session)); /* while they record */
    stress_add(&leave_now, 1);
    uint64_t tokens = 0;
    for (int i = 0; i < THREADS + 2; i++) {
        if (i != THREADS) {
            pthread_join(threads[i], NULL);
        }
        tokens += i < THREADS ? recorders[i].counts.tokens : 0;
    }
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins, tokens);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_LATE]);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "gate");
        CHECK_EQ_U64(t.begins, h.begins);
        CHECK_EQ_U64(t.others, h.others);
        if (h.busy_at_stop == 0) { /* a busy machine: a thread slept through a pause */
            CHECK_EQ_U64(t.open_spans, h.truncated);
        }
        printf("%llu scopes, %llu cut off, %llu late\n", (unsigned long long)t.n_spans,
               (unsigned long long)t.open_spans, (unsigned long long)h.lost);
        CHECK(t.open_spans > 0);
        rb_close(&t);
    }
    char path[STRESS_PATH];
    CHECK_OK(mtprof_session_save(session, stress_path(path, "gate.mtt")));
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
}

/* ---- windows that are cleared while others look ---- */

static void *look_until_told(void *argument)
{
    mtprof_session *session = argument;
    for (int i = 0; stress_get(&leave_now) == 0; i++) {
        mtprof_health h = {.struct_size = sizeof h};
        CHECK_OK(mtprof_session_get_health(session, &h));
        CHECK_OK(mtprof_session_add_metadata(session, "k", 1, "v", 1, false));
        mtprof_session_step(session, 1, 0);
        rb_trace t;
        if (rb_open_session(&t, session, NULL, NULL)) {
            rb_check_clean(&t, "window");
            rb_close(&t);
        }
        stress_rest_us(100);
    }
    return NULL;
}

TEST(windows_cleared_while_others_look)
{
    mtprof_config config = {.struct_size = sizeof config, .paused = 1};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    recorder recorders[2];
    pthread_t threads[4];
    memset(recorders, 0, sizeof recorders);
    for (int i = 0; i < 2; i++) {
        recorders[i].key = mtprof_intern("key", 3);
        threads[i] = stress_thread(record_until_told, &recorders[i]);
        threads[2 + i] = stress_thread(look_until_told, session);
    }
    for (int i = 0; i < 60; i++) {
        CHECK_OK(mtprof_session_window_open(session, 0, (uint32_t)i));
        stress_rest_us(1000);
        CHECK_OK(mtprof_session_window_close(session, true));
        CHECK_OK(mtprof_session_clear(session));
    }
    stress_add(&leave_now, 1);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_OK(mtprof_session_close(session));
}

/* ---- scopes across threads and epochs, step by step ---- */

static void *end_token(void *argument)
{
    mtprof_end(*(mtprof_token *)argument);
    return NULL;
}

TEST(tokens_end_elsewhere_and_later)
{
    static mtprof_site site = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    mtprof_token elsewhere = mtprof_begin(&site);
    pthread_join(stress_thread(end_token, &elsewhere), NULL);
    mtprof_token paused_over = mtprof_begin(&site);
    CHECK_OK(mtprof_session_pause(session));
    mtprof_end(paused_over); /* the gate is shut */
    CHECK_OK(mtprof_session_resume(session, 0));
    mtprof_end(paused_over); /* another epoch */
    pthread_join(stress_thread(end_token, &paused_over), NULL);
    mtprof_token stopped_over = mtprof_begin(&site);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_end(stopped_over);
    CHECK_EQ_U64(stress_health(session).truncated, 2);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "tokens");
        CHECK_EQ_U64(t.n_spans, 3);
        CHECK_EQ_U64(t.open_spans, 2);
        CHECK_EQ_U64(t.ignored_ends, 0);
        rb_close(&t);
    }
    mtprof_session *next = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    mtprof_end(stopped_over); /* of another recording */
    CHECK_OK(mtprof_session_stop(next));
    CHECK_EQ_U64(stress_health(next).truncated, 0);
    if (rb_open_session(&t, next, NULL, NULL)) {
        CHECK_EQ_U64(t.kinds[MTPROF_REC_END] + t.kinds[MTPROF_REC_END_X], 0);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(next));
    CHECK_OK(mtprof_session_close(session));
}
