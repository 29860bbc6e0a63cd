/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that change while they are read: scripted, where each change happens at a chosen read, and
 * with a thread that writes into a ring all the time.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096
};

/* ---- scripted -------------------------------------------------------------------------------- */

typedef struct script {
    trace_builder b;
    tb_memory memory;
    uint64_t watched;                /* a read that starts here ... */
    int skip;                        /* ... after so many of them ... */
    bool after;                      /* ... calls change() after or before it */
    void (*change)(struct script *); /* set to NULL when it was called */
    mtprof_reader *reader;
} script;

static int64_t script_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    script *s = context;
    void (*change)(script *) = NULL;
    if (offset == s->watched && s->change != NULL && s->skip-- == 0) {
        change = s->change;
        s->change = NULL;
    }
    if (change != NULL && !s->after) {
        change(s);
    }
    mtprof_bytes bytes = tb_bytes(&s->memory);
    s->memory.bytes = s->b.bytes;
    s->memory.size = s->b.size;
    int64_t got = bytes.read(&s->memory, offset, buffer, length);
    if (change != NULL && s->after) {
        change(s);
    }
    return got;
}

static uint64_t script_size(void *context)
{
    const script *s = context;
    return s->b.size;
}

static void script_open(script *s)
{
    mtprof_bytes bytes = {
        .struct_size = sizeof bytes, .context = s, .read = script_read, .size = script_size};
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &s->reader));
}

static void script_close(script *s)
{
    CHECK(s->change == NULL); /* or the test watched a read that never came */
    mtprof_reader_close(s->reader);
    tb_fini(&s->b);
}

static void check_no_problem(const script *s)
{
    mtprof_problem problem;
    if (mtprof_reader_problem(s->reader, 0, &problem)) {
        FAIL("problem at %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
}

/* The ticks of the TIME records of a stream, all of which must be readable. */
static size_t read_times(const script *s, uint32_t stream, uint64_t *ticks, size_t most)
{
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    size_t n = 0;
    REQUIRE_OK(mtprof_cursor_open(s->reader, stream, &cursor));
    mtprof_status status;
    while ((status = mtprof_cursor_next(cursor, &record)) == MTPROF_OK && n < most) {
        ticks[n++] = record.ticks;
    }
    CHECK_EQ_I64(status, MTPROF_EEND);
    mtprof_cursor_close(cursor);
    return n;
}

static uint64_t missing(const script *s, uint32_t stream)
{
    mtprof_stream_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_stream(s->reader, stream, &info));
    return info.chunks_missing;
}

static void time_at(script *s, uint64_t chunk, uint64_t ticks)
{
    s->b.chunk = chunk;
    tb_record(&s->b, MTPROF_REC_TIME, 0, 0, 1, &ticks);
}

/* Two open chunks of one thread at pages 1 and 2, with a record each, in ring mode. */
static void script_start(script *s)
{
    *s = (script){0};
    tb_init(&s->b);
    tb_set32(&s->b, TB_AT_POLICY, 1);
    s->b.chunk_state = MTPROF_CHUNK_OPEN;
    for (uint64_t i = 0; i < 2; i++) {
        tb_chunk(&s->b, MTPROF_STREAM_THREAD, 0);
        time_at(s, s->b.chunk, 100 + 100 * i);
    }
    tb_finish(&s->b, false);
}

TEST(the_last_chunk_grows_after_opening)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    script_open(&s);
    time_at(&s, PAGE, 101);     /* published before the second chunk was begun */
    time_at(&s, 2 * PAGE, 201); /* perhaps with a name that the reader has not seen */
    CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 3);
    CHECK_EQ_U64(ticks[1], 101);
    CHECK_EQ_U64(ticks[2], 200);
    script_close(&s);
}

TEST(chunks_are_sealed_after_opening)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    script_open(&s);
    for (uint64_t chunk = PAGE; chunk <= 2 * PAGE; chunk += PAGE) {
        time_at(&s, chunk, chunk == PAGE ? 101 : 201);
        tb_set32(&s.b, chunk + TB_CHUNK_STATE, MTPROF_CHUNK_CHECKED);
    }
    tb_repair(s.b.bytes, s.b.size);
    CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 3); /* the checksums are those of all of it */
    CHECK_EQ_U64(ticks[2], 200);
    s.b.bytes[2 * PAGE + 64 + 24] ^= 1; /* after what we take, and yet damage */
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    REQUIRE_OK(mtprof_cursor_open(s.reader, 0, &cursor));
    CHECK_OK(mtprof_cursor_next(cursor, &record));
    CHECK_OK(mtprof_cursor_next(cursor, &record));
    CHECK_EQ_I64(mtprof_cursor_next(cursor, &record), MTPROF_EFORMAT);
    mtprof_cursor_close(cursor);
    script_close(&s);
}

/* What ring mode does to the chunk at page 1. */
static void recycle(script *s)
{
    tb_set32(&s->b, PAGE, 0);
    tb_set64(&s->b, PAGE + TB_CHUNK_SEQUENCE, 2);
    tb_set64(&s->b, PAGE + TB_CHUNK_COMMITTED, 0);
    tb_set32(&s->b, PAGE, MTPROF_CHUNK_MAGIC);
    time_at(s, PAGE, 999);
    tb_repair(s->b.bytes, s->b.size);
}

static void clear_magic(script *s)
{
    tb_set32(&s->b, PAGE, 0);
}

TEST(a_chunk_is_recycled_after_opening)
{
    for (int kind = 0; kind < 2; kind++) {
        script s;
        uint64_t ticks[8];
        script_start(&s);
        script_open(&s);
        CHECK_EQ_U64(missing(&s, 0), 0);
        kind == 0 ? recycle(&s) : clear_magic(&s);
        for (int round = 0; round < 2; round++) { /* it is counted once */
            CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 1);
            CHECK_EQ_U64(ticks[0], 200);
            CHECK_EQ_U64(missing(&s, 0), 1);
        }
        check_no_problem(&s);
        script_close(&s);
    }
}

TEST(a_chunk_is_recycled_while_it_is_read)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    script_open(&s);
    s.watched = PAGE; /* between the data and the second look at the header */
    s.after = true;
    s.change = recycle;
    CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 1);
    CHECK_EQ_U64(ticks[0], 200);
    CHECK_EQ_U64(missing(&s, 0), 1);
    script_close(&s);
}

/* The walk is at page 2 when page 1, which it has passed, gets more. */
static void extend_first(script *s)
{
    time_at(s, PAGE, 101);
}

TEST(an_earlier_chunk_is_finished_during_the_walk)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    s.watched = 2 * PAGE;
    s.change = extend_first;
    script_open(&s);
    CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 3); /* no hole before the second chunk */
    CHECK_EQ_U64(ticks[1], 101);
    script_close(&s);
}

static void show_first(script *s)
{
    tb_set32(&s->b, PAGE, MTPROF_CHUNK_MAGIC);
}

TEST(a_chunk_appears_behind_the_walk)
{
    for (int policy = 0; policy < 2; policy++) {
        script s;
        uint64_t ticks[8];
        script_start(&s);
        tb_set32(&s.b, TB_AT_POLICY, (uint32_t)policy);
        if (policy == 1) { /* a hole inside: 0 at page 2, 1 at page 1, 2 at page 3 */
            tb_set64(&s.b, 2 * PAGE + TB_CHUNK_SEQUENCE, 0);
            tb_set64(&s.b, PAGE + TB_CHUNK_SEQUENCE, 1);
            tb_chunk(&s.b, MTPROF_STREAM_THREAD, 0);
            time_at(&s, s.b.chunk, 300);
        }
        tb_repair(s.b.bytes, s.b.size);
        tb_set32(&s.b, PAGE, 0);
        s.watched = 2 * PAGE;
        s.change = show_first;
        script_open(&s);
        check_no_problem(&s);
        CHECK_EQ_U64(read_times(&s, 0, ticks, 8), policy == 1 ? 3 : 2);
        CHECK_EQ_U64(missing(&s, 0), 0);
        script_close(&s);
    }
}

/* A name is published in a chunk that the walk has passed, then an event that uses it. */
static void define_and_use(script *s)
{
    s->b.chunk = PAGE;
    tb_string(&s->b, 1, "late");
    s->b.chunk = 2 * PAGE;
    tb_record(&s->b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){100});
}

/* The same, in a chunk of definitions that is made for it at the end of the file. */
static void define_behind_and_use(script *s)
{
    tb_chunk(&s->b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(&s->b, 1, "late");
    tb_repair(s->b.bytes, s->b.size);
    s->b.chunk = 2 * PAGE;
    tb_record(&s->b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){100});
}

TEST(definitions_of_what_was_seen_are_seen)
{
    void (*const changes[])(script *) = {define_and_use, define_behind_and_use};
    for (size_t i = 0; i < 2; i++) {
        script s = {0};
        tb_init(&s.b);
        s.b.chunk_state = MTPROF_CHUNK_OPEN;
        tb_chunk(&s.b, MTPROF_STREAM_DEFINITIONS, 0);
        tb_chunk(&s.b, MTPROF_STREAM_THREAD, 0);
        tb_finish(&s.b, false);
        s.watched = 2 * PAGE;
        s.change = changes[i];
        script_open(&s);
        check_no_problem(&s);
        mtprof_cursor *cursor = NULL;
        mtprof_record record;
        mtprof_text text = {"", 0};
        REQUIRE_OK(mtprof_cursor_open(s.reader, 1, &cursor));
        CHECK_OK(mtprof_cursor_next(cursor, &record));
        CHECK_EQ_U64(record.arg, 1);
        CHECK(mtprof_reader_string(s.reader, 1, &text));
        CHECK_EQ_STR(text.bytes, "late");
        mtprof_cursor_close(cursor);
        script_close(&s);
    }
}

static void repair(script *s)
{
    tb_repair(s->b.bytes, s->b.size);
}

TEST(a_header_is_written_while_it_is_read)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    s.b.bytes[PAGE + TB_CHUNK_HEADER_CRC] ^= 1;
    s.watched = PAGE;
    s.after = true;
    s.change = repair;
    script_open(&s);
    check_no_problem(&s);
    CHECK_EQ_U64(read_times(&s, 0, ticks, 8), 2);
    script_close(&s);
}

TEST(a_trace_is_closed_while_its_header_is_read)
{
    script s = {0};
    tb_sample(&s.b, false);
    tb_finish(&s.b, true);
    tb_set32(&s.b, TB_AT_CLOSED_CRC, 0);
    s.after = true;
    s.change = repair; /* at the read of offset 0 */
    script_open(&s);
    check_no_problem(&s);
    script_close(&s);
}

static void append_chunk(script *s)
{
    s->b.chunk_bytes = 2 * PAGE;
    tb_chunk(&s->b, MTPROF_STREAM_THREAD, 0);
    time_at(s, s->b.chunk, 300);
    tb_repair(s->b.bytes, s->b.size);
}

TEST(the_trace_grows_while_it_is_opened)
{
    script s;
    uint64_t ticks[8];
    script_start(&s);
    s.watched = 2 * PAGE;
    s.change = append_chunk; /* after the size that the walk knows */
    script_open(&s);
    check_no_problem(&s);
    size_t n = read_times(&s, 0, ticks, 8);
    CHECK(n == 2 || n == 3); /* either way a prefix of what was written */
    script_close(&s);
}

/* ---- a ring and a thread --------------------------------------------------------------------- */

enum {
    RING_CHUNKS = 6,
    RING_WORDS = (1 + RING_CHUNKS) * PAGE / 8,
    RECORDS = 200 /* per chunk */
};

typedef struct ring {
    uint64_t words[RING_WORDS]; /* atomic */
    unsigned char uuid[16];
    bool stop; /* atomic */
} ring;

static int64_t ring_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    ring *r = context;
    if (offset >= sizeof r->words) {
        return 0;
    }
    length = sizeof r->words - offset < length ? (size_t)(sizeof r->words - offset) : length;
    char *to = buffer;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = __atomic_load_n(&r->words[(offset + i) / 8], __ATOMIC_ACQUIRE);
        memcpy(to + i, &word, length - i < 8 ? length - i : 8);
    }
    return (int64_t)length;
}

static uint64_t ring_size(void *context)
{
    ring *r = context;
    return sizeof r->words;
}

/* Makes chunk number `sequence` where the oldest one is, and fills it. */
static void ring_fill(ring *r, uint64_t sequence)
{
    uint64_t *chunk = &r->words[(1 + sequence % RING_CHUNKS) * PAGE / 8];
    uint64_t head[8] = {0};
    unsigned char *bytes = (unsigned char *)head;
    memcpy(bytes, "MTCK", 4);
    memcpy(bytes + TB_CHUNK_SIZE, &(uint32_t){PAGE}, 4);
    bytes[TB_CHUNK_STREAM] = MTPROF_STREAM_THREAD;
    memcpy(bytes + TB_CHUNK_SEQUENCE, &sequence, 8);
    uint32_t crc = tb_crc32c(0, r->uuid, 16);
    crc = tb_crc32c(tb_crc32c(crc, bytes, 12), bytes + 16, 32);
    memcpy(bytes + TB_CHUNK_HEADER_CRC, &crc, 4);

    __atomic_store_n(&chunk[0], 0, __ATOMIC_SEQ_CST);
    for (int i = 1; i < 8; i++) {
        __atomic_store_n(&chunk[i], head[i], __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&chunk[0], head[0], __ATOMIC_SEQ_CST);
    for (uint64_t i = 0; i < RECORDS; i++) {
        __atomic_store_n(&chunk[8 + 2 * i], MTPROF_REC_TIME | 2 << 8, __ATOMIC_RELAXED);
        __atomic_store_n(&chunk[9 + 2 * i], sequence * 1000 + i, __ATOMIC_RELAXED);
        __atomic_store_n(&chunk[6], 16 * (i + 1), __ATOMIC_RELEASE); /* committed */
    }
    uint64_t sealed = (uint64_t)MTPROF_CHUNK_SEALED << 32;
    __atomic_store_n(&chunk[7], sealed, __ATOMIC_RELEASE);
}

static void *ring_main(void *context)
{
    ring *r = context;
    for (uint64_t sequence = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); sequence++) {
        ring_fill(r, sequence);
    }
    return NULL;
}

/* One snapshot: times grow, chunk by chunk, and nothing is torn. */
static size_t ring_check(ring *r)
{
    mtprof_bytes bytes = {
        .struct_size = sizeof bytes, .context = r, .read = ring_read, .size = ring_size};
    mtprof_reader *reader = NULL;
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    mtprof_problem problem;
    mtprof_status status;
    size_t n = 0;
    uint64_t before = 0;
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    if (mtprof_reader_problem(reader, 0, &problem)) {
        FAIL("problem at %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
    if (mtprof_reader_stream_count(reader) > 0) {
        REQUIRE_OK(mtprof_cursor_open(reader, 0, &cursor));
        while ((status = mtprof_cursor_next(cursor, &record)) == MTPROF_OK) {
            uint64_t ticks = record.ticks;
            bool follows = n == 0 || ticks == before + 1 || (ticks > before && ticks % 1000 == 0);
            if (record.kind != MTPROF_REC_TIME || !follows || ticks % 1000 >= RECORDS) {
                FAIL("kind %02x, %llu after %llu", record.kind, (unsigned long long)ticks,
                     (unsigned long long)before);
                break;
            }
            before = ticks;
            n++;
        }
        if (status != MTPROF_OK) {
            CHECK_EQ_I64(status, MTPROF_EEND);
        }
        mtprof_cursor_close(cursor);
    }
    mtprof_reader_close(reader);
    return n;
}

TEST(a_ring_that_turns_while_it_is_read)
{
    trace_builder b;
    pthread_t thread;
    size_t n = 0;
    ring *r = calloc(1, sizeof *r);
    REQUIRE(r != NULL);
    tb_init(&b);
    tb_set32(&b, TB_AT_POLICY, 1);
    tb_finish(&b, false);
    memcpy(r->words, b.bytes, PAGE);
    memcpy(r->uuid, b.bytes + TB_AT_UUID, 16);
    REQUIRE_EQ_I64(pthread_create(&thread, NULL, ring_main, r), 0);
    int rounds = mt_test_long() ? 50000 : 2000;
    for (int i = 0; i < rounds; i++) {
        n += ring_check(r);
    }
    __atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK(n > 0);
    n = ring_check(r); /* at rest everything is there but what was just begun */
    CHECK(n >= (RING_CHUNKS - 1) * RECORDS);
    tb_fini(&b);
    free(r);
}
