/* SPDX-License-Identifier: Apache-2.0
 *
 * Stock PyTorch as a host: libmtprof_torch makes every recording of the process show the ops of the
 * libtorch that is loaded in it. Nothing of PyTorch is needed to build it: functions are found by
 * their symbols, and the layout of torch's records is checked with known ops before it is used.
 *
 *     mtprof_torch_info info = {.struct_size = sizeof info};
 *     if (mtprof_torch_attach(&info) == MTPROF_OK) {
 *         printf("torch %s\n", mtprof_torch_tier_name(info.tier));
 *     }
 *
 * Linux on x86-64; torch 2.7 to 2.15. Link with libmtprof_torch and libmtprof.
 */
#ifndef MTPROF_TORCH_H
#define MTPROF_TORCH_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** How much of torch's records can be read, and how their layout is known. */
enum mtprof_torch_tier {
    MTPROF_TORCH_NONE = 0,    /**< not attached */
    MTPROF_TORCH_NAMES = 1,   /**< names, nesting, threads and scopes */
    MTPROF_TORCH_FULL = 2,    /**< inputs, sequence numbers and forward threads, too */
    MTPROF_TORCH_COMPILED = 3 /**< what FULL has, with the layout that a shim found */
};

/** Set struct_size. Texts are valid until the process ends. */
typedef struct mtprof_torch_info {
    uint32_t struct_size;
    uint32_t tier; /**< enum mtprof_torch_tier */
    bool memory;   /**< allocations are reported (profile_memory) */
    bool reserved[7];
    const char *missing; /**< why attach failed, why the tier is not the one that was chosen, or
                              what it lacks; "": nothing */
    uint64_t refused;    /**< threads whose allocations were not reported, because another profiler
                               held torch's place for them; since attach */
    uint64_t unreadable; /**< inputs that were not what the layout says, shown as none; likewise */
} mtprof_torch_info;

/** What to record beyond what recordings ask for. */
enum mtprof_torch_option {
    MTPROF_TORCH_OVERLOADS = 1 << 0, /**< overload names of ops ("Tensor" of aten::add.Tensor) */
    /** What torch annotates only while a profiler's state is set (parts of torch.compile): we set
     * one, so that torch.profiler says "already enabled" meanwhile. A recording of allocations does
     * the same. */
    MTPROF_TORCH_ANNOTATIONS = 1 << 1
};

/**
 * Attaches to the libtorch that is loaded: from now on recordings show its ops, one that is active
 * included. Further calls only fill in `info`, which may be NULL.
 *
 * Fails with ENOTSUP (no libtorch is loaded, it has no observers, or the processor is not x86-64;
 * `missing` names it), ENOMEM, EINVAL (struct_size 0). Not from a signal handler.
 */
MTPROF_API mtprof_status mtprof_torch_attach(mtprof_torch_info *info);

/**
 * Which tier the next attach uses; what is attached is detached. NAMES reads nothing but names.
 * FULL is the choice without this call: FULL where the layout is the known one, else NAMES.
 * COMPILED asks `shim`, a shared object made of torch_shim.cpp with the headers of the loaded
 * torch, for the layout, which is then checked as in FULL; where it cannot be used the tier is that
 * of FULL, and `missing` says why.
 *
 * Fails with EINVAL (another tier, COMPILED without a shim), ESTATE while something records
 * what is attached.
 */
MTPROF_API mtprof_status mtprof_torch_choose(uint32_t tier, const char *shim);

/** Recordings no longer show torch's ops. Does nothing without attach. */
MTPROF_API void mtprof_torch_detach(void);

/** enum mtprof_torch_option, from the next recording on. */
MTPROF_API void mtprof_torch_set_options(uint32_t options);

/** "none", "names", "full" or "compiled"; "unknown" for another number. */
MTPROF_API const char *mtprof_torch_tier_name(uint32_t tier);

MTPROF_END_DECLS

#endif /* MTPROF_TORCH_H */
