/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of which every number is known, for the text exporters (times in nanoseconds of the
 * trace; correlation ids in brackets):
 *
 *     thread 4242   outer step [100]   6000 ─────────────────────────────── 26000
 *                     aten::add [101]        8000 ──────────── 20000           stack main;f
 *                       aten::mul [102]        10000 ── 13500                  stack main
 *     thread 4243   other "one" [103]              11000 ── 12000
 *     NPU queue 7   kernel                                 14000 ── 16500      launched by [101]
 *                   outer step                             14000 ── 16500      the device's view
 */
#ifndef TESTS_UNIT_MTPROF_EXPORT_SMALL_IMAGE_H
#define TESTS_UNIT_MTPROF_EXPORT_SMALL_IMAGE_H

#include "chrome_image.h"

/* Makes the image and a model over it. */
mtprof_model *small_image(chrome_image *image, bool stacks);

/* Fails each request for memory in turn: an export then says ENOMEM or is complete, and nothing is
 * lost or used twice (sanitizers look). */
void check_no_memory(enum mtprof_export_format format, const char *metric);

/* Fails the output after some bytes: EIO. And twice the same gives the same bytes. */
void check_output(enum mtprof_export_format format);

#endif /* TESTS_UNIT_MTPROF_EXPORT_SMALL_IMAGE_H */
