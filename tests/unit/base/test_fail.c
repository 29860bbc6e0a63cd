/* SPDX-License-Identifier: Apache-2.0
 *
 * How control code notes a failure.
 */
#include "base/fail.h"
#include "harness/mt_test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

TEST(a_failure_returns_its_status_and_keeps_the_message)
{
    CHECK_EQ_I64(mtb_fail(-3, "reading %s: %d of %d", "x", 1, 2), -3);
    const mtb_failure *last = mtb_last_failure();
    CHECK_EQ_I64(last->status, -3);
    CHECK_EQ_I64(last->system_error, 0);
    CHECK_EQ_I64(last->offset, -1);
    CHECK_EQ_STR(last->message, "reading x: 1 of 2");
}

TEST(an_offset_is_kept_and_gone_with_the_next_failure)
{
    CHECK_EQ_I64(mtb_fail_at(-4, 4096, "chunk"), -4);
    CHECK_EQ_I64(mtb_last_failure()->offset, 4096);
    mtb_fail(-1, "other");
    CHECK_EQ_I64(mtb_last_failure()->offset, -1);
}

TEST(errno_is_kept_and_told)
{
    CHECK_EQ_I64(mtb_fail_errno(-3, ENOENT, "opening %s", "/x"), -3);
    CHECK_EQ_I64(mtb_last_failure()->system_error, ENOENT);
    CHECK_EQ_STR(mtb_last_failure()->message, "opening /x: No such file or directory");
    mtb_fail_errno(-3, 123456, "odd");
    CHECK(strncmp(mtb_last_failure()->message, "odd: ", 5) == 0);
}

TEST(a_long_message_is_cut_with_its_zero_byte)
{
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    mtb_fail(-1, "%s", text);
    CHECK_EQ_U64(strlen(mtb_last_failure()->message), MTB_MESSAGE_BYTES - 1);
    mtb_fail_errno(-1, EIO, "%s", text);
    CHECK_EQ_U64(strlen(mtb_last_failure()->message), MTB_MESSAGE_BYTES - 1);
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    CHECK_EQ_I64(mtb_last_failure()->status, 0);
    CHECK_EQ_STR(mtb_last_failure()->message, "");
    CHECK_EQ_I64(mtb_last_failure()->offset, -1);
    mtb_fail(-9, "elsewhere");
    return NULL;
}

TEST(each_thread_has_its_own)
{
    pthread_t thread;
    mtb_fail(-2, "here");
    REQUIRE(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ_I64(mtb_last_failure()->status, -2);
    CHECK_EQ_STR(mtb_last_failure()->message, "here");
}

static int tries(int status, int *reached)
{
    MT_TRY(status);
    (*reached)++;
    return 0;
}

TEST(try_returns_failures_and_goes_on_otherwise)
{
    int reached = 0;
    CHECK_EQ_I64(tries(-5, &reached), -5);
    CHECK_EQ_I64(reached, 0);
    CHECK_EQ_I64(tries(0, &reached), 0);
    CHECK_EQ_I64(reached, 1);
}
