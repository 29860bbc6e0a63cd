/* SPDX-License-Identifier: Apache-2.0
 *
 * Random traces with several damages: what recovering writes is read as the damaged trace itself,
 * event by event, times included. Some damages are records that a writer cannot have written, in
 * chunks whose checksums hold: a reader leaves out only these, whatever their times.
 */
#include "harness/mt_test.h"
#include "support/traces/model_view.h"
#include "support/traces/random_trace.h"

#include <mtprof/check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACES = 300,
    TRACES_LONG = 20000,
    STEPS = 200,
    DAMAGES = 6,
    PAGE = 4096,
    CHUNK_HEADER = 64,
    LENGTH_EXTENDED = 255,
    STREAM_UNKNOWN = 9
};

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    return mt_test_random(seed) % n;
}

/* One place: a byte, a word, a page, or the end of the file. */
static void damage(unsigned char *bytes, size_t *size, uint64_t *seed)
{
    if (*size <= PAGE) {
        return;
    }
    uint64_t kind = random_below(seed, 12);
    size_t page = (size_t)random_below(seed, *size / PAGE);
    size_t at = page * PAGE;
    if (kind < 4) { /* anywhere */
        bytes[random_below(seed, *size)] = (unsigned char)mt_test_random(seed);
    } else if (kind < 6) { /* the head of a page: mostly of a chunk, or of the file */
        bytes[at + random_below(seed, 64)] ^= (unsigned char)(1u << random_below(seed, 8));
    } else if (kind < 9) { /* among the first records of a page */
        bytes[at + 64 + random_below(seed, 200)] ^= (unsigned char)(1u << random_below(seed, 8));
    } else if (kind == 9) {
        memset(bytes + at, 0, at > 0 ? PAGE : 0);
    } else if (kind == 10) { /* the fields of a closed file */
        bytes[1280 + random_below(seed, 28)] ^= (unsigned char)(1u << random_below(seed, 8));
    } else if (random_below(seed, 4) == 0) {
        *size = PAGE + (size_t)random_below(seed, *size - PAGE);
    }
}

/* ---- with checksums that hold ---------------------------------------------------------------- */

static bool is_chunk(const unsigned char *page, uint8_t stream)
{
    return memcmp(page, "MTCK", 4) == 0 && page[TB_CHUNK_STREAM] == stream;
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Of the chunk at this page one event with begin flags gets one that is not defined, and any time.
 */
static void spoil_event(unsigned char *chunk, size_t room, uint64_t *seed)
{
    uint64_t committed = word_at(chunk + TB_CHUNK_COMMITTED);
    size_t end = CHUNK_HEADER + (size_t)(committed < room ? committed : 0);
    size_t skip = (size_t)random_below(seed, 8); /* of such events */
    for (size_t at = CHUNK_HEADER; at + 16 <= end && end <= room;) {
        uint8_t kind = chunk[at];
        size_t words = (kind & 0x80) != 0 ? 1 : chunk[at + 1];
        bool flags = kind == MTPROF_REC_BEGIN || kind == MTPROF_REC_BEGIN_X ||
                     kind == MTPROF_REC_INSTANT || kind == MTPROF_REC_LAUNCH;
        if (words == 0 || words == LENGTH_EXTENDED) {
            return;
        }
        if (flags && skip-- == 0) {
            uint64_t time = mt_test_random(seed) >> random_below(seed, 64);
            chunk[at + 3] |= 0x80;
            memcpy(chunk + at + 8, &time, sizeof time);
            return;
        }
        at += words * 8;
    }
}

static void spoil_events(unsigned char *bytes, size_t size, uint64_t *seed)
{
    for (size_t at = PAGE; at + PAGE <= size; at += PAGE) {
        if (is_chunk(bytes + at, MTPROF_STREAM_THREAD) && random_below(seed, 2) == 0) {
            spoil_event(bytes + at, size - at, seed);
        }
        if (is_chunk(bytes + at, MTPROF_STREAM_THREAD) && random_below(seed, 8) == 0) {
            bytes[at + TB_CHUNK_EPOCH] ^= (unsigned char)random_below(seed, 3);
            bytes[at + TB_CHUNK_FIRST_ORDINAL + 1]++; /* begins are missing, and nothing else */
        }
    }
}

/* Only events have times here: neither the header, nor chunk headers, nor control records. */
static void forget_times(unsigned char *bytes, size_t size)
{
    memset(bytes + TB_AT_START, 0, 8);
    memset(bytes + TB_AT_END_TICKS, 0, 8);
    for (size_t at = PAGE; at + PAGE <= size; at += PAGE) {
        if (is_chunk(bytes + at, MTPROF_STREAM_THREAD)) {
            memset(bytes + at + TB_CHUNK_BASE_TICKS, 0, 8);
        } else if (is_chunk(bytes + at, MTPROF_STREAM_CONTROL)) {
            bytes[at + TB_CHUNK_STREAM] = STREAM_UNKNOWN;
        }
    }
}

static void spoil(unsigned char *bytes, size_t size, uint64_t *seed)
{
    uint64_t how = random_below(seed, 4); /* 0: only what damage() did */
    if (how >= 1) {
        spoil_events(bytes, size, seed);
    }
    if (how >= 2 && size >= PAGE) {
        forget_times(bytes, size);
    }
    tb_repair(bytes, size);
}

static bool write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    return file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0;
}

/* NULL: it is no trace. */
static mtprof_model *open_model(const char *path)
{
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    const mtprof_model_options options = {.struct_size = sizeof options, .workers = 1};
    if (mtprof_reader_open(path, &reader) == MTPROF_OK) {
        CHECK_OK(mtprof_model_take_reader(reader, &options, &model));
    }
    return model;
}

static bool same_info(const mtprof_model *a, const mtprof_model *b)
{
    mtprof_model_info one = {.struct_size = sizeof one};
    mtprof_model_info other = {.struct_size = sizeof other};
    CHECK_OK(mtprof_model_get_info(a, &one));
    CHECK_OK(mtprof_model_get_info(b, &other));
    return CHECK_EQ_I64(one.start_ns, other.start_ns) & CHECK_EQ_I64(one.end_ns, other.end_ns);
}

static bool check_recovered(const char *in, const char *out)
{
    mtprof_model *before = open_model(in);
    mtprof_recover_summary summary = {.struct_size = sizeof summary};
    mtprof_status status = mtprof_recover(in, out, &summary);
    if (before == NULL) {
        return CHECK(status != MTPROF_OK);
    }
    bool fine = CHECK_OK(status);
    mtprof_model *after = fine ? open_model(out) : NULL;
    model_view views[2];
    fine = fine && CHECK(after != NULL) && model_view_make(&views[0], before) &&
           model_view_make(&views[1], after) && model_view_check(&views[1]) &&
           model_view_equal(&views[0], &views[1]) && same_info(before, after);
    mtprof_model_free(before);
    mtprof_model_free(after);
    return fine;
}

TEST(recovered_traces_read_as_the_damaged_ones)
{
    uint64_t seed = mt_test_seed();
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    char in[512];
    char out[512];
    snprintf(in, sizeof in, "%s/in.mtt", mt_test_tmpdir());
    snprintf(out, sizeof out, "%s/out.mtt", mt_test_tmpdir());
    for (int i = 0; i < n; i++) {
        rt_options options = {.seed = mt_test_random(&seed),
                              .steps = 1 + (size_t)random_below(&seed, STEPS),
                              .hostile = i % 3 == 0};
        rt_trace trace;
        rt_make(&trace, &options);
        size_t damages = (size_t)random_below(&seed, DAMAGES + 1);
        for (size_t k = 0; k < damages; k++) {
            damage(trace.bytes, &trace.size, &seed);
        }
        if (i % 2 == 0) { /* with checksums that hold: only the records say that they are bad */
            spoil(trace.bytes, trace.size, &seed);
        }
        bool fine = CHECK(write_file(in, trace.bytes, trace.size)) && check_recovered(in, out);
        rt_free(&trace);
        if (!fine) {
            FAIL("trace seed %llu, %zu steps, %zu damages, number %d",
                 (unsigned long long)options.seed, options.steps, damages, i);
            break;
        }
    }
}
