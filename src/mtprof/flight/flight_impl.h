/* SPDX-License-Identifier: Apache-2.0
 *
 * The flight recorder as its own files see it: flight.c (start, step, dump, stop), flight_files.c
 * (names, the budget of dumps).
 *
 * Invariants
 *   FL1  `lock` guards what is not constant after the start. It is not held while a dump is
 *        written, a session is stopped or a callback runs.
 *   FL2  The thread that set `busy` owns the session until it clears it: it starts, dumps or stops.
 *        Others wait for `idle`.
 *   FL3  `session` is not NULL exactly until a stop owns the recorder.
 *   FL4  At most one recorder is current; it is that until its session has been closed.
 *   FL5  A recorder belongs to the process that started it; elsewhere only release is allowed, and
 *        it frees memory only.
 */
#ifndef MTPROF_FLIGHT_FLIGHT_IMPL_H
#define MTPROF_FLIGHT_FLIGHT_IMPL_H

#include "mtprof/flight/step_summaries.h"
#include "mtprof/flight/triggers.h"

#include <mtprof/flight.h>

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

enum {
    MTPROF__FLIGHT_NAME_MAX = 64,
    MTPROF__FLIGHT_FOLDER_MAX = 800,
    MTPROF__FLIGHT_REASON_MAX = 40 /* characters of it in a file's name */
};

struct mtprof_flight {
    int references; /* atomic */
    pid_t pid;
    mtprof_flight_config config; /* texts are the copies below */
    char folder[MTPROF__FLIGHT_FOLDER_MAX + 1];
    char name[MTPROF__FLIGHT_NAME_MAX + 1];
    pthread_mutex_t lock; /* FL1 */
    pthread_cond_t idle;
    bool busy;
    mtprof_session *session; /* FL3 */
    uint64_t last_dump_ns;   /* CLOCK_MONOTONIC; 0: none yet */
    mtprof_flight_counts counts;
    mtprof__triggers *triggers;   /* NULL: nothing is watched, or a stop has taken it */
    mtprof__summaries *summaries; /* likewise */
};

/* ---- flight.c ---- */

uint64_t mtprof__flight_clock_ns(clockid_t clock);

/* What a dump says of itself. */
typedef struct mtprof__dump_request {
    const char *reason;
    const char *trigger; /* these two may be NULL */
    const char *stacks;
} mtprof__dump_request;

mtprof_status mtprof__flight_check_handle(const char *call, const mtprof_flight *flight);
/* mtprof_flight_dump(), which has the contract; info may be NULL. */
mtprof_status mtprof__flight_dump(mtprof_flight *flight, const mtprof__dump_request *request,
                                  mtprof_flight_dump_info *info);
/* How far the program has come. False: stopped. */
bool mtprof__flight_progress(mtprof_flight *flight, uint64_t *steps, uint64_t *events);
/* Tells the user of a failure that no caller gets. */
void mtprof__flight_warn(const mtprof_flight *flight, mtprof_status status);

/* ---- flight_files.c ---- */

/* Makes the folder where it is missing. Fails with EIO. */
mtprof_status mtprof__flight_make_folder(const char *folder);
/* "FOLDER/NAME.SUFFIX" into room for a path. */
void mtprof__flight_path(const mtprof_flight *flight, const char *suffix, char *to);
/* The path of a dump that is made now. */
void mtprof__flight_dump_path(const mtprof_flight *flight, uint32_t sequence, const char *reason,
                              char *to);
/* Deletes the oldest dumps of this recorder's name beyond its budget, `newest` never. Returns how
 * many. */
uint64_t mtprof__flight_apply_budget(const mtprof_flight *flight, const char *newest);

#endif /* MTPROF_FLIGHT_FLIGHT_IMPL_H */
