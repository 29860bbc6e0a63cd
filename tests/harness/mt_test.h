/* SPDX-License-Identifier: Apache-2.0
 *
 * A small test runner: one program per file of tests, each case in a forked child.
 *
 *      TEST(ring_wraps)
 *      {
 *          ring *r = ring_new(8);
 *          REQUIRE(r != NULL);
 *          CHECK_EQ_U64(ring_capacity(r), 8);
 *          ring_free(r);
 *      }
 *
 * CHECK_* reports and continues (and yields false), REQUIRE_* reports and leaves the case. Both
 * print the expressions, both values and the place. Arguments are evaluated once.
 *
 * Threads: CHECK_* may be called from any thread and from processes the case forks; the failures of
 * all of them count. REQUIRE_*, MT_SKIP and mt_test_tmpdir() belong to the case's first thread; on
 * another one a failing REQUIRE_* ends the process.
 *
 * Program options: --list, --filter SUBSTRING, --case NAME, --no-fork, --timeout SECONDS, -v.
 * The last line a program prints is "N passed, N failed, N skipped"; it exits 1 if a case failed.
 *
 * Environment: MT_SEED (see mt_test_seed), MT_LONG=1 (soaks), MT_KEEP=1 (keep temporary folders).
 */
#ifndef TESTS_HARNESS_MT_TEST_H
#define TESTS_HARNESS_MT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Filled in by TEST(); the runner links the cases in the order of the file. */
typedef struct mt_test_case {
    const char *name;
    void (*run)(void);
    bool hidden; /* not listed and run only by --case: for tests of the runner itself */
    struct mt_test_case *next;
} mt_test_case;

typedef struct mt_test_place {
    const char *file;
    int line;
} mt_test_place;

void mt_test_register(mt_test_case *test);

#define MT_TEST_I_CASE(name_, hidden_)                                           \
    static void mt_test_run_##name_(void);                                       \
    __attribute__((constructor)) static void mt_test_add_##name_(void)           \
    {                                                                            \
        static mt_test_case test = {#name_, mt_test_run_##name_, hidden_, NULL}; \
        mt_test_register(&test);                                                 \
    }                                                                            \
    static void mt_test_run_##name_(void)

#define TEST(name)        MT_TEST_I_CASE(name, false)
#define TEST_HIDDEN(name) MT_TEST_I_CASE(name, true)

#define MT_TEST_I_HERE ((mt_test_place){__FILE__, __LINE__})

/* ---- checks: report, go on, yield whether it held ------------------------------------------- */

#define CHECK(cond)        mt_test_check(MT_TEST_I_HERE, #cond, (cond) ? true : false)
#define CHECK_EQ_I64(a, b) mt_test_eq_i64(MT_TEST_I_HERE, #a, #b, (a), (b))
#define CHECK_EQ_U64(a, b) mt_test_eq_u64(MT_TEST_I_HERE, #a, #b, (a), (b))
#define CHECK_EQ_F64(a, b) mt_test_near_f64(MT_TEST_I_HERE, #a, #b, (a), (b), 0.0)
/* |a - b| <= tolerance; two NaN are near each other. */
#define CHECK_NEAR_F64(a, b, tolerance) \
    mt_test_near_f64(MT_TEST_I_HERE, #a, #b, (a), (b), (tolerance))
#define CHECK_EQ_PTR(a, b) mt_test_eq_ptr(MT_TEST_I_HERE, #a, #b, (a), (b))
/* NULL equals NULL only. */
#define CHECK_EQ_STR(a, b) mt_test_eq_str(MT_TEST_I_HERE, #a, #b, (a), (b))
#define CHECK_EQ_MEM(a, b, size_bytes) \
    mt_test_eq_mem(MT_TEST_I_HERE, #a, #b, (a), (b), (size_bytes))
/* A status expression is 0; prints mt_test_error_text() with it otherwise. */
#define CHECK_OK(status) mt_test_ok(MT_TEST_I_HERE, #status, (int)(status))

/* ---- requirements: report and leave the case ------------------------------------------------- */

#define MT_TEST_I_REQUIRE(check) \
    do {                         \
        if (!(check)) {          \
            mt_test_leave();     \
        }                        \
    } while (0)

/* Spelled out, so that a static analyser learns the condition. */
#define REQUIRE(cond)                                           \
    do {                                                        \
        if (!(cond)) {                                          \
            mt_test_fail(MT_TEST_I_HERE, "REQUIRE(%s)", #cond); \
            mt_test_leave();                                    \
        }                                                       \
    } while (0)
#define REQUIRE_EQ_I64(a, b)             MT_TEST_I_REQUIRE(CHECK_EQ_I64(a, b))
#define REQUIRE_EQ_U64(a, b)             MT_TEST_I_REQUIRE(CHECK_EQ_U64(a, b))
#define REQUIRE_EQ_STR(a, b)             MT_TEST_I_REQUIRE(CHECK_EQ_STR(a, b))
#define REQUIRE_EQ_MEM(a, b, size_bytes) MT_TEST_I_REQUIRE(CHECK_EQ_MEM(a, b, size_bytes))
#define REQUIRE_OK(status)               MT_TEST_I_REQUIRE(CHECK_OK(status))

/* Fails with a message of its own: FAIL("record %zu: kind %u", i, kind). Continues. */
#define FAIL(...) mt_test_fail(MT_TEST_I_HERE, __VA_ARGS__)

/* Leaves the case as skipped. The reason is printed and names what is missing. */
#define MT_SKIP(reason) mt_test_skip(reason)

/* ---- helpers --------------------------------------------------------------------------------- */

/* A folder of this case alone, made on the first call and removed with its contents at the end. */
const char *mt_test_tmpdir(void);

/* MT_SEED from the environment, or a fixed number. A failing case that asked prints it. */
uint64_t mt_test_seed(void);

/* The next number of a small generator (splitmix64); *state starts at any value. */
uint64_t mt_test_random(uint64_t *state);

/* True with MT_LONG=1: soaks run their full length, otherwise a sample of it. */
bool mt_test_long(void);

/* The path of this program, to start it again. */
const char *mt_test_self(void);

/* Detail for a failing CHECK_OK, or NULL. A weak default returns NULL; the glue to the library
 * under test defines the real one, so that this runner depends on nothing. */
const char *mt_test_error_text(void);

/* ---- what the macros call -------------------------------------------------------------------- */

bool mt_test_fail(mt_test_place place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool mt_test_check(mt_test_place place, const char *text, bool held);
bool mt_test_eq_i64(mt_test_place place, const char *a_text, const char *b_text, int64_t a,
                    int64_t b);
bool mt_test_eq_u64(mt_test_place place, const char *a_text, const char *b_text, uint64_t a,
                    uint64_t b);
bool mt_test_near_f64(mt_test_place place, const char *a_text, const char *b_text, double a,
                      double b, double tolerance);
bool mt_test_eq_ptr(mt_test_place place, const char *a_text, const char *b_text, const void *a,
                    const void *b);
bool mt_test_eq_str(mt_test_place place, const char *a_text, const char *b_text, const char *a,
                    const char *b);
bool mt_test_eq_mem(mt_test_place place, const char *a_text, const char *b_text, const void *a,
                    const void *b, size_t size_bytes);
bool mt_test_ok(mt_test_place place, const char *text, int status);
_Noreturn void mt_test_leave(void);
_Noreturn void mt_test_skip(const char *reason);

#endif /* TESTS_HARNESS_MT_TEST_H */
