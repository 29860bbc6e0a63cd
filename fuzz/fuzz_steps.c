/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a file of step summaries: as they are, and with the checksums of what looks like
 * records set right, so that lengths and counts are tried as well.
 */
#include "base/crc32c.h"
#include "fuzz_require.h"

#include <mtprof/flight.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CRC_FROM = 8
};

static void set_checksums(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + 16 <= size; at += 8) {
        uint16_t length;
        memcpy(&length, bytes + at + CRC_FROM, sizeof length);
        if (memcmp(bytes + at, "MTSP", 4) == 0 && length >= 16 && length <= size - at) {
            uint32_t crc = mtb_crc32c(0, bytes + at + CRC_FROM, length - (size_t)CRC_FROM);
            memcpy(bytes + at + 4, &crc, sizeof crc);
        }
    }
}

/* Reads every byte that a summary points to. */
static uint64_t use_summary(const mtprof_step_summary *s)
{
    uint64_t sum = 0;
    require(s->n_ops <= MTPROF_STEPS_OPS && s->n_devices <= MTPROF_STEPS_DEVICES && s->steps > 0);
    for (uint32_t i = 0; i < s->n_ops; i++) {
        for (size_t k = 0; k < s->ops[i].name.length; k++) {
            sum += (uint8_t)s->ops[i].name.bytes[k];
        }
    }
    for (uint32_t i = 0; i < s->n_devices; i++) {
        for (size_t k = 0; k < s->devices[i].type.length; k++) {
            sum += (uint8_t)s->devices[i].type.bytes[k];
        }
    }
    return sum;
}

static void use_file(const uint8_t *bytes, size_t size)
{
    char path[64];
    mtprof_steps *steps = NULL;
    mtprof_step_summary s = {.struct_size = sizeof s};
    mtprof_steps_info info = {.struct_size = sizeof info};
    int fd = memfd_create("steps", MFD_CLOEXEC);
    require(fd >= 0 && (size == 0 || write(fd, bytes, size) == (ssize_t)size));
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mtprof_steps_open(path, &steps) == MTPROF_OK) {
        volatile uint64_t sum = 0;
        uint64_t n = 0;
        while (mtprof_steps_next(steps, &s) == MTPROF_OK) {
            sum += use_summary(&s);
            n++;
        }
        require(mtprof_steps_get_info(steps, &info) == MTPROF_OK);
        require(info.summaries == n && n <= size / 128);
        require(info.bytes_lost + info.tail_bytes <= size);
        (void)sum;
    }
    mtprof_steps_close(steps);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uint8_t *copy = calloc(size_bytes + 1, 1);
    require(copy != NULL);
    if (size_bytes > 0) {
        memcpy(copy, data, size_bytes);
    }
    use_file(copy, size_bytes);
    set_checksums(copy, size_bytes);
    use_file(copy, size_bytes);
    free(copy);
    return 0;
}
