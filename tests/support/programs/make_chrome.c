/* SPDX-License-Identifier: Apache-2.0
 *
 * make_chrome DIR SEED: records threads that run nested scopes and ops with payloads of every kind,
 * whose names, keys and values are any bytes, with a device that answers, and exports the session
 * to DIR/torch.json, DIR/mindtorch.json and DIR/torch.json.gz. DIR/names.txt has the names that
 * were used, in hex. tests/export/check_chrome.py looks at them.
 */
#include <mtprof/clock.h>
#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/mtprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 3,
    ROUNDS = 150,
    NAMES = 60,
    NAME_BYTES = 48,
    PATH_BYTES = 600
};

typedef struct text {
    char bytes[NAME_BYTES];
    size_t length;
    uint32_t id;
} text;

static text texts[NAMES];
static uint32_t stack_frames[NAMES];
static mtprof_source *source;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t queue_time[2], correlation;

static void must(mtprof_status status)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "make_chrome: %s\n", mtprof_last_error()->message);
        exit(1);
    }
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Plain names, quotes and controls, UTF-8, and bytes that are none. */
static void make_texts(uint64_t *seed)
{
    static const char *const pieces[] = {
        "aten::add", "\"",   "\\",       "\n",        "\x01",
        "\xc3\xa4",  "\xff", "\xed\xa0", "</script>", "\xf0\x9f\x98\x80"};
    for (int i = 0; i < NAMES; i++) {
        text *t = &texts[i];
        size_t used = 0;
        const char head[] = {'n', (char)('0' + i / 10), (char)('0' + i % 10), ' '};
        memcpy(t->bytes, head, sizeof head);
        used += sizeof head;
        for (uint64_t k = next(seed) % 5; k > 0; k--) {
            const char *piece = pieces[next(seed) % 10];
            size_t length = strlen(piece);
            if (length < sizeof t->bytes - used) {
                memcpy(t->bytes + used, piece, length);
                used += length;
            }
        }
        if (next(seed) % 4 == 0 && used < sizeof t->bytes) {
            t->bytes[used++] = '\0';
        }
        t->length = used;
        t->id = mtprof_intern(t->bytes, t->length);
        stack_frames[i] = mtprof_define_frame(t->bytes, t->length, texts[i / 2].bytes,
                                              texts[i / 2].length, (uint32_t)i);
    }
}

/* ---- a device -------------------------------------------------------------------------------- */

static uint64_t source_clock(void *context)
{
    (void)context;
    return mtprof_ticks();
}

static mtprof_status source_start(void *context, mtprof_source *self, uint64_t wants)
{
    (void)context, (void)self, (void)wants;
    return MTPROF_OK;
}

static void source_stop(void *context)
{
    (void)context;
}

static void add_source(void)
{
    const mtprof_source_ops ops = {.struct_size = sizeof ops,
                                   .abi = MTPROF_SOURCE_ABI,
                                   .name = "device",
                                   .device_type = "NPU",
                                   .start = source_start,
                                   .stop = source_stop,
                                   .clock = source_clock};
    must(mtprof_source_register(&ops, &source));
}

/* Work begins when its queue is free; one launch in eight is never answered. */
static void answer(uint64_t key, const text *name, uint64_t random)
{
    const mtprof_activity_meta meta[] = {
        {.key = texts[random % NAMES].id, .type = MTPROF_META_STRING, .value = name->id},
        {.key = mtprof_intern("context", 7), .type = MTPROF_META_INT, .value = 1}};
    pthread_mutex_lock(&device_lock);
    uint32_t queue = (uint32_t)(random % 2);
    uint64_t now = mtprof_ticks();
    uint64_t start = queue_time[queue] > now ? queue_time[queue] : now;
    queue_time[queue] = start + 100 + random % 5000;
    const mtprof_activity activity = {.struct_size = sizeof activity,
                                      .kind = random % 3 == 0 ? MTPROF_ACTIVITY_COPY
                                                              : MTPROF_ACTIVITY_KERNEL,
                                      .name = name->bytes,
                                      .name_length = name->length,
                                      .start = start,
                                      .end = queue_time[queue],
                                      .launch_key = key,
                                      .queue = queue,
                                      .correlation = ++correlation,
                                      .bytes = 4096,
                                      .meta = meta,
                                      .n_meta = 2};
    if (random % 8 != 0) {
        mtprof_push_activity(source, &activity);
    }
    pthread_mutex_unlock(&device_lock);
}

/* ---- a program ------------------------------------------------------------------------------- */

static mtprof_site op_site = MTPROF_SITE_INIT("aten::op", MTPROF_KIND_OP | MTPROF_FLAG_DEVICE);
static mtprof_site call_site =
    MTPROF_SITE_INIT("launchKernel", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
static mtprof_site mark_site = MTPROF_SITE_INIT("mark", MTPROF_KIND_SCOPE);
static mtprof_site async_site = MTPROF_SITE_INIT("task", MTPROF_KIND_SCOPE | MTPROF_FLAG_ASYNC);

static const text *any_text(uint64_t *random)
{
    return &texts[next(random) % NAMES];
}

static mtprof_token begin_op(uint64_t *random, uint64_t number, uint32_t forward_thread)
{
    int64_t sizes[] = {(int64_t)(next(random) % 5), 3};
    int64_t strides[] = {3, 1};
    const mtprof_value inputs[] = {{.kind = MTPROF_INPUT_TENSOR,
                                    .n_dims = 2,
                                    .type = any_text(random)->id,
                                    .of.sizes = sizes,
                                    .strides = strides},
                                   {.kind = MTPROF_INPUT_REAL, .of.real = (double)number / 8},
                                   {.kind = MTPROF_INPUT_STRING, .of.text = any_text(random)->id},
                                   {.kind = MTPROF_INPUT_KEYWORD, .type = any_text(random)->id},
                                   {.kind = MTPROF_INPUT_STRING, .of.text = any_text(random)->id}};
    uint32_t stack = 0;
    for (uint64_t i = next(random) % 6; i > 0; i--) {
        stack = mtprof_stack_push(stack, stack_frames[next(random) % 4]);
    }
    const mtprof_op op = {.struct_size = sizeof op,
                          .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD |
                                    MTPROF_OP_OVERLOAD | MTPROF_OP_FLOPS | MTPROF_OP_MODULE |
                                    MTPROF_OP_MEMORY,
                          .inputs = inputs,
                          .n_inputs = 5,
                          .sequence = number,
                          .forward_thread = forward_thread,
                          .overload = any_text(random)->id,
                          .module = any_text(random)->id,
                          .flops = 12,
                          .memory_before = next(random),
                          .stack = stack};
    return mtprof_op_begin(&op_site, &op);
}

static void one_round(uint64_t *random, uint64_t number, uint32_t thread)
{
    const text *name = any_text(random);
    mtprof_token scope = mtprof_begin_named(name->bytes, name->length, MTPROF_KIND_SCOPE);
    mtprof_meta_text(scope, any_text(random)->id, name->bytes, name->length);
    mtprof_meta_real(scope, any_text(random)->id, 0.25);
    mtprof_end(begin_op(random, number, 0));
    mtprof_token op = begin_op(random, number, thread); /* backward, and so is what is in it */
    mtprof_alloc(0, 4096 * (number + 1), 512, 512, 4096);
    if (number % 3 == 0) {
        mtprof_token call = mtprof_begin(&call_site);
        answer(mtprof_launch_key(call), any_text(random), next(random));
        mtprof_end(call);
    }
    if (number % 7 == 0) {
        answer(mtprof_launch(NULL, 0, 1), any_text(random), next(random));
    }
    mtprof_end(begin_op(random, number, thread));
    mtprof_op_end(op, 0, next(random));
    mtprof_token task = mtprof_begin(&async_site);
    mtprof_counter(&mark_site, (int64_t)number);
    mtprof_counter_real(&mark_site, 1.0 / ((double)number - 3));
    mtprof_flow(&mark_site, number % 2 ? MTPROF_FLOW_END : MTPROF_FLOW_START, number / 2);
    mtprof_instant_named(name->bytes, name->length, 0);
    mtprof_end(scope);
    mtprof_end(task);
}

typedef struct program {
    uint64_t random;
    uint32_t thread; /* its logical number */
} program;

static void *run(void *context)
{
    program *p = context;
    mtprof_name_thread(texts[p->random % NAMES].bytes);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        one_round(&p->random, i, p->thread);
    }
    return NULL;
}

/* ---- exports --------------------------------------------------------------------------------- */

static void export_to(mtprof_model *model, const char *folder, const char *file, uint32_t flavor)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {
        .struct_size = sizeof options, .flavor = flavor, .report = &report};
    mtprof_status status = mtprof_export(model, MTPROF_EXPORT_CHROME, path, &options);
    if (status == MTPROF_ENOTSUP) {
        printf("%s: %s\n", file, mtprof_last_error()->message);
        return;
    }
    must(status);
    printf("%s: %llu events, %llu bytes, %llu replaced, %llu clamped\n", file,
           (unsigned long long)report.events, (unsigned long long)report.bytes,
           (unsigned long long)report.replaced, (unsigned long long)report.clamped);
}

static void write_names(const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/names.txt", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "make_chrome: cannot write %s\n", path);
        exit(1);
    }
    for (int i = 0; i < NAMES; i++) {
        for (size_t k = 0; k < texts[i].length; k++) {
            fprintf(file, "%02x", (unsigned char)texts[i].bytes[k]);
        }
        fputc('\n', file);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_chrome DIR SEED\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[2], NULL, 0);
    make_texts(&seed);
    add_source();
    mtprof_session *session = NULL;
    const mtprof_config config = {.struct_size = sizeof config, .wants = 0x3FFF};
    must(mtprof_session_start(&config, &session));
    must(mtprof_session_add_metadata(session, "distributedInfo", 15, "{\"rank\":3}", 10, true));
    for (int i = 0; i < NAMES; i++) {
        must(mtprof_session_add_metadata(session, texts[i].bytes, texts[i].length,
                                         texts[NAMES - 1 - i].bytes, texts[NAMES - 1 - i].length,
                                         i % 2));
    }
    for (uint32_t i = 0; i < THREADS;
         i++) { /* one after another, so that their numbers are known */
        pthread_t thread;
        program p = {.random = next(&seed), .thread = i + 1};
        if (pthread_create(&thread, NULL, run, &p) != 0) {
            fprintf(stderr, "make_chrome: no thread\n");
            return 1;
        }
        pthread_join(thread, NULL);
    }
    mtprof_token open = mtprof_begin(&mark_site); /* still open at the end */
    must(mtprof_session_stop(session));
    mtprof_end(open);
    mtprof_model *model = NULL;
    must(mtprof_model_from_session(session, NULL, &model));
    export_to(model, argv[1], "torch.json", MTPROF_FLAVOR_TORCH);
    export_to(model, argv[1], "mindtorch.json", MTPROF_FLAVOR_MINDTORCH);
    export_to(model, argv[1], "torch.json.gz", MTPROF_FLAVOR_TORCH);
    write_names(argv[1]);
    mtprof_model_free(model);
    must(mtprof_session_close(session));
    mtprof_source_unregister(source);
    return 0;
}
