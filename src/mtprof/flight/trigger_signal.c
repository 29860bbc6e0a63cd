/* SPDX-License-Identifier: Apache-2.0
 *
 * The signal that asks for a dump, see trigger_signal.h.
 */
#include "mtprof/flight/trigger_signal.h"

#include "base/compiler.h"
#include "base/fail.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

sem_t mtprof__trigger_wake;

static int taken;     /* atomic; 0: none. One recorder at a time takes it */
static pid_t owner;   /* the process that took it */
static uint32_t came; /* atomic */
static struct sigaction before;

static bool is_one_of(int number, const int *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

static bool had_handler(void)
{
    return (before.sa_flags & SA_SIGINFO) != 0 ||
           (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
}

static void note(int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (getpid() == owner) {
        __atomic_add_fetch(&came, 1, __ATOMIC_ACQ_REL);
        sem_post(&mtprof__trigger_wake);
    } else if (!had_handler()) { /* TRS3 */
        sigaction(number, &before, NULL);
        kill(getpid(), number); /* comes once this handler has returned */
    }
    if (had_handler()) { /* TRS1 */
        if ((before.sa_flags & SA_SIGINFO) != 0) {
            before.sa_sigaction(number, info, context);
        } else {
            before.sa_handler(number);
        }
    }
    errno = error;
}

mtprof_status mtprof__trigger_take_signal(int number)
{
    static const int refused[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    if (number <= 0 || number > SIGRTMAX || is_one_of(number, refused, MT_COUNT(refused))) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: signal %d cannot ask for a dump", number);
    }
    if (sigaction(number, NULL, &before) != 0) {
        return mtb_fail_errno(MTPROF_EINVAL, errno, "flight_start: signal %d", number);
    }
    __atomic_store_n(&came, 0, __ATOMIC_RELEASE);
    owner = getpid();
    struct sigaction action = {.sa_sigaction = note,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    __atomic_store_n(&taken, number, __ATOMIC_RELEASE);
    if (sigaction(number, &action, NULL) != 0) {
        __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
        return mtb_fail_errno(MTPROF_EINVAL, errno, "flight_start: signal %d", number);
    }
    return MTPROF_OK;
}

void mtprof__trigger_give_signal(void)
{
    int number = __atomic_exchange_n(&taken, 0, __ATOMIC_ACQ_REL);
    struct sigaction now;
    if (number != 0 && sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == note) {
        sigaction(number, &before, NULL);
    }
}

uint32_t mtprof__trigger_signals(void)
{
    return __atomic_exchange_n(&came, 0, __ATOMIC_ACQ_REL);
}

void mtprof__trigger_end_program(void)
{
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU};
    int number = __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
    if (is_one_of(number, ending, MT_COUNT(ending)) && !had_handler() &&
        before.sa_handler == SIG_DFL) {
        mtprof__trigger_give_signal();
        kill(getpid(), number); /* to a thread that does not block it */
    }
}
