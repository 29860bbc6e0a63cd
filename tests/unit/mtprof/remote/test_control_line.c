/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the control protocol: what is read is what was written, and what is wrong is refused
 * with words that name it.
 */
#include "base/fail.h"
#include "harness/mt_test.h"
#include "mtprof/remote/control_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[4 * MTPROF__LINE_BYTES + MTPROF__LINE_PAD];
static size_t written;

static int keep(void *context, const void *bytes, size_t length)
{
    (void)context;
    REQUIRE(written + length < sizeof line - MTPROF__LINE_PAD);
    memcpy(line + written, bytes, length);
    written += length;
    return 0;
}

static void begin_line(mtb_writer *writer)
{
    written = 0;
    REQUIRE(mtb_writer_init(writer, keep, NULL));
}

/* The line's length without its end. */
static size_t end_line(mtb_writer *writer)
{
    CHECK_EQ_I64(mtb_writer_finish(writer), 0);
    REQUIRE(written > 0 && line[written - 1] == '\n');
    CHECK(memchr(line, '\n', written - 1) == NULL);
    return written - 1;
}

/* A buffer of exactly the size that CTL1 asks for. */
static mtprof_status read_request(const char *text, mtprof__control_asked *asked)
{
    size_t length = strlen(text);
    char *copy = malloc(length + MTPROF__LINE_PAD);
    REQUIRE(copy != NULL);
    memcpy(copy, text, length);
    mtprof_status status = mtprof__control_read_request(copy, length, asked);
    free(copy);
    return status;
}

static void check_refused(const char *text, const char *names)
{
    mtprof__control_asked asked;
    CHECK_EQ_I64(read_request(text, &asked), MTPROF_EINVAL);
    if (strstr(mtb_last_failure()->message, names) == NULL) {
        FAIL("%s: \"%s\" does not name \"%s\"", text, mtb_last_failure()->message, names);
    }
}

TEST(a_request_is_read_as_it_was_written)
{
    mtb_writer writer;
    mtprof__control_asked asked;
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_START,
                                      .path = "/a folder/\"quoted\"\n\xC3\xA4.mtt",
                                      .reason = "why\\not",
                                      .ring_bytes = 1 << 20,
                                      .details = MTPROF_CONTROL_SHAPES | MTPROF_CONTROL_CALLS};
    begin_line(&writer);
    mtprof__control_write_request(&writer, &request);
    REQUIRE_OK(mtprof__control_read_request(line, end_line(&writer), &asked));
    CHECK_EQ_U64(asked.request.command, request.command);
    CHECK_EQ_STR(asked.request.path, request.path);
    CHECK_EQ_STR(asked.request.reason, request.reason);
    CHECK_EQ_U64(asked.request.ring_bytes, request.ring_bytes);
    CHECK_EQ_U64(asked.request.details, request.details);
}

TEST(an_answer_is_read_as_it_was_written)
{
    mtb_writer writer;
    mtprof_control_state got;
    mtprof_control_state state = {.struct_size = sizeof state,
                                  .recording = MTPROF_CONTROL_PAUSED,
                                  .pid = 123,
                                  .since_us = 1794856000000000u,
                                  .wants = 31,
                                  .begins = 1000,
                                  .others = 7,
                                  .lost = 3,
                                  .evicted = 2,
                                  .truncated = 1,
                                  .bytes = 1 << 20,
                                  .threads = 5,
                                  .by_control = 1,
                                  .refused = 8,
                                  .dropped = 9,
                                  .path = "/tmp/x.mtt",
                                  .program = "python train.py",
                                  .rank = "3",
                                  .version = "1.2.3",
                                  .dump = "/tmp/d.mtt"};
    begin_line(&writer);
    mtprof__control_write_answer(&writer, &state);
    REQUIRE_OK(mtprof__control_read_answer(line, end_line(&writer), &got));
    CHECK_EQ_MEM(&got, &state, sizeof state);
}

TEST(a_failure_is_told_with_its_status)
{
    mtb_writer writer;
    mtprof_control_state state;
    begin_line(&writer);
    mtprof__control_write_failure(&writer, MTPROF_EBUSY, "records \"already\"");
    CHECK_EQ_I64(mtprof__control_read_answer(line, end_line(&writer), &state), MTPROF_EBUSY);
    CHECK_EQ_STR(mtb_last_failure()->message, "records \"already\"");
    strcpy(line, "{\"ok\":false,\"status\":\"ENEW\",\"error\":\"x\"}");
    CHECK_EQ_I64(mtprof__control_read_answer(line, strlen(line), &state), MTPROF_EIO);
    strcpy(line, "{\"ok\":false,\"status\":\"OK\"}");
    CHECK_EQ_I64(mtprof__control_read_answer(line, strlen(line), &state), MTPROF_EIO);
    strcpy(line, "{\"ok\":true,\"pid\":1,\"recording\":9}");
    CHECK_EQ_I64(mtprof__control_read_answer(line, strlen(line), &state), MTPROF_EFORMAT);
    strcpy(line, "{\"ok\":true,\"pid\":1,\"newer\":[1,{}]}");
    CHECK_OK(mtprof__control_read_answer(line, strlen(line), &state));
    strcpy(line, "hello");
    CHECK_EQ_I64(mtprof__control_read_answer(line, strlen(line), &state), MTPROF_EFORMAT);
}

TEST(the_first_line_has_the_protocols_version)
{
    mtb_writer writer;
    mtprof__control_hello hello;
    begin_line(&writer);
    mtprof__control_write_hello(&writer, 77);
    REQUIRE_OK(mtprof__control_read_hello(line, end_line(&writer), &hello));
    CHECK_EQ_I64(hello.pid, 77);
    CHECK_EQ_U64(hello.protocol, MTPROF_CONTROL_VERSION);
    strcpy(line, "{\"mtprof\":\"9\",\"control\":2}");
    CHECK_EQ_I64(mtprof__control_read_hello(line, strlen(line), &hello), MTPROF_EVERSION);
}

TEST(what_is_wrong_is_refused)
{
    check_refused("", "not JSON");
    check_refused("status", "not JSON");
    check_refused("{\"do\":\"status\"", "not JSON");
    check_refused("{\"do\":\"status\"}{}", "not JSON");
    check_refused("[[[[[[[[[[[[]]]]]]]]]]]]", "not JSON");
    check_refused("[]", "not an object");
    check_refused("7", "not an object");
    check_refused("{}", "\"do\" is \"\"");
    check_refused("{\"do\":\"halt\"}", "halt");
    check_refused("{\"do\":\"an unusually long word\"}", "22 bytes");
    check_refused("{\"do\":1}", "\"do\" must be a text");
    check_refused("{\"do\":\"status\",\"force\":true}", "\"force\"");
    check_refused("{\"do\":\"start\"}", "absolute path");
    check_refused("{\"do\":\"start\",\"path\":\"x.mtt\"}", "x.mtt");
    check_refused("{\"do\":\"start\",\"path\":\"/x\\u0000y\"}", "zero byte");
    check_refused("{\"do\":\"start\",\"path\":\"/x\",\"ring_bytes\":-1}", "ring_bytes");
    check_refused("{\"do\":\"start\",\"path\":\"/x\",\"ring_bytes\":1e30}", "ring_bytes");
    check_refused("{\"do\":\"start\",\"path\":\"/x\",\"ring_bytes\":\"1\"}", "ring_bytes");
    check_refused("{\"do\":\"start\",\"path\":\"/x\",\"shapes\":1}", "true or false");
    check_refused("{\"do\":\"dump\",\"path\":null}", "\"path\" must be a text");
    check_refused("{\"do\":\"status\",\"path\":\"\xFF\"}", "not JSON");
}

TEST(a_text_that_does_not_fit_is_refused)
{
    static char text[2 * MTPROF_CONTROL_PATH_BYTES];
    mtprof__control_asked asked;
    for (int more = 0; more <= 1; more++) {
        int n = snprintf(text, sizeof text, "{\"do\":\"start\",\"path\":\"/%0*d\"}",
                         MTPROF_CONTROL_PATH_BYTES - 2 + more, 0);
        REQUIRE(n > 0 && (size_t)n < sizeof text);
        CHECK_EQ_I64(read_request(text, &asked), more ? MTPROF_EINVAL : MTPROF_OK);
    }
}
