/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions with a limit of their overhead: what is recorded on each level, that the trace stays
 * whole, and that it says what was left out. Levels are set by hand, so that no test depends on
 * time; one lets the recorder decide, and waits until its own account is balanced.
 *
 * Cites the invariants of src/mtprof/record/hot/sample.h and src/mtprof/record/limit/limiter.h.
 */
#include "harness/mt_test.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/hot/sample.h"
#include "support/traces/trace_view.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PERCENT = 10000,
    ALL = 1000000,
    OFTEN = 50000
};

static mtprof_site op_site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site scope_site = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site rare_site = MTPROF_SITE_INIT("rare", MTPROF_KIND_SCOPE);
static mtprof_site counter_site = MTPROF_SITE_INIT("counter", MTPROF_KIND_SCOPE);

static const uint64_t WANTS =
    MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_DETAILS | MTPROF_WANT_MEMORY;

static mtprof_session *start_limited(uint32_t ppm)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = WANTS, .overhead_ppm = ppm};
    mtprof_session *s = NULL;
    CHECK_OK(mtprof_session_start(&config, &s));
    REQUIRE(s != NULL);
    return s;
}

/* Puts the session on a level; the recorder itself takes no more turns. */
static void set_level(mtprof_session *s, uint32_t level, bool open)
{
    mtprof__limiter *l = &s->helper.limiter;
    mtb_lock_acquire(&l->lock);
    l->limit.level = level;
    l->limit.open = open;
    l->limit.since_ns = 0;
    l->due_ns = UINT64_MAX - 1;
    if (l->active) {
        mtprof__epoch_adjust(mtprof__limit_wants(&l->limit, l->wants, l->functions));
    }
    mtb_lock_release(&l->lock);
}

/* What a program does: ops with inputs inside a scope, scopes, a few rare ones, marks. */
static void work(uint32_t rounds)
{
    int64_t sizes[2] = {2, 3};
    mtprof_value value = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = sizes};
    mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
    for (uint32_t i = 0; i < rounds; i++) {
        mtprof_token outer = i % (OFTEN / 10) == 0 ? mtprof_begin(&rare_site) : 0;
        mtprof_token scope = mtprof_begin(&scope_site);
        mtprof_token inner = mtprof_op_begin(&op_site, &op);
        mtprof_op_end(inner, 0, 100);
        mtprof_end(scope);
        mtprof_counter(&counter_site, i);
        mtprof_end(mtprof_begin_named("named", 5, MTPROF_KIND_SCOPE));
        mtprof_end(outer);
    }
}

static size_t spans_named(const trace_view *v, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK(v->spans[i].end != NULL);
        n += strcmp(v->spans[i].name, name) == 0;
    }
    return n;
}

/* What the trace says was left out of a name; *kept: recorded while it was sampled. */
static uint64_t unrecorded(const trace_view *v, const char *name, uint64_t *kept)
{
    mtprof_unrecorded_info info;
    for (uint32_t i = 0; mtprof_reader_unrecorded(v->reader, i, &info); i++) {
        if (info.what == MTPROF_UNRECORDED_SAMPLED && strcmp(tv_string(v, info.name), name) == 0) {
            *kept = info.kept;
            return info.count;
        }
    }
    *kept = 0;
    return 0;
}

TEST(without_a_limit_nothing_is_said)
{
    mtprof_session *s = start_limited(0);
    work(10);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.limit_ppm | h.limit_level | h.limit_changes | h.unrecorded | h.own_cost_ns, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_LIMIT) + tv_count(v, MTPROF_REC_UNRECORDED), 0);
    tv_free(v);
}

TEST(bad_limits_are_refused)
{
    mtprof_config config = {.struct_size = sizeof config, .overhead_ppm = 1000001};
    mtprof_session *s = NULL;
    CHECK_EQ_I64(mtprof_session_start(&config, &s), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "overhead_ppm is 1000001") != NULL);
    CHECK(s == NULL);
}

TEST(payloads_go_first)
{
    mtprof_session *s = start_limited(ALL);
    work(10);
    set_level(s, MTPROF_LIMIT_PAYLOADS, false);
    CHECK(!mtprof_wants(MTPROF_WANT_INPUTS) && mtprof_wants(MTPROF_WANT_OPS));
    work(7);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(spans_named(v, "op"), 17);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), 10);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_MEM_AFTER), 10);
    CHECK(h.without_payload >= 7); /* since the last turn, which saw the others too */
    CHECK_EQ_U64(h.unrecorded, 0);
    tv_free(v);
}

TEST(ops_that_come_often_are_sampled)
{
    mtprof_session *s = start_limited(ALL);
    set_level(s, MTPROF_LIMIT_OPS_SAMPLED, false);
    work(OFTEN);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    uint64_t kept;
    uint64_t out = unrecorded(v, "op", &kept);
    CHECK_EQ_U64(spans_named(v, "op"), OFTEN - out);       /* SMP2 */
    CHECK(kept <= OFTEN - out && kept + 2 >= OFTEN - out); /* the first ones are not sampled yet */
    CHECK(out > OFTEN * 9 / 10);
    CHECK(OFTEN - out >= MTPROF__SAMPLES_KEPT);
    CHECK_EQ_U64(spans_named(v, "scope"), OFTEN);
    CHECK_EQ_U64(spans_named(v, "named"), OFTEN);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), OFTEN);
    CHECK_EQ_U64(h.unrecorded, out);
    CHECK_EQ_U64(h.unrecorded_estimated, 0);
    tv_free(v);
}

TEST(scopes_come_last_and_rare_ones_stay)
{
    mtprof_session *s = start_limited(ALL);
    work(1);
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    work(OFTEN);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    uint64_t kept, out = 0;
    static const char *const names[] = {"scope", "named"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t n = unrecorded(v, names[i], &kept);
        CHECK_EQ_U64(spans_named(v, names[i]), OFTEN + 1 - n);
        CHECK_EQ_U64(kept, OFTEN - n);
        CHECK(n > OFTEN * 9 / 10);
        out += n;
    }
    CHECK_EQ_U64(spans_named(v, "rare"), 10 + 1);
    CHECK_EQ_U64(spans_named(v, "op"), 1);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), 1);
    CHECK_EQ_U64(h.unrecorded - h.unrecorded_estimated, out);
    tv_free(v);
}

TEST(between_stretches_there_are_steps_only)
{
    mtprof_session *s = start_limited(ALL);
    mtprof_token across = mtprof_begin(&rare_site);
    set_level(s, MTPROF_LIMIT_STRETCHES, false);
    CHECK(!mtprof_wants(UINT32_MAX));
    work(100);
    mtprof_token step = mtprof_begin_named("ProfilerStep#1", 14, MTPROF_KIND_STEP);
    CHECK(step != 0);
    mtprof_end(step);
    mtprof_end(across); /* begun before: it ends in the trace */
    CHECK_EQ_U64(mtprof_begin_named("scope", 5, MTPROF_KIND_SCOPE), 0);
    set_level(s, MTPROF_LIMIT_STRETCHES, true);
    work(3);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(spans_named(v, "scope"), 3);
    CHECK_EQ_U64(spans_named(v, "ProfilerStep#1"), 1);
    CHECK_EQ_U64(spans_named(v, "rare"), 1 + 1);
    CHECK_EQ_U64(v->ignored_ends, 0);
    tv_free(v);
}

TEST(launches_and_steps_are_never_sampled)
{
    static mtprof_site launch =
        MTPROF_SITE_INIT("launch", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
    static mtprof_site step = MTPROF_SITE_INIT("step", MTPROF_KIND_STEP);
    mtprof_session *s = start_limited(ALL);
    set_level(s, MTPROF_LIMIT_OPS_SAMPLED, false);
    for (int i = 0; i < 1000; i++) {
        mtprof_end(mtprof_begin(&launch));
    }
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    for (int i = 0; i < 1000; i++) {
        mtprof_end(mtprof_begin(&step));
    }
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(spans_named(v, "launch"), 1000); /* SMP3 */
    CHECK_EQ_U64(spans_named(v, "step"), 1000);
    tv_free(v);
}

TEST(names_that_share_an_entry_are_counted)
{
    mtprof_session *s = start_limited(ALL);
    work(1);
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    enum {
        NAMES = 2 * MTPROF__SAMPLES,
        CALLS = 300
    };
    char name[32];
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < NAMES; i += 64) {
            int length = snprintf(name, sizeof name, "n%d", i);
            mtprof_end(mtprof_begin_named(name, (size_t)length, 0));
        }
    }
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    uint64_t found = 0;
    for (size_t i = 0; i < v->n_spans; i++) {
        found += v->spans[i].name[0] == 'n' && strcmp(v->spans[i].name, "named") != 0;
    }
    CHECK_EQ_U64(found + h.unrecorded - h.unrecorded_estimated, CALLS * (NAMES / 64));
    tv_free(v);
}

/* ---- windows, threads, fork ---- */

TEST(a_level_lasts_over_pauses_and_windows)
{
    mtprof_session *s = start_limited(ALL);
    work(1);
    set_level(s, MTPROF_LIMIT_OPS_OFF, false);
    CHECK_OK(mtprof_session_pause(s));
    CHECK(!mtprof_wants(UINT32_MAX));
    work(1);
    CHECK_OK(mtprof_session_resume(s, 0));
    set_level(s, MTPROF_LIMIT_OPS_OFF, false);
    work(1);
    CHECK_OK(mtprof_session_window_close(s, true));
    CHECK_OK(mtprof_session_clear(s));
    CHECK_OK(mtprof_session_window_open(s, 0, 3));
    CHECK(mtprof_wants(MTPROF_WANT_SCOPES) && !mtprof_wants(MTPROF_WANT_OPS));
    set_level(s, MTPROF_LIMIT_OPS_OFF, false);
    work(1);
    CHECK_OK(mtprof_session_stop(s));
    mtprof_health h = {.struct_size = sizeof h};
    CHECK_OK(mtprof_session_get_health(s, &h));
    CHECK_EQ_U64(h.limit_level, MTPROF_LIMIT_OPS_OFF);
    trace_view *v = tv_session(s);
    CHECK_EQ_U64(spans_named(v, "scope"), 1); /* the first window is cleared */
    CHECK_EQ_U64(spans_named(v, "op"), 0);
    mtprof_limit_info info;
    REQUIRE(mtprof_reader_limit(v->reader, 0, &info));
    CHECK_EQ_U64(info.level, MTPROF_LIMIT_OPS_OFF); /* known from the new recording's start */
    CHECK_EQ_U64(info.before, MTPROF_LIMIT_OPS_OFF);
    tv_free(v);
    CHECK_OK(mtprof_session_close(s));
}

static void *short_thread(void *argument)
{
    work(*(const uint32_t *)argument);
    return NULL;
}

TEST(threads_come_and_go)
{
    mtprof_session *s = start_limited(ALL);
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    enum {
        THREADS = 40,
        ROUNDS = 500
    };
    uint32_t rounds = ROUNDS;
    for (int i = 0; i < THREADS; i += 2) {
        pthread_t a, b;
        REQUIRE(pthread_create(&a, NULL, short_thread, &rounds) == 0);
        REQUIRE(pthread_create(&b, NULL, short_thread, &rounds) == 0);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
    }
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    uint64_t kept;
    CHECK_EQ_U64(spans_named(v, "scope") + unrecorded(v, "scope", &kept), THREADS * ROUNDS);
    CHECK_EQ_U64(spans_named(v, "named") + unrecorded(v, "named", &kept), THREADS * ROUNDS);
    CHECK_EQ_U64(h.threads, THREADS);
    tv_free(v);
}

TEST(levels_change_under_threads_that_record)
{
    mtprof_session *s = start_limited(ALL);
    enum {
        THREADS = 3,
        ROUNDS = 20000
    };
    uint32_t rounds = ROUNDS;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, short_thread, &rounds) == 0);
    }
    for (uint32_t i = 0; i < 600; i++) {
        set_level(s, i % MTPROF_LIMIT_LEVELS, i % 4 == 0);
        usleep(50);
    }
    set_level(s, MTPROF_LIMIT_NONE, false);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    trace_view *v = tv_finish(s, NULL); /* whatever a reader complains about fails here */
    CHECK_EQ_U64(v->ignored_ends, 0);
    CHECK(spans_named(v, "scope") <= THREADS * ROUNDS);
    tv_free(v);
}

TEST(a_child_starts_with_no_level)
{
#if defined(__SANITIZE_THREAD__)
    MT_SKIP("ThreadSanitizer starts no threads after a fork");
#endif
    mtprof_session *s = start_limited(ALL);
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    work(1000);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        int ok = !mtprof_wants(UINT32_MAX);
        mtprof_session *own = start_limited(ALL);
        set_level(own, MTPROF_LIMIT_NONE, false);
        work(1000);
        mtprof_health h = {.struct_size = sizeof h};
        ok = ok && mtprof_session_stop(own) == MTPROF_OK &&
             mtprof_session_get_health(own, &h) == MTPROF_OK && h.begins >= 3000 &&
             h.unrecorded == 0 && mtprof_session_close(own) == MTPROF_OK &&
             mtprof_session_close(s) == MTPROF_OK;
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_I64(status, 0);
    work(10);
    trace_view *v = tv_finish(s, NULL);
    uint64_t kept;
    CHECK_EQ_U64(spans_named(v, "scope") + unrecorded(v, "scope", &kept), 1010);
    tv_free(v);
}

/* ---- the recorder decides ---- */

static void tiny(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        MTPROF_SCOPE("tiny");
    }
}

static void hold(uint32_t policy, uint64_t bytes, uint32_t ppm)
{
    char path[512];
    snprintf(path, sizeof path, "%s/limited.mtt", mt_test_tmpdir());
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .policy = policy,
                            .buffer_bytes = bytes,
                            .overhead_ppm = ppm};
    mtprof_session *s = NULL;
    CHECK_OK(mtprof_session_start(&config, &s));
    REQUIRE(s != NULL);
    mtprof_health h = {.struct_size = sizeof h};
    uint64_t calls = 0;
    mtprof__limiter *l = &s->helper.limiter;
    /* Until the account is balanced: how long that takes is the machine's business. */
    for (;;) {
        tiny(100000);
        calls += 100000;
        mtb_lock_acquire(&l->lock);
        bool held = l->changes > 0 && l->limit.credit_ns >= 0;
        mtb_lock_release(&l->lock);
        if (held) {
            break;
        }
    }
    CHECK_OK(mtprof_session_stop(s));
    CHECK_OK(mtprof_session_get_health(s, &h));
    CHECK_OK(mtprof_session_close(s));
    CHECK(h.limit_changes > 0);
    CHECK(h.limit_level >= MTPROF_LIMIT_SCOPES_SAMPLED);
    CHECK(h.begins + h.evicted < calls);
    CHECK(h.unrecorded > 0);
    CHECK((double)h.own_cost_ns <= 1.1 * ppm / 1e6 * (double)h.own_cost_of_ns);
    mtprof_health read = {.struct_size = sizeof read};
    mtprof_model *model = NULL;
    CHECK_OK(mtprof_model_open(path, NULL, &model));
    CHECK_OK(mtprof_model_get_health(model, &read));
    CHECK_EQ_U64(read.unrecorded, h.unrecorded);
    CHECK_EQ_U64(read.unrecorded_estimated, h.unrecorded_estimated);
    CHECK_EQ_U64(read.limit_changes, h.limit_changes);
    CHECK_EQ_U64(read.limit_level, h.limit_level);
    CHECK_EQ_U64(read.own_cost_ns, h.own_cost_ns);
    CHECK_EQ_U64(read.problems, 0);
    CHECK_EQ_U64(read.truncated, 0);
    mtprof_model_free(model);
    trace_view *v = tv_path(path);
    CHECK(tv_count(v, MTPROF_REC_LIMIT) >= 2 + h.limit_changes);
    mtprof_limit_info info;
    uint32_t level = 0;
    for (uint32_t i = 0; mtprof_reader_limit(v->reader, i, &info); i++) {
        CHECK_EQ_U64(info.before, level); /* no change is missing */
        CHECK_EQ_U64(info.limit_ppm, ppm);
        level = info.level;
    }
    tv_free(v);
}

TEST(tiny_scopes_are_held_at_the_limit)
{
    hold(MTPROF_POLICY_SPILL, 0, 5 * PERCENT);
}

TEST(a_ring_is_held_too)
{
    hold(MTPROF_POLICY_RING, 1 << 20, 5 * PERCENT);
}

TEST(rows_say_that_they_are_a_sample)
{
    mtprof_session *s = start_limited(ALL);
    work(1);
    set_level(s, MTPROF_LIMIT_SCOPES_SAMPLED, false);
    work(1000);
    CHECK_OK(mtprof_session_stop(s));
    mtprof_model *model = NULL;
    mtprof_averages *averages = NULL;
    CHECK_OK(mtprof_model_from_session(s, NULL, &model));
    CHECK_OK(mtprof_averages_new(model, NULL, &averages));
    uint64_t sampled = 0;
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        mtprof_row row = {.struct_size = sizeof row};
        CHECK_OK(mtprof_averages_get_row(averages, i, &row));
        if (strncmp(row.key.bytes, "scope", 5) == 0) {
            CHECK_EQ_U64(row.count + row.unrecorded, 1001);
            sampled++;
        } else if (strncmp(row.key.bytes, "rare", 4) == 0) {
            CHECK_EQ_U64(row.unrecorded, 0);
        }
    }
    CHECK_EQ_U64(sampled, 1);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    CHECK_OK(mtprof_session_close(s));
}
