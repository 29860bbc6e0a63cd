/* SPDX-License-Identifier: Apache-2.0 — the first example of docs/guide-c.md. */
#include <mtprof/mtprof.h>

#include <stdio.h>

static double work(int n)
{
    MTPROF_SCOPE("work"); /* ends with the block */
    double sum = 0;
    for (int i = 1; i < n; i++) {
        sum += 1.0 / i;
    }
    return sum;
}

int main(void)
{
    mtprof_config config = {.struct_size = sizeof config, .path = "hello.mtt"};
    mtprof_session *session;
    if (mtprof_session_start(&config, &session) != MTPROF_OK) {
        fprintf(stderr, "%s\n", mtprof_last_error()->message);
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        MTPROF_SCOPE("step");
        sum += work(i);
    }
    mtprof_session_stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_session_get_health(session, &health);
    printf("sum %.1f: %llu scopes in hello.mtt, %llu lost\n", sum,
           (unsigned long long)health.begins, (unsigned long long)health.lost);
    return mtprof_session_close(session) == MTPROF_OK ? 0 : 1;
}
