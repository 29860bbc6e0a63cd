/* SPDX-License-Identifier: Apache-2.0
 *
 * A call on a new thread that has the modes of the calling one: for recursion that needs a stack of
 * its own.
 */
#include "base/fail.h"
#include "mindtorch/core/thread/thread_state.h"

#include <mindtorch/autograd.h>

#include <pthread.h>

typedef struct thread_call {
    int (*run)(void *argument);
    void *argument;
    mt__thread_state state; /* the caller's, then the new thread's */
    mtb_failure failure;
    int status;
} thread_call;

static void *run_call(void *given)
{
    thread_call *call = given;
    mt__thread = call->state;
    call->status = call->run(call->argument);
    call->failure = *mtb_last_failure();
    call->state.sequence = mt__thread.sequence;
    if (call->state.autocast_state != NULL) {
        mt__thread.autocast_state = NULL; /* the caller's */
    }
    return NULL;
}

mt_status mt_call_on_thread(int (*run)(void *argument), void *argument)
{
    thread_call call = {.run = run, .argument = argument, .state = mt__thread};
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_call, &call);
    if (error != 0) {
        return mtb_fail_errno(MT_ENOMEM, error, "call_on_thread: no new thread");
    }
    (void)pthread_join(thread, NULL);
    mt__thread.sequence = call.state.sequence;
    *mtb_last_failure() = call.failure;
    return call.status;
}
