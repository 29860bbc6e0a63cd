/* SPDX-License-Identifier: Apache-2.0
 *
 * Our declarations of NVTX (nvtx_abi.h) against NVIDIA's headers, where this was built with them.
 */
#include "harness/mt_test.h"

#ifdef MT_NVTX_HEADERS

#    include "sources/nvtx/nvtx_abi.h"

#    include <nvtx3/nvToolsExt.h>

#    define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #    theirs)
#    define SAME_FIELD(ours, theirs)                                                            \
        _Static_assert(offsetof(nvtx_event, ours) == offsetof(nvtxEventAttributes_t, theirs) && \
                           sizeof(((nvtx_event *)0)->ours) ==                                   \
                               sizeof(((nvtxEventAttributes_t *)0)->theirs),                    \
                       #theirs)

SAME(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(NVTX_MODULE_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(NVTX_CORE_MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(NVTX_CORE_RANGE_START_W, NVTX_CBID_CORE_RangeStartW);
SAME(NVTX_CORE_RANGE_END, NVTX_CBID_CORE_RangeEnd);
SAME(NVTX_CORE_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(NVTX_CORE_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(NVTX_CORE_NAME_OS_THREAD_W, NVTX_CBID_CORE_NameOsThreadW);
SAME(NVTX_CORE_COUNT, NVTX_CBID_CORE_SIZE);
SAME(NVTX_CORE2_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
SAME(NVTX_CORE2_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(NVTX_CORE2_RESOURCE_CREATE, NVTX_CBID_CORE2_DomainResourceCreate);
SAME(NVTX_CORE2_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(NVTX_CORE2_DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(NVTX_CORE2_INITIALIZE, NVTX_CBID_CORE2_Initialize);
SAME(NVTX_CORE2_COUNT, NVTX_CBID_CORE2_SIZE);
SAME(NVTX_CUDA_COUNT, NVTX_CBID_CUDA_SIZE);
SAME(NVTX_OPENCL_COUNT, NVTX_CBID_OPENCL_SIZE);
SAME(NVTX_CUDART_COUNT, NVTX_CBID_CUDART_SIZE);
SAME(NVTX_TEXT_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(NVTX_TEXT_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(NVTX_TEXT_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(NVTX_VALUE_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(NVTX_VALUE_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE);
SAME(NVTX_VALUE_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(NVTX_NO_TRACKING, NVTX_NO_PUSH_POP_TRACKING);
SAME(sizeof(nvtx_event), sizeof(nvtxEventAttributes_t));
SAME(sizeof(nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(nvtx_callbacks, get_module),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME_FIELD(size, size);
SAME_FIELD(category, category);
SAME_FIELD(payload_type, payloadType);
SAME_FIELD(payload, payload);
SAME_FIELD(message_type, messageType);
SAME_FIELD(message, message);

TEST(declarations_are_those_of_the_headers)
{
    CHECK_EQ_U64(sizeof(nvtx_event), NVTX_EVENT_ATTRIB_STRUCT_SIZE);
}

#else

TEST(declarations_are_those_of_the_headers)
{
    MT_SKIP("NVTX's headers were not there when this was built");
}

#endif
