/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_cupti: from CUPTI's callbacks and records to scopes and device work of libmtprof.
 *
 *     a call of CUDA  ─► cupti_calls.c    enter: scope begins; its launch key is noted under the
 *        (any thread)                       call's correlation id (cupti_joins.c)
 *                                         exit: scope ends
 *     a graph's node  ─► cupti_graphs.c   created, cloned: who captured it
 *     a graph is made ─► cupti_edges.c    instantiated: which nodes wait for which, on request
 *     the GPU is done ─► cupti_buffers.c  buffers of records from CUPTI, read by a thread of ours
 *                          └► cupti_records.c   record ─► key by its correlation id ─► activity
 *                               names: cupti_names.c, devices: cupti_devices.c
 *     a recording begins, ends ─► cupti_source.c: takes CUPTI, waits for the GPU, lets CUPTI go
 *
 *   CU1  Device work is joined to its call by the correlation id that CUPTI gives to both, never by
 *        time. Host times are those of our own scopes.
 *   CU2  Nothing of CUPTI is used outside of a recording: when it ends, CUPTI is detached
 *        (cuptiFinalize) from the exit of a call of CUDA, the place that its manual names.
 *   CU3  No wait has no limit. What does not come in time is counted.
 *   CU4  Code of this library is never unloaded (nodelete): a thread of CUPTI may be in it.
 *   CU5  A callback does not call CUPTI or CUDA, but for the number of a graph's node, the
 *        questions whether a stream captures and which edges a graph has, and CU2; it waits for no
 *        lock that is held while CUPTI is called.
 */
#ifndef SOURCES_CUPTI_CUPTI_IMPL_H
#define SOURCES_CUPTI_CUPTI_IMPL_H

#include "sources/cupti/cupti_abi.h"

#include <mtprof/cupti.h>
#include <mtprof/op.h>
#include <mtprof/source.h>
#include <mtprof/trace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- cupti_library.c ---- */

/* The functions of libcupti and libcuda, by their symbols. All return 0 when they work. */
typedef struct cp__library {
    int (*version)(uint32_t *version);
    int (*subscribe)(void **subscriber, cp__callback *callback, void *user);
    int (*unsubscribe)(void *subscriber);
    int (*enable_callback)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id);
    int (*callback_name)(uint32_t domain, uint32_t id, const char **name);
    int (*enable)(uint32_t kind);
    int (*disable)(uint32_t kind);
    int (*register_buffers)(cp__buffer_wanted *wanted, cp__buffer_done *done);
    int (*register_clock)(uint64_t (*clock)(void));
    int (*next_record)(uint8_t *buffer, size_t used, void **record);
    int (*dropped)(void *context, uint32_t stream, size_t *count);
    int (*flush)(uint32_t flags);
    int (*finalize)(void);
    int (*result_text)(int result, const char **text);
    int (*node_number)(void *node, uint64_t *number);

    int (*driver_version)(int *version);  /* the call from whose exit CUPTI is detached */
    int (*runtime_version)(int *version); /* NULL: no libcudart is loaded */
    int (*device_count)(int *count);
    int (*device_name)(char *name, int bytes, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*context_wait)(void);
    int (*stream_captures)(void *stream, int *status);
    /* Either may be missing. The second one tells edges that have data, too (CUDA 12.3). */
    int (*graph_edges)(void *graph, void **from, void **to, size_t *count);
    int (*graph_edges_2)(void *graph, void **from, void **to, void *data, size_t *count);
} cp__library;

extern cp__library cp__cuda;

/* Where libcupti was found, and what it is. */
typedef struct cp__found {
    uint32_t version;
    char path[1024];
} cp__found;

/* ENOTSUP: the message says what is missing. */
int cp__library_open(cp__found *found);

/* What the environment variable MTPROF_CUPTI asks for, beside the program: "waits,dependencies".
 * EINVAL: it names something else. */
int cp__options_asked(uint32_t *options);

/* ---- cupti_joins.c ---- */

/* Makes the table; false: no memory. */
bool cp__joins_init(void);

/* The call with this correlation id has this launch key. */
void cp__join_put(uint32_t correlation, uint64_t key);

/* The key of the call; 0: it was not seen, or too long ago. */
uint64_t cp__join_find(uint32_t correlation);

/* ---- cupti_calls.c ---- */

/* Finds the callbacks' numbers by their names. */
void cp__calls_init(void);

/* Asks for the callbacks; a result of CUPTI. */
int cp__calls_enable(void *subscriber);

/* From here on calls are those of a new recording: what was open in the last one is forgotten. */
void cp__calls_begin(void);

/* The callback. */
void cp__on_call(void *user, uint32_t domain, uint32_t id, const void *data);

/* The next exit of a call detaches CUPTI; whether that has happened, and with which result. */
void cp__detach_at_exit(bool wanted);
bool cp__detached(int *result);

/* The callback to detach from. */
uint32_t cp__detach_call(void);

/* Contexts that calls were made in, at most `room`; how many. */
uint32_t cp__contexts(void **out, uint32_t room);

/* After a fork there are none. */
void cp__calls_after_fork(void);

/* ---- cupti_graphs.c ---- */

/* Asks for the callbacks of graphs' nodes; a result of CUPTI. */
int cp__graphs_enable(void *subscriber);

/* A node is created, cloned or destroyed: a callback of the resource domain. */
void cp__on_graph(uint32_t id, const cp__graph_data *data);

/* What is known of the node with this number: who captured it, and the list of nodes that it
 * depends on; string ids, 0: not known. */
typedef struct cp__node_facts {
    uint32_t op, module, dependencies;
} cp__node_facts;

cp__node_facts cp__node_known(uint64_t number);

/* The string id of the list of nodes that this one depends on. False: there is no room. */
bool cp__node_depends(uint64_t number, uint32_t dependencies);

/* A recording begins: nodes that were destroyed are forgotten. */
void cp__graphs_begin(void);
void cp__graphs_after_fork(void);

/* ---- cupti_edges.c ---- */

/* Whether graphs' edges are asked for, from now on. */
void cp__edges_want(bool want);

/* This thread instantiates a graph; has cloned a node of it; has done it (NULL: it failed). */
void cp__edges_begin(void);
void cp__edges_clone(uint64_t number, uint64_t original, uint32_t type);
void cp__edges_end(void *graph);

/* ---- cupti_buffers.c ---- */

cp__buffer_wanted cp__on_buffer_wanted;
cp__buffer_done cp__on_buffer_done;

/* What is read from here on is the source's. */
void cp__buffers_serve(mtprof_source *source);

/* Between these two a thread reads what CUPTI gives back; the end reads the rest. False: CUPTI does
 * not give it back in time. The thread goes on, and is ended the next time. */
void cp__buffers_begin(void);
bool cp__buffers_end(uint64_t timeout_ns);

/* Reads what CUPTI has given back. */
void cp__buffers_read(void);

/* While CUPTI is let go, other threads of the program may launch: what comes of it is not of the
 * recording, nor is what CUPTI drops then. */
void cp__buffers_ignore(bool ignore);

/* CUPTI is detached: frees the buffers that nobody uses. */
void cp__buffers_trim(void);
void cp__buffers_after_fork(void);

/* ---- cupti_records.c ---- */

/* Counts of mtprof_cupti_info; atomic. */
typedef struct cp__counts {
    uint64_t records, unreadable, dropped, unjoined, waits_failed;
    uint64_t replayed, replayed_unknown, nodes_lost, dependencies_lost; /* of graphs */
} cp__counts;

extern cp__counts cp__count;

static inline void cp__add(uint64_t *count, uint64_t more)
{
    __atomic_add_fetch(count, more, __ATOMIC_RELAXED);
}

/* When the recording began, and when it ended (UINT64_MAX while it goes on). Work outside of that
 * whose call was not recorded is not of this recording. */
void cp__records_within(uint64_t from_ns, uint64_t until_ns);

/* When the work of a record began. */
uint64_t cp__record_start(const void *record);

/* What kernels have in common that are launched again and again: zero at first, used by one thread
 * at a time; NULL is one that remembers nothing. */
typedef struct cp__kernel_memo cp__kernel_memo;
cp__kernel_memo *cp__kernel_memo_new(void); /* NULL: no memory */

/* A record of a buffer to an activity. */
void cp__read_record(mtprof_source *source, const void *record, cp__kernel_memo *memo);

/* ---- cupti_names.c ---- */

/* The name of a kernel for people; the mangled one where nothing in the process can say it. Valid
 * until the process ends, and so is *kept, a copy of the mangled one; NULL: there are too many, and
 * the name returned is the caller's. */
const char *cp__kernel_name(const char *mangled, const char **kept);

/* The string id of "[1, 2, 3]". 0: there are too many different ones. */
uint32_t cp__list_id(const int32_t values[3]);

/* Whether names stay mangled. */
bool cp__names_are_raw(void);

void cp__names_after_fork(void);

/* ---- cupti_devices.c ---- */

typedef struct cp__device {
    int processors, warp;
    int threads, blocks, registers, shared; /* a processor has */
    int shared_reserved;                    /* of each block's shared memory */
} cp__device;

/* NULL: not known. */
const cp__device *cp__device_of(uint32_t number);

/* deviceProperties of a Chrome trace, as mtprof_source_ops.describe. */
size_t cp__describe(char *json, size_t room);

/* How much of a processor a kernel can fill, in percent, were its blocks spread evenly. */
double cp__occupancy(const cp__device *device, const cp__kernel *kernel);

/* Waits until the GPU has done all work of these contexts; false: not within the time. *failure: 0,
 * or the first error that CUDA gave in place of waiting: that GPU does nothing any more. */
bool cp__wait_for_work(void *const *contexts, uint32_t count, uint64_t timeout_ns, int *failure);

#endif /* SOURCES_CUPTI_CUPTI_IMPL_H */
