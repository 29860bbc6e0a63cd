/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that come and go: every event comes back under the right thread, and what a short thread
 * costs is its events, not a buffer.
 */
#include "mtprof/record/hot/writer.h"
#include "stress/stress.h"

#include <stdlib.h>
#include <sys/syscall.h>

enum {
    SHORT_THREADS = 10000,
    AT_ONCE = 8,
    DESTRUCTOR_THREADS = 300
};

static uint64_t os_ids[SHORT_THREADS];

static void record_few(uint64_t number)
{
    MTPROF_SCOPE("short thread");
    MTPROF_COUNTER("number", (int64_t)number);
    os_ids[number] = (uint64_t)syscall(SYS_gettid);
}

static void *short_thread(void *argument)
{
    record_few((uint64_t)(uintptr_t)argument);
    return NULL;
}

/* Which logical thread recorded each number. */
typedef struct census {
    uint32_t logical[SHORT_THREADS];
    uint64_t wrong;
} census;

static void count_numbers(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                          const mtprof_record *r)
{
    census *c = context;
    mtprof_thread_info thread;
    if (stream->kind != MTPROF_STREAM_THREAD || r->kind != MTPROF_REC_COUNTER) {
        return;
    }
    uint64_t number = r->words[1];
    if (number >= SHORT_THREADS || c->logical[number] != 0 ||
        !mtprof_reader_thread(trace->reader, r->thread, &thread) ||
        thread.os_id != os_ids[number]) {
        c->wrong++;
    } else {
        c->logical[number] = r->thread;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static void check_census(census *c)
{
    CHECK_EQ_U64(c->wrong, 0);
    qsort(c->logical, SHORT_THREADS, sizeof c->logical[0], by_number);
    uint64_t same = c->logical[0] == 0;
    for (int i = 1; i < SHORT_THREADS; i++) {
        same += c->logical[i] == c->logical[i - 1];
    }
    CHECK_EQ_U64(same, 0);
}

static void run_short_threads(void)
{
    uint64_t number = 0;
    for (; number < SHORT_THREADS / 2; number++) {
        pthread_join(stress_thread(short_thread, (void *)(uintptr_t)number), NULL);
    }
    for (; number < SHORT_THREADS; number += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            threads[i] = stress_thread(short_thread, (void *)(uintptr_t)(number + i));
        }
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            pthread_join(threads[i], NULL);
        }
    }
}

static void ten_thousand(const char *path)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    run_short_threads();
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.threads, SHORT_THREADS);
    CHECK_EQ_U64(h.begins, SHORT_THREADS);
    CHECK_EQ_U64(h.others, SHORT_THREADS);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK(h.bytes < (uint64_t)SHORT_THREADS * 4096 / 10);
    CHECK(mtprof__slot_count() <= 4 * AT_ONCE);
    static census c;
    memset(&c, 0, sizeof c);
    rb_trace t;
    if (rb_open_session(&t, session, count_numbers, &c)) {
        rb_check_clean(&t, "short threads");
        CHECK_EQ_U64(t.n_spans, SHORT_THREADS);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.ignored_ends, 0);
        CHECK_EQ_U64(mtprof_reader_thread_count(t.reader), SHORT_THREADS);
        rb_close(&t);
    }
    check_census(&c);
    CHECK_OK(mtprof_session_close(session));
}

TEST(ten_thousand_short_threads_in_memory)
{
    ten_thousand(NULL);
}

TEST(ten_thousand_short_threads_in_a_file)
{
    char path[STRESS_PATH];
    ten_thousand(stress_path(path, "short.mtt"));
    rb_check_file(path, true);
}

/* ---- scopes that outlive their thread ---- */

enum {
    LEAVERS = 100,
    LEFT_OPEN = 3
};

static mtprof_site left_site = MTPROF_SITE_INIT("left open", MTPROF_KIND_SCOPE);

static void *leave_open(void *argument)
{
    mtprof_token *tokens = argument;
    for (int i = 0; i < LEFT_OPEN; i++) {
        tokens[i] = mtprof_begin(&left_site);
    }
    mtprof_end(mtprof_begin(&left_site));
    return NULL;
}

static void leave_scopes(bool at_once, mtprof_token tokens[LEAVERS][LEFT_OPEN])
{
    pthread_t threads[LEAVERS];
    for (int i = 0; i < LEAVERS; i++) {
        threads[i] = stress_thread(leave_open, tokens[i]);
        if (!at_once) {
            pthread_join(threads[i], NULL);
        }
    }
    for (int i = 0; at_once && i < LEAVERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void check_open(mtprof_session *session, uint64_t begins, uint64_t open)
{
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins, begins);
    CHECK_EQ_U64(h.truncated, open);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "open scopes");
        CHECK_EQ_U64(t.n_spans, begins);
        CHECK_EQ_U64(t.open_spans, open);
        CHECK_EQ_U64(t.ignored_ends, 0);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

TEST(threads_leave_scopes_open)
{
    mtprof_token tokens[LEAVERS][LEFT_OPEN];
    for (int at_once = 0; at_once < 2; at_once++) {
        mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
        REQUIRE(session != NULL);
        leave_scopes(at_once != 0, tokens);
        check_open(session, (uint64_t)LEAVERS * (LEFT_OPEN + 1), (uint64_t)LEAVERS * LEFT_OPEN);
    }
}

/* Others end what they left, in another order, after the threads are gone. */
TEST(scopes_of_dead_threads_are_ended)
{
    mtprof_token tokens[LEAVERS][LEFT_OPEN];
    for (int at_once = 0; at_once < 2; at_once++) {
        mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
        REQUIRE(session != NULL);
        leave_scopes(at_once != 0, tokens);
        for (int i = LEAVERS - 1; i > 0; i--) {
            for (int j = 0; j < LEFT_OPEN; j++) {
                mtprof_end(tokens[i][j]);
            }
        }
        check_open(session, (uint64_t)LEAVERS * (LEFT_OPEN + 1), LEFT_OPEN);
    }
}

/* ---- events at the very end of a thread ---- */

static pthread_key_t late_key;
static uint64_t late_events;
static int late_rounds;

/* Runs after the recorder's own destructor: that key was made when the program was loaded. */
static void record_late(void *value)
{
    uint64_t round = (uint64_t)(uintptr_t)value;
    MTPROF_SCOPE("late scope");
    MTPROF_COUNTER("late", (int64_t)syscall(SYS_gettid));
    stress_add(&late_events, 1);
    if (round < (uint64_t)late_rounds) {
        pthread_setspecific(late_key, (void *)(uintptr_t)(round + 1));
    }
}

static void *late_thread(void *argument)
{
    (void)argument;
    pthread_setspecific(late_key, (void *)(uintptr_t)1);
    MTPROF_INSTANT("early");
    return NULL;
}

static void check_late(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                       const mtprof_record *r)
{
    mtprof_thread_info thread;
    if (stream->kind == MTPROF_STREAM_THREAD && r->kind == MTPROF_REC_COUNTER &&
        (!mtprof_reader_thread(trace->reader, r->thread, &thread) || thread.os_id != r->words[1])) {
        ++*(uint64_t *)context;
    }
}

static void record_in_destructors(int rounds)
{
    late_rounds = rounds;
    late_events = 0;
    REQUIRE_EQ_I64(pthread_key_create(&late_key, record_late), 0);
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    for (int i = 0; i < DESTRUCTOR_THREADS; i++) {
        pthread_join(stress_thread(late_thread, NULL), NULL);
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(late_events, (uint64_t)DESTRUCTOR_THREADS * (uint64_t)rounds);
    uint64_t wrong = 0;
    rb_trace t;
    if (rb_open_session(&t, session, check_late, &wrong)) {
        rb_check_clean(&t, "late events");
        CHECK_EQ_U64(t.n_spans, h.begins);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.kinds[MTPROF_REC_INSTANT], DESTRUCTOR_THREADS);
        CHECK_EQ_U64(t.others, h.others);
        /* Per destructor a counter and a scope; a scope that is lost has no end to lose. */
        CHECK_EQ_U64(t.kinds[MTPROF_REC_COUNTER] + t.n_spans + h.lost, 2 * late_events);
        CHECK_EQ_U64(wrong, 0);
        rb_close(&t);
    }
    if (rounds == 1) {
        CHECK_EQ_U64(h.lost, 0);
    }
    CHECK(mtprof__slot_count() <= 8); /* nothing is kept for threads that are gone */
    CHECK_OK(mtprof_session_close(session));
    pthread_key_delete(late_key);
}

TEST(events_in_destructors)
{
    record_in_destructors(1);
}

/* As often as the C library looks for destructors: nothing cleans up after the last one. */
TEST(events_in_every_round_of_destructors)
{
    if (STRESS_TSAN) {
        MT_SKIP("TSan has put its own thread away by then");
    }
    record_in_destructors(4);
}

/* Threads without any event are not seen at all. */
static void *silent(void *argument)
{
    return argument;
}

TEST(silent_threads_cost_nothing)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    uint32_t before = mtprof__slot_count();
    for (int i = 0; i < 100; i++) {
        pthread_join(stress_thread(silent, NULL), NULL);
    }
    CHECK_EQ_U64(mtprof__slot_count(), before);
    CHECK_EQ_U64(stress_health(session).threads, 0);
    CHECK_OK(mtprof_session_close(session));
}
