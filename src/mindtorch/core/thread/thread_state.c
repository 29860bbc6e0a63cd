/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread-local block, see thread_state.h.
 */
#include "mindtorch/core/thread/thread_state.h"

_Thread_local mt__thread_state mt__thread __attribute__((tls_model("initial-exec")));
