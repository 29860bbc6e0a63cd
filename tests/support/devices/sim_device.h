/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated accelerator in a test: opened from the build folder, with its controls. Each test
 * case is a process of its own, so settings are made before it is opened.
 */
#ifndef TESTS_SUPPORT_DEVICES_SIM_DEVICE_H
#define TESTS_SUPPORT_DEVICES_SIM_DEVICE_H

#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>
#include <mindtorch/sim.h>

#include <sched.h>
#include <stdlib.h>

/* MT_SIM_FILE comes from CMake: where the shared object is. */
static inline const mt_sim *sim_open(const char *devices, const char *memory)
{
    REQUIRE(setenv("MINDTORCH_NPU_SIM_DEVICES", devices, 1) == 0);
    REQUIRE(setenv("MINDTORCH_NPU_SIM_MEMORY", memory, 1) == 0);
    REQUIRE_OK(mt_backend_load(MT_SIM_FILE));
    const mt_sim *sim = mt_backend_extension(MT_DEVICE_TYPE_NPU, "sim");
    REQUIRE(sim != NULL);
    return sim;
}

/* `count` floats, 1 each, on a device. */
static inline mt_tensor *sim_ones(mt_device device, int64_t count)
{
    mt_tensor *made;
    REQUIRE_OK(mt_ones_with(&count, 1, MT_DTYPE_F32, device, &made));
    return made;
}

static inline mt_sim_counts sim_counts(const mt_sim *sim, uint32_t device, uint32_t stream)
{
    mt_sim_counts counts = {.struct_size = sizeof counts};
    REQUIRE_OK(sim->counts(device, stream, &counts));
    return counts;
}

/* Puts a hold on a stream and returns when the device has reached it: from then on the two
 * overlap. */
static inline void sim_hold_now(const mt_sim *sim, uint32_t stream, uint32_t launches,
                                uint64_t correlation)
{
    REQUIRE_OK(sim->hold(0, stream, launches, correlation));
    while (sim_counts(sim, 0, stream).holding == 0) {
        sched_yield();
    }
}

#endif /* TESTS_SUPPORT_DEVICES_SIM_DEVICE_H */
