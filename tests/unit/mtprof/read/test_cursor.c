/* SPDX-License-Identifier: Apache-2.0
 *
 * Cursors: every kind of record, time, keys, payloads, chunk borders, what is skipped and what ends
 * a chunk.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <stdlib.h>
#include <string.h>

#define KEY(slot, ordinal) ((uint64_t)(slot) << 40 | (uint64_t)(ordinal))

typedef struct fixture {
    trace_builder b;
    tb_memory memory;
    mtprof_reader *reader;
    mtprof_cursor *cursor;
    mtprof_record record;
} fixture;

static void setup(fixture *f, bool closed)
{
    tb_finish(&f->b, closed);
    f->memory = (tb_memory){.bytes = f->b.bytes, .size = f->b.size};
    mtprof_bytes bytes = tb_bytes(&f->memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &f->reader));
}

/* A cursor on the stream of this kind and slot. */
static void seek(fixture *f, uint8_t kind, uint16_t slot)
{
    mtprof_cursor_close(f->cursor);
    f->cursor = NULL;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(f->reader); i++) {
        mtprof_stream_info info = {.struct_size = sizeof info};
        REQUIRE_OK(mtprof_reader_get_stream(f->reader, i, &info));
        if (info.kind == kind && info.slot == slot) {
            REQUIRE_OK(mtprof_cursor_open(f->reader, i, &f->cursor));
            return;
        }
    }
    FAIL("no stream of kind %u and slot %u", kind, slot);
    mt_test_leave();
}

static void teardown(fixture *f)
{
    mtprof_cursor_close(f->cursor);
    mtprof_reader_close(f->reader);
    tb_fini(&f->b);
}

static const mtprof_record *next(fixture *f)
{
    REQUIRE_OK(mtprof_cursor_next(f->cursor, &f->record));
    return &f->record;
}

static void check_end(fixture *f)
{
    CHECK_EQ_I64(mtprof_cursor_next(f->cursor, &f->record), MTPROF_EEND);
    CHECK_EQ_I64(mtprof_cursor_next(f->cursor, &f->record), MTPROF_EEND);
    CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EEND);
}

/* Checks the next record's place, kind, time and key. */
static void check_next(fixture *f, uint8_t kind, uint64_t ticks, uint64_t key, uint32_t n_words)
{
    const mtprof_record *r = next(f);
    if (!CHECK_EQ_U64(r->kind, kind)) {
        FAIL("at %llu", (unsigned long long)r->offset);
    }
    CHECK_EQ_U64(r->ticks, ticks);
    CHECK_EQ_U64(r->key, key);
    CHECK_EQ_U64(r->n_words, n_words);
    CHECK_EQ_U64(r->word, tb_get64(&f->b, r->offset));
    if (n_words > 0) {
        uint64_t body = r->offset + ((r->word >> 8 & 0xFF) == 255 ? 16 : 8);
        CHECK_EQ_MEM(r->words, f->b.bytes + body, n_words * sizeof(uint64_t));
    }
}

TEST(every_kind_of_a_thread)
{
    fixture f = {0};
    tb_sample(&f.b, false);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_BEGIN, 1300, KEY(0, 0), 1);
    CHECK_EQ_U64(f.record.arg, 3);
    CHECK_EQ_U64(f.record.epoch, 1);
    CHECK_EQ_U64(f.record.thread, 1);
    check_next(&f, MTPROF_REC_BEGIN, 1320, KEY(0, 1), 1);
    CHECK_EQ_U64(f.record.aux, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD);
    check_next(&f, MTPROF_REC_META, 1320, 0, 1);
    CHECK_EQ_I64((int64_t)f.record.words[0], -5);
    check_next(&f, MTPROF_REC_META, 1320, 0, 3);
    CHECK_EQ_MEM(f.record.words + 1, "a longer text\0\0\0", 16);
    check_next(&f, MTPROF_REC_INPUTS, 1320, 0, 0);
    CHECK_EQ_U64(f.record.arg, 1);
    check_next(&f, MTPROF_REC_SCALARS, 1320, 0, 4);
    check_next(&f, MTPROF_REC_TENSORS, 1320, 0, 8);
    check_next(&f, MTPROF_REC_OPINFO, 1320, 0, 7);
    check_next(&f, MTPROF_REC_STACK, 1320, 0, 0);
    CHECK_EQ_U64(f.record.arg, 2);
    check_next(&f, MTPROF_REC_MEM_BEFORE, 1320, 0, 0);
    CHECK_EQ_U64(f.record.word >> 16, 4096);
    check_next(&f, MTPROF_REC_END, 1340, KEY(0, 1), 0);
    CHECK_EQ_U64(f.record.aux, 0);
    CHECK_EQ_U64(f.record.arg, 0);
    check_next(&f, MTPROF_REC_MEM_AFTER, 1320, 0, 0);
    check_next(&f, MTPROF_REC_TENSORS, 1320, 0, 4);
    check_next(&f, MTPROF_REC_INSTANT, 1400, 0, 1);
    check_next(&f, MTPROF_REC_NAME, 1400, 0, 3);
    check_next(&f, MTPROF_REC_INPUTS_INLINE, 1400, 0, 1);
    check_next(&f, MTPROF_REC_COUNTER, 1410, 0, 2);
    check_next(&f, MTPROF_REC_FLOW, 1420, 0, 2);
    check_next(&f, MTPROF_REC_LAUNCH, 1430, KEY(0, 2), 2);
    check_next(&f, MTPROF_REC_ALLOC, 1435, 0, 3);
    check_next(&f, MTPROF_REC_RESERVED, 1430, 0, 1);
    check_next(&f, MTPROF_REC_OUT_OF_MEMORY, 1440, 0, 3);
    check_next(&f, 0xF0, 1440, 0, 0);
    check_next(&f, MTPROF_REC_END, 1950, KEY(0, 0), 0); /* in the next chunk */
    check_end(&f);

    seek(&f, MTPROF_STREAM_THREAD, 1);
    check_next(&f, MTPROF_REC_BEGIN_X, 1500, KEY(1, (uint64_t)1 << 39 | 9), 3);
    check_next(&f, MTPROF_REC_BEGIN_X, 1510, KEY(1, 100), 3);
    check_next(&f, MTPROF_REC_END_X, 1520, KEY(1, (uint64_t)1 << 39 | 9), 2);
    CHECK_EQ_U64(f.record.thread, 2);
    check_next(&f, MTPROF_REC_THREAD, 1530, 0, 1);
    CHECK_EQ_U64(f.record.epoch, 1);
    check_next(&f, MTPROF_REC_EPOCH, 1540, 0, 1);
    CHECK_EQ_U64(f.record.epoch, 2);
    check_next(&f, MTPROF_REC_TIME, 1550, 0, 1);
    check_next(&f, MTPROF_REC_LOST, 1550, 0, 1);
    CHECK_EQ_U64(f.record.epoch, 2);
    check_end(&f);
    teardown(&f);
}

TEST(every_kind_of_the_other_streams)
{
    fixture f = {0};
    tb_sample(&f.b, false);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_DEFINITIONS, 0);
    const uint8_t definitions[] = {0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x21, 0x22,
                                   0x22, 0x23, 0x23, 0x24, 0x2F, 0x24, 0x25, 0x26};
    for (size_t i = 0; i < sizeof definitions; i++) {
        CHECK_EQ_U64(next(&f)->kind, definitions[i]);
        CHECK_EQ_U64(f.record.epoch, 0);
        CHECK_EQ_U64(f.record.thread, 0);
    }
    check_end(&f);

    seek(&f, MTPROF_STREAM_CONTROL, 0);
    check_next(&f, MTPROF_REC_WINDOW_OPEN, 1100, 0, 3);
    check_next(&f, MTPROF_REC_TRACE_META, 1100, 0, 3);
    check_next(&f, MTPROF_REC_TRACE_META, 1100, 0, 4);
    check_next(&f, MTPROF_REC_STEP, 1200, 0, 2);
    check_next(&f, MTPROF_REC_ANCHOR, 200001000, 0, 3);
    check_next(&f, MTPROF_REC_TRACE_META, 200001000, 0, 3);
    check_next(&f, MTPROF_REC_WARNING, 200001100, 0, 4);
    check_next(&f, MTPROF_REC_WINDOW_CLOSE, 200002000, 0, 1);
    check_end(&f);

    seek(&f, MTPROF_STREAM_SOURCE, 0);
    check_next(&f, MTPROF_REC_CLOCK_PAIR, 50000, 0, 2);
    check_next(&f, MTPROF_REC_ACTIVITY, 50100, 0, 6);
    check_next(&f, MTPROF_REC_META, 50100, 0, 1);
    check_next(&f, MTPROF_REC_INSTANT, 50150, 0, 1);
    check_next(&f, MTPROF_REC_COUNTER, 50160, 0, 2);
    check_next(&f, MTPROF_REC_LOST, 50160, 0, 1);
    check_next(&f, MTPROF_REC_CLOCK_PAIR, 52000, 0, 2);
    check_end(&f);
    teardown(&f);
}

TEST(short_times_wrap)
{
    const uint64_t period = (uint64_t)1 << 40;
    fixture f = {0};
    tb_init(&f.b);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_BASE_TICKS, 5 * period + 100);
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_FIRST_ORDINAL, 70000);
    tb_end(&f.b, 1, 5 * period + 100);              /* the reference itself */
    tb_end(&f.b, 0xFFFF, 5 * period + 99 + period); /* the last time that can be said */
    tb_end(&f.b, 1, 99);                            /* the same, by its low bits */
    tb_record(&f.b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){UINT64_MAX - 5});
    tb_end(&f.b, 1, UINT64_MAX);
    tb_record(&f.b, MTPROF_REC_ALLOC, 0x100, 3, 3, (uint64_t[]){1, 2, 3}); /* time read earlier */
    tb_record(&f.b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){10});           /* the clock went back */
    tb_end(&f.b, 1, 12);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_END, 5 * period + 100, KEY(0, 69999), 0);
    check_next(&f, MTPROF_REC_END, 6 * period + 99, KEY(0, 70000 - 0xFFFF), 0);
    check_next(&f, MTPROF_REC_END, 6 * period + 99, KEY(0, 69999), 0);
    check_next(&f, MTPROF_REC_BEGIN, UINT64_MAX - 5, KEY(0, 70000), 1);
    check_next(&f, MTPROF_REC_END, UINT64_MAX, KEY(0, 70000), 0);
    check_next(&f, MTPROF_REC_ALLOC, UINT64_MAX - 2, 0, 3);
    check_next(&f, MTPROF_REC_TIME, 10, 0, 1);
    check_next(&f, MTPROF_REC_END, 12, KEY(0, 70000), 0);
    check_end(&f);
    teardown(&f);
}

TEST(extended_lengths)
{
    fixture f = {0};
    uint64_t body[400] = {0};
    tb_init(&f.b);
    f.b.chunk_bytes = 8192;
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    for (uint64_t i = 0; i < 400; i++) {
        body[i] = 1000 + i;
    }
    tb_record_extended(&f.b, MTPROF_REC_BEGIN, MTPROF_FLAG_PAYLOAD, 1, 1, body);
    tb_record(&f.b, MTPROF_REC_SCALARS, 253, 0, 253, body); /* the longest short one */
    tb_record(&f.b, MTPROF_REC_SCALARS, 254, 0, 254, body);
    tb_record(&f.b, MTPROF_REC_TENSORS, 0, 0, 400, body);
    tb_record_extended(&f.b, 0x7F, 1, 2, 0, body); /* unknown, and nothing after the length */
    tb_record(&f.b, 0x7E, 0, 0, 0, body);          /* unknown, of one word though it need not be */
    tb_end(&f.b, 1, 2000);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_BEGIN, 1000, KEY(0, 0), 1);
    check_next(&f, MTPROF_REC_SCALARS, 1000, 0, 253);
    CHECK_EQ_U64(f.record.word >> 8 & 0xFF, 254);
    check_next(&f, MTPROF_REC_SCALARS, 1000, 0, 254);
    CHECK_EQ_U64(f.record.word >> 8 & 0xFF, 255);
    check_next(&f, MTPROF_REC_TENSORS, 1000, 0, 400);
    check_next(&f, 0x7F, 1000, 0, 0);
    check_next(&f, 0x7E, 1000, 0, 0);
    check_next(&f, MTPROF_REC_END, 2000, KEY(0, 0), 0);
    check_end(&f);
    teardown(&f);
}

TEST(payloads_go_on_in_the_next_chunk)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    tb_record(&f.b, MTPROF_REC_BEGIN, MTPROF_FLAG_PAYLOAD, 1, 1, (uint64_t[]){1500});
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0); /* empty */
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_FIRST_ORDINAL, 1);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_FIRST_ORDINAL, 1);
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_BASE_TICKS, 1600);
    tb_single(&f.b, MTPROF_REC_STACK, (uint64_t)2 << 24);
    tb_single(&f.b, 0xEE, 0); /* may be a payload of a later minor */
    tb_single(&f.b, MTPROF_REC_INPUTS, (uint64_t)2 << 24);
    tb_end(&f.b, 1, 1700);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(0, 0), 1);
    check_next(&f, MTPROF_REC_STACK, 1600, 0, 0);
    check_next(&f, 0xEE, 1600, 0, 0);
    check_next(&f, MTPROF_REC_INPUTS, 1600, 0, 0);
    check_next(&f, MTPROF_REC_END, 1700, KEY(0, 0), 0);
    check_end(&f);
    teardown(&f);
}

TEST(payloads_whose_owner_ring_mode_let_go)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_set32(&f.b, TB_AT_POLICY, 1);
    f.b.sequences[MTPROF_STREAM_THREAD][0] = 4;
    for (int i = 0; i < 2; i++) {
        tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
        tb_set64(&f.b, f.b.chunk + TB_CHUNK_FIRST_ORDINAL, 40 + i);
        tb_single(&f.b, MTPROF_REC_STACK, (uint64_t)2 << 24);
        tb_single(&f.b, MTPROF_REC_MEM_AFTER, 0);
        tb_record(&f.b, MTPROF_REC_BEGIN, MTPROF_FLAG_PAYLOAD, 1, 1, (uint64_t[]){1500});
        f.b.sequences[MTPROF_STREAM_THREAD][0]++; /* a gap */
    }
    setup(&f, true);
    mtprof_problem problem;
    CHECK(!mtprof_reader_problem(f.reader, 0, &problem)); /* gaps are no problem in ring mode */
    mtprof_stream_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_reader_get_stream(f.reader, 0, &info));
    CHECK_EQ_U64(info.chunks, 2);
    CHECK_EQ_U64(info.chunks_missing, 5);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(0, 40), 1);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(0, 41), 1);
    check_end(&f);
    teardown(&f);
}

/* One record that cannot be, in a chunk with checksum and in one without. */
static void check_bad_record(uint8_t stream, bool alone, size_t n_before, const uint64_t *before,
                             size_t n, const uint64_t *words, int line)
{
    for (int checked = 0; checked < 2; checked++) {
        fixture f = {0};
        tb_init(&f.b);
        f.b.chunk_state = checked ? MTPROF_CHUNK_CHECKED : MTPROF_CHUNK_SEALED;
        tb_chunk(&f.b, stream, 0);
        tb_words(&f.b, n_before, before);
        uint64_t bad = tb_words(&f.b, n, words);
        tb_single(&f.b, 0xEE, 1);
        tb_chunk(&f.b, stream, 0);
        uint64_t last = tb_single(&f.b, 0xEE, 2);
        setup(&f, false);
        seek(&f, stream, 0);
        for (size_t i = 0; n_before > 0 && i < 1; i++) {
            next(&f);
        }
        if (mtprof_cursor_next(f.cursor, &f.record) != MTPROF_EFORMAT) {
            FAIL("line %d: taken", line);
            teardown(&f);
            continue;
        }
        if (mtprof_last_error()->offset != (int64_t)bad) {
            FAIL("line %d: offset %lld, expected %llu", line,
                 (long long)mtprof_last_error()->offset, (unsigned long long)bad);
        }
        if (checked && alone) {
            CHECK_EQ_U64(next(&f)->offset, bad + n * 8); /* only it is left out */
        }
        if (next(&f)->offset != last) {
            FAIL("line %d: went on at %llu", line, (unsigned long long)f.record.offset);
        }
        check_end(&f);
        teardown(&f);
    }
}

#define HEAD(kind, length, aux, arg) \
    ((uint64_t)(kind) | (uint64_t)(length) << 8 | (uint64_t)(aux) << 16 | (uint64_t)(arg) << 32)
#define BAD(stream, alone, ...)                                                     \
    check_bad_record(stream, alone, 0, NULL, sizeof((uint64_t[]){__VA_ARGS__}) / 8, \
                     (const uint64_t[]){__VA_ARGS__}, __LINE__)
/* After a BEGIN. */
#define BAD_PAYLOAD(...)                                                                        \
    check_bad_record(MTPROF_STREAM_THREAD, true, 2, (const uint64_t[]){HEAD(1, 2, 0x40, 7), 1}, \
                     sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__},    \
                     __LINE__)

TEST(records_that_cannot_be_in_threads)
{
    const uint8_t thread = MTPROF_STREAM_THREAD;
    BAD(thread, false, 0);                                 /* no length */
    BAD(thread, false, HEAD(1, 200, 0, 0));                /* past the end of the chunk */
    BAD(thread, false, HEAD(0x60, 255, 0, 0), 1);          /* shorter than its own head */
    BAD(thread, false, HEAD(0x60, 255, 0, 0), UINT64_MAX); /* a length that would wrap */
    BAD(thread, false, HEAD(MTPROF_REC_BEGIN, 1, 0, 0));   /* no ticks */
    BAD(thread, true, HEAD(MTPROF_REC_BEGIN, 2, 5, 0), 1);
    BAD(thread, true, HEAD(MTPROF_REC_BEGIN, 2, 0x100, 0), 1);
    BAD(thread, false, HEAD(MTPROF_REC_BEGIN_X, 3, 0, 0), 1, 0);
    BAD(thread, true, HEAD(MTPROF_REC_BEGIN_X, 4, 0, 0), 1, 5, 0); /* bit 39 */
    BAD(thread, true, HEAD(MTPROF_REC_BEGIN_X, 4, 0, 0), 1, 0, (uint64_t)1 << 56);
    BAD(thread, true, HEAD(MTPROF_REC_END_X, 3, 2, 0), 1, 5);
    BAD(thread, true, HEAD(MTPROF_REC_END_X, 3, 0, 0), 1, (uint64_t)1 << 56);
    BAD(thread, true, HEAD(MTPROF_REC_END, 0, 0, 0)); /* distance 0 */
    BAD(thread, true, HEAD(MTPROF_REC_END, 1, 0, 0)); /* before the first ordinal */
    BAD(thread, true, HEAD(MTPROF_REC_COUNTER, 3, 2, 0), 1, 5);
    BAD(thread, true, HEAD(MTPROF_REC_FLOW, 3, 3, 0), 1, 5);
    BAD(thread, true, HEAD(MTPROF_REC_ALLOC, 4, 0x200, 0), 1, 2, 3);
    BAD(thread, true, HEAD(MTPROF_REC_ALLOC, 3, 0, 0), 1, 2);
    BAD(thread, true, HEAD(MTPROF_REC_OUT_OF_MEMORY, 4, 0x100, 0), 1, 2, 3);
    BAD(thread, false, HEAD(MTPROF_REC_OUT_OF_MEMORY, 3, 0, 0), 1, 2);
    BAD(thread, true, HEAD(MTPROF_REC_LOST, 2, 16, 0), 1);
    BAD(thread, true, HEAD(MTPROF_REC_ACTIVITY, 7, 0, 0), 1, 2, 3, 4, 5, 6); /* wrong stream */
    BAD(thread, true, HEAD(MTPROF_REC_DEF_STACK, 2, 0, 1), 0);
}

TEST(payloads_that_belong_to_nothing_are_passed_over)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    tb_record(&f.b, MTPROF_REC_TIME, 0, 0, 1, (uint64_t[]){10});
    tb_record(&f.b, MTPROF_REC_META, 0, 1, 1, (uint64_t[]){5});
    tb_words(&f.b, 1, (const uint64_t[]){HEAD(MTPROF_REC_MEM_AFTER, 0, 0, 1)});
    tb_record(&f.b, MTPROF_REC_BEGIN, 0, 7, 1, (uint64_t[]){20});
    tb_words(&f.b, 1, (const uint64_t[]){HEAD(MTPROF_REC_MEM_AFTER, 0, 0, 1)}); /* of an end */
    tb_record(&f.b, MTPROF_REC_ATTACH, 0, 0, 1, (uint64_t[]){KEY(0, 0)});
    tb_words(&f.b, 1, (const uint64_t[]){HEAD(MTPROF_REC_MEM_AFTER, 0, 0, 1)}); /* of any */
    setup(&f, false);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    CHECK_EQ_U64(next(&f)->kind, MTPROF_REC_TIME);
    CHECK_EQ_U64(next(&f)->kind, MTPROF_REC_BEGIN);
    CHECK_EQ_U64(next(&f)->kind, MTPROF_REC_ATTACH);
    CHECK_EQ_U64(next(&f)->kind, MTPROF_REC_MEM_AFTER);
    check_end(&f);
    teardown(&f);
}

TEST(payloads_that_cannot_be)
{
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 1, 0, 1));
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 2, 6, 1), 0);
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 2, MTPROF_META_BOOL, 1), 2);
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 3, MTPROF_META_TEXT, 1), 9, 0);
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 3, MTPROF_META_TEXT, 1), UINT64_MAX, 0);
    BAD_PAYLOAD(HEAD(MTPROF_REC_META, 3, MTPROF_META_TEXT, 1), 7, UINT64_MAX); /* padding */
    BAD_PAYLOAD(HEAD(MTPROF_REC_NAME, 2, 0, 0), 0);                            /* it has a name */
    BAD_PAYLOAD(HEAD(MTPROF_REC_NAME, 2, 0, 0), 1);
    BAD_PAYLOAD(HEAD(MTPROF_REC_SCALARS, 2, 2, 0), 1);
    BAD_PAYLOAD(HEAD(MTPROF_REC_TENSORS, 4, 0, 0), 1, 2, 3);
    BAD_PAYLOAD(HEAD(MTPROF_REC_TENSORS, 5, 2, 0), 1, 2, 3, 4);
    BAD_PAYLOAD(HEAD(MTPROF_REC_OPINFO, 2, 3, 0), 1);
    BAD_PAYLOAD(HEAD(MTPROF_REC_INPUTS_INLINE, 2, 0, 0), 8);
}

TEST(records_that_cannot_be_elsewhere)
{
    BAD(MTPROF_STREAM_SOURCE, true, HEAD(MTPROF_REC_ACTIVITY, 7, 8, 0), 1, 2, 3, 4, 5, 6);
    BAD(MTPROF_STREAM_SOURCE, true, HEAD(MTPROF_REC_ACTIVITY, 6, 0, 0), 1, 2, 3, 4, 5);
    BAD(MTPROF_STREAM_SOURCE, true, HEAD(MTPROF_REC_ACTIVITY, 7, 0, 0), 1, 2, UINT64_MAX, 4, 5, 6);
    BAD(MTPROF_STREAM_SOURCE, true, HEAD(MTPROF_REC_CLOCK_PAIR, 2, 0, 0), 1);
    BAD(MTPROF_STREAM_SOURCE, true, HEAD(MTPROF_REC_BEGIN, 2, 0, 0), 1);
    BAD(MTPROF_STREAM_CONTROL, false, HEAD(MTPROF_REC_ANCHOR, 3, 0, 0), 1, 2);
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_WINDOW_OPEN, 4, 0, 0), 1, 2, 3); /* epoch 0 */
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_WINDOW_CLOSE, 2, 3, 1), 1);
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_STEP, 3, 4, 0), 1, 2);
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_TRACE_META, 3, 0, 0), 9, 0);
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_TRACE_META, 3, 0, 0), 1 | (uint64_t)1 << 32,
        1);
    BAD(MTPROF_STREAM_CONTROL, true, HEAD(MTPROF_REC_WARNING, 4, 0, 0), 1, 9, 0);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_STRING, 2, 0, 0), 0); /* id 0 */
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_STRING, 2, 0, 1), UINT32_MAX);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_STRING, 2, 1, 1), 0);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_STRING, 2, 2, 1), 0);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_INPUTS, 2, 0, 1), 9);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_FRAME, 3, 0, 1), 0, 0);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_SOURCE, 2, 0, 65536), 0);
    BAD(MTPROF_STREAM_DEFINITIONS, true, HEAD(MTPROF_REC_DEF_MODULE, 4, 0, 0), 0, 0, 0);
    BAD(MTPROF_STREAM_DEFINITIONS, false, HEAD(MTPROF_REC_BEGIN, 2, 0, 0), 1);
}

/* What follows a single record that is left out has its time and ordinal from it. */
TEST(a_begin_with_unknown_flags_is_left_out_alone)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 2);
    const uint64_t later = (uint64_t)5 << 40; /* a short time means something else before it */
    tb_record(&f.b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){1500});
    tb_record(&f.b, MTPROF_REC_BEGIN, 0x8000, 1, 1, (uint64_t[]){later});
    tb_single(&f.b, MTPROF_REC_STACK, (uint64_t)2 << 24); /* its payload goes with it */
    tb_end(&f.b, 1, later + 5);
    tb_record(&f.b, MTPROF_REC_LAUNCH, 0x0F, 1, 2, (uint64_t[]){later + 6, 0});
    tb_record(&f.b, MTPROF_REC_BEGIN_X, 0x100, 1, 3,
              (uint64_t[]){later + 7, 0, MTPROF_KEY_STRUCTURE});
    tb_record(&f.b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){later + 8});
    tb_end(&f.b, 5, later + 9);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 2);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(2, 0), 1);
    CHECK_EQ_I64(mtprof_cursor_next(f.cursor, &f.record), MTPROF_EFORMAT);
    check_next(&f, MTPROF_REC_END, later + 5, KEY(2, 1), 0);
    CHECK_EQ_I64(mtprof_cursor_next(f.cursor, &f.record), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_cursor_next(f.cursor, &f.record), MTPROF_EFORMAT);
    check_next(&f, MTPROF_REC_BEGIN, later + 8, KEY(2, 4), 1);
    check_next(&f, MTPROF_REC_END, later + 9, KEY(2, 0), 0);
    check_end(&f);
    teardown(&f);
}

TEST(later_minors_may_widen_fields)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_set16(&f.b, TB_AT_MINOR, 1);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 0);
    tb_record(&f.b, MTPROF_REC_BEGIN, 0x107, 1, 2, (uint64_t[]){1500, 99}); /* and append one */
    tb_record(&f.b, MTPROF_REC_META, 9, 1, 1, (uint64_t[]){1});
    tb_record(&f.b, MTPROF_REC_META, MTPROF_META_TEXT, 1, 1, (uint64_t[]){100}); /* never that */
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(0, 0), 2);
    check_next(&f, MTPROF_REC_META, 1500, 0, 1);
    CHECK_EQ_I64(mtprof_cursor_next(f.cursor, &f.record), MTPROF_EFORMAT);
    check_end(&f);
    teardown(&f);
}

TEST(ordinals_run_out)
{
    fixture f = {0};
    tb_init(&f.b);
    tb_chunk(&f.b, MTPROF_STREAM_THREAD, 15);
    tb_set64(&f.b, f.b.chunk + TB_CHUNK_FIRST_ORDINAL, ((uint64_t)1 << 39) - 1);
    tb_record(&f.b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){1500});
    uint64_t bad = tb_record(&f.b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){1501});
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 15);
    check_next(&f, MTPROF_REC_BEGIN, 1500, KEY(15, ((uint64_t)1 << 39) - 1), 1);
    CHECK_EQ_I64(mtprof_cursor_next(f.cursor, &f.record), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_last_error()->offset, (int64_t)bad);
    check_end(&f);
    teardown(&f);
}

TEST(two_cursors_do_not_disturb_each_other)
{
    fixture f = {0};
    tb_sample(&f.b, true);
    setup(&f, true);
    seek(&f, MTPROF_STREAM_THREAD, 0);
    mtprof_cursor *other = NULL;
    mtprof_record record;
    REQUIRE_OK(mtprof_cursor_open(f.reader, 2, &other));
    size_t n = 0;
    for (;;) {
        mtprof_status status = mtprof_cursor_next(f.cursor, &f.record);
        CHECK_EQ_I64(mtprof_cursor_next(other, &record), status);
        if (status != MTPROF_OK) {
            CHECK_EQ_I64(status, MTPROF_EEND);
            break;
        }
        CHECK_EQ_U64(record.offset, f.record.offset);
        CHECK_EQ_U64(record.key, f.record.key);
        CHECK(record.words != f.record.words);
        n++;
    }
    CHECK(n > 800);
    mtprof_cursor_close(other);
    teardown(&f);
}
