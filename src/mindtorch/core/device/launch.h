/* SPDX-License-Identifier: Apache-2.0
 *
 * Work for a device: kernels, copies and sets on the calling thread's current stream, each reported
 * to the profiler as a call of the device's runtime while it records.
 */
#ifndef MINDTORCH_CORE_DEVICE_LAUNCH_H
#define MINDTORCH_CORE_DEVICE_LAUNCH_H

#include "mindtorch/core/device/backends.h"

/* Fills in the remaining fields (struct_size, device, correlation) and calls the kernel of the
 * device's backend. MT_ENOTSUP: it has no such kernel. */
int mt__launch(mt_device device, mt_kernel_call *call);

/* Between host memory and a device (the host too). pinned: the host's memory is pinned, and the
 * caller keeps it until the stream has completed the copy; then nothing waits. */
int mt__copy_to_device(mt_device device, void *to, const void *from, size_t bytes, bool pinned);
int mt__copy_to_host(mt_device device, void *to, const void *from, size_t bytes, bool pinned);

/* Between accelerators: on the current stream of `from_device`, after what is on the current stream
 * of `to_device`, which waits for it. */
int mt__copy_peer(mt_device to_device, void *to, mt_device from_device, const void *from,
                  size_t bytes);

/* For accelerators only: the host uses a kernel. */
int mt__set_bytes(mt_device device, void *to, uint8_t value, size_t bytes);

#endif /* MINDTORCH_CORE_DEVICE_LAUNCH_H */
