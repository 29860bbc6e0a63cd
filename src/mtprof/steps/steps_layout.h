/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file of step summaries (docs/flight.md).
 *
 *   SLY1  Records begin at multiples of 8 and have a multiple of 8 bytes, at most
 *         MTPROF_STEPS_RECORD_BYTES.
 *   SLY2  `crc` is the CRC32C of the record from `bytes` on, so a record that was written in part
 *         is found out.
 *   SLY3  Fields are only appended: `fixed` says where a step's arrays begin.
 */
#ifndef MTPROF_STEPS_STEPS_LAYOUT_H
#define MTPROF_STEPS_STEPS_LAYOUT_H

#include "base/compiler.h"

#include <mtprof/flight.h>

#include <assert.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are in the machine's byte order");

#define MTPROF__STEPS_MAGIC 0x5053544Du /* "MTSP" */

enum {
    MTPROF__STEPS_VERSION = 1,
    MTPROF__STEPS_RUN = 1, /* kinds of records */
    MTPROF__STEPS_STEP = 2,
    MTPROF__STEPS_CRC_FROM = 8 /* SLY2 */
};

typedef struct mtprof__steps_head {
    uint32_t magic, crc;
    uint16_t bytes, kind;
    uint32_t version;
} mtprof__steps_head;

/* A recorder begins. */
typedef struct mtprof__steps_run {
    mtprof__steps_head head;
    uint64_t pid;
    int64_t start_ns, start_real_ns;
} mtprof__steps_run;

typedef struct mtprof__steps_step {
    mtprof__steps_head head;
    uint16_t fixed, n_ops, n_devices, reserved;
    uint64_t first, steps;
    int64_t start_ns;
    uint64_t duration_ns;
    double events, read_share;
    uint64_t lost, missed;
    int64_t rss_bytes, allocated, allocated_most;
    double self_ns;
    uint32_t ops_all, devices_all;
    /* devices, then ops */
} mtprof__steps_step;

typedef struct mtprof__steps_device {
    char type[12];
    uint32_t index;
    double busy_ns;
    int64_t allocated, reserved_memory;
} mtprof__steps_device;

typedef struct mtprof__steps_op {
    double self_ns, total_ns, calls;
    uint32_t device;
    uint8_t kind;
    uint8_t name_cut;
    uint16_t name_bytes;
    /* the name, with zeros up to a multiple of 8 */
} mtprof__steps_op;

static_assert(sizeof(mtprof__steps_head) == 16 && sizeof(mtprof__steps_run) == 40 &&
                  sizeof(mtprof__steps_step) == 128 && sizeof(mtprof__steps_device) == 40 &&
                  sizeof(mtprof__steps_op) == 32,
              "as in docs/flight.md");
static_assert(sizeof(mtprof__steps_step) + MTPROF_STEPS_DEVICES * sizeof(mtprof__steps_device) +
                      MTPROF_STEPS_OPS * (sizeof(mtprof__steps_op) + MTPROF_STEPS_NAME_BYTES) <=
                  MTPROF_STEPS_RECORD_BYTES,
              "SLY1");

#endif /* MTPROF_STEPS_STEPS_LAYOUT_H */
