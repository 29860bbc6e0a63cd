/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls of the simulated accelerator (MINDTORCH_NPU=sim), for tests of programs and of the
 * runtime: hold its work back, count what is queued, make it fail.
 *
 *     const mt_sim *sim = mt_backend_extension(MT_DEVICE_TYPE_NPU, "sim");
 *
 * Settings, read when it is opened:
 *
 *     MINDTORCH_NPU_SIM_DEVICES      how many there are (1; at most 16)
 *     MINDTORCH_NPU_SIM_MEMORY       bytes of each, optionally followed by K, M or G; default: a
 *                                    quarter of the machine's
 *     MINDTORCH_NPU_SIM_LATENCY_NS   from a launch to its start at the earliest (0)
 *     MINDTORCH_NPU_SIM_KERNEL_NS    that a kernel takes at least (0)
 *     MINDTORCH_NPU_LAUNCH_BLOCKING  1: every call waits for its work and reports its failure
 */
#ifndef MINDTORCH_SIM_H
#define MINDTORCH_SIM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mt_sim_counts {
    uint32_t struct_size; /**< set by the caller */
    uint32_t waiting;     /**< pieces of work on the stream that are not done */
    uint32_t most;        /**< the maximum of `waiting` since reset */
    uint32_t gave_up;     /**< holds that ended before their launches arrived */
    uint64_t launches;    /**< kernels, copies and sets since reset */
    uint64_t done;
    uint64_t stalled; /**< calls since reset that waited because 4,096 were queued */
    uint32_t holding; /**< 1 while the stream's worker is in a hold */
    uint32_t reserved;
} mt_sim_counts;

typedef struct mt_sim {
    uint32_t struct_size;
    uint32_t reserved;
    /** Puts a kernel "sim_hold" on a stream (its number; 0: the default one) that ends when
     * `launches` more pieces of work have been put on the same stream, or when release is called.
     * It gives up if a thread waits for the device or the stream before the launches have arrived.
     * correlation: as in mt_kernel_call. */
    int (*hold)(uint32_t device, uint32_t stream, uint32_t launches, uint64_t correlation);
    int (*release)(uint32_t device, uint32_t stream);
    int (*counts)(uint32_t device, uint32_t stream, mt_sim_counts *counts);
    int (*reset_counts)(uint32_t device, uint32_t stream);
    /** Lets `after` more launches on the device pass; the next one fails with this status and text
     * when it runs. */
    int (*fail)(uint32_t device, uint32_t after, int status, const char *message);
    /** With true the device is lost: queued work is dropped (and reported to the sink), every call
     * fails. With false it is back, with nothing queued; memory keeps its contents. */
    int (*lose)(uint32_t device, bool lost);
} mt_sim;

#endif /* MINDTORCH_SIM_H */
