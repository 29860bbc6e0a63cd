/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a line of the control protocol (docs/control.md), read by both sides: an error with
 * words, or a request, an answer or a first line that can be written and read again.
 */
#include "base/fail.h"
#include "fuzz_require.h"
#include "mtprof/remote/control_line.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

typedef struct kept {
    char *bytes;
    size_t n;
} kept;

static int keep(void *context, const void *bytes, size_t length)
{
    kept *k = context;
    k->bytes = realloc(k->bytes, k->n + length + MTPROF__LINE_PAD);
    require(k->bytes != NULL);
    memcpy(k->bytes + k->n, bytes, length);
    k->n += length;
    return 0;
}

static void check_failure(mtprof_status status)
{
    require(status == MTPROF_OK || mtb_last_failure()->message[0] != '\0');
}

static void use_request(char *line, size_t length)
{
    mtprof__control_asked asked, again;
    mtprof_status status = mtprof__control_read_request(line, length, &asked);
    check_failure(status);
    if (status != MTPROF_OK) {
        require(status == MTPROF_EINVAL);
        return;
    }
    kept k = {0};
    mtb_writer writer;
    require(mtb_writer_init(&writer, keep, &k));
    mtprof__control_write_request(&writer, &asked.request);
    require(mtb_writer_finish(&writer) == 0);
    require(k.n > 0 && memchr(k.bytes, '\n', k.n) == k.bytes + k.n - 1);
    /* Escapes may make it too long for its places; else it is the same. */
    if (mtprof__control_read_request(k.bytes, k.n - 1, &again) == MTPROF_OK) {
        require(strcmp(again.path, asked.path) == 0 && strcmp(again.reason, asked.reason) == 0);
        require(again.request.command == asked.request.command &&
                again.request.details == asked.request.details &&
                again.request.ring_bytes == asked.request.ring_bytes);
    }
    free(k.bytes);
}

static void use_answer(char *line, size_t length)
{
    mtprof_control_state state;
    mtprof_status status = mtprof__control_read_answer(line, length, &state);
    check_failure(status);
    if (status == MTPROF_OK) {
        require(state.recording <= MTPROF_CONTROL_PAUSED);
        require(memchr(state.path, 0, sizeof state.path) != NULL);
        require(memchr(state.program, 0, sizeof state.program) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    mtprof__control_hello hello;
    for (int way = 0; way < 3; way++) { /* reading may write behind the line: a copy each */
        char *line = malloc(size_bytes + MTPROF__LINE_PAD);
        require(line != NULL);
        if (size_bytes > 0) {
            memcpy(line, data, size_bytes);
        }
        if (way == 0) {
            use_request(line, size_bytes);
        } else if (way == 1) {
            use_answer(line, size_bytes);
        } else {
            check_failure(mtprof__control_read_hello(line, size_bytes, &hello));
        }
        free(line);
    }
    return 0;
}
