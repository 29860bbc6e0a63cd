/* SPDX-License-Identifier: Apache-2.0
 *
 * make_long_trace FILE EVENTS: a training run of about so many events, for what must stay small
 * and quick however long a trace is. Steps of a few thousand events: modules, ops with shapes and
 * stacks in one another, allocations, launches on a device and their kernels; every 97th step is
 * long. It is recorded, so its times are those of this machine.
 */
#include <mtprof/clock.h>
#include <mtprof/mtprof.h>
#include <mtprof/op.h>
#include <mtprof/source.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPS = 24,
    LAYERS = 96,
    SHAPES = 40,
    OPS_OF_A_LAYER = 6,
    EVENTS_OF_AN_OP = 4, /* op, the one inside, launch, kernel */
    BLOCK = 4096
};

static mtprof_site ops[OPS], inner[OPS];
static mtprof_site launch_site =
    MTPROF_SITE_INIT("cudaLaunchKernel", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
static char op_names[OPS][32], inner_names[OPS][32], kernel_names[OPS][64];
static uint32_t modules[LAYERS], frames[LAYERS], outer_frame, float_type;
static mtprof_source *device;
static uint64_t queue_free, correlation;
static uint64_t random_state = 1;

static uint64_t take_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static void must(mtprof_status status, const char *what)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "make_long_trace: %s: %s\n", what, mtprof_last_error()->message);
        exit(1);
    }
}

static mtprof_status start_device(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)source;
    (void)wants;
    return MTPROF_OK;
}

static void stop_device(void *context)
{
    (void)context;
}

static uint64_t read_clock(void *context)
{
    (void)context;
    return mtprof_ticks();
}

static void make_names(void)
{
    static const mtprof_source_ops device_ops = {.struct_size = sizeof device_ops,
                                                 .abi = MTPROF_SOURCE_ABI,
                                                 .name = "long",
                                                 .device_type = "CUDA",
                                                 .start = start_device,
                                                 .stop = stop_device,
                                                 .clock = read_clock};
    char text[64];
    for (int i = 0; i < OPS; i++) {
        snprintf(op_names[i], sizeof op_names[i], "aten::op_%d", i);
        snprintf(inner_names[i], sizeof inner_names[i], "aten::inner_%d", i);
        snprintf(kernel_names[i], sizeof kernel_names[i], "void kernel_%d<float, 4>(float*, int)",
                 i);
        ops[i] = (mtprof_site)MTPROF_SITE_INIT(op_names[i], MTPROF_KIND_OP);
        inner[i] = (mtprof_site)MTPROF_SITE_INIT(inner_names[i], MTPROF_KIND_OP);
    }
    for (int i = 0; i < LAYERS; i++) {
        int length = snprintf(text, sizeof text, "Model/layers.%d/attention", i);
        modules[i] = mtprof_intern(text, (size_t)length);
        length = snprintf(text, sizeof text, "forward_%d", i);
        frames[i] = mtprof_define_frame(text, (size_t)length, "model.py", 8, (uint32_t)i + 10);
    }
    outer_frame = mtprof_define_frame("train", 5, "train.py", 8, 30);
    float_type = mtprof_intern("float", 5);
    must(mtprof_source_register(&device_ops, &device), "source");
}

static void run_kernel(uint64_t key, int op, uint64_t ticks)
{
    uint64_t now = mtprof_ticks();
    mtprof_activity work = {.struct_size = sizeof work,
                            .kind = MTPROF_ACTIVITY_KERNEL,
                            .name = kernel_names[op],
                            .name_length = strlen(kernel_names[op]),
                            .launch_key = key,
                            .queue = 7,
                            .correlation = ++correlation};
    work.start = queue_free > now ? queue_free : now;
    work.end = work.start + ticks;
    queue_free = work.end;
    mtprof_push_activity(device, &work);
}

static void run_op(int layer, int op, bool slow)
{
    int64_t sizes[2] = {64 + (int64_t)(take_random() % SHAPES) * 8, 1024};
    const mtprof_value input = {
        .kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .type = float_type, .of.sizes = sizes};
    const uint32_t stack[2] = {outer_frame, frames[layer]};
    const mtprof_op call = {.struct_size = sizeof call,
                            .fields = MTPROF_OP_MODULE,
                            .inputs = &input,
                            .n_inputs = 1,
                            .module = modules[layer],
                            .stack = mtprof_stack(stack, 2)};
    mtprof_token outside = mtprof_op_begin(&ops[op], &call);
    mtprof_token inside = mtprof_op_begin(&inner[op], &call);
    mtprof_token launch = mtprof_begin(&launch_site);
    uint64_t key = mtprof_launch_key(launch);
    mtprof_end(launch);
    run_kernel(key, op, 200 + take_random() % 800 + (slow ? 3000 : 0));
    mtprof_alloc(1, (uint64_t)(layer + 1) << 20 | (uint64_t)op << 12, BLOCK,
                 (uint64_t)BLOCK * (uint64_t)(layer + 1), 0);
    mtprof_end(inside);
    mtprof_end(outside);
}

static uint64_t run_step(mtprof_session *session, uint64_t step)
{
    char name[32];
    int length = snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)step);
    must(mtprof_session_step(session, step, 2), "step");
    mtprof_token whole = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_STEP);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < OPS_OF_A_LAYER; i++) {
            run_op(layer, (layer + i) % OPS, step % 97 == 50);
        }
    }
    for (int layer = LAYERS; layer-- > 0;) {
        for (int i = 0; i < OPS_OF_A_LAYER; i++) {
            mtprof_alloc(1, (uint64_t)(layer + 1) << 20 | (uint64_t)((layer + i) % OPS) << 12,
                         -BLOCK, (uint64_t)BLOCK * (uint64_t)layer, 0);
        }
    }
    mtprof_end(whole);
    return 1 + LAYERS * OPS_OF_A_LAYER * EVENTS_OF_AN_OP;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_long_trace FILE EVENTS\n");
        return 2;
    }
    uint64_t wanted = strtoull(argv[2], NULL, 10);
    mtprof_session *session = NULL;
    const mtprof_config config = {.struct_size = sizeof config,
                                  .path = argv[1],
                                  .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS |
                                           MTPROF_WANT_STACKS | MTPROF_WANT_ALLOCS |
                                           MTPROF_WANT_MODULES};
    make_names();
    must(mtprof_session_start(&config, &session), "start");
    uint64_t events = 0;
    for (uint64_t step = 0; events < wanted; step++) {
        events += run_step(session, step);
    }
    must(mtprof_session_stop(session), "stop");
    must(mtprof_session_close(session), "close");
    mtprof_source_unregister(device);
    printf("%llu events\n", (unsigned long long)events);
    return 0;
}
