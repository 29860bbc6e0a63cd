/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip both ways, each library against each other one, in pieces of every size.
 */
#include "base/alloc.h"
#include "base/gzip.h"
#include "harness/mt_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES = 700 * 1000
};

typedef struct bytes {
    unsigned char *data;
    size_t n, capacity;
    size_t fail_after; /* 0: never */
} bytes;

static int bytes_take(void *context, const void *from, size_t length)
{
    bytes *to = context;
    if (to->fail_after != 0 && to->n + length > to->fail_after) {
        return ENOSPC;
    }
    if (length == 0) {
        return 0;
    }
    if (to->n + length > to->capacity) {
        to->capacity = 2 * (to->n + length);
        to->data = realloc(to->data, to->capacity);
        REQUIRE(to->data != NULL);
    }
    memcpy(to->data + to->n, from, length);
    to->n += length;
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Text that compresses, with some that does not. */
static unsigned char *make_text(uint64_t seed)
{
    unsigned char *text = malloc(TEXT_BYTES);
    REQUIRE(text != NULL);
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        text[i] = i % 100000 < 3000 ? (unsigned char)next_random(&seed)
                                    : (unsigned char)("{\"name\": \"aten::add\", "[i % 22]);
        if (i % 97 == 0) {
            text[i] = (unsigned char)('0' + next_random(&seed) % 10);
        }
    }
    return text;
}

static bool is_there(enum mtb_gzip_choice choice)
{
    mtb_gzip_choose(choice);
    bool there = strcmp(mtb_gzip_library(), "none") != 0;
    mtb_gzip_choose(MTB_GZIP_BEST);
    return there;
}

static void compress_text(enum mtb_gzip_choice choice, unsigned level, const unsigned char *text,
                          size_t n, bytes *out, uint64_t seed)
{
    mtb_gzip_choose(choice);
    mtb_deflate *deflate = NULL;
    REQUIRE_OK(mtb_deflate_open(level, bytes_take, out, &deflate));
    for (size_t at = 0; at < n;) {
        size_t piece = next_random(&seed) % 60000;
        piece = piece < n - at ? piece : n - at;
        CHECK_OK(mtb_deflate_write(deflate, text + at, piece));
        at += piece;
    }
    CHECK_OK(mtb_deflate_finish(deflate));
    mtb_deflate_close(deflate);
    mtb_gzip_choose(MTB_GZIP_BEST);
}

/* Inflates with pieces of at most in_most and out_most bytes (0: everything at once). */
static int expand(enum mtb_gzip_choice choice, const bytes *in, size_t in_most, size_t out_most,
                  bytes *out, bool *whole)
{
    mtb_gzip_choose(choice);
    mtb_inflate *inflate = NULL;
    REQUIRE_OK(mtb_inflate_open(&inflate));
    mtb_gzip_choose(MTB_GZIP_BEST);
    size_t room = out_most != 0 ? out_most : 2 * TEXT_BYTES;
    unsigned char *buffer = malloc(room);
    REQUIRE(buffer != NULL);
    int error = 0;
    size_t made = 0;
    for (size_t at = 0; error == 0 && (at < in->n || made == room);) {
        size_t piece = in_most != 0 && in_most < in->n - at ? in_most : in->n - at;
        size_t taken = 0;
        error = mtb_inflate_run(inflate, in->data + at, piece, &taken, buffer, room, &made);
        REQUIRE(taken <= piece && made <= room);
        REQUIRE_OK(bytes_take(out, buffer, made));
        if (error == 0 && taken == 0 && made == 0 && piece > 0) {
            FAIL("no progress at byte %zu", at);
            break;
        }
        at += taken;
    }
    *whole = mtb_inflate_is_whole(inflate);
    mtb_inflate_close(inflate);
    free(buffer);
    return error;
}

TEST(gzip_there_and_back)
{
    uint64_t seed = mt_test_seed();
    unsigned char *text = make_text(seed);
    static const size_t pieces[][2] = {{0, 0}, {1, 0}, {7, 13}, {4096, 1}, {65536, 100000}};
    for (int from = MTB_GZIP_ISAL; from <= MTB_GZIP_ZLIB; from++) {
        for (unsigned level = 0; level <= 3 && is_there((enum mtb_gzip_choice)from); level++) {
            bytes packed = {0};
            compress_text((enum mtb_gzip_choice)from, level, text, TEXT_BYTES, &packed, seed);
            CHECK(mtb_gzip_is(packed.data, packed.n));
            CHECK(packed.n < TEXT_BYTES / 4);
            for (int to = MTB_GZIP_ISAL; to <= MTB_GZIP_ZLIB; to++) {
                size_t n_pieces = level == 0 ? sizeof pieces / sizeof pieces[0] : 1;
                for (size_t i = 0; i < n_pieces && is_there((enum mtb_gzip_choice)to); i++) {
                    bytes out = {0};
                    bool whole = false;
                    CHECK_OK(expand((enum mtb_gzip_choice)to, &packed, pieces[i][0], pieces[i][1],
                                    &out, &whole));
                    CHECK(whole);
                    CHECK_EQ_U64(out.n, TEXT_BYTES);
                    CHECK(out.n == TEXT_BYTES && memcmp(out.data, text, TEXT_BYTES) == 0);
                    free(out.data);
                }
            }
            free(packed.data);
        }
    }
    free(text);
}

/* Several members, also empty ones, and zeros after the last: as gzip itself reads them. */
TEST(gzip_members_follow_each_other)
{
    uint64_t seed = mt_test_seed();
    unsigned char *text = make_text(seed);
    bytes packed = {0};
    compress_text(MTB_GZIP_BEST, 0, text, 1000, &packed, seed);
    compress_text(MTB_GZIP_BEST, 0, text, 0, &packed, seed);
    compress_text(MTB_GZIP_BEST, 0, text + 1000, 1, &packed, seed);
    compress_text(MTB_GZIP_BEST, 0, text + 1001, 50000, &packed, seed);
    static const unsigned char zeros[100] = {0};
    REQUIRE_OK(bytes_take(&packed, zeros, sizeof zeros));
    for (int to = MTB_GZIP_ISAL; to <= MTB_GZIP_ZLIB; to++) {
        for (size_t in_most = 0; in_most < 40 && is_there((enum mtb_gzip_choice)to); in_most++) {
            bytes out = {0};
            bool whole = false;
            CHECK_OK(expand((enum mtb_gzip_choice)to, &packed, in_most, 0, &out, &whole));
            CHECK(whole);
            CHECK_EQ_U64(out.n, 51001);
            CHECK(out.n == 51001 && memcmp(out.data, text, 51001) == 0);
            free(out.data);
        }
    }
    free(packed.data);
    free(text);
}

TEST(gzip_damage_is_found)
{
    uint64_t seed = mt_test_seed();
    unsigned char *text = make_text(seed);
    for (int to = MTB_GZIP_ISAL; to <= MTB_GZIP_ZLIB; to++) {
        if (!is_there((enum mtb_gzip_choice)to)) {
            continue;
        }
        for (int i = 0; i < 60; i++) {
            bytes packed = {0};
            compress_text(MTB_GZIP_BEST, 0, text, 30000, &packed, seed);
            size_t at = i == 0 ? packed.n - 6 : 10 + next_random(&seed) % (packed.n - 14);
            packed.data[at] ^= (unsigned char)(1 + next_random(&seed) % 255);
            bytes out = {0};
            bool whole = false;
            int error = expand((enum mtb_gzip_choice)to, &packed, 0, 0, &out, &whole);
            CHECK(error == EBADMSG || !whole);
            free(out.data);
            free(packed.data);
        }
        bytes packed = {0};
        compress_text(MTB_GZIP_BEST, 0, text, 30000, &packed, seed);
        for (size_t n = 0; n < packed.n; n += 1 + packed.n / 50) {
            bytes cut = {.data = packed.data, .n = n};
            bytes out = {0};
            bool whole = true;
            CHECK_OK(expand((enum mtb_gzip_choice)to, &cut, 0, 0, &out, &whole));
            CHECK(!whole);
            free(out.data);
        }
        REQUIRE_OK(bytes_take(&packed, "what is this", 12));
        bytes out = {0};
        bool whole = true;
        CHECK_EQ_I64(expand((enum mtb_gzip_choice)to, &packed, 0, 0, &out, &whole), EBADMSG);
        CHECK(!whole);
        free(out.data);
        free(packed.data);
    }
    free(text);
}

TEST(gzip_sink_errors_stay)
{
    unsigned char *text = make_text(1);
    bytes packed = {.fail_after = 1};
    mtb_deflate *deflate = NULL;
    REQUIRE_OK(mtb_deflate_open(0, bytes_take, &packed, &deflate));
    (void)mtb_deflate_write(deflate, text, TEXT_BYTES);
    CHECK_EQ_I64(mtb_deflate_finish(deflate), ENOSPC);
    CHECK_EQ_I64(mtb_deflate_write(deflate, text, 1), ENOSPC);
    mtb_deflate_close(deflate);
    free(packed.data);
    free(text);
}

TEST(gzip_without_memory_or_library)
{
    for (int choice = MTB_GZIP_ISAL; choice <= MTB_GZIP_ZLIB; choice++) {
        mtb_gzip_choose((enum mtb_gzip_choice)choice);
        bool there = strcmp(mtb_gzip_library(), "none") != 0;
        for (uint64_t n = 1; there && n < 10; n++) {
            mtb_deflate *deflate = NULL;
            mtb_inflate *inflate = NULL;
            bytes packed = {0};
            mtb_fail_nth(n, false);
            int error = mtb_deflate_open(0, bytes_take, &packed, &deflate);
            CHECK(error == (deflate == NULL ? ENOMEM : 0));
            mtb_fail_nth(n, false);
            error = mtb_inflate_open(&inflate);
            CHECK(error == (inflate == NULL ? ENOMEM : 0));
            mtb_fail_nth(0, false);
            mtb_deflate_close(deflate);
            mtb_inflate_close(inflate);
        }
    }
    mtb_gzip_choose(MTB_GZIP_NONE);
    mtb_deflate *deflate = NULL;
    mtb_inflate *inflate = NULL;
    CHECK_EQ_STR(mtb_gzip_library(), "none");
    CHECK_EQ_I64(mtb_deflate_open(0, bytes_take, NULL, &deflate), ENOTSUP);
    CHECK_EQ_I64(mtb_inflate_open(&inflate), ENOTSUP);
    mtb_gzip_choose(MTB_GZIP_BEST);
    mtb_deflate_close(NULL);
    mtb_inflate_close(NULL);
}
