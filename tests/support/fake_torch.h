/* SPDX-License-Identifier: Apache-2.0
 *
 * A libtorch_cpu.so of our own: the functions that src/hosts/torch finds by symbol, with records
 * laid out as real torch has them, or wilfully otherwise. Its tensors have no data. With
 * FAKE_TORCH_OLD it lacks a function that inputs need. It is its own shim (torch_shim.cpp), too.
 */
#ifndef TESTS_SUPPORT_FAKE_TORCH_H
#define TESTS_SUPPORT_FAKE_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How records are laid out; set before mtprof_torch_attach(). */
typedef struct fake_layout {
    int32_t shift;        /* added to the offset of every field of a record */
    int32_t inputs_shift; /* to that of the inputs alone */
    uint32_t object_head; /* 16 or 24 */
    bool wild;            /* inputs point nowhere */
    bool silent;          /* clone() runs no op inside */
    bool old_tags;        /* those of 2.7 */
    bool other_tensors;   /* tensors do not say that they keep their sizes */
    bool no_versions;     /* a change in place is not counted */
    int32_t shim_shift;   /* what the shim in it adds to the known places */
    bool no_shim;         /* it finds nothing */
    bool no_outputs;      /* nor does a record say what its op made */
} fake_layout;

enum fake_kind {
    FAKE_NONE,
    FAKE_TENSOR,
    FAKE_REAL,
    FAKE_INT,
    FAKE_BOOL,
    FAKE_TEXT,
    FAKE_LIST,
    FAKE_OTHER,  /* a tag that we do not know */
    FAKE_NO_TEXT /* the tag of texts, with a number */
};

typedef struct fake_input {
    enum fake_kind kind;
    uint32_t n; /* TENSOR: dimensions; LIST: items */
    const int64_t *sizes;
    int64_t integer;
    double real;
    const char *text;
    const struct fake_input *items;
    const void *tensor; /* TENSOR: this one */
    uint32_t kept;      /* TENSOR: 1 no strides, 2 no sizes, either */
} fake_input;

typedef struct fake_op {
    const char *name;
    uint32_t scope;
    int64_t sequence; /* -1: none */
    uint64_t forward;
    uint32_t n_inputs;
    const fake_input *inputs;
    uint32_t n_outputs;
    const fake_input *outputs;
} fake_op;

/* What fake_torch_begin() gives and fake_torch_end() takes; may end on another thread. */
typedef struct fake_running fake_running;

/* The fake's own functions: dlsym("fake_torch_face"). */
typedef struct fake_torch {
    fake_layout *layout;
    fake_running *(*begin)(const fake_op *op);
    void (*end)(fake_running *running);
    uint32_t (*n_observers)(void);
    bool (*copies_inputs)(void);  /* an observer needs them */
    uint64_t (*n_asked)(void);    /* how often a tensor without sizes was asked for them */
    bool (*copies_outputs)(void); /* as copies_inputs */
    void **(*make)(const int64_t sizes[2], uint64_t memory, int64_t offset, uint32_t version);
    void (*destroy)(void **tensor); /* of make(): its word is fake_input.tensor */
} fake_torch;

#endif /* TESTS_SUPPORT_FAKE_TORCH_H */
