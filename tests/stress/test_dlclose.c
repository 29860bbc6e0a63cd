/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules that record and are unloaded: their places' names were copied, so nothing of a trace
 * points into memory that is gone, or that is another module's by now.
 */
#include "stress/stress.h"

#include <dlfcn.h>
#include <sys/mman.h>

enum {
    COUNT = 500,
    RELOADS = 20
};

enum {
    PAGE = 4096,
    BEFORE = 4 * PAGE,
    BEHIND = 8 * PAGE,
    PAGES = (BEFORE + BEHIND) / PAGE
};

static void *covered[PAGES];

/* Maps something else where the module was. */
static void cover(uintptr_t place)
{
    uintptr_t from = (place & ~(uintptr_t)(PAGE - 1)) - BEFORE;
    int n = 0;
    for (int i = 0; i < PAGES; i++) {
        covered[i] = mmap((void *)(from + (uintptr_t)i * PAGE), PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (covered[i] != MAP_FAILED) { /* not another mapping */
            memset(covered[i], 0x5A, PAGE);
            n++;
        }
    }
    CHECK(n > 0);
}

static void uncover(void)
{
    for (int i = 0; i < PAGES; i++) {
        if (covered[i] != MAP_FAILED) {
            munmap(covered[i], PAGE);
        }
    }
}

/* Loads, records, unloads; returns where its function was. */
static uintptr_t visit_module(const char *path, int count)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        FAIL("dlopen %s: %s", path, dlerror());
        mt_test_leave();
    }
    void (*record)(int);
    *(void **)&record = dlsym(module, "dl_module_record");
    REQUIRE(record != NULL);
    record(count);
    uintptr_t at = (uintptr_t)record;
    CHECK_EQ_I64(dlclose(module), 0);
    return at;
}

typedef struct names {
    uint64_t first, second, wrong;
} names;

static void look(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                 const mtprof_record *r)
{
    names *n = context;
    if (stream->kind != MTPROF_STREAM_THREAD ||
        (r->kind != MTPROF_REC_BEGIN && r->kind != MTPROF_REC_INSTANT &&
         r->kind != MTPROF_REC_COUNTER)) {
        return;
    }
    const char *kind = r->kind == MTPROF_REC_BEGIN     ? "scope"
                       : r->kind == MTPROF_REC_INSTANT ? "mark"
                                                       : "counter";
    char a[32], b[32];
    snprintf(a, sizeof a, "first %s", kind);
    snprintf(b, sizeof b, "second %s", kind);
    const char *name = rb_name(trace, r->arg);
    mtprof_text file;
    uint32_t line;
    n->first += strcmp(name, a) == 0;
    n->second += strcmp(name, b) == 0;
    n->wrong += (strcmp(name, a) != 0 && strcmp(name, b) != 0) ||
                !mtprof_reader_location(trace->reader, r->arg, &file, &line) ||
                strstr(file.bytes, "dl_module.c") == NULL;
}

static void check_names(mtprof_session *session, uint64_t first, uint64_t second)
{
    names n = {0};
    rb_trace t;
    if (rb_open_session(&t, session, look, &n)) {
        rb_check_clean(&t, "unloaded modules");
        CHECK_EQ_U64(n.first, first);
        CHECK_EQ_U64(n.second, second);
        CHECK_EQ_U64(n.wrong, 0);
        rb_close(&t);
    }
}

TEST(module_is_unloaded_before_the_stop)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    uintptr_t at = visit_module(DL_FIRST, COUNT);
    cover(at);
    CHECK_OK(mtprof_session_stop(session));
    check_names(session, 3 * COUNT, 0);
    CHECK_OK(mtprof_session_close(session));
    uncover();
}

/* Another module may be loaded where the first one was; both names stay apart. */
TEST(modules_take_turns)
{
    char path[STRESS_PATH];
    mtprof_session *session = stress_start(stress_path(path, "dl.mtt"), MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    uint64_t same_place = 0;
    for (int i = 0; i < RELOADS; i++) {
        uintptr_t a = visit_module(DL_FIRST, COUNT);
        uintptr_t b = visit_module(DL_SECOND, COUNT);
        same_place += a == b;
    }
    printf("%llu of %d times the second module stood where the first had been\n",
           (unsigned long long)same_place, RELOADS);
    CHECK_OK(mtprof_session_stop(session));
    check_names(session, 3ul * COUNT * RELOADS, 3ul * COUNT * RELOADS);
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, true);
}

/* Between sessions: the next one writes all names again, from copies. */
TEST(module_is_gone_when_the_next_session_starts)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    uintptr_t at = visit_module(DL_FIRST, COUNT);
    CHECK_OK(mtprof_session_close(session));
    cover(at);
    session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    uncover();
    visit_module(DL_SECOND, COUNT);
    visit_module(DL_FIRST, COUNT);
    CHECK_OK(mtprof_session_stop(session));
    check_names(session, 3 * COUNT, 3 * COUNT);
    CHECK_OK(mtprof_session_close(session));
}
