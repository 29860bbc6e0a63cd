/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk is full: before the first block, while recording, while saving. What was recorded stays
 * readable, the rest is counted under its cause, the user is warned once, and no thread dies of
 * SIGBUS.
 *
 * Each case runs over a refusing posix_fallocate; some again on a small tmpfs.
 */
#include "fault/fault.h"

enum {
    DISK = 2 << 20,
    INSTANTS = 400000,
    PATIENCE_S = 30
};

typedef struct tally {
    uint64_t marks;   /* emitted */
    uint64_t begins;  /* emitted */
    uint64_t refused; /* begins without a token */
    uint64_t ends;    /* emitted for a token */
} tally;

static mtprof_session *start_full(const char *path, fault_warnings *warnings)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .on_warning = fault_on_warning,
                            .user = warnings};
    mtprof_session *session = NULL;
    CHECK_OK(mtprof_session_start(&config, &session));
    return session;
}

static void emit_marks(tally *t, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        MTPROF_INSTANT("mark");
    }
    t->marks += count;
}

static void emit_scopes(tally *t, uint64_t count)
{
    static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
    static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_OP);
    for (uint64_t i = 0; i < count; i++) {
        mtprof_token a = mtprof_begin(&outer);
        mtprof_token b = mtprof_begin(&inner);
        mtprof_end(b);
        mtprof_end(a);
        t->begins += 2;
        t->refused += (a == 0) + (b == 0);
        t->ends += (a != 0) + (b != 0);
    }
}

/* Every event is either in the file or counted as lost to the disk. */
static void check_all_there(const char *path, const mtprof_health *h, const tally *t, bool python)
{
    rb_trace trace;
    if (!rb_open(&trace, path, NULL, NULL)) {
        return;
    }
    rb_check_clean(&trace, path);
    uint64_t ends = trace.kinds[MTPROF_REC_END] + trace.kinds[MTPROF_REC_END_X];
    CHECK_EQ_U64(trace.others, h->others);
    CHECK_EQ_U64(trace.begins, h->begins);
    CHECK_EQ_U64(h->begins, t->begins - t->refused);
    CHECK_EQ_U64(h->lost, h->lost_by[MTPROF_LOST_DISK]);
    CHECK_EQ_U64(h->lost, (t->marks - trace.others) + t->refused);
    CHECK_EQ_U64(trace.open_spans, t->ends - ends);
    CHECK_EQ_U64(h->truncated, trace.open_spans);
    CHECK_EQ_U64(trace.info.health[MTPROF_LOST_DISK], h->lost);
    CHECK_EQ_U64(trace.kinds[MTPROF_REC_WARNING], h->lost != 0);
    rb_close(&trace);
    rb_check_file(path, python);
}

static void check_one_warning(const fault_warnings *w, const char *path)
{
    CHECK_EQ_U64(fault_warned(w), 1);
    CHECK_EQ_I64(w->status, MTPROF_ENOSPC);
    CHECK(strstr(w->message, path) != NULL);
    CHECK(strstr(w->message, "disk") != NULL);
    CHECK(strstr(w->message, "No space left") != NULL);
}

static void full_while_recording(const char *path, tally *t, bool python)
{
    fault_warnings warnings = {0};
    mtprof_session *session = start_full(path, &warnings);
    REQUIRE(session != NULL);
    if (t->begins == 0) {
        emit_marks(t, INSTANTS);
    } else {
        t->begins = 0;
        emit_scopes(t, INSTANTS / 4);
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    CHECK(h.lost > 0);
    CHECK(h.bytes <= DISK);
    CHECK(h.bytes >= DISK / 4);
    check_one_warning(&warnings, path);
    check_all_there(path, &h, t, python);
}

TEST(marks_on_a_full_disk)
{
    char path[STRESS_PATH];
    tally t = {0};
    fault_disk(DISK);
    full_while_recording(stress_path(path, "marks.mtt"), &t, true);
}

TEST(scopes_on_a_full_disk)
{
    char path[STRESS_PATH];
    tally t = {.begins = 1};
    fault_disk(DISK);
    full_while_recording(stress_path(path, "scopes.mtt"), &t, false);
}

TEST(a_full_tmpfs)
{
    char folder[STRESS_PATH], path[STRESS_PATH + 16];
    if (!fault_mount(folder, "disk", "size=2m", false)) {
        MT_SKIP("needs the right to mount a tmpfs");
    }
    snprintf(path, sizeof path, "%s/t.mtt", folder);
    tally t = {0};
    full_while_recording(path, &t, false);
    unlink(path); /* a new file needs space in addition to the old one */
    tally scopes = {.begins = 1};
    full_while_recording(path, &scopes, false);
    CHECK_EQ_I64(stress_entries(folder), 1);
}

static void *emit_in_a_thread(void *argument)
{
    emit_scopes(argument, 10);
    emit_marks(argument, 10);
    MTPROF_INSTANT("a place nobody has seen before");
    ((tally *)argument)->marks++;
    return NULL;
}

/* Threads and places that are new when there is no room left lose events to the disk, too. */
TEST(newcomers_on_a_full_disk)
{
    char path[STRESS_PATH];
    tally t = {0};
    fault_warnings warnings = {0};
    fault_disk(DISK);
    mtprof_session *session = start_full(stress_path(path, "new.mtt"), &warnings);
    REQUIRE(session != NULL);
    emit_marks(&t, INSTANTS);
    CHECK(stress_health(session).lost > 0);
    for (int i = 0; i < 200; i++) {
        pthread_join(stress_thread(emit_in_a_thread, &t), NULL);
    }
    pthread_t threads[8];
    tally each[8] = {{0}};
    for (int i = 0; i < 8; i++) {
        threads[i] = stress_thread(emit_in_a_thread, &each[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        t.marks += each[i].marks;
        t.begins += each[i].begins;
        t.refused += each[i].refused;
        t.ends += each[i].ends;
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    check_one_warning(&warnings, path);
    check_all_there(path, &h, &t, false);
}

static uint64_t leave_now;

static void *emit_until_told(void *argument)
{
    while (stress_get(&leave_now) == 0) {
        emit_marks(argument, 1000);
    }
    return NULL;
}

/* Threads that never rest must not keep the helper from reporting it. */
TEST(warning_comes_while_events_are_being_lost)
{
    char path[STRESS_PATH];
    tally t = {0};
    fault_warnings warnings = {0};
    fault_disk(DISK);
    mtprof_session *session = start_full(stress_path(path, "hot.mtt"), &warnings);
    REQUIRE(session != NULL);
    time_t patience = time(NULL) + PATIENCE_S;
    tally others[3] = {{0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        threads[i] = stress_thread(emit_until_told, &others[i]);
    }
    while (fault_warned(&warnings) == 0 && time(NULL) < patience) {
        emit_marks(&t, 1000);
    }
    CHECK_EQ_U64(fault_warned(&warnings), 1);
    /* Space becomes free: recording continues. */
    fault_disk(UINT64_MAX);
    uint64_t before = stress_health(session).others;
    while (stress_health(session).others == before && time(NULL) < patience) {
        emit_marks(&t, 1000);
    }
    CHECK(stress_health(session).others > before);
    emit_marks(&t, 1000);
    stress_add(&leave_now, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        t.marks += others[i].marks;
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    check_one_warning(&warnings, path);
    check_all_there(path, &h, &t, false);
}

TEST(tmpfs_that_gets_room_again)
{
    char folder[STRESS_PATH], path[STRESS_PATH + 16], filler[STRESS_PATH + 16];
    if (!fault_mount(folder, "disk", "size=8m", false)) {
        MT_SKIP("needs the right to mount a tmpfs");
    }
    snprintf(path, sizeof path, "%s/t.mtt", folder);
    snprintf(filler, sizeof filler, "%s/filler", folder);
    int fd = open(filler, O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0 && posix_fallocate(fd, 0, 6 << 20) == 0);
    tally t = {0};
    fault_warnings warnings = {0};
    mtprof_session *session = start_full(path, &warnings);
    REQUIRE(session != NULL);
    time_t patience = time(NULL) + PATIENCE_S;
    while (stress_health(session).lost == 0 && time(NULL) < patience) {
        emit_marks(&t, 1000);
    }
    close(fd);
    unlink(filler);
    uint64_t before = stress_health(session).others;
    while (stress_health(session).others == before && time(NULL) < patience) {
        emit_marks(&t, 1000);
        stress_rest_us(1000);
    }
    CHECK(stress_health(session).others > before);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    check_all_there(path, &h, &t, false);
}

/* A start that does not get its first block leaves nothing, and keeps the file at the path. */
static void check_no_start(const char *folder, const char *path)
{
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = (mtprof_session *)&config;
    int before = stress_entries(folder);
    CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_ENOSPC);
    CHECK_EQ_PTR(session, NULL);
    CHECK(strstr(mtprof_last_error()->message, path) != NULL);
    CHECK_EQ_I64(mtprof_last_error()->system_error, ENOSPC);
    CHECK_EQ_I64(stress_entries(folder), before);
}

TEST(no_room_for_the_first_block)
{
    char path[STRESS_PATH], old[STRESS_PATH];
    stress_path(path, "fresh.mtt");
    fault_write_file(stress_path(old, "old.mtt"), "an earlier trace");
#if defined(MT_HOSTILE) && MT_HOSTILE
    const uint64_t sizes[] = {0}; /* blocks are small there */
#else
    const uint64_t sizes[] = {0, 4096, 8192, 100 << 10};
#endif
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fault_disk(sizes[i]);
        check_no_start(mt_test_tmpdir(), path);
        CHECK(access(path, F_OK) != 0);
        check_no_start(mt_test_tmpdir(), old);
        CHECK(fault_holds(old, "an earlier trace"));
    }
    fault_disk(UINT64_MAX);
    mtprof_session *session = stress_start(old, MTPROF_POLICY_SPILL, 0);
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(old, false);
}

TEST(no_room_on_a_tmpfs)
{
    char folder[STRESS_PATH], path[STRESS_PATH + 16], old[STRESS_PATH + 16];
    if (!fault_mount(folder, "disk", "size=1m", false)) {
        MT_SKIP("needs the right to mount a tmpfs");
    }
    snprintf(path, sizeof path, "%s/t.mtt", folder);
    snprintf(old, sizeof old, "%s/old.mtt", folder);
    fault_write_file(old, "an earlier trace");
    int fd = open(folder, O_TMPFILE | O_RDWR, 0600);
    REQUIRE(fd >= 0);
    off_t used = 0;
    while (posix_fallocate(fd, used, 4096) == 0) {
        used += 4096;
    }
    CHECK(used > 0);
    check_no_start(folder, path);
    check_no_start(folder, old);
    CHECK(fault_holds(old, "an earlier trace"));
    close(fd);
}

/* The names of a program that does not fit: a start fails as if nothing had been. */
TEST(no_room_for_the_names)
{
    char path[STRESS_PATH], name[4096];
    memset(name, 'x', sizeof name);
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(name, sizeof name, "%d", i);
        name[n] = 'x';
        REQUIRE(mtprof_intern(name, sizeof name) != 0);
    }
    fault_write_file(stress_path(path, "old.mtt"), "an earlier trace");
    fault_disk(1 << 20);
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = NULL;
    CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_ENOSPC);
    CHECK(fault_holds(path, "an earlier trace"));
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
    fault_disk(UINT64_MAX);
    REQUIRE_OK(mtprof_session_start(&config, &session));
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
}

TEST(saving_to_a_full_disk)
{
    char folder[STRESS_PATH], path[STRESS_PATH + 16], good[STRESS_PATH];
    if (!fault_mount(folder, "disk", "size=1m", false)) {
        MT_SKIP("needs the right to mount a tmpfs");
    }
    snprintf(path, sizeof path, "%s/t.mtt", folder);
    fault_write_file(path, "an earlier trace");
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    tally t = {0};
    emit_marks(&t, INSTANTS);
    CHECK_OK(mtprof_session_stop(session));
    CHECK_EQ_I64(mtprof_session_save(session, path), MTPROF_ENOSPC);
    CHECK(strstr(mtprof_last_error()->message, path) != NULL);
    CHECK(fault_holds(path, "an earlier trace"));
    CHECK_EQ_I64(stress_entries(folder), 1);
    CHECK_OK(mtprof_session_save(session, stress_path(good, "good.mtt")));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.others, t.marks);
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(good, false);
}
