/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock that goes back, or jumps: the trace stays sound, nothing lasts longer than the clock
 * said, and going back is counted.
 */
#include "mtprof/record/hot/ticks.h"
#include "stress/stress.h"

enum {
    ROUNDS = 2000,
    SECOND = 1000000000
};

static mtprof_site site = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

static void check_spans(const rb_trace *t, uint64_t longest)
{
    uint64_t too_long = 0;
    for (size_t i = 0; i < t->n_spans; i++) {
        const rb_span *s = &t->spans[i];
        int64_t lasted = (int64_t)(s->end - s->start);
        too_long += lasted > (int64_t)longest || lasted < -(int64_t)longest;
    }
    CHECK_EQ_U64(too_long, 0);
}

TEST(clock_goes_back_again_and_again)
{
    uint64_t seed = mt_test_seed();
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    int64_t second = (int64_t)mtprof__ns_to_ticks(SECOND);
    uint64_t jumps_back = 0;
    int64_t offset = 0;
    uint64_t began = mtprof_ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mtprof_token token = mtprof_begin(&site);
        int64_t next = (int64_t)(mt_test_random(&seed) % 200) * second - 100 * second;
        jumps_back += next < offset - second; /* clearly back, by seconds */
        offset = next;
        mtprof__clock_disturb(offset, true);
        mtprof_end(token);
        MTPROF_COUNTER("counter", i);
    }
    mtprof__clock_disturb(0, false);
    uint64_t took = mtprof_ticks() - began;
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins, ROUNDS);
    CHECK_EQ_U64(h.others, ROUNDS);
    CHECK_EQ_U64(h.lost, 0);
    CHECK(h.clock_back >= jumps_back);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "clock");
        CHECK_EQ_U64(t.n_spans, ROUNDS);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.ignored_ends, 0);
        check_spans(&t, 200 * (uint64_t)second + took);
        rb_close(&t);
    }
    char path[STRESS_PATH];
    CHECK_OK(mtprof_session_save(session, stress_path(path, "clock.mtt")));
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, true);
}

/* Any kind of record may find that the clock went back; ends count it. */
TEST(every_kind_bears_it)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    int64_t second = (int64_t)mtprof__ns_to_ticks(SECOND);
    for (int kind = 0; kind < 7; kind++) {
        mtprof__clock_disturb(0, true);
        MTPROF_INSTANT("reference");
        mtprof_token token = kind == 1 ? mtprof_begin(&site) : 0;
        uint64_t before = stress_health(session).clock_back;
        mtprof__clock_disturb(-10 * second, true);
        switch (kind) {
        case 0: token = mtprof_begin(&site); break;
        case 1: mtprof_end(token); break;
        case 2: MTPROF_INSTANT("back"); break;
        case 3: MTPROF_COUNTER("back", 1); break;
        case 4: mtprof_alloc(0, 1, 2, 3, 4); break;
        case 5: token = mtprof_begin_named("back", 4, 0); break;
        default: mtprof_launch(NULL, 0, 0); break;
        }
        if (kind == 1) {
            CHECK_EQ_U64(stress_health(session).clock_back, before + 1);
        } else {
            mtprof_end(token);
        }
    }
    mtprof__clock_disturb(0, false);
    CHECK_OK(mtprof_session_stop(session));
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "clock");
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.n_spans, 3);
        CHECK_EQ_U64(t.others, 7 + 3);
        CHECK(t.back >= 7);
        check_spans(&t, 11 * (uint64_t)second);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

/* More than the 40 bits of a short time between a begin and its end. */
TEST(clock_jumps_far_ahead)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    const int64_t jumps[] = {((int64_t)1 << 40) - 1000000, (int64_t)1 << 40, (int64_t)1 << 41,
                             (int64_t)1 << 50, (int64_t)1 << 60};
    enum {
        JUMPS = sizeof jumps / sizeof jumps[0]
    };
    int64_t offset = 0;
    for (int i = 0; i < JUMPS; i++) {
        mtprof_token token = mtprof_begin(&site);
        offset += jumps[i];
        mtprof__clock_disturb(offset, true);
        mtprof_end(token);
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof__clock_disturb(0, false);
    CHECK_EQ_U64(stress_health(session).clock_back, 0);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "clock");
        REQUIRE_EQ_U64(t.n_spans, JUMPS);
        for (int i = 0; i < JUMPS; i++) {
            int64_t lasted = (int64_t)(t.spans[i].end - t.spans[i].start);
            CHECK(lasted >= jumps[i] && lasted < jumps[i] + ((int64_t)1 << 38));
        }
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}
