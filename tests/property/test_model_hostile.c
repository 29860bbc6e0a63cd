/* SPDX-License-Identifier: Apache-2.0
 *
 * Models of hostile traces: whatever the records say, what model.h promises holds (MDL1 to MDL3,
 * the order, the tree), and nothing crashes. And of one trace: however it is read, by one thread or
 * by several, live or from a file, its model is the same.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/traces/model_view.h"
#include "support/traces/random_trace.h"

#include <mtprof/check.h>
#include <mtprof/export.h>
#include <mtprof/op.h>
#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACES = 400,
    TRACES_LONG = 20000,
    STEPS = 240,
    THREADS = 4,
    EVENTS = 60000 /* of a thread: enough for several to be read at once */
};

/* ---- promises -------------------------------------------------------------------------------- */

static bool check_bytes(const void *bytes, size_t size, bool keep)
{
    mtprof_model_options options = {
        .struct_size = sizeof options, .keep_duplicates = keep, .discarded = keep, .workers = 1};
    model_view view;
    mtprof_model *model = model_of_bytes(bytes, size, &options);
    bool fine = model != NULL && model_view_make(&view, model) && model_view_check(&view);
    mtprof_model_free(model);
    return fine;
}

static int drop(void *context, const void *bytes, size_t length)
{
    (void)context;
    (void)bytes;
    (void)length;
    return 0;
}

static bool export_all(const void *bytes, size_t size)
{
    const mtprof_output output = {.struct_size = sizeof output, .write = drop};
    mtprof_model *model = model_of_bytes(bytes, size, NULL);
    bool fine = model != NULL;
    for (int format = 0; fine && format < MTPROF_EXPORT_COUNT; format++) {
        mtprof_status status =
            mtprof_export_to(model, (enum mtprof_export_format)format, &output, NULL);
        fine = CHECK(status == MTPROF_OK || status == MTPROF_ENOTSUP);
    }
    mtprof_model_free(model);
    return fine;
}

TEST(hostile_traces_keep_the_promises)
{
    uint64_t seed = mt_test_seed();
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    for (int i = 0; i < n; i++) {
        rt_options options = {.seed = mt_test_random(&seed),
                              .steps = 1 + mt_test_random(&seed) % STEPS,
                              .hostile = true,
                              .any_bytes = true};
        rt_trace trace;
        rt_make(&trace, &options);
        bool fine = check_bytes(trace.bytes, trace.size, i % 2 == 0);
        rt_free(&trace);
        if (!fine) {
            FAIL("trace seed %llu, %zu steps", (unsigned long long)options.seed, options.steps);
            break;
        }
    }
}

/* Random bytes in the records, with checksums that hold: what a stray store could have done. */
TEST(bent_traces_keep_the_promises)
{
    uint64_t seed = mt_test_seed() + 1;
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    for (int i = 0; i < n; i++) {
        rt_options options = {
            .seed = mt_test_random(&seed), .steps = STEPS / 2, .hostile = i % 3 == 0};
        rt_trace trace;
        rt_make(&trace, &options);
        size_t bends = 1 + mt_test_random(&seed) % 20;
        for (size_t k = 0; k < bends; k++) {
            size_t at = 4096 + mt_test_random(&seed) % (trace.size - 4096);
            trace.bytes[at] = (unsigned char)mt_test_random(&seed);
        }
        tb_repair(trace.bytes, trace.size);
        bool fine = check_bytes(trace.bytes, trace.size, i % 2 == 0);
        rt_free(&trace);
        if (!fine) {
            FAIL("trace seed %llu, bent %zu times, number %d", (unsigned long long)options.seed,
                 bends, i);
            break;
        }
    }
}

/* Well-formed, with checksums that hold, and with impossible times. */
TEST(times_at_the_edges_keep_the_promises)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     (uint64_t)1 << 56,
                                     (uint64_t)1 << 61,
                                     (uint64_t)1 << 62,
                                     INT64_MAX,
                                     (uint64_t)1 << 63,
                                     UINT64_MAX - 5,
                                     UINT64_MAX};
    uint64_t seed = mt_test_seed() + 3;
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    for (int i = 0; i < n; i++) {
        rt_options options = {
            .seed = mt_test_random(&seed), .steps = STEPS / 2, .hostile = i % 2 == 0};
        rt_trace trace;
        rt_make(&trace, &options);
        for (size_t at = TB_AT_PERIOD; at <= TB_AT_START + 16; at += 8) {
            uint64_t value = edges[mt_test_random(&seed) % (sizeof edges / sizeof edges[0])];
            bool wanted = at != TB_AT_PERIOD || value != 0; /* a period of 0 is refused */
            if (wanted && mt_test_random(&seed) % 3 != 0) {
                memcpy(trace.bytes + at, &value, sizeof value);
            }
        }
        /* And some words of records: begins, ends, anchors, clock pairs are all whole words. */
        for (int k = 0; k < 6; k++) {
            size_t at = 4096 + 8 * (mt_test_random(&seed) % ((trace.size - 4096) / 8));
            uint64_t value = edges[mt_test_random(&seed) % (sizeof edges / sizeof edges[0])];
            memcpy(trace.bytes + at, &value, at % 4096 >= 64 ? sizeof value : 0);
        }
        tb_repair(trace.bytes, trace.size);
        bool fine =
            check_bytes(trace.bytes, trace.size, i % 3 == 0) && export_all(trace.bytes, trace.size);
        rt_free(&trace);
        if (!fine) {
            FAIL("trace seed %llu, number %d", (unsigned long long)options.seed, i);
            break;
        }
    }
}

TEST(models_without_memory)
{
    uint64_t seed = mt_test_seed() + 2;
    for (int i = 0; i < (mt_test_long() ? 40 : 4); i++) {
        rt_options options = {.seed = mt_test_random(&seed), .steps = 120, .hostile = i % 2 == 1};
        rt_trace trace;
        rt_make(&trace, &options);
        mtprof_model *model = NULL;
        mtprof_status status = MTPROF_ENOMEM;
        for (uint64_t nth = 1; status != MTPROF_OK; nth++) {
            tb_memory memory = {.bytes = trace.bytes, .size = trace.size};
            mtprof_bytes bytes = tb_bytes(&memory);
            mtprof_reader *reader = NULL;
            mtprof_column column;
            mtprof_model_options model_options = {.struct_size = sizeof model_options,
                                                  .workers = 1};
            REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
            mtb_fail_nth(nth, false);
            status = mtprof_model_take_reader(reader, &model_options, &model);
            if (status != MTPROF_OK) {
                mtprof_reader_close(reader);
            }
            for (int id = 0; id < MTPROF_COLUMN_COUNT && status == MTPROF_OK; id++) {
                status = mtprof_model_get_column(model, (enum mtprof_column_id)id, &column);
            }
            mtb_fail_nth(0, false);
            if (status != MTPROF_OK && !CHECK_EQ_I64(status, MTPROF_ENOMEM)) {
                break;
            }
            mtprof_model_free(model);
            model = NULL;
        }
        rt_free(&trace);
    }
}

/* ---- one trace, read in several ways --------------------------------------------------------- */

static void *record_thread(void *context)
{
    static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
    static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_OP);
    uint64_t seed = (uint64_t)(uintptr_t)context;
    mtprof_token open[8];
    size_t n = 0;
    for (int i = 0; i < EVENTS; i++) {
        uint64_t dice = mt_test_random(&seed);
        if (n < 8 && (n == 0 || dice % 2 == 0)) {
            open[n++] = mtprof_begin(dice % 3 == 0 ? &outer : &inner);
        } else {
            mtprof_end(open[--n]);
        }
        if (dice % 1000 == 7) {
            char name[16];
            int length =
                snprintf(name, sizeof name, "n%llu", (unsigned long long)(dice >> 20) % 50);
            mtprof_token token = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_SCOPE);
            mtprof_end(token);
        }
    }
    while (n > 0) {
        mtprof_end(open[--n]);
    }
    return NULL;
}

static void record_all(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, record_thread, (void *)(i + 1)) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

TEST(one_trace_one_model)
{
    char path[512];
    mtprof_session *session = NULL;
    mtprof_model *live = NULL;
    mtprof_model *models[2] = {NULL, NULL};
    model_view live_view;
    model_view views[2];
    snprintf(path, sizeof path, "%s/trace.mtt", mt_test_tmpdir());
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    REQUIRE_OK(mtprof_session_start(&config, &session));
    record_all();
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &live));
    REQUIRE(model_view_make(&live_view, live));
    REQUIRE_OK(mtprof_session_close(session));
    for (uint32_t i = 0; i < 2; i++) {
        mtprof_model_options options = {.struct_size = sizeof options, .workers = i == 0 ? 1 : 4};
        mtprof_reader *reader = NULL;
        REQUIRE_OK(mtprof_reader_open(path, &reader));
        REQUIRE_OK(mtprof_model_take_reader(reader, &options, &models[i]));
        REQUIRE(model_view_make(&views[i], models[i]));
    }
    mtprof_check_summary checked = {.struct_size = sizeof checked};
    REQUIRE_OK(mtprof_check(path, NULL, &checked));
    CHECK_EQ_U64(checked.errors + checked.warnings, 0);
    CHECK(views[0].n > (size_t)THREADS * EVENTS / 4);
    CHECK(model_view_check(&views[0]));
    CHECK(model_view_equal(&views[0], &views[1]));
    CHECK(model_view_equal(&views[0], &live_view));
    mtprof_model_free(live);
    mtprof_model_free(models[0]);
    mtprof_model_free(models[1]);
}

/* The same promise for traces with everything in them, which are small. */
TEST(workers_make_no_difference)
{
    uint64_t seed = mt_test_seed() + 3;
    for (int i = 0; i < TRACES / 4; i++) {
        rt_options options = {.seed = mt_test_random(&seed),
                              .steps = STEPS,
                              .hostile = i % 2 == 0,
                              .any_bytes = true};
        rt_trace trace;
        model_view views[2];
        mtprof_model *models[2];
        rt_make(&trace, &options);
        for (uint32_t k = 0; k < 2; k++) {
            mtprof_model_options model_options = {.struct_size = sizeof model_options,
                                                  .workers = k == 0 ? 1 : 4};
            models[k] = model_of_bytes(trace.bytes, trace.size, &model_options);
            REQUIRE(models[k] != NULL);
            REQUIRE(model_view_make(&views[k], models[k]));
        }
        bool same = model_view_equal(&views[0], &views[1]);
        mtprof_model_free(models[0]);
        mtprof_model_free(models[1]);
        rt_free(&trace);
        if (!same) {
            FAIL("trace seed %llu", (unsigned long long)options.seed);
            break;
        }
    }
}
