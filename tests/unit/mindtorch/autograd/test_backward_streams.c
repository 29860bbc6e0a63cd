/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams in backward (engine_streams.h, BS1 to BS5), on the simulated accelerator. A stream that
 * is held acts as a slow one: work that does not wait for it reads what is not there yet. While it
 * is held the streams that wait for it cannot be done, which is what the checks ask; timing decides
 * nothing.
 */
#include "base/alloc.h"
#include "support/devices/npu_stream.h"
#include "support/devices/sim_device.h"

#include <pthread.h>
#include <sched.h>

enum {
    COUNT = 64, /* elements */
    LONG = 1u << 30
};

/* Makes a stream current that continues after the work of the previous one. */
static void go_on(mt_stream *stream)
{
    REQUIRE_OK(mt_stream_wait_stream(stream, current_stream()));
    REQUIRE_OK(mt_stream_set_current(stream));
}

static bool is_done(mt_stream *stream)
{
    bool done;
    REQUIRE_OK(mt_stream_query(stream, &done));
    return done;
}

/* Gives the device time to do what it must not; right code is right however long that is. */
static bool stays_busy(mt_stream *stream)
{
    bool busy = true;
    for (int i = 0; i < 50 && busy; i++) {
        busy = !is_done(stream);
        (void)sched_yield();
    }
    return busy;
}

static mt_tensor *leaf(void)
{
    mt_tensor *made = sim_ones(MT_NPU, COUNT);
    REQUIRE_OK(mt_tensor_set_requires_grad(made, true));
    return made;
}

static mt_tensor *times(mt_tensor *x, double factor)
{
    mt_tensor *made;
    REQUIRE_OK(mt_mul_scalar(x, mt_real(factor), &made));
    return made;
}

static mt_tensor *sum_of(mt_tensor *x)
{
    mt_tensor *made;
    REQUIRE_OK(mt_sum(x, NULL, 0, false, &made));
    return made;
}

/* Read on the current stream. */
static void check_all(mt_tensor *tensor, double value)
{
    float values[COUNT];
    REQUIRE(tensor != NULL);
    REQUIRE_OK(mt_tensor_read(tensor, values, sizeof values));
    for (int i = 0; i < COUNT; i++) {
        if (!CHECK_EQ_F64((double)values[i], value)) {
            FAIL("element %d", i);
        }
    }
}

static void hold(const mt_sim *sim, mt_stream *stream)
{
    REQUIRE_OK(sim->hold(0, mt_stream_number(stream), LONG, 0));
}

static void release(const mt_sim *sim, mt_stream *stream)
{
    REQUIRE_OK(sim->release(0, mt_stream_number(stream)));
    CHECK_EQ_U64(sim_counts(sim, 0, mt_stream_number(stream)).gave_up, 0);
}

static void release_all(mt_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mt_tensor_release(tensors[i]);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* x on the default stream, y = 3 x on one, z = sum(2 y) on another. */
typedef struct chain {
    mt_stream *home, *one, *two;
    mt_tensor *x, *y, *w, *z;
} chain;

static chain make_chain(void)
{
    chain c = {.home = current_stream(), .one = new_stream(), .two = new_stream(), .x = leaf()};
    go_on(c.one);
    c.y = times(c.x, 3);
    go_on(c.two);
    c.w = times(c.y, 2);
    c.z = sum_of(c.w);
    REQUIRE_OK(mt_stream_wait_stream(c.home, c.two));
    REQUIRE_OK(mt_stream_set_current(c.home));
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    return c;
}

static void free_chain(chain *c)
{
    release_all((mt_tensor *const[]){c->x, c->y, c->w, c->z}, 4);
}

/* BS1, BS3, BS4: nodes run on their ops' streams and wait for each other; the caller waits. */
TEST(backward_runs_on_the_streams_of_forward)
{
    const mt_sim *sim = sim_open("1", "64M");
    chain c = make_chain();
    REQUIRE_OK(sim->reset_counts(0, mt_stream_number(c.one)));
    REQUIRE_OK(sim->reset_counts(0, mt_stream_number(c.two)));
    hold(sim, c.two);
    REQUIRE_OK(mt_backward(c.z, NULL, 0));
    CHECK(current_stream() == c.home);
    CHECK(sim_counts(sim, 0, mt_stream_number(c.one)).launches >= 1);
    CHECK(sim_counts(sim, 0, mt_stream_number(c.two)).launches >= 2);
    CHECK(stays_busy(c.two));
    CHECK(stays_busy(c.one));  /* needs what the second stream makes */
    CHECK(stays_busy(c.home)); /* and the leaf needs the first */
    release(sim, c.two);
    check_all(mt_tensor_grad(c.x), 6);
    free_chain(&c);
}

/* BS1: the first stream is the slow one now. Accumulated into a gradient that is there already. */
TEST(backward_accumulates_behind_the_streams)
{
    const mt_sim *sim = sim_open("1", "64M");
    chain c = make_chain();
    REQUIRE_OK(mt_backward(c.z, NULL, MT_RETAIN_GRAPH));
    REQUIRE_OK(mt_mul_scalar_(mt_tensor_grad(c.x), mt_real(10))); /* on the caller's stream: BS3 */
    hold(sim, c.one);
    REQUIRE_OK(mt_backward(c.z, NULL, 0));
    CHECK(stays_busy(c.home));
    release(sim, c.one);
    check_all(mt_tensor_grad(c.x), 66);
    free_chain(&c);
}

/* BS1: memory of a gradient that another stream has yet to read is not used again. */
TEST(backward_keeps_gradients_until_they_were_read)
{
    const mt_sim *sim = sim_open("1", "64M");
    chain c = make_chain();
    mt_tensor *fresh[8];
    hold(sim, c.one); /* it gets the gradient of y, which is made on the other */
    REQUIRE_OK(mt_backward(c.z, NULL, 0));
    REQUIRE_OK(mt_stream_set_current(c.two));
    for (int i = 0; i < 8; i++) {
        fresh[i] = sim_ones(MT_NPU, COUNT);
        REQUIRE_OK(mt_mul_scalar_(fresh[i], mt_real(99)));
    }
    REQUIRE_OK(mt_stream_synchronize(c.two));
    REQUIRE_OK(mt_stream_set_current(c.home));
    release(sim, c.one);
    check_all(mt_tensor_grad(c.x), 6);
    for (int i = 0; i < 8; i++) {
        mt_tensor_release(fresh[i]);
    }
    free_chain(&c);
}

/* BS2: two branches on two streams, whose gradients are added on the stream of what they share. */
TEST(backward_adds_gradients_of_several_streams)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_stream *home = current_stream();
    mt_stream *one = new_stream();
    mt_stream *two = new_stream();
    mt_tensor *x = leaf();
    mt_tensor *shared = times(x, 1);
    mt_tensor *a;
    mt_tensor *b;
    mt_tensor *both;
    go_on(one);
    a = times(shared, 2);
    REQUIRE_OK(mt_stream_set_current(home));
    go_on(two);
    b = times(shared, 3);
    REQUIRE_OK(mt_stream_set_current(home));
    REQUIRE_OK(mt_stream_wait_stream(home, one));
    REQUIRE_OK(mt_stream_wait_stream(home, two));
    REQUIRE_OK(mt_add(a, b, &both));
    mt_tensor *z = sum_of(both);
    for (int slow = 0; slow < 2; slow++) {
        REQUIRE_OK(mt_device_synchronize(MT_NPU));
        REQUIRE_OK(mt_tensor_set_grad(x, NULL));
        hold(sim, slow == 0 ? one : two);
        REQUIRE_OK(mt_backward(z, NULL, MT_RETAIN_GRAPH));
        CHECK(stays_busy(home));
        release(sim, slow == 0 ? one : two);
        check_all(mt_tensor_grad(x), 5);
    }
    release_all((mt_tensor *const[]){x, shared, a, b, both, z}, 6);
}

/* Nodes of the default stream stay there when backward is called on another one, which waits. */
TEST(backward_of_the_default_stream_called_on_another)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_stream *home = current_stream();
    mt_stream *one = new_stream();
    mt_tensor *x = leaf();
    mt_tensor *y = times(x, 3);
    mt_tensor *z = sum_of(y);
    go_on(one);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    REQUIRE_OK(sim->reset_counts(0, 0));
    hold(sim, home);
    REQUIRE_OK(mt_backward(z, NULL, 0));
    CHECK(current_stream() == one);
    CHECK(sim_counts(sim, 0, 0).launches >= 2);
    CHECK(stays_busy(one));
    release(sim, home);
    check_all(mt_tensor_grad(x), 3);
    release_all((mt_tensor *const[]){x, y, z}, 3);
}

/* BS4: what mt_grad() gives is in order for its caller. */
TEST(grad_gives_behind_the_streams)
{
    const mt_sim *sim = sim_open("1", "64M");
    chain c = make_chain();
    mt_tensor *grads[2];
    hold(sim, c.two);
    REQUIRE_OK(mt_grad(&c.z, NULL, 1, (mt_tensor *const[]){c.x, c.y}, 2, 0, grads));
    CHECK(current_stream() == c.home);
    CHECK(stays_busy(c.home));
    release(sim, c.two);
    check_all(grads[0], 6);
    check_all(grads[1], 2);
    mt_tensor_release(grads[0]);
    mt_tensor_release(grads[1]);
    free_chain(&c);
}

/* ---- hooks ---- */

/* Works on a stream of its own and leaves it current. */
typedef struct wanderer {
    const mt_sim *sim;
    mt_stream *own;
    mt_stream *found; /* current when it was called */
    int calls;
} wanderer;

static int wander(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    wanderer *w = context;
    w->calls++;
    w->found = current_stream();
    go_on(w->own);
    hold(w->sim, w->own);
    *replacement = times(grad, 10);
    return 0;
}

/* BS4, also where everything else is on the default stream. */
TEST(backward_follows_a_hook_to_its_stream)
{
    const mt_sim *sim = sim_open("1", "64M");
    for (int chained = 0; chained < 2; chained++) {
        wanderer w = {.sim = sim, .own = new_stream()};
        mt_stream *home = current_stream();
        chain c = {.x = NULL};
        if (chained == 1) {
            c = make_chain();
        } else {
            c.x = leaf();
            c.y = times(c.x, 3);
            c.w = times(c.y, 2);
            c.z = sum_of(c.w);
            REQUIRE_OK(mt_device_synchronize(MT_NPU));
        }
        mt_hook_handle handle;
        REQUIRE_OK(mt_tensor_add_hook(c.y, wander, &w, NULL, &handle));
        REQUIRE_OK(mt_backward(c.z, NULL, 0));
        CHECK_EQ_I64(w.calls, 1);
        CHECK(w.found == (chained == 1 ? c.one : home)); /* that of the node whose gradient it is */
        CHECK(current_stream() == home);
        CHECK(stays_busy(home));
        release(sim, w.own);
        check_all(mt_tensor_grad(c.x), 60);
        free_chain(&c);
    }
}

static int refuse(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    (void)grad;
    (void)replacement;
    REQUIRE_OK(mt_stream_set_current(context));
    return 1;
}

/* BS4: a run that fails leaves the caller's streams current too. */
TEST(backward_that_fails_gives_the_streams_back)
{
    (void)sim_open("1", "64M");
    chain c = make_chain();
    mt_hook_handle handle;
    REQUIRE_OK(mt_tensor_add_hook(c.y, refuse, new_stream(), NULL, &handle));
    CHECK_EQ_I64(mt_backward(c.z, NULL, MT_RETAIN_GRAPH), MT_ECALLBACK);
    CHECK(current_stream() == c.home);
    mt_tensor_remove_hook(c.y, handle);
    REQUIRE_OK(mt_backward(c.z, NULL, 0));
    check_all(mt_tensor_grad(c.x), 6);
    free_chain(&c);
}

/* Each request for host memory of a backward over streams, refused once: an error at most, the
 * caller's streams as before, nothing left over, and the next one is right. */
TEST(backward_on_streams_survives_every_refused_request)
{
    (void)sim_open("1", "64M");
    chain c = make_chain();
    uint64_t alive = mt_tensors_alive();
    uint64_t made = 1;
    for (uint64_t n = 1; made >= n; n++) {
        (void)mtb_fail_nth(n, false);
        int status = mt_backward(c.z, NULL, MT_RETAIN_GRAPH);
        made = mtb_fail_nth(0, false);
        CHECK(status == MT_OK || status == MT_ENOMEM);
        CHECK(current_stream() == c.home);
        REQUIRE_OK(mt_device_synchronize(MT_NPU));
        REQUIRE_OK(mt_tensor_set_grad(c.x, NULL));
        CHECK_EQ_U64(mt_tensors_alive(), alive);
        REQUIRE_OK(mt_backward(c.z, NULL, MT_RETAIN_GRAPH));
        check_all(mt_tensor_grad(c.x), 6);
        REQUIRE_OK(mt_tensor_set_grad(c.x, NULL));
        REQUIRE(n < 1000);
    }
    free_chain(&c);
}

/* ---- threads ---- */

static void *backward_elsewhere(void *context)
{
    chain *c = context;
    CHECK(current_stream() == c->home); /* a new thread begins on the default stream */
    CHECK_OK(mt_backward(c->z, NULL, 0));
    CHECK(current_stream() == c->home);
    return NULL;
}

/* The nodes remember; the thread that runs them does not matter. */
TEST(backward_on_another_thread_runs_on_the_same_streams)
{
    const mt_sim *sim = sim_open("1", "64M");
    chain c = make_chain();
    pthread_t thread;
    hold(sim, c.two);
    REQUIRE(pthread_create(&thread, NULL, backward_elsewhere, &c) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    CHECK(stays_busy(c.one));
    CHECK(stays_busy(c.home));
    release(sim, c.two);
    check_all(mt_tensor_grad(c.x), 6);
    free_chain(&c);
}

/* ---- two devices ---- */

/* The way over to another device and back keeps the order: each device's own streams wait. */
TEST(backward_goes_over_to_another_device)
{
    const mt_sim *sim = sim_open("2", "64M");
    mt_stream *home = current_stream();
    mt_stream *there;
    mt_tensor *x = leaf();
    mt_tensor *y = times(x, 3);
    mt_tensor *moved;
    REQUIRE_OK(mt_stream_new(MT_NPU + 1, 0, &there));
    REQUIRE_OK(mt_stream_set_current(there));
    REQUIRE_OK(mt_to_with(y, MT_DTYPE_NONE, MT_NPU + 1, false, false, &moved));
    mt_tensor *w = times(moved, 2);
    mt_tensor *z = sum_of(w);
    mt_stream *other_home;
    REQUIRE_OK(mt_stream_get_default(MT_NPU + 1, &other_home));
    REQUIRE_OK(mt_stream_wait_stream(other_home, there));
    REQUIRE_OK(mt_stream_set_current(other_home));
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    REQUIRE_OK(mt_device_synchronize(MT_NPU + 1));
    REQUIRE_OK(sim->hold(1, mt_stream_number(there), LONG, 0));
    REQUIRE_OK(mt_backward(z, NULL, 0));
    CHECK(stays_busy(home));
    CHECK(stays_busy(other_home));
    REQUIRE_OK(sim->release(1, mt_stream_number(there)));
    check_all(mt_tensor_grad(x), 6);
    release_all((mt_tensor *const[]){x, y, moved, w, z}, 5);
}
