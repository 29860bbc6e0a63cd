/* SPDX-License-Identifier: Apache-2.0 */
#define OFF_NAME(stem) stem##_with
#include "off_loops.h"
