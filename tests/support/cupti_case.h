/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of libmtprof_cupti on a libcupti of our own begin with.
 */
#ifndef TESTS_SUPPORT_CUPTI_CASE_H
#define TESTS_SUPPORT_CUPTI_CASE_H

#include "harness/mt_test.h"
#include "sources/cupti/cupti_impl.h"
#include "support/fake_cupti.h"
#include "support/traces/trace_view.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const fake_cupti *fake;

__attribute__((unused)) static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL("dlopen: %s", dlerror());
    }
    fake = dlsym(library, "fake_cupti_face");
    REQUIRE(fake != NULL);
    setenv("CUPTI_LIBRARY", path, 1);
}

__attribute__((unused)) static mtprof_cupti_info get_info(void)
{
    mtprof_cupti_info info = {.struct_size = sizeof info};
    (void)mtprof_cupti_attach(&info);
    return info;
}

__attribute__((unused)) static void attach(void)
{
    load(FAKE_CUPTI);
    REQUIRE_OK(mtprof_cupti_attach(NULL));
}

__attribute__((unused)) static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((unused)) static fake_work kernel(const char *name, uint64_t start, uint32_t stream)
{
    return (fake_work){.kind = CP_KIND_KERNEL,
                       .name = name,
                       .start = start,
                       .end = start + 1000,
                       .stream = stream,
                       .context = 1,
                       .grid = {132, 8, 1},
                       .block = {256, 1, 1},
                       .registers = 32};
}

__attribute__((unused)) static uint32_t launch(const char *name, uint64_t start, uint32_t stream)
{
    return fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000",
                                   .inner = "cuLaunchKernel",
                                   .work = kernel(name, start, stream)});
}

__attribute__((unused)) static void check_let_go(void)
{
    fake_facts f = fake->facts();
    CHECK_EQ_U64(f.subscribed, 0);
    CHECK_EQ_U64(f.kinds, 0);
    CHECK_EQ_U64(f.enabled_callbacks, 0);
    CHECK_EQ_U64(f.buffers_out, 0);
    CHECK(!get_info().running);
}

__attribute__((unused)) static const tv_record *activity(const trace_view *v, const char *name)
{
    return tv_event(v, MTPROF_REC_ACTIVITY, name, 0);
}

/* The value of a key of an activity's metadata; UINT64_MAX: there is none. */
__attribute__((unused)) static uint64_t meta(const trace_view *v, const tv_record *event,
                                             const char *key)
{
    const tv_record *item = NULL;
    for (size_t i = 0; (item = tv_payload(v, event, MTPROF_REC_META, i)) != NULL; i++) {
        if (strcmp(tv_string(v, item->r.arg), key) == 0) {
            return item->r.words[0];
        }
    }
    return UINT64_MAX;
}

/* What an export writes, in memory. */
typedef struct memory_text {
    char *text;
    size_t used, room;
} memory_text;

__attribute__((unused)) static int keep_text(void *context, const void *bytes, size_t length)
{
    memory_text *to = context;
    if (length > to->room - to->used) {
        return -1;
    }
    memcpy(to->text + to->used, bytes, length);
    to->used += length;
    return 0;
}

#endif /* TESTS_SUPPORT_CUPTI_CASE_H */
