/* SPDX-License-Identifier: Apache-2.0
 *
 * Damage: it is reported with its offset, what it touches is left out, and everything else is
 * read. The last test is the promise itself, ten thousand times.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/model.h>
#include <mtprof/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    MUTATIONS = 10000
};

static mtprof_reader *open_bytes(const unsigned char *bytes, size_t size, tb_memory *memory)
{
    mtprof_reader *reader = NULL;
    *memory = (tb_memory){.bytes = bytes, .size = size};
    mtprof_bytes calls = tb_bytes(memory);
    mtprof_reader_open_bytes(&calls, &reader);
    return reader;
}

/* Opens and expects exactly one problem, there and with this word in its message. */
static mtprof_reader *open_with_problem(const trace_builder *b, tb_memory *memory, uint64_t offset,
                                        const char *word)
{
    mtprof_problem problem = {0, ""};
    mtprof_reader *reader = open_bytes(b->bytes, b->size, memory);
    REQUIRE(reader != NULL);
    if (!mtprof_reader_problem(reader, 0, &problem)) {
        FAIL("no problem, expected one at %llu", (unsigned long long)offset);
        return reader;
    }
    CHECK_EQ_U64(problem.offset, offset);
    if (strstr(problem.message, word) == NULL) {
        FAIL("no \"%s\" in \"%s\"", word, problem.message);
    }
    if (mtprof_reader_problem(reader, 1, &problem)) {
        FAIL("one more at %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
    return reader;
}

/* Reads all streams: how many records, and how many calls failed. */
static size_t count_records(const mtprof_reader *reader, size_t *n_failed)
{
    size_t n = 0;
    *n_failed = 0;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_cursor *cursor = NULL;
        mtprof_record record;
        mtprof_status status;
        REQUIRE_OK(mtprof_cursor_open(reader, i, &cursor));
        while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
            if (status == MTPROF_OK) {
                n++;
            } else {
                CHECK_EQ_I64(status, MTPROF_EFORMAT);
                CHECK(mtprof_last_error()->offset >= 0);
                ++*n_failed;
            }
        }
        mtprof_cursor_close(cursor);
    }
    return n;
}

/* Two thread chunks with a record each. */
static void two_chunks(trace_builder *b)
{
    tb_init(b);
    for (uint64_t i = 0; i < 2; i++) {
        tb_chunk(b, MTPROF_STREAM_THREAD, 0);
        tb_record(b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){1000 + i});
    }
}

static void check_left(mtprof_reader *reader, size_t n_records, size_t n_failed)
{
    size_t failed = 0;
    CHECK_EQ_U64(count_records(reader, &failed), n_records);
    CHECK_EQ_U64(failed, n_failed);
    mtprof_reader_close(reader);
}

/* More problems than are listed: all are counted. */
TEST(problems_beyond_the_list_are_counted)
{
    enum {
        CHUNKS = 1100,
        LISTED = 1000
    };
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    uint64_t offsets[CHUNKS];
    for (size_t i = 0; i < CHUNKS; i++) {
        offsets[i] = tb_chunk(&b, MTPROF_STREAM_THREAD, 1);
    }
    tb_finish(&b, true);
    for (size_t i = 0; i < CHUNKS; i++) {
        b.bytes[offsets[i] + TB_CHUNK_SEQUENCE] ^= 1;
    }
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    mtprof_problem problem = {0, ""};
    uint32_t n = 0;
    while (mtprof_reader_problem(reader, n, &problem)) {
        n++;
    }
    CHECK_EQ_U64(n, LISTED);
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_take_reader(reader, NULL, &model));
    mtprof_damage damage = {.struct_size = sizeof damage};
    REQUIRE_OK(mtprof_model_get_damage(model, &damage));
    CHECK(damage.problems >= CHUNKS);
    CHECK_EQ_U64(damage.offset, offsets[0]);
    CHECK(damage.bytes >= CHUNKS * (uint64_t)PAGE);
    mtprof_model_free(model);
    tb_fini(&b);
}

TEST(chunk_headers)
{
    const struct {
        uint64_t at;
        uint64_t value;
        bool closed;
        size_t left, failed; /* the chunk's own record is gone, or only its order */
        const char *word;
    } cases[] = {
        {TB_CHUNK_STATE, MTPROF_CHUNK_SEALED, true, 1, 1, "state is 1"},
        {TB_CHUNK_STATE, 3, false, 1, 1, "state is 3"},
        {TB_CHUNK_COMMITTED, 4096, false, 1, 1, "committed is 4096"},
        {TB_CHUNK_COMMITTED, 12, false, 1, 1, "committed is 12"},
        {TB_CHUNK_FIRST_ORDINAL, ((uint64_t)1 << 39) + 1, true, 1, 1, "first_ordinal"},
        {TB_CHUNK_SEQUENCE, 1, true, 1, 0, "sequence 1"},  /* a second one */
        {TB_CHUNK_SEQUENCE, 7, true, 2, 0, "sequence is"}, /* numbers that are missing */
        {TB_CHUNK_SIZE, 4097, true, 1, 0, "size is 4097"},
        {TB_CHUNK_SIZE, 0, true, 1, 0, "size is 0"},
        {TB_CHUNK_SIZE, 1u << 31, true, 1, 0, "size is 2147483648"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trace_builder b;
        tb_memory memory;
        two_chunks(&b);
        bool wide = cases[i].at == TB_CHUNK_SEQUENCE || cases[i].at == TB_CHUNK_COMMITTED ||
                    cases[i].at == TB_CHUNK_FIRST_ORDINAL;
        if (wide) {
            tb_set64(&b, PAGE + cases[i].at, cases[i].value);
        } else {
            tb_set32(&b, PAGE + cases[i].at, (uint32_t)cases[i].value);
        }
        tb_finish(&b, cases[i].closed);
        mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
        mtprof_problem problem;
        REQUIRE(reader != NULL);
        REQUIRE(mtprof_reader_problem(reader, 0, &problem));
        CHECK(problem.offset == PAGE || problem.offset == 2 * PAGE);
        bool found = false;
        for (uint32_t k = 0; mtprof_reader_problem(reader, k, &problem); k++) {
            found = found || strstr(problem.message, cases[i].word) != NULL;
        }
        if (!found) {
            FAIL("case %zu: no \"%s\"", i, cases[i].word);
        }
        check_left(reader, cases[i].left, cases[i].failed);
        tb_fini(&b);
    }
}

TEST(a_slot_where_there_is_none)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_CONTROL, 2);
    tb_record(&b, MTPROF_REC_STEP, 0, 0, 2, (uint64_t[]){1, 2});
    tb_finish(&b, true);
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    mtprof_problem problem;
    CHECK(mtprof_reader_problem(reader, 0, &problem));
    CHECK_EQ_U64(problem.offset, PAGE);
    check_left(reader, 0, 1);
    tb_fini(&b);
}

TEST(a_header_checksum)
{
    trace_builder b;
    tb_memory memory;
    two_chunks(&b);
    tb_finish(&b, true);
    b.bytes[2 * PAGE + TB_CHUNK_BASE_TICKS] ^= 0x40;
    mtprof_reader *reader = open_with_problem(&b, &memory, 2 * PAGE, "header's checksum");
    mtprof_trace_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.chunks, 1);
    CHECK_EQ_U64(info.chunks_damaged, 1);
    check_left(reader, 1, 0);
    tb_fini(&b);
}

TEST(another_files_chunk)
{
    trace_builder b;
    tb_memory memory;
    two_chunks(&b);
    tb_finish(&b, true);
    b.bytes[TB_AT_UUID] ^= 1; /* the same chunks under another uuid */
    uint32_t crc = tb_crc32c(0, b.bytes, TB_AT_HEADER_CRC);
    tb_set32(&b, TB_AT_HEADER_CRC, crc);
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    CHECK_EQ_U64(mtprof_reader_stream_count(reader), 0);
    mtprof_problem problem;
    CHECK(mtprof_reader_problem(reader, 1, &problem));
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(a_data_checksum)
{
    trace_builder b;
    tb_memory memory;
    two_chunks(&b);
    tb_finish(&b, true);
    b.bytes[PAGE + 64 + 8] ^= 0x01;
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    mtprof_problem problem;
    CHECK(!mtprof_reader_problem(reader, 0, &problem)); /* events are not read by opening */
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    REQUIRE_OK(mtprof_cursor_open(reader, 0, &cursor));
    CHECK_EQ_I64(mtprof_cursor_next(cursor, &record), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_last_error()->offset, PAGE);
    CHECK(strstr(mtprof_last_error()->message, "checksum of 16 bytes") != NULL);
    CHECK_OK(mtprof_cursor_next(cursor, &record)); /* after the damage */
    CHECK_EQ_U64(record.offset, 2 * PAGE + 64);
    CHECK_EQ_I64(mtprof_cursor_next(cursor, &record), MTPROF_EEND);
    mtprof_cursor_close(cursor);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

/* What opening reads it also reports, and the cursor again. */
TEST(damaged_definitions)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(&b, 1, "lost");
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(&b, 2, "kept");
    tb_finish(&b, true);
    b.bytes[PAGE + 64 + 16] ^= 0x20; /* "Lost" */
    mtprof_reader *reader = open_with_problem(&b, &memory, PAGE, "checksum of 24 bytes");
    mtprof_trace_info info = {.struct_size = sizeof info};
    mtprof_text text;
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.chunks, 2);
    CHECK_EQ_U64(info.chunks_damaged, 1);
    CHECK(!mtprof_reader_string(reader, 1, &text));
    CHECK(mtprof_reader_string(reader, 2, &text));
    check_left(reader, 1, 1);
    tb_fini(&b);
}

TEST(unused_pages)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    b.chunk_bytes = 40 * PAGE; /* more than a block of the walk */
    tb_chunk(&b, 9, 0);
    memset(b.bytes + PAGE, 0, b.chunk_bytes); /* unused pages instead */
    b.chunk_bytes = PAGE;
    tb_chunk(&b, MTPROF_STREAM_THREAD, 0);
    tb_record(&b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){1});
    tb_finish(&b, true);
    mtprof_problem problem;
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    CHECK(!mtprof_reader_problem(reader, 0, &problem));
    check_left(reader, 1, 0);

    b.bytes[30 * PAGE + 123] = 7;
    b.bytes[33 * PAGE] = 7; /* the same run */
    check_left(open_with_problem(&b, &memory, 30 * PAGE + 123, "expected zeros"), 1, 0);

    tb_set32(&b, TB_AT_CLOSED, 0); /* a trace that is not closed may have such pages */
    reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    CHECK(!mtprof_reader_problem(reader, 0, &problem));
    check_left(reader, 1, 0);
    tb_fini(&b);
}

TEST(what_is_written_at_closing)
{
    trace_builder b;
    tb_memory memory;
    two_chunks(&b);
    tb_finish(&b, true);
    mtprof_trace_info info = {.struct_size = sizeof info};

    b.bytes[TB_AT_HEALTH + 9] ^= 1;
    mtprof_reader_close(open_with_problem(&b, &memory, TB_AT_CLOSED_CRC, "health"));
    b.bytes[TB_AT_HEALTH + 9] ^= 1;

    b.bytes[TB_AT_END_TICKS] ^= 1;
    mtprof_reader *reader = open_with_problem(&b, &memory, TB_AT_FINAL_CRC, "end_ticks");
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK_EQ_U64(info.end_ticks, 1000); /* what was seen instead */
    mtprof_reader_close(reader);
    b.bytes[TB_AT_END_TICKS] ^= 1;

    b.bytes[TB_AT_CLOSED] ^= 1;
    reader = open_with_problem(&b, &memory, TB_AT_CLOSED, "closed is");
    CHECK_OK(mtprof_reader_get_info(reader, &info));
    CHECK(!info.closed);
    mtprof_reader_close(reader);
    b.bytes[TB_AT_CLOSED] ^= 1;

    b.bytes[500] = 1;
    mtprof_reader_close(open_with_problem(&b, &memory, 500, "no field"));
    b.bytes[500] = 0;

    size_t full = b.size;
    b.bytes = realloc(b.bytes, full + 100); /* something after the end */
    REQUIRE(b.bytes != NULL);
    memset(b.bytes + full, 7, 100);
    b.size += 100;
    check_left(open_with_problem(&b, &memory, full, "behind the end"), 2, 0);
    b.size = full;
    tb_set64(&b, TB_AT_FILE_BYTES, 2 * PAGE + 10); /* an end in the middle of a chunk's header */
    tb_repair(b.bytes, b.size);
    reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    check_left(reader, 1, 0);
    tb_fini(&b);
}

/* The sample, cut at every length: always an error or a problem, with the offset of the cut. */
static void cut_everywhere(bool closed)
{
    trace_builder b;
    size_t failed = 0;
    tb_memory memory;
    tb_sample(&b, false);
    b.chunk_state = MTPROF_CHUNK_OPEN;
    tb_chunk(&b, MTPROF_STREAM_THREAD, 5);
    tb_set32(&b, b.chunk + TB_CHUNK_STATE, closed ? MTPROF_CHUNK_CHECKED : MTPROF_CHUNK_OPEN);
    for (uint64_t i = 0; i < 200; i++) {
        tb_record(&b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){i});
    }
    tb_finish(&b, closed);
    mtprof_reader *reader = open_bytes(b.bytes, b.size, &memory);
    REQUIRE(reader != NULL);
    size_t all = count_records(reader, &failed);
    CHECK_EQ_U64(failed, 0);
    mtprof_reader_close(reader);
    for (size_t length = 0; length < b.size; length++) {
        unsigned char *cut = malloc(length + 1); /* exactly as long, for the sanitizer */
        REQUIRE(cut != NULL);
        memcpy(cut, b.bytes, length);
        reader = open_bytes(cut, length, &memory);
        if (reader == NULL) {
            CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EFORMAT);
            CHECK(length < PAGE);
            CHECK(mtprof_last_error()->offset >= 0 &&
                  mtprof_last_error()->offset <= (int64_t)length);
        } else {
            mtprof_problem problem;
            size_t n = count_records(reader, &failed);
            bool reported = mtprof_reader_problem(reader, 0, &problem);
            /* A trace that was not closed and is cut between chunks is just an older one. */
            if (!reported && (closed || length % PAGE != 0)) {
                FAIL("length %zu: %zu of %zu records and no problem", length, n, all);
            }
        }
        mtprof_reader_close(reader);
        free(cut);
    }
    tb_fini(&b);
}

TEST(a_closed_trace_cut_at_every_length)
{
    cut_everywhere(true);
}

TEST(an_open_trace_cut_at_every_length)
{
    cut_everywhere(false);
}

/* Records of an open chunk are believed up to the first that cannot be, or up to the cut. */
TEST(an_open_chunk_that_is_cut)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    b.chunk_state = MTPROF_CHUNK_OPEN;
    tb_chunk(&b, MTPROF_STREAM_THREAD, 0);
    for (uint64_t i = 0; i < 10; i++) {
        tb_record(&b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){i});
    }
    tb_finish(&b, false);
    b.size = PAGE + 64 + 5 * 16;
    mtprof_reader *reader = open_with_problem(&b, &memory, b.size, "truncated");
    check_left(reader, 5, 0);
    b.size -= 3;
    reader = open_with_problem(&b, &memory, b.size, "truncated");
    check_left(reader, 4, 1); /* half a record */
    tb_fini(&b);
}

/* ---- the promise ----------------------------------------------------------------------------- */

typedef struct original {
    uint64_t ticks, key;
    uint32_t n_words;
    uint32_t epoch, thread;
    bool exists;
} original;

typedef struct promise {
    trace_builder b;
    original *at;  /* by offset / 8 */
    bool *matters; /* by byte: a change has to be reported */
    size_t n_records;
    unsigned char *copy;
} promise;

/* Everything but what no reader looks at: after `committed`, and in a chunk of another kind. */
static void mark_bytes(promise *p)
{
    memset(p->matters, 1, PAGE);
    for (uint64_t at = PAGE; at < p->b.size; at += tb_get32(&p->b, at + TB_CHUNK_SIZE)) {
        bool known = p->b.bytes[at + TB_CHUNK_STREAM] <= MTPROF_STREAM_SOURCE;
        uint64_t committed = tb_get64(&p->b, at + TB_CHUNK_COMMITTED);
        memset(p->matters + at, known, known ? 64 + committed : 0);
    }
}

/* Walks a mutated copy. Returns how many records came, or SIZE_MAX if one was not there before. */
static size_t walk(const promise *p, const mtprof_reader *reader, bool *reported)
{
    size_t n = 0;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_cursor *cursor = NULL;
        mtprof_record record;
        mtprof_status status;
        REQUIRE_OK(mtprof_cursor_open(reader, i, &cursor));
        while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
            if (status != MTPROF_OK) {
                *reported = true;
                continue;
            }
            const original *o = &p->at[record.offset / 8];
            uint64_t body = record.offset + ((record.word >> 8 & 0xFF) == 255 ? 16 : 8);
            if (!o->exists || o->n_words != record.n_words || o->ticks != record.ticks ||
                o->key != record.key || o->epoch != record.epoch || o->thread != record.thread ||
                record.word != tb_get64(&p->b, record.offset) ||
                memcmp(record.words, p->b.bytes + body, record.n_words * 8) != 0) {
                mtprof_cursor_close(cursor);
                return SIZE_MAX;
            }
            n++;
        }
        mtprof_cursor_close(cursor);
    }
    return n;
}

static void learn(promise *p)
{
    tb_memory memory;
    mtprof_reader *reader = open_bytes(p->b.bytes, p->b.size, &memory);
    REQUIRE(reader != NULL);
    mtprof_problem problem;
    CHECK(!mtprof_reader_problem(reader, 0, &problem));
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_cursor *cursor = NULL;
        mtprof_record r;
        REQUIRE_OK(mtprof_cursor_open(reader, i, &cursor));
        while (mtprof_cursor_next(cursor, &r) == MTPROF_OK) {
            p->at[r.offset / 8] = (original){r.ticks, r.key, r.n_words, r.epoch, r.thread, true};
            p->n_records++;
        }
        CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EEND);
        mtprof_cursor_close(cursor);
    }
    mtprof_reader_close(reader);
}

/* Changes the copy; says what it did. The size it then has. */
static size_t mutate(promise *p, uint64_t *seed, char *what, size_t what_size)
{
    size_t size = p->b.size;
    size_t at = mt_test_random(seed) % size;
    memcpy(p->copy, p->b.bytes, size);
    switch (mt_test_random(seed) % 8) {
    case 0: {
        unsigned char value = (unsigned char)mt_test_random(seed);
        p->copy[at] = value;
        snprintf(what, what_size, "byte %zu set to %02x", at, value);
        return size;
    }
    case 1: snprintf(what, what_size, "cut to %zu bytes", at); return at;
    case 2:
        at &= ~(size_t)(PAGE - 1);
        memset(p->copy + at, 0, PAGE);
        snprintf(what, what_size, "page at %zu zeroed", at);
        return size;
    default: {
        unsigned bit = (unsigned)(mt_test_random(seed) % 8);
        if (mt_test_random(seed) % 4 == 0) { /* headers are small and deserve more */
            at = (at & ~(size_t)(PAGE - 1)) + mt_test_random(seed) % 112;
        }
        p->copy[at] ^= (unsigned char)(1u << bit);
        snprintf(what, what_size, "bit %u of byte %zu flipped", bit, at);
        return size;
    }
    }
}

static bool must_be_reported(const promise *p, size_t size)
{
    if (size != p->b.size) {
        return true;
    }
    for (size_t i = 0; i < size; i++) {
        if (p->copy[i] != p->b.bytes[i] && p->matters[i]) {
            return true;
        }
    }
    return false;
}

TEST(nothing_wrong_is_returned_and_nothing_is_lost_in_silence)
{
    promise p = {0};
    uint64_t seed = mt_test_seed();
    char what[80] = "";
    size_t n_reported = 0;
    tb_sample(&p.b, true);
    tb_finish(&p.b, true);
    p.at = calloc(p.b.size / 8, sizeof *p.at);
    p.matters = calloc(p.b.size, sizeof *p.matters);
    p.copy = malloc(p.b.size);
    REQUIRE(p.at != NULL && p.matters != NULL && p.copy != NULL);
    mark_bytes(&p);
    learn(&p);
    for (int i = 0; i < MUTATIONS; i++) {
        tb_memory memory;
        size_t size = mutate(&p, &seed, what, sizeof what);
        mtprof_reader *reader = open_bytes(p.copy, size, &memory);
        CHECK_EQ_I64(memory.n_closed, reader == NULL);
        bool reported = true;
        if (reader != NULL) {
            mtprof_problem problem;
            reported = mtprof_reader_problem(reader, 0, &problem);
            size_t n = walk(&p, reader, &reported);
            if (n == SIZE_MAX) {
                FAIL("mutation %d, %s: a record that was never written", i, what);
            } else if (n != p.n_records && !reported) {
                FAIL("mutation %d, %s: %zu of %zu records and no word", i, what, n, p.n_records);
            }
        } else if (mtprof_last_error()->offset < 0) {
            FAIL("mutation %d, %s: no offset: %s", i, what, mtprof_last_error()->message);
        }
        if (!reported && must_be_reported(&p, size)) {
            FAIL("mutation %d, %s: not a word", i, what);
        }
        n_reported += reported;
        mtprof_reader_close(reader);
    }
    CHECK(n_reported > MUTATIONS / 2); /* or the test does not test */
    free(p.at);
    free(p.matters);
    free(p.copy);
    tb_fini(&p.b);
}
