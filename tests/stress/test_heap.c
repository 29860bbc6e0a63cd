/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording calls never use the heap: a signal handler that records may have interrupted malloc
 * itself. This program replaces malloc and notices every call made during a recording call.
 *
 * The helper thread is held up, so that the recording thread has to do
 * everything itself: take slots, map memory, register places, intern names.
 */
#include "stress/hold_helper.h"

#include <stdlib.h>

#if !STRESS_SANITIZED

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void __libc_free(void *block);

static __thread int recording_call __attribute__((tls_model("initial-exec")));
static uint64_t heap_calls;

static void note_call(void)
{
    if (recording_call != 0) {
        stress_add(&heap_calls, 1);
    }
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    note_call();
    return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    note_call();
    return __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t bytes)
{
    note_call();
    return __libc_realloc(block, bytes);
}

__attribute__((visibility("default"))) void free(void *block)
{
    note_call();
    __libc_free(block);
}

static void record_everything(uint32_t key)
{
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    const int64_t sizes[] = {3, 4, 5};
    for (int i = 0; i < 100000; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "name %d", i);
        int64_t shape[] = {i, 2};
        mtprof_value inputs[] = {
            {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = shape},
            {.kind = MTPROF_INPUT_TENSOR, .n_dims = 3, .of.sizes = sizes},
        };
        mtprof_op details = {.struct_size = sizeof details, .inputs = inputs, .n_inputs = 2};
        recording_call = 1;
        MTPROF_SCOPE("scope");
        mtprof_token token = mtprof_op_begin(&op, &details);
        mtprof_token named = mtprof_begin_named(name, (size_t)n, 0);
        mtprof_meta_text(named, key, name, (size_t)n);
        mtprof_instant_named(name, (size_t)n, 0);
        MTPROF_COUNTER("counter", i);
        MTPROF_FLOW("flow", MTPROF_FLOW_START, 1);
        mtprof_alloc(0, 1, 2, 3, 4);
        mtprof_stack_native(0);
        mtprof_launch(NULL, 0, 0);
        mtprof_end(named);
        mtprof_op_end(token, 0, 1);
        recording_call = 0;
    }
}

static void *record_in_a_thread(void *argument)
{
    record_everything(*(uint32_t *)argument);
    return NULL;
}

static void no_heap(const char *path)
{
    hold_prepare();
    uint32_t key = mtprof_intern("key", 3);
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS |
                                     MTPROF_WANT_MEMORY | MTPROF_WANT_NATIVE_STACKS |
                                     MTPROF_WANT_STACKS};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    hold_begin();
    pthread_join(stress_thread(record_in_a_thread, &key), NULL);
    CHECK(stress_health(session).stalls > 0); /* it did the helper's work */
    hold_end();
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(heap_calls, 0);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "no heap");
        CHECK_EQ_U64(t.begins, h.begins);
        CHECK_EQ_U64(t.others, h.others);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
    hold_forget();
}

TEST(recording_into_memory_uses_no_heap)
{
    no_heap(NULL);
}

TEST(recording_into_a_file_uses_no_heap)
{
    char path[STRESS_PATH];
    no_heap(stress_path(path, "t.mtt"));
}

#else

TEST(recording_uses_no_heap)
{
    MT_SKIP("the sanitizer has malloc to itself");
}

#endif
