/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a session takes to start, to stop after ten million scopes, and to finish its file.
 */
#include "bench_harness.h"

#include <stdio.h>
#include <unistd.h>

typedef struct times {
    bench_series start, stop, close;
} times;

static void run_sessions(times *t, const char *path, uint64_t scopes, uint64_t sessions)
{
    mtprof_config config = {
        .struct_size = sizeof config, .path = path, .buffer_bytes = (uint64_t)1 << 30};
    for (uint64_t i = 0; i < sessions; i++) {
        double before = bench_now_ns();
        mtprof_session *session = bench_start(&config);
        bench_add(&t->start, (bench_now_ns() - before) / 1e6);
        bench_scopes(NULL, scopes);
        before = bench_now_ns();
        bench_must(mtprof_session_stop(session), "session_stop");
        bench_add(&t->stop, (bench_now_ns() - before) / 1e6);
        bench_check_lost(session);
        before = bench_now_ns();
        bench_must(mtprof_session_close(session), "session_close");
        bench_add(&t->close, (bench_now_ns() - before) / 1e6);
        if (path != NULL) {
            unlink(path);
        }
    }
}

static void emit(const char *name, const bench_series *series, double limit)
{
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ms",
                               .value = bench_best(series),
                               .median = bench_median(series),
                               .limit = limit});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    uint64_t scopes = 10000000;
    if (bench_wants("start_ms start_file_ms")) {
        times memory = {.start.count = 0}, file = {.start.count = 0};
        run_sessions(&memory, NULL, 1000, bench_pick(20, 10));
        run_sessions(&file, bench_path(), 1000, bench_pick(20, 10));
        emit("start_ms", &memory.start, 0);
        emit("start_file_ms", &file.start, 0);
    }
    if (bench_wants("stop_ms close_ms")) {
        times memory = {.start.count = 0};
        run_sessions(&memory, NULL, scopes, bench_pick(7, 3));
        emit("stop_ms", &memory.stop, 5);
        emit("close_ms", &memory.close, 0);
    }
    if (bench_wants("stop_file_ms close_file_ms")) {
        times file = {.start.count = 0};
        run_sessions(&file, bench_path(), scopes, bench_pick(7, 3));
        emit("stop_file_ms", &file.stop, 5);
        emit("close_file_ms", &file.close, 0);
    }
    return 0;
}
