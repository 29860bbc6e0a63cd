/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers that are full: ring mode keeps the newest, policy stop the oldest, spill everything.
 */
#include "stress/stress.h"

#include <sys/stat.h>

enum {
    THREADS = 4,
    ROUNDS = 200000,
    TAG_SHIFT = 40
};

static mtprof_site scope = MTPROF_SITE_INIT("ring scope", MTPROF_KIND_SCOPE);
static mtprof_site counter = MTPROF_SITE_INIT("ring counter", MTPROF_KIND_SCOPE);

typedef struct ring_thread {
    uint64_t tag;
    uint64_t rounds;
    uint64_t refused; /* begins without token */
} ring_thread;

static void *record_rounds(void *argument)
{
    ring_thread *t = argument;
    char name[32];
    for (uint64_t n = 1; n <= t->rounds; n++) {
        mtprof_token token;
        if (n % 16 == 0) {
            int length = snprintf(name, sizeof name, "name %llu", (unsigned long long)(n / 1600));
            token = mtprof_begin_named(name, (size_t)length, 0);
        } else {
            token = mtprof_begin(&scope);
        }
        mtprof_counter(&counter, (int64_t)(t->tag << TAG_SHIFT | n));
        mtprof_end(token);
        t->refused += token == 0;
    }
    return NULL;
}

/* Counters of each thread as they are in the trace. */
typedef struct sequence {
    uint64_t first[THREADS], last[THREADS], count[THREADS];
    uint64_t wrong; /* not the one after the last */
} sequence;

static void follow(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                   const mtprof_record *r)
{
    (void)trace;
    sequence *s = context;
    if (stream->kind != MTPROF_STREAM_THREAD || r->kind != MTPROF_REC_COUNTER) {
        return;
    }
    uint64_t tag = r->words[1] >> TAG_SHIFT;
    uint64_t n = r->words[1] & (((uint64_t)1 << TAG_SHIFT) - 1);
    if (tag >= THREADS) {
        s->wrong++;
        return;
    }
    s->wrong += s->count[tag] != 0 && n != s->last[tag] + 1;
    s->first[tag] = s->count[tag] == 0 ? n : s->first[tag];
    s->last[tag] = n;
    s->count[tag]++;
}

static void run_threads(ring_thread *threads, uint64_t rounds)
{
    pthread_t ids[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (ring_thread){i, rounds, 0};
        ids[i] = stress_thread(record_rounds, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
}

/* ---- ring ---- */

static void ring_of(const char *path, uint64_t bytes)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_RING, bytes);
    REQUIRE(session != NULL);
    ring_thread threads[THREADS];
    run_threads(threads, ROUNDS);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK(h.bytes <= 2 * bytes); /* definitions come on top */
    CHECK(h.evicted > 0);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.begins, (uint64_t)THREADS * ROUNDS);
    rb_trace t;
    sequence s = {.wrong = 0};
    if (rb_open_session(&t, session, follow, &s)) {
        rb_check_clean(&t, "ring");
        CHECK_EQ_U64(t.begins + h.evicted, h.begins);
        CHECK_EQ_U64(s.wrong, 0); /* contiguous */
        uint64_t present = 0;
        for (int i = 0; i < THREADS; i++) {
            CHECK(s.count[i] == 0 || s.last[i] == ROUNDS); /* and the newest */
            present += s.count[i];
        }
        CHECK(present > 0);
        CHECK_EQ_U64(t.info.health[MTPROF_HEALTH_RING_BEGINS], h.evicted);
        CHECK(t.records * 8 > bytes / 4); /* the room is used */
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
    if (path != NULL) {
        rb_check_file(path, bytes <= 256 << 10);
    }
}

TEST(ring_of_some_sizes)
{
    char path[STRESS_PATH];
    stress_path(path, "ring.mtt");
    for (uint64_t bytes = 256 << 10; bytes <= 4 << 20; bytes *= 4) {
        ring_of(NULL, bytes);
        ring_of(path, bytes);
    }
}

/* The last N seconds: what is older goes, though there is room. */
TEST(ring_in_time)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = MTPROF_POLICY_RING,
                            .buffer_bytes = 64 << 20,
                            .ring_ns = 100 * 1000 * 1000};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    ring_thread thread = {0, 0, 0};
    uint64_t start = mtprof_ticks();
    uint64_t total = 0;
    /* For ten times as long as is kept. */
    while (mtprof_ticks_to_ns(mtprof_ticks()) - mtprof_ticks_to_ns(start) < 1000000000) {
        for (int i = 0; i < 1000; i++) {
            mtprof_token token = mtprof_begin(&scope);
            mtprof_counter(&counter, (int64_t)++total);
            mtprof_end(token);
        }
        stress_rest_us(2000);
    }
    (void)thread;
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK(h.evicted > 0);
    rb_trace t;
    sequence s = {.wrong = 0};
    if (rb_open_session(&t, session, follow, &s)) {
        rb_check_clean(&t, "ring in time");
        CHECK_EQ_U64(t.begins + h.evicted, h.begins);
        CHECK_EQ_U64(s.wrong, 0);
        CHECK_EQ_U64(s.last[0], total);
        /* What is there reaches back at least as far as asked; how much further depends on the
         * size of a chunk only. */
        uint64_t end = t.info.end_ticks != 0 ? t.info.end_ticks : t.spans[t.n_spans - 1].start;
        int64_t kept =
            mtprof_reader_ns(t.reader, end) - mtprof_reader_ns(t.reader, t.spans[0].start);
        CHECK(kept >= 90 * 1000 * 1000);
        CHECK(t.begins < h.begins * 3 / 4);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

/* ---- reading a ring while it turns ---- */

static uint64_t writers_left;

static void *record_and_leave(void *argument)
{
    record_rounds(argument);
    __atomic_sub_fetch(&writers_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* No wrong event: values of a thread only grow, and no more than was recorded. */
static void only_grows(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                       const mtprof_record *r)
{
    (void)trace;
    sequence *s = context;
    if (stream->kind != MTPROF_STREAM_THREAD || r->kind != MTPROF_REC_COUNTER) {
        return;
    }
    uint64_t tag = r->words[1] >> TAG_SHIFT;
    uint64_t n = r->words[1] & (((uint64_t)1 << TAG_SHIFT) - 1);
    if (tag >= THREADS || n <= s->last[tag] || n > (uint64_t)ROUNDS * 4) {
        s->wrong++;
        return;
    }
    s->last[tag] = n;
    s->count[tag]++;
}

static void live_reading(const char *path, uint64_t bytes)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_RING, bytes);
    REQUIRE(session != NULL);
    ring_thread threads[THREADS];
    pthread_t ids[THREADS];
    writers_left = THREADS;
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (ring_thread){i, STRESS_SANITIZED ? ROUNDS / 4 : ROUNDS * 4, 0};
        ids[i] = stress_thread(record_and_leave, &threads[i]);
    }
    uint64_t readings = 0, events = 0, gone = 0;
    while (__atomic_load_n(&writers_left, __ATOMIC_ACQUIRE) != 0) {
        rb_trace t;
        sequence s = {.wrong = 0};
        if (!rb_open_session(&t, session, only_grows, &s)) {
            break;
        }
        bool clean = rb_check_clean(&t, "live ring") && CHECK_EQ_U64(s.wrong, 0);
        readings++;
        events += t.records;
        gone += t.chunks_missing;
        rb_close(&t);
        if (!clean) {
            break;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
    printf("%llu readings of a turning ring, %llu records, %llu chunks gone meanwhile\n",
           (unsigned long long)readings, (unsigned long long)events, (unsigned long long)gone);
    CHECK(readings > 0);
    CHECK_OK(mtprof_session_close(session));
}

TEST(live_reading_of_a_ring_in_memory)
{
    live_reading(NULL, 1 << 20);
}

TEST(live_reading_of_a_ring_in_a_file)
{
    char path[STRESS_PATH];
    live_reading(stress_path(path, "live.mtt"), 1 << 20);
}

/* ---- stop ---- */

TEST(policy_stop_keeps_the_oldest)
{
    const uint64_t sizes[] = {64 << 10, 1 << 20, 3 << 20};
    for (int i = 0; i < 3; i++) {
        mtprof_session *session = stress_start(NULL, MTPROF_POLICY_STOP, sizes[i]);
        REQUIRE(session != NULL);
        ring_thread threads[THREADS];
        run_threads(threads, ROUNDS / 4);
        CHECK_OK(mtprof_session_stop(session));
        mtprof_health h = stress_health(session);
        uint64_t refused = 0;
        rb_trace t;
        sequence s = {.wrong = 0};
        if (rb_open_session(&t, session, follow, &s)) {
            rb_check_clean(&t, "stop");
            CHECK_EQ_U64(s.wrong, 0);
            uint64_t counters = 0;
            for (int j = 0; j < THREADS; j++) {
                CHECK(s.count[j] == 0 || s.first[j] == 1); /* the oldest */
                refused += threads[j].refused;
                counters += s.count[j];
            }
            CHECK_EQ_U64(h.begins + refused, (uint64_t)THREADS * (ROUNDS / 4));
            CHECK_EQ_U64(h.lost, refused + (uint64_t)THREADS * (ROUNDS / 4) - counters);
            CHECK_EQ_U64(h.lost_by[MTPROF_LOST_BUDGET], h.lost);
            CHECK_EQ_U64(t.open_spans, 0); /* ends find room in the tail */
            CHECK_EQ_U64(h.truncated, 0);
            CHECK_EQ_U64(h.evicted, 0);
            CHECK(h.bytes <= 2 * sizes[i]);
            rb_close(&t);
        }
        CHECK_OK(mtprof_session_close(session));
    }
}

/* ---- spill ---- */

TEST(spill_loses_nothing)
{
    char folder[STRESS_PATH];
    stress_path(folder, "spill");
    REQUIRE_EQ_I64(mkdir(folder, 0755), 0);
    mtprof_config config = {
        .struct_size = sizeof config, .buffer_bytes = 1 << 20, .spill_directory = folder};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    ring_thread threads[THREADS];
    run_threads(threads, ROUNDS);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.lost, 0);
    CHECK(h.bytes > 4 << 20);
    CHECK_EQ_I64(stress_entries(folder), 0); /* what spills has no name */
    char path[STRESS_PATH];
    CHECK_OK(mtprof_session_save(session, stress_path(path, "saved.mtt")));
    rb_trace t;
    sequence s = {.wrong = 0};
    if (rb_open_session(&t, session, follow, &s)) {
        rb_check_clean(&t, "spill");
        CHECK_EQ_U64(s.wrong, 0);
        CHECK_EQ_U64(t.begins, (uint64_t)THREADS * ROUNDS);
        CHECK_EQ_U64(t.others, (uint64_t)THREADS * ROUNDS);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
    CHECK_EQ_I64(stress_entries(folder), 0);
    rb_check_file(path, false);
}

/* No place to spill to: the budget is what there is, the rest is counted. */
TEST(spill_to_nowhere)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .buffer_bytes = 1 << 20,
                            .spill_directory = "/nowhere/at/all"};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    ring_thread threads[THREADS];
    run_threads(threads, ROUNDS / 2);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins + h.others + h.lost, (uint64_t)THREADS * ROUNDS);
    CHECK(h.lost_by[MTPROF_LOST_DISK] == h.lost && h.lost > 0);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "spill to nowhere");
        CHECK_EQ_U64(t.begins, h.begins);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}
