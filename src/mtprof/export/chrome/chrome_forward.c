/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows from forward to backward ops (kineto's "fwdbwd"): forward.h says which (FW2).
 */
#include "mtprof/export/chrome/export_chrome_impl.h"

void mtprof__chrome_forward(mtprof__chrome *chrome, const mtprof__event *event, uint32_t thread)
{
    mtprof__waiting origin;
    int64_t sequence = event->payload->sequence;
    uint32_t forward = mtprof__forward_thread(event->payload);
    if (forward == 0) {
        mtprof__forward_wait(&chrome->forwards, thread, sequence, event->shown_start_ns,
                             event->track);
    } else if (mtprof__forward_take(&chrome->forwards, forward, sequence, &origin)) {
        uint64_t id = ++chrome->n_forward_flows;
        mtprof__chrome_flow(chrome, 's', "fwdbwd", id, origin.forward.note, origin.start_ns);
        mtprof__chrome_flow(chrome, 'f', "fwdbwd", id, event->track, event->shown_start_ns);
    }
}
