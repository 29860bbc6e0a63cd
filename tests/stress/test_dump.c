/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps of a session that goes on recording: four threads number their events at full speed, and
 * every dump is a closed trace that passes the check, without a gap inside its window.
 *
 * The reference model: thread t records the numbers 1, 2, 3 … and with each one a time before that
 * of the number before it. So in a dump the numbers of each thread are consecutive; they begin with
 * 1, or the one before the first was not recorded inside the window; and they reach at least the
 * one that the thread had published when the dump was asked for.
 */
#include "stress/stress.h"

#include <mtprof/check.h>
#include <mtprof/session.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    THREADS = 4,
    DUMPS = 8,
    DUMPS_LONG = 1000,
    KILLS = 6,
    KILLS_LONG = 200,
    TAG_SHIFT = 40
};

static mtprof_site scope = MTPROF_SITE_INIT("dump scope", MTPROF_KIND_SCOPE);
static mtprof_site earlier = MTPROF_SITE_INIT("before the last", MTPROF_KIND_SCOPE);
static mtprof_site counter = MTPROF_SITE_INIT("dump counter", MTPROF_KIND_SCOPE);

typedef struct board {
    uint64_t leave;
    uint64_t most;                /* numbers of a thread; 0: no bound */
    uint64_t done[THREADS];       /* the last number that thread has recorded */
    uint64_t done_ticks[THREADS]; /* and when, at the latest */
    uint64_t dumps;               /* for the case that kills: dumps completed */
} board;

typedef struct dump_thread {
    board *shared;
    uint64_t tag;
} dump_thread;

static void *record_numbers(void *argument)
{
    const dump_thread *t = argument;
    char name[32];
    uint64_t most = t->shared->most != 0 ? t->shared->most : UINT64_MAX;
    uint64_t before = mtprof_ticks();
    for (uint64_t n = 1; n <= most && stress_get(&t->shared->leave) == 0; n++) {
        uint64_t now = mtprof_ticks();
        mtprof_token token;
        if (n % 64 == 0) { /* definitions grow meanwhile */
            int length = snprintf(name, sizeof name, "name %llu", (unsigned long long)(n / 6400));
            token = mtprof_begin_named(name, (size_t)length, 0);
        } else {
            token = mtprof_begin(&scope);
        }
        mtprof_counter(&earlier, (int64_t)before);
        mtprof_counter(&counter, (int64_t)(t->tag << TAG_SHIFT | n));
        mtprof_end(token);
        before = now;
        __atomic_store_n(&t->shared->done_ticks[t->tag], mtprof_ticks(), __ATOMIC_RELAXED);
        __atomic_store_n(&t->shared->done[t->tag], n, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void start_threads(board *shared, dump_thread *threads, pthread_t *ids)
{
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (dump_thread){shared, i};
        ids[i] = stress_thread(record_numbers, &threads[i]);
    }
}

static void end_threads(board *shared, const pthread_t *ids)
{
    stress_add(&shared->leave, 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
}

/* Counters of each thread as they are in a dump. */
typedef struct sequence {
    uint64_t first[THREADS], last[THREADS];
    uint64_t before_first[THREADS]; /* ticks: the number before the first was recorded later */
    uint64_t value;                 /* of the last "before" */
    uint16_t slot;
    uint64_t wrong; /* not the one after the last */
} sequence;

static void follow(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                   const mtprof_record *r)
{
    sequence *s = context;
    if (stream->kind != MTPROF_STREAM_THREAD || r->kind != MTPROF_REC_COUNTER) {
        return;
    }
    if (stream->slot != s->slot) { /* its first number may come without its time */
        s->slot = stream->slot;
        s->value = 0;
    }
    if (strcmp(rb_name(trace, r->arg), "before the last") == 0) {
        s->value = r->words[1];
        return;
    }
    uint64_t tag = r->words[1] >> TAG_SHIFT;
    uint64_t n = r->words[1] & (((uint64_t)1 << TAG_SHIFT) - 1);
    if (tag >= THREADS || (s->last[tag] != 0 && n != s->last[tag] + 1)) {
        s->wrong++;
        return;
    }
    if (s->last[tag] == 0) {
        s->first[tag] = n;
        s->before_first[tag] = s->value;
    }
    s->last[tag] = n;
    s->value = 0;
}

static int print_finding(void *user, const mtprof_finding *finding)
{
    (void)user;
    if (finding->severity < MTPROF_CHECK_ERROR) {
        return 0; /* scopes that are open, and what the ring let go */
    }
    printf("%s at %llu: %s\n", finding->rule, (unsigned long long)finding->offset,
           finding->message);
    return 0;
}

/* mtprof check says nothing; the reader neither; the trace is closed. */
static bool check_dump(const char *path)
{
    mtprof_check_options options = {.struct_size = sizeof options, .report = print_finding};
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    return CHECK_OK(mtprof_check(path, &options, &summary)) && CHECK_EQ_U64(summary.errors, 0) &&
           CHECK_EQ_U64(summary.closed, 1);
}

static bool check_window(const char *path, const mtprof_dump_info *info, const board *before)
{
    rb_trace t;
    sequence s = {.wrong = 0};
    struct stat st;
    if (!check_dump(path) || !CHECK_EQ_I64(stat(path, &st), 0) || !rb_open(&t, path, follow, &s)) {
        return false;
    }
    bool good = rb_check_clean(&t, "dump") && CHECK_EQ_U64(s.wrong, 0) &&
                CHECK_EQ_U64((uint64_t)st.st_size, info->bytes);
    for (int i = 0; i < THREADS && good; i++) {
        bool older = mtprof_ticks_to_ns(before->done_ticks[i]) <= info->from_ns;
        good = CHECK(s.last[i] >= before->done[i] || older);
        if (s.last[i] != 0) {
            good =
                CHECK(s.first[i] == 1 || mtprof_ticks_to_ns(s.before_first[i]) <= info->from_ns) &&
                good;
        }
    }
    rb_close(&t);
    return good;
}

static void note_done(const board *shared, board *before)
{
    for (int i = 0; i < THREADS; i++) {
        before->done[i] = __atomic_load_n(&shared->done[i], __ATOMIC_ACQUIRE);
        before->done_ticks[i] = stress_get(&shared->done_ticks[i]);
    }
}

static void dump_while_recording(const char *ring, uint32_t policy, uint64_t bytes, int dumps)
{
    char path[STRESS_PATH];
    bool is_ring = policy == MTPROF_POLICY_RING;
    board shared = {.most = is_ring ? 0 : 100000};
    dump_thread threads[THREADS];
    pthread_t ids[THREADS];
    mtprof_session *session = stress_start(ring, policy, bytes);
    REQUIRE(session != NULL);
    start_threads(&shared, threads, ids);
    while (is_ring && stress_health(session).evicted == 0) {
        stress_rest_us(100);
    }
    uint64_t missed = 0;
    uint64_t longest = 0;
    bool good = true;
    for (int i = 0; i < dumps && good; i++) {
        mtprof_dump_options options = {.struct_size = sizeof options, .reason = "a test"};
        options.last_bytes = i % 4 == 1 ? bytes / 2 : 0;
        options.last_ns = i % 4 == 2 ? 2000000 : 0;
        mtprof_dump_info info = {.struct_size = sizeof info};
        board before = {0};
        note_done(&shared, &before);
        stress_path(path, "dump.mtt");
        good = CHECK_OK(mtprof_session_dump(session, path, &options, &info)) &&
               check_window(path, &info, &before);
        missed += info.chunks_missed;
        longest = info.took_ns > longest ? info.took_ns : longest;
        CHECK(unlink(path) == 0);
    }
    end_threads(&shared, ids);
    printf("%d dumps, %llu chunks missed, the longest took %llu us\n", dumps,
           (unsigned long long)missed, (unsigned long long)(longest / 1000));
    CHECK_OK(mtprof_session_close(session));
}

static int number_of_dumps(void)
{
    return mt_test_long() ? DUMPS_LONG : DUMPS;
}

TEST(dumps_of_a_ring_in_memory)
{
    dump_while_recording(NULL, MTPROF_POLICY_RING, 2 << 20, number_of_dumps());
}

TEST(dumps_of_a_ring_in_a_file)
{
    char path[STRESS_PATH];
    dump_while_recording(stress_path(path, "ring.mtt"), MTPROF_POLICY_RING, 2 << 20,
                         number_of_dumps());
}

/* So small that it is reused while it is copied. */
TEST(dumps_of_a_tiny_ring)
{
    dump_while_recording(NULL, MTPROF_POLICY_RING, 256 << 10, number_of_dumps());
}

TEST(dumps_of_a_growing_trace)
{
    char path[STRESS_PATH];
    dump_while_recording(stress_path(path, "spill.mtt"), MTPROF_POLICY_SPILL, 0, 4);
}

/* The long form prints how long a dump of 256 MiB takes, the best of several; the short one is of
 * 8 MiB. Its content alone is judged. */
TEST(a_large_ring_is_dumped_in_whole)
{
    char ring[STRESS_PATH], path[STRESS_PATH];
    uint64_t mib = mt_test_long() && !STRESS_SANITIZED ? 256 : 8;
    mtprof_session *session =
        stress_start(stress_path(ring, "ring.mtt"), MTPROF_POLICY_RING, mib << 20);
    REQUIRE(session != NULL);
    while (stress_health(session).evicted == 0) {
        for (int i = 0; i < 100000; i++) {
            mtprof_end(mtprof_begin(&scope));
        }
    }
    stress_path(path, "dump.mtt");
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        mtprof_dump_info info = {.struct_size = sizeof info};
        REQUIRE_OK(mtprof_session_dump(session, path, NULL, &info));
        CHECK(info.bytes > (mib << 20) / 10 * 9);
        CHECK_EQ_U64(info.chunks_missed, 0);
        best_ns = info.took_ns < best_ns ? info.took_ns : best_ns;
    }
    printf("dump of %llu MiB: %.1f ms, the best of 5\n", (unsigned long long)mib,
           (double)best_ns / 1e6);
    check_dump(path);
    CHECK_OK(mtprof_session_close(session));
}

/* ---- what a dump says of itself ---- */

TEST(a_dump_has_its_reason_and_its_steps)
{
    char path[STRESS_PATH];
    stress_path(path, "dump.mtt");
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_RING, 256 << 10);
    REQUIRE(session != NULL);
    CHECK_OK(mtprof_session_add_metadata(session, "mine", 4, "yes", 3, false));
    for (uint64_t step = 0; step < 40; step++) {
        CHECK_OK(mtprof_session_step(session, step, 0));
        for (int i = 0; i < 500; i++) {
            mtprof_end(mtprof_begin(&scope));
        }
    }
    mtprof_dump_options options = {.struct_size = sizeof options, .last_steps = 5, .reason = "why"};
    mtprof_dump_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_session_dump(session, path, &options, &info));
    check_dump(path);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    mtprof_text key, value;
    bool json;
    int found = 0;
    for (uint32_t i = 0; mtprof_reader_metadata(reader, i, &key, &value, &json); i++) {
        found += strcmp(key.bytes, "mine") == 0 && strcmp(value.bytes, "yes") == 0;
        found += strcmp(key.bytes, "dump_reason") == 0 && strcmp(value.bytes, "why") == 0;
        found += strcmp(key.bytes, "dump_window") == 0 && json;
    }
    CHECK_EQ_I64(found, 3);
    mtprof_reader_close(reader);
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_open(path, NULL, &model));
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_model_get_health(model, &health));
    CHECK(health.evicted > 0);
    mtprof_model_free(model);
    /* Further back than there are steps: everything. */
    options.last_steps = 100;
    CHECK_OK(mtprof_session_dump(session, path, &options, &info));
    check_dump(path);
    CHECK_OK(mtprof_session_stop(session));
    CHECK_OK(mtprof_session_dump(session, path, NULL, NULL)); /* a stopped one, too */
    check_dump(path);
    CHECK_OK(mtprof_session_close(session));
}

/* A ring by steps lets go of what is older than they are, though there is room. */
TEST(ring_in_steps)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = MTPROF_POLICY_RING,
                            .buffer_bytes = 4 << 20,
                            .ring_steps = 3};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    const uint64_t per_step = 20000;
    uint64_t n = 0;
    for (uint64_t step = 0; step < 20; step++) {
        CHECK_OK(mtprof_session_step(session, step, 0));
        for (uint64_t i = 0; i < per_step; i++) {
            mtprof_counter(&counter, (int64_t)++n);
        }
    }
    CHECK_OK(mtprof_session_stop(session));
    rb_trace t;
    sequence s = {.wrong = 0};
    if (rb_open_session(&t, session, follow, &s)) {
        rb_check_clean(&t, "ring in steps");
        CHECK_EQ_U64(s.wrong, 0);
        CHECK_EQ_U64(s.last[0], n);
        uint64_t kept = s.last[0] - s.first[0] + 1;
        CHECK(kept >= 3 * per_step);
        CHECK(kept < 10 * per_step); /* there was room for all: 24 bytes each */
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

TEST(bad_arguments)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_RING, 256 << 10);
    REQUIRE(session != NULL);
    char path[STRESS_PATH];
    stress_path(path, "dump.mtt");
    mtprof_dump_options options = {.struct_size = sizeof options};
    mtprof_dump_info info = {.struct_size = 0};
    CHECK_EQ_I64(mtprof_session_dump(NULL, path, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_session_dump(session, "", NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_session_dump(session, path, NULL, &info), MTPROF_EINVAL);
    options.last_steps = MTPROF_SESSION_STEPS_MAX;
    CHECK_EQ_I64(mtprof_session_dump(session, path, &options, NULL), MTPROF_EINVAL);
    options.struct_size = 0;
    CHECK_EQ_I64(mtprof_session_dump(session, path, &options, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_session_dump(session, "/nowhere/at/all/dump.mtt", NULL, NULL), MTPROF_EIO);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 0);
    CHECK_OK(mtprof_session_close(session));
}

/* ---- fork, kill ---- */

TEST(a_forked_child_has_no_session_to_dump)
{
    char path[STRESS_PATH];
    stress_path(path, "dump.mtt");
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_RING, 256 << 10);
    REQUIRE(session != NULL);
    mtprof_end(mtprof_begin(&scope));
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ_I64(mtprof_session_dump(session, path, NULL, NULL), MTPROF_ESTATE);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ_I64(status, 0);
    CHECK_OK(mtprof_session_dump(session, path, NULL, NULL));
    check_dump(path);
    CHECK_OK(mtprof_session_close(session));
}

static _Noreturn void dump_for_ever(board *shared, const char *ring, const char *path)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dump_thread threads[THREADS];
    pthread_t ids[THREADS];
    mtprof_session *session = stress_start(ring, MTPROF_POLICY_RING, 4 << 20);
    if (session == NULL) {
        _exit(1);
    }
    start_threads(shared, threads, ids);
    for (;;) {
        if (mtprof_session_dump(session, path, NULL, NULL) != MTPROF_OK) {
            _exit(2);
        }
        stress_add(&shared->dumps, 1);
    }
}

/* kill -9 at a random moment: the dump at the path is complete, and so is the ring. */
TEST(killed_while_dumping)
{
    char ring[STRESS_PATH], path[STRESS_PATH];
    stress_path(ring, "ring.mtt");
    stress_path(path, "dump.mtt");
    uint64_t random = mt_test_seed();
    board *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    int kills = mt_test_long() ? KILLS_LONG : KILLS;
    for (int i = 0; i < kills; i++) {
        memset(shared, 0, sizeof *shared);
        pid_t child = fork();
        if (child == 0) {
            dump_for_ever(shared, ring, path);
        }
        int status = 0;
        while (stress_get(&shared->dumps) == 0 && waitpid(child, &status, WNOHANG) == 0) {
            stress_rest_us(200);
        }
        stress_rest_us((long)(mt_test_random(&random) % 20000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        if (!CHECK(WIFSIGNALED(status)) || !check_dump(path)) {
            break;
        }
        rb_trace t;
        sequence s = {.wrong = 0};
        if (rb_open(&t, ring, follow, &s)) {
            rb_check_clean(&t, "ring of a killed process");
            CHECK_EQ_U64(s.wrong, 0);
            rb_close(&t);
        }
        /* At most the file that was being written, without a name or with one. */
        CHECK(stress_entries(mt_test_tmpdir()) <= 3);
    }
    munmap(shared, sizeof *shared);
}
