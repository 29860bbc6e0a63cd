/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof_recover(): what it writes is clean and closed, and holds exactly the records that a reader
 * gives of what it read.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/check.h>
#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    MUTATIONS = 400,
    MUTATIONS_LONG = 10000
};

/* ---- helpers --------------------------------------------------------------------------------- */

static char in_path[512];
static char out_path[512];

static void make_paths(void)
{
    snprintf(in_path, sizeof in_path, "%s/in.mtt", mt_test_tmpdir());
    snprintf(out_path, sizeof out_path, "%s/out.mtt", mt_test_tmpdir());
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    REQUIRE_EQ_U64(fwrite(bytes, 1, size, file), size);
    REQUIRE_EQ_I64(fclose(file), 0);
}

/* A number for a record that is the same wherever its chunk lies. */
static uint64_t digest(const mtprof_record *record)
{
    uint64_t sum = record->kind * 31u + record->aux;
    const uint64_t fields[] = {record->arg, record->epoch, record->thread, record->ticks,
                               record->key};
    for (size_t i = 0; i < 5; i++) {
        sum = sum * 0x9E3779B97F4A7C15u + fields[i];
    }
    for (uint32_t i = 0; i < record->n_words; i++) {
        sum = sum * 0x9E3779B97F4A7C15u + record->words[i];
    }
    return sum;
}

typedef struct contents {
    uint64_t *digests; /* of all records but LOST, streams in order */
    size_t n, capacity;
    uint64_t lost; /* sum of LOST records of disk and damage */
    uint64_t problems, failures;
    bool closed;
    uint64_t health[MTPROF_HEALTH_COUNT];
} contents;

static bool read_contents(const char *path, contents *out)
{
    mtprof_reader *reader = NULL;
    memset(out, 0, sizeof *out);
    if (mtprof_reader_open(path, &reader) != MTPROF_OK) {
        return false;
    }
    mtprof_trace_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    out->closed = info.closed;
    memcpy(out->health, info.health, sizeof out->health);
    mtprof_problem problem;
    for (uint32_t i = 0; mtprof_reader_problem(reader, i, &problem); i++) {
        /* Records that contradict each other are kept as they are; the file as such is sound. */
        out->problems += strncmp(problem.message, "definition at", 13) != 0 &&
                         strncmp(problem.message, "record at", 9) != 0;
    }
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_cursor *cursor = NULL;
        mtprof_record record;
        mtprof_status status;
        CHECK_OK(mtprof_cursor_open(reader, i, &cursor));
        while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
            if (status != MTPROF_OK) {
                out->failures++;
                continue;
            }
            if (record.kind == MTPROF_REC_LOST &&
                (record.aux == MTPROF_LOST_DISK || record.aux == MTPROF_LOST_DAMAGE)) {
                out->lost += record.words[0];
                continue;
            }
            if (out->n == out->capacity) {
                out->capacity = out->capacity * 2 + 256;
                out->digests = realloc(out->digests, out->capacity * sizeof *out->digests);
            }
            out->digests[out->n++] = digest(&record);
        }
        mtprof_cursor_close(cursor);
    }
    mtprof_reader_close(reader);
    return true;
}

/* Recovers in_path and compares: the same records, clean and closed. */
static mtprof_recover_summary recover_and_compare(void)
{
    contents before;
    contents after;
    mtprof_recover_summary summary = {.struct_size = sizeof summary};
    REQUIRE(read_contents(in_path, &before));
    REQUIRE_OK(mtprof_recover(in_path, out_path, &summary));
    REQUIRE(read_contents(out_path, &after));
    CHECK(after.closed);
    CHECK_EQ_U64(after.problems, 0);
    CHECK_EQ_U64(after.failures, 0);
    CHECK_EQ_U64(after.lost, before.lost + summary.begins_lost);
    if (CHECK_EQ_U64(after.n, before.n) && after.n > 0) {
        CHECK_EQ_MEM(after.digests, before.digests, after.n * sizeof *after.digests);
    }
    CHECK_EQ_U64(after.health[MTPROF_LOST_DISK] + after.health[MTPROF_LOST_DAMAGE],
                 before.health[MTPROF_LOST_DISK] + before.health[MTPROF_LOST_DAMAGE] +
                     summary.begins_lost);
    struct stat info;
    REQUIRE(stat(out_path, &info) == 0);
    CHECK_EQ_U64((uint64_t)info.st_size, summary.bytes_written);
    free(before.digests);
    free(after.digests);
    return summary;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

TEST(recover_copies_a_sound_trace)
{
    trace_builder b;
    make_paths();
    tb_sample(&b, true);
    tb_set64(&b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_STALLS, 77);
    tb_finish(&b, true);
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.was_closed, 1);
    CHECK_EQ_U64(summary.chunks_cut, 0);
    CHECK_EQ_U64(summary.chunks_lost, 0);
    CHECK_EQ_U64(summary.begins_lost, 0);
    CHECK(summary.begins > 0);
    contents after;
    REQUIRE(read_contents(out_path, &after));
    CHECK_EQ_U64(after.health[MTPROF_HEALTH_STALLS], 77);
    free(after.digests);
    tb_fini(&b);
}

TEST(recover_closes_what_was_open)
{
    trace_builder b;
    make_paths();
    tb_sample(&b, false);
    b.chunk_state = MTPROF_CHUNK_OPEN;
    b.next_ordinal = 700;
    tb_chunk(&b, MTPROF_STREAM_THREAD, 7);
    tb_record(&b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){3000000});
    tb_finish(&b, false);
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.was_closed, 0);
    CHECK(summary.open_scopes >= 1);
    CHECK(summary.end_ns >= 3000000);
    tb_fini(&b);
}

/* Three chunks of four begins and ends each; the middle one is hurt. */
static uint64_t three_chunks(trace_builder *b, uint32_t state)
{
    uint64_t middle = 0;
    tb_init(b);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(b, 1, "op");
    b->chunk_state = state;
    for (uint64_t c = 0; c < 3; c++) {
        uint64_t at = tb_chunk(b, MTPROF_STREAM_THREAD, 1);
        middle = c == 1 ? at : middle;
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t ticks = 2000 + 100 * (4 * c + i);
            tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){ticks});
            tb_end(b, 1, ticks + 50);
        }
        b->next_ordinal += 4;
    }
    return middle;
}

TEST(recover_leaves_out_a_damaged_chunk_and_says_so)
{
    trace_builder b;
    make_paths();
    uint64_t middle = three_chunks(&b, MTPROF_CHUNK_CHECKED);
    tb_finish(&b, true);
    b.bytes[middle + 70] ^= 1; /* its checksum does not hold */
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.chunks_lost, 1);
    CHECK_EQ_U64(summary.begins, 8);
    CHECK_EQ_U64(summary.begins_lost, 4);
    tb_fini(&b);
}

TEST(recover_cuts_a_chunk_at_an_impossible_record)
{
    trace_builder b;
    make_paths();
    uint64_t middle = three_chunks(&b, MTPROF_CHUNK_SEALED);
    tb_finish(&b, false);
    /* The third begin of the chunk: words 3 each pair, so 6 words in. */
    b.bytes[middle + 64 + 6 * 8 + 1] = 0; /* a length of 0 */
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.chunks_cut, 1);
    CHECK_EQ_U64(summary.begins, 10);
    CHECK_EQ_U64(summary.begins_lost, 2);
    tb_fini(&b);
}

/* Later records rest on the ordinal and the time of one that is left out. */
TEST(recover_goes_on_behind_a_record_that_is_left_out)
{
    for (uint32_t policy = 0; policy < 2; policy++) {
        trace_builder b;
        make_paths();
        uint64_t middle = three_chunks(&b, MTPROF_CHUNK_CHECKED);
        tb_set32(&b, TB_AT_POLICY, policy);
        b.bytes[middle + 64 + 2] = 0x0F;         /* the first begin: a kind that is none */
        b.bytes[middle + 64 + 6 * 8 + 3] = 0x01; /* the third: a flag that is none */
        tb_finish(&b, true);
        write_file(in_path, b.bytes, b.size);
        mtprof_recover_summary summary = recover_and_compare();
        CHECK_EQ_U64(summary.chunks_cut, 1);
        CHECK_EQ_U64(summary.chunks_kept, 3); /* two of the slot, the definitions */
        CHECK_EQ_U64(summary.begins, 10);
        CHECK_EQ_U64(summary.begins_lost, 2);
        tb_fini(&b);
    }
}

/* A payload may be in the chunk after its event's: what recover reports of begins that are
 * missing between the two must not part them. */
TEST(recover_keeps_payloads_with_their_event)
{
    trace_builder b;
    make_paths();
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(&b, 1, "op");
    tb_chunk(&b, MTPROF_STREAM_THREAD, 1);
    tb_record(&b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){2000});
    b.next_ordinal = 4; /* ordinals 1 to 3 are nowhere */
    tb_chunk(&b, MTPROF_STREAM_THREAD, 1);
    tb_record(&b, MTPROF_REC_META, MTPROF_META_INT, 1, 1, (uint64_t[]){7});
    tb_end(&b, 4, 3000);
    tb_finish(&b, true);
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.begins_lost, 3);
    tb_fini(&b);
}

/* A scope without an end, and after it a record that is left out and has a much later time. */
static void open_scope(trace_builder *b)
{
    tb_init(b);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(b, 1, "op");
    tb_chunk(b, MTPROF_STREAM_THREAD, 1);
    tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){2000});
    tb_record(b, MTPROF_REC_BEGIN, 0x8000, 1, 1, (uint64_t[]){(uint64_t)1 << 50});
    tb_record(b, MTPROF_REC_ATTACH, 0, 0, 1, (uint64_t[]){(uint64_t)1 << MTPROF_ORDINAL_BITS});
}

static void check_end(const trace_builder *b, uint64_t end_ticks)
{
    mtprof_reader *reader = NULL;
    mtprof_trace_info info = {.struct_size = sizeof info};
    write_file(in_path, b->bytes, b->size);
    recover_and_compare();
    REQUIRE_OK(mtprof_reader_open(out_path, &reader));
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.end_ticks, end_ticks);
    mtprof_reader_close(reader);
}

/* The end is what the header says, else the last time of a record that counts. */
TEST(recover_does_not_end_at_the_time_of_a_record_that_is_left_out)
{
    trace_builder b;
    make_paths();
    open_scope(&b);
    tb_finish(&b, false);
    check_end(&b, 2000);
    tb_fini(&b);

    open_scope(&b);
    tb_finish(&b, true);
    tb_set64(&b, TB_AT_START, 0);
    tb_set64(&b, TB_AT_END_TICKS, 0);
    tb_repair(b.bytes, b.size);
    check_end(&b, 0);                 /* reported, and kept */
    b.bytes[TB_AT_END_TICKS + 1] = 9; /* its checksum does not hold */
    check_end(&b, 2000);
    tb_fini(&b);
}

TEST(recover_fills_the_gap_of_a_chunk_without_a_header)
{
    trace_builder b;
    make_paths();
    uint64_t middle = three_chunks(&b, MTPROF_CHUNK_CHECKED);
    tb_finish(&b, false);
    memset(b.bytes + middle, 0, PAGE);
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.begins, 8);
    CHECK_EQ_U64(summary.begins_lost, 4);
    tb_fini(&b);
}

TEST(recover_keeps_the_gaps_of_ring_mode)
{
    trace_builder b;
    make_paths();
    uint64_t middle = three_chunks(&b, MTPROF_CHUNK_CHECKED);
    tb_set32(&b, TB_AT_POLICY, 1);
    tb_finish(&b, true);
    memset(b.bytes + middle, 0, PAGE);
    write_file(in_path, b.bytes, b.size);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.begins_lost, 0);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open(out_path, &reader));
    mtprof_stream_info stream = {.struct_size = sizeof stream};
    REQUIRE_OK(mtprof_reader_get_stream(reader, 1, &stream));
    CHECK_EQ_U64(stream.chunks_missing, 1);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

/* Any byte of a trace: what comes out is clean, or nothing does. */
TEST(recover_random_damage)
{
    trace_builder b;
    make_paths();
    tb_sample(&b, true);
    tb_finish(&b, false);
    uint64_t seed = mt_test_seed();
    int runs = mt_test_long() ? MUTATIONS_LONG : MUTATIONS;
    unsigned char *bytes = malloc(b.size);
    REQUIRE(bytes != NULL);
    for (int i = 0; i < runs; i++) {
        memcpy(bytes, b.bytes, b.size);
        size_t n = 1 + mt_test_random(&seed) % 4;
        for (size_t k = 0; k < n; k++) {
            bytes[mt_test_random(&seed) % b.size] = (unsigned char)mt_test_random(&seed);
        }
        if (i % 2 == 0) {
            tb_repair(bytes, b.size);
        }
        size_t size = i % 5 == 0 ? mt_test_random(&seed) % (b.size + 1) : b.size;
        write_file(in_path, bytes, size);
        contents before;
        if (read_contents(in_path, &before)) {
            free(before.digests);
            recover_and_compare();
        } else {
            unlink(out_path);
            CHECK(mtprof_recover(in_path, out_path, NULL) != MTPROF_OK);
            CHECK(access(out_path, F_OK) != 0);
        }
    }
    free(bytes);
    tb_fini(&b);
}

/* ---- where it is written --------------------------------------------------------------------- */

TEST(recover_in_place)
{
    trace_builder b;
    contents before;
    contents after;
    make_paths();
    three_chunks(&b, MTPROF_CHUNK_SEALED);
    tb_finish(&b, false);
    write_file(in_path, b.bytes, b.size);
    REQUIRE(chmod(in_path, 0640) == 0);
    REQUIRE(read_contents(in_path, &before));
    CHECK(!before.closed);
    /* Through a link: it stays one, and what it points to is replaced. */
    REQUIRE(symlink("in.mtt", out_path) == 0);
    REQUIRE_OK(mtprof_recover(out_path, NULL, NULL));
    struct stat info;
    REQUIRE(lstat(out_path, &info) == 0);
    CHECK(S_ISLNK(info.st_mode));
    REQUIRE(stat(in_path, &info) == 0);
    CHECK_EQ_U64(info.st_mode & 0777, 0640);
    REQUIRE(read_contents(in_path, &after));
    CHECK(after.closed);
    CHECK_EQ_U64(after.n, before.n);
    free(before.digests);
    free(after.digests);
    tb_fini(&b);
}

TEST(recover_refuses)
{
    make_paths();
    mtprof_recover_summary summary = {.struct_size = 0};
    CHECK_EQ_I64(mtprof_recover(NULL, out_path, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_recover(in_path, out_path, &summary), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_recover(in_path, out_path, NULL), MTPROF_EIO);
    write_file(in_path, "no trace at all", 15);
    write_file(out_path, "precious", 8);
    CHECK_EQ_I64(mtprof_recover(in_path, out_path, NULL), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_recover(in_path, NULL, NULL), MTPROF_EFORMAT);
    char nowhere[600];
    trace_builder b;
    three_chunks(&b, MTPROF_CHUNK_CHECKED);
    tb_finish(&b, true);
    write_file(in_path, b.bytes, b.size);
    snprintf(nowhere, sizeof nowhere, "%s/none/out.mtt", mt_test_tmpdir());
    CHECK_EQ_I64(mtprof_recover(in_path, nowhere, NULL), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "none/out.mtt") != NULL);
    tb_fini(&b);
}

TEST(recover_without_memory)
{
    trace_builder b;
    make_paths();
    tb_sample(&b, false);
    tb_finish(&b, false);
    write_file(in_path, b.bytes, b.size);
    write_file(out_path, "precious", 8);
    uint64_t n = 1;
    for (;; n++) {
        mtb_fail_nth(n, false);
        mtprof_status status = mtprof_recover(in_path, out_path, NULL);
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            break;
        }
        REQUIRE_EQ_I64(status, MTPROF_ENOMEM);
        struct stat info;
        REQUIRE(stat(out_path, &info) == 0);
        CHECK_EQ_U64((uint64_t)info.st_size, 8);
    }
    CHECK(n > 10);
    tb_fini(&b);
}

/* ---- a killed process ------------------------------------------------------------------------ */

static void record_until_killed(int ready)
{
    static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
    static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_OP);
    mtprof_config options = {.struct_size = sizeof options, .path = in_path};
    mtprof_session *session = NULL;
    if (mtprof_session_start(&options, &session) != MTPROF_OK) {
        _exit(1);
    }
    mtprof_token open = mtprof_begin(&outer);
    for (int i = 0; i < 100000; i++) {
        mtprof_token token = mtprof_begin(&inner);
        mtprof_end(token);
    }
    (void)open;
    (void)!write(ready, "x", 1);
    pause();
    _exit(1);
}

TEST(recover_after_kill)
{
    int ready[2];
    char byte = 0;
    make_paths();
    REQUIRE(pipe(ready) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        record_until_killed(ready[1]);
    }
    close(ready[1]);
    REQUIRE_EQ_I64(read(ready[0], &byte, 1), 1);
    CHECK_EQ_I64(mtprof_recover(in_path, out_path, NULL), MTPROF_EBUSY);
    REQUIRE(kill(child, SIGKILL) == 0);
    waitpid(child, NULL, 0);
    close(ready[0]);
    mtprof_recover_summary summary = recover_and_compare();
    CHECK_EQ_U64(summary.was_closed, 0);
    CHECK_EQ_U64(summary.begins, 100001);
    CHECK_EQ_U64(summary.open_scopes, 1);
    CHECK_EQ_U64(summary.begins_lost, 0);
    mtprof_check_summary check = {.struct_size = sizeof check};
    REQUIRE_OK(mtprof_check(out_path, NULL, &check));
    CHECK_EQ_U64(check.errors, 0);
    CHECK_EQ_U64(check.spans, 100001);
    CHECK_EQ_U64(check.closed, 1);
}
