/* SPDX-License-Identifier: Apache-2.0
 *
 * make_trace FORM PATH: records a trace with every kind of record that the recorder writes, in one
 * of these forms, for comparing readers.
 *
 *      memory    in memory, saved        file      into the file, closed
 *      ring      a small ring, saved     ringfile  a small ring in the file
 *      crash     into the file, then kill -9 in the middle
 */
#include "base/alloc.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/hot/ticks.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site op_site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site launch_site =
    MTPROF_SITE_INIT("launch", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
static mtprof_site mark = MTPROF_SITE_INIT("mark", MTPROF_KIND_SCOPE);

static mtprof_source *source;

static void must(mtprof_status status)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "make_trace: %s\n", mtprof_last_error()->message);
        exit(1);
    }
}

/* ---- a source -------------------------------------------------------------------------------- */

static mtprof_status source_start(void *context, mtprof_source *self, uint64_t wants)
{
    (void)context;
    (void)self;
    (void)wants;
    return MTPROF_OK;
}

static mtprof_status source_refuses(void *context, mtprof_source *self, uint64_t wants)
{
    (void)context;
    (void)self;
    (void)wants;
    return MTPROF_ENOTSUP; /* leads to a WARNING */
}

static void source_stop(void *context)
{
    (void)context;
}

static uint64_t source_clock(void *context)
{
    (void)context;
    return mtprof_ticks() / 3 + 1000;
}

static void add_sources(void)
{
    mtprof_source_ops ops = {
        .struct_size = sizeof ops,
        .abi = MTPROF_SOURCE_ABI,
        .name = "device",
        .device_type = "SYN",
        .start = source_start,
        .stop = source_stop,
        .clock = source_clock,
    };
    must(mtprof_source_register(&ops, &source));
    mtprof_source *other;
    ops.name = "refuses";
    ops.device_type = NULL;
    ops.start = source_refuses;
    must(mtprof_source_register(&ops, &other));
}

static void push_things(uint64_t launch_key)
{
    mtprof_activity_meta meta[] = {
        {mtprof_intern("grid", 4), MTPROF_META_UINT, 128},
        {mtprof_intern("kind", 4), MTPROF_META_STRING, mtprof_intern("gemm", 4)},
    };
    uint64_t now = source_clock(NULL);
    mtprof_activity a = {
        .struct_size = sizeof a,
        .kind = MTPROF_ACTIVITY_KERNEL,
        .name = "kernel",
        .name_length = 6,
        .start = now,
        .end = now + 50,
        .launch_key = launch_key,
        .device = 1,
        .queue = 7,
        .correlation = 9,
        .bytes = 4096,
        .meta = meta,
        .n_meta = 2,
    };
    mtprof_push_activity(source, &a);
    mtprof_push_counter(source, mtprof_intern("power", 5), now, 2.5);
    mtprof_push_lost(source, 2);
}

/* ---- events ---------------------------------------------------------------------------------- */

static mtprof_value integer(int64_t value)
{
    return (mtprof_value){.kind = MTPROF_INPUT_INT, .of.integer = value};
}

/* An op with every payload. */
static void full_op(int64_t turn)
{
    const int64_t sizes[] = {turn % 50, 3}, strides[] = {3, 1};
    const mtprof_value inside[] = {integer(turn), integer(-1)};
    const mtprof_value values[] = {
        {.kind = MTPROF_INPUT_TENSOR,
         .n_dims = 2,
         .type = mtprof_intern("float", 5),
         .of.sizes = sizes,
         .strides = strides},
        {.kind = MTPROF_INPUT_LIST, .type = 2, .of.items = inside},
        {.kind = MTPROF_INPUT_KEYWORD, .type = mtprof_intern("alpha", 5)},
        {.kind = MTPROF_INPUT_REAL, .of.real = 0.5},
        {.kind = MTPROF_INPUT_STRING, .of.text = mtprof_intern("mean", 4)},
        {.kind = MTPROF_INPUT_BOOL, .of.integer = 1},
        {.kind = MTPROF_INPUT_NONE},
    };
    const mtprof_tensor_ref tensors[] = {{1, 2, 3, 4, 5, 0}, {6, 7, 8, 9, 10, 0}};
    const uint32_t frames[] = {mtprof_define_frame("main", 4, "a.py", 4, 1),
                               mtprof_define_frame("step", 4, "a.py", 4, (uint32_t)(turn % 9))};
    mtprof_op op = {
        .struct_size = sizeof op,
        .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_OVERLOAD |
                  MTPROF_OP_RECORD_SCOPE | MTPROF_OP_FLOPS | MTPROF_OP_MODULE |
                  MTPROF_OP_CORRELATION | MTPROF_OP_MEMORY,
        .inputs = values,
        .n_inputs = 7,
        .tensors = tensors,
        .n_tensors = 2,
        .sequence = (uint64_t)turn,
        .forward_thread = 1,
        .overload = mtprof_intern("Tensor", 6),
        .record_scope = 1,
        .module = mtprof_intern("net.0", 5),
        .flops = 1000,
        .correlation = 77,
        .memory_before = 512,
        .stack = turn % 2 == 0 ? mtprof_stack(frames, 2) : 0, /* 0: a native one */
    };
    mtprof_token token = mtprof_op_begin(&op_site, &op);
    mtprof_alloc(1, 0x1000, 64, 64, 4096);
    mtprof_op_outputs(token, tensors, 1); /* late: with ATTACH */
    mtprof_meta_text(token, mtprof_intern("note", 4), "any\0bytes", 9);
    mtprof_op_end(token, 1, 576);
}

static void *other_thread(void *argument)
{
    mtprof_token *token = argument;
    mtprof_name_thread("other");
    mtprof_end(*token);
    mtprof_token under = mtprof_begin_under(&scope, *token);
    mtprof_meta_real(under, mtprof_intern("real", 4), 1.25);
    mtprof_end(under);
    return NULL;
}

static void hand_over(void)
{
    mtprof_token token = mtprof_begin(&scope);
    pthread_t thread;
    if (pthread_create(&thread, NULL, other_thread, &token) == 0) {
        pthread_join(thread, NULL);
    }
}

/* What only comes when memory is refused or names are long: payloads in full. */
static void in_full(void)
{
    static char name[70000];
    memset(name, 'n', sizeof name);
    mtprof_end(mtprof_begin_named(name, sizeof name, 0)); /* NAME */
    const int64_t sizes[] = {123456};
    const mtprof_value value = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 1, .of.sizes = sizes};
    mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
    mtb_fail_nth(1, true);
    mtprof_end(mtprof_op_begin(&op_site, &op)); /* the thread's first: INPUTS_INLINE */
    mtb_fail_nth(0, false);
}

static void one_turn(int64_t i)
{
    char name[64];
    int n = snprintf(name, sizeof name, "name %lld", (long long)i % 200);
    mtprof_token token = mtprof_begin_named(name, (size_t)n, MTPROF_KIND_STEP);
    mtprof_meta_int(token, mtprof_intern("turn", 4), i);
    full_op(i);
    mtprof_instant(&mark);
    mtprof_meta_bool(MTPROF_LATEST_INSTANT, mtprof_intern("yes", 3), true);
    mtprof_instant_named("named", 5, 0);
    mtprof_counter(&mark, -i);
    mtprof_counter_real(&mark, 0.25);
    mtprof_flow(&mark, (enum mtprof_flow_phase)(i % 3), (uint64_t)i);
    mtprof_token call = mtprof_begin(&launch_site);
    uint64_t key = mtprof_launch(i % 2 == 0 ? &launch_site : NULL, 1, 7);
    mtprof_end(call);
    mtprof_end(token);
    mtprof_alloc(1, 0x1000, -64, 0, 4096);
    mtprof_out_of_memory(1, (uint64_t)1 << 40, 0, 4096);
    if (i % 10 == 0) {
        push_things(key);
    }
    if (i % 100 == 0) {
        hand_over();
    }
}

/* Puts a session with a limit of its overhead on a level, until its next window or resume. */
static void set_level(mtprof_session *session, uint32_t level)
{
    mtprof__limiter *l = &session->helper.limiter;
    mtb_lock_acquire(&l->lock);
    l->limit.level = level;
    l->due_ns = UINT64_MAX - 1; /* the recorder takes no turns of its own */
    if (l->active) {
        mtprof__epoch_adjust(mtprof__limit_wants(&l->limit, l->wants, l->functions));
    }
    mtb_lock_release(&l->lock);
}

static void record_turns(mtprof_session *session, int64_t turns)
{
    mtprof_token far_away = mtprof_begin(&scope);
    for (int64_t i = 0; i < turns; i++) {
        one_turn(i);
        if (i == turns / 2) {
            must(mtprof_session_step(session, (uint64_t)i, 2));
            set_level(session, MTPROF_LIMIT_PAYLOADS);
            one_turn(i);
            must(mtprof_session_pause(session)); /* UNRECORDED, LIMIT */
            set_level(session, 0);
            must(mtprof_session_resume(session, 0));
            far_away = mtprof_begin(&scope);
        }
    }
    mtprof__clock_disturb((int64_t)1 << 33, true);
    mtprof_alloc(0, 0x2000, 1, 1, 1); /* inside a scope */
    mtprof__clock_disturb((int64_t)1 << 42, true);
    mtprof_end(far_away); /* too far for a short time */
    mtprof__clock_disturb(((int64_t)1 << 42) + ((int64_t)1 << 34), true);
    mtprof_alloc(0, 0x2000, -1, 0, 0); /* TIME */
    mtprof_begin(&scope);              /* stays open */
}

static const char usage[] = "usage: make_trace memory|file|ring|ringfile|crash PATH [TURNS]\n";

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs(usage, stderr);
        return 2;
    }
    const char *form = argv[1], *path = argv[2];
    int64_t turns = argc > 3 ? atoll(argv[3]) : 300;
    bool ring = strncmp(form, "ring", 4) == 0;
    bool in_file = strcmp(form, "memory") != 0 && strcmp(form, "ring") != 0;
    mtprof_config config = {
        .struct_size = sizeof config,
        .policy = ring ? MTPROF_POLICY_RING : MTPROF_POLICY_SPILL,
        .buffer_bytes = ring ? 512 << 10 : 0,
        .path = in_file ? path : NULL,
        .wants = 0x7FFF,
        .paused = 1,
        .overhead_ppm = 1000000, /* never reached */
    };
    mtprof_session *session = NULL;
    static char long_value[5000];
    memset(long_value, 'v', sizeof long_value);
    add_sources();
    mtprof_name_thread("main");
    must(mtprof_session_start(&config, &session));
    must(mtprof_session_add_metadata(session, "key\0odd", 7, "value", 5, false));
    must(mtprof_session_add_metadata(session, "long", 4, long_value, ring ? 2000 : 5000, false));
    must(mtprof_session_step(session, 0, 1));
    must(mtprof_session_window_open(session, 0, 1));
    in_full();
    record_turns(session, turns);
    if (strcmp(form, "crash") == 0) {
        raise(SIGKILL);
    }
    must(mtprof_session_window_close(session, true));
    must(mtprof_session_window_open(session, MTPROF_WANT_OPS, 2));
    mtprof_end(mtprof_begin(&op_site));
    must(mtprof_session_pause(session));
    must(mtprof_session_window_close(session, false));
    must(mtprof_session_stop(session));
    must(mtprof_session_add_metadata(session, "key\0odd", 7, "{}", 2, true));
    if (!in_file) {
        must(mtprof_session_save(session, path));
    }
    must(mtprof_session_close(session));
    return 0;
}
