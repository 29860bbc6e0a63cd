/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python stacks of all threads, see all_stacks.h.
 */
#include "profiler/stacks/all_stacks.h"

#include "profiler/profiler_state.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A question to the interpreter, and its answer. Shared by the thread that asks and the one that
 * waits for it; the last one frees it. */
typedef struct question {
    int references; /* atomic */
    sem_t answered;
    char *text; /* NULL: none */
    size_t length;
} question;

static PyObject *describe; /* the callable, under the GIL; NULL: not prepared */
static int waiting;        /* atomic: 1 while a thread still waits for the GIL */
static int frames_signal;  /* atomic: faulthandler writes to frames_file when it comes; 0: none */
static int frames_file = -1;

static void release(question *q)
{
    if (__atomic_sub_fetch(&q->references, 1, __ATOMIC_ACQ_REL) == 0) {
        sem_destroy(&q->answered);
        free(q->text);
        free(q);
    }
}

static void take_answer(question *q)
{
    PyObject *text = describe != NULL ? PyObject_CallNoArgs(describe) : NULL;
    char *bytes;
    Py_ssize_t length;
    if (text != NULL && PyBytes_AsStringAndSize(text, &bytes, &length) == 0) {
        q->text = malloc((size_t)length + 1);
        if (q->text != NULL) {
            memcpy(q->text, bytes, (size_t)length);
            q->length = (size_t)length;
        }
    }
    PyErr_Clear();
    Py_XDECREF(text);
}

static void *ask(void *argument)
{
    question *q = argument;
    PyGILState_STATE state = PyGILState_Ensure(); /* may take for ever */
    take_answer(q);
    PyGILState_Release(state);
    __atomic_store_n(&waiting, 0, __ATOMIC_RELEASE);
    sem_post(&q->answered);
    release(q);
    return NULL;
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        text += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* APS1. False: no answer in time. */
static bool write_with_lock(int fd, uint64_t wait_ns)
{
    int none = 0;
    question *q = calloc(1, sizeof *q);
    if (q == NULL || !__atomic_compare_exchange_n(&waiting, &none, 1, false, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_RELAXED)) {
        free(q);
        return false;
    }
    q->references = 2;
    sem_init(&q->answered, 0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask, q) != 0) {
        __atomic_store_n(&waiting, 0, __ATOMIC_RELEASE);
        q->references = 1;
        release(q);
        return false;
    }
    pthread_detach(thread);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t ns = (uint64_t)end.tv_nsec + wait_ns;
    end.tv_sec += (time_t)(ns / 1000000000u);
    end.tv_nsec = (long)(ns % 1000000000u);
    int got;
    while ((got = sem_clockwait(&q->answered, CLOCK_MONOTONIC, &end)) != 0 && errno == EINTR) {
    }
    bool written = got == 0 && q->text != NULL && write_all(fd, q->text, q->length);
    release(q);
    return written;
}

/* APS2 */
static bool write_without_lock(int fd, uint64_t wait_ns)
{
    int number = __atomic_load_n(&frames_signal, __ATOMIC_ACQUIRE);
    if (number == 0 || ftruncate(frames_file, 0) != 0 || lseek(frames_file, 0, SEEK_SET) != 0) {
        return false;
    }
    sigset_t only, before;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, &before);
    pthread_kill(pthread_self(), number); /* handled before it returns */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    char part[4096];
    int length = snprintf(part, sizeof part,
                          "Python's lock was not given within %.1f s: its holder is in C code.\n"
                          "Frames read without it:\n\n",
                          (double)wait_ns / 1e9);
    bool written = write_all(fd, part, (size_t)length);
    ssize_t got;
    for (off_t at = 0; written && (got = pread(frames_file, part, sizeof part, at)) > 0;
         at += got) {
        written = write_all(fd, part, (size_t)got);
    }
    return written;
}

bool all_stacks_write(void *Py_UNUSED(user), int fd, uint64_t wait_ns)
{
    return write_with_lock(fd, wait_ns) || write_without_lock(fd, wait_ns);
}

static int find_signal(void)
{
    for (int i = SIGRTMAX - 4; i > SIGRTMIN; i--) {
        struct sigaction now;
        if (sigaction(i, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL) {
            return i;
        }
    }
    return 0;
}

static PyObject *prepare_stacks(PyObject *Py_UNUSED(self), PyObject *callable)
{
    PyObject *faulthandler = NULL, *done = NULL;
    int number = find_signal();
    if (frames_signal == 0 && number != 0) {
        frames_file = frames_file >= 0 ? frames_file : memfd_create("mtprof frames", MFD_CLOEXEC);
        faulthandler = frames_file >= 0 ? PyImport_ImportModule("faulthandler") : NULL;
        done = faulthandler != NULL
                   ? PyObject_CallMethod(faulthandler, "register", "ii", number, frames_file)
                   : NULL;
        if (done != NULL) {
            __atomic_store_n(&frames_signal, number, __ATOMIC_RELEASE);
        } else {
            PyErr_Clear(); /* no faulthandler here: what needs it says so */
        }
    }
    Py_XDECREF(done);
    Py_XDECREF(faulthandler);
    Py_XSETREF(describe, Py_NewRef(callable));
    Py_RETURN_NONE;
}

static PyObject *forget_stacks(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    int number = __atomic_exchange_n(&frames_signal, 0, __ATOMIC_ACQ_REL);
    if (number != 0) {
        PyObject *faulthandler = PyImport_ImportModule("faulthandler");
        PyObject *done = faulthandler != NULL
                             ? PyObject_CallMethod(faulthandler, "unregister", "i", number)
                             : NULL;
        PyErr_Clear();
        Py_XDECREF(done);
        Py_XDECREF(faulthandler);
    }
    Py_CLEAR(describe);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"prepare_stacks", prepare_stacks, METH_O,
     "prepare_stacks(describe): for stacks of a hang; describe() returns them as bytes."},
    {"forget_stacks", forget_stacks, METH_NOARGS, "forget_stacks(): ends that."},
    {NULL, NULL, 0, NULL},
};

py_part all_stacks_part;
int all_stacks_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
