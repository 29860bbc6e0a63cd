/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's libcupti and libcuda expect and give, as far as we use it: the beginnings of their
 * structs and the numbers of their enumerations, written from the published interface.
 *
 * CUPTI's records grow at their end from version to version. Every field here has the same place in
 * CUDA 12.0 to 13.4: test_cupti_layout.c compares them with the headers of the installed version.
 */
#ifndef SOURCES_CUPTI_CUPTI_ABI_H
#define SOURCES_CUPTI_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion(): counted up to CUDA 12.9, then major, minor and update as xxyyzz. */
enum {
    CP_VERSION_12_0 = 18,
    CP_VERSION_12_9 = 28,
    CP_VERSION_13_0 = 130000,
    CP_VERSION_13_5 = 130500 /* not known any more */
};

/* CUptiResult */
enum {
    CP_OK = 0,
    CP_MAX_LIMIT_REACHED = 12, /* no further record in a buffer */
    CP_INVALID_KIND = 21,
    CP_INSUFFICIENT_PRIVILEGES = 35,
    CP_MULTIPLE_SUBSCRIBERS = 39
};

/* CUpti_ActivityKind */
enum {
    CP_KIND_MEMCPY = 1,
    CP_KIND_MEMSET = 2,
    CP_KIND_KERNEL = 10, /* CONCURRENT_KERNEL; 3 are those that run one at a time */
    CP_KIND_KERNEL_SERIAL = 3,
    CP_KIND_MEMCPY_PEER = 22, /* MEMCPY2 */
    CP_KIND_SYNCHRONIZATION = 38
};

/* CUpti_CallbackDomain */
enum {
    CP_DOMAIN_DRIVER = 1,
    CP_DOMAIN_RUNTIME = 2,
    CP_DOMAIN_RESOURCE = 3
};

/* CUpti_CallbackIdResource */
enum {
    CP_RESOURCE_CONTEXT_CREATED = 1,
    CP_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
    CP_RESOURCE_NODE_CREATED = 13,
    CP_RESOURCE_NODE_DESTROY_STARTING = 14,
    CP_RESOURCE_NODE_CLONED = 20
};

enum {
    CP_SITE_ENTER = 0,
    CP_SITE_EXIT = 1,
    CP_FLUSH_FORCED = 1
};

/* CUpti_ActivitySynchronizationType */
enum {
    CP_SYNC_EVENT = 1,
    CP_SYNC_STREAM_WAIT = 2,
    CP_SYNC_STREAM = 3,
    CP_SYNC_CONTEXT = 4
};

/* Kernel9 and later */
typedef struct cp__kernel {
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout[3];
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit;
    uint32_t graph;
} cp__kernel;

/* Memcpy5 and later */
typedef struct cp__copy {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint32_t runtime_correlation, pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cp__copy;

/* MemcpyPtoP4 */
typedef struct cp__peer_copy {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t from_device, from_context, to_device, to_context;
    uint32_t correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cp__peer_copy;

/* Memset4 */
typedef struct cp__set {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cp__set;

/* Synchronization and later */
typedef struct cp__wait {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
} cp__wait;

/* CUpti_CallbackData */
typedef struct cp__call_data {
    uint32_t site;
    const char *function;
    const void *arguments;
    const int32_t *result; /* at the exit: 0 where the call worked */
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *kept; /* from the call's enter to its exit */
    uint32_t correlation;
} cp__call_data;

/* CUpti_ResourceData */
typedef struct cp__resource_data {
    void *context;
    void *handle;
    const void *descriptor; /* of graphs: a cp__graph_data */
} cp__resource_data;

/* CUpti_GraphData */
typedef struct cp__graph_data {
    void *graph, *original_graph;
    void *node, *original_node;
    uint32_t node_type;
} cp__graph_data;

/* CUdevice_attribute */
enum {
    CP_ATTRIBUTE_THREADS_PER_BLOCK = 1,
    CP_ATTRIBUTE_SHARED_PER_BLOCK = 8,
    CP_ATTRIBUTE_WARP = 10,
    CP_ATTRIBUTE_REGISTERS_PER_BLOCK = 12,
    CP_ATTRIBUTE_PROCESSORS = 16,
    CP_ATTRIBUTE_THREADS_PER_PROCESSOR = 39,
    CP_ATTRIBUTE_MAJOR = 75,
    CP_ATTRIBUTE_MINOR = 76,
    CP_ATTRIBUTE_SHARED_PER_PROCESSOR = 81,
    CP_ATTRIBUTE_REGISTERS_PER_PROCESSOR = 82,
    CP_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN = 97,
    CP_ATTRIBUTE_BLOCKS_PER_PROCESSOR = 106,
    CP_ATTRIBUTE_SHARED_RESERVED = 111
};

/* CUgraphNodeType */
enum {
    CP_NODE_KERNEL = 0,
    CP_NODE_COPY = 1,
    CP_NODE_SET = 2
};

/* Where the graph lies in the arguments of cudaGraphInstantiate, cuGraphInstantiate and their
 * variants. */
enum {
    CP_INSTANTIATED_AT = 8,
    CP_EDGE_DATA_BYTES = 8 /* CUgraphEdgeData */
};

typedef void cp__callback(void *user, uint32_t domain, uint32_t id, const void *data);
typedef void cp__buffer_wanted(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void cp__buffer_done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                             size_t used);

#endif /* SOURCES_CUPTI_CUPTI_ABI_H */
