/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA GPUs: libmtprof_cupti makes every recording of the process show what CUDA was asked to do
 * (launches, copies, sets, waits) and what the GPUs did, through NVIDIA's libcupti. Nothing of CUDA
 * is needed to build it: libcupti and libcuda are opened at run time.
 *
 *     mtprof_cupti_info info = {.struct_size = sizeof info};
 *     if (mtprof_cupti_attach(&info) != MTPROF_OK) {
 *         printf("no GPU in the profile: %s\n", info.missing);
 *     }
 *
 * Linux on x86-64; libcupti of CUDA 12.0 to 13.4. CUPTI serves one profiler at a time: while
 * another one has it, a recording goes on without the GPU and says so (a warning of the session,
 * and `missing`). After a recording CUPTI is detached from the process, so that a launch costs what
 * it did before. Link with libmtprof_cupti and libmtprof.
 */
#ifndef MTPROF_CUPTI_H
#define MTPROF_CUPTI_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Set struct_size. Texts are valid until the process ends; counts are since attach. */
typedef struct mtprof_cupti_info {
    uint32_t struct_size;
    uint32_t version;    /**< as cuptiGetVersion() says: 18 to 28 for CUDA 12, 130000 and more for
                              CUDA 13; 0: no libcupti was found */
    const char *library; /**< the file that was opened, "" without one */
    const char *missing; /**< why attach failed, or why the latest recording is without the GPU, or
                              what it lacks; "": nothing */
    bool running;        /**< CUPTI is in use now */
    bool reserved[7];
    uint64_t records;           /**< of device work that were read */
    uint64_t unreadable;        /**< records that were not what the layout says: left out */
    uint64_t dropped;           /**< records that CUPTI dropped, because the buffers were full */
    uint64_t unjoined;          /**< records whose call was not seen, or too long ago */
    uint64_t waits_failed;      /**< waits for the GPU that took all their time (device_wait_ns) */
    uint64_t replayed;          /**< records of nodes of CUDA graphs */
    uint64_t replayed_unknown;  /**< of these, without the op that captured the node */
    uint64_t nodes_lost;        /**< nodes that were not remembered: there is room for a million */
    uint64_t dependencies_lost; /**< nodes whose dependencies are not known, or not all of them,
                                     where they were asked for */
} mtprof_cupti_info;

/** What to record beyond launches, copies and sets. */
enum mtprof_cupti_option {
    /** What streams and events waited for, as events of the GPU's streams (torch's cuda_sync). */
    MTPROF_CUPTI_WAITS = 1 << 0,
    /** Which nodes of a CUDA graph wait for which, as arrows between the work of a replay ("graph
     * dependencies" in its metadata). Of graphs that are instantiated from then on. */
    MTPROF_CUPTI_DEPENDENCIES = 1 << 1
};

/**
 * Finds libcupti: the file that the environment variable CUPTI_LIBRARY names, the one that is
 * loaded already, the one of the CUDA libraries from PyPI that are loaded, the one that the loader
 * finds, that of a toolkit in /usr/local. From now on recordings show the GPUs, one that is active
 * included. Further calls only fill in `info`, which may be NULL.
 *
 * Fails with ENOTSUP (no libcupti, an unknown version of it, no driver; `missing` says which),
 * ENOMEM, EINVAL (struct_size 0). Not from a signal handler.
 */
MTPROF_API mtprof_status mtprof_cupti_attach(mtprof_cupti_info *info);

/** Recordings no longer show GPUs. Where one is active it waits for their work, at most 30 seconds.
 * Does nothing without attach. */
MTPROF_API void mtprof_cupti_detach(void);

/** enum mtprof_cupti_option, from the next recording on. Whoever starts a program can ask for them,
 * too: MTPROF_CUPTI=waits,dependencies in its environment, which attach reads (EINVAL if it has
 * another word). */
MTPROF_API void mtprof_cupti_set_options(uint32_t options);

MTPROF_END_DECLS

#endif /* MTPROF_CUPTI_H */
