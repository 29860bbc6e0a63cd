/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_demo FOLDER [LAYERS STEPS PAUSE_NS]: records a fake training run and writes its memory
 * timeline and its execution trace in every form, for scripts that read them.
 */
#include "support/fake_training.h"

#include <mtprof/export.h>
#include <mtprof/mtprof.h>

#include <stdio.h>
#include <stdlib.h>

static void must(mtprof_status status, const char *what)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "memory_demo: %s: %s\n", what, mtprof_last_error()->message);
        exit(1);
    }
}

static unsigned number(char **argv, int argc, int place, unsigned otherwise)
{
    return argc > place ? (unsigned)strtoul(argv[place], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: memory_demo FOLDER [LAYERS STEPS PAUSE_NS]\n");
        return 2;
    }
    fake_training training = {.device = 1,
                              .layers = number(argv, argc, 2, 3),
                              .steps = number(argv, argc, 3, 2),
                              .batch = 64,
                              .width = 128,
                              .pause_ns = number(argv, argc, 4, 0)};
    if (training.layers > FAKE_LAYERS_MOST) {
        training.layers = FAKE_LAYERS_MOST;
    }
    fake_training_prepare(&training);
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS |
                                     MTPROF_WANT_TENSORS | MTPROF_WANT_STACKS | MTPROF_WANT_ALLOCS |
                                     MTPROF_WANT_DETAILS};
    mtprof_session *session = NULL;
    must(mtprof_session_start(&config, &session), "start");
    fake_training_run(&training);
    must(mtprof_session_stop(session), "stop");
    mtprof_model *model = NULL;
    must(mtprof_model_from_session(session, NULL, &model), "model");
    static const struct {
        enum mtprof_export_format format;
        const char *file;
    } files[] = {
        {MTPROF_EXPORT_MEMORY, "timeline.memory.json"},
        {MTPROF_EXPORT_MEMORY_RAW, "timeline.raw.json"},
        {MTPROF_EXPORT_MEMORY_HTML, "timeline.html"},
        {MTPROF_EXPORT_EXECUTION, "trace.et.json"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], files[i].file);
        must(mtprof_export(model, files[i].format, path, NULL), path);
    }
    mtprof_model_free(model);
    must(mtprof_session_close(session), "close");
    printf("%u %u %lld %lld\n", training.layers, training.steps, (long long)training.batch,
           (long long)training.width);
    return 0;
}
