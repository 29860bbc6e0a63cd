/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the conformance test share (backend_conformance.c): the backend under test, how
 * a check says that something is wrong, and short ways to put work on a stream.
 */
#ifndef TESTS_CONFORMANCE_CONFORM_H
#define TESTS_CONFORMANCE_CONFORM_H

#include <mindtorch/backend.h>
#include <mindtorch/sim.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cf_state {
    const mt_backend *backend; /* under test */
    const mt_backend *cpu;     /* the oracle */
    const mt_sim *sim;         /* controls that hold a stream back; NULL: there are none */
    uint32_t devices;
    bool strict; /* bit-equal results, no kernel may be missing */
    bool shared; /* others take the device's memory too: its free bytes prove nothing */
} cf_state;

extern cf_state cf;

typedef struct cf_check {
    const char *name;
    void (*run)(void);
} cf_check;

/* Lists of checks, in the order in which they run; each ends with a NULL. */
extern const cf_check cf_device_checks[];
extern const cf_check cf_memory_checks[];
extern const cf_check cf_copy_checks[];
extern const cf_check cf_stream_checks[];
extern const cf_check cf_event_checks[];
extern const cf_check cf_failure_checks[];
extern const cf_check cf_activity_checks[];
extern const cf_check cf_process_checks[];

/* ---- what a check says; the thread that runs checks only ---- */

/* Reports a failure; the check continues. Only the first one is shown. */
__attribute__((format(printf, 1, 2))) void cf_failed(const char *format, ...);
/* Something is wrong, or does not apply; the check ends here. */
__attribute__((format(printf, 1, 2), noreturn)) void cf_stop(const char *format, ...);
__attribute__((noreturn)) void cf_skip(const char *reason);
/* Ends the check unless the status is MT_OK. */
void cf_ok(int status, const char *what);

#define CF_CHECK(condition, ...)    \
    do {                            \
        if (!(condition)) {         \
            cf_failed(__VA_ARGS__); \
        }                           \
    } while (0)

#define CF_OK(call) cf_ok((call), #call)

/* Skip where the optional group is absent. */
void cf_need_streams(void);
void cf_need_records(void);
void cf_need_sim(void);

/* ---- memory ---- */

void *cf_take(uint32_t device, size_t bytes);
void cf_give(uint32_t device, void *memory, size_t bytes);
/* All done on return. */
void cf_write(uint32_t device, void *to, const void *from, size_t bytes);
void cf_read(uint32_t device, void *to, const void *from, size_t bytes);
/* Host memory with room for `bytes`; ends the check where there is none. */
void *cf_host(size_t bytes);

/* ---- work: any thread, a status ---- */

typedef struct cf_stream {
    mt_backend_stream *at; /* NULL: the default stream */
    uint32_t device, number;
} cf_stream;

cf_stream cf_stream_new(uint32_t device);
void cf_stream_free(cf_stream *stream);
cf_stream cf_default_stream(uint32_t device);

/* Calls the kernel with copies of what the call points to, and overwrites all of them as soon as it
 * returns (B4). */
int cf_launch(cf_stream stream, const mt_kernel_call *call);

typedef struct cf_copy_of {
    mt_copy kind;
    uint32_t flags, to_device;
    void *to;
    const void *from;
    uint64_t bytes, correlation;
} cf_copy_of;

int cf_copy(cf_stream stream, const cf_copy_of *what);
int cf_set(cf_stream stream, void *to, uint64_t bytes, uint8_t value, uint64_t correlation);
/* What `count` int64 numbers become: themselves times `factor`, or plus `addend`. */
int cf_multiply(cf_stream stream, void *numbers, int64_t count, int64_t factor);
int cf_add(cf_stream stream, void *numbers, int64_t count, int64_t addend, uint64_t correlation);
/* Picks number `index` of `from` (10 of them) into `to`: out of range where it is above 9. */
int cf_pick(cf_stream stream, void *to, void *from, void *index, uint64_t correlation);

/* Keeps the stream busy: held back where the backend can, else by long work. cf_unhold() lets it
 * go. */
void cf_hold(cf_stream stream);
void cf_unhold(cf_stream stream);
/* How many holds were given up because a thread waited. */
uint32_t cf_gave_up(cf_stream stream);

/* ---- kernels (conform_kernels.c, conform_cases.c) ---- */

/* See conform_cases.c for the texts. */
typedef struct cf_case {
    mt_kernel kernel;
    uint16_t code, last_code; /* each from one to the other */
    const char *types, *tensors, *ints, *scalars;
} cf_case;

extern const cf_case cf_cases[];
extern const size_t cf_case_count;

/* Runs all cases of one kernel. */
void cf_check_kernel(mt_kernel kernel);

#endif /* TESTS_CONFORMANCE_CONFORM_H */
