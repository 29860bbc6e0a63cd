/* SPDX-License-Identifier: Apache-2.0
 *
 * A classifier trained in C: three spirals, an MLP, AdamW. The last steps are profiled.
 */
#include <mindtorch/mindtorch.h>
#include <mtprof/mtprof.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CLASSES = 3,
    POINTS = 1536,
    HIDDEN = 64,
    STEPS = 300,
    PROFILED = 50
};

/* A call that fails ends the program and says why. */
#define TRY(call)                                                                               \
    if ((call) != 0) {                                                                          \
        fprintf(stderr, "%s: %s%s\n", #call, mt_error_message(), mtprof_last_error()->message); \
        exit(1);                                                                                \
    }

/* Points on three spirals, and which of them each is on. */
static void make_data(mt_tensor **points, mt_tensor **labels)
{
    static float xy[POINTS][2];
    static int64_t label[POINTS];
    for (int i = 0; i < POINTS; i++) {
        label[i] = i % CLASSES;
        double radius = (double)i / POINTS;
        double angle = 4 * radius + 2.1 * (i % CLASSES) + 0.1 * sin(12.9898 * i);
        xy[i][0] = (float)(radius * cos(angle));
        xy[i][1] = (float)(radius * sin(angle));
    }
    TRY(mt_tensor_from_data(xy, MT_DTYPE_F32, (int64_t[]){POINTS, 2}, 2, MT_CPU, points));
    TRY(mt_tensor_from_data(label, MT_DTYPE_I64, (int64_t[]){POINTS}, 1, MT_CPU, labels));
}

/* Uniform in +-1/sqrt(inputs), as torch.nn.Linear begins. */
static mt_tensor *parameter(int64_t outputs, int64_t inputs, size_t n_dims)
{
    mt_tensor *made;
    TRY(mt_empty((int64_t[]){outputs, inputs}, n_dims, &made));
    TRY(mt_uniform_(made, -1 / sqrt((double)inputs), 1 / sqrt((double)inputs)));
    TRY(mt_tensor_set_requires_grad(made, true));
    return made;
}

static void release(mt_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        mt_tensor_release(tensors[i]);
    }
}

/* One step of training; gives the loss before it. */
static double train(mt_tensor *const model[4], mt_optimizer *optimizer, mt_tensor *points,
                    mt_tensor *labels)
{
    MTPROF_SCOPE("train");
    mt_tensor *hidden, *active, *logits, *loss;
    mt_scalar value;
    TRY(mt_linear(points, model[0], model[1], &hidden));
    TRY(mt_relu(hidden, &active));
    TRY(mt_linear(active, model[2], model[3], &logits));
    TRY(mt_cross_entropy_loss(logits, labels, NULL, 1, -100, 0, &loss));
    TRY(mt_optimizer_zero_grad(optimizer));
    TRY(mt_backward(loss, NULL, 0));
    TRY(mt_optimizer_step(optimizer));
    TRY(mt_item(loss, &value));
    release((mt_tensor *[]){hidden, active, logits, loss}, 4);
    return value.of.real;
}

static int print_bytes(void *context, const void *bytes, size_t length)
{
    return fwrite(bytes, 1, length, context) == length ? 0 : EIO;
}

/* The table of the recorded steps, and their trace for a viewer. */
static void report(mtprof_session *session, const char *path)
{
    mtprof_output out = {.struct_size = sizeof out, .write = print_bytes, .context = stdout};
    mtprof_table_options options = {
        .struct_size = sizeof options, .format = MTPROF_TABLE_FIT, .width = 100, .row_limit = 15};
    mtprof_model *model;
    mtprof_averages *averages;
    TRY(mtprof_model_of_session(session, NULL, &model));
    TRY(mtprof_averages_new(model, NULL, &averages));
    TRY(mtprof_averages_table(averages, &options, &out));
    TRY(mtprof_export(model, MTPROF_EXPORT_CHROME, path, NULL));
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    printf("The trace is %s: open it in ui.perfetto.dev or chrome://tracing.\n", path);
}

int main(int argc, char **argv)
{
    mt_tensor *points, *labels;
    mt_optimizer *optimizer;
    mt_optimizer_options options;
    mtprof_session *session = NULL;
    double loss = 0;
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_FLOPS};
    mt_manual_seed(1);
    make_data(&points, &labels);
    mt_tensor *model[4] = {parameter(HIDDEN, 2, 2), parameter(HIDDEN, 2, 1),
                           parameter(CLASSES, HIDDEN, 2), parameter(CLASSES, HIDDEN, 1)};
    mt_optimizer_defaults(MT_OPTIMIZER_ADAMW, &options);
    options.lr = 0.02;
    TRY(mt_optimizer_new(&options, model, 4, &optimizer));
    for (int step = 0; step < STEPS; step++) {
        if (step == STEPS - PROFILED) {
            TRY(mtprof_session_start(&config, &session));
        }
        loss = train(model, optimizer, points, labels);
        if (step % 50 == 49) {
            printf("step %3d: loss %.4f\n", step + 1, loss);
        }
    }
    TRY(mtprof_session_stop(session));
    report(session, argc > 1 ? argv[1] : "train_mlp.json");
    TRY(mtprof_session_close(session));
    mt_optimizer_free(optimizer);
    release(model, 4);
    release((mt_tensor *[]){points, labels}, 2);
    return loss < 0.2 ? 0 : 1;
}
