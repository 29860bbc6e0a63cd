/* SPDX-License-Identifier: Apache-2.0
 *
 * What flows where: storages, their versions, and the ops that turned some versions into others.
 *
 *     tensor ──► storage ──► version 0 ──► version 1 …          (a change in place makes a version)
 *                               │  flow: [ins] ─op─► [outs]
 *                               ▼
 *
 * memory_categories.c fills it while it reads the event stream; mtprof__flow_solve() then decides
 * what each version is. The rules are in memory_categories.h.
 *
 *   MF1  Flows are in the order in which their ops ended: what a flow reads was made by an
 *        earlier one, so that one sweep forward and one back reach everything.
 */
#ifndef MTPROF_ANALYZE_MEMORY_MEMORY_FLOW_H
#define MTPROF_ANALYZE_MEMORY_MEMORY_FLOW_H

#include "base/idmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a piece of memory is, in torch's order. */
enum mtprof__memory_category {
    MTPROF__MEMORY_PARAMETER = 0,
    MTPROF__MEMORY_OPTIMIZER_STATE = 1,
    MTPROF__MEMORY_INPUT = 2,
    MTPROF__MEMORY_TEMPORARY = 3,
    MTPROF__MEMORY_ACTIVATION = 4,
    MTPROF__MEMORY_GRADIENT = 5,
    MTPROF__MEMORY_AUTOGRAD_DETAIL = 6,
    MTPROF__MEMORY_UNKNOWN = 7,
    MTPROF__MEMORY_CATEGORY_COUNT = 8
};

enum {
    MTPROF__FORWARD_INPUTS = 6 /* of a forward op that are remembered for MC3b */
};

#define MTPROF__NO_INDEX UINT32_MAX
/* Most storages, versions, tensors or blocks of a kind. */
#define MTPROF__BLOCK_LIMIT 0x7FFFFFFFu

/* What was seen to happen to a storage. */
enum mtprof__storage_fact {
    MTPROF__STORAGE_READ_FORWARD = 1 << 0,    /* by an op outside backward pass and optimizers */
    MTPROF__STORAGE_READ_OPTIMIZER = 1 << 1,  /* in a step it was not made in */
    MTPROF__STORAGE_WRITE_OPTIMIZER = 1 << 2, /* changed in such a step */
    MTPROF__STORAGE_WRITE_BACKWARD = 1 << 3,
    MTPROF__STORAGE_MADE_OPTIMIZER = 1 << 4, /* allocated in a step, and alive after it */
    MTPROF__STORAGE_MADE_BACKWARD = 1 << 5,
    MTPROF__STORAGE_TEMPORARY = 1 << 6, /* allocated and freed inside one op */
    MTPROF__STORAGE_DERIVED = 1 << 7,   /* some op computed it from other storages */
    MTPROF__STORAGE_WRITE_FORWARD = 1 << 8,
    MTPROF__STORAGE_MARKED = 1 << 9 /* temporary: among those that the current op reads */
};

typedef struct mtprof__storage {
    uint64_t address;
    int64_t bytes;
    uint64_t ordinal; /* edge at which it came up */
    uint64_t forward; /* the forward op whose backward op last wrote it, 0: none */
    uint32_t block;
    uint32_t first, latest; /* versions */
    uint32_t tensor;        /* the first tensor that had it */
    uint32_t optimizer;     /* step in which it was allocated, 0: none */
    uint16_t facts;         /* enum mtprof__storage_fact */
    uint8_t device;
    uint8_t role; /* category declared or inferred for all versions; UNKNOWN: none */
} mtprof__storage;

enum mtprof__version_fact {
    MTPROF__VERSION_BACKWARD = 1 << 0, /* made by the backward pass */
    MTPROF__VERSION_OPTIMIZER = 1 << 1,
    MTPROF__VERSION_DEPENDS = 1 << 2, /* solving: computed from a gradient */
    MTPROF__VERSION_FEEDS = 1 << 3,   /* solving: something that learns was computed from it */
    MTPROF__VERSION_MARKED = 1 << 4   /* temporary: among the ins of the current flow */
};

typedef struct mtprof__version {
    uint32_t storage;
    uint32_t number;
    uint32_t previous; /* version of the storage before it, MTPROF__NO_INDEX: none */
    uint8_t category;
    uint8_t facts;
} mtprof__version;

typedef struct mtprof__known_tensor {
    uint64_t id;
    uint8_t role;
} mtprof__known_tensor;

/* MC3b: a parameter found by its size, and what else the forward op read (itself included). */
typedef struct mtprof__guess {
    uint32_t storage;
    uint32_t n_others;
    uint32_t others[MTPROF__FORWARD_INPUTS];
} mtprof__guess;

enum mtprof__flow_fact {
    MTPROF__FLOW_BACKWARD = 1 << 0,
    MTPROF__FLOW_OPTIMIZER = 1 << 1
};

typedef struct mtprof__flow {
    mtprof__storage *storages;
    size_t n_storages, storages_capacity;
    mtprof__version *versions;
    size_t n_versions, versions_capacity;
    mtprof__known_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    mtb_idmap tensor_map;
    mtprof__guess *guesses;
    size_t n_guesses, guesses_capacity;
    uint32_t *words; /* flows: head of two words, ins, outs, the head again */
    size_t n_words, words_capacity;
} mtprof__flow;

void mtprof__flow_fini(mtprof__flow *flow);

/* ENOMEM: "no memory for 3 blocks". */
int mtprof__no_memory(const char *what, size_t n);

/* Makes room for n items of `size` bytes. Fails with ENOMEM, ENOTSUP (more than
 * MTPROF__BLOCK_LIMIT). */
int mtprof__memory_reserve(void **items, size_t *capacity, size_t n, size_t size, const char *what);

/* The index of a tensor. Fails with ENOMEM, ENOTSUP (too many). */
int mtprof__flow_tensor(mtprof__flow *flow, uint64_t id, uint32_t *tensor);

/* Adds a storage and its first version. Fails as above. */
int mtprof__flow_storage(mtprof__flow *flow, const mtprof__storage *storage, uint32_t version,
                         uint32_t *index);

/* The version of a storage with this number, or the nearest one. The search goes back a limited
 * number of versions: then it is a later one that has a previous one. */
uint32_t mtprof__flow_find_version(const mtprof__flow *flow, uint32_t storage, uint32_t number);

/* Adds a version after the latest. Fails as above. */
int mtprof__flow_version(mtprof__flow *flow, uint32_t storage, uint32_t number, uint32_t *version);

/* An op made `outs` from `ins`; outs that are among ins are left out, and a flow without an out is
 * none. Fails with ENOMEM. */
int mtprof__flow_add(mtprof__flow *flow, uint32_t facts, const uint32_t *ins, uint32_t n_ins,
                     const uint32_t *outs, uint32_t n_outs);

/* Decides the category of every version. */
void mtprof__flow_solve(mtprof__flow *flow);

#endif /* MTPROF_ANALYZE_MEMORY_MEMORY_FLOW_H */
