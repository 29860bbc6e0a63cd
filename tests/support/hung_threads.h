/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that hang in several ways, for tests of stacks. Time decides nothing: a thread hangs once
 * the kernel says that it is where it should be.
 */
#ifndef TESTS_SUPPORT_HUNG_THREADS_H
#define TESTS_SUPPORT_HUNG_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hung {
    pthread_t thread;
    pid_t tid;   /* atomic */
    int leave;   /* atomic */
    int pipe[2]; /* what it reads from */
    pthread_mutex_t *first, *second;
} hung;

/* For others that have their own ways to hang. */
void hung_start(hung *h, void *(*run)(void *));
void hung_arrive(hung *h);
void hung_wait_for_state(hung *h, char wanted);
/* Reads a byte that does not come: read_nothing() is on its stack. */
void *hung_blocked_read(void *argument);
/* Checks that the part of a thread in a text of stacks has something. */
void hung_check(const char *text, const hung *h, const char *wanted);

typedef struct hung_set {
    hung a, b;    /* each has a lock and waits for another */
    hung spin;    /* loops in C */
    hung reader;  /* reads from an empty pipe */
    hung blocker; /* likewise, and blocks all signals */
    pthread_mutex_t locks[2], held[2];
} hung_set;

void hung_begin(hung_set *set);
/* The stacks of all of them, as they should be. */
void hung_check_all(const hung_set *set, const char *text);
void hung_end(hung_set *set);

/* Leaves the case as skipped where signals do not reach threads that wait. */
void hung_skip_with_tsan(void);

#endif /* TESTS_SUPPORT_HUNG_THREADS_H */
