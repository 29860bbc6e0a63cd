/* SPDX-License-Identifier: Apache-2.0
 *
 * What collectors share: libraries that programs with an instrumentation interface in them (ITT,
 * NVTX) open at run time, and that turn what the programs report into scopes, instants and counters
 * of libmtprof. A collector translates its interface's calls to these functions.
 *
 *   CO1  Names live as long as the process: programs keep pointers to them.
 *   CO2  An end belongs to the innermost range of its thread that has the same group. A range that
 *        began while nothing recorded has its place all the same.
 *   CO3  A collector records into the session that is there. It starts one itself only where
 *        `mtprof run` asks for it (collect_session.c).
 */
#ifndef SOURCES_COLLECT_COLLECT_H
#define SOURCES_COLLECT_COLLECT_H

#include "base/compiler.h"
#include "base/lock.h"

#include <mtprof/op.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* ---- names ---- */

enum {
    COLLECT_MOST_NAMES = 65536, /* beyond, names are recorded by their text */
    COLLECT_MOST_DEPTH = 1024,  /* ranges that are open on a thread */
    COLLECT_FACE_WORDS = 5
};

typedef struct collect_name {
    uint64_t face[COLLECT_FACE_WORDS]; /* what the program has a pointer to, if that is a struct */
    const char *text;                  /* zero-terminated */
    size_t length;
    bool has_sites;                /* false: beyond COLLECT_MOST_NAMES */
    mtprof_site scope, op, ranged; /* ranged: a scope that may end on another thread */
    struct collect_name *next;
} collect_name;

/* The name with this text, made where it is new; `dress`, if any, then fills in its face. NULL:
 * there is no memory. */
collect_name *collect_name_of(const char *text, size_t length, void (*dress)(collect_name *name));

/* A wide text in UTF-8; what is no character becomes U+FFFD. In `room` where it fits, else from
 * the heap. */
typedef struct collect_text {
    char room[512];
    char *text; /* NULL: there is no memory */
    size_t length;
} collect_text;
void collect_text_init(collect_text *text, const wchar_t *wide);
void collect_text_fini(collect_text *text);

/* ---- ranges of a thread ---- */

enum collect_kind {
    COLLECT_SCOPE = 0,
    COLLECT_OP,
    COLLECT_UNRECORDED /* it only has its place */
};

/* Begins a range on this thread; returns its token, and in *level how many of its group are open
 * around it. `name` may be NULL: then the text is recorded. */
mtprof_token collect_push(const void *group, enum collect_kind kind, collect_name *name,
                          const char *text, size_t length, uint32_t *level);
/* Ends the innermost range of the group; false: there is none. *level as above. */
bool collect_pop(const void *group, uint32_t *level);
/* The innermost range's token, 0 where none is open or it is not recorded. */
mtprof_token collect_innermost(void);

/* Begins a range that may end on any thread: mtprof_end() ends it. */
mtprof_token collect_begin_ranged(collect_name *name, const char *text, size_t length);

/* Names a thread by its id: the calling one, or one that reports later. False: it was kept for
 * none, and counted as cut. */
bool collect_name_thread(uint32_t id, const char *name);

/* Notes the domain of a range or of MTPROF_LATEST_INSTANT; nothing for NULL and "". */
void collect_add_domain(mtprof_token token, const char *domain);

/* ---- the session ---- */

/* A part of the program has opened the collector. */
void collect_start(void);
/* Prints that something is not recorded, a file or a kind of events. The user asked for it on the
 * command line, and nobody else can tell. */
void collect_say(const char *subject, const char *message);
/* The program wants nothing recorded, or again: for the session that collect_start() started. */
void collect_pause(bool paused);

/* Whether one of these is wanted. A process that was forked from one with a session gets its own
 * here, with the first thing that it reports. */
extern bool collect_forked;
void collect_start_again(void);
MT_INLINE bool collect_wants(uint32_t wants)
{
    if (MT_LIKELY(mtprof_wants(wants))) {
        return true;
    }
    if (MT_UNLIKELY(__atomic_load_n(&collect_forked, __ATOMIC_RELAXED))) {
        collect_start_again();
        return mtprof_wants(wants);
    }
    return false;
}

/* Protects a collector's own lists; free again in a forked child. No name is looked for under
 * it. */
extern mtb_lock collect_objects;

/* In a forked child. */
void collect_names_after_fork(void);
void collect_thread_after_fork(void);

#endif /* SOURCES_COLLECT_COLLECT_H */
