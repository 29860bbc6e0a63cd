/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams in backward, see engine_streams.h.
 */
#include "mindtorch/autograd/engine/engine_streams.h"

#include "mindtorch/core/device/streams.h"

#include <string.h>

void mt__engine_streams_begin(mt__engine_streams *streams)
{
    streams->active = mt__off_default_streams();
    memcpy(streams->callers, mt__thread.streams, sizeof(streams->callers));
    memset(streams->used, 0, sizeof(streams->used));
}

/* Work put on `later` from now on waits for the work that is on `earlier` now. */
static int wait_for(mt_device device, uint32_t later, uint32_t earlier)
{
    if (later == earlier) {
        return MT_OK;
    }
    mt_stream *stream = NULL;
    mt_stream *other = NULL;
    MT_TRY(mt__stream_find(device, later, &stream));
    MT_TRY(mt__stream_find(device, earlier, &other));
    return mt_stream_wait_stream(stream, other);
}

/* The device on which a node has its own stream; MT_CPU: none (BS3). */
static mt_device device_of(const mt_node *node)
{
    return node->kind == MT_NODE_LEAF ? MT_CPU : mt__node_device(node);
}

void mt__engine_streams_enter(mt__engine_streams *streams, const mt_node *node)
{
    memcpy(mt__thread.streams, streams->callers, sizeof(streams->callers));
    mt_device device = device_of(node);
    if (device != MT_CPU) {
        mt__thread.streams[mt__device_index(device)] = node->stream;
        streams->used[mt__device_index(device)][node->stream / 64] |= 1ULL << node->stream % 64;
    }
}

int mt__engine_streams_settle(mt__engine_streams *streams, const mt_node *node)
{
    mt_device device = device_of(node);
    int status = MT_OK;
    for (uint32_t i = 0; i < MT_DEVICES; i++) {
        uint8_t own = device == MT_NPU + (mt_device)i ? node->stream : streams->callers[i];
        uint8_t left = mt__thread.streams[i];
        if (MT_UNLIKELY(left != own)) {
            int waited = wait_for(MT_NPU + (mt_device)i, own, left);
            status = status == MT_OK ? waited : status;
            mt__thread.streams[i] = own;
        }
    }
    return status;
}

/* The gradient is used on stream `later` from now on. */
static int carry(mt_tensor *grad, uint32_t later)
{
    uint32_t earlier = mt__stream_number(grad->device);
    mt_stream *stream = NULL;
    if (later == earlier) {
        return MT_OK;
    }
    MT_TRY(wait_for(grad->device, later, earlier));
    MT_TRY(mt__stream_find(grad->device, later, &stream));
    return mt_tensor_record_stream(grad, stream);
}

int mt__engine_streams_hand(mt__engine_streams *streams, mt_tensor *grad, const mt_node *next)
{
    if (!mt__is_accelerator(grad->device)) {
        return MT_OK;
    }
    uint32_t device = mt__device_index(grad->device);
    uint8_t number = device_of(next) == grad->device ? next->stream : streams->callers[device];
    int status = carry(grad, number);
    mt__thread.streams[device] = number;
    return status;
}

int mt__engine_streams_give(mt__engine_streams *streams, mt_tensor *grad)
{
    return grad == NULL || !mt__is_accelerator(grad->device)
               ? MT_OK
               : carry(grad, streams->callers[mt__device_index(grad->device)]);
}

int mt__engine_streams_end(mt__engine_streams *streams, int status)
{
    for (uint32_t i = 0; i < MT_DEVICES; i++) {
        uint8_t own = streams->callers[i];
        for (uint32_t number = 0; number < MT_STREAMS; number++) {
            if ((streams->used[i][number / 64] >> number % 64 & 1) != 0) {
                int waited = wait_for(MT_NPU + (mt_device)i, own, number);
                status = status == MT_OK ? waited : status;
            }
        }
    }
    memcpy(mt__thread.streams, streams->callers, sizeof(streams->callers));
    return status;
}
