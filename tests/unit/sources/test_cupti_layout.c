/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_abi.h against the headers of the CUPTI that is installed where this is built.
 */
#include "harness/mt_test.h"
#include "sources/cupti/cupti_abi.h"

#ifdef MT_CUPTI_HEADERS
#    include <cuda.h>
#    include <cuda_runtime_api.h>
#    include <cupti_activity.h>
#    include <cupti_callbacks.h>
#    include <cupti_version.h>
#    include <generated_cuda_runtime_api_meta.h>

/* The newest struct of each kind is what a version writes. */
#    if CUPTI_API_VERSION >= 130400
typedef CUpti_ActivityKernel13 their_kernel;
#    elif CUPTI_API_VERSION >= 130300
typedef CUpti_ActivityKernel12 their_kernel;
#    elif CUPTI_API_VERSION >= 130100
typedef CUpti_ActivityKernel11 their_kernel;
#    elif CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 their_kernel;
#    else
typedef CUpti_ActivityKernel9 their_kernel;
#    endif
#    if CUPTI_API_VERSION >= 130400
typedef CUpti_ActivityMemcpy7 their_copy;
#    elif CUPTI_API_VERSION >= 26
typedef CUpti_ActivityMemcpy6 their_copy;
#    else
typedef CUpti_ActivityMemcpy5 their_copy;
#    endif
#    if CUPTI_API_VERSION >= 26
typedef CUpti_ActivitySynchronization2 their_wait;
#    else
typedef CUpti_ActivitySynchronization their_wait;
#    endif

#    define SAME(ours, field, theirs, their_field)                                        \
        do {                                                                              \
            CHECK_EQ_U64(offsetof(ours, field), offsetof(theirs, their_field));           \
            CHECK_EQ_U64(sizeof(((ours *)0)->field), sizeof(((theirs *)0)->their_field)); \
        } while (0)
/* A list of ours whose first item is a field of theirs. */
#    define STARTS(ours, field, theirs, their_field) \
        CHECK_EQ_U64(offsetof(ours, field), offsetof(theirs, their_field))

TEST(kernels)
{
    SAME(cp__kernel, registers, their_kernel, registersPerThread);
    SAME(cp__kernel, start, their_kernel, start);
    SAME(cp__kernel, end, their_kernel, end);
    SAME(cp__kernel, device, their_kernel, deviceId);
    SAME(cp__kernel, context, their_kernel, contextId);
    SAME(cp__kernel, stream, their_kernel, streamId);
    STARTS(cp__kernel, grid, their_kernel, gridX);
    STARTS(cp__kernel, block, their_kernel, blockX);
    SAME(cp__kernel, static_shared, their_kernel, staticSharedMemory);
    SAME(cp__kernel, dynamic_shared, their_kernel, dynamicSharedMemory);
    SAME(cp__kernel, correlation, their_kernel, correlationId);
    SAME(cp__kernel, name, their_kernel, name);
    SAME(cp__kernel, graph_node, their_kernel, graphNodeId);
    SAME(cp__kernel, graph, their_kernel, graphId);
    CHECK(sizeof(cp__kernel) <= sizeof(their_kernel));
}

TEST(copies)
{
    SAME(cp__copy, copy_kind, their_copy, copyKind);
    SAME(cp__copy, from_kind, their_copy, srcKind);
    SAME(cp__copy, to_kind, their_copy, dstKind);
    SAME(cp__copy, bytes, their_copy, bytes);
    SAME(cp__copy, start, their_copy, start);
    SAME(cp__copy, end, their_copy, end);
    SAME(cp__copy, device, their_copy, deviceId);
    SAME(cp__copy, context, their_copy, contextId);
    SAME(cp__copy, stream, their_copy, streamId);
    SAME(cp__copy, correlation, their_copy, correlationId);
    SAME(cp__copy, graph_node, their_copy, graphNodeId);
    CHECK(sizeof(cp__copy) <= sizeof(their_copy));
    SAME(cp__peer_copy, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
    SAME(cp__peer_copy, start, CUpti_ActivityMemcpyPtoP4, start);
    SAME(cp__peer_copy, device, CUpti_ActivityMemcpyPtoP4, deviceId);
    SAME(cp__peer_copy, stream, CUpti_ActivityMemcpyPtoP4, streamId);
    SAME(cp__peer_copy, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
    SAME(cp__peer_copy, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
}

TEST(sets_and_waits)
{
    SAME(cp__set, bytes, CUpti_ActivityMemset4, bytes);
    SAME(cp__set, start, CUpti_ActivityMemset4, start);
    SAME(cp__set, end, CUpti_ActivityMemset4, end);
    SAME(cp__set, device, CUpti_ActivityMemset4, deviceId);
    SAME(cp__set, context, CUpti_ActivityMemset4, contextId);
    SAME(cp__set, stream, CUpti_ActivityMemset4, streamId);
    SAME(cp__set, correlation, CUpti_ActivityMemset4, correlationId);
    SAME(cp__set, memory_kind, CUpti_ActivityMemset4, memoryKind);
    SAME(cp__set, graph_node, CUpti_ActivityMemset4, graphNodeId);
    SAME(cp__wait, type, their_wait, type);
    SAME(cp__wait, start, their_wait, start);
    SAME(cp__wait, end, their_wait, end);
    SAME(cp__wait, correlation, their_wait, correlationId);
    SAME(cp__wait, context, their_wait, contextId);
    SAME(cp__wait, stream, their_wait, streamId);
}

TEST(callbacks)
{
    SAME(cp__call_data, site, CUpti_CallbackData, callbackSite);
    SAME(cp__call_data, function, CUpti_CallbackData, functionName);
    SAME(cp__call_data, arguments, CUpti_CallbackData, functionParams);
    SAME(cp__call_data, result, CUpti_CallbackData, functionReturnValue);
    SAME(cp__call_data, context, CUpti_CallbackData, context);
    SAME(cp__call_data, kept, CUpti_CallbackData, correlationData);
    SAME(cp__call_data, correlation, CUpti_CallbackData, correlationId);
    CHECK_EQ_U64(sizeof(cp__call_data), sizeof(CUpti_CallbackData));
    SAME(cp__resource_data, context, CUpti_ResourceData, context);
    SAME(cp__resource_data, descriptor, CUpti_ResourceData, resourceDescriptor);
    SAME(cp__graph_data, node, CUpti_GraphData, node);
    SAME(cp__graph_data, original_node, CUpti_GraphData, originalNode);
    SAME(cp__graph_data, node_type, CUpti_GraphData, nodeType);
}

TEST(graphs)
{
    CHECK_EQ_U64(CP_INSTANTIATED_AT, offsetof(cudaGraphInstantiate_v12000_params, graph));
    CHECK_EQ_U64(CP_INSTANTIATED_AT, offsetof(cudaGraphInstantiateWithFlags_v11040_params, graph));
    CHECK_EQ_U64(CP_INSTANTIATED_AT, offsetof(cudaGraphInstantiateWithParams_v12000_params, graph));
    CHECK_EQ_I64(CP_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
    CHECK_EQ_I64(CP_NODE_COPY, CU_GRAPH_NODE_TYPE_MEMCPY);
    CHECK_EQ_I64(CP_NODE_SET, CU_GRAPH_NODE_TYPE_MEMSET);
#    if CUDA_VERSION >= 12030
    CHECK_EQ_U64(CP_EDGE_DATA_BYTES, sizeof(CUgraphEdgeData));
#    endif
}

TEST(numbers)
{
    CHECK_EQ_I64(CP_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
    CHECK_EQ_I64(CP_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    CHECK_EQ_I64(CP_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_EQ_I64(CP_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
    CHECK_EQ_I64(CP_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
    CHECK_EQ_I64(CP_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CHECK_EQ_I64(CP_KIND_KERNEL_SERIAL, CUPTI_ACTIVITY_KIND_KERNEL);
    CHECK_EQ_I64(CP_KIND_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
    CHECK_EQ_I64(CP_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    CHECK_EQ_I64(CP_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
    CHECK_EQ_I64(CP_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
    CHECK_EQ_I64(CP_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
    CHECK_EQ_I64(CP_RESOURCE_CONTEXT_DESTROY_STARTING,
                 CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    CHECK_EQ_I64(CP_RESOURCE_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
    CHECK_EQ_I64(CP_RESOURCE_NODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
    CHECK_EQ_I64(CP_RESOURCE_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
    CHECK_EQ_I64(CP_SITE_EXIT, CUPTI_API_EXIT);
    CHECK_EQ_I64(CP_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    CHECK_EQ_I64(CP_SYNC_STREAM_WAIT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    CHECK_EQ_I64(CP_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    CHECK_EQ_I64(CP_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    CHECK_EQ_I64(CP_ATTRIBUTE_SHARED_RESERVED,
                 CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    CHECK_EQ_I64(CP_ATTRIBUTE_BLOCKS_PER_PROCESSOR,
                 CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    CHECK_EQ_I64(CP_ATTRIBUTE_REGISTERS_PER_PROCESSOR,
                 CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    CHECK_EQ_I64(CP_ATTRIBUTE_SHARED_PER_PROCESSOR,
                 CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    CHECK_EQ_I64(CP_ATTRIBUTE_THREADS_PER_PROCESSOR,
                 CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    bool known = CUPTI_API_VERSION <= CP_VERSION_12_9 ? CUPTI_API_VERSION >= CP_VERSION_12_0
                                                      : CUPTI_API_VERSION < CP_VERSION_13_5;
    CHECK(known);
}

#else

TEST(layouts)
{
    MT_SKIP("CUPTI's headers (cupti.h of a CUDA toolkit) were not found when this was built");
}

#endif
