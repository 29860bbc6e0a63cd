/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles shared by threads: which call wins, which waits, which gets EBUSY. Run it under tsan.
 */
#include "harness/mt_test.h"
#include "support/fake_session.h"

#include <mtprof/profile.h>

#include <pthread.h>
#include <semaphore.h>

static void finish(fake_profile *fake)
{
    CHECK_OK(mtprof_profile_free(fake->profile));
    CHECK_EQ_U64(fake_violations(), 0);
    CHECK_EQ_U64(fake_alive(), 0);
}

/* ---- while a callback runs ------------------------------------------------------------------- */

static sem_t in_callback, go_on;

static void wait_inside(fake_profile *fake)
{
    (void)fake;
    sem_post(&in_callback);
    sem_wait(&go_on);
}

static void *step_thread(void *argument)
{
    fake_profile *fake = argument;
    CHECK_OK(mtprof_profile_step(fake->profile));
    return NULL;
}

TEST(other_threads_are_told_busy_while_a_callback_runs)
{
    fake_profile fake;
    pthread_t thread;
    char text[64];
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_window window = {.struct_size = sizeof window};
    fake_reset();
    sem_init(&in_callback, 0, 0);
    sem_init(&go_on, 0, 0);
    fake_profile_init(&fake, "Srr");
    fake.in_ready = wait_inside;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    REQUIRE(pthread_create(&thread, NULL, step_thread, &fake) == 0);
    sem_wait(&in_callback);
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_start_trace(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_stop_trace(fake.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_toggle(fake.profile, true, 1), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_free(fake.profile), MTPROF_EBUSY);
    /* Looking is always possible, and so is adding metadata. */
    CHECK_EQ_I64(mtprof_profile_step_num(fake.profile), 1);
    CHECK_OK(mtprof_profile_get_window(fake.profile, &window));
    CHECK_EQ_U64(window.results, MTPROF_RESULTS_READY);
    CHECK_OK(mtprof_profile_get_health(fake.profile, &health));
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "k", 1, "v", 1, false));
    CHECK_OK(mtprof_profile_explain_empty(fake.profile, text, sizeof text));
    CHECK(mtprof_profile_is_running(fake.profile));
    sem_post(&go_on);
    pthread_join(thread, NULL);
    fake.in_ready = NULL;
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 2);
    finish(&fake);
}

/* ---- two threads, one transition ------------------------------------------------------------- */

enum {
    N_THREADS = 4
};

typedef struct worker {
    fake_profile *fake;
    uint64_t seed;
    pthread_barrier_t *barrier;
    int rounds;
    uint64_t n_steps;
} worker;

static void *stop_thread(void *argument)
{
    worker *w = argument;
    pthread_barrier_wait(w->barrier);
    mtprof_status status = mtprof_profile_stop(w->fake->profile);
    CHECK(status == MTPROF_OK || status == MTPROF_EBUSY);
    return NULL;
}

/* Starts N_THREADS of a kind at once and waits for them. */
static void run_threads(void *(*body)(void *), worker workers[N_THREADS])
{
    pthread_t threads[N_THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        workers[i].barrier = &barrier;
        REQUIRE(pthread_create(&threads[i], NULL, body, &workers[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
}

TEST(of_many_stops_one_wins)
{
    int rounds = mt_test_long() ? 2000 : 100;
    for (int round = 0; round < rounds; round++) {
        fake_profile fake;
        fake_reset();
        fake_profile_init(&fake, NULL);
        fake.config.on_warning = NULL; /* the losers' warnings come from all threads */
        REQUIRE_OK(fake_profile_make(&fake));
        CHECK_OK(mtprof_profile_start(fake.profile));
        worker workers[N_THREADS] = {
            {.fake = &fake}, {.fake = &fake}, {.fake = &fake}, {.fake = &fake}};
        run_threads(stop_thread, workers);
        CHECK_EQ_I64(fake.n_ready, 1);
        CHECK_EQ_U64(fake_count(FAKE_STOP), 1);
        CHECK_EQ_U64(fake_count(FAKE_CLOSE), 1);
        finish(&fake);
    }
}

static void *steps_thread(void *argument)
{
    worker *w = argument;
    pthread_barrier_wait(w->barrier);
    for (int i = 0; i < w->rounds; i++) {
        mtprof_status status = mtprof_profile_step(w->fake->profile);
        CHECK(status == MTPROF_OK || status == MTPROF_EBUSY);
        w->n_steps += status == MTPROF_OK;
    }
    return NULL;
}

TEST(steps_of_many_threads_are_counted_once_each)
{
    mtprof_schedule schedule = {
        .struct_size = sizeof schedule, .wait = 1, .warmup = 1, .active = 2};
    fake_profile fake;
    worker workers[N_THREADS];
    uint64_t total = 0;
    fake_reset();
    fake_log_off(true);
    fake_profile_init(&fake, NULL);
    fake.config.schedule = &schedule;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.fake = &fake, .rounds = 500};
    }
    run_threads(steps_thread, workers);
    for (int i = 0; i < N_THREADS; i++) {
        total += workers[i].n_steps;
    }
    CHECK_EQ_I64(mtprof_profile_step_num(fake.profile), (int64_t)total);
    CHECK_EQ_I64(fake.n_ready, (int64_t)total / 4);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    finish(&fake);
}

/* ---- everything at once ---------------------------------------------------------------------- */

static uint64_t inside_seed;

static uint64_t inside_random(void)
{
    uint64_t state = __atomic_add_fetch(&inside_seed, 1, __ATOMIC_RELAXED);
    return mt_test_random(&state);
}

static void look(mtprof_profile *profile)
{
    char text[128];
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_window window = {.struct_size = sizeof window};
    mtprof_status status = mtprof_profile_get_health(profile, &health);
    CHECK(status == MTPROF_OK || status == MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_get_window(profile, &window));
    CHECK_OK(mtprof_profile_get_trace_id(profile, text, sizeof text));
    CHECK_OK(mtprof_profile_explain_empty(profile, text, sizeof text));
    (void)mtprof_profile_step_num(profile);
    (void)mtprof_profile_current_action(profile);
    (void)mtprof_profile_is_running(profile);
    (void)mtprof_profile_callback_result(profile);
}

/* on_trace_ready: calls back in, and sometimes fails. */
static int ready_inside(void *user, mtprof_profile *profile)
{
    (void)user;
    look(profile);
    switch (inside_random() % 8) {
    case 0: CHECK_OK(mtprof_profile_stop(profile)); break;
    case 1: CHECK_EQ_I64(mtprof_profile_step(profile), MTPROF_ESTATE); break;
    case 2: CHECK_EQ_I64(mtprof_profile_free(profile), MTPROF_EBUSY); break;
    case 3: CHECK_OK(mtprof_profile_toggle(profile, true, MTPROF_WATCH_ALL)); break;
    case 4: CHECK_OK(mtprof_profile_add_metadata(profile, "in", 2, "x", 1, false)); break;
    case 5: return 11;
    default: break;
    }
    return 0;
}

static int schedule_inside(void *user, int64_t step, enum mtprof_action *action)
{
    (void)user;
    *action = (enum mtprof_action) "\1\2\3\3\0\2\3\1\2\3"[step % 10];
    return inside_random() % 200 == 0;
}

static void *storm_thread(void *argument)
{
    worker *w = argument;
    mtprof_profile *profile = w->fake->profile;
    pthread_barrier_wait(w->barrier);
    for (int i = 0; i < w->rounds; i++) {
        mtprof_status status = MTPROF_OK;
        switch (mt_test_random(&w->seed) % 16) {
        case 0: status = mtprof_profile_start(profile); break;
        case 1: status = mtprof_profile_stop(profile); break;
        case 2: status = mtprof_profile_toggle(profile, i % 2, MTPROF_WATCH_ALL); break;
        case 3: status = mtprof_profile_add_metadata(profile, "out", 3, "y", 1, false); break;
        case 4: status = mtprof_profile_preset_metadata(profile, "pre", 3, "1", 1, true); break;
        case 5: look(profile); break;
        case 6: status = mtprof_profile_prepare_trace(profile); break;
        case 7: status = mtprof_profile_start_trace(profile); break;
        case 8: status = mtprof_profile_stop_trace(profile); break;
        default: status = mtprof_profile_step(profile); break;
        }
        CHECK(status == MTPROF_OK || status == MTPROF_ESTATE || status == MTPROF_EBUSY ||
              status == MTPROF_ECALLBACK);
    }
    return NULL;
}

TEST(a_storm_of_calls_breaks_no_rule)
{
    fake_profile fake;
    worker workers[N_THREADS];
    uint64_t seed = mt_test_seed();
    fake_reset();
    fake_log_off(true);
    inside_seed = seed;
    fake_profile_init(&fake, NULL);
    fake.config.schedule_callback = schedule_inside;
    fake.config.on_trace_ready = ready_inside;
    fake.config.on_warning = NULL;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){
            .fake = &fake, .seed = mt_test_random(&seed), .rounds = mt_test_long() ? 50000 : 3000};
    }
    run_threads(storm_thread, workers);
    CHECK(fake_count(FAKE_START) > 1);
    CHECK(fake_count(FAKE_OPEN) > 10);
    finish(&fake);
}
