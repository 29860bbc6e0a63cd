/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated accelerator as its bare table of functions: opened by dlopen(), with settings of
 * the test's own. One table a process, and each case is a process.
 */
#ifndef TESTS_SUPPORT_DEVICES_SIM_TABLE_H
#define TESTS_SUPPORT_DEVICES_SIM_TABLE_H

#include <mindtorch/backend.h>
#include <mindtorch/sim.h>

extern const mt_backend *npu; /* after open_npu() */
extern const mt_sim *npu_controls;

/* As if MINDTORCH_NPU_<name> were set, in place of what it was; before open_npu(). The strings stay
 * the caller's. */
void set_npu(const char *name, const char *value);

/* The status of opening it; 0 sets `npu`. */
int try_open_npu(void);
/* Opens it, or fails the case. */
void open_npu(void);

/* Memory of a device, or the case fails. */
void *npu_take(uint32_t device, size_t bytes);

int npu_copy(mt_backend_stream *stream, mt_copy kind, void *to, const void *from, size_t bytes,
             uint64_t correlation);

/* out = a + b, n floats each, on the default stream of npu:0 or on `stream`. */
int npu_add(mt_backend_stream *stream, void *out, void *a, void *b, int64_t n,
            uint64_t correlation);

/* data[0 .. n) = value, floats, as a kernel. */
int npu_fill(mt_backend_stream *stream, void *data, int64_t n, float value, uint64_t correlation);

/* Takes row 9 of a vector of n floats: a kernel that fails where n < 10. index: one int64. */
int npu_select(mt_backend_stream *stream, void *out, void *in, void *index, int64_t n,
               uint64_t correlation);

/* One float, after all that the stream has. */
float npu_read(mt_backend_stream *stream, const void *from);

#endif /* TESTS_SUPPORT_DEVICES_SIM_TABLE_H */
