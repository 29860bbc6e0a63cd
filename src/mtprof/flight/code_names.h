/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for addresses of code in this process: the function and the file, from /proc/self/maps and
 * the symbol tables of the files there.
 *
 *   CDN1  Neither the dynamic loader nor the heap is asked: a thread that hangs may hold their
 *         locks. So dladdr() is not used.
 *   CDN2  The files are read, never mapped: one that is cut off meanwhile fails a read instead of
 *         raising SIGBUS. Every number in them is checked before it is used.
 *   CDN3  Addresses are resolved together: a file's symbols are read once, whatever their number.
 */
#ifndef MTPROF_FLIGHT_CODE_NAMES_H
#define MTPROF_FLIGHT_CODE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CODE_NAME_BYTES = 160,
    CODE_FILE_BYTES = 64,
    CODE_BUILD_BYTES = 20
};

typedef struct mtprof__code_name {
    uint64_t address;
    uint64_t in_file;                /* the address as the file's own symbols count */
    uint64_t symbol, symbol_bytes;   /* of the function; 0: it is not known */
    uint32_t name_at;                /* in the table of strings */
    char name[CODE_NAME_BYTES];      /* "": not known. One that is longer ends with "..." */
    char file[CODE_FILE_BYTES];      /* without its folder; "": not in a file */
    uint8_t build[CODE_BUILD_BYTES]; /* the file's build id, where the name is not known */
    uint8_t build_bytes;
} mtprof__code_name;

typedef struct mtprof__code_names {
    mtprof__code_name *at; /* ascending by address once they are resolved */
    size_t count, capacity;
} mtprof__code_names;

/* False when out of memory. */
bool mtprof__code_names_add(mtprof__code_names *names, uint64_t address);
/* Fills in what can be found. */
void mtprof__code_names_resolve(mtprof__code_names *names);
/* NULL: it was not added. */
const mtprof__code_name *mtprof__code_names_find(const mtprof__code_names *names, uint64_t address);
void mtprof__code_names_fini(mtprof__code_names *names);

/* All of a file under /proc, with a zero byte after it, in pages of its own: its length, or -1.
 * Give them back with mtb_pages_give(*text, *capacity). */
ssize_t mtprof__read_proc(const char *path, char **text, size_t *capacity);

#endif /* MTPROF_FLIGHT_CODE_NAMES_H */
