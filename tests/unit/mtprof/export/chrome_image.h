/* SPDX-License-Identifier: Apache-2.0
 *
 * Small traces with known times for tests of exporters, and exports into memory.
 *
 * One tick is one nanosecond; trace time is ticks + 4000, Unix time ticks + 904000, so that a span
 * from tick 2000 on has "ts": 906.000.
 */
#ifndef TESTS_UNIT_MTPROF_EXPORT_CHROME_IMAGE_H
#define TESTS_UNIT_MTPROF_EXPORT_CHROME_IMAGE_H

#include "support/traces/trace_builder.h"

#include <mtprof/export.h>

#define WORDS(...)                                              \
    (sizeof((uint64_t[]){__VA_ARGS__}) / 8), (const uint64_t[]) \
    {                                                           \
        __VA_ARGS__                                             \
    }

static inline uint64_t low_high(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

typedef struct chrome_image {
    trace_builder b;
    tb_memory memory;
    uint32_t strings; /* defined so far */
    char *text;       /* of the last export, zero-terminated */
    size_t length, capacity;
    int fail_with; /* the output returns this errno value after fail_after bytes */
    size_t fail_after;
} chrome_image;

/* Thread 1 ("main thread", tid 4242 = pid), thread 2 (4243), source 1 of type NPU. Then strings may
 * be defined until image_control(). */
void image_init(chrome_image *image);
/* The same with a source of another type. */
void image_init_device(chrome_image *image, const char *device_type);
uint32_t image_string(chrome_image *image, const char *text);
/* A window from tick 1000 to 1000000 that recorded `gate`, step 3; ids from 100 on. Then more may
 * be put into the control stream until image_thread(). */
void image_control(chrome_image *image, uint64_t gate);
void image_metadata(chrome_image *image, const char *key, const char *value, bool is_json);
/* What follows belongs to this slot and thread. */
void image_thread(chrome_image *image, uint16_t slot);
void image_begin(chrome_image *image, uint64_t ticks, uint16_t flags, uint32_t name);
void image_source(chrome_image *image);
/* A whole trace of one op, aten::add, with all that an op can have. */
void image_full_op(chrome_image *image);
/* A model over what was built. */
mtprof_model *image_model(chrome_image *image);
/* Exports into image->text. */
int image_export(chrome_image *image, mtprof_model *model, enum mtprof_export_format format,
                 const mtprof_export_options *options);
/* Puts a blank after every comma and colon outside texts: tests read better so. Files have none. */
void image_space_out(chrome_image *image);
mtprof_output image_output(chrome_image *image);
void image_fini(chrome_image *image);

/* How often a text occurs in another. */
int count_text(const char *text, const char *what);

#endif /* TESTS_UNIT_MTPROF_EXPORT_CHROME_IMAGE_H */
