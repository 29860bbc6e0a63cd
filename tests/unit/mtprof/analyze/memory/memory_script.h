/* SPDX-License-Identifier: Apache-2.0
 *
 * Small programs as event streams: a test writes down what a host would have recorded, edge by
 * edge, and gets back what the memory timeline says about it.
 *
 *     static void program(memory_script *s)
 *     {
 *         ms_begin(s, "aten::relu", ms_in(T(1, 0x100, 0)));
 *         ms_alloc(s, 0x200, 64);
 *         ms_end(s, ms_out(T(2, 0x200, 0)));
 *     }
 *     … ms_run(program, 0) gives "PRE 0 INPUT\nCREATE 64 ACTIVATION\n"
 *
 * The program runs twice, as the exporter reads a trace twice. Time goes up by 1,000 ns an edge.
 */
#ifndef TESTS_UNIT_MTPROF_ANALYZE_MEMORY_MEMORY_SCRIPT_H
#define TESTS_UNIT_MTPROF_ANALYZE_MEMORY_MEMORY_SCRIPT_H

#include "mtprof/analyze/memory/memory_categories.h"
#include "mtprof/export/memory/memory_timeline.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MS_DEPTH = 64,
    MS_TENSORS = 8
};

typedef struct ms_tensors {
    mtprof__tensor items[MS_TENSORS];
    uint32_t n;
} ms_tensors;

/* A tensor: id, address of its storage, version. On device 0; TD() names the device. */
#define TD(id, address, number, on) \
    ((mtprof__tensor){.tensor = (id), .storage = (address), .version = (number), .device = (on)})
#define T(id, address, number) TD(id, address, number, 0)
/* One whose role is recorded (enum mtprof_tensor_role); `bytes` where it is not read. */
#define TR(id, address, told, bytes) \
    ((mtprof__tensor){.tensor = (id), .storage = (address), .offset = (bytes), .role = (told)})
#define ms_in(...) \
    ((ms_tensors){{__VA_ARGS__}, sizeof((mtprof__tensor[]){__VA_ARGS__}) / sizeof(mtprof__tensor)})
#define ms_out(...) ms_in(__VA_ARGS__)
#define MS_NONE     ((ms_tensors){.n = 0})

typedef struct ms_open {
    const char *name;
    uint64_t id;
    uint8_t kind;
    uint16_t flags;
    uint32_t track;
    mtprof__payload payload;
    ms_tensors ins;
} ms_open;

typedef struct memory_script {
    mtprof__classifier *classifier; /* first run */
    mtprof__memory_replay *replay;  /* second run */
    uint32_t track;                 /* edges go here */
    uint8_t device;                 /* allocations go here */
    int64_t now_ns;
    uint64_t next_id;
    ms_open open[2][MS_DEPTH]; /* by track */
    uint32_t depth[2];
    int status;
} memory_script;

/* An op; a scope; a backward function with the sequence number of its forward op (-1: none). */
void ms_begin(memory_script *s, const char *name, ms_tensors ins);
void ms_begin_numbered(memory_script *s, const char *name, int64_t sequence, ms_tensors ins);
/* An op that records its inputs' words too (scalars where ins has nothing for them). */
void ms_begin_words(memory_script *s, const char *name, ms_tensors ins, const uint64_t *words,
                    uint32_t n_words);
void ms_scope(memory_script *s, const char *name, ms_tensors ins);
void ms_backward(memory_script *s, const char *name, int64_t sequence, ms_tensors ins);
/* The innermost op records one more tensor that it reads: part of its list comes late. */
void ms_late(memory_script *s, mtprof__tensor tensor);
/* Ends the innermost. */
void ms_end(memory_script *s, ms_tensors outs);
/* An op that is over at once. */
void ms_op(memory_script *s, const char *name, ms_tensors ins, ms_tensors outs);
void ms_alloc(memory_script *s, uint64_t address, int64_t bytes);
void ms_free(memory_script *s, uint64_t address, int64_t bytes);
/* A scope whose parent is the innermost one of the other track. */
void ms_scope_under_other(memory_script *s, const char *name);

typedef void ms_program(memory_script *s);

/* Runs a program; the timeline of a device as text, one action a line, which the caller frees.
 * Checks on the way that no category ever goes below zero and that times do not decrease. */
char *ms_run(ms_program *program, uint8_t device);
/* Checks that text. */
void ms_expect(ms_program *program, uint8_t device, const char *text);
/* What the latest run says did not fit the tables of categories. */
extern uint64_t ms_left_out;

#endif /* TESTS_UNIT_MTPROF_ANALYZE_MEMORY_MEMORY_SCRIPT_H */
