/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip with ISA-L or zlib, see gzip.h. Functions of a library are looked up by name into a table;
 * the types come from the library's headers, so that a wrong signature does not compile.
 */
#include "base/gzip.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/shared_object.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#if MTB_HAVE_ISAL
#    include <isa-l/igzip_lib.h>
#endif
#if MTB_HAVE_ZLIB
#    include <zlib.h>
#endif

enum {
    OUT_BYTES = 256 * 1024,
    PIECE_BYTES = 1 << 30, /* the libraries count in 32 bits */
    GZIP_WINDOW = 15 + 16  /* zlib: the largest window, gzip wrapper */
};

/* ---- finding the libraries ------------------------------------------------------------------- */

static struct libraries {
    bool isal, zlib;
#if MTB_HAVE_ISAL
    __typeof__(isal_deflate_init) *isal_deflate_init;
    __typeof__(isal_deflate) *isal_deflate;
    __typeof__(isal_inflate_init) *isal_inflate_init;
    __typeof__(isal_inflate_reset) *isal_inflate_reset;
    __typeof__(isal_inflate) *isal_inflate;
#endif
#if MTB_HAVE_ZLIB
    __typeof__(deflateInit2_) *deflate_init;
    __typeof__(deflate) *deflate;
    __typeof__(deflateEnd) *deflate_end;
    __typeof__(inflateInit2_) *inflate_init;
    __typeof__(inflateReset) *inflate_reset;
    __typeof__(inflate) *inflate;
    __typeof__(inflateEnd) *inflate_end;
#endif
} libraries;

static pthread_once_t libraries_once = PTHREAD_ONCE_INIT;
static int forced = MTB_GZIP_BEST; /* atomic */

static void find_isal(void)
{
#if MTB_HAVE_ISAL
    void *handle = mtb_open_shared("libisal.so.2");
    libraries.isal = handle != NULL &&
                     mtb_find_symbol(handle, "isal_deflate_init", &libraries.isal_deflate_init) &&
                     mtb_find_symbol(handle, "isal_deflate", &libraries.isal_deflate) &&
                     mtb_find_symbol(handle, "isal_inflate_init", &libraries.isal_inflate_init) &&
                     mtb_find_symbol(handle, "isal_inflate_reset", &libraries.isal_inflate_reset) &&
                     mtb_find_symbol(handle, "isal_inflate", &libraries.isal_inflate);
#endif
}

static void find_zlib(void)
{
#if MTB_HAVE_ZLIB
    void *handle = mtb_open_shared("libz.so.1");
    libraries.zlib = handle != NULL &&
                     mtb_find_symbol(handle, "deflateInit2_", &libraries.deflate_init) &&
                     mtb_find_symbol(handle, "deflate", &libraries.deflate) &&
                     mtb_find_symbol(handle, "deflateEnd", &libraries.deflate_end) &&
                     mtb_find_symbol(handle, "inflateInit2_", &libraries.inflate_init) &&
                     mtb_find_symbol(handle, "inflateReset", &libraries.inflate_reset) &&
                     mtb_find_symbol(handle, "inflate", &libraries.inflate) &&
                     mtb_find_symbol(handle, "inflateEnd", &libraries.inflate_end);
#endif
}

/* The handles are never closed: streams may still use them. */
static void find_libraries(void)
{
    find_isal();
    find_zlib();
}

static enum mtb_gzip_choice choice_now(void)
{
    (void)pthread_once(&libraries_once, find_libraries);
    int wanted = __atomic_load_n(&forced, __ATOMIC_RELAXED);
    if (libraries.isal && (wanted == MTB_GZIP_BEST || wanted == MTB_GZIP_ISAL)) {
        return MTB_GZIP_ISAL;
    }
    if (libraries.zlib && (wanted == MTB_GZIP_BEST || wanted == MTB_GZIP_ZLIB)) {
        return MTB_GZIP_ZLIB;
    }
    return MTB_GZIP_NONE;
}

void mtb_gzip_choose(enum mtb_gzip_choice choice)
{
    __atomic_store_n(&forced, (int)choice, __ATOMIC_RELAXED);
}

const char *mtb_gzip_library(void)
{
    switch (choice_now()) {
    case MTB_GZIP_ISAL: return "ISA-L";
    case MTB_GZIP_ZLIB: return "zlib";
    default: return "none";
    }
}

/* On our JSON, ISA-L's level 1 costs about as much as its level 0 and gives files a third smaller;
 * zlib's level 1 is its only one that keeps up with a disk. */
int mtb_gzip_level(unsigned level)
{
    static const int isal[4] = {1, 1, 2, 3};
    static const int zlib[4] = {1, 1, 4, 9};
    unsigned index = level < MT_COUNT(isal) ? level : (unsigned)MT_COUNT(isal) - 1;
    return choice_now() == MTB_GZIP_ISAL ? isal[index] : zlib[index];
}

bool mtb_gzip_is(const void *bytes, size_t length)
{
    static const unsigned char magic[3] = {0x1F, 0x8B, 8};
    return length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

/* ---- deflate --------------------------------------------------------------------------------- */

struct mtb_deflate {
    enum mtb_gzip_choice choice;
    int error;
    int (*sink)(void *context, const void *bytes, size_t length);
    void *context;
    unsigned char *out; /* OUT_BYTES */
#if MTB_HAVE_ISAL
    struct isal_zstream *isal;
    unsigned char *isal_level;
#endif
#if MTB_HAVE_ZLIB
    z_stream zlib;
    bool zlib_open;
#endif
};

static int open_isal_deflate(mtb_deflate *deflate, int level)
{
#if MTB_HAVE_ISAL
    static const uint32_t sizes[4] = {1, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT,
                                      ISAL_DEF_LVL3_DEFAULT};
    MT_ASSERT(level >= 0 && level < (int)MT_COUNT(sizes));
    level = level < (int)MT_COUNT(sizes) ? level : 1;
    deflate->isal = mtb_calloc(1, sizeof *deflate->isal);
    deflate->isal_level = mtb_calloc(1, sizes[level]);
    if (deflate->isal == NULL || deflate->isal_level == NULL) {
        return ENOMEM;
    }
    libraries.isal_deflate_init(deflate->isal);
    deflate->isal->level = (uint32_t)level;
    deflate->isal->level_buf = deflate->isal_level;
    deflate->isal->level_buf_size = sizes[level];
    deflate->isal->gzip_flag = IGZIP_GZIP;
    return 0;
#else
    (void)deflate, (void)level;
    return ENOTSUP;
#endif
}

#if MTB_HAVE_ZLIB
/* zlib uses our allocator too, so that tests can make its requests fail. */
static void *zlib_take(void *context, unsigned count, unsigned size)
{
    (void)context;
    return mtb_resize(NULL, count, size);
}

static void zlib_free(void *context, void *block)
{
    (void)context;
    mtb_free(block);
}
#endif

static int open_zlib_deflate(mtb_deflate *deflate, int level)
{
#if MTB_HAVE_ZLIB
    deflate->zlib.zalloc = zlib_take;
    deflate->zlib.zfree = zlib_free;
    int status = libraries.deflate_init(&deflate->zlib, level, Z_DEFLATED, GZIP_WINDOW, 9,
                                        Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof(z_stream));
    deflate->zlib_open = status == Z_OK;
    return status == Z_OK ? 0 : status == Z_MEM_ERROR ? ENOMEM : ENOTSUP;
#else
    (void)deflate, (void)level;
    return ENOTSUP;
#endif
}

int mtb_deflate_open(unsigned level, int (*sink)(void *context, const void *bytes, size_t length),
                     void *context, mtb_deflate **out)
{
    *out = NULL;
    enum mtb_gzip_choice choice = choice_now();
    if (choice == MTB_GZIP_NONE) {
        return ENOTSUP;
    }
    mtb_deflate *deflate = mtb_calloc(1, sizeof *deflate);
    if (deflate == NULL) {
        return ENOMEM;
    }
    deflate->choice = choice;
    deflate->sink = sink;
    deflate->context = context;
    deflate->out = mtb_resize(NULL, OUT_BYTES, 1);
    int error = deflate->out == NULL      ? ENOMEM
                : choice == MTB_GZIP_ISAL ? open_isal_deflate(deflate, mtb_gzip_level(level))
                                          : open_zlib_deflate(deflate, mtb_gzip_level(level));
    if (error != 0) {
        mtb_deflate_close(deflate);
        return error;
    }
    *out = deflate;
    return 0;
}

/* One call of the library: as much input as fits into the output buffer. *made is the number of
 * bytes written; *done: all input was read and, with `end`, all output written. */
static int deflate_piece(mtb_deflate *deflate, const unsigned char **bytes, uint32_t *length,
                         bool end, size_t *made, bool *done)
{
#if MTB_HAVE_ISAL
    if (deflate->choice == MTB_GZIP_ISAL) {
        struct isal_zstream *stream = deflate->isal;
        memcpy(&stream->next_in, bytes, sizeof *bytes); /* it is only read, but not const there */
        stream->avail_in = *length;
        stream->next_out = deflate->out;
        stream->avail_out = OUT_BYTES;
        stream->end_of_stream = end;
        int status = libraries.isal_deflate(stream);
        *bytes += *length - stream->avail_in;
        *length = stream->avail_in;
        *made = OUT_BYTES - stream->avail_out;
        *done = stream->avail_in == 0 &&
                (end ? stream->internal_state.state == ZSTATE_END : stream->avail_out > 0);
        return status == COMP_OK ? 0 : EIO;
    }
#endif
#if MTB_HAVE_ZLIB
    z_stream *stream = &deflate->zlib;
    memcpy(&stream->next_in, bytes, sizeof *bytes);
    stream->avail_in = *length;
    stream->next_out = deflate->out;
    stream->avail_out = OUT_BYTES;
    int status = libraries.deflate(stream, end ? Z_FINISH : Z_NO_FLUSH);
    *bytes += *length - stream->avail_in;
    *length = stream->avail_in;
    *made = OUT_BYTES - stream->avail_out;
    *done = stream->avail_in == 0 && (end ? status == Z_STREAM_END : stream->avail_out > 0);
    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? 0 : EIO;
#else
    (void)deflate, (void)bytes, (void)length, (void)end, (void)made, (void)done;
    return ENOTSUP;
#endif
}

static void deflate_all(mtb_deflate *deflate, const unsigned char *bytes, uint32_t length, bool end)
{
    bool done = false;
    while (!done && deflate->error == 0) {
        size_t made = 0;
        deflate->error = deflate_piece(deflate, &bytes, &length, end, &made, &done);
        if (deflate->error == 0 && made > 0) {
            deflate->error = deflate->sink(deflate->context, deflate->out, made);
        }
    }
}

int mtb_deflate_write(void *deflate, const void *bytes, size_t length)
{
    mtb_deflate *stream = deflate;
    const unsigned char *from = bytes;
    while (length > 0 && stream->error == 0) {
        uint32_t piece = length < PIECE_BYTES ? (uint32_t)length : PIECE_BYTES;
        deflate_all(stream, from, piece, false);
        from += piece;
        length -= piece;
    }
    return stream->error;
}

int mtb_deflate_finish(mtb_deflate *deflate)
{
    static const unsigned char nothing[1] = {0};
    deflate_all(deflate, nothing, 0, true);
    return deflate->error;
}

void mtb_deflate_close(mtb_deflate *deflate)
{
    if (deflate == NULL) {
        return;
    }
#if MTB_HAVE_ISAL
    mtb_free(deflate->isal);
    mtb_free(deflate->isal_level);
#endif
#if MTB_HAVE_ZLIB
    if (deflate->zlib_open) {
        (void)libraries.deflate_end(&deflate->zlib);
    }
#endif
    mtb_free(deflate->out);
    mtb_free(deflate);
}

/* ---- inflate --------------------------------------------------------------------------------- */

typedef enum member_state {
    MEMBER_NONE,    /* before the first byte */
    MEMBER_INSIDE,  /* of a member */
    MEMBER_BETWEEN, /* after one: another may begin */
    MEMBER_PADDING  /* after the last: zero bytes */
} member_state;

struct mtb_inflate {
    enum mtb_gzip_choice choice;
    member_state state;
    int error;
#if MTB_HAVE_ISAL
    struct inflate_state *isal;
#endif
#if MTB_HAVE_ZLIB
    z_stream zlib;
    bool zlib_open;
#endif
};

int mtb_inflate_open(mtb_inflate **out)
{
    *out = NULL;
    enum mtb_gzip_choice choice = choice_now();
    if (choice == MTB_GZIP_NONE) {
        return ENOTSUP;
    }
    mtb_inflate *inflate = mtb_calloc(1, sizeof *inflate);
    if (inflate == NULL) {
        return ENOMEM;
    }
    inflate->choice = choice;
#if MTB_HAVE_ISAL
    if (choice == MTB_GZIP_ISAL) {
        inflate->isal = mtb_calloc(1, sizeof *inflate->isal);
        if (inflate->isal == NULL) {
            mtb_inflate_close(inflate);
            return ENOMEM;
        }
        libraries.isal_inflate_init(inflate->isal);
        inflate->isal->crc_flag = ISAL_GZIP;
    }
#endif
#if MTB_HAVE_ZLIB
    if (choice == MTB_GZIP_ZLIB) {
        inflate->zlib.zalloc = zlib_take;
        inflate->zlib.zfree = zlib_free;
        int status = libraries.inflate_init(&inflate->zlib, GZIP_WINDOW, ZLIB_VERSION,
                                            (int)sizeof(z_stream));
        inflate->zlib_open = status == Z_OK;
        if (status != Z_OK) {
            mtb_inflate_close(inflate);
            return status == Z_MEM_ERROR ? ENOMEM : ENOTSUP;
        }
    }
#endif
    *out = inflate;
    return 0;
}

static void member_begin(mtb_inflate *inflate)
{
    if (inflate->state == MEMBER_BETWEEN) {
#if MTB_HAVE_ISAL
        if (inflate->choice == MTB_GZIP_ISAL) {
            libraries.isal_inflate_reset(inflate->isal);
            inflate->isal->crc_flag = ISAL_GZIP;
        }
#endif
#if MTB_HAVE_ZLIB
        if (inflate->choice == MTB_GZIP_ZLIB) {
            (void)libraries.inflate_reset(&inflate->zlib);
        }
#endif
    }
    inflate->state = MEMBER_INSIDE;
}

/* One call of the library inside a member; *ended: the member is complete. */
static int inflate_piece(mtb_inflate *inflate, const unsigned char *bytes, uint32_t length,
                         uint32_t *taken, unsigned char *buffer, uint32_t room, uint32_t *made,
                         bool *ended)
{
#if MTB_HAVE_ISAL
    if (inflate->choice == MTB_GZIP_ISAL) {
        struct inflate_state *stream = inflate->isal;
        memcpy(&stream->next_in, &bytes, sizeof bytes);
        stream->avail_in = length;
        stream->next_out = buffer;
        stream->avail_out = room;
        int status = libraries.isal_inflate(stream);
        *taken = length - stream->avail_in;
        *made = room - stream->avail_out;
        *ended = stream->block_state == ISAL_BLOCK_FINISH;
        return status >= 0 && status != ISAL_NEED_DICT ? 0 : EBADMSG;
    }
#endif
#if MTB_HAVE_ZLIB
    z_stream *stream = &inflate->zlib;
    memcpy(&stream->next_in, &bytes, sizeof bytes);
    stream->avail_in = length;
    stream->next_out = buffer;
    stream->avail_out = room;
    int status = libraries.inflate(stream, Z_NO_FLUSH);
    *taken = length - stream->avail_in;
    *made = room - stream->avail_out;
    *ended = status == Z_STREAM_END;
    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? 0
           : status == Z_MEM_ERROR                                           ? ENOMEM
                                                                             : EBADMSG;
#else
    (void)inflate, (void)bytes, (void)length, (void)taken, (void)buffer, (void)room, (void)made;
    (void)ended;
    return ENOTSUP;
#endif
}

/* After a member: another one, or only zeros. False: neither. */
static bool member_follows(mtb_inflate *inflate, unsigned char byte)
{
    if (byte == 0) {
        inflate->state = MEMBER_PADDING;
        return true;
    }
    if (inflate->state == MEMBER_PADDING) {
        return false;
    }
    member_begin(inflate);
    return true;
}

int mtb_inflate_run(mtb_inflate *inflate, const void *bytes, size_t length, size_t *taken,
                    void *buffer, size_t room, size_t *made)
{
    const unsigned char *from = bytes;
    unsigned char *to = buffer;
    *taken = 0;
    *made = 0;
    while (inflate->error == 0) {
        if (inflate->state == MEMBER_NONE && *taken < length) {
            member_begin(inflate);
        } else if (inflate->state != MEMBER_INSIDE) {
            if (*taken == length) {
                break;
            }
            if (!member_follows(inflate, from[*taken])) {
                inflate->error = EBADMSG;
                break;
            }
            if (inflate->state == MEMBER_PADDING) {
                (*taken)++;
                continue;
            }
        }
        size_t n_in = length - *taken < PIECE_BYTES ? length - *taken : PIECE_BYTES;
        size_t n_out = room - *made < PIECE_BYTES ? room - *made : PIECE_BYTES;
        uint32_t got = 0;
        uint32_t gave = 0;
        bool ended = false;
        inflate->error = inflate_piece(inflate, from + *taken, (uint32_t)n_in, &got, to + *made,
                                       (uint32_t)n_out, &gave, &ended);
        *taken += got;
        *made += gave;
        if (ended) {
            inflate->state = MEMBER_BETWEEN;
        } else if ((got == 0 && gave == 0) || *made == room) {
            break; /* it needs more input or more room */
        }
    }
    return inflate->error;
}

bool mtb_inflate_is_whole(const mtb_inflate *inflate)
{
    return inflate->error == 0 &&
           (inflate->state == MEMBER_BETWEEN || inflate->state == MEMBER_PADDING);
}

void mtb_inflate_close(mtb_inflate *inflate)
{
    if (inflate == NULL) {
        return;
    }
#if MTB_HAVE_ISAL
    mtb_free(inflate->isal);
#endif
#if MTB_HAVE_ZLIB
    if (inflate->zlib_open) {
        (void)libraries.inflate_end(&inflate->zlib);
    }
#endif
    mtb_free(inflate);
}
