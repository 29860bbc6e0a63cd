/* SPDX-License-Identifier: Apache-2.0
 *
 * Control of a running process: it listens on a Unix socket, and others ask it what it records, or
 * tell it to start, to stop or to write down what it has (docs/control.md has the protocol).
 *
 *      mtprof status PID ──► FOLDER/PID.sock ──► one helper thread of the process ──► sessions
 *
 * Nothing is opened unless mtprof_control_listen() is called. The socket is in a folder that its
 * owner alone can enter, and only the process's own user and root are answered.
 *
 * Threads: every function may be called from any thread. After fork() the child does not listen; it
 * may begin to.
 */
#ifndef MTPROF_CONTROL_H
#define MTPROF_CONTROL_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Version of the protocol: the member "control" of the first line that a process sends. */
#define MTPROF_CONTROL_VERSION 1

enum {
    MTPROF_CONTROL_PATH_BYTES = 4096, /**< of a path, its final zero included */
    MTPROF_CONTROL_TEXT_BYTES = 1024  /**< of other texts, the same */
};

/** What can be asked of a process. */
enum mtprof_control_command {
    MTPROF_CONTROL_STATUS = 0,
    MTPROF_CONTROL_START = 1,
    MTPROF_CONTROL_STOP = 2,
    MTPROF_CONTROL_DUMP = 3,
    MTPROF_CONTROL_COMMAND_COUNT
};

/** What a recording has beside ops and scopes. */
enum mtprof_control_detail {
    MTPROF_CONTROL_SHAPES = 1 << 0, /**< shapes and types of inputs */
    MTPROF_CONTROL_STACKS = 1 << 1, /**< the language's stacks */
    MTPROF_CONTROL_MEMORY = 1 << 2, /**< allocations */
    MTPROF_CONTROL_CALLS = 1 << 3   /**< every call of a Python function; Python programs only */
};

/** A request. Set struct_size; no byte past it is read. */
typedef struct mtprof_control_request {
    uint32_t struct_size;
    uint32_t command;    /**< enum mtprof_control_command */
    const char *path;    /**< START and DUMP: the file to write, an absolute path. DUMP, NULL: where
                              the process's flight recorder (flight.h) puts its dumps */
    const char *reason;  /**< DUMP: why, for the dump's metadata; NULL: "control" */
    uint64_t ring_bytes; /**< START: keep the latest events, in this many bytes; 0: all */
    uint32_t details;    /**< START: enum mtprof_control_detail */
    uint32_t wait_ms;    /**< for the answer, of the one who asks; 0: 60,000 */
} mtprof_control_request;

/** What a process records, in mtprof_control_state. */
enum mtprof_control_recording {
    MTPROF_CONTROL_OFF = 0,
    MTPROF_CONTROL_ON = 1,
    MTPROF_CONTROL_PAUSED = 2
};

/** What a process says of itself. Set struct_size; no byte past it is written. */
typedef struct mtprof_control_state {
    uint32_t struct_size;
    uint32_t recording; /**< enum mtprof_control_recording */
    int64_t pid;        /**< of the process, as it sees itself */
    uint64_t since_us;  /**< it records since then: microseconds since 1970; 0: it does not */
    uint64_t wants;     /**< enum mtprof_want */
    uint64_t begins;    /**< as in mtprof_health, so far */
    uint64_t others, lost, evicted, truncated, bytes;
    uint32_t threads;
    uint32_t by_control; /**< 1: the recording was started over the socket */
    uint64_t refused;    /**< connections of other users, which were closed */
    uint64_t dropped;    /**< connections that were closed to make room, or without a request */
    char path[MTPROF_CONTROL_PATH_BYTES];    /**< of the recording; empty: in memory */
    char program[MTPROF_CONTROL_TEXT_BYTES]; /**< its command line */
    char rank[MTPROF_CONTROL_TEXT_BYTES];    /**< empty: not told */
    char version[32];                        /**< of the library in the process */
    char dump[MTPROF_CONTROL_PATH_BYTES];    /**< after DUMP: the file that was written */
} mtprof_control_state;

/** Where a callback puts the reason of its failure: zero-terminated, cut where it is too long. */
typedef struct mtprof_control_answer {
    uint32_t struct_size;
    uint32_t reserved;
    char message[MTPROF_CONTROL_TEXT_BYTES];
} mtprof_control_answer;

/** Set struct_size, leave the rest zero for the defaults. Fields are only ever appended. */
typedef struct mtprof_control_config {
    uint32_t struct_size;
    uint32_t reserved;
    /** The socket's folder, see mtprof_control_folder(). It is made with mode 0700 if it is missing
     * (not those above it). Borrowed for the call, as is rank. */
    const char *folder;
    const char *rank; /**< of the process among its peers, for people; NULL: none */
    /** (optional) Starts what the program records when it is asked to; NULL: a session of ops,
     * scopes and what the request asks for. Not called while a session is active. Both callbacks
     * run on the helper thread, without a lock, one at a time. */
    mtprof_status (*start)(void *user, const mtprof_control_request *request,
                           mtprof_control_answer *answer);
    /** (optional) Stops a recording that this listener's own session is not: one that `start`
     * began, or one of the program's that it is willing to end. NULL: the program's own recordings
     * are left alone, and the request is refused. */
    mtprof_status (*stop)(void *user, mtprof_control_answer *answer);
    void *user;
} mtprof_control_config;

/**
 * Begins to listen: makes FOLDER/PID.sock and a helper thread.
 *
 * Fails with EINVAL (a bad field; a folder that is not a folder, is not owned by the process's user
 * or can be entered by others; a path of more than 107 bytes; the message names it), EBUSY (this
 * process listens already, or another one at that path), EIO (the folder or the socket cannot be
 * made), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_control_listen(const mtprof_control_config *config);

/**
 * Ends it: removes the socket, waits for the helper thread, and stops and closes a session that was
 * started over the socket. Does nothing where the process does not listen. The end of the process
 * does the same. Not from one of the callbacks.
 *
 * Fails with EBUSY (another thread begins or ends it right now).
 */
MTPROF_API mtprof_status mtprof_control_close(void);

/** The socket's path while the process listens; false: it does not, or the path does not fit. */
MTPROF_API bool mtprof_control_path(char *path, size_t size);

/* ---- the other side -------------------------------------------------------------------------- */

/**
 * The folder of a user's sockets: RUNTIME/mtprof where runtime (the caller's XDG_RUNTIME_DIR) is an
 * absolute path, else /tmp/mtprof-UID.
 *
 * Fails with EINVAL (it does not fit).
 */
MTPROF_API mtprof_status mtprof_control_folder(const char *runtime, uint32_t uid, char *folder,
                                               size_t size);

/**
 * Asks a process. On success *state is what it says after that.
 *
 * Fails with EINVAL (a bad request, or refused as such by the process), ENOTSUP (there is no socket
 * of the process in the folder, or nobody listens there any more), EIO (the folder or socket
 * belongs to another user, no answer in time, an answer that is none), and as the process does:
 * EBUSY (START: it records already), ESTATE (STOP, DUMP: it does not record, or the recording is
 * the program's own; DUMP without a path: it has no flight recorder).
 */
MTPROF_API mtprof_status mtprof_control_call(const char *folder, int64_t pid,
                                             const mtprof_control_request *request,
                                             mtprof_control_state *state);

/**
 * Asks every process that listens in the folder for its state, in the order of their numbers, and
 * removes sockets that processes left behind which no longer live. state is NULL where a process
 * does not answer; mtprof_last_error() says why. A folder that does not exist has no processes.
 *
 * Fails with EIO (the folder cannot be read, or belongs to another user), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_control_visit(const char *folder,
                                              void (*visit)(void *user, int64_t pid,
                                                            const mtprof_control_state *state),
                                              void *user);

MTPROF_END_DECLS

#endif /* MTPROF_CONTROL_H */
