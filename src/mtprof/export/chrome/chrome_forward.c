/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows from forward to backward ops (kineto's "fwdbwd"): forward_table.h says which.
 */
#include "mtprof/export/chrome/export_chrome_impl.h"

void mtprof__chrome_forward(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__forward forward;
    if (!mtprof__forward_has(event)) {
        return;
    }
    if (!mtprof__forward_is_backward(event)) {
        uint32_t thread = mtprof__chrome_track_of(chrome, event->track)->number;
        mtprof__forward_remember(&chrome->forwards, thread, event);
    } else if (mtprof__forward_take(&chrome->forwards, event, &forward)) {
        uint64_t id = ++chrome->n_forward_flows;
        mtprof__chrome_flow(chrome, 's', "fwdbwd", id, forward.track, forward.start_ns);
        mtprof__chrome_flow(chrome, 'f', "fwdbwd", id, event->track, event->shown_start_ns);
    }
}
