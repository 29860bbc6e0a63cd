/* SPDX-License-Identifier: Apache-2.0
 *
 * Instrumentation: the calls with which a program records events.
 *
 *     void step(void)
 *     {
 *         MTPROF_SCOPE("step");           // ends with the block
 *         MTPROF_COUNTER("queue", depth);
 *     }
 *
 * Recording calls return nothing that can fail: they never block, and what cannot be kept is
 * counted (health.h). While nothing records, a call costs one load and one branch. Define
 * MTPROF_DISABLE before including this header and the macros vanish altogether.
 *
 * Compilers: GCC or Clang, for the attribute `cleanup`, __atomic_load_n() and __builtin_expect().
 *
 * A begin returns a token, an end takes it. Tokens are plain numbers: pass them along with the
 * work, end them on any thread, in any order, in any coroutine, or never. 0 means "not recorded"
 * and ending it does nothing; so does ending a token of a recording that is over. A token ends
 * once: a second end is ignored when the trace is read.
 *
 * Threads: everything here may be called from any thread and from signal handlers.
 */
#ifndef MTPROF_TRACE_H
#define MTPROF_TRACE_H

#include <mtprof/api.h>
#include <mtprof/format.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef uint64_t mtprof_token;

/**
 * A place in the program that records: one static object per place. Its name is copied when it
 * first records, so the module that holds it may be unloaded later. Programs hold sites compiled
 * in, so fields are only ever appended and struct_size says which ones a site has: 0, or less than
 * the first version had, is recorded as lost (MTPROF_LOST_TOO_LARGE).
 */
typedef struct mtprof_site {
    uint64_t word; /**< the library's: what its records begin with; 0 until it has first recorded */
    uint16_t flags; /**< begin flags (format.h): MTPROF_KIND_OP and so on. Here and in the calls
                         below: bits that are not defined are left out, and a kind that is not
                         defined is recorded as a scope */
    uint16_t wants; /**< the library's: which bits of the gate make it record */
    uint32_t line : 24;
    uint32_t struct_size : 8; /**< sizeof(mtprof_site) as the program was compiled */
    const char *name;
    const char *file;
} mtprof_site;

/** A begin flag that is not recorded: this is never begun in a signal handler, nor under a lock for
 * which a thread of the host's language may wait. So the language may wait for its own lock
 * (Python's GIL) where it cannot tell the stack without (language.h). */
#define MTPROF_BEGIN_MAY_WAIT 0x100u

#define MTPROF_SITE_INIT(name, flags)                                                         \
    {                                                                                         \
        0, (uint16_t)(flags), 0, (uint32_t)__LINE__ & 0xFFFFFFu, sizeof(mtprof_site), (name), \
            __FILE__                                                                          \
    }

/** What is wanted right now, enum mtprof_want; 0 while nothing records. Read it, never write it. */
extern MTPROF_API uint32_t mtprof_i_gate;

/* The out-of-line halves of the inline functions below; call those. */
MTPROF_API mtprof_token mtprof_i_begin(mtprof_site *site);
MTPROF_API void mtprof_i_end(mtprof_token token);
MTPROF_API void mtprof_i_instant(mtprof_site *site);
MTPROF_API void mtprof_i_counter(mtprof_site *site, int64_t value);
MTPROF_API void mtprof_i_counter_real(mtprof_site *site, double value);
MTPROF_API void mtprof_i_flow(mtprof_site *site, uint32_t phase, uint64_t flow_id);

/** Whether a recording wants one of these (enum mtprof_want). */
static inline bool mtprof_wants(uint32_t wants)
{
    return __builtin_expect((__atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED) & wants) != 0, 0);
}

/** Begins a scope, an op or a runtime call, as the site's flags say. */
static inline mtprof_token mtprof_begin(mtprof_site *site)
{
    if (mtprof_wants(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_RUNTIME |
                     MTPROF_WANT_DEVICE)) {
        return mtprof_i_begin(site);
    }
    return 0;
}

/** Ends what a begin returned. */
static inline void mtprof_end(mtprof_token token)
{
    if (__builtin_expect(token != 0, 0)) {
        mtprof_i_end(token);
    }
}

/** A point in time. */
static inline void mtprof_instant(mtprof_site *site)
{
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        mtprof_i_instant(site);
    }
}

/** A whole value that changes over time; a fraction goes to mtprof_counter_real(). */
static inline void mtprof_counter(mtprof_site *site, int64_t value)
{
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        mtprof_i_counter(site, value);
    }
}

static inline void mtprof_counter_real(mtprof_site *site, double value)
{
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        mtprof_i_counter_real(site, value);
    }
}

enum mtprof_flow_phase {
    MTPROF_FLOW_START = 0,
    MTPROF_FLOW_STEP = 1,
    MTPROF_FLOW_END = 2
};

/** An arrow between scopes: each call binds the flow id to the scope open on this thread. */
static inline void mtprof_flow(mtprof_site *site, enum mtprof_flow_phase phase, uint64_t flow_id)
{
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        mtprof_i_flow(site, (uint32_t)phase, flow_id);
    }
}

/**
 * Begins a scope whose name is made at run time. The name is any bytes and is copied; up to 65,536
 * different ones per session (in a ring: half of its buffer) are stored once, further ones in full
 * with each event.
 */
MTPROF_API mtprof_token mtprof_begin_named(const char *name, size_t length, uint32_t begin_flags);

/** An instant with such a name. */
MTPROF_API void mtprof_instant_named(const char *name, size_t length, uint32_t begin_flags);

/**
 * Counters and flows with such a name. Beyond 65,536 different ones per session (in a ring: half of
 * its buffer) they are lost, and counted.
 */
MTPROF_API void mtprof_counter_named(const char *name, size_t length, int64_t value);
MTPROF_API void mtprof_counter_real_named(const char *name, size_t length, double value);
MTPROF_API void mtprof_flow_named(const char *name, size_t length, enum mtprof_flow_phase phase,
                                  uint64_t flow_id);

/**
 * Begins a scope under a parent that need not be open on this thread: for coroutines, tasks, and
 * work handed from thread to thread. A parent of 0 makes it a root.
 */
MTPROF_API mtprof_token mtprof_begin_under(mtprof_site *site, mtprof_token parent);

/** The latest instant of this thread, if nothing else was recorded since. */
#define MTPROF_LATEST_INSTANT ((mtprof_token)1)

/**
 * Keys and values of a scope, or of MTPROF_LATEST_INSTANT. Keys come from mtprof_intern(), or where
 * they are made at run time from mtprof_intern_here(). No effect on a token of 0, or of a recording
 * that is over.
 */
MTPROF_API void mtprof_meta_int(mtprof_token token, uint32_t key, int64_t value);
MTPROF_API void mtprof_meta_real(mtprof_token token, uint32_t key, double value);
MTPROF_API void mtprof_meta_bool(mtprof_token token, uint32_t key, bool value);
/** The text is copied; beyond 1,024 bytes it is cut, and counted. */
MTPROF_API void mtprof_meta_text(mtprof_token token, uint32_t key, const char *text, size_t length);

/**
 * The id of a string, the same for equal texts, valid until the process ends: keys of metadata,
 * names of types, overloads, modules. It is kept, and written into every trace from now on: use
 * it for strings that are part of the program, not of its data. Strings of more than 64 KiB are
 * cut. 0 when there is no memory. Not for signal handlers.
 */
MTPROF_API uint32_t mtprof_intern(const char *text, size_t length);

/**
 * The id of a string in the running recording, for what is made at run time: keys of metadata, and
 * types and texts of inputs (op.h). It ends with the recording; in another one it names nothing. Up
 * to 65,536 different ones a recording, and no more than half of the buffer of a ring or of one
 * that stops: beyond that 0, and counted (health.texts_cut). 0 while nothing records. Not for
 * signal handlers.
 */
MTPROF_API uint32_t mtprof_intern_here(const char *text, size_t length);

/** Names the calling thread in traces; NULL removes the name. Names are cut at 255 bytes, and
 * counted. Not for signal handlers. */
MTPROF_API void mtprof_name_thread(const char *name);

/** The number of this thread in the running recording (mtprof_op.forward_thread); 0 before its
 * first event there, and while nothing records. */
MTPROF_API uint32_t mtprof_thread_number(void);

/**
 * The launch key of a begin: the device gets it, and its records refer to the begin by it
 * (source.h). 0 for a token of 0.
 */
static inline uint64_t mtprof_launch_key(mtprof_token token)
{
    return token & 0x00FFFFFFFFFFFFFFu;
}

/**
 * Notes that the open scope launched work on a device, without a scope of its own, and returns the
 * launch key to hand to the device; 0 when nothing records. site may be NULL.
 */
MTPROF_API uint64_t mtprof_launch(mtprof_site *site, uint32_t device, uint32_t queue);

static inline void mtprof_i_scope_cleanup(const mtprof_token *token)
{
    mtprof_end(*token);
}

MTPROF_END_DECLS

/* Names of one place: `number` is a fresh __COUNTER__, so that a line may hold several places. */
#define MTPROF_I_JOIN(stem, number) mtprof_i_##stem##_##number
#define MTPROF_I_NAME(stem, number) MTPROF_I_JOIN(stem, number)

/* The arguments, or nothing when recording is compiled out. */
#ifdef MTPROF_DISABLE
#    define MTPROF_I_WHEN_ON(...)
#else
#    define MTPROF_I_WHEN_ON(...) __VA_ARGS__
#endif

#define MTPROF_I_SITE(number, name, flags) \
    static mtprof_site MTPROF_I_NAME(site, number) = MTPROF_SITE_INIT(name, flags)

/** A scope that ends with the enclosing block, however the block is left. name: a literal. */
#define MTPROF_SCOPE(name) MTPROF_SCOPE_FLAGS(name, MTPROF_KIND_SCOPE)

/** The same for an op. */
#define MTPROF_OP(name) MTPROF_SCOPE_FLAGS(name, MTPROF_KIND_OP)

#define MTPROF_SCOPE_FLAGS(name, flags) MTPROF_I_SCOPE(__COUNTER__, name, flags)

#define MTPROF_I_SCOPE(number, name, flags)                                         \
    MTPROF_I_WHEN_ON(MTPROF_I_SITE(number, name, flags);                            \
                     mtprof_token MTPROF_I_NAME(token, number)                      \
                         __attribute__((unused, cleanup(mtprof_i_scope_cleanup))) = \
                             mtprof_begin(&MTPROF_I_NAME(site, number)))

/* Marks are statements. sizeof keeps their values used, without evaluating them, when disabled. */
#define MTPROF_I_MARK(number, name, used, ...)                                         \
    do {                                                                               \
        (void)sizeof(used);                                                            \
        MTPROF_I_WHEN_ON(MTPROF_I_SITE(number, name, MTPROF_KIND_SCOPE); __VA_ARGS__;) \
    } while (0)

#define MTPROF_INSTANT(name) MTPROF_I_INSTANT(__COUNTER__, name)

#define MTPROF_I_INSTANT(number, name) \
    MTPROF_I_MARK(number, name, name, mtprof_instant(&MTPROF_I_NAME(site, number)))

/** A value that changes over time: any integer or floating-point number, evaluated once. */
#define MTPROF_COUNTER(name, value) MTPROF_I_COUNTER(__COUNTER__, name, value)

/*
 * C11 and C++17 alike: converted to an integer type 0.5 becomes 0, to others not. An integer that
 * int64_t cannot hold is recorded as the nearest real number.
 */
#define MTPROF_I_COUNTER(number, name, value)                                                     \
    MTPROF_I_MARK(                                                                                \
        number, name, value, __typeof__((value) + 0) MTPROF_I_NAME(amount, number) = (value);     \
        if ((__typeof__((value) + 0))0.5 > 0 ||                                                   \
            (MTPROF_I_NAME(amount, number) > 0 &&                                                 \
             (uint64_t)MTPROF_I_NAME(amount, number) > (uint64_t)INT64_MAX)) {                    \
            mtprof_counter_real(&MTPROF_I_NAME(site, number),                                     \
                                (double)MTPROF_I_NAME(amount, number));                           \
        } else {                                                                                  \
            mtprof_counter(&MTPROF_I_NAME(site, number), (int64_t)MTPROF_I_NAME(amount, number)); \
        })

#define MTPROF_FLOW(name, phase, flow_id) MTPROF_I_FLOW(__COUNTER__, name, phase, flow_id)

#define MTPROF_I_FLOW(number, name, phase, flow_id) \
    MTPROF_I_MARK(number, name, flow_id,            \
                  mtprof_flow(&MTPROF_I_NAME(site, number), (phase), (flow_id)))

#endif /* MTPROF_TRACE_H */
