/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python stacks of all threads as text, for a program that hangs (mtprof_flight_config
 * .write_stacks). Called on a thread that has no GIL, and must not wait for it without a bound.
 *
 *   APS1  First a thread of its own takes the GIL and asks sys._current_frames(). Where the GIL is
 *         given, this is exact.
 *   APS2  Where it is not given in time, its holder is inside one call of C code and no thread runs
 *         Python code: frames do not change, so faulthandler may read them without the GIL. It does
 *         that in the handler of a signal, its documented way, which this thread sends to itself.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_ALL_STACKS_H
#define PYTHON_EXT_PROFILER_STACKS_ALL_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* False: there are none. */
bool all_stacks_write(void *user, int fd, uint64_t wait_ns);

#endif /* PYTHON_EXT_PROFILER_STACKS_ALL_STACKS_H */
