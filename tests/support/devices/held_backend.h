/* SPDX-License-Identifier: Apache-2.0
 *
 * An accelerator whose streams do not run until a test lets them: work is a number that is queued
 * and a number that is done. Waiting for a stream finishes its work, and is counted. Copies
 * move their bytes at once: only their place in the queue matters.
 */
#ifndef TESTS_SUPPORT_DEVICES_HELD_BACKEND_H
#define TESTS_SUPPORT_DEVICES_HELD_BACKEND_H

#include <mindtorch/stream.h>

#include <stdatomic.h>
#include <stddef.h>

typedef struct held_device {
    /* what the test sets */
    size_t limit;        /* bytes of device 0 and 1 together; SIZE_MAX at first */
    size_t pinned_limit; /* bytes of pinned memory */
    bool lost;           /* every call fails with MT_EDEVICE */
    bool refuse_events, refuse_records;
    bool no_info;                  /* device_info fails */
    _Atomic(const char *) failure; /* of an earlier kernel: reported once, by a call that waits */
    /* what it reads */
    _Atomic size_t given, pinned;    /* bytes that are out */
    _Atomic uint64_t waits;          /* calls that waited */
    _Atomic uint64_t events;         /* that exist */
    _Atomic uint64_t copies[2];      /* ordinary ones, pinned ones */
    _Atomic uint64_t released_early; /* segments given back while work was queued */
} held_device;

extern held_device held;

/* Registers it, with two devices. */
void held_open(void);

/* Puts work on a stream; nothing finishes it but these and what waits. */
void held_work(mt_stream *stream);
void held_finish(mt_stream *stream);
/* From now on work is done when it is queued. */
void held_let_go(void);

#endif /* TESTS_SUPPORT_DEVICES_HELD_BACKEND_H */
