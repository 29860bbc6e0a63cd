/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening traces: the header, streams, what a good trace says about itself, files that are none.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mtprof_reader *open_image(const trace_builder *b, tb_memory *memory)
{
    mtprof_reader *reader = NULL;
    *memory = (tb_memory){.bytes = b->bytes, .size = b->size};
    mtprof_bytes bytes = tb_bytes(memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    REQUIRE(reader != NULL);
    return reader;
}

static void print_problems(const mtprof_reader *reader)
{
    mtprof_problem problem;
    for (uint32_t i = 0; mtprof_reader_problem(reader, i, &problem); i++) {
        FAIL("problem at %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
}

/* Opens an image that is to be refused; checks status, offset and that close was called. */
static void check_refused(const trace_builder *b, mtprof_status status, int64_t offset,
                          const char *word)
{
    tb_memory memory = {.bytes = b->bytes, .size = b->size};
    mtprof_bytes bytes = tb_bytes(&memory);
    mtprof_reader *reader = (mtprof_reader *)(void *)&memory;
    CHECK_EQ_I64(mtprof_reader_open_bytes(&bytes, &reader), status);
    CHECK(reader == NULL);
    CHECK_EQ_I64(mtprof_last_error()->status, status);
    CHECK_EQ_I64(mtprof_last_error()->offset, offset);
    CHECK_EQ_I64(memory.n_closed, 1);
    if (strstr(mtprof_last_error()->message, word) == NULL) {
        FAIL("no \"%s\" in \"%s\"", word, mtprof_last_error()->message);
    }
}

TEST(info_of_a_closed_trace)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(reader, &info));
    print_problems(reader);
    CHECK_EQ_U64(info.struct_size, sizeof info);
    CHECK_EQ_U64(info.major, 1);
    CHECK_EQ_U64(info.minor, 0);
    CHECK_EQ_MEM(info.uuid, b.bytes + TB_AT_UUID, 16);
    CHECK_EQ_U64(info.pid, 4242);
    CHECK_EQ_U64(info.features, 0);
    CHECK_EQ_U64(info.tick_period, (uint64_t)1 << 56);
    CHECK_EQ_U64(info.start_ticks, TB_START_TICKS);
    CHECK_EQ_U64(info.start_mono_ns, TB_START_MONO);
    CHECK_EQ_U64(info.start_real_ns, TB_START_REAL);
    CHECK_EQ_U64(info.clock, 0);
    CHECK_EQ_U64(info.policy, 0);
    CHECK_EQ_U64(info.budget_bytes, 1 << 20);
    CHECK_EQ_U64(info.begin_cost_ticks, 2560);
    CHECK(info.closed);
    CHECK_EQ_U64(info.end_ticks, 2000000);
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_BEGINS], 7);
    CHECK_EQ_U64(info.file_bytes, b.size);
    CHECK_EQ_U64(info.chunks, 7);
    CHECK_EQ_U64(info.chunks_damaged, 0);
    CHECK_EQ_U64(info.chunks_unchecked, 0);
    mtprof_reader_close(reader);
    CHECK_EQ_I64(memory.n_closed, 1);
    mtprof_reader_close(NULL);
    tb_fini(&b);
}

TEST(info_of_an_open_trace)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_set32(&b, 4096 + TB_CHUNK_STATE, MTPROF_CHUNK_OPEN);
    tb_finish(&b, false);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(reader, &info));
    print_problems(reader);
    CHECK(!info.closed);
    CHECK_EQ_U64(info.end_ticks, 200002000); /* the close of the window */
    CHECK_EQ_U64(info.chunks_unchecked, 1);
    mtprof_reader_close(reader);

    tb_set64(&b, TB_AT_START, 300000000); /* the start is a time, too */
    tb_repair(b.bytes, b.size);
    reader = open_image(&b, &memory);
    REQUIRE_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.end_ticks, 300000000);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(end_of_an_open_trace_from_a_chunk)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_CONTROL, 0);
    tb_record(&b, MTPROF_REC_WINDOW_OPEN, 0, 1, 3, (uint64_t[]){1100, 1, 0});
    tb_chunk(&b, MTPROF_STREAM_THREAD, 3);
    tb_set64(&b, b.chunk + TB_CHUNK_BASE_TICKS, 7777);
    tb_finish(&b, false);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.end_ticks, 7777);
    mtprof_epoch_info epoch;
    REQUIRE(mtprof_reader_epoch(reader, 0, &epoch));
    CHECK_EQ_U64(epoch.close_kind, 3);
    CHECK_EQ_U64(epoch.close_ticks, 7777);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(structs_are_filled_up_to_their_size)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_trace_info info;
    memset(&info, 0xAA, sizeof info);
    info.struct_size = offsetof(mtprof_trace_info, pid);
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.major, 1);
    CHECK_EQ_U64(info.pid, 0xAAAAAAAAAAAAAAAA);
    CHECK_EQ_U64(info.struct_size, offsetof(mtprof_trace_info, pid));
    info.struct_size = 0;
    CHECK_EQ_I64(mtprof_reader_get_info(reader, &info), MTPROF_EINVAL);
    mtprof_stream_info stream;
    memset(&stream, 0xAA, sizeof stream);
    stream.struct_size = offsetof(mtprof_stream_info, chunks);
    CHECK_OK(mtprof_reader_get_stream(reader, 0, &stream));
    CHECK_EQ_U64(stream.kind, MTPROF_STREAM_DEFINITIONS);
    CHECK_EQ_U64(stream.chunks, 0xAAAAAAAAAAAAAAAA);
    stream.struct_size = 0;
    CHECK_EQ_I64(mtprof_reader_get_stream(reader, 0, &stream), MTPROF_EINVAL);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(streams_in_order)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    const struct {
        uint8_t kind;
        uint16_t slot;
        uint64_t chunks;
    } expected[] = {{1, 0, 2}, {2, 0, 1}, {3, 0, 2}, {3, 1, 1}, {4, 0, 1}};
    REQUIRE_EQ_U64(mtprof_reader_stream_count(reader), 5);
    for (uint32_t i = 0; i < 5; i++) {
        mtprof_stream_info stream = {.struct_size = sizeof stream};
        REQUIRE_OK(mtprof_reader_get_stream(reader, i, &stream));
        CHECK_EQ_U64(stream.kind, expected[i].kind);
        CHECK_EQ_U64(stream.slot, expected[i].slot);
        CHECK_EQ_U64(stream.chunks, expected[i].chunks);
        CHECK_EQ_U64(stream.chunks_missing, 0);
        CHECK(stream.bytes > 0 && stream.bytes % 8 == 0);
    }
    mtprof_stream_info none = {.struct_size = sizeof none};
    CHECK_EQ_I64(mtprof_reader_get_stream(reader, 5, &none), MTPROF_EINVAL);
    mtprof_cursor *cursor = NULL;
    CHECK_EQ_I64(mtprof_cursor_open(reader, 5, &cursor), MTPROF_EINVAL);
    CHECK(cursor == NULL);
    mtprof_cursor_close(NULL);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(an_empty_trace)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    print_problems(reader);
    CHECK_EQ_U64(mtprof_reader_stream_count(reader), 0);
    mtprof_text text;
    bool json;
    mtprof_epoch_info epoch;
    mtprof_module_info module;
    CHECK(!mtprof_reader_string(reader, 1, &text));
    CHECK(!mtprof_reader_string(reader, 0, &text));
    CHECK(!mtprof_reader_metadata(reader, 0, &text, &text, &json));
    CHECK(!mtprof_reader_epoch(reader, 0, &epoch));
    CHECK(!mtprof_reader_module(reader, 0, &module));
    CHECK_EQ_I64(mtprof_reader_ns(reader, TB_START_TICKS + 5), TB_START_MONO + 5);
    CHECK_EQ_I64(mtprof_reader_real_offset(reader), TB_START_REAL - TB_START_MONO);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(control_stream_of_the_sample)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_epoch_info epoch;
    REQUIRE(mtprof_reader_epoch(reader, 0, &epoch));
    CHECK_EQ_U64(epoch.epoch, 1);
    CHECK_EQ_U64(epoch.window, 0);
    CHECK_EQ_U64(epoch.step, 3);
    CHECK_EQ_U64(epoch.gate, 0x7FFF);
    CHECK_EQ_U64(epoch.close_kind, 0);
    CHECK_EQ_U64(epoch.open_ticks, 1100);
    CHECK_EQ_U64(epoch.close_ticks, 200002000);
    CHECK(!mtprof_reader_epoch(reader, 1, &epoch));

    mtprof_text key;
    mtprof_text value;
    bool json = true;
    REQUIRE(mtprof_reader_metadata(reader, 0, &key, &value, &json));
    CHECK_EQ_STR(key.bytes, "host");
    CHECK_EQ_STR(value.bytes, "node-2!!"); /* replaced, at its first place */
    CHECK_EQ_U64(value.length, 8);
    CHECK(!json);
    REQUIRE(mtprof_reader_metadata(reader, 1, &key, &value, &json));
    CHECK_EQ_STR(key.bytes, "args");
    CHECK_EQ_STR(value.bytes, "{\"lr\": 0.1}");
    CHECK(json);
    CHECK(!mtprof_reader_metadata(reader, 2, &key, &value, &json));
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(epochs_that_cannot_be)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_CONTROL, 0);
    tb_record(&b, MTPROF_REC_WINDOW_OPEN, 0, 5, 3, (uint64_t[]){1100, 1, 0});
    uint64_t again = tb_record(&b, MTPROF_REC_WINDOW_OPEN, 0, 5, 3, (uint64_t[]){1200, 2, 0});
    tb_record(&b, MTPROF_REC_WINDOW_CLOSE, 2, 5, 1, (uint64_t[]){1300});
    tb_record(&b, MTPROF_REC_WINDOW_CLOSE, 1, 5, 1, (uint64_t[]){1300}); /* it ended while paused */
    uint64_t twice = tb_record(&b, MTPROF_REC_WINDOW_CLOSE, 0, 5, 1, (uint64_t[]){1400});
    uint64_t never = tb_record(&b, MTPROF_REC_WINDOW_CLOSE, 0, 6, 1, (uint64_t[]){1400});
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    mtprof_epoch_info epoch;
    REQUIRE(mtprof_reader_epoch(reader, 0, &epoch));
    CHECK_EQ_U64(epoch.gate, 1);
    CHECK_EQ_U64(epoch.close_kind, 1);
    CHECK_EQ_U64(epoch.close_ticks, 1300);
    CHECK(!mtprof_reader_epoch(reader, 1, &epoch));
    const uint64_t offsets[] = {again, twice, never};
    for (uint32_t i = 0; i < 3; i++) {
        mtprof_problem problem;
        REQUIRE(mtprof_reader_problem(reader, i, &problem));
        CHECK_EQ_U64(problem.offset, offsets[i]);
    }
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(bad_headers_name_their_field)
{
    trace_builder b;
    tb_sample(&b, false);
    tb_finish(&b, true);
    const struct {
        uint64_t at;
        uint32_t value;
        mtprof_status status;
    } cases[] = {
        {TB_AT_HEADER_BYTES, 8192, MTPROF_EFORMAT}, {TB_AT_HEADER_BYTES, 0, MTPROF_EFORMAT},
        {TB_AT_FEATURES, 1, MTPROF_EVERSION},       {TB_AT_FEATURES, 1u << 31, MTPROF_EVERSION},
        {TB_AT_CLOCK, 2, MTPROF_EFORMAT},           {TB_AT_POLICY, 3, MTPROF_EFORMAT},
        {TB_AT_MAJOR, 2, MTPROF_EVERSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t before = tb_get32(&b, cases[i].at);
        tb_set32(&b, cases[i].at, cases[i].value);
        tb_repair(b.bytes, b.size);
        check_refused(&b, cases[i].status, (int64_t)cases[i].at, "");
        tb_set32(&b, cases[i].at, before);
    }
    tb_set64(&b, TB_AT_PERIOD, 0);
    tb_repair(b.bytes, b.size);
    check_refused(&b, MTPROF_EFORMAT, TB_AT_PERIOD, "tick_period");
    tb_set64(&b, TB_AT_PERIOD, 1);
    check_refused(&b, MTPROF_EFORMAT, TB_AT_HEADER_CRC, "checksum");
    b.bytes[3] ^= 1;
    check_refused(&b, MTPROF_EFORMAT, 0, "MTTRACE");
    tb_fini(&b);
}

TEST(optional_features_and_later_minors_are_read)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    tb_set32(&b, TB_AT_FEATURES + 4, 0xFFFFFFFF);
    tb_set16(&b, TB_AT_MINOR, 9);
    tb_set32(&b, 200, 12345); /* a field of that minor */
    tb_finish(&b, true);
    mtprof_reader *reader = open_image(&b, &memory);
    print_problems(reader);
    mtprof_trace_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.minor, 9);
    CHECK_EQ_U64(info.features, 0xFFFFFFFF00000000);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(short_files)
{
    trace_builder b;
    tb_init(&b);
    tb_finish(&b, true);
    size_t full = b.size;
    b.size = 0;
    check_refused(&b, MTPROF_EFORMAT, 0, "MTTRACE");
    b.size = 7;
    check_refused(&b, MTPROF_EFORMAT, 0, "MTTRACE");
    b.size = 8;
    check_refused(&b, MTPROF_EFORMAT, 8, "truncated");
    b.size = full - 1;
    check_refused(&b, MTPROF_EFORMAT, (int64_t)full - 1, "truncated");
    tb_fini(&b);
}

TEST(arguments_that_are_none)
{
    mtprof_reader *reader;
    CHECK_EQ_I64(mtprof_reader_open(NULL, &reader), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_reader_open_bytes(NULL, &reader), MTPROF_EINVAL);
    tb_memory memory = {0};
    mtprof_bytes bytes = tb_bytes(&memory);
    bytes.read = NULL;
    CHECK_EQ_I64(mtprof_reader_open_bytes(&bytes, &reader), MTPROF_EINVAL);
    CHECK_EQ_I64(memory.n_closed, 1);
    bytes = tb_bytes(&memory);
    bytes.struct_size = 0;
    CHECK_EQ_I64(mtprof_reader_open_bytes(&bytes, &reader), MTPROF_EINVAL);
    CHECK_EQ_I64(memory.n_closed, 1); /* close is not part of such a struct */
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_file(const char *path, const trace_builder *b)
{
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    CHECK_EQ_U64(fwrite(b->bytes, 1, b->size, file), b->size);
    CHECK_EQ_I64(fclose(file), 0);
}

TEST(a_file)
{
    trace_builder b;
    char path[600];
    tb_sample(&b, false);
    tb_finish(&b, true);
    snprintf(path, sizeof path, "%s/good.mtt", mt_test_tmpdir());
    write_file(path, &b);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    print_problems(reader);
    CHECK_EQ_U64(mtprof_reader_stream_count(reader), 5);
    mtprof_text text;
    REQUIRE(mtprof_reader_string(reader, 1, &text));
    CHECK_EQ_STR(text.bytes, "aten::add");
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(paths_that_are_no_file)
{
    mtprof_reader *reader;
    char path[600];
    CHECK_EQ_I64(mtprof_reader_open(mt_test_tmpdir(), &reader), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "is a directory") != NULL);
    snprintf(path, sizeof path, "%s/fifo", mt_test_tmpdir());
    REQUIRE_EQ_I64(mkfifo(path, 0600), 0);
    CHECK_EQ_I64(mtprof_reader_open(path, &reader), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "is a FIFO") != NULL);
    snprintf(path, sizeof path, "%s/none", mt_test_tmpdir());
    CHECK_EQ_I64(mtprof_reader_open(path, &reader), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_last_error()->system_error, ENOENT);
    CHECK(reader == NULL);
}

/* A file of a terabyte that is nearly all hole is a matter of moments. */
TEST(a_sparse_file)
{
    trace_builder b;
    char path[600];
    tb_sample(&b, false);
    tb_finish(&b, false);
    snprintf(path, sizeof path, "%s/sparse.mtt", mt_test_tmpdir());
    write_file(path, &b);
    if (truncate(path, (off_t)1 << 40) != 0) {
        tb_fini(&b);
        MT_SKIP("the file system has no sparse files of a terabyte");
    }
    /* A last chunk far out: it is found after the hole. */
    trace_builder far;
    tb_init(&far);
    tb_chunk(&far, MTPROF_STREAM_THREAD, 7);
    tb_record(&far, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){1});
    tb_finish(&far, false);
    int fd = open(path, O_WRONLY);
    REQUIRE(fd >= 0);
    CHECK_EQ_I64(pwrite(fd, far.bytes + 4096, 4096, (off_t)1 << 39), 4096);
    close(fd);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    print_problems(reader);
    CHECK_EQ_U64(mtprof_reader_stream_count(reader), 6);
    mtprof_reader_close(reader);
    tb_fini(&far);
    tb_fini(&b);
}

TEST(a_successful_open_leaves_the_last_error_alone)
{
    trace_builder b;
    tb_memory memory;
    mtprof_reader *reader;
    tb_sample(&b, false);
    tb_finish(&b, true);
    b.bytes[4096 + 100] ^= 1; /* a problem, reported in the same way */
    CHECK_EQ_I64(mtprof_reader_open(NULL, &reader), MTPROF_EINVAL);
    reader = open_image(&b, &memory);
    mtprof_problem problem;
    CHECK(mtprof_reader_problem(reader, 0, &problem));
    CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EINVAL);
    mtprof_reader_close(reader);
    tb_fini(&b);
}
