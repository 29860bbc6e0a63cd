/* SPDX-License-Identifier: Apache-2.0
 */
#include "support/fake_training.h"

#include <mtprof/op.h>
#include <mtprof/trace.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct fake_tensor {
    uint64_t id, address;
    int64_t rows, columns;
    uint32_t version, device;
} fake_tensor;

/* The runtime: where memory is, and what comes next. */
static struct {
    const fake_training *training;
    uint64_t next_id, next_address;
    uint64_t allocated[2];
    uint64_t sequence;
    fake_tensor weights[FAKE_LAYERS_MOST], momenta[FAKE_LAYERS_MOST];
    fake_tensor batch; /* on the host */
    uint32_t stack, float_type;
} fake;

static int64_t bytes_of(const fake_tensor *t)
{
    return t->rows * t->columns * 4;
}

static fake_tensor new_tensor(uint32_t device, int64_t rows, int64_t columns)
{
    fake_tensor t = {.id = ++fake.next_id,
                     .address = fake.next_address,
                     .rows = rows,
                     .columns = columns,
                     .device = device};
    fake.next_address += ((uint64_t)bytes_of(&t) + 511) / 512 * 512;
    fake.allocated[device != 0] += (uint64_t)bytes_of(&t);
    mtprof_alloc(device, t.address, bytes_of(&t), fake.allocated[device != 0], 0);
    return t;
}

static void drop(const fake_tensor *t)
{
    fake.allocated[t->device != 0] -= (uint64_t)bytes_of(t);
    mtprof_alloc(t->device, t->address, -bytes_of(t), fake.allocated[t->device != 0], 0);
}

static void rest(void)
{
    if (fake.training->pause_ns > 0) {
        nanosleep(&(struct timespec){.tv_nsec = fake.training->pause_ns}, NULL);
    }
}

static mtprof_tensor_ref ref_of(const fake_tensor *t)
{
    return (mtprof_tensor_ref){.tensor = t->id,
                               .storage = t->address,
                               .version = t->version,
                               .device = (uint16_t)t->device};
}

enum {
    INPUTS_MOST = 3
};

/* Begins an op; sequence 0: none. Backward functions have record scope 1. */
static mtprof_token op_begin(const char *name, uint64_t sequence, bool backward, unsigned n,
                             const fake_tensor *const *inputs)
{
    mtprof_site site = MTPROF_SITE_INIT(name, MTPROF_KIND_OP);
    mtprof_value values[INPUTS_MOST];
    mtprof_tensor_ref refs[INPUTS_MOST];
    int64_t sizes[INPUTS_MOST][2];
    for (unsigned i = 0; i < n; i++) {
        sizes[i][0] = inputs[i]->rows;
        sizes[i][1] = inputs[i]->columns;
        values[i] = (mtprof_value){.kind = MTPROF_INPUT_TENSOR,
                                   .n_dims = 2,
                                   .type = fake.float_type,
                                   .of.sizes = sizes[i]};
        refs[i] = ref_of(inputs[i]);
    }
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_RECORD_SCOPE | (sequence != 0 ? MTPROF_OP_SEQUENCE : 0) |
                              (backward ? MTPROF_OP_FORWARD_THREAD : 0),
                    .inputs = values,
                    .n_inputs = n,
                    .tensors = refs,
                    .n_tensors = n,
                    .sequence = sequence,
                    .forward_thread = 1,
                    .record_scope = backward,
                    .stack = fake.stack};
    mtprof_token token = mtprof_op_begin(&site, &op);
    rest();
    return token;
}

static void op_end(mtprof_token token, const fake_tensor *output)
{
    if (output != NULL) {
        mtprof_tensor_ref ref = ref_of(output);
        mtprof_op_outputs(token, &ref, 1);
    }
    mtprof_end(token);
}

#define INPUTS(...)                                                                  \
    sizeof((const fake_tensor *const[]){__VA_ARGS__}) / sizeof(const fake_tensor *), \
        (const fake_tensor *const[])                                                 \
    {                                                                                \
        __VA_ARGS__                                                                  \
    }

/* An op that makes a tensor. */
static fake_tensor compute(const char *name, uint64_t sequence, int64_t rows, int64_t columns,
                           unsigned n, const fake_tensor *const *inputs)
{
    mtprof_token token = op_begin(name, sequence, false, n, inputs);
    fake_tensor made = new_tensor(fake.training->device, rows, columns);
    rest();
    op_end(token, &made);
    return made;
}

/* An op that changes its first input. */
static void change(const char *name, fake_tensor *target, const fake_tensor *other)
{
    mtprof_token token = op_begin(name, 0, false, INPUTS(target, other));
    target->version++;
    op_end(token, target);
}

static mtprof_token scope(const char *name, uint32_t flags)
{
    return mtprof_begin_named(name, strlen(name), flags);
}

void fake_training_prepare(const fake_training *training)
{
    memset(&fake, 0, sizeof fake);
    fake.training = training;
    fake.next_address = 0x7F0000000000;
    for (unsigned i = 0; i < training->layers; i++) {
        fake.weights[i] = new_tensor(training->device, training->width, training->width);
    }
    fake.batch = new_tensor(0, training->batch, training->width);
}

typedef struct layer_results {
    fake_tensor linear, relu;
    uint64_t sequence;
} layer_results;

static fake_tensor backward_layer(const layer_results *made, const fake_tensor *x, unsigned layer,
                                  fake_tensor *gradient, fake_tensor *weight_gradient)
{
    const fake_training *t = fake.training;
    static const char wrapper[] = "autograd::engine::evaluate_function: ";
    char name[96];
    (void)layer;
    snprintf(name, sizeof name, "%sReluBackward0", wrapper);
    mtprof_token outer = op_begin(name, made->sequence + 1, true, INPUTS(gradient));
    mtprof_token inner = op_begin("ReluBackward0", made->sequence + 1, true, INPUTS(gradient));
    fake_tensor masked =
        compute("aten::threshold_backward", 0, t->batch, t->width, INPUTS(gradient, &made->relu));
    op_end(inner, &masked);
    drop(gradient);
    drop(&made->relu);
    mtprof_end(outer);

    snprintf(name, sizeof name, "%sMmBackward0", wrapper);
    outer = op_begin(name, made->sequence, true, INPUTS(&masked));
    inner = op_begin("MmBackward0", made->sequence, true, INPUTS(&masked));
    fake_tensor copy = compute("aten::clone", 0, t->batch, t->width, INPUTS(x));
    *weight_gradient = compute("aten::mm", 0, t->width, t->width, INPUTS(&copy, &masked));
    drop(&copy);
    fake_tensor next = compute("aten::mm", 0, t->batch, t->width, INPUTS(&masked));
    op_end(inner, &next);
    drop(&masked);
    drop(&made->linear);
    mtprof_end(outer);
    outer = op_begin("torch::autograd::AccumulateGrad", 0, true, INPUTS(weight_gradient));
    op_end(outer, weight_gradient);
    return next;
}

static void optimizer_step(fake_tensor *gradients)
{
    const fake_training *t = fake.training;
    mtprof_token step = scope("Optimizer.step#SGD.step", MTPROF_KIND_SCOPE);
    for (unsigned i = 0; i < t->layers; i++) {
        if (fake.momenta[i].id == 0) {
            fake.momenta[i] = compute("aten::clone", 0, t->width, t->width, INPUTS(&gradients[i]));
        } else {
            change("aten::add_", &fake.momenta[i], &gradients[i]);
        }
        change("aten::add_", &fake.weights[i], &fake.momenta[i]);
    }
    mtprof_end(step);
    for (unsigned i = 0; i < t->layers; i++) {
        drop(&gradients[i]);
    }
}

static void train_step(void)
{
    const fake_training *t = fake.training;
    layer_results made[FAKE_LAYERS_MOST];
    fake_tensor gradients[FAKE_LAYERS_MOST];
    fake_tensor input = compute("aten::to", 0, t->batch, t->width, INPUTS(&fake.batch));
    const fake_tensor *x = &input;
    for (unsigned i = 0; i < t->layers; i++) {
        made[i].sequence = fake.sequence += 2;
        made[i].linear =
            compute("aten::mm", made[i].sequence, t->batch, t->width, INPUTS(x, &fake.weights[i]));
        made[i].relu = compute("aten::relu", made[i].sequence + 1, t->batch, t->width,
                               INPUTS(&made[i].linear));
        x = &made[i].relu;
    }
    fake_tensor loss = compute("aten::mean", fake.sequence += 2, 1, 1, INPUTS(x));
    fake_tensor gradient = compute("aten::ones_like", 0, t->batch, t->width, INPUTS(&loss));
    for (unsigned i = t->layers; i-- > 0;) {
        gradient = backward_layer(&made[i], i == 0 ? &input : &made[i - 1].relu, i, &gradient,
                                  &gradients[i]);
    }
    drop(&gradient);
    drop(&input);
    optimizer_step(gradients);
    drop(&loss);
}

void fake_training_run(const fake_training *training)
{
    uint32_t frame = mtprof_define_frame("train", 5, "train.py", 8, 12);
    fake.training = training;
    fake.stack = mtprof_stack(&frame, 1);
    fake.float_type = mtprof_intern("float", 5);
    for (unsigned i = 0; i < training->steps; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%u", i);
        mtprof_token step = scope(name, MTPROF_KIND_STEP);
        train_step();
        mtprof_end(step);
    }
}
