/* SPDX-License-Identifier: Apache-2.0 */
#define MTPROF_DISABLE
#define OFF_NAME(stem) stem##_without
#include "off_loops.h"
