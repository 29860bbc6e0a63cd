/* SPDX-License-Identifier: Apache-2.0
 *
 * A session as its own files see it: session.c (start, stop, close), session_window.c (pausing,
 * windows), session_results.c (metadata, health, bytes, save), session_dump.c (dumps of what is
 * still recording). session.c lists the invariants SES1 to SES5.
 */
#ifndef MTPROF_CONTROL_SESSION_IMPL_H
#define MTPROF_CONTROL_SESSION_IMPL_H

#include "base/lock.h"
#include "mtprof/control/process_watch.h"
#include "mtprof/record/store/helper.h"

#include <mtprof/session.h>

#include <stdbool.h>
#include <sys/types.h>

enum session_state {
    STARTING,
    PAUSED,
    RECORDING,
    CHANGING,
    STOPPING,
    STOPPED,
    FOREIGN /* found where the session belongs to another process (SES4), never set */
};

/* A key and a value as their record, kept so that a cleared session still has them. */
typedef struct session_meta {
    struct session_meta *next;
    uint64_t n_words;
    uint64_t words[]; /* TRACE_META */
} session_meta;

struct mtprof_session {
    enum session_state state;
    pid_t pid;
    mtprof_config config;         /* texts are copies of ours */
    mtprof__recording *recording; /* exchanged by clear, under the lock */
    mtprof__helper helper;
    uint64_t wants; /* of the window that is open, or was last */
    uint32_t epoch, window, step;
    bool window_open; /* also while paused */
    uint64_t end_ticks;
    uint32_t pair_cost;                            /* 1/256 ticks */
    session_meta *metadata;                        /* in order, one per key; guarded by the lock */
    uint64_t n_steps;                              /* begun so far; guarded by the lock, as is: */
    uint64_t step_ticks[MTPROF_SESSION_STEPS_MAX]; /* when the last ones began, circular */
    uint32_t holds;                                /* SES5; guarded by the lock */
    mtprof__watch *watch;                          /* NULL: no counters of the process */
};

/* Guards the states of all sessions, and which one is active. */
extern mtb_lock mtprof__session_lock;

/* Moves the state when it is `from` (SES2). Returns the state that was found: one look, one answer.
 */
enum session_state mtprof__session_move(mtprof_session *session, enum session_state from,
                                        enum session_state to);
enum session_state mtprof__session_state_of(mtprof_session *session);
/* The failure of a call that the state it found does not allow. */
mtprof_status mtprof__session_refuse(const char *call, const mtprof_session *session,
                                     enum session_state found);
/* The active session, held: it is not freed before mtprof__session_let_go() (SES5). NULL: none is
 * active, or it has only begun to start. */
mtprof_session *mtprof__session_hold_active(void);
void mtprof__session_let_go(mtprof_session *session);
/* STOPPED, and no longer the active one. */
void mtprof__session_give_up(mtprof_session *session);

/* For the owner of the session (SES2). */
void mtprof__session_open_gate(mtprof_session *s);
void mtprof__session_shut_gate(mtprof_session *s, uint32_t how);
/* At end_ticks; reserves correlation ids for so many begins (docs/format.md 3.6). */
void mtprof__session_append_close(mtprof_session *s, uint32_t how, uint64_t begins);
/* Store, recording and helper; the session's own is left alone. */
mtprof_status mtprof__session_make_recording(mtprof_session *s, mtprof__recording **out);
/* Detaches the recording from the process: no thread defines in it or attaches to it any more. */
void mtprof__session_retire_recording(mtprof__recording *recording);
/* When the step began before which `steps` others have ended; 0: not known. Takes the lock. */
uint64_t mtprof__session_steps_from(mtprof_session *session, uint64_t steps);
/* The session's recording, held until mtprof__recording_release(). */
mtprof__recording *mtprof__session_pin(mtprof_session *session);
/* mtprof_session_get_bytes() for a thread of the recorder itself: read from the mapped memory. */
mtprof_status mtprof__session_memory(mtprof_session *session, mtprof_bytes *bytes);

/* Keeps the pair, in place of an earlier one with its key, and writes it. */
mtprof_status mtprof__session_add_meta(mtprof_session *s, const char *key, size_t key_length,
                                       const char *value, size_t value_length, bool is_json);
/* The record of a pair, for mtb_free(); its window is added later. NULL: no memory. */
session_meta *mtprof__session_make_meta(const char *key, size_t key_length, const char *value,
                                        size_t value_length, bool is_json);
bool mtprof__session_has_meta(mtprof_session *s, const char *key, size_t length);
/* Exchanges the recording and writes what is kept into the new one. Returns the old one. */
mtprof__recording *mtprof__session_exchange(mtprof_session *s, mtprof__recording *recording);

/* mtprof_session_dump() into an empty file that is open; checks have been made. */
mtprof_status mtprof__session_dump_to(mtprof_session *session, int fd, const char *name,
                                      const mtprof_dump_options *options, mtprof_dump_info *info);

#endif /* MTPROF_CONTROL_SESSION_IMPL_H */
