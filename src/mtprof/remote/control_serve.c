/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of a process that listens: one thread, poll(), and bounds for everything that a peer
 * can send or leave out. A peer that does not read its answers is closed: nothing here waits for
 * one.
 */
#include "base/alloc.h"
#include "mtprof/remote/control_impl.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    DEAF_MS = 100 /* after an accept that failed */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- sockets --------------------------------------------------------------------------------- */

mtprof__control_socket mtprof__socket_of(int fd)
{
    struct stat about = {0};
    bool known = fd >= 0 && fstat(fd, &about) == 0;
    return (mtprof__control_socket){.fd = fd, .inode = known ? about.st_ino : 0};
}

bool mtprof__socket_is_ours(const mtprof__control_socket *s)
{
    struct stat about;
    return s->fd >= 0 && fstat(s->fd, &about) == 0 && S_ISSOCK(about.st_mode) &&
           about.st_ino == s->inode;
}

void mtprof__socket_close(mtprof__control_socket *s)
{
    if (mtprof__socket_is_ours(s)) {
        (void)close(s->fd);
    }
    s->fd = -1;
}

static bool is_open(const mtprof__control_peer *peer)
{
    return peer->line != NULL;
}

static void close_peer(mtprof__listener *listener, mtprof__control_peer *peer)
{
    char *line = peer->line;
    pthread_mutex_lock(&listener->sockets); /* CTS2 */
    mtprof__socket_close(&peer->socket);
    peer->line = NULL;
    pthread_mutex_unlock(&listener->sockets);
    mtb_free(line);
}

static void drop_peer(mtprof__listener *listener, mtprof__control_peer *peer)
{
    listener->dropped++;
    close_peer(listener, peer);
}

/* A writer's sink: all of it or a failure. */
static int send_bytes(void *context, const void *bytes, size_t length)
{
    const mtprof__control_peer *peer = context;
    if (!mtprof__socket_is_ours(&peer->socket)) { /* CTS4 */
        return -1;
    }
    ssize_t sent = send(peer->socket.fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == (ssize_t)length ? 0 : -1;
}

/* ---- new connections ------------------------------------------------------------------------- */

static mtprof__control_peer *find_free(mtprof__listener *listener)
{
    for (size_t i = 0; i < MTPROF__PEERS; i++) {
        if (!is_open(&listener->peers[i])) {
            return &listener->peers[i];
        }
    }
    return NULL;
}

static bool may_ask(const mtprof__listener *listener, int fd)
{
    struct ucred who;
    socklen_t length = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
           (who.uid == listener->uid || who.uid == 0);
}

static bool greet(const mtprof__listener *listener, mtprof__control_peer *peer)
{
    mtb_writer writer;
    if (mtb_writer_init(&writer, send_bytes, peer)) {
        mtprof__control_write_hello(&writer, listener->pid);
    }
    return mtb_writer_finish(&writer) == 0;
}

/* Takes a connection from the queue into the free place. False: there is none. */
static bool take_peer(mtprof__listener *listener, mtprof__control_peer *peer)
{
    char *line = mtb_calloc(1, MTPROF__LINE_BYTES + MTPROF__LINE_PAD);
    pthread_mutex_lock(&listener->sockets); /* CTS2 */
    int fd = accept4(listener->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int error = errno;
    bool welcome = fd >= 0 && line != NULL && may_ask(listener, fd);
    if (welcome) {
        *peer = (mtprof__control_peer){
            .socket = mtprof__socket_of(fd), .since_ms = now_ms(), .line = line};
    } else if (fd >= 0) {
        (void)close(fd);
    }
    pthread_mutex_unlock(&listener->sockets);
    if (!welcome) {
        listener->refused += fd >= 0 && line != NULL;
        listener->dropped += fd >= 0 && line == NULL;
        mtb_free(line);
        if (fd < 0 && error != EAGAIN && error != ECONNABORTED && error != EINTR) {
            /* No descriptor is free, say: poll() would report the connection again at once. */
            listener->deaf_until_ms = now_ms() + DEAF_MS;
        }
        return fd >= 0 || error == ECONNABORTED || error == EINTR;
    }
    if (!greet(listener, peer)) {
        drop_peer(listener, peer);
    }
    return true;
}

static void take_peers(mtprof__listener *listener)
{
    mtprof__control_peer *peer;
    while ((peer = find_free(listener)) != NULL && take_peer(listener, peer)) {
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Answers the complete lines that the peer has sent. False: it is to be closed. */
static bool answer_lines(mtprof__listener *listener, mtprof__control_peer *peer)
{
    char *end;
    while ((end = memchr(peer->line, '\n', peer->used)) != NULL) {
        size_t length = (size_t)(end - peer->line);
        size_t rest = peer->used - length - 1;
        char *copy = mtb_calloc(1, length + MTPROF__LINE_PAD); /* reading writes behind it (CTL1) */
        mtb_writer writer;
        if (!mtb_writer_init(&writer, send_bytes, peer) || copy == NULL) {
            (void)mtb_writer_finish(&writer);
            mtb_free(copy);
            return false;
        }
        memcpy(copy, peer->line, length);
        mtprof__control_answer(listener, copy, length, &writer);
        mtb_free(copy);
        if (mtb_writer_finish(&writer) != 0) {
            return false;
        }
        memmove(peer->line, end + 1, rest);
        peer->used = rest;
        peer->since_ms = now_ms();
        peer->half_ms = 0;
    }
    if (peer->used > 0 && peer->half_ms == 0) {
        peer->half_ms = now_ms();
    }
    return peer->used < MTPROF__LINE_BYTES; /* a line that is too long has no answer */
}

static void hear_peer(mtprof__listener *listener, mtprof__control_peer *peer)
{
    if (!mtprof__socket_is_ours(&peer->socket)) { /* CTS4 */
        drop_peer(listener, peer);
        return;
    }
    ssize_t got = recv(peer->socket.fd, peer->line + peer->used, MTPROF__LINE_BYTES - peer->used,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        if (peer->used > 0) {
            listener->dropped++; /* in the middle of a line */
        }
        close_peer(listener, peer);
        return;
    }
    peer->used += (size_t)got;
    if (!answer_lines(listener, peer)) {
        drop_peer(listener, peer);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* When the connection is to be closed. */
static int64_t deadline(const mtprof__control_peer *peer, bool crowded)
{
    int64_t idle = peer->since_ms + (crowded ? MTPROF__CROWDED_MS : MTPROF__IDLE_MS);
    int64_t half = peer->half_ms != 0 ? peer->half_ms + MTPROF__HALF_MS : INT64_MAX;
    return idle < half ? idle : half;
}

static void close_late(mtprof__listener *listener, bool crowded, int64_t now)
{
    for (size_t i = 0; i < MTPROF__PEERS; i++) {
        mtprof__control_peer *peer = &listener->peers[i];
        if (is_open(peer) && deadline(peer, crowded) <= now) {
            drop_peer(listener, peer);
        }
    }
}

/* Milliseconds until there is something to do; -1: nothing by time. */
static int time_left(const mtprof__listener *listener, bool crowded, int64_t now)
{
    int64_t first = listener->deaf_until_ms > now ? listener->deaf_until_ms : INT64_MAX;
    for (size_t i = 0; i < MTPROF__PEERS; i++) {
        const mtprof__control_peer *peer = &listener->peers[i];
        if (is_open(peer) && deadline(peer, crowded) < first) {
            first = deadline(peer, crowded);
        }
    }
    return first == INT64_MAX ? -1 : first <= now ? 0 : (int)(first - now);
}

static bool is_over(const mtprof__listener *listener, uint32_t round)
{
    return __atomic_load_n(&listener->round, __ATOMIC_ACQUIRE) != round;
}

void mtprof__control_serve(mtprof__listener *listener, uint32_t round)
{
    enum {
        NEW,
        FIRST
    };
    struct pollfd polled[FIRST + MTPROF__PEERS];
    while (!is_over(listener, round) && mtprof__socket_is_ours(&listener->listening)) {
        /* Where all places are taken, others may wait: places free themselves sooner then. */
        bool crowded = find_free(listener) == NULL;
        int64_t now = now_ms();
        bool deaf = crowded || listener->deaf_until_ms > now;
        polled[NEW] =
            (struct pollfd){.fd = listener->listening.fd, .events = (short)(deaf ? 0 : POLLIN)};
        for (size_t i = 0; i < MTPROF__PEERS; i++) {
            const mtprof__control_peer *peer = &listener->peers[i];
            polled[FIRST + i] =
                (struct pollfd){.fd = is_open(peer) ? peer->socket.fd : -1, .events = POLLIN};
        }
        int ready = poll(polled, FIRST + MTPROF__PEERS, time_left(listener, crowded, now));
        if (is_over(listener, round)) {
            break;
        }
        if (ready < 0 && errno != EINTR) {
            struct timespec rest = {0, 100 * 1000 * 1000}; /* no memory in the kernel */
            nanosleep(&rest, NULL);
            continue;
        }
        for (size_t i = 0; ready > 0 && i < MTPROF__PEERS; i++) {
            if (polled[FIRST + i].revents != 0) {
                hear_peer(listener, &listener->peers[i]);
            }
        }
        if (ready > 0 && (polled[NEW].revents & POLLIN) != 0 &&
            mtprof__socket_is_ours(&listener->listening)) {
            take_peers(listener);
        }
        close_late(listener, crowded, now_ms());
    }
    if (is_over(listener, round) && !mtprof__socket_is_ours(&listener->listening)) {
        return; /* nobody waited: all of it may be another helper's by now */
    }
    for (size_t i = 0; i < MTPROF__PEERS; i++) {
        if (is_open(&listener->peers[i])) {
            close_peer(listener, &listener->peers[i]);
        }
    }
}
