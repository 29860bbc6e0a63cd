/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory and work for the conformance test's checks, see conform.h.
 *
 * What a call points to lies in one of a few static pages, which is overwritten when the call
 * returns. The new contents are harmless (sizes of 1, absent tensors), so that a backend which
 * reads them late gives wrong results rather than a crash.
 */
#include "conformance/conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGES = 64,
    MAX_TENSORS = 64,
    MAX_NUMBERS = 16,
    MAX_SIZES = 256,
    HEAVY = 192, /* rows and columns of the matrices that keep a stream busy */
    HEAVY_TIMES = 4
};

static const uint32_t endless = 1000000; /* launches that never come */

cf_state cf;

/* A call with everything it points to, and what a newer runtime might append to it. */
typedef struct call_page {
    mt_kernel_call call;
    uint64_t appended[4];
    mt_array tensors[MAX_TENSORS];
    int64_t sizes[MAX_SIZES], strides[MAX_SIZES];
    int64_t ints[MAX_NUMBERS];
    mt_scalar scalars[MAX_NUMBERS];
} call_page;

static call_page pages[PAGES];
static _Atomic uint32_t next_page; /* a ticket: only the number matters */
static pthread_mutex_t page_locks[PAGES];
static pthread_once_t page_once = PTHREAD_ONCE_INIT;

static void make_locks(void)
{
    for (size_t i = 0; i < PAGES; i++) {
        (void)pthread_mutex_init(&page_locks[i], NULL);
    }
}

/* ---- groups ---- */

void cf_need_streams(void)
{
    if (cf.backend->stream_new == NULL) {
        cf_skip("the backend has no streams");
    }
}

void cf_need_records(void)
{
    if (cf.backend->activity_start == NULL) {
        cf_skip("the backend reports no activities");
    }
}

void cf_need_sim(void)
{
    if (cf.sim == NULL) {
        cf_skip("the backend cannot hold a stream back (extension \"sim\")");
    }
}

/* ---- memory ---- */

void *cf_host(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        cf_stop("the test has no memory for %zu bytes", bytes);
    }
    return memory;
}

void *cf_take(uint32_t device, size_t bytes)
{
    void *memory = NULL;
    CF_OK(cf.backend->allocate(cf.backend->context, device, bytes, &memory));
    if (memory == NULL) {
        cf_stop("allocate gave NULL for %zu bytes", bytes);
    }
    return memory;
}

void cf_give(uint32_t device, void *memory, size_t bytes)
{
    CF_OK(cf.backend->synchronize(cf.backend->context, device));
    cf.backend->release(cf.backend->context, device, memory, bytes);
}

void cf_write(uint32_t device, void *to, const void *from, size_t bytes)
{
    CF_OK(cf_copy(cf_default_stream(device), &(cf_copy_of){.kind = MT_COPY_TO_DEVICE,
                                                           .to_device = device,
                                                           .to = to,
                                                           .from = from,
                                                           .bytes = bytes}));
    CF_OK(cf.backend->synchronize(cf.backend->context, device));
}

void cf_read(uint32_t device, void *to, const void *from, size_t bytes)
{
    CF_OK(cf_copy(cf_default_stream(device),
                  &(cf_copy_of){.kind = MT_COPY_TO_HOST, .to = to, .from = from, .bytes = bytes}));
}

/* ---- streams ---- */

cf_stream cf_default_stream(uint32_t device)
{
    return (cf_stream){.device = device};
}

cf_stream cf_stream_new(uint32_t device)
{
    static _Atomic uint32_t last;
    cf_stream stream = {.device = device, .number = atomic_fetch_add(&last, 1) + 1};
    CF_OK(cf.backend->stream_new(cf.backend->context, device, stream.number,
                                 stream.number % 2 == 0 ? 0 : -1, &stream.at));
    if (stream.at == NULL) {
        cf_stop("stream_new gave NULL");
    }
    return stream;
}

void cf_stream_free(cf_stream *stream)
{
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, stream->device, stream->at));
    cf.backend->stream_free(cf.backend->context, stream->at);
    stream->at = NULL;
}

/* ---- kernels ---- */

static void fill_page(call_page *page, const mt_kernel_call *call, uint32_t device)
{
    uint32_t used = 0;
    page->call = *call;
    page->call.struct_size = (uint32_t)(sizeof page->call + sizeof page->appended);
    page->call.device = device;
    page->call.tensors = page->tensors;
    page->call.ints = page->ints;
    page->call.scalars = page->scalars;
    memset(page->appended, 0xFF, sizeof page->appended);
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        mt_array *array = &page->tensors[i];
        *array = call->tensors[i];
        array->sizes = page->sizes + used;
        array->strides = page->strides + used;
        for (int32_t dim = 0; dim < array->n_dims; dim++, used++) {
            page->sizes[used] = call->tensors[i].sizes[dim];
            page->strides[used] = call->tensors[i].strides[dim];
        }
    }
    for (uint32_t i = 0; i < call->n_ints; i++) {
        page->ints[i] = call->ints[i];
    }
    for (uint32_t i = 0; i < call->n_scalars; i++) {
        page->scalars[i] = call->scalars[i];
    }
}

static void spoil_page(call_page *page)
{
    for (size_t i = 0; i < MAX_SIZES; i++) {
        page->sizes[i] = 1;
        page->strides[i] = 0;
    }
    for (size_t i = 0; i < MAX_NUMBERS; i++) {
        page->ints[i] = 0;
        page->scalars[i] = (mt_scalar){.kind = MT_KIND_INT};
    }
    for (size_t i = 0; i < MAX_TENSORS; i++) {
        page->tensors[i] = (mt_array){.n_dims = -1};
    }
    memset(&page->call, 0, sizeof page->call);
}

int cf_launch(cf_stream stream, const mt_kernel_call *call)
{
    if (call->n_tensors > MAX_TENSORS || call->n_ints > MAX_NUMBERS ||
        call->n_scalars > MAX_NUMBERS) {
        return mt_fail(MT_EVALUE, "the test's call is too large for the test");
    }
    (void)pthread_once(&page_once, make_locks);
    uint32_t number = atomic_fetch_add(&next_page, 1) % PAGES;
    (void)pthread_mutex_lock(&page_locks[number]);
    call_page *page = &pages[number];
    fill_page(page, call, stream.device);
    mt_kernel_fn *run =
        call->kernel < cf.backend->n_kernels ? cf.backend->kernels[call->kernel] : NULL;
    int status = run != NULL ? run(cf.backend->context, stream.at, &page->call)
                             : mt_fail(MT_ENOTSUP, "the kernel is missing");
    spoil_page(page);
    (void)pthread_mutex_unlock(&page_locks[number]);
    return status;
}

/* ---- copies and sets ---- */

int cf_copy(cf_stream stream, const cf_copy_of *what)
{
    struct {
        mt_copy_call call;
        uint64_t appended[4];
    } larger;
    memset(&larger, 0xFF, sizeof larger);
    larger.call = (mt_copy_call){.struct_size = (uint32_t)sizeof larger,
                                 .kind = (uint32_t)what->kind,
                                 .flags = what->flags,
                                 .device = stream.device,
                                 .to_device = what->to_device,
                                 .to = what->to,
                                 .from = what->from,
                                 .bytes = what->bytes,
                                 .correlation = what->correlation};
    int status = cf.backend->copy(cf.backend->context, stream.at, &larger.call);
    memset(&larger, 0, sizeof larger);
    return status;
}

int cf_set(cf_stream stream, void *to, uint64_t bytes, uint8_t value, uint64_t correlation)
{
    mt_set_call call = {.struct_size = (uint32_t)sizeof call,
                        .device = stream.device,
                        .to = to,
                        .bytes = bytes,
                        .value = value,
                        .correlation = correlation};
    int status = cf.backend->set(cf.backend->context, stream.at, &call);
    memset(&call, 0, sizeof call);
    return status;
}

/* ---- small kernels that checks are made of ---- */

static int apply(cf_stream stream, mt_binary code, void *numbers, int64_t count, int64_t operand,
                 uint64_t correlation)
{
    int64_t stride = 1;
    int64_t form = 1;
    mt_array array = {
        .data = numbers, .sizes = &count, .strides = &stride, .n_dims = 1, .dtype = MT_DTYPE_I64};
    mt_array tensors[] = {array, array};
    mt_scalar scalars[] = {{.kind = MT_KIND_INT, .of.integer = operand},
                           {.kind = MT_KIND_INT, .of.integer = 1}};
    mt_kernel_call call = {.kernel = MT_KERNEL_BINARY,
                           .code = (uint16_t)code,
                           .n_tensors = 2,
                           .n_ints = 1,
                           .n_scalars = 2,
                           .tensors = tensors,
                           .ints = &form,
                           .scalars = scalars,
                           .correlation = correlation};
    return cf_launch(stream, &call);
}

int cf_multiply(cf_stream stream, void *numbers, int64_t count, int64_t factor)
{
    return apply(stream, MT_BINARY_MUL, numbers, count, factor, 0);
}

int cf_add(cf_stream stream, void *numbers, int64_t count, int64_t addend, uint64_t correlation)
{
    return apply(stream, MT_BINARY_ADD, numbers, count, addend, correlation);
}

int cf_pick(cf_stream stream, void *to, void *from, void *index, uint64_t correlation)
{
    int64_t one = 1;
    int64_t ten = 10;
    int64_t dim = 0;
    mt_array tensors[] = {
        {.data = to, .sizes = &one, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_I64},
        {.data = from, .sizes = &ten, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_I64},
        {.data = index, .sizes = &one, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_I64}};
    mt_kernel_call call = {.kernel = MT_KERNEL_INDEX_SELECT,
                           .n_tensors = 3,
                           .n_ints = 1,
                           .tensors = tensors,
                           .ints = &dim,
                           .correlation = correlation};
    return cf_launch(stream, &call);
}

/* ---- keeping a stream busy ---- */

static void work_long(cf_stream stream)
{
    static void *memory[16]; /* of each device, kept */
    size_t bytes = (size_t)HEAVY * HEAVY * sizeof(float);
    if (memory[stream.device % 16] == NULL) {
        memory[stream.device % 16] = cf_take(stream.device, 3 * bytes);
    }
    char *base = memory[stream.device % 16];
    int64_t sizes[] = {1, HEAVY, HEAVY};
    int64_t strides[] = {(int64_t)HEAVY * HEAVY, HEAVY, 1};
    mt_array tensors[3];
    for (size_t i = 0; i < 3; i++) {
        tensors[i] = (mt_array){.data = base + i * bytes,
                                .sizes = sizes,
                                .strides = strides,
                                .n_dims = 3,
                                .dtype = MT_DTYPE_F32};
    }
    mt_scalar scalars[] = {mt_real(1.0), mt_real(0.0)};
    mt_kernel_call call = {.kernel = MT_KERNEL_GEMM,
                           .n_tensors = 3,
                           .n_scalars = 2,
                           .tensors = tensors,
                           .scalars = scalars};
    CF_OK(cf_set(stream, base, 3 * bytes, 0, 0));
    for (int i = 0; i < HEAVY_TIMES; i++) {
        CF_OK(cf_launch(stream, &call));
    }
}

void cf_hold(cf_stream stream)
{
    if (cf.sim != NULL) {
        CF_OK(cf.sim->hold(stream.device, stream.number, endless, 0));
    } else {
        work_long(stream);
    }
}

void cf_unhold(cf_stream stream)
{
    if (cf.sim != NULL) {
        CF_OK(cf.sim->release(stream.device, stream.number));
    }
}

uint32_t cf_gave_up(cf_stream stream)
{
    mt_sim_counts counts = {.struct_size = sizeof counts};
    CF_OK(cf.sim->counts(stream.device, stream.number, &counts));
    return counts.gave_up;
}
