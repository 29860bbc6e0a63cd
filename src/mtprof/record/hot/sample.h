/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling by site: which begins are recorded while the limit of the overhead (limit/limit.h)
 * asks for fewer. It costs nothing where there is no limit: the state's bits that ask for it are
 * answered like those of the host's language, by a slow path that exists already.
 *
 *      state has MTPROF__SAMPLE_… ─► writer's begin_state is DETACHED ─► slow path
 *                                                        ─► mtprof__sample_keeps()
 *
 * A name is recorded completely up to SAMPLES_KEPT times a second and thread; of one that comes
 * more often about that many are, at random distances, so that a loop's rhythm does not choose. An
 * entry of the thread's table counts down to the next one.
 *
 * Invariants
 *   SMP1  A thread's table is used between enter and leave (WR1); other threads read its counts
 *        only. `told` is the controller's, and while the state is shut the whole table (WR3).
 *   SMP2  Every begin of a sampled kind is counted: kept, or skipped. So what is left out is known
 *        exactly, by name; names that share an entry are counted together, without a name.
 *   SMP3  Steps, and begins whose key a device gets, are never skipped.
 */
#ifndef MTPROF_RECORD_HOT_SAMPLE_H
#define MTPROF_RECORD_HOT_SAMPLE_H

#include "mtprof/record/hot/writer.h"

enum {
    MTPROF__SAMPLES = 1024,    /* entries of a thread's table, a power of two */
    MTPROF__SAMPLES_KEPT = 64, /* of a name, a second and thread, about */
};

/* What the counts are kept apart by. */
enum mtprof__sample_class {
    MTPROF__CLASS_OP,    /* ops, runtime calls */
    MTPROF__CLASS_CALL,  /* functions of a language */
    MTPROF__CLASS_SCOPE, /* everything else */
    MTPROF__CLASSES
};

typedef struct mtprof__sample {
    uint32_t name;                    /* 0: free */
    uint32_t clock;                   /* the second that the fields below are of */
    uint32_t left;                    /* so many are skipped before the next one is kept */
    uint32_t interval;                /* of so many about one is kept */
    uint32_t calls;                   /* in this second */
    uint32_t kept_now;                /* of them, since the interval last grew */
    uint64_t skipped, kept;           /* atomic */
    uint64_t told_skipped, told_kept; /* already in the trace (SMP1) */
} mtprof__sample;

struct mtprof__samples {
    uint64_t calls[MTPROF__CLASSES]; /* atomic: of the sampled classes and, there, of the others */
    uint64_t skipped;                /* atomic: the sum of all entries', and `shared` */
    uint64_t shared, told_shared;    /* atomic: skipped names that share an entry (SMP2) */
    uint32_t random;
    mtprof__sample at[MTPROF__SAMPLES];
};

/* Grows every second while a recording has a limit; atomic. */
extern uint32_t mtprof__sample_clock;

/*
 * Whether this begin is to be recorded. The state asks for sampling, and the writer is entered;
 * where it is not attached to that state's epoch the answer is yes.
 */
bool mtprof__sample_keeps(mtprof__writer *w, uint64_t state, uint32_t flags, uint32_t name);

/* The same for a site, from outside: enters this thread's writer meanwhile. */
bool mtprof__sample_keeps_site(mtprof__writer *w, uint64_t state, const mtprof_site *site);

/* The same for a name made at run time; true where the state asks for no sampling. */
bool mtprof__sample_keeps_name(uint64_t state, uint32_t begin_flags, const char *name,
                               size_t length);

#endif /* MTPROF_RECORD_HOT_SAMPLE_H */
