/* SPDX-License-Identifier: Apache-2.0
 *
 * Correlation ids (docs/format.md 3.6): a block for each epoch, never handed out twice.
 */
#include "harness/mt_test.h"

#include <mtprof/mtprof.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

static void record(int count)
{
    for (int i = 0; i < count; i++) {
        mtprof_end(mtprof_begin(&scope));
    }
}

static mtprof_reader *read_back(mtprof_session *session)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_session_get_bytes(session, &bytes));
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    return reader;
}

TEST(each_epoch_has_a_block_of_its_own)
{
    uint64_t next = 0;
    for (int round = 0; round < 3; round++) {
        mtprof_config config = {.struct_size = sizeof config};
        mtprof_session *session = NULL;
        REQUIRE_OK(mtprof_session_start(&config, &session));
        record(10);
        CHECK_OK(mtprof_session_pause(session));
        CHECK_OK(mtprof_session_resume(session, 0)); /* an epoch without begins */
        CHECK_OK(mtprof_session_pause(session));
        CHECK_OK(mtprof_session_resume(session, 0));
        record(7);
        mtprof_launch(NULL, 1, 0);
        CHECK_OK(mtprof_session_stop(session));
        mtprof_reader *reader = read_back(session);
        mtprof_epoch_info first, empty, last;
        REQUIRE(mtprof_reader_epoch(reader, 0, &first));
        REQUIRE(mtprof_reader_epoch(reader, 1, &empty));
        REQUIRE(mtprof_reader_epoch(reader, 2, &last));
        CHECK_EQ_U64(first.correlation_count, 10);
        CHECK_EQ_U64(empty.correlation_count, 0);
        CHECK_EQ_U64(last.correlation_count, 8);
        CHECK_EQ_U64(last.correlation_first, first.correlation_first + 10);
        CHECK(first.correlation_first >= 1);
        if (round > 0) {
            CHECK_EQ_U64(first.correlation_first, next);
        }
        next = last.correlation_first + last.correlation_count;
        mtprof_reader_close(reader);
        CHECK_OK(mtprof_session_close(session));
    }
}

TEST(a_live_epoch_has_none_yet)
{
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    record(3);
    mtprof_reader *reader = read_back(session);
    mtprof_epoch_info info;
    REQUIRE(mtprof_reader_epoch(reader, 0, &info));
    CHECK_EQ_U64(info.close_kind, 3);
    CHECK_EQ_U64(info.correlation_first, 0);
    CHECK_EQ_U64(info.correlation_count, 0);
    mtprof_reader_close(reader);
    CHECK_OK(mtprof_session_close(session));
}
