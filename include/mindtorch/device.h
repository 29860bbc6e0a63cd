/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: where memory is and where kernels run. A device is a small number, 0 is the host. A
 * backend serves the accelerator (backend.h).
 */
#ifndef MINDTORCH_DEVICE_H
#define MINDTORCH_DEVICE_H

#include <mindtorch/status.h>

#include <stdint.h>

MT_BEGIN_DECLS

/** Type in the upper byte, index in the lower one. */
typedef int32_t mt_device;

typedef enum mt_device_type {
    MT_DEVICE_TYPE_CPU = 0,
    MT_DEVICE_TYPE_NPU = 1,  /**< the accelerator, whichever backend serves it */
    MT_DEVICE_TYPE_META = 2, /**< no memory and no work: shapes, types and strides alone */
    MT_DEVICE_TYPE_COUNT
} mt_device_type;

enum {
    MT_DEVICE_NONE = -1, /**< not given: the host, or where the input is */
    MT_CPU = 0,
    MT_NPU = 1 << 8, /**< plus the index */
    MT_META = 2 << 8 /**< tensors without elements: ops compute what their results look like */
};

/** Memory of a device as its allocator counts it: exact after every call. */
typedef struct mt_memory_stats {
    uint32_t struct_size;          /**< set by the caller */
    uint32_t reserved;             /**< leave zero */
    uint64_t allocated_bytes;      /**< handed out to tensors now */
    uint64_t peak_allocated_bytes; /**< since the start or the last reset */
    uint64_t reserved_bytes;       /**< taken from the backend now, cached blocks included */
    uint64_t peak_reserved_bytes;
    uint64_t allocations; /**< blocks handed out since the start */
    uint64_t releases;    /**< blocks given back since the start */
} mt_memory_stats;

/** How many devices of a type there are now; 0 where no backend serves it. The first query about
 * accelerators opens the backend that the environment names (backend.h), so a program that wants
 * them profiled calls this before it starts a profile. */
MT_API uint32_t mt_device_count(mt_device_type type);

/** "cpu", "npu:0", "meta"; never NULL. */
MT_API const char *mt_device_name(mt_device device);

/** "cpu", "npu" (the thread's current one), "npu:1", "cuda" (the same as npu), "meta". MT_ERUNTIME
 * names what it did not understand.
 */
MT_API mt_status mt_device_parse(const char *text, mt_device *device);

/** Waits for everything that was started on the device. */
MT_API mt_status mt_device_synchronize(mt_device device);

/** The allocator's counters; resetting the peaks sets them to what is in use now. */
MT_API mt_status mt_device_get_memory_stats(mt_device device, mt_memory_stats *stats);
MT_API mt_status mt_device_reset_peaks(mt_device device);

/** Gives cached blocks that no tensor uses back to the backend. */
MT_API mt_status mt_device_empty_cache(mt_device device);

/** Host threads for large work: at least 1. The default is the number of processors. */
MT_API mt_status mt_set_num_threads(uint32_t count);
MT_API uint32_t mt_num_threads(void);

MT_END_DECLS

#endif /* MINDTORCH_DEVICE_H */
