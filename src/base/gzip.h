/* SPDX-License-Identifier: Apache-2.0
 *
 * Streaming gzip compression and decompression, by the fastest library available: ISA-L (igzip),
 * else zlib.
 *
 * The libraries are opened when first needed and are not linked against: a program that never
 * compresses needs neither, and one build runs with either of them. If both are missing, all
 * functions here return ENOTSUP.
 *
 * Errors are errno values: ENOMEM, ENOTSUP, EBADMSG (not gzip, or damaged), or what a sink
 * returned. Threads: a stream belongs to one thread at a time.
 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library that this process uses: "ISA-L", "zlib" or "none". */
const char *mtb_gzip_library(void);
/* Maps our level (1 fastest to 3 smallest, 0: default) to the library's own. */
int mtb_gzip_level(unsigned level);

enum mtb_gzip_choice {
    MTB_GZIP_BEST = 0,
    MTB_GZIP_ISAL = 1,
    MTB_GZIP_ZLIB = 2,
    MTB_GZIP_NONE = 3
};
/* Test hook: streams opened from now on use this library. Not while another thread opens one. */
void mtb_gzip_choose(enum mtb_gzip_choice choice);

/* ---- deflate: bytes in, one gzip member out to a sink ---------------------------------------- */
typedef struct mtb_deflate mtb_deflate;

/* On failure *out is NULL. level as in mtb_gzip_level(). */
int mtb_deflate_open(unsigned level, int (*sink)(void *context, const void *bytes, size_t length),
                     void *context, mtb_deflate **out);
/* Has the signature of a writer's sink: `deflate` is an mtb_deflate. After a failure every later
 * call fails too. */
int mtb_deflate_write(void *deflate, const void *bytes, size_t length);
/* Writes the remaining output and the trailer. Nothing may be written after it. */
int mtb_deflate_finish(mtb_deflate *deflate);
/* Accepts NULL. */
void mtb_deflate_close(mtb_deflate *deflate);

/* ---- inflate: pieces of gzip in, pieces of bytes out ----------------------------------------- */
typedef struct mtb_inflate mtb_inflate;

/* Whether bytes begin with gzip's magic number. */
bool mtb_gzip_is(const void *bytes, size_t length);

int mtb_inflate_open(mtb_inflate **out);
/*
 * Decompresses `length` more bytes of input into at most `room` bytes of output. *taken and *made
 * are the numbers of bytes read and written; call again with the rest of the input until all of it
 * is taken and *made is less than room. Members may follow each other directly; zero bytes after
 * the last one are skipped. After a failure every later call fails too.
 */
int mtb_inflate_run(mtb_inflate *inflate, const void *bytes, size_t length, size_t *taken,
                    void *buffer, size_t room, size_t *made);
/* Whether the input may end here: at least one member, and the last one complete. */
bool mtb_inflate_is_whole(const mtb_inflate *inflate);
/* Accepts NULL. */
void mtb_inflate_close(mtb_inflate *inflate);

#endif /* BASE_GZIP_H */
