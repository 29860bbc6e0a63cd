/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes: every one has a text and a name, and every one that a caller can meet is met here.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/profile.h>
#include <mtprof/session.h>
#include <mtprof/source.h>
#include <mtprof/trace.h>
#include <mtprof/version.h>

#include <stdio.h>
#include <string.h>

static const struct code {
    mtprof_status status;
    const char *name;
} codes[] = {
#define X(name, value, text) {MTPROF_##name, #name},
#include <mtprof/status.def>
#undef X
};

enum {
    CODES = sizeof codes / sizeof codes[0]
};

TEST(every_code_has_a_name_and_a_text_of_its_own)
{
    for (size_t i = 0; i < CODES; i++) {
        const char *text = mtprof_status_text(codes[i].status);
        CHECK_EQ_STR(mtprof_status_name(codes[i].status), codes[i].name);
        CHECK(strlen(text) > 3);
        CHECK_EQ_I64(codes[i].status, -(int64_t)i); /* dense, and never renumbered */
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(text, mtprof_status_text(codes[k].status)) != 0);
        }
    }
    CHECK_EQ_I64(MTPROF_OK, 0);
    CHECK_EQ_I64(MTPROF_ENOTSUP, -11);
}

TEST(unknown_codes_have_a_text_too)
{
    for (int status = -100; status < 100; status++) {
        CHECK(mtprof_status_text((mtprof_status)status) != NULL);
        CHECK(mtprof_status_name((mtprof_status)status) != NULL);
    }
    CHECK(strlen(mtprof_status_text((mtprof_status)-99)) > 0);
    CHECK(strlen(mtprof_status_name((mtprof_status)1)) > 0);
}

TEST(the_version_is_that_of_the_header)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", MTPROF_VERSION_MAJOR, MTPROF_VERSION_MINOR,
             MTPROF_VERSION_PATCH);
    CHECK_EQ_STR(mtprof_version_string(), text);
    CHECK_EQ_U64(mtprof_version_number(),
                 MTPROF_VERSION_MAJOR << 16 | MTPROF_VERSION_MINOR << 8 | MTPROF_VERSION_PATCH);
}

/* ---- provoking each code --------------------------------------------------------------------- */

static mtprof_session *start(void)
{
    mtprof_config c = {.struct_size = sizeof c};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    return s;
}

static mtprof_status provoke_invalid(void)
{
    return mtprof_session_stop(NULL);
}

static mtprof_status provoke_no_memory(void)
{
    mtprof_config c = {.struct_size = sizeof c};
    mtprof_session *s = NULL;
    mtb_fail_nth(1, true);
    mtprof_status status = mtprof_session_start(&c, &s);
    mtb_fail_nth(0, false);
    return status;
}

static mtprof_status provoke_io(void)
{
    mtprof_reader *reader = NULL;
    return mtprof_reader_open("/nonexistent/trace.mtt", &reader);
}

/* An image that was bent, opened. */
static mtprof_status open_bent(uint64_t at, uint16_t value)
{
    trace_builder b;
    tb_init(&b);
    tb_finish(&b, true);
    tb_set16(&b, at, value);
    tb_memory memory = {.bytes = b.bytes, .size = b.size};
    mtprof_bytes bytes = tb_bytes(&memory);
    mtprof_reader *reader = NULL;
    mtprof_status status = mtprof_reader_open_bytes(&bytes, &reader);
    mtprof_reader_close(reader);
    tb_fini(&b);
    return status;
}

static mtprof_status provoke_format(void)
{
    return open_bent(0, 0x1234);
}

static mtprof_status provoke_version(void)
{
    return open_bent(TB_AT_MAJOR, 9);
}

static mtprof_status provoke_busy(void)
{
    mtprof_session *first = start(), *second = NULL;
    mtprof_config c = {.struct_size = sizeof c};
    mtprof_status status = mtprof_session_start(&c, &second);
    CHECK_OK(mtprof_session_close(first));
    return status;
}

static mtprof_status provoke_state(void)
{
    mtprof_session *s = start();
    CHECK_OK(mtprof_session_stop(s));
    mtprof_status status = mtprof_session_pause(s);
    CHECK_OK(mtprof_session_close(s));
    return status;
}

static mtprof_status provoke_no_space(void)
{
    static char large[200000];
    mtprof_config c = {
        .struct_size = sizeof c, .policy = MTPROF_POLICY_STOP, .buffer_bytes = 64 << 10};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    mtprof_status status = mtprof_session_add_metadata(s, "k", 1, large, sizeof large, false);
    CHECK_OK(mtprof_session_close(s));
    return status;
}

static mtprof_status provoke_end(void)
{
    mtprof_session *s = start();
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_reader *reader = NULL;
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    REQUIRE_OK(mtprof_session_get_bytes(s, &bytes));
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    REQUIRE_OK(mtprof_cursor_open(reader, 0, &cursor));
    mtprof_status status;
    do {
        status = mtprof_cursor_next(cursor, &record);
    } while (status == MTPROF_OK);
    mtprof_cursor_close(cursor);
    mtprof_reader_close(reader);
    CHECK_OK(mtprof_session_close(s));
    return status;
}

static int refuse_in_callback(void *user, mtprof_profile *profile)
{
    (void)user;
    (void)profile;
    return 1;
}

static mtprof_status provoke_callback(void)
{
    mtprof_profile *profile = NULL;
    mtprof_profile_config config = {.struct_size = sizeof config,
                                    .activities = MTPROF_WATCH_ALL,
                                    .on_trace_ready = refuse_in_callback};
    REQUIRE_OK(mtprof_profile_new(&config, &profile));
    CHECK_OK(mtprof_profile_start(profile));
    mtprof_status status = mtprof_profile_stop(profile);
    mtprof_profile_free(profile);
    return status;
}

TEST(every_code_that_can_be_met_is_met)
{
    static const struct {
        mtprof_status status;
        mtprof_status (*provoke)(void);
    } ways[] = {
        {MTPROF_EINVAL, provoke_invalid},   {MTPROF_ENOMEM, provoke_no_memory},
        {MTPROF_EIO, provoke_io},           {MTPROF_EFORMAT, provoke_format},
        {MTPROF_EVERSION, provoke_version}, {MTPROF_EBUSY, provoke_busy},
        {MTPROF_ESTATE, provoke_state},     {MTPROF_ENOSPC, provoke_no_space},
        {MTPROF_EEND, provoke_end},         {MTPROF_ECALLBACK, provoke_callback},
    };
    /* All but OK, and ENOTSUP, which only a second copy of the library meets. */
    CHECK_EQ_U64(sizeof ways / sizeof ways[0], CODES - 2);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        mtprof_status status = ways[i].provoke();
        if (status != ways[i].status) {
            FAIL("expected %s, got %s", mtprof_status_name(ways[i].status),
                 mtprof_status_name(status));
        } else if (status != MTPROF_EEND) { /* the end of a stream is no failure to speak of */
            CHECK_EQ_I64(mtprof_last_error()->status, status);
            CHECK(strlen(mtprof_last_error()->message) > 0);
        }
    }
}

TEST(a_success_leaves_the_last_error_alone)
{
    CHECK_EQ_I64(provoke_io(), MTPROF_EIO);
    CHECK(mtprof_last_error()->system_error != 0);
    mtprof_session *s = start();
    CHECK_OK(mtprof_session_close(s));
    CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EIO);
}
