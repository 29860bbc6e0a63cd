/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a device: one versioned struct of functions. A backend includes this header and
 * nothing else of the runtime, and the runtime never dereferences a device pointer. The host is a
 * backend too. The backend of an accelerator is registered by the program, or is a shared object
 * that the runtime opens (mt_backend_load).
 *
 *   B1  Sizes, types and overlaps are checked before a kernel is called. Errors that depend on the
 *       data (an index out of range) are reported by the kernel.
 *   B2  Work on one stream is done in the order of its calls; stream NULL is the device's default
 *       stream. Streams do not wait for each other except through stream_wait. Calls return when
 *       the work is queued; only functions documented as waiting wait.
 *   B3  Calling a missing kernel (NULL) fails with MT_ENOTSUP and its name; it never gives a wrong
 *       result.
 *   B4  When the call returns, the caller may reuse everything that it points to (sizes, strides,
 *       ints, scalars, the call itself). Device memory stays allocated until the stream has
 *       completed the work.
 *   B5  A failure after the call has returned is kept and reported once, by the next function that
 *       waits on that device; work queued after it is still done. Once a device is lost, every call
 *       on it fails with MT_EDEVICE.
 *   B6  Any thread may call any function. After fork() a child may free what it has; everything
 *       else fails with MT_EDEVICE.
 *   B7  Work whose call has a correlation is reported to the sink with that number exactly once,
 *       when it is done, also when it failed; work without one is not reported. Reporting never
 *       makes the host wait.
 */
#ifndef MINDTORCH_BACKEND_H
#define MINDTORCH_BACKEND_H

#include <mindtorch/kernel_codes.h>
#include <mindtorch/status.h>
#include <mindtorch/value.h>

#include <stdbool.h>
#include <stddef.h>

MT_BEGIN_DECLS

enum {
    MT_BACKEND_VERSION = 1
};

/** All kernels; kernels.def lists the arguments of each. */
typedef enum mt_kernel {
#define X(name) MT_KERNEL_##name,
#include <mindtorch/kernels.def>
#undef X
    MT_KERNEL_COUNT
} mt_kernel;

/** "BINARY" and so on; never NULL. */
MT_API const char *mt_kernel_name(mt_kernel kernel);

/** A tensor as kernels see it. */
typedef struct mt_array {
    void *data;             /**< of the first element, on the device */
    const int64_t *sizes;   /**< n_dims of them */
    const int64_t *strides; /**< in elements; 0 repeats an element */
    int32_t n_dims;
    uint32_t dtype; /**< mt_dtype */
} mt_array;

/** One call of a kernel: outputs come first in `tensors`. An absent optional one has data NULL and
 * n_dims -1. */
typedef struct mt_kernel_call {
    uint32_t struct_size;
    uint16_t kernel; /**< mt_kernel */
    uint16_t code;   /**< which of a family (kernel_codes.h), 0 where there is none */
    uint32_t n_tensors;
    uint32_t n_ints;
    uint32_t n_scalars;
    uint32_t device; /**< index of the device, for the default stream */
    const mt_array *tensors;
    const int64_t *ints;
    const mt_scalar *scalars;
    uint64_t correlation; /**< B7; 0: not recorded */
} mt_kernel_call;

/** Defined by the backend. */
typedef struct mt_backend_stream mt_backend_stream;
typedef struct mt_backend_event mt_backend_event;

/** Host kernels get stream NULL. */
typedef int mt_kernel_fn(void *context, mt_backend_stream *stream, const mt_kernel_call *call);

typedef enum mt_copy {
    MT_COPY_WITHIN,    /**< on one device */
    MT_COPY_TO_DEVICE, /**< from host memory, which may be reused on return */
    MT_COPY_TO_HOST,   /**< waits: the bytes are there on return */
    MT_COPY_PEER       /**< between devices of this backend; the stream is from_device's */
} mt_copy;

enum mt_copy_flag {
    /** The host's memory came from host_allocate and does not change until the stream has completed
     * the copy: the call does not wait. */
    MT_COPY_PINNED = 1 << 0
};

/** Bytes to move; the two ranges do not overlap unless they are equal. */
typedef struct mt_copy_call {
    uint32_t struct_size;
    uint32_t kind;              /**< mt_copy */
    uint32_t flags;             /**< mt_copy_flag */
    uint32_t device, to_device; /**< of the stream; where it goes (PEER) */
    uint32_t reserved;
    void *to;
    const void *from;
    uint64_t bytes;
    uint64_t correlation; /**< B7 */
} mt_copy_call;

/** Bytes to fill with one value. */
typedef struct mt_set_call {
    uint32_t struct_size;
    uint32_t device;
    void *to;
    uint64_t bytes;
    uint32_t value; /**< 0 to 255 */
    uint32_t reserved;
    uint64_t correlation; /**< B7 */
} mt_set_call;

/** Properties of a device. */
typedef struct mt_device_info {
    uint32_t struct_size; /**< set by the caller */
    uint32_t reserved;
    char name[64]; /**< for people */
    uint64_t total_bytes, free_bytes;
} mt_device_info;

enum mt_event_flag {
    MT_EVENT_TIMING = 1 << 0 /**< event_elapsed will be asked */
};

/** Values as in mtprof's enum mtprof_activity_kind. */
typedef enum mt_activity_kind {
    MT_ACTIVITY_KERNEL = 0,
    MT_ACTIVITY_COPY = 1,
    MT_ACTIVITY_SET = 2
} mt_activity_kind;

/** A piece of work that was done. */
typedef struct mt_activity {
    uint32_t struct_size;
    uint32_t kind;       /**< mt_activity_kind */
    const char *name;    /**< "binary_add_f32", "Memcpy HtoD (Pageable -> Device)"; read before push
                            returns */
    uint64_t start, end; /**< on the backend's clock */
    uint64_t correlation;
    uint32_t device, stream; /**< index, number from stream_new (0: the default stream) */
    uint64_t bytes;          /**< moved or set */
} mt_activity;

/** Where activities go. Both functions may be called from any thread. */
typedef struct mt_activity_sink {
    uint32_t struct_size;
    uint32_t reserved;
    void *context;
    void (*push)(void *context, const mt_activity *activity);
    void (*lost)(void *context, uint64_t count); /**< records that the backend could not keep */
} mt_activity_sink;

/**
 * Functions return a status and may set a message with mt_fail(). Those marked (optional) may be
 * NULL: a device without streams has its default stream alone, or does everything before it
 * returns.
 */
typedef struct mt_backend {
    uint32_t struct_size;
    uint32_t version; /**< MT_BACKEND_VERSION */
    const char *name; /**< "cpu", "sim" */
    void *context;    /**< first argument of all of these */

    /* ---- devices ---- */
    uint32_t (*device_count)(void *context);
    int (*device_info)(void *context, uint32_t device, mt_device_info *info);
    /** Waits for all streams of the device. */
    int (*synchronize)(void *context, uint32_t device);

    /* ---- memory ---- */
    /** In large pieces, aligned to 64 at least; the runtime's allocator divides them. MT_ENOMEM. */
    int (*allocate)(void *context, uint32_t device, size_t bytes, void **out);
    /** The runtime has waited: nothing uses the memory any more. */
    void (*release)(void *context, uint32_t device, void *memory, size_t bytes);
    /** (optional) Pinned host memory, which copies can access without waiting. */
    int (*host_allocate)(void *context, size_t bytes, void **out);
    void (*host_release)(void *context, void *memory, size_t bytes);

    /* ---- work ---- */
    int (*copy)(void *context, mt_backend_stream *stream, const mt_copy_call *call);
    int (*set)(void *context, mt_backend_stream *stream, const mt_set_call *call);
    mt_kernel_fn *const *kernels; /**< by mt_kernel */
    uint32_t n_kernels;
    uint32_t reserved;

    /* ---- streams and events: (optional), all or none ---- */
    /** number: 1 and up, unique on the device; activities carry it. priority: lower goes first. */
    int (*stream_new)(void *context, uint32_t device, uint32_t number, int32_t priority,
                      mt_backend_stream **out);
    void (*stream_free)(void *context, mt_backend_stream *stream);
    /** device: whose default stream NULL is; here and below. */
    int (*stream_query)(void *context, uint32_t device, mt_backend_stream *stream, bool *done);
    int (*stream_synchronize)(void *context, uint32_t device,
                              mt_backend_stream *stream); /* waits */
    int (*event_new)(void *context, uint32_t device, uint32_t flags, mt_backend_event **out);
    void (*event_free)(void *context, mt_backend_event *event);
    /** The event marks the work that is on the stream so far. Recording it again moves the mark. */
    int (*event_record)(void *context, uint32_t device, mt_backend_stream *stream,
                        mt_backend_event *event);
    /** An event that was never recorded is done. */
    int (*event_query)(void *context, mt_backend_event *event, bool *done);
    int (*event_synchronize)(void *context, mt_backend_event *event); /**< waits */
    int (*event_elapsed)(void *context, mt_backend_event *from, mt_backend_event *to, double *ns);
    /** Work put on the stream later waits for the work that the event marks now; also between
     * devices. */
    int (*stream_wait)(void *context, uint32_t device, mt_backend_stream *stream,
                       mt_backend_event *event);

    /* ---- records: (optional), all or none ---- */
    /** From now on work with a correlation is reported to the sink, which stays valid until the
     * next activity_start. */
    int (*activity_start)(void *context, const mt_activity_sink *sink);
    /** No more work will have a correlation. Work that is queued is still reported. */
    void (*activity_stop)(void *context);
    /** Waits until all work with a correlation has been reported, at most this long; MT_ERUNTIME on
     * timeout. Does not report failures of the work. */
    int (*activity_flush)(void *context, uint64_t timeout_ns);
    /** The clock of activities, in nanoseconds, from any thread. */
    uint64_t (*clock)(void *context);

    /** (optional) An interface specific to the backend, by name ("sim"); NULL: there is none of
     * that name. */
    const void *(*extension)(void *context, const char *name);
} mt_backend;

/**
 * Makes a backend serve a device type. The struct and what it points to must live as long as the
 * process. MT_ERUNTIME if the type is served already, MT_EVALUE for an unknown version or a missing
 * function.
 */
MT_API mt_status mt_backend_register(mt_device_type type, const mt_backend *backend);

/* ---- backends in shared objects ---- */

/** What the runtime passes to a shared object, which therefore need not link against it. */
typedef struct mt_backend_host {
    uint32_t struct_size;
    uint32_t version;      /**< MT_BACKEND_VERSION of the runtime */
    const mt_backend *cpu; /**< its kernels work on host memory, from any thread */
    mt_status (*fail)(mt_status status, const char *message); /**< mt_fail() */
    const mt_error *(*last_error)(void);                      /**< mt_last_error() */
    /** The environment variable MINDTORCH_NPU_<name>; NULL: it is not set. */
    const char *(*setting)(const char *name);
} mt_backend_host;

/** The function that a shared object exports as "mt_backend_open": returns a backend, or a status
 * with a message set by host->fail. Called once per process. */
typedef int mt_backend_open_fn(const mt_backend_host *host, const mt_backend **out);

/**
 * Opens libmindtorch_<name>.so and makes it serve the accelerator. The search path is the folder in
 * MINDTORCH_BACKENDS, the folder of libmindtorch, then the dynamic loader's path; a name with a
 * slash is a file. The first query about accelerators loads the backend named in MINDTORCH_NPU, so
 * a program need not call this. MT_ERUNTIME: the message says what went wrong.
 */
MT_API mt_status mt_backend_load(const char *name);

/** Name and memory of the device. Set info->struct_size. */
MT_API mt_status mt_device_get_info(mt_device device, mt_device_info *info);

/** The extension of the backend that serves the type, NULL where there is none. */
MT_API const void *mt_backend_extension(mt_device_type type, const char *name);

MT_END_DECLS

#endif /* MINDTORCH_BACKEND_H */
