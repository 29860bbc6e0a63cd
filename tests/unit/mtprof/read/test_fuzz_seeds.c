/* SPDX-License-Identifier: Apache-2.0
 *
 * The seeds of fuzz_reader: small traces of every shape. The case "write_seeds" puts them into the
 * folder that MT_SEEDS names:
 *
 *      MT_SEEDS=tests/corpus/fuzz_reader build/dev/tests/test_fuzz_seeds --case write_seeds
 */
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODE_RAW = 0,
    MODE_REPAIRED = 1,
    MODE_WRAPPED = 2,
    SEED_MAX = 64 * 1024
};

static void make_closed(trace_builder *b)
{
    tb_sample(b, false);
    tb_finish(b, true);
}

static void make_crashed(trace_builder *b)
{
    tb_sample(b, false);
    for (uint64_t at = 4096; at < b->size; at += 4096) {
        tb_set32(b, at + TB_CHUNK_STATE, (uint32_t)(at / 4096 % 3));
    }
    tb_finish(b, false);
}

static void make_ring(trace_builder *b)
{
    tb_init(b);
    tb_set32(b, TB_AT_POLICY, 1);
    b->sequences[MTPROF_STREAM_THREAD][0] = 9;
    b->chunk_state = MTPROF_CHUNK_SEALED;
    for (uint64_t i = 0; i < 3; i++) {
        b->next_ordinal = 100 * i;
        tb_chunk(b, MTPROF_STREAM_THREAD, 0);
        tb_single(b, MTPROF_REC_STACK, (uint64_t)1 << 24); /* its owner is gone */
        tb_record(b, MTPROF_REC_BEGIN, 0, 1, 1, (uint64_t[]){5000 + i});
        tb_end(b, 1, 5001 + i);
        b->sequences[MTPROF_STREAM_THREAD][0] += i;
    }
    tb_finish(b, false);
}

static void make_empty(trace_builder *b)
{
    tb_init(b);
    tb_finish(b, true);
}

/* Anchors, clock pairs and short times at the edges of their ranges. */
static void make_clocks(trace_builder *b)
{
    tb_init(b);
    tb_set64(b, TB_AT_PERIOD, ((uint64_t)1 << 56) / 3);
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t ticks = UINT64_MAX >> (8 * i);
        tb_record(b, MTPROF_REC_ANCHOR, 0, 0, 3, (uint64_t[]){ticks, ticks / 3, ticks / 2});
    }
    tb_chunk(b, MTPROF_STREAM_SOURCE, 1);
    for (uint64_t i = 8; i-- > 0;) {
        uint64_t ticks = UINT64_MAX >> (8 * i);
        tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, 2, (uint64_t[]){ticks / 5, ticks});
    }
    tb_finish(b, false);
}

/* The sample, its damage not repaired. */
static void make_damaged(trace_builder *b)
{
    tb_sample(b, false);
    tb_set64(b, 2 * 4096 + TB_CHUNK_SEQUENCE, 0);     /* twice the same number */
    tb_set32(b, 5 * 4096 + TB_CHUNK_SIZE, 64 * 4096); /* past the end */
    tb_finish(b, true);
    b->bytes[4 * 4096 + 70] ^= 0x10;
    b->bytes[TB_AT_HEALTH] ^= 1;
}

/* The records of the sample as pieces: {stream, flags, length, bytes}. */
static void make_wrapped(trace_builder *b)
{
    trace_builder sample;
    tb_sample(&sample, false);
    unsigned char *bytes = calloc(1, sample.size);
    size_t size = 0;
    REQUIRE(bytes != NULL);
    for (uint64_t at = 4096; at < sample.size; at += 4096) {
        uint64_t committed = tb_get64(&sample, at + TB_CHUNK_COMMITTED);
        bytes[size] = sample.bytes[at + TB_CHUNK_STREAM];
        bytes[size + 1] = (unsigned char)(1 | sample.bytes[at + TB_CHUNK_SLOT] << 1 | 8);
        bytes[size + 2] = (unsigned char)committed;
        bytes[size + 3] = (unsigned char)(committed >> 8);
        memcpy(bytes + size + 4, sample.bytes + at + 64, committed);
        size += 4 + committed;
    }
    tb_fini(&sample);
    *b = (trace_builder){.bytes = bytes, .size = size};
}

static const struct {
    const char *name;
    unsigned char mode;
    void (*make)(trace_builder *b);
} seeds[] = {
    {"closed", MODE_RAW, make_closed},        {"closed_repaired", MODE_REPAIRED, make_closed},
    {"crashed", MODE_REPAIRED, make_crashed}, {"ring", MODE_REPAIRED, make_ring},
    {"empty", MODE_RAW, make_empty},          {"clocks", MODE_REPAIRED, make_clocks},
    {"damaged", MODE_RAW, make_damaged},      {"damaged_repaired", MODE_REPAIRED, make_damaged},
    {"wrapped", MODE_WRAPPED, make_wrapped},
};

TEST(seeds_are_small_traces)
{
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        trace_builder b;
        seeds[i].make(&b);
        CHECK(b.size < SEED_MAX);
        if (seeds[i].mode != MODE_WRAPPED) {
            tb_memory memory = {.bytes = b.bytes, .size = b.size};
            mtprof_bytes bytes = tb_bytes(&memory);
            mtprof_reader *reader = NULL;
            CHECK_OK(mtprof_reader_open_bytes(&bytes, &reader));
            mtprof_reader_close(reader);
        }
        tb_fini(&b);
    }
}

TEST_HIDDEN(write_seeds)
{
    const char *folder = getenv("MT_SEEDS");
    REQUIRE(folder != NULL);
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        trace_builder b;
        char path[1024];
        snprintf(path, sizeof path, "%s/seed_%s", folder, seeds[i].name);
        seeds[i].make(&b);
        FILE *file = fopen(path, "wb");
        REQUIRE(file != NULL);
        CHECK(fputc(seeds[i].mode, file) != EOF);
        CHECK_EQ_U64(fwrite(b.bytes, 1, b.size, file), b.size);
        CHECK_EQ_I64(fclose(file), 0);
        tb_fini(&b);
    }
}
