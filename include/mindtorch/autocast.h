/* SPDX-License-Identifier: Apache-2.0
 *
 * Autocast: while it is on, ops of the calling thread choose the type that they compute in, as
 * torch.amp does. Matrix products and convolutions cast floating-point arguments to the lower type,
 * losses and others that need range to float32, and cat and stack to the widest of their arguments.
 * Ops without such a rule take what they get. float64 is left alone.
 *
 *     mt_autocast_enter();
 *     bool before = mt_autocast_set_enabled(MT_DEVICE_TYPE_CPU, true);
 *     ... forward pass ...
 *     mt_autocast_set_enabled(MT_DEVICE_TYPE_CPU, before);
 *     mt_autocast_leave();          the outermost one drops the cached casts of parameters
 */
#ifndef MINDTORCH_AUTOCAST_H
#define MINDTORCH_AUTOCAST_H

#include <mindtorch/device.h>
#include <mindtorch/dtype.h>

MT_BEGIN_DECLS

/** Whether ops of the calling thread cast on devices of this type; setting returns what it was. */
MT_API bool mt_autocast_enabled(mt_device_type type);
MT_API bool mt_autocast_set_enabled(mt_device_type type, bool enabled);

/** The lower type: bfloat16 on the host and float16 on accelerators unless it was set. Setting
 * takes float16, bfloat16 and float32 and returns MT_ETYPE for others. */
MT_API mt_dtype mt_autocast_dtype(mt_device_type type);
MT_API mt_status mt_autocast_set_dtype(mt_device_type type, mt_dtype dtype);

/** Whether casts of leaves that need a gradient are kept until the outermost leave; on at first. */
MT_API bool mt_autocast_cache_enabled(void);
MT_API bool mt_autocast_set_cache_enabled(bool enabled);
MT_API void mt_autocast_clear_cache(void);

/** How deep regions are nested, after the call. */
MT_API uint32_t mt_autocast_enter(void);
MT_API uint32_t mt_autocast_leave(void);

MT_END_DECLS

#endif /* MINDTORCH_AUTOCAST_H */
