/* SPDX-License-Identifier: Apache-2.0
 *
 * Coroutines in C: tasks take turns on one thread, so their scopes cannot end with a block. Each
 * task keeps a token from mtprof_begin_under() until it is done, and names its parent itself.
 */
#include <mtprof/mtprof.h>

#include <stdio.h>

enum {
    TASKS = 3,
    TURNS = 4
};

/* A coroutine's frame: what lives from one turn to the next. */
typedef struct task {
    int turn;
    mtprof_token whole;
} task;

static mtprof_site task_site = MTPROF_SITE_INIT("task", MTPROF_KIND_SCOPE);
static mtprof_site turn_site = MTPROF_SITE_INIT("turn", MTPROF_KIND_SCOPE);

/* Runs a task until it would wait; returns whether it is done. */
static int resume(task *t)
{
    if (t->turn == 0) {
        t->whole = mtprof_begin_under(&task_site, 0); /* a root: inside no other task */
    }
    mtprof_token turn = mtprof_begin_under(&turn_site, t->whole);
    volatile double work = 0;
    for (int i = 0; i < 1000; i++) {
        work += i;
    }
    (void)work;
    mtprof_end(turn);
    t->turn++;
    if (t->turn == TURNS) {
        mtprof_end(t->whole); /* any thread may do this */
    }
    return t->turn == TURNS;
}

int main(void)
{
    mtprof_config config = {.struct_size = sizeof config, .path = "coroutines.mtt"};
    mtprof_session *session;
    if (mtprof_session_start(&config, &session) != MTPROF_OK) {
        fprintf(stderr, "%s\n", mtprof_last_error()->message);
        return 1;
    }
    task tasks[TASKS] = {{0}};
    for (int left = TASKS; left > 0;) {
        for (int i = 0; i < TASKS; i++) {
            if (tasks[i].turn < TURNS) {
                left -= resume(&tasks[i]);
            }
        }
    }
    mtprof_session_stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_session_get_health(session, &health);
    printf("%llu scopes of %d tasks in coroutines.mtt\n", (unsigned long long)health.begins, TASKS);
    int wrong = health.begins != TASKS * (TURNS + 1) || health.lost != 0;
    return mtprof_session_close(session) == MTPROF_OK ? wrong : 1;
}
