/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a thread, in one small block of thread-local memory.
 */
#ifndef MINDTORCH_CORE_THREAD_THREAD_STATE_H
#define MINDTORCH_CORE_THREAD_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct mt_tensor;
struct mt_packed;

enum {
    MT_INFERENCE_ON = 1,
    MT_INFERENCE_GRAD = 2 /* grad mode, as the user sees it, is on: nothing is recorded anyway */
};

typedef struct mt__thread_state {
    bool grad_disabled;      /* grad mode, inverted so that zero is the initial state */
    uint16_t below_autograd; /* > 0 inside a leaf op: calls are not recorded in graphs */
    bool in_formula;         /* a derivative runs: profiles do not wrap its numbers in tensors */
    uint8_t device;          /* index that "npu" without a number means */
    uint8_t autocast;        /* a bit for each type of device: ops cast (autocast_impl.h) */
    uint8_t inference;       /* MT_INFERENCE_*; grad_disabled is set while it is on */
    uint64_t sequence;       /* of the next node made on this thread */
    struct mt__autocast *autocast_state; /* types, cached casts; NULL: as at first */
    /* Packs saved tensors (mt_set_pack), with its context; NULL: nobody does. */
    int (*pack)(void *context, struct mt_tensor *tensor, struct mt_packed **out);
    void *pack_context;
    uint8_t streams[16]; /* number of the current stream, by device (MT_DEVICES) */
} mt__thread_state;

extern _Thread_local mt__thread_state mt__thread __attribute__((tls_model("initial-exec")));

/* Whether the thread works on another stream than the default one, on any device. */
static inline bool mt__off_default_streams(void)
{
    uint64_t words[2];
    memcpy(words, mt__thread.streams, sizeof words);
    return (words[0] | words[1]) != 0;
}

#endif /* MINDTORCH_CORE_THREAD_THREAD_STATE_H */
