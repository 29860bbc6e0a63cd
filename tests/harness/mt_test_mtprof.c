/* SPDX-License-Identifier: Apache-2.0
 *
 * The only link of the runner to libmtprof: what a failing CHECK_OK prints with the status.
 */
#include "harness/mt_test.h"

#include <mtprof/status.h>

const char *mt_test_error_text(void)
{
    return mtprof_last_error()->message;
}
