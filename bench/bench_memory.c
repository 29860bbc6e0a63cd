/* SPDX-License-Identifier: Apache-2.0
 *
 * How many bytes events take, and whether a ring stays within its budget.
 */
#include "bench_harness.h"
#include "mtprof/format/layout.h"

#include <mtprof/op.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes of events ---- */

/* Bytes of records in all chunks of the trace: threads, definitions, control. */
static uint64_t committed(mtprof_session *session)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    bench_must(mtprof_session_get_bytes(session, &bytes), "session_bytes");
    uint64_t sum = 0;
    uint64_t size = bytes.size(bytes.context);
    uint64_t at = MTPROF_HEADER_BYTES;
    while (at + MTPROF_CHUNK_HEADER <= size) {
        mtprof__chunk_header chunk;
        int64_t got = bytes.read(bytes.context, at, &chunk, sizeof chunk);
        bool found = got == (int64_t)sizeof chunk && chunk.magic == MTPROF_CHUNK_MAGIC;
        sum += found ? chunk.committed : 0;
        at +=
            found ? chunk.size : MTPROF_CHUNK_ALIGN; /* format.md 2: a gap, go on a page further */
    }
    bytes.close(bytes.context);
    return sum;
}

static mtprof_site op_site = MTPROF_SITE_INIT("bench::matmul", MTPROF_KIND_OP);

/* Shapes that repeat, and memory before and after. */
static void full_ops(void *context, uint64_t n)
{
    (void)context;
    static const int64_t sizes[3][4] = {{8, 12, 128, 64}, {8, 12, 64, 128}, {8, 12, 128, 128}};
    mtprof_value inputs[3] = {
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[0]},
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[1]},
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[2]},
    };
    for (uint64_t i = 0; i < n; i++) {
        mtprof_op op = {.struct_size = sizeof op,
                        .fields = MTPROF_OP_MEMORY,
                        .inputs = inputs,
                        .n_inputs = 1 + (uint32_t)(i % 3),
                        .memory_before = i << 10};
        mtprof_token token = mtprof_op_begin(&op_site, &op);
        mtprof_op_end(token, 0, (i + 1) << 10);
    }
}

/* Outside of any scope: the dearer kind. */
static void allocs(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        mtprof_alloc(0, 0x10000 + 64 * i, 64, 64 * i, 1 << 30);
    }
}

/* Nothing is subtracted: definitions and anchors are part of the price. */
static void bench_bytes(const char *name, const char *name_all, void (*run)(void *, uint64_t),
                        uint64_t wants, double limit)
{
    uint64_t events = bench_pick(4000000, 1000000);
    mtprof_config config = {.struct_size = sizeof config,
                            .buffer_bytes = (uint64_t)512 << 20,
                            .wants = MTPROF_WANT_DEFAULT | wants};
    mtprof_session *session = bench_start(&config);
    run(NULL, events);
    bench_must(mtprof_session_stop(session), "session_stop");
    double records = (double)committed(session);
    double all = (double)bench_health(session).bytes;
    bench_close(session);
    bench_emit(&(bench_figure){
        .name = name, .unit = "B", .value = records / (double)events, .limit = limit});
    bench_emit(&(bench_figure){.name = name_all, .unit = "B", .value = all / (double)events});
}

/* ---- a ring's memory ---- */

static double resident_mib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtod(line + 6, NULL);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kib / 1024;
}

static void bench_ring(void)
{
    uint64_t scopes = bench_pick(100000000, 10000000);
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = MTPROF_POLICY_RING,
                            .buffer_bytes = (uint64_t)64 << 20};
    double before = resident_mib();
    mtprof_session *session = bench_start(&config);
    bench_scopes(NULL, scopes);
    double after = resident_mib();
    mtprof_health health = bench_health(session);
    bench_close(session);
    char extra[128];
    snprintf(extra, sizeof extra, "\"scopes\": %llu, \"evicted\": %llu, \"lost\": %llu",
             (unsigned long long)scopes, (unsigned long long)health.evicted,
             (unsigned long long)health.lost);
    bench_emit(&(bench_figure){.name = "ring_rss_mib",
                               .unit = "MiB",
                               .value = after - before,
                               .limit = 64 + 4,
                               .extra = extra});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    /* First, while the process has not touched much else. */
    if (bench_wants("ring_rss_mib")) {
        bench_ring();
    }
    if (bench_wants("bytes_per_scope bytes_per_scope_all")) {
        bench_bytes("bytes_per_scope", "bytes_per_scope_all", bench_scopes, 0, 24);
    }
    if (bench_wants("bytes_per_scope_full bytes_per_scope_full_all")) {
        bench_bytes("bytes_per_scope_full", "bytes_per_scope_full_all", full_ops,
                    MTPROF_WANT_INPUTS | MTPROF_WANT_MEMORY, 56);
    }
    if (bench_wants("alloc_event_bytes alloc_event_bytes_all")) {
        bench_bytes("alloc_event_bytes", "alloc_event_bytes_all", allocs, MTPROF_WANT_ALLOCS, 32);
    }
    return 0;
}
