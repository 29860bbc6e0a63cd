/* SPDX-License-Identifier: Apache-2.0
 *
 * Which op a thread is in (mtprof_open_op), compared with a list that the test keeps.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>
#include <mtprof/source.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t id_of(const char *text)
{
    return mtprof_intern(text, strlen(text));
}

/* Ids of equal texts may differ where one has a place in the program: their texts are compared in
 * the trace, as metadata of an instant. */
static void note(const char *expected, const char *module)
{
    uint32_t name = 1, of = 1;
    bool found = mtprof_open_op(&name, &of);
    CHECK_EQ_I64(found, expected != NULL);
    CHECK_EQ_I64(name != 0, expected != NULL);
    if (module != NULL) {
        CHECK_EQ_U64(of, id_of(module));
    } else {
        CHECK_EQ_U64(of, 0);
    }
    if (expected != NULL) {
        static mtprof_site site = MTPROF_SITE_INIT("answer", 0);
        mtprof_instant(&site);
        mtprof_meta_int(MTPROF_LATEST_INSTANT, id_of("found"), name);
        mtprof_meta_text(MTPROF_LATEST_INSTANT, id_of("expected"), expected, strlen(expected));
    }
}

static void check_answers(const trace_view *v, size_t least)
{
    size_t n = 0;
    for (size_t i = 0; i + 2 < v->count; i++) {
        const mtprof_record *answer = &v->records[i].r;
        const mtprof_record *found = &v->records[i + 1].r;
        const mtprof_record *expected = &v->records[i + 2].r;
        if (answer->kind == MTPROF_REC_INSTANT) {
            char text[128];
            REQUIRE(found->kind == MTPROF_REC_META && expected->kind == MTPROF_REC_META);
            snprintf(text, sizeof text, "%.*s", (int)expected->words[0],
                     (const char *)&expected->words[1]);
            CHECK_EQ_STR(tv_string(v, found->words[0]), text);
            n++;
        }
    }
    CHECK(n >= least);
}

TEST(the_innermost_op_and_its_module)
{
    static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    static mtprof_site call = MTPROF_SITE_INIT("call", MTPROF_KIND_RUNTIME);
    static mtprof_site async = MTPROF_SITE_INIT("async", MTPROF_KIND_OP | MTPROF_FLAG_ASYNC);
    uint32_t unused, module;
    CHECK(!mtprof_open_op(&unused, &module) && unused == 0 && module == 0);
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_MODULES);
    note(NULL, NULL);
    mtprof_token a = mtprof_begin(&outer);
    note("outer", NULL);
    mtprof_op details = {
        .struct_size = sizeof details, .fields = MTPROF_OP_MODULE, .module = id_of("net.layer")};
    mtprof_token b = mtprof_op_begin(&op, &details);
    note("op", "net.layer");
    mtprof_token c = mtprof_begin(&call);
    note("op", "net.layer");
    mtprof_token d = mtprof_begin_named("inner", 5, MTPROF_KIND_OP);
    note("inner", "net.layer");
    mtprof_token e = mtprof_begin(&async);
    note("inner", "net.layer");
    mtprof_token f = mtprof_begin_under(&op, 0);
    note("op", "net.layer");
    mtprof_end(f);
    mtprof_end(b); /* out of order */
    note("inner", NULL);
    mtprof_end(d);
    mtprof_end(e);
    note("outer", NULL);
    mtprof_end(c);
    mtprof_end(a);
    note(NULL, NULL);
    trace_view *v = tv_finish(s, NULL);
    check_answers(v, 8);
    tv_free(v);
}

TEST(names_in_full_last_as_well)
{
    static char long_name[70000];
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT);
    memset(long_name, 'x', sizeof long_name - 1); /* too long for a string of the trace */
    mtprof_token a = mtprof_begin_named(long_name, sizeof long_name - 1, MTPROF_KIND_OP);
    mtprof_token b = mtprof_begin_named("short", 5, MTPROF_KIND_SCOPE);
    uint32_t name, module;
    CHECK(mtprof_open_op(&name, &module));
    mtprof_end(b);
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    tv_free(v);
    s = tv_start(MTPROF_WANT_DEFAULT); /* the id is one of the process */
    static mtprof_site site = MTPROF_SITE_INIT("later", 0);
    mtprof_instant(&site);
    v = tv_finish(s, NULL);
    CHECK_EQ_U64(strlen(tv_string(v, name)), 1024); /* names in full are cut */
    tv_free(v);
}

enum {
    MOST = 40,
    STEPS = 20000
};

/* Through chunks of growing size, with a question each few records. */
static void *random_nesting(void *seed)
{
    mtprof_token tokens[MOST];
    const char *names[MOST];
    static const char *const texts[] = {"a", "b", "c", "d", "e"};
    uint32_t random = (uint32_t)(uintptr_t)seed;
    int n = 0;
    uint32_t unused, module;
    (void)mtprof_open_op(&unused, &module); /* from here on it is asked in every chunk */
    for (int i = 0; i < STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t choice = random >> 16;
        if (n < MOST && (n == 0 || choice % 2 == 0)) {
            names[n] = texts[choice / 2 % 5];
            tokens[n] = mtprof_begin_named(names[n], 1, MTPROF_KIND_OP);
            n++;
        } else {
            mtprof_end(tokens[--n]);
        }
        if (choice % 7 == 0) {
            note(n > 0 ? names[n - 1] : NULL, NULL);
        }
    }
    while (n > 0) {
        mtprof_end(tokens[--n]);
    }
    note(NULL, NULL);
    return NULL;
}

TEST(walks_go_on_from_chunk_to_chunk)
{
    pthread_t threads[3];
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT);
    for (uintptr_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, random_nesting, (void *)(i + 7)) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    trace_view *v = tv_finish(s, NULL);
    check_answers(v, STEPS / 10);
    tv_free(v);
}

/* OO2: what was begun in a chunk in which nobody asked is not known, and never wrong. */
TEST(what_is_not_known_is_not_said)
{
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    static mtprof_site other = MTPROF_SITE_INIT("other", MTPROF_KIND_OP);
    uint32_t name, module;
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT);
    mtprof_token a = mtprof_begin(&op);
    for (int i = 0; i < 100000; i++) {
        mtprof_end(mtprof_begin(&other));
    }
    CHECK(!mtprof_open_op(&name, &module));
    mtprof_token b = mtprof_begin(&other);
    CHECK(mtprof_open_op(&name, &module));
    mtprof_end(b);
    CHECK(!mtprof_open_op(&name, &module));
    mtprof_end(a);
    CHECK(!mtprof_open_op(&name, &module));
    tv_free(tv_finish(s, NULL));
    CHECK(!mtprof_open_op(&name, &module)); /* nothing records */
    s = tv_start(MTPROF_WANT_DEFAULT);
    CHECK(!mtprof_open_op(&name, &module)); /* another recording */
    tv_free(tv_finish(s, NULL));
}

/* ---- OO3 ---- */

static mtprof_site forward_site = MTPROF_SITE_INIT("aten::mm", MTPROF_KIND_OP);
static mtprof_site view_site = MTPROF_SITE_INIT("aten::expand", MTPROF_KIND_OP);
static mtprof_site node_site = MTPROF_SITE_INIT("MmBackward0", MTPROF_KIND_OP);

static mtprof_token begin_forward(mtprof_site *site, const char *module, int64_t sequence)
{
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | (module != NULL ? MTPROF_OP_MODULE : 0),
                    .sequence = sequence,
                    .module = module != NULL ? id_of(module) : 0};
    return mtprof_op_begin(site, &op);
}

static uint32_t forward_number;

static void check_backward(int64_t sequence, uint32_t thread, const char *module)
{
    mtprof_op op = {.struct_size = sizeof op,
                    .fields =
                        MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_RECORD_SCOPE,
                    .sequence = sequence,
                    .forward_thread = thread,
                    .record_scope = MTPROF_RECORD_SCOPE_BACKWARD};
    mtprof_token node = mtprof_op_begin(&node_site, &op);
    note("MmBackward0", module);
    mtprof_token inner = begin_forward(&forward_site, NULL, sequence + 100);
    note("aten::mm", module);
    mtprof_end(inner);
    mtprof_end(node);
}

static void *backward_pass(void *unused)
{
    (void)unused;
    check_backward(3, forward_number, "net.layer");
    check_backward(4, forward_number, "net.view"); /* it asked nothing itself */
    check_backward(5, forward_number, NULL);       /* in no module */
    check_backward(6, forward_number, NULL);       /* there was none */
    check_backward(3, forward_number + 1, NULL);   /* of another thread */
    check_backward(-1, forward_number, NULL);
    return NULL;
}

TEST(backward_ops_have_the_module_of_their_forward_op)
{
    pthread_t engine;
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_MODULES | MTPROF_WANT_DETAILS);
    mtprof_token view = begin_forward(&view_site, "net.view", 4);
    mtprof_end(view);
    mtprof_token op = begin_forward(&forward_site, "net.layer", 3);
    mtprof_token inner = begin_forward(&view_site, "net.inner", 3); /* the outermost one counts */
    note("aten::expand", "net.inner");
    mtprof_end(inner);
    mtprof_end(op);
    op = begin_forward(&forward_site, NULL, 5);
    note("aten::mm", NULL);
    mtprof_end(op);
    forward_number = mtprof_thread_number();
    REQUIRE(pthread_create(&engine, NULL, backward_pass, NULL) == 0);
    pthread_join(engine, NULL);
    trace_view *v = tv_finish(s, NULL);
    check_answers(v, 10);
    tv_free(v);
    s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_MODULES | MTPROF_WANT_DETAILS);
    check_backward(3, forward_number, NULL); /* another recording */
    tv_free(tv_finish(s, NULL));
}
