/* SPDX-License-Identifier: Apache-2.0
 *
 * A classifier trained in C: points on three spirals, an MLP, AdamW. The last 50 steps are
 * profiled. Where there is an accelerator (MINDTORCH_NPU=sim simulates one) it trains there.
 */
#include <mindtorch/mindtorch.h>
#include <mtprof/mtprof.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define POINTS 1536
#define STEPS  300

static mt_device device = MT_CPU;

/* Both libraries return a status and keep the detail of the thread's last failure. */
#define LAST_ERROR(call) _Generic((call), mt_status : mt_last_error, default : mtprof_last_error)()
#define TRY(call)        ((call) == 0 ? (void)0 : die(#call, LAST_ERROR(call)->message))
static void die(const char *call, const char *message)
{
    fprintf(stderr, "%s: %s\n", call, message);
    exit(1);
}

static void make_data(mt_tensor **points, mt_tensor **labels)
{
    static float xy[POINTS][2];
    static int64_t spiral[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double radius = (double)i / POINTS, angle = 4 * radius + 2.1 * (i % 3);
        spiral[i] = i % 3;
        xy[i][0] = (float)(radius * cos(angle));
        xy[i][1] = (float)(radius * sin(angle));
    }
    TRY(mt_tensor_from_data(xy, MT_DTYPE_F32, (int64_t[]){POINTS, 2}, 2, device, points));
    TRY(mt_tensor_from_data(spiral, MT_DTYPE_I64, (int64_t[]){POINTS}, 1, device, labels));
}

/* Uniform in +-1/sqrt(inputs), as torch.nn.Linear begins. */
static mt_tensor *parameter(int64_t outputs, int64_t inputs, size_t n_dims)
{
    mt_tensor *made;
    TRY(mt_empty_with((int64_t[]){outputs, inputs}, n_dims, MT_DTYPE_F32, device, &made));
    TRY(mt_uniform_(made, -1 / sqrt((double)inputs), 1 / sqrt((double)inputs)));
    TRY(mt_tensor_set_requires_grad(made, true));
    return made;
}

/* One step of training; gives the loss before it. */
static double train(mt_tensor *const model[4], mt_optimizer *optimizer, mt_tensor *points,
                    mt_tensor *labels)
{
    MTPROF_SCOPE("train");
    mt_tensor *made[4]; /* hidden layer, the same after relu, logits, loss */
    mt_scalar loss;
    TRY(mt_linear(points, model[0], model[1], &made[0]));
    TRY(mt_relu(made[0], &made[1]));
    TRY(mt_linear(made[1], model[2], model[3], &made[2]));
    TRY(mt_cross_entropy_loss(made[2], labels, NULL, MT_REDUCTION_MEAN, -100, 0, &made[3]));
    TRY(mt_optimizer_zero_grad(optimizer));
    TRY(mt_backward(made[3], NULL, 0));
    TRY(mt_optimizer_step(optimizer));
    TRY(mt_item(made[3], &loss));
    for (int i = 0; i < 4; i++) {
        mt_tensor_release(made[i]);
    }
    return loss.of.real;
}

static void report(mtprof_session *session, const char *path)
{
    mtprof_model *model;
    fflush(stdout);
    TRY(mtprof_session_report(session, STDOUT_FILENO, NULL));
    TRY(mtprof_model_from_session(session, NULL, &model));
    TRY(mtprof_export(model, MTPROF_EXPORT_CHROME, path, NULL));
    mtprof_model_free(model);
    printf("The trace is %s: open it in ui.perfetto.dev or chrome://tracing.\n", path);
}

int main(int argc, char **argv)
{
    mt_tensor *model[6]; /* weight, bias, weight, bias, and the data */
    mt_optimizer *optimizer = NULL;
    mt_optimizer_options options = {.struct_size = sizeof options};
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session = NULL;
    if (mt_device_count(MT_DEVICE_TYPE_NPU) > 0) {
        device = MT_NPU;
    }
    for (int i = 0; i < 4; i++) {
        model[i] = parameter(i < 2 ? 64 : 3, i < 2 ? 2 : 64, i % 2 == 0 ? 2 : 1);
    }
    make_data(&model[4], &model[5]);
    TRY(mt_optimizer_get_defaults(MT_OPTIMIZER_ADAMW, &options));
    options.lr = 0.02;
    TRY(mt_optimizer_new(&options, model, 4, &optimizer));
    double loss = 1;
    for (int step = 1; step <= STEPS; step++) {
        if (step == STEPS - 49) {
            TRY(mtprof_session_start(&config, &session));
        }
        loss = train(model, optimizer, model[4], model[5]);
        printf("step %d on %s: loss %.4f%s", step, mt_device_name(device), loss,
               step % 50 == 0 ? "\n" : "\r");
    }
    TRY(mtprof_session_stop(session));
    report(session, argc > 1 ? argv[1] : "train_mlp.json");
    TRY(mtprof_session_close(session));
    mt_optimizer_free(optimizer);
    for (int i = 0; i < 6; i++) {
        mt_tensor_release(model[i]);
    }
    return loss < 0.2 ? 0 : 1;
}
