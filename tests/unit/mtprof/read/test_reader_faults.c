/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader whose memory is refused and whose reads fail: for every request, one after the other.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <errno.h>
#include <string.h>

typedef struct outcome {
    mtprof_status opened;
    size_t n_records, n_no_memory, n_io, n_format, n_problems, n_read_problems;
    uint64_t sum; /* of all words of all records */
} outcome;

static void read_stream(const mtprof_reader *reader, uint32_t stream, outcome *out)
{
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    mtprof_status status = mtprof_cursor_open(reader, stream, &cursor);
    if (status != MTPROF_OK) {
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        CHECK(cursor == NULL);
        out->n_no_memory++;
        return;
    }
    while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
        out->n_records += status == MTPROF_OK;
        out->n_io += status == MTPROF_EIO;
        out->n_format += status == MTPROF_EFORMAT;
        out->n_no_memory += status == MTPROF_ENOMEM;
        for (uint32_t i = 0; status == MTPROF_OK && i < record.n_words; i++) {
            out->sum = out->sum * 31 + record.words[i];
        }
        if (status == MTPROF_ENOMEM && out->n_no_memory > 1) {
            break; /* memory is refused for good */
        }
    }
    mtprof_cursor_close(cursor);
}

static outcome read_all(tb_memory *memory)
{
    outcome out = {0};
    mtprof_bytes bytes = tb_bytes(memory);
    mtprof_reader *reader = NULL;
    out.opened = mtprof_reader_open_bytes(&bytes, &reader);
    if (out.opened != MTPROF_OK) {
        CHECK(reader == NULL);
        CHECK_EQ_I64(mtprof_last_error()->status, out.opened);
        CHECK_EQ_I64(memory->n_closed, 1);
        return out;
    }
    mtprof_problem problem;
    while (mtprof_reader_problem(reader, (uint32_t)out.n_problems, &problem)) {
        out.n_problems++;
        out.n_read_problems += strstr(problem.message, "read trace") != NULL;
    }
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        read_stream(reader, i, &out);
    }
    mtprof_reader_close(reader);
    CHECK_EQ_I64(memory->n_closed, 1);
    return out;
}

static tb_memory memory_of(const trace_builder *b)
{
    return (tb_memory){.bytes = b->bytes, .size = b->size};
}

/* The sample with enough of everything for arrays to grow, and with damage, which takes memory. */
static void make_trace(trace_builder *b, bool closed)
{
    tb_sample(b, true);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 77, 1, (uint64_t[]){78});
    tb_finish(b, closed);
    b->bytes[TB_AT_HEALTH] ^= 1; /* a problem in a closed trace */
}

static void refuse_each(bool closed, bool forever)
{
    trace_builder b;
    make_trace(&b, closed);
    tb_memory memory = memory_of(&b);
    mtb_fail_nth(0, false);
    outcome good = read_all(&memory);
    uint64_t n_requests = mtb_fail_nth(0, false);
    CHECK_OK(good.opened);
    CHECK(n_requests > 20);
    CHECK(good.n_records > 500);
    for (uint64_t n = 1; n <= n_requests; n++) {
        memory = memory_of(&b);
        mtb_fail_nth(n, forever);
        outcome out = read_all(&memory);
        mtb_fail_nth(0, false);
        if (out.opened != MTPROF_OK) {
            if (out.opened != MTPROF_ENOMEM) {
                FAIL("request %llu: status %d", (unsigned long long)n, (int)out.opened);
            }
            continue;
        }
        CHECK(out.n_no_memory > 0);
        CHECK_EQ_U64(out.n_problems, good.n_problems);
        CHECK_EQ_U64(out.n_format, good.n_format);
        CHECK_EQ_U64(out.n_io, 0);
    }
    tb_fini(&b);
}

TEST(each_request_for_memory_refused)
{
    refuse_each(true, false);
    refuse_each(false, false);
}

TEST(memory_refused_from_each_request_on)
{
    refuse_each(true, true);
}

/* A cursor that got no memory continues where it was. */
TEST(a_cursor_tries_again)
{
    trace_builder b;
    tb_sample(&b, true);
    tb_finish(&b, true);
    tb_memory memory = memory_of(&b);
    outcome good = read_all(&memory);
    memory = memory_of(&b);
    mtprof_bytes bytes = tb_bytes(&memory);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    size_t n = 0;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_cursor *cursor = NULL;
        mtprof_record record;
        REQUIRE_OK(mtprof_cursor_open(reader, i, &cursor));
        mtb_fail_nth(1, false);
        CHECK_EQ_I64(mtprof_cursor_next(cursor, &record), MTPROF_ENOMEM);
        mtb_fail_nth(0, false);
        while (mtprof_cursor_next(cursor, &record) == MTPROF_OK) {
            n++;
        }
        mtprof_cursor_close(cursor);
    }
    CHECK_EQ_U64(n, good.n_records);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(each_read_failing)
{
    trace_builder b;
    make_trace(&b, false);
    tb_memory memory = memory_of(&b);
    outcome good = read_all(&memory);
    uint64_t n_reads = memory.n_reads;
    size_t n_refused = 0;
    CHECK_OK(good.opened);
    for (uint64_t n = 1; n <= n_reads; n++) {
        memory = memory_of(&b);
        memory.fail_at = n;
        memory.fail_errno = ENXIO;
        outcome out = read_all(&memory);
        if (out.opened != MTPROF_OK) {
            n_refused++;
            CHECK_EQ_I64(out.opened, MTPROF_EIO);
            CHECK_EQ_I64(mtprof_last_error()->system_error, ENXIO);
            CHECK(mtprof_last_error()->offset >= 0);
            CHECK(strstr(mtprof_last_error()->message, "bytes at") != NULL);
        } else {
            CHECK_EQ_U64(out.n_io + out.n_read_problems, 1);
        }
    }
    CHECK(n_refused > 5);
    CHECK(n_refused < n_reads / 2);
    tb_fini(&b);
}

TEST(short_reads_are_put_together)
{
    const size_t lengths[] = {1, 3, 64, 1000, 4097};
    trace_builder b;
    make_trace(&b, true);
    tb_memory memory = memory_of(&b);
    outcome good = read_all(&memory);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memory = memory_of(&b);
        memory.longest_read = lengths[i];
        outcome out = read_all(&memory);
        CHECK_OK(out.opened);
        CHECK_EQ_U64(out.n_records, good.n_records);
        CHECK_EQ_U64(out.sum, good.sum);
        CHECK_EQ_U64(out.n_problems, good.n_problems);
    }
    tb_fini(&b);
}

/* ---- functions that lie ---------------------------------------------------------------------- */

static int64_t read_too_much(void *context, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    (void)offset;
    memset(buffer, 0, length);
    return (int64_t)length + 1;
}

static int64_t read_no_errno(void *context, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    (void)offset;
    (void)buffer;
    (void)length;
    return INT64_MIN;
}

static int64_t read_nothing_late(void *context, uint64_t offset, void *buffer, size_t length)
{
    tb_memory *memory = context;
    if (offset >= memory->size) {
        return 0;
    }
    length = memory->size - offset < length ? (size_t)(memory->size - offset) : length;
    memcpy(buffer, memory->bytes + offset, length);
    return (int64_t)length;
}

static uint64_t size_of_everything(void *context)
{
    (void)context;
    return UINT64_MAX;
}

TEST(functions_that_lie)
{
    trace_builder b;
    tb_sample(&b, false);
    tb_finish(&b, false);
    mtprof_reader *reader = NULL;
    tb_memory memory = memory_of(&b);
    mtprof_bytes bytes = tb_bytes(&memory);
    bytes.read = read_too_much;
    CHECK_EQ_I64(mtprof_reader_open_bytes(&bytes, &reader), MTPROF_EIO);
    bytes.read = read_no_errno;
    CHECK_EQ_I64(mtprof_reader_open_bytes(&bytes, &reader), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_last_error()->system_error, EIO);
    bytes.read = read_nothing_late;
    bytes.size = size_of_everything; /* it reads only what is there */
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    CHECK_EQ_U64(mtprof_reader_stream_count(reader), 5);
    mtprof_reader_close(reader);
    tb_fini(&b);
}
