/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that exists only in tests: an event source with a clock of its own and a worker thread
 * that takes launches, finishes them later, reports them out of order and can lose some.
 *
 *      sd_launch() ─► queue ─► worker: start, end on the device's clock ─► done, shuffled ─► push
 */
#ifndef TESTS_SUPPORT_DEVICES_SYNTHETIC_DEVICE_H
#define TESTS_SUPPORT_DEVICES_SYNTHETIC_DEVICE_H

#include <mtprof/source.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct synthetic_device synthetic_device;

/* Zero is a good default for everything. */
typedef struct sd_config {
    const char *name;        /* "synthetic" */
    const char *device_type; /* "SYN" */
    double rate;             /* device ticks per nanosecond; 0.7 */
    uint64_t offset;         /* device time at nanosecond 0 */
    uint64_t work_ns;        /* how long a piece of work takes; 1000 */
    uint32_t batch;          /* done work is reported in batches of this size; 16 */
    uint32_t drop_every;     /* every nth record is lost, and said to be; 0: none */
    uint64_t needs;          /* as in mtprof_source_ops */
    mtprof_status start_status;
} sd_config;

/* Registers the device and starts its worker. Failures leave the case. */
synthetic_device *sd_new(const sd_config *config);
/* Unregisters it and waits for the worker. Accepts NULL. */
void sd_free(synthetic_device *device);

/* Queues work under a launch key (0: none). The name is copied, at most 31 bytes. */
void sd_launch(synthetic_device *device, const char *name, uint64_t launch_key, uint32_t queue);

/* The device's clock. */
uint64_t sd_now(const synthetic_device *device);

/* While held, what is done is kept back: flush gives up after its time. */
void sd_hold(synthetic_device *device, bool on);
/* Waits until everything that was launched is done (and, unless held, reported). */
void sd_drain(synthetic_device *device);

/* What happened, for comparison. */
typedef struct sd_facts {
    uint32_t starts, stops, flushes, clocks; /* callbacks */
    uint64_t wants;                          /* of the last start */
    uint64_t launched, reported, dropped;
    uint64_t last_timeout_ns;
} sd_facts;
sd_facts sd_get_facts(synthetic_device *device);

/* The recorder's ticks right before the start and right after the end of a piece of work, by its
 * correlation id (1 is the first launch). */
void sd_bracket(synthetic_device *device, uint64_t correlation, uint64_t *before, uint64_t *after);

mtprof_source *sd_source(synthetic_device *device);

#endif /* TESTS_SUPPORT_DEVICES_SYNTHETIC_DEVICE_H */
