/* SPDX-License-Identifier: Apache-2.0
 *
 * A libcupti and a libcuda of our own, in one library: calls of CUDA that a test makes, records of
 * work that it describes, and everything that can go wrong with them. The library is opened by its
 * path (CUPTI_LIBRARY) and found as libcuda.so.1; `fake_cupti_face` is what a test talks to.
 */
#ifndef TESTS_SUPPORT_FAKE_CUPTI_H
#define TESTS_SUPPORT_FAKE_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a call makes the GPU do. */
typedef struct fake_work {
    uint32_t kind; /* CP_KIND_...; 0: nothing */
    const char *name;
    uint64_t start, end;
    uint32_t device, stream, context;
    uint64_t bytes;
    uint8_t copy_kind, from_kind, to_kind;
    uint32_t wait_type;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint16_t registers;
    uint64_t graph_node;
} fake_work;

typedef struct fake_call {
    const char *name;      /* as CUPTI names its callback: cudaLaunchKernel_v7000 */
    const char *inner;     /* the call of the driver that it makes, NULL: none */
    bool inner_has_own_id; /* else both have the same */
    bool work_of_inner;    /* the records have the id of the inner call */
    const void *arguments;
    int32_t result;
    uint32_t repeats; /* records that it makes; 0: one */
    fake_work work;
} fake_call;

/* May be changed at any time by the test's thread, with nothing else going on. */
typedef struct fake_settings {
    uint32_t version;     /* 0: version() fails */
    const char *failing;  /* the function that fails, */
    int result;           /* with this */
    uint32_t fails_after; /* calls of it that work before */
    size_t extra_bytes;   /* by which records are longer than what we know of them */
    size_t dropped;       /* reported with the next buffer */
    bool hangs;           /* the GPU never has done its work */
    bool flush_hangs;     /* cuptiActivityFlushAll does not return */
    bool contexts_gone;   /* none can be entered */
    int failure;          /* of cuCtxSynchronize and cuptiActivityFlushAll: the GPU is lost */
    bool captures;        /* every stream */
    bool keeps;           /* a buffer of another thread, when it is detached */
    uint32_t taken;       /* another profiler has CUPTI: for so many calls of CUDA */
    bool mute;            /* no callbacks, not even at the exit of cuDriverGetVersion */
    int devices;
    uint32_t node_type;         /* CP_NODE_... of the nodes that node() tells of */
    const uint64_t (*edges)[2]; /* of every graph: from, to */
    size_t n_edges;
    int edges_result; /* of cuGraphGetEdges */
} fake_settings;

/* What happened. */
typedef struct fake_facts {
    uint64_t kinds;                         /* that are enabled now: bits */
    uint32_t subscribed, enabled_callbacks; /* now */
    uint32_t finalized, finalized_at_exit;  /* how often; of these from an exit of a call */
    uint32_t buffers_out;                   /* that CUPTI has now */
    uint32_t buffers_refused;
    uint32_t flushes, waits;
} fake_facts;

typedef struct fake_cupti {
    fake_settings *settings;
    /* Makes a call on this thread; its correlation id. */
    uint32_t (*call)(const fake_call *call);
    /* The two halves of it: what begins may never end. */
    uint32_t (*enter)(const fake_call *call, uint64_t *kept);
    void (*leave)(const fake_call *call, uint32_t correlation, uint64_t *kept);
    /* Gives all buffers back, as CUPTI does when they are full. */
    void (*give_back)(void);
    /* What is in the buffers never comes. */
    void (*lose_records)(void);
    /* A context is destroyed. */
    void (*destroy_context)(void *context);
    fake_facts (*facts)(void);
    /* A node of a graph is created, cloned or destroyed (id: CP_RESOURCE_NODE_...); its number is
     * its address. */
    void (*node)(uint32_t id, uint64_t number, uint64_t original);
    /* The record of work of a call that is open. */
    void (*record)(const fake_work *work, uint32_t correlation);
} fake_cupti;

#endif /* TESTS_SUPPORT_FAKE_CUPTI_H */
