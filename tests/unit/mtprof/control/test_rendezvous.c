/* SPDX-License-Identifier: Apache-2.0
 *
 * Two copies of the library in one process: this program has one linked in, and opens the shared
 * one.
 */
#include "harness/mt_test.h"

#include <mtprof/mtprof.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef mtprof_status start_call(const mtprof_config *config, mtprof_session **out);
typedef mtprof_status close_call(mtprof_session *session);
typedef const mtprof_error *error_call(void);

/* The calls of the other copy. */
static struct {
    start_call *start;
    close_call *close;
    error_call *error;
} other;

static void open_other(void)
{
    const char *folder = getenv("MT_BINARY_DIR");
    if (folder == NULL) {
        MT_SKIP(
            "MT_BINARY_DIR does not say where the shared library is (run by tools/run_tests.py)");
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/libmtprof.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != NULL);
    other.start = (start_call *)dlsym(library, "mtprof_session_start");
    other.close = (close_call *)dlsym(library, "mtprof_session_close");
    other.error = (error_call *)dlsym(library, "mtprof_last_error");
    REQUIRE(other.start != NULL && other.close != NULL && other.error != NULL);
    REQUIRE(other.start != mtprof_session_start);
}

TEST(a_second_copy_does_not_start_while_the_first_records)
{
    open_other();
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *theirs = NULL, *ours = NULL;
    CHECK_EQ_I64(other.start(&config, &theirs), MTPROF_OK);
    /* Theirs is a library of its own name, so ours finds it however it was opened. */
    CHECK_EQ_I64(mtprof_session_start(&config, &ours), MTPROF_EBUSY);
    CHECK(strstr(mtprof_last_error()->message, "another copy of libmtprof") != NULL);
    CHECK(strstr(mtprof_last_error()->message, "libmtprof.so") != NULL);
    CHECK(strstr(mtprof_last_error()->message, "test_rendezvous") != NULL);
    CHECK_EQ_I64(other.close(theirs), MTPROF_OK);
    CHECK_OK(mtprof_session_start(&config, &ours)); /* one after the other is fine */
    CHECK_OK(mtprof_session_close(ours));
}
