/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that listens: control_listen.c (socket, thread, fork), control_serve.c (connections),
 * control_commands.c (what is asked).
 *
 *   CTS1  There is one listener. `state` says who may change it: the thread that moved it to BUSY,
 *         and while it is LISTENING the helper thread alone.
 *   CTS2  Sockets of the listener are opened, stored and closed under `sockets`, a mutex under
 *         which nothing else is done. A fork takes it, so the child knows all of them and closes
 *         them.
 *   CTS3  The socket's file is removed by the process that made it, never by a child.
 *   CTS4  Before a number of a socket is used, mtprof__socket_is_ours() looks whether it is still
 *         ours. If the program has closed the listening one, the helper ends.
 */
#ifndef MTPROF_REMOTE_CONTROL_IMPL_H
#define MTPROF_REMOTE_CONTROL_IMPL_H

#include "mtprof/remote/control_line.h"

#include <mtprof/control.h>
#include <mtprof/session.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
    MTPROF__PEERS = 32,       /* connections at a time; others wait in the kernel's queue */
    MTPROF__PEER_QUEUE = 128, /* of the kernel */
    MTPROF__HALF_MS = 5000,   /* an unfinished line may take this long */
    MTPROF__IDLE_MS = 60000,  /* a connection without a request may stay this long */
    MTPROF__CROWDED_MS = 250, /* the same where others wait */
    MTPROF__FOLDER_BYTES = sizeof((struct sockaddr_un *)0)->sun_path
};

/* Where a socket is. */
typedef struct mtprof__control_place {
    struct sockaddr_un address;
} mtprof__control_place;

/* A socket of ours. A program may close any file, ours as well, and get the number for one of its
 * own: so a number is ours only while it names the same socket (CTS4). */
typedef struct mtprof__control_socket {
    int fd;         /* -1: none */
    uint64_t inode; /* of the socket: no two have the same */
} mtprof__control_socket;

/* A connection; there is none where `line` is NULL. */
typedef struct mtprof__control_peer {
    mtprof__control_socket socket;
    size_t used;      /* bytes of `line` */
    int64_t since_ms; /* of the last complete line, or of the connection */
    int64_t half_ms;  /* since then the line is unfinished; 0: there is none */
    char *line;       /* MTPROF__LINE_BYTES and CTL1's */
} mtprof__control_peer;

typedef struct mtprof__listener {
    uint32_t state; /* enum listener_state (CTS1); atomic */
    pthread_mutex_t sockets;
    mtprof__control_socket listening;
    uint32_t round; /* grows with each listen and close: a helper of an earlier one ends; atomic */
    mtprof__control_peer peers[MTPROF__PEERS];
    pid_t pid;
    uid_t uid;
    mtprof__control_place place;
    mtprof_control_config config; /* texts are not ours to keep: NULL */
    char rank[MTPROF_CONTROL_TEXT_BYTES];
    pthread_t thread;
    uint32_t left; /* the round whose helper has done all but return; atomic */
    /* the helper's */
    mtprof_session *session;   /* started over the socket, without the program's callback */
    uint64_t started_ticks;    /* of the latest recording that was started over the socket */
    uint64_t refused, dropped; /* connections */
    int64_t deaf_until_ms;     /* new connections wait until then */
} mtprof__listener;

/* The helper's work; ends when the round is over, or the listening socket is not ours any more. */
void mtprof__control_serve(mtprof__listener *listener, uint32_t round);

/* A socket by its number; there is none (-1) where fd is -1. */
mtprof__control_socket mtprof__socket_of(int fd);
bool mtprof__socket_is_ours(const mtprof__control_socket *s);
/* Closes it if it is ours; there is none after that. */
void mtprof__socket_close(mtprof__control_socket *s);

/* Does what a line asks for and writes the answer. */
void mtprof__control_answer(mtprof__listener *listener, char *line, size_t length,
                            mtb_writer *writer);
/* Ends a session that was started over the socket, if there is one. */
mtprof_status mtprof__control_end_session(mtprof__listener *listener);

/* ---- for both sides -------------------------------------------------------------------------- */

/* FOLDER/PID.sock. EINVAL: it is too long. */
mtprof_status mtprof__control_name(const char *folder, int64_t pid, mtprof__control_place *out);
/* Whether the folder is a user's own: a folder, owned by uid, that others cannot enter. `missing`
 * is the status where there is none. */
mtprof_status mtprof__control_check_folder(const char *folder, uid_t uid, mtprof_status missing);

#endif /* MTPROF_REMOTE_CONTROL_IMPL_H */
