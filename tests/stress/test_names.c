/* SPDX-License-Identifier: Apache-2.0
 *
 * A million names and a million shapes, all different, in a bounded buffer: each comes back with
 * its event, as an id or in full, and nothing is lost.
 */
#include "stress/stress.h"

#include <stdlib.h>

enum {
    DIFFERENT = 1000000,
    DIFFERENT_SHORT = 150000, /* still more than are interned */
    BUDGET = 256 << 20,
    THREADS = 2
};

static uint64_t how_many(void)
{
    return mt_test_long() || !STRESS_SANITIZED ? DIFFERENT : DIFFERENT_SHORT;
}

static mtprof_session *start_names(const char *path)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .policy = MTPROF_POLICY_STOP,
                            .buffer_bytes = BUDGET,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS};
    mtprof_session *session = NULL;
    CHECK_OK(mtprof_session_start(&config, &session));
    return session;
}

/* Which numbers were seen, and how often something did not fit. */
typedef struct seen {
    uint8_t *times;
    uint64_t count, wrong, interned, in_full;
} seen;

static void see(seen *s, uint64_t number)
{
    if (number >= how_many() || s->times[number]++ != 0) {
        s->wrong++;
    }
    s->count++;
}

static void check_seen(const seen *s, mtprof_session *session)
{
    CHECK_EQ_U64(s->count, how_many());
    CHECK_EQ_U64(s->wrong, 0);
    CHECK(s->interned > 0 && s->in_full > 0);
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.begins, how_many());
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK(h.bytes <= BUDGET);
    printf("%llu of %d different, %llu as ids, %llu in full, %llu MiB\n",
           (unsigned long long)s->count, DIFFERENT, (unsigned long long)s->interned,
           (unsigned long long)s->in_full, (unsigned long long)h.bytes >> 20);
}

/* ---- names ---- */

typedef struct part {
    uint64_t from, to;
} part;

static void *record_names(void *argument)
{
    const part *p = argument;
    char name[64];
    for (uint64_t i = p->from; i < p->to; i++) {
        int n = snprintf(name, sizeof name, "name:%llu%.*s", (unsigned long long)i, (int)(i % 11),
                         "xxxxxxxxxx");
        mtprof_end(mtprof_begin_named(name, (size_t)n, 0));
    }
    return NULL;
}

static void see_name(seen *s, const char *text, size_t length)
{
    unsigned long long number = UINT64_MAX;
    char copy[64] = "";
    memcpy(copy, text, length < sizeof copy ? length : sizeof copy - 1);
    if (sscanf(copy, "name:%llu", &number) != 1) {
        s->wrong++;
        return;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "name:%llu%.*s", number, (int)(number % 11), "xxxxxxxxxx");
    s->wrong += strcmp(copy, expected) != 0;
    see(s, number);
}

static void look_at_names(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                          const mtprof_record *r)
{
    seen *s = context;
    if (stream->kind != MTPROF_STREAM_THREAD) {
        return;
    }
    if (r->kind == MTPROF_REC_BEGIN && r->arg != 0) {
        const char *name = rb_name(trace, r->arg);
        see_name(s, name, strlen(name));
        s->interned++;
    } else if (r->kind == MTPROF_REC_NAME) {
        see_name(s, (const char *)(r->words + 1), r->words[0]);
        s->in_full++;
    }
}

/* ---- shapes ---- */

static void *record_shapes(void *argument)
{
    const part *p = argument;
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    for (uint64_t i = p->from; i < p->to; i++) {
        int64_t sizes[] = {(int64_t)i, (int64_t)(i % 7), 5};
        mtprof_value input = {
            .kind = MTPROF_INPUT_TENSOR, .n_dims = 3, .type = 0, .of.sizes = sizes};
        mtprof_op details = {.struct_size = sizeof details, .inputs = &input, .n_inputs = 1};
        mtprof_end(mtprof_op_begin(&op, &details));
    }
    return NULL;
}

static void look_at_shapes(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                           const mtprof_record *r)
{
    seen *s = context;
    const uint64_t *words = r->words;
    uint32_t n = r->n_words;
    if (stream->kind != MTPROF_STREAM_THREAD ||
        (r->kind != MTPROF_REC_INPUTS && r->kind != MTPROF_REC_INPUTS_INLINE)) {
        return;
    }
    if (r->kind == MTPROF_REC_INPUTS) {
        if (!mtprof_reader_inputs(trace->reader, r->arg, &words, &n)) {
            s->wrong++;
            return;
        }
        s->interned++;
    } else {
        s->in_full++;
    }
    s->wrong += n != 4 || words[2] != words[1] % 7 || words[3] != 5;
    see(s, n == 4 ? words[1] : UINT64_MAX);
}

static void run(void *(*record)(void *), rb_visit *look, const char *path)
{
    mtprof_session *session = start_names(path);
    REQUIRE(session != NULL);
    pthread_t threads[THREADS];
    part parts[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        parts[i] = (part){how_many() * i / THREADS, how_many() * (i + 1) / THREADS};
        threads[i] = stress_thread(record, &parts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_OK(mtprof_session_stop(session));
    seen s = {.times = calloc(how_many(), 1)};
    REQUIRE(s.times != NULL);
    rb_trace t;
    if (rb_open_session(&t, session, look, &s)) {
        rb_check_clean(&t, "names");
        CHECK_EQ_U64(t.n_spans, how_many());
        CHECK_EQ_U64(t.open_spans, 0);
        rb_close(&t);
    }
    check_seen(&s, session);
    free(s.times);
    CHECK_OK(mtprof_session_close(session));
    if (path != NULL) {
        rb_check_file(path, false);
    }
}

TEST(a_million_names)
{
    run(record_names, look_at_names, NULL);
}

TEST(a_million_shapes)
{
    run(record_shapes, look_at_shapes, NULL);
}

TEST(a_million_names_in_a_file)
{
    char path[STRESS_PATH];
    run(record_names, look_at_names, stress_path(path, "names.mtt"));
}
