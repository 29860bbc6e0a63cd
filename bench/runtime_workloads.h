/* SPDX-License-Identifier: Apache-2.0
 *
 * What libmindtorch is measured with: single ops of given shapes, and training steps.
 * tests/peers/torch_speed.py has the same names for the same work with torch.
 */
#ifndef BENCH_RUNTIME_WORKLOADS_H
#define BENCH_RUNTIME_WORKLOADS_H

#include <stddef.h>
#include <stdint.h>

typedef struct workload workload;

/* Names in the order of the list, valid until the next call; NULL after the last. */
const char *workload_name(size_t index);

/* Makes the tensors of a workload; ends the program with a message where that fails. */
workload *workload_open(size_t index);

/* n times, results released. */
void workload_run(void *opened, uint64_t n);
void workload_close(workload *opened);

#endif /* BENCH_RUNTIME_WORKLOADS_H */
