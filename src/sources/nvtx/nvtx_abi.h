/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program with NVTX 3 (NVIDIA's tools extension) in it and a collector agree on: the part
 * that is compiled into the program opens the library that NVTX_INJECTION64_PATH names, and calls
 * its InitializeInjectionNvtx2() with a function that gives tables of functions to fill in, one
 * table a module. The numbers and structs are those of NVTX's public headers; test_nvtx_layout
 * compares them with the headers of the machine that builds it.
 */
#ifndef SOURCES_NVTX_NVTX_ABI_H
#define SOURCES_NVTX_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum nvtx_table {
    NVTX_TABLE_CALLBACKS = 1
};

enum nvtx_module {
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CUDA = 2,
    NVTX_MODULE_OPENCL = 3,
    NVTX_MODULE_CUDART = 4,
    NVTX_MODULE_CORE2 = 5
};

/* Places in the module's table. */
enum nvtx_core {
    NVTX_CORE_MARK_EX = 1,
    NVTX_CORE_MARK_A,
    NVTX_CORE_MARK_W,
    NVTX_CORE_RANGE_START_EX,
    NVTX_CORE_RANGE_START_A,
    NVTX_CORE_RANGE_START_W,
    NVTX_CORE_RANGE_END,
    NVTX_CORE_RANGE_PUSH_EX,
    NVTX_CORE_RANGE_PUSH_A,
    NVTX_CORE_RANGE_PUSH_W,
    NVTX_CORE_RANGE_POP,
    NVTX_CORE_NAME_CATEGORY_A,
    NVTX_CORE_NAME_CATEGORY_W,
    NVTX_CORE_NAME_OS_THREAD_A,
    NVTX_CORE_NAME_OS_THREAD_W,
    NVTX_CORE_COUNT
};

enum nvtx_core2 {
    NVTX_CORE2_MARK_EX = 1,
    NVTX_CORE2_RANGE_START_EX,
    NVTX_CORE2_RANGE_END,
    NVTX_CORE2_RANGE_PUSH_EX,
    NVTX_CORE2_RANGE_POP,
    NVTX_CORE2_RESOURCE_CREATE,
    NVTX_CORE2_RESOURCE_DESTROY,
    NVTX_CORE2_NAME_CATEGORY_A,
    NVTX_CORE2_NAME_CATEGORY_W,
    NVTX_CORE2_REGISTER_STRING_A,
    NVTX_CORE2_REGISTER_STRING_W,
    NVTX_CORE2_DOMAIN_CREATE_A,
    NVTX_CORE2_DOMAIN_CREATE_W,
    NVTX_CORE2_DOMAIN_DESTROY,
    NVTX_CORE2_INITIALIZE,
    NVTX_CORE2_COUNT
};

/* Names of devices, contexts, streams and events: these modules have nothing else. */
enum {
    NVTX_CUDA_COUNT = 9,
    NVTX_OPENCL_COUNT = 15,
    NVTX_CUDART_COUNT = 7
};

typedef void (*nvtx_function)(void);

typedef struct nvtx_callbacks {
    size_t struct_size;
    int (*get_module)(int module, nvtx_function ***table, unsigned *size); /* 0: it has none */
} nvtx_callbacks;

typedef const void *nvtx_get_table(uint32_t table);

enum nvtx_message_type {
    NVTX_TEXT_NONE = 0,
    NVTX_TEXT_ASCII = 1,
    NVTX_TEXT_UNICODE = 2,
    NVTX_TEXT_REGISTERED = 3
};

enum nvtx_payload_type {
    NVTX_VALUE_NONE = 0,
    NVTX_VALUE_U64,
    NVTX_VALUE_S64,
    NVTX_VALUE_DOUBLE,
    NVTX_VALUE_U32,
    NVTX_VALUE_S32,
    NVTX_VALUE_FLOAT
};

typedef union nvtx_value {
    uint64_t u64;
    int64_t s64;
    double real64;
    uint32_t u32;
    int32_t s32;
    float real32;
} nvtx_value;

typedef union nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered;
} nvtx_message;

typedef struct nvtx_event {
    uint16_t version, size; /* size: of the struct as the program was compiled */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    nvtx_value payload;
    int32_t message_type;
    nvtx_message message;
} nvtx_event;

enum {
    NVTX_NO_TRACKING = -2 /* of push and pop: no level is known */
};

#endif /* SOURCES_NVTX_NVTX_ABI_H */
