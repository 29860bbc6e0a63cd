/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the control protocol (docs/control.md): requests and answers as JSON objects, one a
 * line. Both sides read what the other one sent as hostile text.
 *
 *   CTL1  A line is read in its buffer, which has MTPROF__LINE_PAD bytes behind it (JSC1).
 *   CTL2  A text that does not fit its place, or has a zero byte in it, is refused, never cut.
 *   CTL3  A request with a member that is not known is refused; of an answer it is ignored, since
 *         the other side may be newer.
 */
#ifndef MTPROF_REMOTE_CONTROL_LINE_H
#define MTPROF_REMOTE_CONTROL_LINE_H

#include "base/json/json_scan.h"
#include "base/text_writer.h"

#include <mtprof/control.h>

#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__LINE_BYTES = 16 * 1024, /* of a line, its end included */
    MTPROF__LINE_PAD = MTB_SCAN_PAD + 1
};

/* A request, and the texts that it points to. */
typedef struct mtprof__control_asked {
    mtprof_control_request request;
    char path[MTPROF_CONTROL_PATH_BYTES];
    char reason[MTPROF_CONTROL_TEXT_BYTES];
} mtprof__control_asked;

/* The first line of a process. */
typedef struct mtprof__control_hello {
    char version[32]; /* of the library */
    uint64_t protocol;
    int64_t pid;
} mtprof__control_hello;

/* Checks the request as the process would: EINVAL. */
mtprof_status mtprof__control_check(const mtprof_control_request *request);

/* Without the line's end (CTL1). Fail with EINVAL; the message says what is wrong. */
mtprof_status mtprof__control_read_request(char *line, size_t length, mtprof__control_asked *out);
/* EFORMAT, or the failure that the answer tells. */
mtprof_status mtprof__control_read_answer(char *line, size_t length, mtprof_control_state *out);
mtprof_status mtprof__control_read_hello(char *line, size_t length, mtprof__control_hello *out);

/* Each writes a line with its end. */
void mtprof__control_write_request(mtb_writer *writer, const mtprof_control_request *request);
void mtprof__control_write_answer(mtb_writer *writer, const mtprof_control_state *state);
void mtprof__control_write_failure(mtb_writer *writer, mtprof_status status, const char *message);
void mtprof__control_write_hello(mtb_writer *writer, int64_t pid);

#endif /* MTPROF_REMOTE_CONTROL_LINE_H */
