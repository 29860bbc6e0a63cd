/* SPDX-License-Identifier: Apache-2.0
 *
 * Following a recording: a finished one that is shown bit by bit, as if it were being written, and
 * one that threads write meanwhile. The reference is the model of the finished trace.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"

#include <mtprof/live.h>
#include <mtprof/model.h>
#include <mtprof/op.h>
#include <mtprof/session.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    HEADER = 64,
    NAMES = 16
};

static mtprof_site outer_site = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
static mtprof_site inner_site = MTPROF_SITE_INIT("inner", MTPROF_KIND_SCOPE);
static mtprof_site op_site = MTPROF_SITE_INIT("aten::op", MTPROF_KIND_OP);
static mtprof_site mark_site = MTPROF_SITE_INIT("mark", MTPROF_KIND_SCOPE);

static const char *trace_path(void)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/trace.mtt", mt_test_tmpdir());
    return path;
}

static mtprof_session *start(uint32_t policy, uint64_t buffer_bytes)
{
    mtprof_session *session = NULL;
    mtprof_config config = {.struct_size = sizeof config,
                            .path = trace_path(),
                            .policy = policy,
                            .buffer_bytes = buffer_bytes,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS |
                                     MTPROF_WANT_MODULES | MTPROF_WANT_ALLOCS};
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

/* ---- what threads record --------------------------------------------------------------------- */

static void record_op(uint32_t i)
{
    const int64_t sizes[2] = {1 + i % 3, 4};
    const mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = sizes};
    const mtprof_op op = {.struct_size = sizeof op,
                          .fields = MTPROF_OP_MODULE | MTPROF_OP_SEQUENCE,
                          .inputs = &input,
                          .n_inputs = 1,
                          .sequence = i,
                          .module = mtprof_intern(i % 2 == 0 ? "net.a" : "net.b", 5)};
    mtprof_token token = mtprof_op_begin(&op_site, &op);
    mtprof_alloc(0, 4096 + i, 64, 64 * (uint64_t)(i + 1), 1 << 20);
    mtprof_end(token);
}

/* Nested scopes, names of many kinds, payloads, instants. */
static void record_round(uint32_t i)
{
    char name[32];
    mtprof_token outer = mtprof_begin(&outer_site);
    for (uint32_t k = 0; k < 3; k++) {
        mtprof_token inner = mtprof_begin(&inner_site);
        if (k == 1) {
            record_op(i);
        }
        mtprof_end(inner);
    }
    int length = snprintf(name, sizeof name, "named %u", i % 4);
    mtprof_token named = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_SCOPE);
    mtprof_instant(&mark_site);
    mtprof_end(named);
    length = snprintf(name, sizeof name, "ProfilerStep#%u", i);
    mtprof_end(mtprof_begin_named(name, (size_t)length, MTPROF_KIND_STEP));
    mtprof_end(outer);
}

typedef struct crew {
    pthread_t threads[8];
    uint32_t n, rounds;
    uint32_t done; /* atomic: threads that are at their end */
} crew;

static void *work(void *context)
{
    crew *c = context;
    for (uint32_t i = 0; i < c->rounds; i++) {
        record_round(i);
    }
    __atomic_add_fetch(&c->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void crew_start(crew *c, uint32_t n, uint32_t rounds)
{
    *c = (crew){.n = n, .rounds = rounds};
    for (uint32_t i = 0; i < n; i++) {
        REQUIRE_EQ_I64(pthread_create(&c->threads[i], NULL, work, c), 0);
    }
}

static void crew_join(crew *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        pthread_join(c->threads[i], NULL);
    }
}

/* A finished trace. */
static void record_trace(uint32_t n_threads, uint32_t rounds)
{
    crew c;
    mtprof_session *session = start(MTPROF_POLICY_SPILL, 0);
    crew_start(&c, n_threads, rounds);
    crew_join(&c);
    mtprof_token left_open = mtprof_begin(&outer_site); /* until the end cuts it off */
    record_round(0);
    REQUIRE_OK(mtprof_session_close(session));
    mtprof_end(left_open);
}

/* ---- the reference --------------------------------------------------------------------------- */

typedef struct total {
    char name[64];
    double calls, self_ns;
} total;

typedef struct totals {
    total items[NAMES];
    size_t n;
} totals;

static total *total_of(totals *t, mtprof_text name)
{
    for (size_t i = 0; i < t->n; i++) {
        if (strlen(t->items[i].name) == name.length &&
            memcmp(t->items[i].name, name.bytes, name.length) == 0) {
            return &t->items[i];
        }
    }
    REQUIRE(t->n < NAMES);
    REQUIRE(name.length < sizeof t->items[0].name);
    memcpy(t->items[t->n].name, name.bytes, name.length);
    return &t->items[t->n++];
}

static const void *column(mtprof_model *model, enum mtprof_column_id id, uint64_t *n)
{
    mtprof_column c;
    REQUIRE_OK(mtprof_model_get_column(model, id, &c));
    *n = c.count;
    return c.data;
}

static void model_totals(totals *t)
{
    mtprof_model *model = NULL;
    const mtprof_model_options options = {.struct_size = sizeof options, .keep_duplicates = 1};
    uint64_t n;
    memset(t, 0, sizeof *t);
    REQUIRE_OK(mtprof_model_open(trace_path(), &options, &model));
    const uint32_t *names = column(model, MTPROF_COLUMN_NAME, &n);
    const int64_t *self = column(model, MTPROF_COLUMN_SELF_NS, &n);
    const uint8_t *kinds = column(model, MTPROF_COLUMN_KIND, &n);
    for (uint64_t i = 0; i < n; i++) {
        if (kinds[i] <= MTPROF_EVENT_KIND_STEP) {
            uint32_t key = mtprof_model_name_key(model, names[i]);
            total *row = total_of(t, mtprof_model_name(model, key));
            row->calls++;
            row->self_ns += (double)self[i];
        }
    }
    mtprof_model_free(model);
}

static void live_totals(mtprof_live *live, uint32_t group, totals *t)
{
    const mtprof_live_query query = {.struct_size = sizeof query, .group = group, .idle = 1};
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    memset(t, 0, sizeof *t);
    REQUIRE_OK(mtprof_live_get_rows(live, &query, &rows, &n));
    for (uint32_t i = 0; i < n; i++) {
        total *row = total_of(t, rows[i].name);
        row->calls += rows[i].calls_all;
        row->self_ns += rows[i].self_all_ns;
    }
}

/* tolerance: of self times, relative. */
static void check_same(totals *model, totals *live, double tolerance)
{
    CHECK_EQ_U64(live->n, model->n);
    for (size_t i = 0; i < model->n; i++) {
        const total *want = &model->items[i];
        const total *got = total_of(live, (mtprof_text){want->name, strlen(want->name)});
        if (got->calls != want->calls) {
            FAIL("%s: %g calls, expected %g", want->name, got->calls, want->calls);
        }
        double most = tolerance * want->self_ns + (tolerance > 0 ? 1000 : 0);
        double apart = got->self_ns - want->self_ns;
        if (apart > most || apart < -most) {
            FAIL("%s: self time %.0f ns, expected %.0f", want->name, got->self_ns, want->self_ns);
        }
    }
}

static mtprof_live_info info_of(const mtprof_live *live)
{
    mtprof_live_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_live_get_info(live, &info));
    return info;
}

/* ---- a finished trace, shown bit by bit ------------------------------------------------------ */

/* One chunk of the file. */
typedef struct piece {
    size_t at;
    uint64_t committed, before; /* before: bytes of the same slot in earlier chunks */
    bool thread;
} piece;

/* The chunks of thread slots are published so far; everything else was there before. */
typedef struct replay {
    unsigned char *image, *view;
    size_t size;
    piece pieces[256];
    size_t n_pieces;
    uint64_t shown;     /* bytes of records of each slot */
    uint64_t most_slot; /* bytes of the slot that has most */
} replay;

static uint64_t word_at(const replay *r, size_t offset)
{
    uint64_t word;
    memcpy(&word, r->image + offset, sizeof word);
    return word;
}

/* The first chunk from a place on; the size of the file where there is none. Between segments pages
 * are unused. */
static size_t chunk_from(const replay *r, size_t at)
{
    while (at + HEADER <= r->size && memcmp(r->image + at, "MTCK", 4) != 0) {
        at += PAGE;
    }
    return at + HEADER <= r->size ? at : r->size;
}

static size_t chunk_size(const replay *r, size_t at)
{
    return (size_t)(word_at(r, at) >> 32);
}

/* Whole records in the first bytes of a chunk: no writer publishes a part of one. */
static uint64_t whole_records(const replay *r, size_t chunk, uint64_t bytes)
{
    uint64_t at = 0;
    while (at < bytes) {
        uint64_t word = word_at(r, chunk + HEADER + at);
        uint64_t n = (word & 0x80) != 0 ? 1 : word >> 8 & 0xFF;
        n = n == 255 ? word_at(r, chunk + HEADER + at + 8) : n;
        if (at + 8 * n > bytes) {
            break;
        }
        at += 8 * n;
    }
    return at;
}

/* Shows so many bytes of each slot, in a file that is not closed. Chunks are made in the order of
 * the file, and one of a slot when the one before it is full. */
static void replay_show(replay *r, uint64_t shown)
{
    bool made = true;
    r->shown = shown;
    memcpy(r->view, r->image, r->size);
    memset(r->view + 1280, 0, 32);
    for (size_t i = 0; i < r->n_pieces; i++) {
        const piece *p = &r->pieces[i];
        made = made && (!p->thread || p->before == 0 || p->before < shown);
        memset(r->view + p->at + 56, 0, 8); /* open */
        if (p->thread && !made) {
            memset(r->view + p->at, 0, 4); /* the magic comes last */
        } else if (p->thread) {
            uint64_t part = shown - p->before < p->committed ? shown - p->before : p->committed;
            part = whole_records(r, p->at, part);
            memcpy(r->view + p->at + 48, &part, sizeof part);
        }
    }
}

static int64_t replay_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    replay *r = context;
    if (offset >= r->size) {
        return 0;
    }
    size_t n = r->size - offset < length ? r->size - (size_t)offset : length;
    memcpy(buffer, r->view + offset, n);
    return (int64_t)n;
}

static uint64_t replay_size(void *context)
{
    return ((const replay *)context)->size;
}

/* Everything that is not a thread's was there before: it comes first in the file. */
static void put_threads_last(replay *r)
{
    size_t to = PAGE;
    memcpy(r->view, r->image, r->size);
    memset(r->view + PAGE, 0, r->size - PAGE);
    for (int threads = 0; threads <= 1; threads++) {
        for (size_t at = chunk_from(r, PAGE); at < r->size;
             at = chunk_from(r, at + chunk_size(r, at))) {
            if ((r->image[at + 8] == MTPROF_STREAM_THREAD) == (threads == 1)) {
                memcpy(r->view + to, r->image + at, chunk_size(r, at));
                to += chunk_size(r, at);
            }
        }
    }
    memcpy(r->image, r->view, r->size);
}

static void replay_load(replay *r)
{
    FILE *file = fopen(trace_path(), "rb");
    REQUIRE(file != NULL);
    REQUIRE_EQ_I64(fseek(file, 0, SEEK_END), 0);
    *r = (replay){.size = (size_t)ftell(file)};
    r->image = malloc(r->size);
    r->view = malloc(r->size);
    rewind(file);
    REQUIRE(r->image != NULL && r->view != NULL);
    REQUIRE_EQ_U64(fread(r->image, 1, r->size, file), r->size);
    fclose(file);
    put_threads_last(r);
    uint64_t bytes[16] = {0};
    for (size_t at = chunk_from(r, PAGE); at < r->size;
         at = chunk_from(r, at + chunk_size(r, at))) {
        uint16_t slot = (uint16_t)(word_at(r, at + 8) >> 16);
        bool thread = r->image[at + 8] == MTPROF_STREAM_THREAD;
        REQUIRE(r->n_pieces < 256 && slot < 16);
        uint64_t committed = word_at(r, at + 48);
        r->pieces[r->n_pieces++] = (piece){at, committed, thread ? bytes[slot] : 0, thread};
        bytes[slot] += thread ? committed : 0;
        r->most_slot = bytes[slot] > r->most_slot ? bytes[slot] : r->most_slot;
    }
    replay_show(r, 0);
}

static void replay_free(replay *r)
{
    free(r->image);
    free(r->view);
}

static mtprof_live *replay_open(replay *r, const mtprof_live_options *options)
{
    mtprof_live *live = NULL;
    const mtprof_bytes bytes = {
        .struct_size = sizeof bytes, .context = r, .read = replay_read, .size = replay_size};
    REQUIRE_OK(mtprof_live_open_bytes(&bytes, options, &live));
    return live;
}

static const mtprof_live_options whole = {.struct_size = sizeof whole, .from_start = 1};

/* Polls after every `most` words or fewer, then to the end. */
static void replay_all(replay *r, uint64_t most)
{
    totals model;
    totals live_rows;
    uint64_t random = mt_test_seed();
    model_totals(&model);
    mtprof_live *live = replay_open(r, &whole);
    int64_t now = 1; /* any time: what is open is put right when it ends */
    while (r->shown < r->most_slot) {
        replay_show(r, r->shown + 8 * (1 + mt_test_random(&random) % most));
        REQUIRE_OK(mtprof_live_poll(live, now));
        now = info_of(live).now_ns + 1000;
    }
    CHECK_EQ_U64(info_of(live).state, MTPROF_LIVE_RUNNING);
    memcpy(r->view, r->image, r->size);
    REQUIRE_OK(mtprof_live_poll(live, now));
    REQUIRE_OK(mtprof_live_poll(live, now));
    mtprof_live_info info = info_of(live);
    CHECK_EQ_U64(info.state, MTPROF_LIVE_CLOSED);
    CHECK_EQ_U64(info.damaged, 0);
    CHECK_EQ_U64(info.missed, 0);
    for (uint32_t group = 0; group < 8; group++) {
        live_totals(live, group, &live_rows);
        check_same(&model, &live_rows, 0);
    }
    mtprof_live_close(live);
}

TEST(every_word_a_poll)
{
    replay r;
    record_trace(2, 3);
    replay_load(&r);
    replay_all(&r, 1); /* between begins and their payloads, too */
    replay_free(&r);
}

TEST(polls_at_any_place_add_up_to_the_model)
{
    replay r;
    record_trace(3, 400); /* several chunks a slot */
    replay_load(&r);
    replay_all(&r, 800);
    replay_free(&r);
}

TEST(late_payloads_are_in_the_right_row)
{
    replay r;
    const mtprof_live_query by_all = {.struct_size = sizeof by_all,
                                      .group = MTPROF_LIVE_BY_SHAPES | MTPROF_LIVE_BY_MODULE,
                                      .name = "aten::op",
                                      .idle = 1};
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    record_trace(1, 6);
    replay_load(&r);
    mtprof_live *live = replay_open(&r, &whole);
    while (r.shown < r.most_slot) {
        replay_show(&r, r.shown + 8);
        REQUIRE_OK(mtprof_live_poll(live, 1));
    }
    REQUIRE_OK(mtprof_live_get_rows(live, &by_all, &rows, &n));
    CHECK_EQ_U64(n, 6); /* 3 shapes, 2 modules */
    for (uint32_t i = 0; i < n; i++) {
        CHECK(rows[i].shapes.length > 0 && rows[i].module.length == 5);
        CHECK(rows[i].calls_all >= 1 && rows[i].calls_all <= 2); /* one more by the main thread */
    }
    mtprof_live_close(live);
    replay_free(&r);
}

/* ---- the window ------------------------------------------------------------------------------ */

static double self_of(mtprof_live *live, const char *name)
{
    const mtprof_live_query query = {.struct_size = sizeof query, .name = name};
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    REQUIRE_OK(mtprof_live_get_rows(live, &query, &rows, &n));
    return n > 0 ? rows[0].self_ns : -1;
}

TEST(what_is_open_gets_its_time_and_leaves_with_the_window)
{
    const mtprof_live_options options = {
        .struct_size = sizeof options, .from_start = 1, .window_ns = 2000};
    mtprof_live *live = NULL;
    mtprof_session *session = start(MTPROF_POLICY_SPILL, 0);
    mtprof_token token = mtprof_begin(&inner_site);
    REQUIRE_OK(mtprof_live_open(trace_path(), &options, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    CHECK_EQ_U64(info_of(live).state, MTPROF_LIVE_RUNNING);
    /* Far ahead, so that what the recorder notes meanwhile is before it. */
    int64_t now = info_of(live).now_ns + 3600000000000;
    for (int i = 0; i <= 4; i++) {
        REQUIRE_OK(mtprof_live_poll(live, now + 1000 * i));
    }
    CHECK_EQ_I64(info_of(live).window_ns, 2000);
    CHECK_EQ_F64(self_of(live, "inner"), 2000); /* all of the window */
    mtprof_end(token);
    REQUIRE_OK(mtprof_live_poll(live, now + 1000000000));
    REQUIRE_OK(mtprof_live_poll(live, now + 1000010000));
    CHECK_EQ_F64(self_of(live, "inner"), -1); /* nothing of it is in the window */
    REQUIRE_OK(mtprof_session_close(session));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    CHECK_EQ_U64(info_of(live).state, MTPROF_LIVE_CLOSED);
    mtprof_live_close(live);
}

TEST(a_finished_trace_shows_its_last_part)
{
    const mtprof_live_options last = {.struct_size = sizeof last, .window_ns = 1};
    totals model;
    totals rows;
    mtprof_live *live = NULL;
    record_trace(2, 300);
    model_totals(&model);
    REQUIRE_OK(mtprof_live_open(trace_path(), &last, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    live_totals(live, 0, &rows);
    total *outer = total_of(&rows, (mtprof_text){"outer", 5});
    CHECK_EQ_F64(outer->calls, 0);
    CHECK(outer->self_ns >= 0 && outer->self_ns <= 1);
    mtprof_live_info before = info_of(live);
    REQUIRE_OK(mtprof_live_poll(live, 0)); /* the last table stays */
    CHECK_EQ_U64(info_of(live).polls, before.polls);
    CHECK_EQ_I64(info_of(live).now_ns, before.now_ns);
    mtprof_live_close(live);
}

/* ---- while threads write --------------------------------------------------------------------- */

/* Polls until the threads are done and the session is closed. */
static mtprof_live *follow(const mtprof_live_options *options, uint32_t policy, uint64_t bytes,
                           uint32_t n_threads, uint32_t rounds)
{
    crew c;
    mtprof_live *live = NULL;
    mtprof_session *session = start(policy, bytes);
    record_round(0);
    REQUIRE_OK(mtprof_live_open(trace_path(), options, &live));
    crew_start(&c, n_threads, rounds);
    while (__atomic_load_n(&c.done, __ATOMIC_ACQUIRE) < n_threads) {
        REQUIRE_OK(mtprof_live_poll(live, 0));
    }
    crew_join(&c);
    REQUIRE_OK(mtprof_live_poll(live, 0));
    REQUIRE_OK(mtprof_session_close(session));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    CHECK_EQ_U64(info_of(live).state, MTPROF_LIVE_CLOSED);
    return live;
}

TEST(threads_write_while_it_reads)
{
    totals model;
    totals rows;
    mtprof_live *live = follow(&whole, MTPROF_POLICY_SPILL, 0, 3, mt_test_long() ? 200000 : 20000);
    mtprof_live_info info = info_of(live);
    CHECK_EQ_U64(info.missed, 0);
    CHECK_EQ_U64(info.damaged, 0);
    CHECK_EQ_I64(info.allocated > 0, 1);
    model_totals(&model);
    live_totals(live, MTPROF_LIVE_BY_THREAD | MTPROF_LIVE_BY_SHAPES, &rows);
    check_same(&model, &rows, 0.01); /* times are extrapolated between anchors */
    mtprof_live_close(live);
}

/* Nothing may be read from a chunk that another part of the ring has become meanwhile. */
TEST(a_ring_that_goes_round_while_it_reads)
{
    totals rows;
    mtprof_live *live =
        follow(&whole, MTPROF_POLICY_RING, 1 << 20, 3, mt_test_long() ? 200000 : 30000);
    mtprof_live_info info = info_of(live);
    CHECK_EQ_U64(info.damaged, 0);
    CHECK_EQ_U64(info.policy, MTPROF_POLICY_RING);
    CHECK(info.evicted > 0);
    live_totals(live, 0, &rows);
    for (size_t i = 0; i < rows.n; i++) {
        const char *name = rows.items[i].name;
        CHECK(strcmp(name, "outer") == 0 || strcmp(name, "inner") == 0 ||
              strcmp(name, "aten::op") == 0 || strncmp(name, "named ", 6) == 0 ||
              strcmp(name, "ProfilerStep*") == 0);
    }
    mtprof_live_close(live);
}

/* A ring that a reader comes back to after it went round: what is gone is counted. */
TEST(chunks_that_are_gone_are_counted)
{
    mtprof_live *live = NULL;
    mtprof_session *session = start(MTPROF_POLICY_RING, 256 << 10);
    record_round(0);
    REQUIRE_OK(mtprof_live_open(trace_path(), &whole, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    for (uint32_t i = 0; i < 20000; i++) {
        record_round(i);
    }
    REQUIRE_OK(mtprof_live_poll(live, 0));
    mtprof_live_info info = info_of(live);
    CHECK(info.missed > 0);
    CHECK_EQ_U64(info.damaged, 0);
    CHECK(info.bytes_read < info.bytes_new);
    /* Scaled up, it is about what was recorded. */
    totals rows;
    live_totals(live, 0, &rows);
    CHECK_NEAR_F64(total_of(&rows, (mtprof_text){"outer", 5})->calls, 20000, 4000);
    mtprof_live_close(live);
    REQUIRE_OK(mtprof_session_close(session));
}

/* The first look at a ring that has gone round is about the time that it still has, not about the
 * whole window: rates would be too low. */
TEST(the_window_begins_where_a_ring_begins)
{
    enum {
        ROUNDS = 20000
    };
    static const mtprof_live_options hour = {.struct_size = sizeof hour,
                                             .window_ns = (int64_t)3600 * 1000000000};
    mtprof_live *live = NULL;
    mtprof_session *session = start(MTPROF_POLICY_RING, 256 << 10);
    struct timespec times[ROUNDS / 100]; /* when each hundredth round began */
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (i % 100 == 0) {
            clock_gettime(CLOCK_MONOTONIC, &times[i / 100]);
        }
        record_round(i);
    }
    REQUIRE_OK(mtprof_live_open(trace_path(), &hour, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    mtprof_live_info info = info_of(live);
    REQUIRE(info.evicted > 0);
    totals rows;
    live_totals(live, 0, &rows);
    double calls = total_of(&rows, (mtprof_text){"outer", 5})->calls;
    REQUIRE(calls > 100 && calls < ROUNDS - 300);
    /* The rounds that were counted began between these two. */
    size_t first = (size_t)(ROUNDS - calls) / 100;
    int64_t before = (int64_t)times[first].tv_sec * 1000000000 + times[first].tv_nsec;
    int64_t after = (int64_t)times[first + 2].tv_sec * 1000000000 + times[first + 2].tv_nsec;
    int64_t begin = info.now_ns - info.window_ns;
    CHECK(begin >= before - 1000000);
    CHECK(begin <= after + 1000000);
    mtprof_live_close(live);
    REQUIRE_OK(mtprof_session_close(session));
}

TEST(a_sample_is_scaled_up)
{
    const mtprof_live_options sample = {
        .struct_size = sizeof sample, .from_start = 1, .most_bytes = 3 << 20};
    totals model;
    totals rows;
    mtprof_live *live = NULL;
    record_trace(2, 40000);
    model_totals(&model);
    REQUIRE_OK(mtprof_live_open(trace_path(), &sample, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    mtprof_live_info info = info_of(live);
    CHECK(info.bytes_new > 12u << 20);
    CHECK(info.bytes_read > 0 && info.bytes_read < 6u << 20);
    CHECK_EQ_U64(info.missed, 0);
    live_totals(live, 0, &rows);
    total *want = total_of(&model, (mtprof_text){"inner", 5});
    CHECK_NEAR_F64(total_of(&rows, (mtprof_text){"inner", 5})->calls, want->calls,
                   0.1 * want->calls);
    mtprof_live_close(live);
}

/* The last chunk of a stream is never left out for good: what comes later is in it. */
TEST(a_thread_that_becomes_slow_is_seen)
{
    const mtprof_live_options sample = {
        .struct_size = sizeof sample, .from_start = 1, .most_bytes = 1 << 20};
    mtprof_live *live = NULL;
    mtprof_session *session = start(MTPROF_POLICY_SPILL, 0);
    REQUIRE_OK(mtprof_live_open(trace_path(), &sample, &live));
    for (uint32_t i = 0; i < 20000; i++) {
        record_round(i);
    }
    REQUIRE_OK(mtprof_live_poll(live, 0));
    static mtprof_site rare = MTPROF_SITE_INIT("rare", MTPROF_KIND_SCOPE);
    mtprof_end(mtprof_begin(&rare));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    CHECK(self_of(live, "rare") >= 0);
    mtprof_live_close(live);
    REQUIRE_OK(mtprof_session_close(session));
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(too_many_names_become_one_row)
{
    enum {
        MANY = 66000 /* of 65,536 */
    };
    mtprof_live *live = NULL;
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    mtprof_session *session = start(MTPROF_POLICY_SPILL, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "name %u", i);
        mtprof_end(mtprof_begin_named(name, (size_t)length, MTPROF_KIND_SCOPE));
    }
    REQUIRE_OK(mtprof_session_close(session));
    REQUIRE_OK(mtprof_live_open(trace_path(), &whole, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    CHECK(info_of(live).rows_merged > 0);
    REQUIRE_OK(mtprof_live_get_rows(live, NULL, &rows, &n));
    CHECK(n <= 65536);
    double calls = 0;
    for (uint32_t i = 0; i < n; i++) {
        calls += rows[i].calls;
    }
    CHECK_EQ_F64(calls, MANY); /* none is lost */
    mtprof_live_close(live);
}

TEST(a_window_holds_so_many_polls)
{
    const mtprof_live_options long_window = {
        .struct_size = sizeof long_window, .from_start = 1, .window_ns = INT64_MAX / 4};
    replay r;
    record_trace(1, 1);
    replay_load(&r);
    mtprof_live *live = replay_open(&r, &long_window);
    replay_show(&r, 56);
    const int64_t now = INT64_MAX / 8;
    for (int i = 0; i < 4200; i++) {
        REQUIRE_OK(mtprof_live_poll(live, now + 10 * i));
    }
    CHECK_EQ_U64(info_of(live).polls, 4096);
    CHECK_EQ_I64(info_of(live).window_ns, 40960);
    mtprof_live_close(live);
    replay_free(&r);
}

/* ---- misuse, and no memory ------------------------------------------------------------------- */

TEST(misuse_is_refused)
{
    mtprof_live *live = NULL;
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    CHECK_EQ_I64(mtprof_live_open(NULL, NULL, &live), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_live_open("/nowhere/at/all", NULL, &live), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_live_open_bytes(NULL, NULL, &live), MTPROF_EINVAL);
    record_trace(1, 1);
    const mtprof_live_options no_size = {0};
    const mtprof_live_options back = {.struct_size = sizeof back, .window_ns = -1};
    CHECK_EQ_I64(mtprof_live_open(trace_path(), &no_size, &live), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_live_open(trace_path(), &back, &live), MTPROF_EINVAL);
    CHECK_EQ_PTR(live, NULL);
    REQUIRE_OK(mtprof_live_open(trace_path(), NULL, &live));
    CHECK_EQ_I64(mtprof_live_set_window(live, 0), MTPROF_EINVAL);
    mtprof_live_query query = {.struct_size = sizeof query, .sort = MTPROF_LIVE_SORT_COUNT};
    CHECK_EQ_I64(mtprof_live_get_rows(live, &query, &rows, &n), MTPROF_EINVAL);
    query = (mtprof_live_query){.struct_size = sizeof query, .group = 8};
    CHECK_EQ_I64(mtprof_live_get_rows(live, &query, &rows, &n), MTPROF_EINVAL);
    mtprof_live_info info = {0};
    CHECK_EQ_I64(mtprof_live_get_info(live, &info), MTPROF_EINVAL);
    mtprof_live_device device = {.struct_size = sizeof device};
    CHECK_EQ_I64(mtprof_live_get_device(live, 0, &device), MTPROF_EINVAL);
    REQUIRE_OK(mtprof_live_get_rows(live, NULL, &rows, &n)); /* before the first poll: none */
    CHECK_EQ_U64(n, 0);
    mtprof_live_close(live);
    mtprof_live_close(NULL);
}

/* Opens, polls twice and asks; how far it came. */
static mtprof_status use_all(mtprof_live **live)
{
    const mtprof_live_query query = {.struct_size = sizeof query, .group = 7, .name = "e"};
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    mtprof_status status = mtprof_live_open(trace_path(), &whole, live);
    for (int i = 0; status == MTPROF_OK && i < 2; i++) {
        status = mtprof_live_poll(*live, 0);
    }
    return status == MTPROF_OK ? mtprof_live_get_rows(*live, &query, &rows, &n) : status;
}

TEST(no_memory_at_any_place)
{
    mtprof_live *live = NULL;
    record_trace(2, 40);
    mtb_fail_nth(0, false);
    REQUIRE_OK(use_all(&live));
    uint64_t n = mtb_fail_nth(0, false);
    mtprof_live_close(live);
    CHECK(n > 30);
    for (uint64_t i = 1; i <= n; i++) {
        mtb_fail_nth(i, false);
        mtprof_status status = use_all(&live);
        mtb_fail_nth(0, false);
        if (status != MTPROF_ENOMEM && status != MTPROF_OK) { /* some are asked for twice */
            FAIL("request %llu: status %d", (unsigned long long)i, (int)status);
        }
        if (live != NULL) {
            CHECK_OK(mtprof_live_poll(live, 0)); /* the next one may be made all the same */
        }
        mtprof_live_close(live);
    }
}
