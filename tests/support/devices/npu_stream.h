/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the first accelerator, or the case fails.
 */
#ifndef TESTS_SUPPORT_DEVICES_NPU_STREAM_H
#define TESTS_SUPPORT_DEVICES_NPU_STREAM_H

#include "harness/mt_test.h"

#include <mindtorch/stream.h>

static inline mt_stream *new_stream(void)
{
    mt_stream *stream;
    REQUIRE_OK(mt_stream_new(MT_NPU, 0, &stream));
    return stream;
}

static inline mt_stream *default_stream(void)
{
    mt_stream *stream;
    REQUIRE_OK(mt_stream_get_default(MT_NPU, &stream));
    return stream;
}

static inline mt_stream *current_stream(void)
{
    mt_stream *stream;
    REQUIRE_OK(mt_stream_get_current(MT_NPU, &stream));
    return stream;
}

static inline void use_stream(mt_stream *stream)
{
    REQUIRE_OK(mt_stream_set_current(stream));
}

#endif /* TESTS_SUPPORT_DEVICES_NPU_STREAM_H */
