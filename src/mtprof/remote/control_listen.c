/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket of a process that listens, and its helper thread; see control_impl.h (CTS1 to CTS4).
 *
 *      IDLE ──listen──► BUSY ──► LISTENING ──close──► BUSY ──► IDLE
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/remote/control_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum listener_state {
    IDLE = 0,
    BUSY,
    LISTENING
};

enum {
    LEAVE_MS = 1000, /* at the end of the process the helper has this long */
    LOST_MS = 50     /* and where it cannot be woken */
};

static mtprof__listener here = {.sockets = PTHREAD_MUTEX_INITIALIZER, .listening = {.fd = -1}};

static bool move(enum listener_state from, enum listener_state to)
{
    uint32_t expected = from;
    return __atomic_compare_exchange_n(&here.state, &expected, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static void settle(enum listener_state state)
{
    __atomic_store_n(&here.state, state, __ATOMIC_RELEASE); /* pairs with move() */
}

/* ---- names and folders ----------------------------------------------------------------------- */

mtprof_status mtprof_control_folder(const char *runtime, uint32_t uid, char *folder, size_t size)
{
    bool given = runtime != NULL && runtime[0] == '/';
    int length = given ? snprintf(folder, size, "%s/mtprof", runtime)
                       : snprintf(folder, size, "/tmp/mtprof-%u", uid);
    if (length < 0 || (size_t)length >= size) {
        return mtb_fail(MTPROF_EINVAL,
                        "control_folder: the path has %d bytes, there is room for %zu", length,
                        size);
    }
    return MTPROF_OK;
}

mtprof_status mtprof__control_name(const char *folder, int64_t pid, mtprof__control_place *out)
{
    struct sockaddr_un *address = &out->address;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length =
        snprintf(address->sun_path, sizeof address->sun_path, "%s/%" PRId64 ".sock", folder, pid);
    if (length < 0 || (size_t)length >= sizeof address->sun_path) {
        return mtb_fail(MTPROF_EINVAL,
                        "control: a socket's path has at most %zu bytes, %s/%" PRId64
                        ".sock has %d",
                        sizeof address->sun_path - 1, folder, pid, length);
    }
    return MTPROF_OK;
}

mtprof_status mtprof__control_check_folder(const char *folder, uid_t uid, mtprof_status missing)
{
    struct stat about;
    if (lstat(folder, &about) != 0) {
        return mtb_fail_errno(errno == ENOENT ? missing : MTPROF_EIO, errno, "control: %s", folder);
    }
    if (!S_ISDIR(about.st_mode)) {
        return mtb_fail(MTPROF_EINVAL, "control: %s is not a folder", folder);
    }
    if (about.st_uid != uid) {
        return mtb_fail(MTPROF_EINVAL, "control: %s belongs to user %u, not to %u", folder,
                        about.st_uid, uid);
    }
    if ((about.st_mode & 077) != 0) {
        return mtb_fail(MTPROF_EINVAL,
                        "control: %s has mode %04o: others can enter it, 0700 is needed", folder,
                        about.st_mode & 07777);
    }
    return MTPROF_OK;
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&here.sockets); /* CTS2 */
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&here.sockets);
}

static void after_fork_child(void)
{
    pthread_mutex_init(&here.sockets, NULL);
    mtprof__socket_close(&here.listening);
    for (size_t i = 0; i < MTPROF__PEERS; i++) {
        if (here.peers[i].line != NULL) {
            mtprof__socket_close(&here.peers[i].socket);
        }
    }
    settle(IDLE);
}

static void prepare_process(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- listening ------------------------------------------------------------------------------- */

static mtprof_status check_config(const mtprof_control_config *config, mtprof_control_config *copy)
{
    size_t least = offsetof(mtprof_control_config, rank);
    if (config == NULL || config->struct_size < least) {
        return mtb_fail(MTPROF_EINVAL, "control_listen: struct_size is %u, at least %zu is needed",
                        config != NULL ? config->struct_size : 0, least);
    }
    mtb_read_struct(copy, config);
    if (copy->folder == NULL || copy->folder[0] != '/') {
        return mtb_fail(MTPROF_EINVAL,
                        "control_listen: folder must be an absolute path, not \"%s\"",
                        copy->folder != NULL ? copy->folder : "");
    }
    if (copy->rank != NULL && strlen(copy->rank) >= sizeof here.rank) {
        return mtb_fail(MTPROF_EINVAL,
                        "control_listen: rank has %zu bytes, at most %zu are allowed",
                        strlen(copy->rank), sizeof here.rank - 1);
    }
    return MTPROF_OK;
}

/* Removes a socket of ours that an earlier process with our number left. EBUSY: somebody listens
 * there, a second copy of this library or a process of another container. */
static mtprof_status clear_name(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0) {
        return MTPROF_OK;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool lives = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
                             errno == EAGAIN);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (lives) {
        return mtb_fail(MTPROF_EBUSY, "control_listen: somebody listens at %s already",
                        address->sun_path);
    }
    (void)unlink(address->sun_path);
    return MTPROF_OK;
}

/* Under `sockets` (CTS2). */
static mtprof_status open_socket(void)
{
    const struct sockaddr_un *address = &here.place.address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    here.listening = mtprof__socket_of(fd);
    if (fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "control_listen: cannot make a socket");
    }
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "control_listen: %s", address->sun_path);
    }
    /* The folder keeps others out; this is for those who look at the socket alone. */
    if (chmod(address->sun_path, 0600) != 0 || listen(fd, MTPROF__PEER_QUEUE) != 0) {
        int error = errno;
        (void)unlink(address->sun_path);
        return mtb_fail_errno(MTPROF_EIO, error, "control_listen: %s", address->sun_path);
    }
    return MTPROF_OK;
}

static void close_listening(void)
{
    pthread_mutex_lock(&here.sockets);
    mtprof__socket_close(&here.listening);
    pthread_mutex_unlock(&here.sockets);
}

static void *run(void *round)
{
    mtprof__control_serve(&here, (uint32_t)(uintptr_t)round);
    __atomic_store_n(&here.left, (uint32_t)(uintptr_t)round, __ATOMIC_RELEASE); /* has_left() */
    return NULL;
}

static mtprof_status start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no signal of the user's is handled here */
    uint32_t round = __atomic_add_fetch(&here.round, 1, __ATOMIC_ACQ_REL);
    int error = pthread_create(&here.thread, NULL, run, (void *)(uintptr_t)round);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return mtb_fail_errno(MTPROF_ENOMEM, error, "control_listen: cannot start the thread");
    }
    pthread_setname_np(here.thread, "mtprof-control");
    return MTPROF_OK;
}

static mtprof_status begin(const mtprof_control_config *config)
{
    here.pid = getpid();
    here.uid = geteuid();
    here.refused = here.dropped = here.started_ticks = 0;
    for (size_t i = 0; i < MTPROF__PEERS; i++) { /* in a child: those of its parent */
        mtb_free(here.peers[i].line);
        here.peers[i].line = NULL;
    }
    here.rank[0] = '\0';
    if (config->rank != NULL) {
        memcpy(here.rank, config->rank, strlen(config->rank) + 1);
    }
    here.config = *config;
    here.config.folder = here.config.rank = NULL;
    MT_TRY(mtprof__control_name(config->folder, here.pid, &here.place));
    if (mkdir(config->folder, 0700) != 0 && errno != EEXIST) {
        return mtb_fail_errno(MTPROF_EIO, errno, "control_listen: %s", config->folder);
    }
    MT_TRY(mtprof__control_check_folder(config->folder, here.uid, MTPROF_EIO));
    MT_TRY(clear_name(&here.place.address));
    (void)mtprof_session_close(here.session); /* of a parent: its few bytes of memory */
    here.session = NULL;
    pthread_mutex_lock(&here.sockets);
    mtprof_status status = open_socket();
    pthread_mutex_unlock(&here.sockets);
    if (status == MTPROF_OK && (status = start_thread()) != MTPROF_OK) {
        (void)unlink(here.place.address.sun_path);
    }
    if (status != MTPROF_OK) {
        close_listening();
    }
    return status;
}

mtprof_status mtprof_control_listen(const mtprof_control_config *config)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mtprof_control_config checked = {0};
    MT_TRY(check_config(config, &checked));
    pthread_once(&once, prepare_process);
    if (!move(IDLE, BUSY)) {
        return mtb_fail(MTPROF_EBUSY, "control_listen: this process listens already");
    }
    mtprof_status status = begin(&checked);
    settle(status == MTPROF_OK ? LISTENING : IDLE);
    return status;
}

bool mtprof_control_path(char *path, size_t size)
{
    if (__atomic_load_n(&here.state, __ATOMIC_ACQUIRE) != LISTENING) {
        return false;
    }
    size_t length = strlen(here.place.address.sun_path);
    if (length >= size) {
        return false;
    }
    memcpy(path, here.place.address.sun_path, length + 1);
    return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool has_left(uint32_t round, int most_ms)
{
    struct timespec rest = {0, 1000 * 1000};
    for (int i = 0; i < most_ms; i++) {
        if (__atomic_load_n(&here.left, __ATOMIC_ACQUIRE) == round) {
            return true;
        }
        nanosleep(&rest, NULL);
    }
    return false;
}

/* The state is BUSY, and was LISTENING. wait: as long as the helper needs. */
static void end(bool wait)
{
    (void)unlink(here.place.address.sun_path); /* CTS3 */
    uint32_t round = __atomic_fetch_add(&here.round, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&here.sockets);
    bool ours = mtprof__socket_is_ours(&here.listening);
    if (ours) {
        (void)shutdown(here.listening.fd, SHUT_RDWR); /* wakes the helper */
    }
    pthread_mutex_unlock(&here.sockets);
    if ((ours && wait) || has_left(round, ours ? LEAVE_MS : LOST_MS)) {
        pthread_join(here.thread, NULL);
        close_listening();
        (void)mtprof__control_end_session(&here);
    } else { /* the program has closed our socket, and the helper waits for it without an end */
        pthread_detach(here.thread);
        here.listening.fd = -1;
    }
}

mtprof_status mtprof_control_close(void)
{
    if (!move(LISTENING, BUSY)) {
        return __atomic_load_n(&here.state, __ATOMIC_ACQUIRE) == IDLE
                   ? MTPROF_OK
                   : mtb_fail(MTPROF_EBUSY, "control_close: another thread is changing it");
    }
    end(true);
    settle(IDLE);
    return MTPROF_OK;
}

/* The process ends, or the library is unloaded. A child made without fork handlers has not the
 * helper, and the file is its parent's. */
__attribute__((destructor)) static void finish(void)
{
    if (__atomic_load_n(&here.state, __ATOMIC_ACQUIRE) == LISTENING && here.pid == getpid() &&
        !pthread_equal(here.thread, pthread_self()) && move(LISTENING, BUSY)) {
        end(false);
        settle(IDLE);
    }
}
